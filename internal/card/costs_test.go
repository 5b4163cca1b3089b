package card

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/classify"
)

// Every threshold within the plateau is within 0.01 of the best G-mean, the
// exact sweep finds the same best, and the landscape never exceeds it.
func TestLandscapeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 60).Draw(t, "rows")
		p, y := make([]float64, n), make([]int, n)
		posterior := make([]float64, 0, 2*n)
		for i := range p {
			p[i] = float64(rapid.IntRange(1, 99).Draw(t, "p")) / 100
			y[i] = i % 2
			posterior = append(posterior, 1-p[i], p[i])
		}
		l := NewLandscape(p, Positives(y))
		_, r, err := classify.ChooseCosts(t.Context(), posterior, y, 2, classify.CostSettings{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Choices {
			if c.GMean > l.Best+1e-12 || c.Name == "exact" && c.GMean < l.Best-1e-12 {
				t.Fatalf("%s has a G-mean of %v, the landscape's best is %v", c.Name, c.GMean, l.Best)
			}
		}
		if most := slices.Max(l.GMean); most > l.Best+1e-12 {
			t.Fatalf("the landscape reaches %v beyond its best, %v", most, l.Best)
		}
		for i, at := range l.Threshold {
			if at >= l.Within[0] && at < l.Within[1] && l.GMean[i] < l.Best-0.01-1e-12 {
				t.Fatalf("threshold %v within %v: %v, best %v", at, l.Within, l.GMean[i], l.Best)
			}
		}
	})
}
