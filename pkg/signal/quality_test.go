package signal

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAssess(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	c := Channel{Name: "x", Kind: Vibration, Rate: 1000, Range: 50}
	noise := sample(1000, wave)
	with := func(from, to int, v float32) []float32 {
		x := slices.Clone(noise)
		for i := from; i < to; i++ {
			x[i] = v
		}
		return x
	}
	for why, tc := range map[string]struct {
		x      []float32
		limits Limits
		want   Quality
	}{
		"good":                              {noise, Limits{}, 0},
		"one sample is missing":             {with(3, 4, nan), Limits{}, Dropout},
		"1 % may be missing, and is":        {with(3, 13, nan), Limits{Dropout: 0.01}, 0},
		"more than 1 % is missing":          {with(3, 14, nan), Limits{Dropout: 0.01}, Dropout},
		"all are missing":                   {with(0, 1000, nan), Limits{}, Dropout},
		"infinite":                          {with(999, 1000, -inf), Limits{}, NonFinite},
		"dead":                              {with(0, 1000, 0.3), Limits{}, Flatline},
		"dies before the end":               {with(930, 1000, 0.3), Limits{}, Flatline},
		"stands still for 5 %":              {with(500, 550, 0.3), Limits{}, 0},
		"stands still for a while":          {with(500, 570, 0.3), Limits{Flatline: 0.1}, 0},
		"a slow channel reads a value long": {with(0, 60, 0.3)[:100], Limits{}, 0},
		"a slow channel reads nothing else": {with(0, 60, 0.3)[:60], Limits{}, Flatline},
		"few equal samples say nothing":     {with(0, 7, 0.3)[:7], Limits{}, 0},
		"touches full scale":                {with(8, 9, -50), Limits{}, 0},
		"clipped":                           {with(8, 10, 51), Limits{}, Clipped},
		"may be clipped":                    {with(8, 10, 51), Limits{Clipped: 0.01}, 0},
		"stuck at full scale":               {with(0, 1000, 50), Limits{}, Clipped | Flatline},
		"breaks off":                        {with(500, 1000, nan), Limits{}, Dropout},
	} {
		if got := Assess(c, tc.x, tc.limits); got != tc.want {
			t.Errorf("%s: %v, want %v", why, got, tc.want)
		}
	}
	c.Range = 0
	if got := Assess(c, with(0, 30, 1e9), Limits{}); got != 0 {
		t.Errorf("without a range: %v", got)
	}
}

// What the pass without branches takes for plain has no flag.
func TestAssessPlain(t *testing.T) {
	if !plain(sample(300, wave), 50) {
		t.Error("a wave is not plain")
	}
	rapid.Check(t, func(t *rapid.T) {
		c := Channel{Range: rapid.SampledFrom([]float64{0, 1, 50}).Draw(t, "range")}
		x := sample(rapid.IntRange(1, 300).Draw(t, "samples"), wave)
		for range rapid.IntRange(0, 3).Draw(t, "faults") {
			from := rapid.IntRange(0, len(x)-1).Draw(t, "from")
			v := rapid.SampledFrom([]float64{0.5, 1, -1, 50, -51, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32}).Draw(t, "value")
			for i := from; i < min(from+rapid.SampledFrom([]int{1, 2, 63, 64, 65, 300}).Draw(t, "count"), len(x)); i++ {
				x[i] = float32(v)
			}
		}
		full := c.Range
		if full == 0 {
			full = math.Inf(1)
		}
		flat, run := false, 0
		for i, v := range x {
			if run++; i > 0 && v != x[i-1] {
				run = 1
			}
			flat = flat || run >= flatlineRun
		}
		faulty := slices.ContainsFunc(x, func(v float32) bool { return v != v || math.Abs(float64(v)) >= full })
		if plain(x, float32(full)) && (flat || faulty) {
			t.Errorf("plain, flat %v, faulty %v", flat, faulty)
		}
		if got := Assess(c, x, Limits{}); got == 0 && faulty && slices.ContainsFunc(x, func(v float32) bool { return v != v }) {
			t.Errorf("a missing sample has no flag")
		}
	})
}

func BenchmarkAssess(b *testing.B) {
	c, x := Channel{Range: 50}, sample(20_000, wave)
	b.SetBytes(int64(4 * len(x)))
	for b.Loop() {
		Assess(c, x, Limits{})
	}
}

func TestLimitsOfALayout(t *testing.T) {
	const text = `
name: lathe
channels: [{name: x, kind: vibration, rate: 100}]
quality: {dropout: 0.01, clipped: 0.02, clock_step: 2s}
`
	l, _, err := ReadLayout(strings.NewReader(text), "l.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := l.Limits(), (Limits{Dropout: 0.01, Flatline: 0.05, Clipped: 0.02, Rate: 0.005, ClockStep: 2 * time.Second}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	if plain := oneChannel(t, Vibration, 100); plain.Fingerprint() != l.Fingerprint() {
		t.Error("limits change the fingerprint: models would have to be trained again for them")
	}
	for bad, want := range map[string]string{
		"clipped: 2":      "quality: clipped: 2: must be a share",
		"rate: .nan":      "quality: rate: NaN: must be a share",
		"clock_step: -1s": "quality: clock_step: -1s: must not be negative",
		"clock_setp: 1s":  "clock_setp",
	} {
		_, _, err := ReadLayout(strings.NewReader("channels: [{name: x, kind: vibration, rate: 100}]\nquality: {"+bad+"}"), "l.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "l.yaml") {
			t.Errorf("%s: error %v, want one that says %q and the file", bad, err, want)
		}
	}
}

// The error of a rate that is refused says what it may be.
func TestRateBeyondTheGreatest(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), 2e9, math.Inf(1)} {
		if _, err := NewLayout("l", []Channel{{Name: "x", Kind: Force, Rate: rate}}); err == nil || !strings.Contains(err.Error(), "must be positive, and at most 1e9") {
			t.Errorf("%v Hz: %v", rate, err)
		}
	}
	if _, err := NewLayout("l", []Channel{{Name: "x", Kind: Force, Rate: 1e9}}); err != nil {
		t.Error(err)
	}
}
