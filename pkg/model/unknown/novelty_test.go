package unknown

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// correlated returns rows of p features that three hidden causes move, in groups
// with an offset each.
func correlated(rng *rand.Rand, rows, p, tools int) (dbn.Matrix, []string) {
	x := dbn.NewMatrix(rows, p)
	var groups []string
	mix := make([]float64, 3*p)
	for i := range mix {
		mix[i] = math.Sin(float64(3*i + 1))
	}
	offset := make([]float64, 3*tools)
	for i := range offset {
		offset[i] = 0.3 * rng.NormFloat64()
	}
	for i := range rows {
		tool := i * tools / rows
		groups = append(groups, fmt.Sprint("T", tool))
		for c := range 3 {
			v := rng.NormFloat64() + offset[3*tool+c]
			for j := range p {
				x.Row(i)[j] += float32(v * mix[c*p+j])
			}
		}
		for j := range p {
			x.Row(i)[j] += float32(0.1 * rng.NormFloat64())
		}
	}
	return x, groups
}

// The distance follows its definition: a'C⁻¹a with C = VΛV' + σ²(I − VV').
func TestNoveltyDistance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, _ := correlated(rng, 400, 12, 5)
	n, err := fitNovelty(x, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, q := n.Columns(), n.Directions()
	if q < 3 || q > 6 {
		t.Fatalf("%d directions of data with three causes and 12 features", q)
	}
	sigma2 := 1 / n.precision
	s := n.NewScorer()
	for _, i := range []int{0, 7, 399} {
		row := slices.Clone(x.Row(i))
		row[3] = float32(math.NaN())
		a := make([]float32, p)
		n.standardise(a, row)
		if a[3] != 0 {
			t.Errorf("a missing value counts as %v", a[3])
		}
		rest, along := norm2(a), 0.0
		for k := range q {
			var w, length float64
			for j := range p {
				w += float64(n.basis[k*p+j]) * float64(a[j])
				length += float64(n.basis[k*p+j]) * float64(n.basis[k*p+j])
			}
			lambda := 1 / (1/sigma2 - length) // length² = 1/σ² − 1/λ
			rest -= w * w / length
			along += w * w / length / lambda
		}
		if want, got := along+rest/sigma2, s.Distance(row); math.Abs(got-want) > 1e-3*want {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { s.P(x.Row(0)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Directions and variances follow the covariance matrix, which is known here.
func TestPrincipal(t *testing.T) {
	const n, p, q = 20_000, 6, 3
	rng := rand.New(rand.NewPCG(3, 4))
	z := make([]float32, n*p)
	for i := range n {
		a, b, c := 5*rng.NormFloat64(), 3*rng.NormFloat64(), 2*rng.NormFloat64()
		for j, v := range []float64{(a + b) / math.Sqrt2, (a - b) / math.Sqrt2, c, 0.1, 0.1, 0.1} {
			z[i*p+j] = float32(v + 0.1*rng.NormFloat64())
		}
	}
	v, variances := principal(z, n, p, q, 1)
	for k, want := range []float64{25, 9, 4} {
		if math.Abs(variances[k]-want) > 0.05*want {
			t.Errorf("variance %d is %v, want about %v", k, variances[k], want)
		}
	}
	for k, want := range [][]float64{{math.Sqrt2 / 2, math.Sqrt2 / 2, 0}, {math.Sqrt2 / 2, -math.Sqrt2 / 2, 0}, {0, 0, 1}} {
		var along float64
		for j, w := range want {
			along += w * float64(v[k*p+j])
		}
		if math.Abs(math.Abs(along)-1) > 0.01 {
			t.Errorf("direction %d is %v", k, v[k*p:(k+1)*p])
		}
	}
}

// Rows of new groups are novel as often as the rate says, for any number of
// workers. Rows whose features no longer go together are novel nearly always, and so are
// rows of a sensor that reads three times as much.
func TestFitNovelty(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	x, groups := correlated(rng, 1600, 30, 16)
	train := dbn.Matrix{Rows: 1200, Cols: 30, Data: x.Data[:1200*30]}
	const rate = 0.02
	n, held, err := FitNovelty(t.Context(), train, groups[:1200], nil, rate, 7, 2)
	if err != nil {
		t.Fatal(err)
	}
	one, _, err := FitNovelty(t.Context(), train, groups[:1200], nil, rate, 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := n.AppendBinary(nil)
	b, _ := one.AppendBinary(nil)
	if !bytes.Equal(a, b) {
		t.Error("the bytes depend on the number of workers")
	}
	s := n.NewScorer()
	novel := func(change func(row []float32, i int)) float64 {
		count := 0
		for i := 1200; i < 1600; i++ {
			row := slices.Clone(x.Row(i))
			change(row, i)
			if s.P(row) <= n.Rate {
				count++
			}
		}
		return float64(count) / 400
	}
	if got := novel(func([]float32, int) {}); got > 3*rate {
		t.Errorf("%.3f of rows of new groups are novel at a rate of %v", got, rate)
	}
	if got := novel(func(row []float32, i int) {
		for j := range row {
			row[j] = x.Row((i + 37*j) % 1600)[j]
		}
	}); got < 0.95 {
		t.Errorf("%.3f of rows with shuffled features are novel", got)
	}
	if got := novel(func(row []float32, i int) { row[4] *= 3; row[5] *= 3 }); got < 0.5 {
		t.Errorf("%.3f of rows with a wrong gain are novel", got)
	}
	of := 0
	for _, p := range held.P {
		if p <= rate {
			of++
		}
	}
	if got := float64(of) / 1200; len(held.Rows) != 1200 || held.Rows[1199] != 1199 || got < rate/4 || got > 3*rate {
		t.Errorf("%.3f of the %d rows held out are novel at a rate of %v", got, len(held.Rows), rate)
	}
}

func TestFitNoveltyRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	x, groups := correlated(rng, 90, 5, 3)
	two := slices.Clone(groups)
	for i := range two {
		if two[i] == "T2" {
			two[i] = "T1"
		}
	}
	flat := dbn.NewMatrix(90, 5)
	for name, tc := range map[string]struct {
		x      dbn.Matrix
		groups []string
		counts []bool
		rate   float64
		want   error
	}{
		"two tools":            {x, two, nil, 0.05, classify.ErrTooFew},
		"nothing varies":       {flat, groups, nil, 0.05, classify.ErrTooFew},
		"too rare for 90 rows": {x, groups, nil, 0.01, classify.ErrTooFew},
		"no rate":              {x, groups, nil, 0, classify.ErrSettings},
		"too few groups":       {x, groups[:3], nil, 0.05, classify.ErrSize},
		"one column counts":    {x, groups, []bool{false, true, false, false, false}, 0.05, classify.ErrTooFew},
		"columns too few":      {x, groups, []bool{true, true}, 0.05, classify.ErrSize},
	} {
		if _, _, err := FitNovelty(t.Context(), tc.x, tc.groups, tc.counts, tc.rate, 1, 1); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// The fit to all rows says what is wrong, however many workers there are: the folds,
// which say something else, may fail before it.
func TestFitNoveltyNamesTheSameError(t *testing.T) {
	x := dbn.NewMatrix(4000, 3)
	var groups []string
	for i := range x.Rows {
		groups = append(groups, fmt.Sprint("T", i%10))
		if i%10 == 0 {
			x.Row(i)[1] = float32(i) // the other tools see no feature that varies
		}
	}
	for range 20 {
		for _, workers := range []int{1, 4, 11} {
			_, _, err := FitNovelty(t.Context(), x, groups, nil, 0.05, 1, workers)
			if err == nil || !strings.HasPrefix(err.Error(), "unknown: 1 features vary") {
				t.Fatalf("%d workers: %v", workers, err)
			}
		}
	}
}

// Columns that do not count leave a distance as it is with any value.
func TestNoveltyOfColumnsThatCount(t *testing.T) {
	x, groups := correlated(rand.New(rand.NewPCG(11, 12)), 300, 8, 5)
	counts := []bool{true, false, true, true, false, true, true, true}
	n, held, err := FitNovelty(t.Context(), x, groups, counts, 0.05, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	few := dbn.NewMatrix(x.Rows, 6)
	for i := range x.Rows {
		to := 0
		for j, v := range x.Row(i) {
			if counts[j] {
				few.Row(i)[to] = v
				to++
			}
		}
	}
	m, _, err := FitNovelty(t.Context(), few, groups, nil, 0.05, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	s, o := n.NewScorer(), m.NewScorer()
	for i := range x.Rows {
		row := slices.Clone(x.Row(i))
		want := s.Distance(row)
		row[1], row[4] = 1e6, float32(math.NaN())
		if got := s.Distance(row); got != want {
			t.Fatalf("row %d: %v, with columns changed that do not count %v", i, want, got)
		}
		if got := o.Distance(few.Row(i)); math.Abs(got-want) > 1e-3*(1+want) {
			t.Errorf("row %d: %v, by a fit that never saw them %v", i, want, got)
		}
	}
	if len(held.P) != x.Rows || n.Tools() != 5 || math.Abs(n.Promise()-1.25/6) > 1e-12 {
		t.Errorf("%d p-values held out; %d tools, promised %v", len(held.P), n.Tools(), n.Promise())
	}
}

// sharesOf is newToolShares of tools by name.
func sharesOf(x []float64, groups []string) toolShares {
	number, names := classify.NumberGroups(groups)
	return newToolShares(x, number, len(names))
}

// Every tool weighs the same in a p-value, however many rows it has, and the row is one
// of n + 1: of a tool with distances 1 to 10 and one with 100 a row at 50 is as far out as half
// of them.
func TestNoveltyWeighsTools(t *testing.T) {
	d := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100}
	groups := []string{"A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "B"}
	n := &Novelty{Rate: 0.1, tools: sharesOf(negated(d), groups)}
	for at, share := range map[float64]float64{0: 1, 1: 1, 1.5: 0.95, 10: 0.55, 50: 0.5, 100: 0.5, 101: 0} {
		if got, want := n.p(at), (1+11*share)/12; math.Abs(got-want) > 1e-12 {
			t.Errorf("distance %v: p-value %v, want %v", at, got, want)
		}
	}
	twice := &Novelty{Rate: 0.1, tools: sharesOf(negated(append(d, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)), append(groups, groups[:10]...))}
	if !reflect.DeepEqual(n, twice) {
		t.Errorf("with the rows of a tool twice: %+v, want %+v", twice.tools, n.tools)
	}
}

// Of exchangeable tools no more rows are novel than promised, on average over tools and
// calibrations, and at most about as many as the rate says where tools are many.
func TestNoveltyOfNewTools(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	const rate = 0.05
	distances := func(tools int) (d []float64, groups []string) {
		for tool := range tools {
			size := math.Exp(rng.NormFloat64())
			for range 10 + rng.IntN(60) {
				d, groups = append(d, size*rng.ExpFloat64()), append(groups, fmt.Sprint(tool))
			}
		}
		return d, groups
	}
	for _, tools := range []int{3, 9, 80} {
		var novel, of float64
		var n *Novelty
		for range 300 {
			d, groups := distances(tools)
			n = &Novelty{Rate: rate, tools: sharesOf(negated(d), groups)}
			for range 5 {
				d, _ := distances(1)
				for _, v := range d {
					if n.p(v) <= rate {
						novel += 1 / float64(len(d))
					}
				}
				of++
			}
		}
		t.Logf("%d tools: %.4f of rows are novel, promised are at most %.4f", tools, novel/of, n.Promise())
		const tolerance = 0.01
		if got := novel / of; got > n.Promise()+tolerance || tools == 80 && math.Abs(got-rate) > 0.02 {
			t.Errorf("%d tools: %.4f of rows are novel, promised are at most %.4f", tools, got, n.Promise())
		}
	}
}

// The binary form is read as it was written. The first version, which begins with a p-value, and later ones are refused.
func TestNoveltyForm(t *testing.T) {
	x, groups := correlated(rand.New(rand.NewPCG(9, 10)), 60, 4, 3)
	n, _, err := FitNovelty(t.Context(), x, groups, nil, 0.05, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := n.AppendBinary(nil)
	var read Novelty
	if err := read.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(&read, n) {
		t.Errorf("%v, read as %+v", err, read)
	}
	if err := new(Novelty).UnmarshalBinary(b[12:]); !errors.Is(err, classify.ErrCorrupt) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("version 1: %v", err)
	}
	b[8] = 9
	if err := new(Novelty).UnmarshalBinary(b); !errors.Is(err, classify.ErrCorrupt) || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("version 9: %v", err)
	}
	n.tools.share[0] = -1
	b, _ = n.AppendBinary(nil)
	if err := new(Novelty).UnmarshalBinary(b); !errors.Is(err, classify.ErrCorrupt) {
		t.Errorf("a share below 0: %v", err)
	}
}

func FuzzNovelty(f *testing.F) {
	rng := rand.New(rand.NewPCG(9, 10))
	x, groups := correlated(rng, 60, 4, 3)
	n, _, err := FitNovelty(f.Context(), x, groups, nil, 0.05, 1, 1)
	if err != nil {
		f.Fatal(err)
	}
	good, _ := n.AppendBinary(nil)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(good[12:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var n Novelty
		if err := n.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, classify.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, _ := n.AppendBinary(nil); !slices.Equal(again, b) {
			t.Fatal("it is not written as it was read")
		}
		if p := n.NewScorer().P(make([]float32, n.Columns())); !(p > 0 && p <= 1) {
			t.Fatalf("p-value %v", p)
		}
	})
}

// The least that a judge pays for the third verdict, with the gun drill's features.
func BenchmarkNovelty(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, _ := correlated(rng, 300, 671, 5)
	n, err := fitNovelty(x, nil, 1)
	if err != nil {
		b.Fatal(err)
	}
	d, groups := make([]float64, mostKept), make([]string, mostKept)
	for i := range d {
		d[i], groups[i] = -float64(i), fmt.Sprint(i%9)
	}
	n.tools = sharesOf(d, groups)
	s := n.NewScorer()
	b.ReportAllocs()
	for b.Loop() {
		s.P(x.Row(0))
	}
}

// Of very many rows some are looked at, and their groups count: of groups with a row or two none may be left.
func TestNoveltyOfGroupsThatAreThinnedAway(t *testing.T) {
	for _, sizes := range [][]int{{10_000, 1, 1}, {5_000, 5_000, 1}} {
		var groups []string
		for g, n := range sizes {
			groups = append(groups, slices.Repeat([]string{string(rune('A' + g))}, n)...)
		}
		x := dbn.NewMatrix(len(groups), 3)
		rng := rand.New(rand.NewPCG(7, 8))
		for i := range x.Data {
			x.Data[i] = float32(rng.NormFloat64())
		}
		if _, _, err := FitNovelty(t.Context(), x, groups, nil, 0.02, 1, 1); !errors.Is(err, classify.ErrTooFew) || !strings.Contains(err.Error(), "novelty needs 3") {
			t.Errorf("%d rows of groups: %v", sizes, err)
		}
	}
}
