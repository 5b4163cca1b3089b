package classify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Posteriors whose labels are drawn from them are of temperature 1, and brought
// to another temperature they are found to be of that one.
func TestTemperature(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{2, 4} {
		var posterior []float64
		var y []int
		for range 20_000 {
			p, sum := make([]float64, k), 0.0
			for j := range p {
				p[j] = math.Exp(1.5 * rng.NormFloat64())
				sum += p[j]
			}
			label, u := k-1, rng.Float64()*sum
			for j, v := range p {
				if u -= v; u < 0 {
					label = j
					break
				}
			}
			for j := range p {
				p[j] /= sum
			}
			posterior, y = append(posterior, p...), append(y, label)
		}
		for _, sharp := range []float64{0.7, 1, 3} {
			changed := slices.Clone(posterior)
			temper(changed, k, 1/sharp)
			got := Temperature(changed, y, k)
			if math.Abs(got-sharp) > 0.05*sharp {
				t.Errorf("K=%d: temperature %v, want %v", k, got, sharp)
			}
			temper(changed, k, sharp)
			for i, p := range changed {
				if math.Abs(p-posterior[i]) > 1e-12 {
					t.Fatalf("K=%d: there and back from %v: %v, want %v", k, sharp, p, posterior[i])
				}
			}
		}
	}
}

// By hand: of 4 rows with P = 0.9 for class 1, 3 are of class 1, so that odds of
// 9 should be 3: T = ln 9 / ln 3 = 2.
func TestTemperatureByHand(t *testing.T) {
	posterior := []float64{0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9}
	near(t, "temperature", Temperature(posterior, []int{1, 1, 0, 1}, 2), 2)
	near(t, "temperature of what has no errors", Temperature([]float64{1, 0, 0, 1}, []int{0, 1}, 2), leastTemperature)
	near(t, "temperature of what is all wrong", Temperature([]float64{1, 0, 0, 1}, []int{1, 0}, 2), mostTemperature)
	near(t, "temperature of nothing", Temperature(nil, nil, 2), 1)
}

// The classifier gives the posteriors that the costs were chosen for: the
// network's as it was trained, at the reported temperature.
func TestFitCalibrates(t *testing.T) {
	x, y := clusters(3, 3, 0.8, 200, 60)
	s := quick()
	s.Seed = 5
	warm, r := fitted(t, x, y, nil, s)
	s.Costs.Uncalibrated = true
	raw, plain := fitted(t, x, y, nil, s)
	if r.Costs.Temperature <= 1 || plain.Costs.Temperature != 1 {
		t.Fatalf("temperatures %v and %v: overlapping classes learnt by heart should be too sure", r.Costs.Temperature, plain.Costs.Temperature)
	}
	if r.Held.Brier >= plain.Held.Brier {
		t.Errorf("Brier score %v, without calibration %v", r.Held.Brier, plain.Held.Brier)
	}
	a, b := warm.NewScorer(), raw.NewScorer()
	for i := range x.Rows {
		want := slices.Clone(b.Posterior(x.Row(i)))
		temper(want, 2, r.Costs.Temperature)
		for j, p := range a.Posterior(x.Row(i)) {
			if math.Abs(p-want[j]) > 1e-5 {
				t.Fatalf("row %d: posterior %v, want %v", i, p, want[j])
			}
		}
	}
}

// Labels of whole groups, which features know but say nothing of in other
// groups, are not learnt, do not look learnt, and the report says so.
func TestLabelsOfGroups(t *testing.T) {
	const groups, rows = 12, 20
	rng := rand.New(rand.NewPCG(11, 12))
	x := dbn.NewMatrix(groups*rows, 6)
	var y []int
	var names []string
	for g := range groups {
		center := make([]float64, x.Cols) // of the group, for rows of both labels
		for j := range center {
			center[j] = 3 * rng.NormFloat64()
		}
		for range rows {
			for j := range center {
				x.Row(len(y))[j] = float32(center[j] + 0.3*rng.NormFloat64())
			}
			y, names = append(y, g%2), append(names, fmt.Sprint("G", g))
		}
	}
	_, r := fitted(t, x, y, names, quick())
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "hardly anything of rows") }) || r.Costs.Temperature != 1 {
		t.Errorf("temperature %v, warnings %q", r.Costs.Temperature, r.Warnings)
	}
	v, err := crossValidate(t.Context(), x, y, names, quick(), LeaveOneGroupOut(names))
	if err != nil {
		t.Fatal(err)
	}
	if v.Pooled.GMean > 0.7 {
		t.Errorf("groups held out: G-mean %v", v.Pooled.GMean)
	}
}
