package signal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func sum(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v
	}
	return s
}

// Parseval's theorem, exactly, for the samples as the window weighs them.
func TestSpectrumKeepsPower(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{64, 100, 1024, 1500, 20_000} {
		x := sample(n, func(float64) float64 { return rng.NormFloat64() })
		s := newSpectrum(n)
		s.measure(x, 0)
		var power, weight float64
		for _, start := range s.starts {
			for i, w := range s.window {
				v := w * float64(x[start+i])
				power += v * v
				weight += w * w
			}
		}
		// power[0] was doubled as if it had a twin
		if got := sum(s.power) - s.power[0]/2; !near(got, power/weight, 1e-12) {
			t.Errorf("%d samples: power %v, want %v", n, got, power/weight)
		}
	}
}

// White noise of variance σ² has σ²·(band width)/(rate/2) in each band.
func TestSpectrumOfWhiteNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const σ = 0.7
	x := sample(2_000_000, func(float64) float64 { return σ * rng.NormFloat64() })
	for _, name := range []string{"whole", "a fifth missing"} {
		if name != "whole" {
			for i := range x {
				if rng.IntN(5) == 0 {
					x[i] = float32(math.NaN())
				}
			}
		}
		s := newSpectrum(len(x))
		s.measure(x, 0)
		for j, v := range s.appendBands(nil, 1) {
			share := float64(s.edges[j+1]-s.edges[j]) / 512
			if got := math.Pow(10, float64(v)); math.Abs(got/(σ*σ*share)-1) > 0.04 {
				t.Errorf("%s: band %d holds %v, want %v", name, j+1, got, σ*σ*share)
			}
		}
		if c := s.appendCentroid(nil, 1000)[0]; math.Abs(float64(c)-250) > 2 {
			t.Errorf("%s: centroid %v Hz, want 250", name, c)
		}
	}
}

func TestBandEdges(t *testing.T) {
	if got, want := bandEdges(512), []int{0, 8, 12, 20, 32, 50, 80, 128, 203, 322, 512}; !slices.Equal(got, want) {
		t.Errorf("1024 samples: %v, want %v", got, want)
	}
	for top := MinSpectral / 2; top <= maxSegment/2; top *= 2 {
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

// Every sample but the very first and last, where the window is next to zero,
// must be seen.
func TestSegmentsCoverTheWindow(t *testing.T) {
	for _, n := range []int{64, 65, 127, 1023, 1025, 2048, 2049, 20_000} {
		s := newSpectrum(n)
		size := len(s.window)
		end := 0
		for _, start := range s.starts {
			if start > end {
				t.Errorf("%d samples: %d to %d are in no segment", n, end, start)
			}
			end = start + size
		}
		if s.starts[0] != 0 || end != n {
			t.Errorf("%d samples: segments of %d at %v", n, size, s.starts)
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
