// Package baseline has the simple methods that an ECS-DBN is compared with: logistic
// regression, random forest and extra trees, for two classes.
//
// A method gets the chances that the product gives its network: missing values are
// replaced and columns standardised in the same way, columns have the same weights, and the
// same rule chooses costs on rows that were held out by tool. See [Method.Judge].
package baseline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/internal/logistic"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Method is one of the simple methods.
type Method string

// The methods, the simplest first.
const (
	LogisticRegression Method = "logistic regression"
	RandomForest       Method = "random forest"
	ExtraTrees         Method = "extra trees"
)

// Task is what a method is asked: to learn from labelled rows, and to decide others.
type Task struct {
	X      dbn.Matrix // NaN is a missing value
	Y      []int      // 0 or 1
	Groups []string   // tool of each row, whose rows stay together in folds; or nil
	Test   dbn.Matrix

	// Weights say by how much each column counts, from 0 on. Columns of weight 0 are left
	// out; trees only ask which these are. Nil: all count alike.
	Weights []float64

	Costs   classify.CostSettings // how costs are chosen; of its folds only the number counts
	Seed    uint64
	Workers int // goroutines that grow trees; never changes a result
}

// Answer is what a method says of the test rows.
type Answer struct {
	Posterior []float64 // N×2, at the temperature that costs were chosen at
	Costs     classify.CostVector
}

// Decide returns the class decided of each row.
func (a *Answer) Decide() []int {
	out := make([]int, len(a.Posterior)/2)
	for i := range out {
		out[i] = a.Costs.Decide(a.Posterior[2*i : 2*i+2])
	}
	return out
}

// Scores returns how much speaks for class 1 in each row, see [classify.CostVector.Score].
func (a *Answer) Scores() []float64 {
	out := make([]float64, len(a.Posterior)/2)
	for i := range out {
		out[i] = a.Costs.Score(a.Posterior[2*i : 2*i+2])
	}
	return out
}

// defaultFolds is how many folds costs are chosen on, as pkg/classify has it.
const defaultFolds = 5

// Judge fits the method to the task's rows and says what it makes of the test rows.
//
// Costs are chosen by [classify.ChooseCosts] on the posteriors of rows that fits of other
// folds held out: by group if both classes are in two groups or more, at the temperature
// of the least cross-entropy if they are in three. With groups, of which one has a class
// to itself, nothing can be held out, and costs are the inverse prior. Encoder and weights
// are fitted to all training rows, also for these folds.
func (m Method) Judge(ctx context.Context, t Task) (*Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	encoder, err := classify.FitEncoder(t.X, classify.Standard, 0)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	columns, scales := m.columns(t.Weights, t.X.Cols)
	x, test := prepare(encoder, t.X, columns, scales), prepare(encoder, t.Test, columns, scales)
	posterior, err := m.posterior(ctx, x, t.Y, test, &t)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(t.Seed, 0x6261736566)) // "basef"
	folds, calibrate := t.folds(rng)
	if folds == nil {
		return &Answer{posterior, classify.InversePrior(counts(t.Y))}, nil
	}
	held := make([]float64, 2*len(t.Y))
	for _, f := range folds {
		p, err := m.posterior(ctx, rowsOf(x, f.Train), pick(t.Y, f.Train), rowsOf(x, f.Test), &t)
		if err != nil {
			return nil, err
		}
		for n, i := range f.Test {
			copy(held[2*i:], p[2*n:2*n+2])
		}
	}
	if calibrate && !t.Costs.Uncalibrated {
		warmth := classify.Temperature(held, t.Y, 2)
		temper(held, warmth)
		temper(posterior, warmth)
	}
	t.Costs.JADE.Generations, t.Costs.JADE.Initial = 1, nil // of two classes the optimum is found without it
	costs, _, err := classify.ChooseCosts(ctx, held, t.Y, 2, t.Costs)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return &Answer{posterior, costs}, nil
}

// columns returns the columns that count, and what each is multiplied by.
func (m Method) columns(weights []float64, n int) (columns []int, scales []float64) {
	var square float64
	for j := range n {
		w := 1.0
		if weights != nil {
			w = weights[j]
		}
		if w > 0 {
			columns, scales = append(columns, j), append(scales, w)
			square += w * w
		}
	}
	for k := range scales {
		if m != LogisticRegression {
			scales[k] = 1
			continue
		}
		scales[k] *= math.Sqrt(float64(len(scales)) / square) // all together as much as if they counted alike
	}
	return columns, scales
}

// prepare returns some columns of the rows of x, encoded and scaled.
func prepare(e *classify.Encoder, x dbn.Matrix, columns []int, scales []float64) dbn.Matrix {
	out := dbn.NewMatrix(x.Rows, len(columns))
	all := make([]float32, x.Cols)
	for i := range x.Rows {
		e.EncodeTo(all, x.Row(i))
		row := out.Row(i)
		for k, j := range columns {
			row[k] = float32(float64(all[j]) * scales[k])
		}
	}
	return out
}

// posterior returns N×2 posteriors of the test rows by a fit to x.
func (m Method) posterior(ctx context.Context, x dbn.Matrix, y []int, test dbn.Matrix, t *Task) ([]float64, error) {
	var probability func(row []float32) float64
	if m == LogisticRegression {
		l, err := logistic.Fit(ctx, x, y, logistic.Settings{})
		if err != nil {
			return nil, err
		}
		probability = l.Probability
	} else {
		f, err := FitForest(ctx, x, y, ForestSettings{Extra: m == ExtraTrees, Seed: t.Seed, Workers: t.Workers})
		if err != nil {
			return nil, err
		}
		// A forest whose trees agree is not as sure as that.
		least := 0.5 / float64(len(f.trees))
		probability = func(row []float32) float64 { return min(max(f.Probability(row), least), 1-least) }
	}
	out := make([]float64, 2*test.Rows)
	for i := range test.Rows {
		p := probability(test.Row(i))
		out[2*i], out[2*i+1] = 1-p, p
	}
	return out, nil
}

// folds returns the folds that costs are chosen on, or nil if nothing can be held out, and
// whether posteriors are worth calibrating.
func (t *Task) folds(rng *rand.Rand) (folds []classify.Fold, calibrate bool) {
	k := cmp.Or(t.Costs.Folds, defaultFolds)
	if t.Groups == nil {
		if k = min(k, slices.Min(counts(t.Y))); k < 2 {
			return nil, false
		}
		return classify.StratifiedKFold(t.Y, k, rng), true
	}
	var in [2]map[string]bool
	for class := range in {
		in[class] = make(map[string]bool)
	}
	for i, class := range t.Y {
		in[class][t.Groups[i]] = true
	}
	least := min(len(in[0]), len(in[1]))
	if least < 2 {
		return nil, false
	}
	return classify.GroupKFold(t.Y, t.Groups, k, rng), least > 2
}

// temper divides the log odds of posteriors by a temperature, in place.
func temper(posterior []float64, warmth float64) {
	for i := 0; i < len(posterior); i += 2 {
		odds := (math.Log(posterior[i+1]) - math.Log(posterior[i])) / warmth
		p := 1 / (1 + math.Exp(-odds))
		posterior[i], posterior[i+1] = 1-p, p
	}
}

func counts(y []int) []int {
	n := make([]int, 2)
	for _, class := range y {
		n[class]++
	}
	return n
}

func rowsOf(x dbn.Matrix, rows []int) dbn.Matrix {
	out := dbn.NewMatrix(len(rows), x.Cols)
	for n, i := range rows {
		copy(out.Row(n), x.Row(i))
	}
	return out
}

func pick(y, rows []int) []int {
	out := make([]int, len(rows))
	for n, i := range rows {
		out[n] = y[i]
	}
	return out
}

// JudgeFolds lets methods judge the test rows of each of n folds, on some goroutines. Of the
// answers the first index is the fold, the second the method. Done is called after each fold,
// by one goroutine at a time.
func JudgeFolds(ctx context.Context, methods []Method, n int, task func(fold int) Task, workers int, done func()) ([][]*Answer, error) {
	answers, errs := make([][]*Answer, n), make([]error, n)
	var mu sync.Mutex
	share(n, max(1, workers), func() func(int) {
		return func(f int) {
			t := task(f)
			for _, m := range methods {
				a, err := m.Judge(ctx, t)
				if err != nil {
					errs[f] = fmt.Errorf("%s, fold %d of %d: %w", m, f+1, n, err)
					return
				}
				answers[f] = append(answers[f], a)
			}
			mu.Lock()
			defer mu.Unlock()
			done()
		}
	})
	return answers, errors.Join(errs...)
}
