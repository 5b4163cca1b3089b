package score

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Each column is of one sensor, the one of its name, and the shares of all sensors are 1.
func TestSensors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SliceOfN(rapid.SampledFrom([]string{"F_c", "F_f", "AE", ""}), 1, 20).Draw(t, "sensors")
		weights := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.05, 0.5, 1}), len(of), len(of)).Draw(t, "weights")
		seen, sum, any := make([]bool, len(of)), 0.0, false
		for k, s := range Sensors(of) {
			if !slices.IsSorted(s.Columns) || slices.Index(of, s.Name) != s.Columns[0] || k == 0 && s.Columns[0] != 0 {
				t.Fatalf("%+v of %q", s, of)
			}
			for _, j := range s.Columns {
				if of[j] != s.Name || seen[j] {
					t.Fatalf("column %d is of %s", j, s.Name)
				}
				seen[j] = true
				any = any || weights[j] > 0
			}
			if share := s.Share(weights); s.Counts(weights) != (share >= LeastShare) {
				t.Fatalf("a share of %v", share)
			}
			sum += s.Share(weights)
		}
		if slices.Contains(seen, false) || any && (sum < 1-1e-9 || sum > 1+1e-9) || !any && sum != 0 {
			t.Fatalf("columns %v, shares %v", seen, sum)
		}
	})
}
