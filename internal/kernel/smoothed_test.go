package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
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

// TestRecallAbove compares the table with the sum by definition, also where values are far from the cut.
func TestRecallAbove(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	z := make([]float64, 400)
	for i := range z {
		z[i] = 3 * rng.NormFloat64()
	}
	slices.Sort(z)
	for _, h := range []float64{1e-9, 0.01, 0.3, 1, 40} {
		for range 2000 {
			cut := 5 * rng.NormFloat64()
			var want float64
			for _, v := range z {
				want += 0.5 * math.Erfc((cut-v)/(h*math.Sqrt2)) / float64(len(z))
			}
			if got := recallAbove(z, cut, h); math.Abs(got-want) > 5e-11 {
				t.Fatalf("bandwidth %v, cut %v: %v, want %v", h, cut, got, want)
			}
		}
	}
	if got := recallAbove(z, 100, 1); got != 0 { // flat where nothing is near, so that the middle of a flat part is found
		t.Errorf("far above all values: %v", got)
	}
	if got := recallAbove(z, -100, 1); got != 1 {
		t.Errorf("far below all values: %v", got)
	}
}
