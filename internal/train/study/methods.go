package study

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Control is the method that the product deploys.
const Control = "ecs-dbn"

// Method is one way to tell the classes apart.
type Method struct {
	Name     string
	Settings string // what a person would need to do the same

	called string // in a sentence
	simple int    // 1 is the simplest: what there is to understand, to fit and to keep
	solve  func(context.Context, foldTask) (foldAnswer, error)
}

// foldAnswer is what a method makes of the test rows of a fold.
type foldAnswer struct {
	decision []int     // by row: the class
	score    []float64 // by row: larger where the rare class is more likely
}

const simpleCosts = "; columns standardised, costs chosen on out-of-fold posteriors as for ecs-dbn"

// Methods returns all methods, in the order in which they are listed.
func Methods() []Method {
	return []Method{
		{Control, "as the configuration says, or for a plain table as on the sets of docs/figures/study", "ECS-DBN", 3, ecsDBN},
		{"logistic", "logistic regression, L2 with C = 3, or 0.1 if two groups or fewer have rare rows" + simpleCosts, "logistic regression", 1, solver(LogisticRegression)},
		{"random-forest", "100 trees of all depths on bootstrapped rows, √columns tried at each node" + simpleCosts, "a random forest", 2, solver(RandomForest)},
		{"extra-trees", "100 trees of all depths, thresholds of √columns drawn at each node" + simpleCosts, "extra trees", 2, solver(ExtraTrees)},
	}
}

// chosen returns the methods of the given names, all if there are none.
func chosen(names []string) ([]Method, error) {
	all := Methods()
	var known []string
	for _, m := range all {
		known = append(known, m.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%q is not a method: there are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(m Method) bool { return len(names) > 0 && !slices.Contains(names, m.Name) }), nil
}

// of returns the method of a name.
func of(name string) Method {
	all := Methods()
	i := slices.IndexFunc(all, func(m Method) bool { return m.Name == name })
	if i < 0 {
		panic("study: no method " + name)
	}
	return all[i]
}

// ecsDBN is fitted on one goroutine, as cells are made next to each other.
func ecsDBN(ctx context.Context, t foldTask) (foldAnswer, error) {
	s := t.settings
	s.Seed, s.Workers = t.seed, 1
	c, _, err := classify.FitTable(ctx, &t.train, s)
	if err != nil {
		return foldAnswer{}, err
	}
	var a foldAnswer
	scorer := c.NewScorer()
	for i := range t.test.Rows {
		p := scorer.Posterior(t.test.Row(i))
		a.decision, a.score = append(a.decision, c.Decide(p)), append(a.score, p[1])
	}
	return a, nil
}

// solver has the inputs and the rule for costs of ecs-dbn.
func solver(m Baseline) func(context.Context, foldTask) (foldAnswer, error) {
	return func(ctx context.Context, t foldTask) (foldAnswer, error) {
		a, err := m.Judge(ctx, Task{
			X: t.x, Y: t.train.Y, Groups: t.train.Groups, Test: t.test, Weights: t.weights(), Costs: t.settings.Costs, Seed: t.seed, Workers: 1,
		})
		if err != nil {
			return foldAnswer{}, err
		}
		out := foldAnswer{decision: a.Decide()}
		for i := 1; i < len(a.Posterior); i += 2 {
			out.score = append(out.score, a.Posterior[i])
		}
		return out, nil
	}
}

// weights returns by how much each column counts, or nil if all count alike: as
// pkg/classify weighs the columns of ecs-dbn.
func (t *foldTask) weights() []float64 {
	w, err := t.train.Weigh(classify.Settings{Stability: t.settings.Stability})
	if err != nil {
		panic("study: weights: " + err.Error()) // rows in memory can always be read
	}
	if slices.Min(w) == 1 { // a column that is weighed has less
		return nil
	}
	return w
}

// Default returns how ECS-DBN is fitted to a table without a configuration: one way for all, which
// docs/figures/study/defaults.md gives the reasons for.
func Default() classify.Settings {
	return classify.Settings{
		Encoding: classify.Committee,
		Bins:     8,
		Balance:  0.5,
		Network: dbn.Settings{
			Hidden:   []int{30},
			Pretrain: dbn.PretrainSettings{Epochs: 20},
		},
		Costs: classify.CostSettings{Folds: 10, PriorRows: 80},
	}
}

// Tables of many rows need fewer passes, in larger batches, or a study of them
// takes days.
const (
	ManyRows = 50_000    // 5 epochs of pre-training and 60 of fine-tuning, in batches of 64; see DefaultFor
	vastRows = 1_000_000 // 1 and 2, in batches of 256
)

// DefaultFor returns Default for so many training rows, which may have groups.
//
// Many rows without groups can bear a larger network, and need a weaker penalty:
// decay is added to the mean loss of a row, so 1/rows is a normal prior of variance 1
// on each weight, however many rows there are; on 140,000 Default's decay is 42 to
// 280 times that. Rows of one group resemble each other, so that they are worth
// fewer, and a larger network learns the groups: there it stays as it is.
func DefaultFor(rows int, grouped bool) classify.Settings {
	s := Default()
	p, t := &s.Network.Pretrain, &s.Network.FineTune
	switch {
	case rows > vastRows:
		p.Epochs, t.Epochs, p.Batch, t.Batch = 1, 2, 256, 256
	case rows > ManyRows:
		p.Epochs, t.Epochs, p.Batch, t.Batch = 5, 60, 64, 64
		if !grouped {
			s.Network.Hidden = []int{60, 30}
			t.Rate, t.Decay = 0.01, 1/float64(rows)
			s.Costs.Folds = 5
		}
	}
	return s
}
