package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// Baseline is one of the simple methods that an ECS-DBN is compared with: a threshold on
// one column, logistic regression, random forest and extra trees, for two classes.
//
// It gets the chances that the product gives its network: missing values are
// replaced and columns standardised in the same way, columns have the same weights, the
// same rules add and leave out rows where few tools are worn, and the same rule chooses costs on
// rows that were held out by tool. See [Baseline.Judge].
type Baseline string

// The methods, the simplest first.
const (
	OneColumn          Baseline = "threshold on one column"
	LogisticRegression Baseline = "logistic regression"
	RandomForest       Baseline = "random forest"
	ExtraTrees         Baseline = "extra trees"
)

// linear reports whether the method is a logistic regression, on all columns or on one.
func (m Baseline) linear() bool { return m == OneColumn || m == LogisticRegression }

// Task is what a method is asked: to learn from labelled rows, and to decide others.
type Task struct {
	X      dbn.Matrix // NaN is a missing value
	Y      []int      // 0 or 1
	Groups []string   // tool of each row, whose rows stay together in folds; or nil
	Test   dbn.Matrix

	// Weights say by how much each column counts, from 0 on. Columns of weight 0 are left
	// out; trees only ask which these are, and a threshold on one column which is the greatest.
	// Nil: all count alike.
	Weights []float64

	// Of the rows: whether the rows of a group are in the order of time, and how worn each is, in
	// limits, or nil; and rows without a class. They matter as they do to networks, see
	// [classify.FitTable].
	Ordered    bool
	Wear       []float64
	Unlabelled classify.Unlabelled // in memory; its After is not looked at

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
func (a *Answer) Decide() []int { return ByRow(a.Posterior, 2, a.Costs.Decide) }

// Scores returns how much speaks for class 1 in each row, see [classify.CostVector.Score].
func (a *Answer) Scores() []float64 { return ByRow(a.Posterior, 2, a.Costs.Score) }

// ByRow returns what a rule makes of the posteriors of each row.
func ByRow[T any](posterior []float64, classes int, rule func([]float64) T) []T {
	out := make([]T, 0, len(posterior)/classes)
	for p := range slices.Chunk(posterior, classes) {
		out = append(out, rule(p))
	}
	return out
}

// defaultFolds is how many folds costs are chosen on, as pkg/classify has it.
const defaultFolds = 10

// strength is C of logistic regressions, on one column and on several; fewStrength of those on
// several where two tools or fewer are worn, where networks' weights decay ten times as fast too.
// They were chosen on splits of the nine turning tools, as the decays of networks were, by the G-mean:
//
//	C                        0.03   0.1    0.3    1      3      10     30
//	six of nine tools                      0.973  0.974  0.976  0.976  0.974   (with two worn tools half-way)
//	one labelled worn tool   0.932  0.948  0.935  0.918  0.902
//	two                      0.959  0.962  0.961  0.958  0.957
//	one column, six of nine                0.963  0.966  0.967  0.966  0.967
//	one column, one labelled               0.927  0.955  0.967  0.961  0.945
const (
	strength    = 3
	fewStrength = 0.1
)

// Judge fits the method to the task's rows and says what it makes of the test rows.
//
// It learns from the rows that a network is fine-tuned on, see [classify.Taught]: of few tools
// without the most worn rows, with rows where wear jumps over the limit, and with the first rows of
// tools without a class as healthy ones. Logistic regression then has a stronger penalty.
//
// Costs are chosen by [classify.ChooseCosts] on the posteriors of rows that fits of other
// folds held out: by group if both classes are in two groups or more; of forests at the temperature
// of the least cross-entropy if they are in three. A logistic regression is not too sure of itself as
// networks are: with a temperature it did worse, 0.967 instead of 0.975 on six of nine turning tools.
// With groups, of which one has a class to itself, nothing can be held out, and costs are the
// inverse prior; of logistic regressions also where two tools are worn, with which networks go half-way
// to it (0.972 instead of 0.962 with two labelled turning tools, on one column 0.971 instead of 0.966).
// Encoder, weights and the choice of one column are of all training rows, also for these folds.
func (m Baseline) Judge(ctx context.Context, t Task) (*Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := m.learner(&t)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	all := make([]int, len(t.Y))
	for i := range all {
		all[i] = i
	}
	posterior, err := l.posterior(ctx, all, t.Test)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(t.Seed, 0x6261736566)) // "basef"
	folds, calibrate := t.folds(rng)
	if folds == nil || m.linear() && l.taught.Few && !t.Costs.Metric.PairOnly() {
		return &Answer{posterior, classify.InversePrior(counts(t.Y))}, nil
	}
	held := make([]float64, 2*len(t.Y))
	for _, f := range folds {
		p, err := l.posterior(ctx, f.Train, classify.Part(t.X, f.Test).(dbn.Matrix))
		if err != nil {
			return nil, err
		}
		for n, i := range f.Test {
			copy(held[2*i:], p[2*n:2*n+2])
		}
	}
	if calibrate && !m.linear() && !t.Costs.Uncalibrated {
		warmth := classify.Temperature(held, t.Y, 2)
		temper(held, warmth, 0)
		temper(posterior, warmth, 0)
	}
	t.Costs.JADE.Generations, t.Costs.JADE.Initial = 1, nil // of two classes the optimum is found without it
	costs, _, err := classify.ChooseCosts(ctx, held, t.Y, 2, t.Costs)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return &Answer{posterior, costs}, nil
}

// learner fits a method to parts of a task's rows.
type learner struct {
	method  Baseline
	task    *Task
	taught  *classify.Taught
	encoder *classify.Encoder
	columns []int     // that count
	scales  []float64 // what each of them is multiplied by
}

// learner returns the method's learner for a task, with encoder, columns and scales.
func (m Baseline) learner(t *Task) (*learner, error) {
	seen := t.X
	if more, ok := t.Unlabelled.X.(dbn.Matrix); ok {
		seen = dbn.Matrix{Rows: seen.Rows + more.Rows, Cols: seen.Cols, Data: slices.Concat(seen.Data, more.Data)}
	}
	encoder, err := classify.FitEncoder(seen, classify.Standard, 0)
	if err != nil {
		return nil, err
	}
	table := &classify.Table{X: t.X, Y: t.Y, Groups: t.Groups, Ordered: t.Ordered, Wear: t.Wear, Unlabelled: t.Unlabelled}
	l := &learner{method: m, task: t, taught: table.Taught(t.Costs), encoder: encoder}
	l.columns, l.scales = m.columns(t.Weights, t.X.Cols)
	if m == OneColumn {
		l.keepOne()
	}
	return l, nil
}

// columns returns the columns that count, and what each is multiplied by.
func (m Baseline) columns(weights []float64, n int) (columns []int, scales []float64) {
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

// keepOne keeps the column of the greatest weight. Of columns of equal weight, such as where none are
// weighed, it is the one that tells the training rows' classes apart best, either way up.
func (l *learner) keepOne() {
	if len(l.columns) == 0 {
		return
	}
	faulty := make([]bool, len(l.task.Y))
	for i, class := range l.task.Y {
		faulty[i] = class == 1
	}
	x := prepare(l.encoder, l.task.X, l.columns, l.scales)
	weight := func(k int) float64 {
		if l.task.Weights == nil {
			return 1
		}
		return l.task.Weights[l.columns[k]]
	}
	best, most, apart := 0, math.Inf(-1), math.Inf(-1)
	values := make([]float64, x.Rows)
	for k := range l.columns {
		if weight(k) < most {
			continue
		}
		for i := range values {
			values[i] = float64(x.Row(i)[k])
		}
		if a := math.Abs(score.AUC(values, faulty) - 0.5); weight(k) > most || a > apart {
			best, most, apart = k, weight(k), a
		}
	}
	l.columns, l.scales = l.columns[best:best+1], l.scales[best:best+1]
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

// posterior returns N×2 posteriors of the test rows by a fit to some rows of the task.
func (l *learner) posterior(ctx context.Context, some []int, test dbn.Matrix) ([]float64, error) {
	rows, y, shift, err := l.taught.Rows(some)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	x, test := prepare(l.encoder, rows, l.columns, l.scales), prepare(l.encoder, test, l.columns, l.scales)
	var probability func(row []float32) float64
	if l.method.linear() {
		s := dbn.LogisticSettings{C: strength}
		if l.taught.Few && l.method == LogisticRegression {
			s.C = fewStrength
		}
		fit, err := dbn.FitLogistic(ctx, x, y, s)
		if err != nil {
			return nil, err
		}
		probability = fit.Probability
	} else {
		f, err := fitForest(ctx, x, y, forestSettings{Extra: l.method == ExtraTrees, Seed: l.task.Seed, Workers: l.task.Workers})
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
	if shift != 0 {
		temper(out, 1, shift)
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

// temper divides the log odds of posteriors by a temperature and adds to them, in place.
func temper(posterior []float64, warmth, shift float64) {
	for i := 0; i < len(posterior); i += 2 {
		odds := (math.Log(posterior[i+1])-math.Log(posterior[i]))/warmth + shift
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

// JudgeFolds lets methods judge the test rows of each of n folds, on some goroutines. Of the
// answers the first index is the fold, the second the method. Done is called after each fold,
// by one goroutine at a time.
func JudgeFolds(ctx context.Context, methods []Baseline, n int, task func(fold int) Task, workers int, done func()) ([][]*Answer, error) {
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
