package study

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

func forest(t testing.TB, x dbn.Matrix, y []int, s forestSettings) *fittedForest {
	t.Helper()
	f, err := fitForest(t.Context(), x, y, s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func probabilities(f *fittedForest, x dbn.Matrix) []float64 {
	out := make([]float64, x.Rows)
	for i := range out {
		out[i] = f.Probability(x.Row(i))
	}
	return out
}

// One column that tells the classes apart is one question, half-way between them.
func TestTreeOfOneQuestion(t *testing.T) {
	x := dbn.Matrix{Rows: 4, Cols: 1, Data: []float32{1, 4, 2, 3}}
	g := newGrower(newBins(x, 1), []int{0, 1, 0, 1}, true)
	g.extra = false // all rows, best question
	for i, class := range g.y {
		g.weight[i] = times(1, class)
	}
	g.rng = rand.New(rand.NewPCG(1, 1))
	g.order = []int{0}
	g.grow([]int32{0, 1, 2, 3}, times(2, 0)+times(2, 1))
	want := tree{{2.5, 0, 2}, {0, 0, 0}, {1, 0, 0}}
	if !slices.Equal(g.growing, want) {
		t.Errorf("%v, want %v", g.growing, want)
	}
}

// The question is the one of least impurity: 3 of 4 at the left are of class 0, and both
// at the right of class 1.
func TestTreeGini(t *testing.T) {
	x := dbn.Matrix{Rows: 6, Cols: 1, Data: []float32{1, 2, 3, 4, 5, 6}}
	y := []int{0, 0, 1, 0, 1, 1}
	g := newGrower(newBins(x, 1), y, false)
	var sum uint64
	for i, class := range y {
		g.weight[i] = times(1, class)
		sum += g.weight[i]
		g.counts[i] = g.weight[i]
	}
	// N less the impurity: after 4 rows 10/4 + 2 = 4.5; after 2 rows 2 + 10/4 = 4.5, the first of equals.
	if q := g.best(0, 0, 5, sum); q.bin != 1 || q.value != 2.5 || math.Abs(q.purity-4.5) > 1e-12 {
		t.Errorf("%+v", q)
	}
	g.counts[1] = times(5, 0) // the second row counts five times
	sum += times(4, 0)
	if q := g.best(0, 0, 5, sum); q.bin != 1 || math.Abs(q.purity-(6+10./4)) > 1e-12 {
		t.Errorf("%+v", q)
	}
}

func TestBinColumn(t *testing.T) {
	few := binColumn([]float32{3, 1, 3, 2})
	if !slices.Equal(few.bin, []uint8{2, 0, 2, 1}) || !slices.Equal(few.low, []float32{1, 2, 3}) || !slices.Equal(few.high, few.low) {
		t.Errorf("%+v", few)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	values := make([]float32, 3000)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
		if i%3 == 0 {
			values[i] = 0.25 // a third of the rows has one value
		}
	}
	c := binColumn(values)
	if n := len(c.high); n > mostBins || n < mostBins/2 {
		t.Errorf("%d bins", n)
	}
	for i, v := range values {
		if b := c.bin[i]; v < c.low[b] || v > c.high[b] {
			t.Fatalf("%v is in the bin of %v to %v", v, c.low[b], c.high[b])
		}
	}
	for b := 1; b < len(c.low); b++ {
		if c.low[b] <= c.high[b-1] {
			t.Fatalf("bins %d and %d overlap", b-1, b)
		}
	}
}

// Leaves are pure, so trees that see all rows are right about each of them.
func TestExtraTreesLearnTheirRows(t *testing.T) {
	x, y := clouds(6, 200, 3, 0.5)
	for i, p := range probabilities(forest(t, x, y, forestSettings{Extra: true, Trees: 5, Seed: 1}), x) {
		if p != float64(y[i]) {
			t.Fatalf("row %d of class %d: %v", i, y[i], p)
		}
	}
}

// The order of rows makes no difference to extra trees, and equal seeds give equal forests
// for any number of workers.
func TestForestRepeats(t *testing.T) {
	x, y := clouds(7, 150, 4, 1)
	test, _ := clouds(8, 100, 4, 1)
	for _, extra := range []bool{false, true} {
		s := forestSettings{Extra: extra, Seed: 3, Trees: 20}
		a := probabilities(forest(t, x, y, s), test)
		s.Workers = 4
		if b := probabilities(forest(t, x, y, s), test); !slices.Equal(a, b) {
			t.Errorf("extra %t: four workers give other trees", extra)
		}
		s.Seed = 4
		if b := probabilities(forest(t, x, y, s), test); slices.Equal(a, b) {
			t.Errorf("extra %t: another seed gives the same trees", extra)
		}
		order := rand.New(rand.NewPCG(9, 9)).Perm(x.Rows)
		s.Seed = 3
		if b := probabilities(forest(t, rowsOf(x, order), pick(y, order), s), test); extra && !slices.Equal(a, b) {
			t.Error("extra trees depend on the order of rows")
		}
	}
}

// A random forest asks for the order of values only, so a map that keeps the order changes
// nothing for rows that it has seen.
func TestRandomForestIgnoresScale(t *testing.T) {
	x, y := clouds(10, 600, 4, 1) // more rows than bins
	mapped := dbn.NewMatrix(x.Rows, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			switch j {
			case 0:
				mapped.Row(i)[j] = 1024 * v
			case 1:
				mapped.Row(i)[j] = float32(math.Exp(float64(v)))
			case 2:
				mapped.Row(i)[j] = v * v * v
			default:
				mapped.Row(i)[j] = v
			}
		}
	}
	s := forestSettings{Seed: 1, Trees: 20}
	if a, b := probabilities(forest(t, x, y, s), x), probabilities(forest(t, mapped, y, s), mapped); !slices.Equal(a, b) {
		t.Error("other scales give other probabilities")
	}
}

// Probabilities are in [0, 1], for rows far from all that was seen too, and constant columns
// give the share of class 1.
func TestForestBounds(t *testing.T) {
	x, y := clouds(11, 90, 3, 1)
	far, _ := clouds(12, 50, 3, 1000)
	for _, extra := range []bool{false, true} {
		f := forest(t, x, y, forestSettings{Extra: extra, Seed: 1, Trees: 10})
		for _, p := range slices.Concat(probabilities(f, x), probabilities(f, far)) {
			if !(p >= 0 && p <= 1) {
				t.Fatalf("extra %t: probability %v", extra, p)
			}
		}
		constant := forest(t, dbn.NewMatrix(90, 3), y, forestSettings{Extra: extra, Seed: 1, Trees: 200})
		if p, want := constant.Probability(make([]float32, 3)), float64(counts(y)[1])/90; math.Abs(p-want) > 0.02 {
			t.Errorf("extra %t: %v of constant columns, want %v", extra, p, want)
		}
	}
}

// Thresholds of neighbours in float32 still part them.
func TestForestOfNeighbours(t *testing.T) {
	a := float32(16777216)
	x := dbn.Matrix{Rows: 4, Cols: 1, Data: []float32{a, math.Nextafter32(a, 2*a), a, math.Nextafter32(a, 2*a)}}
	y := []int{0, 1, 0, 1}
	for seed := range uint64(20) {
		f := forest(t, x, y, forestSettings{Extra: true, Seed: seed, Trees: 3})
		for i, p := range probabilities(f, x) {
			if p != float64(y[i]) {
				t.Fatalf("seed %d: row %d of class %d: %v", seed, i, y[i], p)
			}
		}
	}
}

// Time and memory of 100,000 rows of 700 columns, of noise, which makes the deepest trees:
// go test ./internal/train/study -run '^$' -bench Forest -benchtime 1x.
func BenchmarkForest(b *testing.B) {
	x, y := clouds(13, 100_000, 700, 0.2)
	for b.Loop() {
		forest(b, x, y, forestSettings{Seed: 1, Trees: 10, Workers: 2})
	}
}

func pick(y, rows []int) []int {
	out := make([]int, len(rows))
	for n, i := range rows {
		out[n] = y[i]
	}
	return out
}

func rowsOf(x dbn.Matrix, rows []int) dbn.Matrix {
	out := dbn.NewMatrix(len(rows), x.Cols)
	for n, i := range rows {
		copy(out.Row(n), x.Row(i))
	}
	return out
}
