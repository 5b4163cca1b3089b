package signal

import (
	"math"
	"slices"
	"testing"
)

func TestBandEdges(t *testing.T) {
	if got, want := bandEdges(512), []int{0, 8, 12, 20, 32, 50, 80, 128, 203, 322, 512}; !slices.Equal(got, want) {
		t.Errorf("1024 samples: %v, want %v", got, want)
	}
	for top := MinSpectral / 2; top <= maxWelch/2; top *= 2 {
		edges := bandEdges(top)
		if edges[0] != 0 || edges[1] < 2 || edges[len(edges)-1] != top {
			t.Errorf("%d bins: edges %v do not start at 0, 2 or more, and end at the top", top, edges)
		}
		for j := 1; j < len(edges); j++ {
			if edges[j] <= edges[j-1] {
				t.Errorf("%d bins: band %d of %v is empty", top, j, edges)
			}
		}
	}
}

// Over all bins a power spectrum is the mean square of a line that it resolves.
func TestPowerSpectrum(t *testing.T) {
	x := make([]float32, 4000)
	for i := range x {
		x[i] = float32(7 + 3*math.Sin(2*math.Pi*250*float64(i)/2000))
	}
	power, hz := PowerSpectrum(x, 2000)
	peak, sum := 0, 0.
	for k, p := range power {
		if sum += p; p > power[peak] {
			peak = k
		}
	}
	if math.Abs(sum-4.5) > 1e-3 || math.Abs(float64(peak)*hz-250) > hz/2 {
		t.Errorf("power %v at %v Hz, want 4.5 at 250", sum, float64(peak)*hz)
	}
	if power, _ := PowerSpectrum(x[:MinSpectral-1], 2000); power != nil {
		t.Error("a spectrum of too few samples")
	}
}
