package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// draw returns posteriors of n rows of k classes and the classes, with ties and
// certainties among them.
func draw(rng *rand.Rand, n, k int) (posterior []float64, y []int) {
	for range n {
		row, sum := make([]float64, k), 0.0
		for j := range row {
			switch rng.IntN(6) {
			case 0:
				row[j] = float64(rng.IntN(3))
			default:
				row[j] = math.Exp(3 * rng.NormFloat64())
			}
			sum += row[j]
		}
		for j := range row {
			if row[j] = float64(float32(row[j] / sum)); sum == 0 {
				row[j] = 1 / float64(k)
			}
		}
		posterior, y = append(posterior, row...), append(y, rng.IntN(k))
	}
	return posterior, y
}

// count is a Tally by its definition, in float64.
func count(posterior []float64, y []int, w []float64) Tally {
	k := len(w)
	t, n := NewTallies(1, k)[0], make([]int, k)
	for i, label := range y {
		best, most, sum := 0, 0.0, 0.0
		for j, p := range posterior[i*k : (i+1)*k] {
			v := w[j] * p
			sum += v
			if v > most {
				best, most = j, v
			}
		}
		n[label]++
		if best == label {
			t.Right[label]++
		}
		if sum > 0 {
			t.Share[label] += w[label] * posterior[i*k+label] / sum
		}
	}
	for j := range n {
		t.Share[j] /= float64(max(n[j], 1))
	}
	return t
}

func oddsOf(posterior []float64, y []int) *SortedOdds {
	var odds [2][]float64
	for i, label := range y {
		odds[label] = append(odds[label], posterior[2*i+1]/posterior[2*i])
	}
	return NewSortedOdds(odds[0], odds[1])
}

func same(t *rapid.T, got, want Tally) {
	if !slices.Equal(got.Right, want.Right) {
		t.Fatalf("right: %v, want %v", got.Right, want.Right)
	}
	for k, s := range want.Share {
		if math.Abs(got.Share[k]-s) > 2e-6 {
			t.Fatalf("shares: %v, want %v", got.Share, want.Share)
		}
	}
}

var weights = rapid.OneOf(rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}), rapid.Float64Range(0.001, 1))

func TestSortedOddsCountAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		posterior, y := draw(rng, rapid.IntRange(1, 300).Draw(t, "n"), 2)
		w := []float64{weights.Draw(t, "w0"), weights.Draw(t, "w1")}
		got := NewTallies(1, 2)[0]
		oddsOf(posterior, y).Count(&got, w[0], w[1], true)
		same(t, got, count(posterior, y, w))
	})
}

func TestPosteriorsCountAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		k := rapid.IntRange(2, 7).Draw(t, "k")
		posterior, y := draw(rng, rapid.IntRange(1, 1200).Draw(t, "n"), k)
		w := make([][]float64, 3)
		for i := range w {
			for range k { // with three bits, products are exact in float32
				w[i] = append(w[i], float64(rng.IntN(9))/8)
			}
		}
		got := NewTallies(len(w), k)
		NewPosteriors(k, posterior, y, 0).Count(got, w)
		for i := range w {
			same(t, got[i], count(posterior, y, w[i]))
		}
	})
}

// Best is the best of all cuts, tried one by one, and its whole interval is.
func TestBestIsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		posterior, y := draw(rng, rapid.IntRange(1, 40).Draw(t, "n"), 2)
		p := oddsOf(posterior, y)
		product := func(cut float64) int {
			got := NewTallies(1, 2)[0]
			p.Count(&got, cut, 1, false)
			return got.Right[0] * got.Right[1]
		}
		const limit = 30
		low, high, most := p.Best(limit)
		best := product(math.Exp(-limit))
		for k := range 2 {
			for _, odds := range p.Odds(k) {
				if z := math.Log(odds); z > -limit && z < limit {
					best = max(best, product(odds), product(odds*(1-1e-9)))
				}
			}
		}
		if most != best || !(low < high) {
			t.Fatalf("product %d on [%v, %v], want %d", most, low, high, best)
		}
		if most > 0 && product(math.Exp((low+high)/2)) != most {
			t.Fatalf("the middle of [%v, %v] gives %d, want %d", low, high, product(math.Exp((low+high)/2)), most)
		}
	})
}

// Sorting by digits is sorting, for values of all sizes, of one size and all equal.
func TestSortOdds(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for name, value := range map[string]func() float64{
		"all sizes":    func() float64 { return math.Exp(200 * rng.NormFloat64()) },
		"nearly equal": func() float64 { return 1 + 1e-9*rng.Float64() },
		"few values":   func() float64 { return float64(rng.IntN(5)) },
		"one value":    func() float64 { return math.Inf(1) },
	} {
		x := make([]float64, fewOdds+777)
		for i := range x {
			x[i] = value()
		}
		want := slices.Clone(x)
		slices.Sort(want)
		if !slices.Equal(sortOdds(x), want) {
			t.Errorf("%s: not sorted", name)
		}
	}
}

// A sample has as many rows of each class as asked for, spread over all.
func TestPosteriorsSample(t *testing.T) {
	const n = 10_000
	posterior, y := make([]float64, 2*n), make([]int, n)
	for i := range y {
		posterior[2*i], posterior[2*i+1] = 1-float64(i)/n, float64(i)/n
		if i%100 == 7 {
			y[i] = 1
		}
	}
	r := NewPosteriors(2, posterior, y, 300)
	if got := r.Counts(); got[0] != 300 || got[1] != 100 {
		t.Fatalf("sample of %v, want 300 and all 100", got)
	}
	got := NewTallies(1, 2)
	r.Count(got, [][]float64{{1, 1}})
	if right := got[0].Right[0]; right < 148 || right > 152 {
		t.Errorf("%d of 300 rows lie in the lower half", right)
	}
}

// With more rows than stand for a class, shares are still the mean to 1e-4.
func TestSortedOddsSharesOfManyRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	posterior, y := draw(rng, 30_000, 2)
	want := count(posterior, y, []float64{0.3, 1})
	got := NewTallies(1, 2)[0]
	oddsOf(posterior, y).Count(&got, 0.3, 1, true)
	for k := range 2 {
		if math.Abs(got.Share[k]-want.Share[k]) > 1e-4 {
			t.Errorf("class %d: mean share %v, want %v", k, got.Share[k], want.Share[k])
		}
	}
}

func BenchmarkSort(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := make([]float64, 1<<20)
	for b.Loop() {
		b.StopTimer()
		for i := range x {
			x[i] = math.Exp(3 * rng.NormFloat64())
		}
		b.StartTimer()
		sortOdds(x)
	}
}

// Optima beyond the limit do not hide lesser ones within it.
func TestBestWithinTheLimit(t *testing.T) {
	p := NewSortedOdds([]float64{0, 0, 0}, []float64{math.Exp(-40), 2, 3})
	low, high, product := p.Best(30)
	if product != 6 || low != -30 || math.Abs(high-math.Log(2)) > 1e-12 {
		t.Errorf("product %d on [%v, %v], want 6 on [-30, ln 2]", product, low, high)
	}
}
