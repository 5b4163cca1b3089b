package imbalance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/score"
)

// settings returns how the study's networks are fitted to the task.
func (t *Task) settings() classify.Settings {
	return study.DefaultFor(max(len(t.Y), t.AsMany), t.Groups != nil)
}

// paper returns the settings that the paper states, and where it says nothing
// the plainest reading: iterations are epochs, batches have ten rows, there is
// no momentum and no decay. It trains one hidden layer of 5 to 50 units, drawn
// from rng: with two, networks learn the larger class and nothing else.
func paper(rng *rand.Rand) classify.Settings {
	return classify.Settings{
		Encoding: classify.MinMax,
		Network: dbn.Settings{
			Hidden:   []int{5 + rng.IntN(46)},
			Pretrain: dbn.PretrainSettings{Epochs: 100, Batch: 10, Rate: 0.01, Momentum: -1, Decay: -1},
			FineTune: dbn.FineTuneSettings{Epochs: 300, Batch: 10, Rate: 0.01, Method: "sgd", Momentum: -1, Decay: -1},
		},
		Costs: classify.CostSettings{
			Posteriors: classify.Training, Uncalibrated: true, Fitness: classify.Raw, Unmixed: true,
			Search: jade.Paper,
		},
	}
}

// describe returns how networks are trained, as far as Default says.
func describe(s classify.Settings) string {
	p, t := s.Network.Pretrain, s.Network.FineTune
	parts := []string{string(s.Encoding), fmt.Sprintf("hidden %v", s.Network.Hidden)}
	for _, o := range []struct {
		name  string
		value float64
	}{
		{"bins", float64(s.Bins)}, {"decay", t.Decay}, {"rate", t.Rate}, {"epochs", float64(t.Epochs)}, {"batch", float64(t.Batch)},
		{"pre-training rate", p.Rate}, {"pre-training epochs", float64(p.Epochs)}, {"pre-training batch", float64(p.Batch)},
	} {
		if o.value != 0 { // the defaults of pkg/dbn otherwise
			parts = append(parts, fmt.Sprintf("%s %v", o.name, o.value))
		}
	}
	return strings.Join(parts, ", ")
}

// costFamily is the study's network with costs chosen in several ways. All but
// the first two choose on the same out-of-fold posteriors.
func costFamily() family {
	s := study.Default()
	with := describe(s) + fmt.Sprintf(", balance %v, ", s.Balance)
	held := fmt.Sprintf("on out-of-fold posteriors of %d folds", s.Costs.Folds)
	return family{
		effort: 5,
		methods: []Method{
			{"ecs-dbn", 10, with + fmt.Sprintf("calibrated, smoothed optimum %s, an inverse prior that counts for %d rows", held, s.Costs.PriorRows)},
			{"dbn", 10, with + "argmax"},
			{"csdbn", 3, with + "costs drawn from U(0,1)"},
			{"grid-dbn", 3, with + "costs of a grid of 21×21 with the best G-mean " + held},
			{"threshold-dbn", 3, with + "the exact optimum of G-mean " + held},
		},
		solve: func(ctx context.Context, t Task) ([]methodAnswer, error) {
			f, err := fit(ctx, t, t.settings())
			if err != nil {
				return nil, err
			}
			rng := newRand(seedOf("costs", t.Seed))
			random := classify.CostVector{rng.Float64(), rng.Float64()}
			equal := classify.CostVector{0, 0}
			return []methodAnswer{
				f.decide(f.costs("kept"), f.whole),
				f.decide(equal, f.network),
				f.decide(random, f.network),
				f.decide(gridCosts(f.report.Posterior, t.Y), f.whole),
				f.decide(f.costs("exact"), f.whole),
			}, nil
		},
	}
}

func paperFamily() family {
	const with = "minmax, one hidden layer of 5 to 50 units, rate 0.01, 100 and 300 epochs, batch 10, plain gradient descent, "
	return family{
		effort: 3,
		methods: []Method{
			{"ecs-dbn-paper", 3, with + "costs by the paper's JADE on training posteriors"},
			{"dbn-paper", 3, with + "argmax"},
		},
		solve: func(ctx context.Context, t Task) ([]methodAnswer, error) {
			f, err := fit(ctx, t, paper(newRand(seedOf("width", t.Seed))))
			if err != nil {
				return nil, err
			}
			return []methodAnswer{f.decide(f.costs("jade"), f.whole), f.decide(classify.CostVector{0, 0}, f.network)}, nil
		},
	}
}

// resampledFamily is the study's network, by argmax, trained on resampled rows.
func resampledFamily(name string, resample resampler) family {
	s := study.Default()
	return family{
		effort:  2,
		methods: []Method{{name, 3, describe(s) + ", argmax; training rows resampled on standardised columns"}},
		solve: func(ctx context.Context, t Task) ([]methodAnswer, error) {
			began := startWatch()
			defer began.stop()
			grouped := t.Groups != nil
			t, scale := t.resampled(resample)
			s := unbalanced(study.DefaultFor(max(len(t.Y), t.AsMany), grouped))
			prepared := began.seconds()
			t.Test = scale.Apply(t.Test)
			scaling := began.seconds() - prepared
			f, err := fit(ctx, t, s)
			if err != nil {
				return nil, err
			}
			f.judging += scaling
			return []methodAnswer{f.decide(classify.CostVector{0, 0}, prepared+f.network)}, nil
		},
	}
}

// resampled returns the task with its training part standardised and resampled, and
// what the test part must be standardised by.
func (t Task) resampled(resample resampler) (Task, scaling) {
	s := FitScale(t.X)
	t.X = s.Apply(t.X)
	t.X, t.Y = resample(t.X, t.Y, newRand(seedOf("resample", t.Seed)))
	t.Groups = nil // rows that were made up have none
	return t, s
}

// unbalanced returns s for the resampled methods, whose rows are balanced already
// and which decide by argmax: without balance and without folds to choose costs on.
func unbalanced(s classify.Settings) classify.Settings {
	s.Balance = -1
	s.Costs = classify.CostSettings{Posteriors: classify.Training, JADE: jade.Settings{Generations: 1}}
	return s
}

// fitted is a classifier with its posteriors of the test rows.
type fitted struct {
	report         *classify.Report
	posterior      [][2]float64 // of test rows
	network, whole float64      // seconds until the network was trained, and until costs were chosen
	judging        float64      // seconds from test rows to posteriors
}

func fit(ctx context.Context, t Task, s classify.Settings) (*fitted, error) {
	return fitRows(ctx, &classify.Table{X: t.X, Y: t.Y, Groups: t.Groups}, t.Test, t.Seed, s)
}

// fitRows fits a classifier to rows that need not be in memory, on this
// goroutine alone, whose time is measured, and judges others.
func fitRows(ctx context.Context, table *classify.Table, test dbn.Rows, seed uint64, s classify.Settings) (*fitted, error) {
	type mark struct {
		done    int
		seconds float64
	}
	var marks []mark
	began := startWatch()
	defer began.stop()
	s.Seed, s.Workers = seed, 1
	total, tell := 0, s.Progress
	s.Progress = func(phase string, done, all int) {
		marks, total = append(marks, mark{done, began.seconds()}), all
		if tell != nil {
			tell(phase, done, all)
		}
	}
	c, report, err := classify.FitTable(ctx, table, s)
	if err != nil {
		return nil, err
	}
	f := &fitted{report: report, whole: began.seconds()}
	// The network that is kept comes first, the networks of the folds after it.
	i := slices.IndexFunc(marks, func(m mark) bool { return m.done*(1+report.Costs.Folds) >= total })
	f.network = marks[i].seconds
	trained := began.seconds()
	scorer := c.NewScorer()
	rows, cols := test.Shape()
	const chunk = 4096
	some := dbn.NewMatrix(chunk, cols)
	for from := 0; from < rows; from += chunk {
		some.Rows = min(chunk, rows-from)
		if err := test.ReadRows(some.Data[:some.Rows*cols], from); err != nil {
			return nil, err
		}
		for i := range some.Rows {
			f.posterior = append(f.posterior, [2]float64(scorer.Posterior(some.Row(i))))
		}
	}
	f.judging = began.seconds() - trained
	return f, nil
}

// costs returns those that the report calls by a name.
func (f *fitted) costs(name string) classify.CostVector {
	i := slices.IndexFunc(f.report.Costs.Choices, func(c classify.Choice) bool { return c.Name == name })
	return f.report.Costs.Choices[i].Costs
}

func (f *fitted) decide(c classify.CostVector, seconds float64) methodAnswer {
	began := startWatch()
	defer began.stop()
	a := methodAnswer{Seconds: seconds}
	for _, p := range f.posterior {
		a.Decision = append(a.Decision, c.Decide(p[:]))
		a.Score = append(a.Score, p[1])
	}
	a.Judging = f.judging + began.seconds()
	return a
}

// gridSteps is the number of values that each cost of a grid search takes.
const gridSteps = 21

// gridCosts returns the costs with the greatest G-mean on posteriors, N×2, among
// the points of a grid on [0,1]², the first of equals.
func gridCosts(posterior []float64, y []int) classify.CostVector {
	best, most := classify.CostVector{0, 0}, -1.0
	for a := range gridSteps {
		for b := range gridSteps {
			c := classify.CostVector{float64(a) / (gridSteps - 1), float64(b) / (gridSteps - 1)}
			m := score.NewConfusion(2)
			for i, label := range y {
				m.Add(label, c.Decide(posterior[2*i:2*i+2]))
			}
			if g := m.GMean(); g > most {
				best, most = c, g
			}
		}
	}
	return best
}

// watch measures what a fit takes: the time of a processor, which other programs
// do not lengthen, where the system tells it for a thread.
type watch float64

// startWatch locks the goroutine to its thread until stop.
func startWatch() watch {
	runtime.LockOSThread()
	return watch(threadSeconds())
}

func (w watch) stop() { runtime.UnlockOSThread() }

func (w watch) seconds() float64 { return threadSeconds() - float64(w) }
