package signal

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// peerSignals are the test signals of bench/peers/signal/features.py, bit for bit.
func peerSignals(n, channels int) [][]float32 {
	var out [][]float32
	for c := range channels {
		x := make([]float32, n)
		state := 0x9E3779B97F4A7C15 * uint64(c+1)
		var y1, y2 float64
		for i := range x {
			state = state*6364136223846793005 + 1442695040888963407
			u := float64(state>>40)/(1<<23) - 1
			if i%727 < 2 {
				u += 8 + float64(c)
			}
			// conversions forbid fusing a product and a sum
			y := float64(float64((1.5-0.125*float64(c))*y1)-float64(0.875*y2)) + u
			y2, y1 = y1, y
			x[i] = float32(y + 0.25*float64(c) + float64(i)/65536)
		}
		out = append(out, x)
	}
	return out
}

// Every feature, by the twin, is what NumPy, SciPy and PyWavelets make of the
// same samples, to 1e-9 relative; the panel comes within 1e-5 of its scale. The
// file says which versions; `make peers-signal` checks it.
func TestFeaturesOfVersion2AgainstSciPy(t *testing.T) {
	text, err := os.ReadFile("testdata/features-scipy.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Samples, Channels int
			Rate, RPM         float64
			Features          map[string][]*float64
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, tc := range file.Cases {
		l := vibrations(t, tc.Channels, tc.Rate)
		counts := slices.Repeat([]int{tc.Samples}, tc.Channels)
		samples := peerSignals(tc.Samples, tc.Channels)
		fast, err := NewExtractor(l, counts, everyFeature2)
		if err != nil {
			t.Fatal(err)
		}
		exact, err := NewExtractor(l, counts, everyFeature2)
		if err != nil {
			t.Fatal(err)
		}
		fast.Extract(nil, samples, Context{SpindleSpeed: tc.RPM})
		twin, panel := twins(exact, samples, tc.RPM/60), values(fast.board)
		seen := map[string]bool{}
		for i, name := range fast.Names() {
			channel := fast.Channels(i)[0]
			suffix := strings.TrimPrefix(name, l.channels[channel].Name+".")
			seen[suffix] = true
			values := tc.Features[suffix]
			if values == nil {
				t.Errorf("%s is not in the file: write it with bench/peers/signal/features.py", suffix)
				continue
			}
			if values[channel] == nil {
				if twin[i] == twin[i] {
					t.Errorf("%d samples: %s = %v, want none", tc.Samples, name, twin[i])
				}
				continue
			}
			want := *values[channel]
			if math.Abs(twin[i]-want) > 1e-9*math.Abs(want) {
				t.Errorf("%d samples: %s = %.12g, SciPy has %.12g, off by %.2g", tc.Samples, name, twin[i], want, math.Abs(twin[i]/want-1))
			}
			size := max(math.Abs(want), scale(entryOf(suffix), &exact.board.channels[channel].measures))
			if !(math.Abs(panel[i]-want) <= 1e-5*size) {
				t.Errorf("%d samples: %s = %.12g in float32, SciPy has %.12g, off by %.2g of %v", tc.Samples, name, panel[i], want, math.Abs(panel[i]-want)/size, size)
			}
		}
		for name := range tc.Features {
			if !seen[name] {
				t.Errorf("%d samples: nothing computes %s", tc.Samples, name)
			}
		}
	}
}
