package study

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

var methods = []Baseline{OneColumn, LogisticRegression, RandomForest, ExtraTrees}

// clouds returns rows of two classes around centres that are apart in the first two columns.
func clouds(seed uint64, rows, columns int, apart float64) (dbn.Matrix, []int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y := dbn.NewMatrix(rows, columns), make([]int, rows)
	for i := range y {
		if i%4 == 0 {
			y[i] = 1
		}
		for j := range columns {
			x.Row(i)[j] = float32(rng.NormFloat64())
			if j < 2 {
				x.Row(i)[j] += float32(apart * float64(y[i]))
			}
		}
	}
	return x, y
}

func taskOf(apart float64, groups bool) (Task, []int) {
	x, y := clouds(1, 240, 5, apart)
	test, truth := clouds(2, 240, 5, apart)
	t := Task{X: x, Y: y, Test: test, Seed: 1}
	if groups {
		for i := range y {
			t.Groups = append(t.Groups, string(rune('a'+i/40)))
		}
	}
	return t, truth
}

func gmean(truth, decided []int) float64 {
	m := score.NewConfusion(2)
	for i, class := range truth {
		m.Add(class, decided[i])
	}
	return m.GMean()
}

func judge(t *testing.T, m Baseline, task Task) *Answer {
	t.Helper()
	a, err := m.Judge(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(a.Posterior); i += 2 {
		if p := a.Posterior[i : i+2]; !(p[0] >= 0 && p[1] >= 0 && math.Abs(p[0]+p[1]-1) < 1e-12) {
			t.Fatalf("%s: row %d: posterior %v", m, i/2, p)
		}
	}
	return a
}

// All methods find classes that are far apart, by row and by group, and none finds what is
// not there.
func TestJudge(t *testing.T) {
	for _, groups := range []bool{false, true} {
		for _, m := range methods {
			task, truth := taskOf(3, groups)
			least := 0.93
			if m == OneColumn {
				least = 0.87 // Φ(1.5) = 0.93 at best
			}
			if g := gmean(truth, judge(t, m, task).Decide()); g < least {
				t.Errorf("%s, groups %t: G-mean %.3f of classes far apart", m, groups, g)
			}
			task, truth = taskOf(0, groups)
			if g := gmean(truth, judge(t, m, task).Decide()); g > 0.62 {
				t.Errorf("%s, groups %t: G-mean %.3f of noise", m, groups, g)
			}
		}
	}
}

// Decisions agree with scores, and equal tasks give equal answers for any number of workers.
func TestJudgeRepeats(t *testing.T) {
	for _, m := range methods {
		task, _ := taskOf(1, true)
		a := judge(t, m, task)
		task.Workers = 3
		b := judge(t, m, task)
		if !slices.Equal(a.Posterior, b.Posterior) || !slices.Equal(a.Costs, b.Costs) {
			t.Errorf("%s: three workers give another answer than one", m)
		}
		decided := a.Decide()
		for i, s := range a.Scores() {
			if (s >= 0.5) != (decided[i] == 1) {
				t.Errorf("%s: row %d has score %v and class %d", m, i, s, decided[i])
			}
		}
	}
}

// leastLoss returns the w and b that minimise w²/2 + c·Σ ln(1 + exp(−(2y−1)·(b + w·x))), by nested search: b
// is where the sum of the posteriors is the number of rows of class 1, and w where a golden section ends.
func leastLoss(x []float64, y []int, c float64) (w, b float64) {
	sigma := func(v float64) float64 { return 0.5 * (1 + math.Tanh(v/2)) }
	biasOf := func(w float64) float64 {
		low, high := -1e3, 1e3
		for range 200 {
			middle, excess := (low+high)/2, 0.0
			for i, v := range x {
				excess += sigma(w*v+middle) - float64(y[i])
			}
			if excess > 0 {
				high = middle
			} else {
				low = middle
			}
		}
		return (low + high) / 2
	}
	loss := func(w float64) float64 {
		b, sum := biasOf(w), w*w/2
		for i, v := range x {
			p := sigma(w*v + b)
			if y[i] == 0 {
				p = 1 - p
			}
			sum -= c * math.Log(p)
		}
		return sum
	}
	low, high, golden := -30.0, 30.0, (math.Sqrt(5)-1)/2
	for range 100 {
		if l, h := high-golden*(high-low), low+golden*(high-low); loss(l) < loss(h) {
			high = h
		} else {
			low = l
		}
	}
	return (low + high) / 2, biasOf((low + high) / 2)
}

// chipped is a task with one worn tool that goes from 0.8 to 1.3 limits at once and then beyond 1.5, one that does not
// wear out, and one without a class.
func chipped() Task {
	t := Task{
		X: dbn.Matrix{Rows: 9, Cols: 1, Data: []float32{0, 2, 3, 8, 9, 30, 1, 2, 4}},
		Y: []int{0, 0, 0, 1, 1, 1, 0, 0, 0}, Groups: []string{"a", "a", "a", "a", "a", "a", "b", "b", "b"},
		Ordered: true, Wear: []float64{0.1, 0.5, 0.8, 1.3, 1.4, 1.8, 0.1, 0.2, 0.3},
		Test: dbn.Matrix{Rows: 5, Cols: 1, Data: []float32{-1, 3, 4.5, 6, 40}},
	}
	t.Unlabelled = classify.Unlabelled{X: dbn.Matrix{Rows: 8, Cols: 1, Data: []float32{1, 3, 3, 4, 5, 6, 7, 8}}, Groups: slices.Repeat([]string{"c"}, 8)}
	return t
}

// With one worn tool both linear methods are, on one column, the optimum of their loss on the rows that a
// network would learn from: without the one at 1.8 limits, with nine between 0.8 and 1.3 limits, and with the first two
// that have no class. Posteriors are for the rows that have one.
func TestJudgeOfOneWornTool(t *testing.T) {
	task := chipped()
	x, y := []float64{0, 2, 3, 8, 9, 1, 2, 4, 1, 3}, []int{0, 0, 0, 1, 1, 0, 0, 0, 0, 0}
	for n := range 9 {
		class := 0
		if n >= 3 {
			class = 1 // from 1.0 limits on
		}
		x, y = append(x, 3.5+0.5*float64(n)), append(y, class)
	}
	var mean, square float64 // of all rows, with a class and without
	seen := slices.Concat(task.X.Data, task.Unlabelled.X.(dbn.Matrix).Data)
	for _, v := range seen {
		mean += float64(v) / float64(len(seen))
	}
	for _, v := range seen {
		square += (float64(v) - mean) * (float64(v) - mean) / float64(len(seen))
	}
	encoded := func(v float64) float64 { return min(max((v-mean)/math.Sqrt(square), -5), 5) }
	for i := range x {
		x[i] = encoded(x[i])
	}
	shift := math.Log(3.0/6) - math.Log(8.0/11)
	for m, c := range map[Baseline]float64{OneColumn: 3, LogisticRegression: 0.1} {
		w, b := leastLoss(x, y, c)
		a := judge(t, m, task)
		for i, v := range task.Test.Data {
			if want := 1 / (1 + math.Exp(-(w*encoded(float64(v)) + b + shift))); math.Abs(a.Posterior[2*i+1]-want) > 1e-4 {
				t.Errorf("%s: %v has %v, want %v", m, v, a.Posterior[2*i+1], want)
			}
		}
		if !slices.Equal(a.Costs, classify.InversePrior([]int{6, 3})) {
			t.Errorf("%s: costs %v", m, a.Costs)
		}
	}
}

// With two worn tools linear methods keep to the inverse prior, unless the metric has none, and forests look at
// rows held out, as methods do with three.
func TestJudgeOfTwoWornTools(t *testing.T) {
	for worn := 2; worn <= 3; worn++ {
		task, _ := taskOf(1, true)
		for i, g := range task.Groups {
			if g >= string(rune('a'+worn)) {
				task.Y[i] = 0
			}
		}
		prior := classify.InversePrior(counts(task.Y))
		for _, m := range methods {
			if got, want := slices.Equal(judge(t, m, task).Costs, prior), m.linear() && worn == 2; got != want {
				t.Errorf("%s, %d worn tools: costs are the prior: %t, want %t", m, worn, got, want)
			}
		}
		task.Costs.Metric = score.F1
		if slices.Equal(judge(t, LogisticRegression, task).Costs, prior) {
			t.Errorf("%d worn tools: costs for F1 are the prior", worn)
		}
	}
}

// One column decides by a threshold on it, from which on rows are faulty or up to which they are: the column of the greatest
// weight, or without weights the one that tells the classes apart best.
func TestOneColumn(t *testing.T) {
	for name, tc := range map[string]struct {
		weights []float64
		column  int
		sign    float32
	}{
		"greatest weight": {[]float64{0.2, 0.3, 0.1, 0.3 - 1e-9, 0}, 1, 1},
		"falls":           {[]float64{0.3, 0.2, 0.1, 0, 0}, 0, -1},
		"no weights":      {nil, 0, -1},
		"equal weights":   {[]float64{0, 0.5, 0.5, 0.5, 0.5}, 1, 1},
	} {
		task, truth := taskOf(1.5, true)
		for _, x := range []dbn.Matrix{task.X, task.Test} {
			for i := range x.Rows {
				x.Row(i)[0] *= -4 // both tell the classes apart, the second hidden in noise
				x.Row(i)[1] += x.Row(i)[2] / 2
			}
		}
		task.Weights = tc.weights
		decided := judge(t, OneColumn, task).Decide()
		healthy, faulty := float32(math.Inf(-1)), float32(math.Inf(1))
		for i, class := range decided {
			if v := tc.sign * task.Test.Row(i)[tc.column]; class == 0 {
				healthy = max(healthy, v)
			} else {
				faulty = min(faulty, v)
			}
		}
		if healthy >= faulty {
			t.Errorf("%s: healthy up to %v, faulty from %v on", name, healthy, faulty)
		}
		if g := gmean(truth, decided); g < 0.7 {
			t.Errorf("%s: G-mean %.3f", name, g)
		}
	}
}

// The rare class is found although it is rare: costs are chosen on rows held out.
func TestJudgeRareClass(t *testing.T) {
	for _, m := range methods {
		task, truth := taskOf(2, false)
		rare := 0
		keep := dbn.Matrix{Cols: task.X.Cols}
		var y []int
		for i, class := range task.Y {
			if class == 1 {
				if rare++; rare%4 != 0 {
					continue
				}
			}
			keep.Data, y = append(keep.Data, task.X.Row(i)...), append(y, class)
			keep.Rows++
		}
		task.X, task.Y = keep, y
		if g := gmean(truth, judge(t, m, task).Decide()); g < 0.8 {
			t.Errorf("%s: G-mean %.3f with %d rare rows of %d", m, g, rare/4, len(y))
		}
	}
}

// Columns of weight 0 do not count, missing values and constant columns do no harm.
func TestJudgeColumns(t *testing.T) {
	for _, m := range methods {
		task, truth := taskOf(3, true)
		task.Weights = []float64{1, 0.5, 0, 0, 0}
		a := judge(t, m, task)
		for _, x := range []dbn.Matrix{task.X, task.Test} {
			for i := range x.Rows {
				x.Row(i)[3], x.Row(i)[4] = float32(1000*i), float32(math.NaN())
			}
		}
		if b := judge(t, m, task); !slices.Equal(a.Posterior, b.Posterior) {
			t.Errorf("%s: columns of weight 0 count", m)
		}
		task.Weights = nil
		for i := range task.X.Rows {
			task.X.Row(i)[3] = 7
			if i%5 == 0 {
				task.X.Row(i)[0] = float32(math.NaN())
			}
		}
		if g := gmean(truth, judge(t, m, task).Decide()); g < 0.87 {
			t.Errorf("%s: G-mean %.3f with missing values and constant columns", m, g)
		}
		task.Weights = make([]float64, 5)
		judge(t, m, task) // with nothing to go by it must not fail
	}
}

// Where one group has a class to itself it cannot be held out: costs are the inverse prior.
func TestJudgeOneGroupOfAClass(t *testing.T) {
	task, truth := taskOf(3, true)
	for i := range task.Y {
		if task.Groups[i] != "a" {
			task.Y[i] = 0
			for j := range 2 {
				task.X.Row(i)[j] = float32(math.Mod(float64(task.X.Row(i)[j]), 1))
			}
		}
	}
	n := counts(task.Y)
	for _, m := range methods {
		a := judge(t, m, task)
		if !slices.Equal(a.Costs, classify.InversePrior(n)) {
			t.Errorf("%s: costs %v", m, a.Costs)
		}
		if g := gmean(truth, a.Decide()); g < 0.8 {
			t.Errorf("%s: G-mean %.3f", m, g)
		}
	}
}

func TestErrors(t *testing.T) {
	x, y := clouds(1, 20, 2, 1)
	bad := dbn.Matrix{Rows: 20, Cols: 2, Data: slices.Clone(x.Data)}
	bad.Data[7] = float32(math.NaN())
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		x    dbn.Matrix
		y    []int
		want error
	}{
		"one class": {t.Context(), x, make([]int, 20), dbn.ErrOneClass},
		"NaN":       {t.Context(), bad, y, dbn.ErrNotFinite},
		"stopped":   {stopped, x, y, context.Canceled},
	} {
		if _, err := fitForest(tc.ctx, tc.x, tc.y, forestSettings{}); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	infinite, _ := taskOf(1, false)
	infinite.X.Data[3] = float32(math.Inf(1))
	if _, err := RandomForest.Judge(t.Context(), infinite); !errors.Is(err, classify.ErrNotFinite) {
		t.Errorf("an infinite value: %v", err)
	}
}
