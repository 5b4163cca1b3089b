package baseline

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/logistic"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

var methods = []Method{LogisticRegression, RandomForest, ExtraTrees}

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

func judge(t *testing.T, m Method, task Task) *Answer {
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
			if g := gmean(truth, judge(t, m, task).Decide()); g < 0.93 {
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
		if g := gmean(truth, judge(t, m, task).Decide()); g < 0.9 {
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
		"one class": {t.Context(), x, make([]int, 20), logistic.ErrOneClass},
		"NaN":       {t.Context(), bad, y, logistic.ErrNotFinite},
		"stopped":   {stopped, x, y, context.Canceled},
	} {
		if _, err := FitForest(tc.ctx, tc.x, tc.y, ForestSettings{}); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	infinite, _ := taskOf(1, false)
	infinite.X.Data[3] = float32(math.Inf(1))
	if _, err := RandomForest.Judge(t.Context(), infinite); !errors.Is(err, classify.ErrNotFinite) {
		t.Errorf("an infinite value: %v", err)
	}
}
