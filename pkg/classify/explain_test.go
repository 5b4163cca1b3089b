package classify

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Under every encoding the parts add up, the sign of f is the decision, and a
// missing value has no part.
func TestExplain(t *testing.T) {
	for _, encoding := range encodings {
		for name, tc := range map[string]struct {
			rows []int
		}{"two classes": {[]int{150, 30}}, "three classes": {[]int{120, 40, 30}}} {
			x, y := clusters(3, 4, 2, tc.rows...)
			for i := 0; i < x.Rows; i += 7 {
				x.Row(i)[3] = float32(math.NaN())
			}
			s := quick()
			s.Encoding = encoding
			c, _ := fitted(t, x, y, nil, s)
			scorer := c.NewScorer()
			rapid.Check(t, func(t *rapid.T) {
				row := slices.Clone(x.Row(rapid.IntRange(0, x.Rows-1).Draw(t, "row")))
				missing := rapid.IntRange(0, len(row)-1).Draw(t, "missing")
				row[missing] = float32(math.NaN())
				class := rapid.IntRange(1, len(tc.rows)-1).Draw(t, "class")
				e := c.Explain(row, class)
				var sum float64
				for _, v := range e.Parts {
					sum += v
				}
				if d := e.Total - e.Base; math.Abs(sum-d) > 3e-6*(1+math.Abs(d)) {
					t.Fatalf("%s, %s: parts %v add up to %v, want %v", encoding, name, e.Parts, sum, d)
				}
				if e.Parts[missing] != 0 {
					t.Fatalf("%s, %s: a missing value has the part %v", encoding, name, e.Parts[missing])
				}
				p := scorer.Posterior(row)
				w := []float64{(1 - c.costs[Healthy]) * p[Healthy], (1 - c.costs[class]) * p[class]}
				if want := math.Log(w[1] / w[0]); math.Abs(want) < 8 && math.Abs(want-e.Total) > 1e-2 {
					t.Fatalf("%s, %s: f is %v, posterior and costs say %v", encoding, name, e.Total, want)
				}
			})
		}
	}
}

// What separates the classes gets the parts: only the third feature does.
func TestExplainNamesTheCause(t *testing.T) {
	x, y := clusters(5, 5, 0, 150, 60)
	for i, label := range y {
		x.Row(i)[2] += 6 * float32(label)
	}
	c, _ := fitted(t, x, y, nil, quick())
	for i, label := range y {
		if label != Faulty {
			continue
		}
		e := c.Explain(x.Row(i), Faulty)
		for j, v := range e.Parts {
			if j != 2 && !(e.Parts[2] > 2*v) {
				t.Fatalf("row %d: feature %d has %v, the cause %v", i, j, v, e.Parts[2])
			}
		}
	}
}

func TestExplainRefusesNoClass(t *testing.T) {
	x, y := clusters(3, 2, 2, 60, 30)
	c, _ := fitted(t, x, y, nil, quick())
	defer func() {
		if s, _ := recover().(string); !strings.HasPrefix(s, "classify: Explain") {
			t.Errorf("panic %q", s)
		}
	}()
	c.Explain(x.Row(0), 2)
}
