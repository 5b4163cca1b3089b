package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// Search looks for better hidden layers, rates and weight decay than
// the job's configuration has, by trying some drawn at random.
//
// The best of many tries is partly the luckiest one, so the figure that counts
// is nested: tools are held out in outer folds, the choice is made within
// what is left, by inner folds of tools, and only then the held-out tools judge
// what was chosen for them. (S. Varma and R. Simon, "Bias in Error Estimation
// When Using Cross-Validation for Model Selection", BMC Bioinformatics 7, 2006;
// random draws: J. Bergstra and Y. Bengio, JMLR 13, 2012.)
//
// Features are relative to the tool's reference in the way that the trainer keeps to in
// doubt, and windows without a label are not learnt from, so that networks are compared
// on the same rows.
//
// With a Keep in the job, a search that is cut off goes on where it was.
type Search struct {
	Job
	Trials int // networks that are tried, the configured one first; the budget
}

// Folds of tools.
const (
	outerFolds = 5
	innerFolds = 3
)

// trial is one network that was tried.
type trial struct {
	Network networkConfig `json:"network"`
	GMean   score.Figure  `json:"gmean"`  // by inner folds of all tools: what the choice is made by, which flatters the best
	Picked  int           `json:"picked"` // by how many of the outer folds
}

// searchReport says what a search tried and found.
type searchReport struct {
	Split      string        `json:"split"`
	Trials     []trial       `json:"trials"`
	Best       int           `json:"best"`              // index into Trials
	Nested     score.Summary `json:"nested"`            // of tools held out from the choice: what to expect of it
	Configured score.Summary `json:"configured"`        // of the configured network on the same outer folds
	Classes    []string      `json:"classes,omitempty"` // their names, if there are more than two

	// Of Nested and Configured over tools.
	NestedInterval     *card.ToolInterval `json:"nested_interval,omitempty"`
	ConfiguredInterval *card.ToolInterval `json:"configured_interval,omitempty"`

	Windows  card.Tally `json:"windows"`
	Balance  string     `json:"balance"`
	Warnings []string   `json:"warnings"`
}

// Run searches. Equal searches give equal reports, with any number of
// workers.
func (s Search) Run(ctx context.Context) (*searchReport, error) {
	if s.Trials < 2 {
		return nil, fmt.Errorf("train: search: %d trials: try 2 or more, for example 20", s.Trials)
	}
	s.Job.prepare()
	if err := s.Config.Check(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	rows, _, counts, err := s.rows(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.close()
	if err := rows.check(s.Config.Label); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	for k, name := range rows.classes {
		if tools := rows.unlike(k); len(tools) < 3 {
			return nil, fmt.Errorf("train: search: %w: only %d tools have %s windows: a choice within tools that are left when others are held out needs 3 such tools", errData, len(tools), name)
		}
	}
	r := &searchReport{Windows: counts, Balance: rows.balance(), Warnings: append(rows.warnings(), rows.copyWarnings()...)}
	if several(rows.classes) {
		r.Classes = rows.classes
	}
	rng := rand.New(rand.NewPCG(s.Config.Seed, 0x736561726368)) // "search"
	networks := s.draw(rng)
	outer := classify.GroupKFold(rows.Class, rows.apart(), outerFolds, rng)
	r.Split = fmt.Sprintf("nested: %d outer folds by tool, the choice within each by %d inner folds by tool", len(outer), innerFolds)
	for _, n := range networks {
		r.Trials = append(r.Trials, trial{Network: n})
	}
	if rows.rel != nil { // the same for all networks
		rows.settle(rows.rel.modes[0], s.Config.Reference.Windows)
	}
	rows.bare.group = nil
	steps, done := (len(outer)+1)*len(networks)+2*len(outer), 0
	step := func() {
		done++
		s.Progress("searching", done, steps)
	}
	nested, configured, err := s.nested(ctx, r, rows, outer, networks, step)
	if err != nil {
		return nil, err
	}
	figures, err := s.compare(ctx, rows, networks, s.Config.Seed, step)
	if err != nil {
		return nil, err
	}
	for i, g := range figures {
		r.Trials[i].GMean = score.Figure(g)
	}
	r.Best = bestOf(figures)
	r.Nested, r.Configured = nested.scores(rows.Class), configured.scores(rows.Class)
	r.NestedInterval, r.ConfiguredInterval = nested.interval(rows), configured.interval(rows)
	return r, nil
}

// nested judges the tools of each outer fold by the network that is chosen without them, and
// by the configured one.
func (s Search) nested(ctx context.Context, r *searchReport, rows rowTable, outer []classify.Fold, networks []networkConfig, step func()) (chosen, configured *verdicts, err error) {
	lessons := rows.lessons(s.Config.Reference.Windows)
	k := len(rows.classes)
	chosen, configured = newVerdicts(len(rows.Class), k), newVerdicts(len(rows.Class), k)
	for f, fold := range outer {
		figures, err := s.compare(ctx, part(rows, fold.Train), networks, s.Config.Seed+uint64(f)+1, step)
		if err != nil {
			return nil, nil, err
		}
		best := bestOf(figures)
		r.Trials[best].Picked++
		judge := func(n int, to ...*verdicts) error {
			v, err := classify.CrossValidateTable(ctx, lessons, s.settingsOf(networks[n], rows), []classify.Fold{fold})
			if err != nil {
				return fmt.Errorf("train: search: outer fold %d: %w", f+1, err)
			}
			for _, verdicts := range to {
				verdicts.take(v, fold.Test)
				step()
			}
			return nil
		}
		if best == 0 {
			err = judge(0, chosen, configured)
		} else if err = judge(best, chosen); err == nil {
			err = judge(0, configured)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return chosen, configured, nil
}

// draw returns the configured network and others with hidden layers, rates and
// decay drawn at random.
func (s Search) draw(rng *rand.Rand) []networkConfig {
	between := func(low, high float64) float64 { // evenly in the logarithm, two digits
		v := low * math.Pow(high/low, rng.Float64())
		v, err := strconv.ParseFloat(fmt.Sprintf("%.2g", v), 64)
		if err != nil {
			panic("train: " + err.Error())
		}
		return v
	}
	hidden := [][]int{{10}, {20}, {30}, {50}, {100}, {20, 20}, {30, 30}, {50, 50}, {100, 30}, {30, 30, 30}}
	networks := []networkConfig{s.Config.Network}
	for len(networks) < s.Trials {
		n := s.Config.Network
		n.Hidden = hidden[rng.IntN(len(hidden))]
		n.Pretrain.Rate = between(0.01, 0.2)
		if n.FineTune.Rate = between(0.001, 0.02); n.FineTune.Method == "sgd" {
			n.FineTune.Rate *= 20 // as are its defaults
		}
		n.FineTune.Decay = between(1e-4, 1e-2)
		networks = append(networks, n)
	}
	return networks
}

// settingsOf returns the classifier's settings with another network.
func (s Search) settingsOf(n networkConfig, rows rowTable) classify.Settings {
	s.Config.Network = n
	return s.Job.settings(rows)
}

// compare returns the G-mean of each network by inner folds of the rows' tools,
// the same folds for all. A figure that the folds cannot give is NaN.
func (s Search) compare(ctx context.Context, rows rowTable, networks []networkConfig, seed uint64, step func()) ([]float64, error) {
	folds := classify.GroupKFold(rows.Class, rows.apart(), innerFolds, rand.New(rand.NewPCG(seed, 0x696e6e6572))) // "inner"
	figures := make([]float64, len(networks))
	for i, n := range networks {
		v, err := classify.CrossValidateTable(ctx, rows.lessons(s.Config.Reference.Windows), s.settingsOf(n, rows), folds)
		switch {
		case errors.Is(err, classify.ErrTooFew), errors.Is(err, dbn.ErrDiverged):
			figures[i] = math.NaN()
		case err != nil:
			return nil, fmt.Errorf("train: search: %w", err)
		default:
			figures[i] = float64(v.Pooled.GMean)
		}
		step()
	}
	return figures, nil
}

// bestOf returns the index of the greatest figure, of equals the first; NaN
// never wins.
func bestOf(figures []float64) int {
	best, most := 0, math.Inf(-1)
	for i, g := range figures {
		if g > most {
			best, most = i, g
		}
	}
	return best
}

// part returns the given rows, which ascend. Of rows on disk it is a view.
func part(t rowTable, rows []int) rowTable {
	p := rowTable{classes: t.classes, together: t.together, ordered: t.ordered, mostUM: t.mostUM, limitUM: t.limitUM, exclude: t.exclude}
	if t.onDisk == nil {
		p.Table = t.Select(rows)
	} else {
		p.Table, p.view = table.New(t.Columns), classify.Part(t.x(), rows)
	}
	p.group, p.Class = classify.Pick(t.group, rows), classify.Pick(t.Class, rows)
	return p
}

// verdicts are decisions and posteriors of rows, each judged once.
type verdicts struct {
	classes   int
	decisions []int
	posterior []float64
}

func newVerdicts(rows, classes int) *verdicts {
	return &verdicts{classes, make([]int, rows), make([]float64, classes*rows)}
}

func (v *verdicts) take(from *classify.Validation, rows []int) {
	for _, i := range rows {
		v.decisions[i] = from.Decision[i]
		copy(v.posterior[v.classes*i:v.classes*(i+1)], from.Posterior[v.classes*i:])
	}
}

func (v *verdicts) scores(class []int) score.Summary {
	return score.Assess(class, v.decisions, v.posterior, v.classes)
}

// interval returns the interval of the scores over tools.
func (v *verdicts) interval(rows rowTable) *card.ToolInterval {
	number, names := classify.NumberGroups(rows.group)
	tools := make([]score.Confusion, len(names))
	for t := range tools {
		tools[t] = score.NewConfusion(v.classes)
	}
	for i, t := range number {
		tools[t].Add(rows.Class[i], v.decisions[i])
	}
	return card.IntervalOf(tools)
}

// Text returns the report for a terminal, with the network to put into
// train.yaml.
func (r *searchReport) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "windows  %s\n", r.Balance)
	fmt.Fprintf(&b, "split    %s\n\n", r.Split)
	fmt.Fprintf(&b, "%4s %-14s %12s %12s %10s %8s %7s\n", "", "hidden", "pretrain", "fine-tune", "decay", "G-mean", "picked")
	order := places(len(r.Trials))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Trials[b].GMean, r.Trials[a].GMean) }) // NaN is last
	for _, i := range order {
		t := r.Trials[i]
		name := ""
		if i == 0 {
			name = "conf"
		}
		fmt.Fprintf(&b, "%4s %-14s %12s %12s %10s %8s %7d\n", name, sizes(t.Network.Hidden), rate(t.Network.Pretrain.Rate), rate(t.Network.FineTune.Rate), rate(t.Network.FineTune.Decay), card.Figure(t.GMean), t.Picked)
	}
	fmt.Fprintf(&b, "\nThe G-mean above is what the choice is made by, so the best network's G-mean flatters. What to expect on a new tool, with tools held\nout from the choice itself: %s; of the configured network on the same tools: %s. Brackets are 95 %% intervals.\n",
		r.NestedInterval.Words(r.Classes, &r.Nested), card.Within(r.Configured.GMean, r.ConfiguredInterval.GMean))
	if r.Best == 0 || !(r.Nested.GMean > r.Configured.GMean) {
		b.WriteString("\nNothing was gained by searching: keep the configuration.\n")
	} else {
		n := r.Trials[r.Best].Network
		fmt.Fprintf(&b, "\nnetwork:\n  hidden: [%s]\n  pretrain:\n    rate: %v\n  fine_tune:\n    rate: %v\n    decay: %v\n",
			strings.ReplaceAll(sizes(n.Hidden), "-", ", "), n.Pretrain.Rate, n.FineTune.Rate, n.FineTune.Decay)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "note: %s\n", w)
	}
	return b.String()
}

func sizes(hidden []int) string {
	if len(hidden) == 0 {
		return "default"
	}
	words := make([]string, len(hidden))
	for i, h := range hidden {
		words[i] = fmt.Sprint(h)
	}
	return strings.Join(words, "-")
}

func rate(v float64) string {
	if v == 0 {
		return "default"
	}
	return fmt.Sprintf("%.2g", v)
}
