package study

import (
	"context"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/train/baseline"
	"github.com/flank-tcm/flank/pkg/classify"
)

// simpleMethod is a method of package baseline.
type simpleMethod struct {
	name     string
	method   baseline.Method
	effort   float64
	settings string
}

const simpleCosts = "; columns standardised, costs chosen on out-of-fold posteriors as for ecs-dbn"

// simpleMethods are in the order in which tables show them.
var simpleMethods = []simpleMethod{
	{"logistic", baseline.LogisticRegression, 0.2, "logistic regression, L2 with C = 3, or 0.1 if two groups or fewer have rare rows" + simpleCosts},
	{"random-forest", baseline.RandomForest, 0.5, "100 trees of all depths on bootstrapped rows, √columns tried at each node" + simpleCosts},
	{"extra-trees", baseline.ExtraTrees, 0.5, "100 trees of all depths, thresholds of √columns drawn at each node" + simpleCosts},
}

// family returns the method as a family of its own. It has the inputs and the rule for costs of
// ecs-dbn.
func (m simpleMethod) family() family {
	return family{
		effort:  m.effort,
		methods: []Method{{m.name, 3, m.settings}},
		solve: func(ctx context.Context, t Task) ([]Answer, error) {
			began := startWatch()
			defer began.stop()
			s := t.settings()
			a, err := m.method.Judge(ctx, baseline.Task{
				X: t.X, Y: t.Y, Groups: t.Groups, Test: t.Test, Weights: t.weights(s.Stability), Costs: s.Costs, Seed: t.Seed, Workers: 1,
			})
			if err != nil {
				return nil, err
			}
			out := Answer{Decision: a.Decide(), Seconds: began.seconds(), Judging: math.NaN()} // in Seconds already
			for i := 1; i < len(a.Posterior); i += 2 {
				out.Score = append(out.Score, a.Posterior[i])
			}
			return []Answer{out}, nil
		},
	}
}

// weights returns by how much each column counts, or nil if all count alike: as
// pkg/classify weighs the columns of ecs-dbn.
func (t *Task) weights(s classify.Stability) []float64 {
	w, err := (&classify.Table{X: t.X, Y: t.Y, Groups: t.Groups, Ordered: t.Ordered}).Weigh(classify.Settings{Stability: s})
	if err != nil {
		panic("study: weights: " + err.Error()) // rows in memory can always be read
	}
	if slices.Min(w) == 1 { // a column that is weighed has less
		return nil
	}
	return w
}
