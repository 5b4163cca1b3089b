package classify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// padded returns x with three columns more before each of its own, which say nothing: one value in all rows, no
// value at all, and noise, which is to be excluded.
func padded(x dbn.Rows) dbn.Rows {
	if x == nil {
		return nil
	}
	m := x.(dbn.Matrix)
	rng := rand.New(rand.NewPCG(4, 4))
	out := dbn.NewMatrix(m.Rows, 4*m.Cols)
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			copy(out.Row(i)[4*j:], []float32{7, float32(math.NaN()), float32(rng.NormFloat64()), v})
		}
	}
	return out
}

// A column that says nothing changes no bit of what is learnt: no network learns from it.
func TestColumnsThatSayNothing(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"weighed":     func(*Settings) {},
		"not weighed": func(s *Settings) { s.Stability = StabilityOff },
		"bins":        func(s *Settings) { s.Encoding, s.Bins = Bins, 3 },
		"committee":   func(s *Settings) { s.Encoding, s.Bins = Committee, 3 },
		"early stop":  func(s *Settings) { s.EarlyStop, s.Network.FineTune.Patience = true, 5 },
		"momentum":    func(s *Settings) { s.Network.FineTune.Method = "sgd" },
	} {
		s := quick()
		change(&s)
		narrow := wearing(3, 40, []string{"A", "B", "C"}, []string{"D"})
		wide := *narrow
		wide.X, wide.Unlabelled.X = padded(narrow.X), padded(narrow.Unlabelled.X)
		want, report := tableFitted(t, narrow, s)
		s.Exclude = []int{2, 6, 10, 14}
		got, wider := tableFitted(t, &wide, s)
		if !slices.Equal(report.Posterior, wider.Posterior) {
			t.Errorf("%s: other posteriors of rows held out", name)
		}
		a, b := want.NewScorer(), got.NewScorer()
		for i := range narrow.X.(dbn.Matrix).Rows {
			if p, q := a.Posterior(narrow.X.(dbn.Matrix).Row(i)), b.Posterior(wide.X.(dbn.Matrix).Row(i)); !slices.Equal(p, q) {
				t.Fatalf("%s: row %d: %v, and %v with columns that say nothing", name, i, p, q)
			}
		}
	}
}

// Where no column says anything there is a classifier all the same, of as many inputs.
func TestNoColumnSaysAnything(t *testing.T) {
	x, y := clusters(3, 2, 1, 30, 20)
	s := quick()
	s.Exclude = []int{0, 1}
	c, _ := fitted(t, x, y, nil, s)
	if c.encoder.Inputs() != 2 || c.network.Inputs() != 2 {
		t.Errorf("%d inputs, the network has %d", c.encoder.Inputs(), c.network.Inputs())
	}
}

// A fit to a table of the turning recording's size: 9 tools of 160 rows, 24 columns that follow their lives. Without
// others, and with 128 that say nothing, which are to cost a tenth at most.
func BenchmarkFitTable(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 5))
	const lives, length, steady, idle = 9, 160, 24, 128
	tables := []*Table{{Ordered: true}, {Ordered: true}}
	x := []dbn.Matrix{dbn.NewMatrix(lives*length, steady), dbn.NewMatrix(lives*length, steady+idle)}
	for i := range lives * length {
		age := float64(i%length) / length
		for j := range steady + idle {
			v := float32(rng.NormFloat64())
			if j < steady {
				v = float32(age*(1+float64(j)/steady)) + 0.2*v
				x[0].Row(i)[j] = v
			}
			x[1].Row(i)[j] = v
		}
		class := 0
		if age > 0.9 {
			class = 1
		}
		for n, t := range tables {
			t.X, t.Y, t.Groups = x[n], append(t.Y, class), append(t.Groups, fmt.Sprint("T", i/length))
		}
	}
	for n, t := range tables {
		b.Run(fmt.Sprintf("columns=%d", x[n].Cols), func(b *testing.B) {
			for b.Loop() {
				_, r, err := FitTable(b.Context(), t, Settings{Workers: 1, Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(r.Weights.Columns)), "weighed")
			}
		})
	}
}
