package costsearch

import (
	"math"
	"testing"
)

func TestSilverman(t *testing.T) {
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// 0.9·min(sd, IQR/1.34)·n^-0.2 of 1..5: sd = √2, IQR = 2.
	near("bandwidth", silverman([]float64{1, 2, 3, 4, 5}), 0.9*math.Sqrt2*math.Pow(5, -0.2))
	near("bandwidth of mostly equal values", silverman([]float64{0, 0, 0, 0, 5}), 0.9*2*math.Pow(5, -0.2))
	if h := silverman([]float64{3}); !(h > 0) {
		t.Errorf("bandwidth of a single value: %v", h)
	}
}
