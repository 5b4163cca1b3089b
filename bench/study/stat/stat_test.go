package stat

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// near reports whether a is b but for rounding.
func near(a, b, tolerance float64) bool {
	return a == b || math.Abs(a-b) <= tolerance*math.Abs(b)
}

// testdata/scipy.json is made by bench/peers/study/stat.py.
func TestAgainstSciPy(t *testing.T) {
	data, err := os.ReadFile("testdata/scipy.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Pairs []struct {
			Name                                     string
			X, Y                                     []float64
			Pairs                                    int
			Exact                                    bool
			Plus, Greater, Biserial, Cliff, Spearman float64
			TwoSided                                 float64 `json:"two_sided"`
		}
		Tables []struct {
			Name               string
			Scores             [][]float64
			Ranks              []float64
			ChiSquare          float64 `json:"chi_square"`
			P, F               float64
			FP                 float64 `json:"f_p"`
			CriticalDifference float64 `json:"critical_difference"`
		}
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Pairs) < 5 || len(want.Tables) < 3 {
		t.Fatalf("%d pairs and %d tables", len(want.Pairs), len(want.Tables))
	}
	for _, tc := range want.Pairs {
		differs, greater := SignedRank(tc.X, tc.Y, Differs), SignedRank(tc.X, tc.Y, Greater)
		if differs.N != tc.Pairs || differs.Exact != tc.Exact {
			t.Errorf("%s: %d pairs, exact %v, want %d, %v", tc.Name, differs.N, differs.Exact, tc.Pairs, tc.Exact)
		}
		for what, v := range map[string][2]float64{
			"sum of ranks": {differs.Plus, tc.Plus},
			"two-sided p":  {differs.P, tc.TwoSided},
			"p of greater": {greater.P, tc.Greater},
			"biserial":     {differs.Biserial(), tc.Biserial},
			"Cliff":        {Cliff(tc.X, tc.Y), tc.Cliff},
			"Spearman":     {Spearman(tc.X, tc.Y), tc.Spearman},
		} {
			if !near(v[0], v[1], 1e-9) {
				t.Errorf("%s: %s %v, SciPy has %v", tc.Name, what, v[0], v[1])
			}
		}
	}
	for _, tc := range want.Tables {
		f := NewFriedman(tc.Scores)
		for j := range f.Ranks {
			if !near(f.Ranks[j], tc.Ranks[j], 1e-12) {
				t.Errorf("%s: ranks %v, SciPy has %v", tc.Name, f.Ranks, tc.Ranks)
				break
			}
		}
		for what, v := range map[string][2]float64{
			"chi-square":          {f.ChiSquare, tc.ChiSquare},
			"p":                   {f.P, tc.P},
			"F":                   {f.F, tc.F},
			"p of F":              {f.FP, tc.FP},
			"critical difference": {f.CriticalDifference(0.05), tc.CriticalDifference},
		} {
			if !near(v[0], v[1], 1e-7) {
				t.Errorf("%s: %s %v, SciPy has %v", tc.Name, what, v[0], v[1])
			}
		}
	}
}

// The example of scipy.stats.wilcoxon: heights of cross- and self-fertilized
// corn, from C. Darwin by way of R. Fisher.
func TestSignedRankOfDarwin(t *testing.T) {
	d := []float64{6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}
	w := SignedRank(d, make([]float64, len(d)), Differs)
	if w.Minus != 24 || w.P != 0.041259765625 || !w.Exact {
		t.Errorf("%+v, want 24 and p = 0.041259765625", w)
	}
}

// Decimal numbers with equal differences are ties, though their float64s differ.
func TestTiesOfDecimals(t *testing.T) {
	w := SignedRank([]float64{0.9, 0.8, 0.7, 0.1 + 0.2}, []float64{0.8, 0.7, 0.8, 0.3}, Differs)
	if w.N != 3 || w.Exact || w.Plus != 4 || w.Minus != 2 {
		t.Errorf("%+v, want three tied pairs", w)
	}
}

// The example of Demšar 2006, table 6 and §3.2.2: AUC of C4.5 without and with
// its parameters m, cf and both, on 14 data sets. The third and fourth of the row
// before the last are printed as 0.975 both, with ranks 2 and 3.
var demsar = [][]float64{
	{0.763, 0.768, 0.771, 0.798}, {0.599, 0.591, 0.590, 0.569}, {0.954, 0.971, 0.968, 0.967},
	{0.628, 0.661, 0.654, 0.657}, {0.882, 0.888, 0.886, 0.898}, {0.936, 0.931, 0.916, 0.931},
	{0.661, 0.668, 0.609, 0.685}, {0.583, 0.583, 0.563, 0.625}, {0.775, 0.838, 0.866, 0.875},
	{1.000, 1.000, 1.000, 1.000}, {0.940, 0.962, 0.965, 0.962}, {0.619, 0.666, 0.614, 0.669},
	{0.972, 0.981, 0.9752, 0.9748}, {0.957, 0.978, 0.946, 0.970},
}

func TestDemsar(t *testing.T) {
	f := NewFriedman(demsar)
	for j, want := range []float64{3.143, 2.000, 2.893, 1.964} {
		if math.Abs(f.Ranks[j]-want) > 5e-4 {
			t.Errorf("mean rank %d is %v, published %v", j, f.Ranks[j], want)
		}
	}
	// Published before the correction for ties: a row of 4 (4³−4) and three of 2.
	if chi := f.ChiSquare * (1 - (60+3*6)/(14*60.)); math.Abs(chi-9.28) > 0.005 {
		t.Errorf("chi-square %v, published 9.28", chi)
	}
	if cd := f.CriticalDifference(0.05); math.Abs(cd-1.25) > 0.005 {
		t.Errorf("critical difference %v, published 1.25", cd)
	}
	if cd := f.CriticalDifference(0.10); math.Abs(cd-1.12) > 0.005 {
		t.Errorf("critical difference at 0.10 %v, published 1.12", cd)
	}
	// z of (3.143−2.000)/0.488 and so on, against C4.5 alone.
	p := f.AgainstControl(0)
	if !math.IsNaN(p[0]) {
		t.Errorf("the control against itself: %v", p[0])
	}
	for j, want := range map[int]float64{1: 0.019, 2: 0.609, 3: 0.016} {
		if math.Abs(p[j]-want) > 0.001 {
			t.Errorf("p of method %d is %v, published %v", j, p[j], want)
		}
	}
	holm := Holm(p)
	for j, want := range []float64{1: 3 * p[3], 2: p[2], 3: 3 * p[3]} {
		if j > 0 && !near(holm[j], want, 1e-12) {
			t.Errorf("Holm's p of method %d is %v, want %v", j, holm[j], want)
		}
	}
}

func TestNothingDiffers(t *testing.T) {
	same := [][]float64{{1, 1}, {0.5, 0.5}}
	if f := NewFriedman(same); f.P != 1 || f.FP != 1 {
		t.Errorf("all ties: %+v", f)
	}
	if f := NewFriedman([][]float64{{1, 0}, {0.5, 0.25}}); !math.IsInf(f.F, 1) || f.FP != 0 {
		t.Errorf("the same order in all rows: %+v", f)
	}
	for _, w := range []wilcoxon{SignedRank(nil, nil, Differs), SignedRank(same[0], same[0], Greater)} {
		if w.P != 1 || w.Biserial() != 0 {
			t.Errorf("no differences: %+v", w)
		}
	}
	if Cliff(nil, same[0]) != 0 {
		t.Error("Cliff's delta of nothing")
	}
}

// Laws of the tests, for any scores.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "pairs")
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 12), func(i int) float64 { return float64(i) / 8 }), n, n)
		x, y := values.Draw(t, "x"), values.Draw(t, "y")
		a, b := SignedRank(x, y, Differs), SignedRank(y, x, Differs)
		if a.P != b.P || a.Plus != b.Minus || a.Biserial() != -b.Biserial() {
			t.Fatalf("exchanging the methods: %+v and %+v", a, b)
		}
		if a.P < 0 || a.P > 1 {
			t.Fatalf("p = %v", a.P)
		}
		if Cliff(x, y) != -Cliff(y, x) {
			t.Fatal("Cliff's delta of exchanged methods")
		}
		win, lose, draw := WinLoseDraw(x, y, 0)
		if win+lose+draw != n || win+lose != a.N {
			t.Fatalf("%d wins, %d losses, %d draws of %d pairs", win, lose, draw, n)
		}
		table := make([][]float64, n)
		for i := range table {
			table[i] = []float64{x[i], y[i], 0.5}
		}
		sum := 0.
		for _, r := range AverageRanks(table) {
			sum += r
		}
		if math.Abs(sum-6) > 1e-9 {
			t.Fatalf("ranks sum to %v", sum)
		}
		p := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "p")
		for i, adjusted := range Holm(p) {
			if adjusted < p[i] || adjusted > 1 {
				t.Fatalf("Holm makes %v of %v", adjusted, p[i])
			}
		}
	})
}

func TestHolmKeepsOrder(t *testing.T) {
	// With three tests: 3×0.01, then 2×0.02, then at least as much.
	got := Holm([]float64{0.02, 0.01, math.NaN(), 0.03})
	want := []float64{0.04, 0.03, math.NaN(), 0.04}
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		x    []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}, {[]float64{7}, 7}} {
		if got := Median(tc.x); got != tc.want {
			t.Errorf("median %v of %v, want %v", got, tc.x, tc.want)
		}
	}
	if got := Median(nil); got == got {
		t.Errorf("median of none %v", got)
	}
}
