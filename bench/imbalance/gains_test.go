package imbalance

import (
	"math"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// levelled is a set of four tools, of which d is held out. In column 0 the healthy rows of a, b and
// c have the levels 1, e and e²: σ is 1. In column 1 they have the same level: σ is 0. Faulty rows
// would change both.
func levelled() *Set {
	s := &Set{Name: "levelled", X: dbn.Matrix{Cols: 2}, Copies: 3}
	for k, tool := range []string{"b", "a", "d", "c"} {
		level := float32(math.Exp([]float64{1, 0, 9, 2}[k]))
		s.X.Data = append(s.X.Data, level, 2, -level, -2, 50*level, 0.25*level)
		for i := range 3 {
			s.Y, s.Groups = append(s.Y, i/2), append(s.Groups, tool)
		}
		s.X.Rows += 3
	}
	s.Folds = []classify.Fold{{Train: []int{0, 1, 2, 3, 4, 5, 9, 10, 11}, Test: []int{6, 7, 8}}}
	return s
}

// The rows of a tool's copy are its rows times the gains that were drawn. The tools held out
// have no gains, and their levels do not count.
func TestCopies(t *testing.T) {
	s := levelled()
	given := slices.Clone(s.X.Data)
	task := s.TaskOf(0, 0)
	if !slices.Equal(s.X.Data, given) || !slices.Equal(task.Test.Data, given[12:18]) {
		t.Errorf("rows of the set or of the test part changed: %v, %v", s.X.Data, task.Test.Data)
	}
	const rows = 9
	if task.X.Rows != 4*rows || len(task.X.Data) != 2*4*rows || len(task.Y) != 4*rows || len(task.Groups) != 4*rows {
		t.Fatalf("%d rows, %d values, %d labels, %d groups", task.X.Rows, len(task.X.Data), len(task.Y), len(task.Groups))
	}
	rng := newRand(seedOf("gains", task.Seed))
	for n := 1; n <= s.Copies; n++ {
		want := make(map[string]float64) // the gain of column 0
		for _, tool := range []string{"a", "b", "c"} {
			want[tool] = math.Exp(1 * rng.NormFloat64())
			rng.NormFloat64() // of column 1
		}
		ratio := make(map[string]float64) // geometric mean
		for i := range rows {
			x, copied := task.X.Row(i), task.X.Row(n*rows+i)
			if task.Y[n*rows+i] != task.Y[i] || task.Groups[n*rows+i] != task.Groups[i] || copied[1] != x[1] {
				t.Errorf("copy %d of row %d: %v of %v, class %d, %s", n, i, copied, x, task.Y[n*rows+i], task.Groups[n*rows+i])
			}
			ratio[task.Groups[i]] += math.Log(float64(copied[0]/x[0])) / 3
		}
		for tool, g := range want {
			if got := math.Exp(ratio[tool]); math.Abs(got/g-1) > 1e-5 {
				t.Errorf("copy %d of %s: gain %v, want %v", n, tool, got, g)
			}
		}
	}
	if again := s.TaskOf(0, 0); !slices.Equal(again.X.Data, task.X.Data) {
		t.Error("the same trial has other gains")
	}
	if other := s.TaskOf(1, 0); slices.Equal(other.X.Data, task.X.Data) {
		t.Error("another trial has the same gains")
	}
	for i := 12; i < 18; i++ {
		s.X.Data[i] *= 1000
	}
	if held := s.TaskOf(0, 0); !slices.Equal(held.X.Data, task.X.Data) {
		t.Error("the level of a tool held out changes gains")
	}
}

// Of many gains in logs the mean is 0 and the standard deviation is the spread between tools.
func TestGainsAreDrawnFromSpread(t *testing.T) {
	s := levelled()
	s.Copies = 2000
	task := s.TaskOf(0, 0)
	var sum, square float64
	n := 3 * s.Copies
	for i := 9; i < task.X.Rows; i += 3 {
		g := math.Log(float64(task.X.Row(i)[0] / task.X.Row(i % 9)[0]))
		sum, square = sum+g, square+g*g
	}
	if mean, sd := sum/float64(n), math.Sqrt(square/float64(n)); math.Abs(mean) > 0.05 || math.Abs(sd-1) > 0.04 {
		t.Errorf("log gains of mean %v and deviation %v, want 0 and 1", mean, sd)
	}
}

// Of every group the first row and each n-th after it are trained on; all rows held out are judged.
func TestEvery(t *testing.T) {
	s := &Set{X: dbn.NewMatrix(8, 1), Y: make([]int, 8), Groups: []string{"a", "a", "b", "a", "b", "b", "c", "c"}, Every: 2,
		Folds: []classify.Fold{{Train: []int{0, 1, 2, 3, 4, 5}, Test: []int{6, 7}}}}
	if got := s.trained(0); !slices.Equal(got, []int{0, 2, 3, 5}) {
		t.Errorf("rows %v are trained on", got)
	}
	if task := s.TaskOf(0, 0); task.X.Rows != 4 || !slices.Equal(task.Groups, []string{"a", "b", "a", "b"}) || task.Test.Rows != 2 {
		t.Errorf("%+v", task)
	}
	if all := s.Folds[0].Train; !slices.Equal(all, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("the fold has become %v", all)
	}
}
