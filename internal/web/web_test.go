package web

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

func TestEnvelope(t *testing.T) {
	for name, tc := range map[string]struct {
		x     []float32
		pairs int
		want  []float32
	}{
		"nothing":                           {nil, 3, nil},
		"one pair a stretch":                {[]float32{1, 5, -2, 0}, 2, []float32{1, 5, -2, 0}},
		"stretches that differ by a sample": {[]float32{1, 2, 3}, 2, []float32{1, 1, 2, 3}},
		"fewer samples than pairs":          {[]float32{4, -4}, 60, []float32{4, 4, -4, -4}},
		"missing samples are left out":      {[]float32{nan, 3, 2, nan}, 2, []float32{3, 3, 2, 2}},
		"so are infinite ones":              {[]float32{inf, 3, -inf, 2}, 2, []float32{3, 3, 2, 2}},
		"nothing else in a stretch":         {[]float32{nan, -inf, 1, 1}, 2, []float32{nan, nan, 1, 1}},
	} {
		if got := envelope(nil, tc.x, tc.pairs); !slices.EqualFunc(got, tc.want, same) {
			t.Errorf("%s: Envelope(%v, %d) = %v, want %v", name, tc.x, tc.pairs, got, tc.want)
		}
	}
	if got := envelope([]float32{7}, []float32{1}, 1); !slices.Equal(got, []float32{7, 1, 1}) {
		t.Errorf("Envelope did not append: %v", got)
	}
}

func same(a, b float32) bool { return a == b || a != a && b != b }

// An envelope has the extremes of its samples, however it is cut.
func TestEnvelopeKeepsExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32Range(-1e6, 1e6), 1, 500).Draw(t, "x")
		pairs := rapid.IntRange(1, 100).Draw(t, "pairs")
		e := envelope(nil, x, pairs)
		if len(e) != 2*min(pairs, len(x)) {
			t.Fatalf("%d samples in %d pairs: %d values", len(x), pairs, len(e))
		}
		if slices.Min(e) != slices.Min(x) || slices.Max(e) != slices.Max(x) {
			t.Fatalf("extremes of %v differ from %v", e, x)
		}
		for i := 0; i < len(e); i += 2 {
			if e[i] > e[i+1] {
				t.Fatalf("pair %d is (%v, %v)", i/2, e[i], e[i+1])
			}
		}
	})
}

func TestSummarize(t *testing.T) {
	var w Window
	samples := [][]float32{{3, -4, 3, -4}, {nan, inf}, {2, nan}}
	w.Summarize(samples)
	for i, want := range []float32{float32(math.Sqrt(12.5)), nan, 2} {
		if !same(w.RMS[i], want) {
			t.Errorf("RMS of %v = %v, want %v", samples[i], w.RMS[i], want)
		}
	}
	if len(w.Envelope) != 3 || !slices.Equal(w.Envelope[0], []float32{3, 3, -4, -4, 3, 3, -4, -4}) {
		t.Errorf("envelopes %v", w.Envelope)
	}
	if n := testing.AllocsPerRun(10, func() { w.Summarize(samples) }); n != 0 {
		t.Errorf("a window costs %v allocations", n)
	}
}
