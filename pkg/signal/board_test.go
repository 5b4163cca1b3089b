package signal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// everyFeature2 lists all families of version 2.
var everyFeature2 = FeatureSpec{Version: 2, Set: registryNames()}

// signals are what the panel is held to the twin on: each is one channel.
func signals(n int, rng *rand.Rand) (names []string, samples [][]float32) {
	add := func(name string, f func(i float64) float64) {
		names = append(names, name)
		samples = append(samples, sample(n, f))
	}
	noise := func(float64) float64 { return rng.NormFloat64() }
	var state [2]float64
	add("white noise", noise)
	add("tones, and 60 dB below them noise", func(i float64) float64 { return wave(i) + 1e-3*noise(i) })
	add("tones and noise", func(i float64) float64 { return wave(i) + 0.3*noise(i) })
	add("a resonance", func(i float64) float64 {
		state[0], state[1] = 1.6*state[0]-0.95*state[1]+noise(i), state[0]
		return state[0]
	})
	add("a resonance rings once a turn", func(i float64) float64 {
		t := math.Mod(i, 800)
		return 20*math.Exp(-t/60)*math.Sin(1.1*t) + 0.2*noise(i)
	})
	add("small", func(i float64) float64 { return 1e-9 * (wave(i) + 0.3*noise(i)) })
	add("large", func(i float64) float64 { return 1e9 * (wave(i) + 0.3*noise(i)) })
	add("far from zero", func(i float64) float64 { return 100 + noise(i) })
	add("drifts", func(i float64) float64 { return i/float64(n)*5 + noise(i) })
	add("impulses", func(i float64) float64 {
		if rng.IntN(500) == 0 {
			return 50 * noise(i)
		}
		return 0.1 * noise(i)
	})
	add("16 bits", func(i float64) float64 { return math.Round(3000*(wave(i)+0.3*noise(i))) / 3276.8 })
	add("dead", func(float64) float64 { return 0.1 })
	add("another noise", noise)
	add("modulated noise", func(i float64) float64 { return noise(i) * (1 + 0.5*math.Cos(2*math.Pi*i/800)) })
	return names, samples
}

// vibrations returns a layout of n channels at rate Hz.
func vibrations(t testing.TB, n int, rate float64) *Layout {
	t.Helper()
	var cs []Channel
	for i := range n {
		cs = append(cs, Channel{Name: fmt.Sprintf("c%02d", i), Kind: Vibration, Unit: "g", Rate: rate})
	}
	l, err := NewLayout("vibrations", cs)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// twins makes an Extractor compute everything in float64, and its features with
// all their digits.
func twins(e *Extractor, samples [][]float32, spindle float64) []float64 {
	e.board.sides = nil
	e.board.measure(samples, spindle)
	return values(e.board)
}

func values(b *board) []float64 {
	var out []float64
	for i := range b.channels {
		c := &b.channels[i]
		for _, e := range c.entries {
			for j := range len(e.suffixes(&c.measures)) {
				out = append(out, e.value(&c.measures, j))
			}
		}
	}
	return out
}

// scale returns the size that an error of a feature is measured by: the unit of
// a logarithm is 1, of a share 1, of a frequency half the rate, and of what has
// the unit of the channel how far this reaches.
func scale(e *entry, m *measures) float64 {
	peak := m.peak()
	switch e.unit {
	case "U":
		return peak
	case "U²":
		return peak * peak
	case "U/s":
		return peak / math.Sqrt(12*m.times)
	case "Hz", "1/s":
		return m.rate / 2
	case "log10 U²", "log10 1":
		return 1
	case "1":
		return 1
	}
	panic("signal: no scale for the unit " + e.unit)
}

// The panel, in float32, gives what the twin does, to 1e-5 of a feature's scale.
// What lies 100 dB below the strongest line is lost in float32: so is the
// coherence there.
func TestPanelAgainstTwin(t *testing.T) {
	for _, n := range []int{512, 1000, 5003, 20_000} {
		rng := rand.New(rand.NewPCG(uint64(n), 3))
		names, samples := signals(n, rng)
		l := vibrations(t, len(samples), 20_000)
		counts := slices.Repeat([]int{n}, len(samples))
		fast, err := NewExtractor(l, counts, everyFeature2)
		if err != nil {
			t.Fatal(err)
		}
		exact, err := NewExtractor(l, counts, everyFeature2)
		if err != nil {
			t.Fatal(err)
		}
		const rpm = 1500
		fast.Extract(nil, samples, Context{SpindleSpeed: rpm})
		want := twins(exact, samples, rpm/60)
		for i, v := range values(fast.board) {
			channel := fast.Channels(i)[0]
			if pair := fast.Channels(i); len(pair) == 2 && (quiet(names[pair[0]]) || quiet(names[pair[1]])) {
				continue
			}
			e := entryOf(strings.TrimPrefix(fast.Names()[i], l.channels[channel].Name+"."))
			tolerance := 1e-5 * max(scale(e, &exact.board.channels[channel].measures), math.Abs(want[i]))
			if !(math.Abs(v-want[i]) <= tolerance) && (v == v || want[i] == want[i]) {
				t.Errorf("%d samples, %s: %s = %.9g, twin has %.9g, off by %.2g of the scale", n, names[channel], fast.Names()[i], v, want[i],
					math.Abs(v-want[i])/tolerance*1e-5)
			}
		}
	}
}

// quiet reports whether a signal has nothing at the harmonics of the spindle.
func quiet(name string) bool { return name == "dead" || strings.Contains(name, "below them") }

// entryOf returns the family of a feature.
func entryOf(suffix string) *entry {
	for i := range registry {
		e := &registry[i]
		if e.name == suffix || e.several != nil && len(suffix) == len(e.suffix)+2 && strings.HasPrefix(suffix, e.suffix) {
			return e
		}
	}
	panic("signal: no family has a feature " + suffix)
}

// Neighbouring channels, more than a panel has lanes, and windows before do
// not change a bit of its features.
func TestChannelsDoNotMix(t *testing.T) {
	const n = 2000
	rng := rand.New(rand.NewPCG(11, 12))
	_, samples := signals(n, rng)
	samples = append(samples, samples[:6]...)
	l := vibrations(t, len(samples), 10_000)
	e, err := NewExtractor(l, slices.Repeat([]int{n}, len(samples)), FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	c := Context{SpindleSpeed: 900}
	all := e.Extract(nil, samples, c)
	alone, err := NewExtractor(vibrations(t, 1, 10_000), []int{n}, FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	names := alone.Names()
	for ch, x := range samples {
		for i, v := range alone.Extract(nil, [][]float32{x}, c) {
			name := fmt.Sprintf("c%02d.%s", ch, strings.TrimPrefix(names[i], "c00."))
			at := slices.Index(e.Names(), name)
			if math.Float32bits(all[at]) != math.Float32bits(v) {
				t.Errorf("%s = %v among others, %v alone", name, all[at], v)
			}
		}
	}
	if got := len(all) - len(samples)*len(names); got != len(samples)-1 {
		t.Errorf("%d coherences of %d channels", got, len(samples))
	}
	again := e.Extract(nil, samples, c)
	for i := range again {
		if math.Float32bits(again[i]) != math.Float32bits(all[i]) {
			t.Errorf("%s = %v, at first %v", e.Names()[i], again[i], all[i])
		}
	}
}

// A channel with missing samples goes to the twin, and what it has instead of
// numbers reaches no other channel.
func TestMissingSamplesOfVersion2(t *testing.T) {
	const n = 20_000
	rng := rand.New(rand.NewPCG(13, 14))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var samples [][]float32
	for range 6 {
		samples = append(samples, sample(n, func(float64) float64 { return rng.NormFloat64() }))
	}
	e, err := NewExtractor(vibrations(t, 6, 20_000), slices.Repeat([]int{n}, 6), everyFeature2)
	if err != nil {
		t.Fatal(err)
	}
	c := Context{SpindleSpeed: 3000}
	whole := e.Extract(nil, samples, c)
	for i := range n {
		if i%10 == 3 || i > 15_000 && i < 17_500 {
			samples[1][i] = nan
		}
		samples[3][i] = nan
	}
	samples[4][77] = inf
	for i, v := range e.Extract(nil, samples, c) {
		channel, name := e.Channels(i)[0], e.Names()[i]
		pair := len(e.Channels(i)) == 2
		switch {
		case channel >= 3 && (channel < 5 || pair): // one or both say nothing
			if v == v {
				t.Errorf("%s = %v, want NaN", name, v)
			}
		case channel != 1 && !pair:
			if math.Float32bits(v) != math.Float32bits(whole[i]) {
				t.Errorf("%s = %v next to a channel with gaps, %v without", name, v, whole[i])
			}
		case !pair && !strings.Contains(name, "harmonic") && !strings.Contains(name, "envelope") && !strings.HasSuffix(name, ".slope"):
			if math.Abs(float64(v-whole[i])) > 0.15*math.Max(1, math.Abs(float64(whole[i]))) { // noise, from 3/4 of it
				t.Errorf("%s = %v from 3/4 of the samples, %v of all", name, v, whole[i])
			}
		}
	}
}

// Closed forms: what a feature is must follow from its name.
func TestClosedFormsOfVersion2(t *testing.T) {
	nan := math.NaN()
	const n, rate = 20_480, 20_480
	get := func(x []float32, rpm float64) map[string]float64 {
		e, err := NewExtractor(oneChannel(t, Vibration, rate), []int{len(x)}, everyFeature2)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]float64)
		for i, v := range e.Extract(nil, [][]float32{x}, Context{SpindleSpeed: rpm}) {
			got[strings.TrimPrefix(e.Names()[i], "x.")] = float64(v)
		}
		return got
	}
	rng := rand.New(rand.NewPCG(15, 16))
	sine := sample(n, func(i float64) float64 { return 3 * math.Sin(2*math.Pi*i*1200/rate) })
	ring := sample(n, func(i float64) float64 { // 3.5 kHz, modulated by half, 40 times a second
		return (1 + 0.5*math.Cos(2*math.Pi*i*40/rate)) * math.Sin(2*math.Pi*i*3500/rate)
	})
	for name, tc := range map[string]struct {
		x         []float32
		rpm       float64
		tolerance float64
		want      map[string]float64
	}{
		"a sine of 1200 Hz, third harmonic of 400": {sine, 400 * 60, 1e-3, map[string]float64{
			"mean": 0, "variance": 4.5, "std": 3 / math.Sqrt2, "rms": 3 / math.Sqrt2, "peak": 3, "peak_to_peak": 6, "crest": math.Sqrt2,
			"shape": math.Pi / (2 * math.Sqrt2), "impulse": math.Pi / 2, "kurtosis": 1.5, "skewness": 0,
			"zero_crossings": 2400, "mobility": 2 * rate * math.Sin(math.Pi*1200/rate), "complexity": 1,
			"centroid": 1200, "harmonic03": math.Log10(4.5), "residual": 3 / math.Sqrt2,
		}},
		"without a speed": {sine, 0, 0, map[string]float64{"harmonic01": nan, "envelope01": nan}},
		"a modulation of ½ has sidebands of (2·½)²/2 and (½²/2)²/2 of (1 + ½²/2)², seen through the window": {ring, 40 * 60, 0.01, map[string]float64{
			// |z|² = w²(1 + ½cos)² = w²(9/8 + cos + ⅛ cos 2·): its lines are 1/2 and 1/16 high, 9/8 the mean;
			// of a line the three bins at Hann² hold (1 + 2·(2/3)²) of the middle one
			"envelope01": math.Log10(4. / 9 * 4. / 9 * (1 + 8./9)), "envelope02": math.Log10(1. / 18 * 1. / 18 * (1 + 8./9)),
		}},
		"white noise": {sample(n, func(float64) float64 { return rng.NormFloat64() }), 0, 0.06, map[string]float64{
			"centroid": rate / 4, "spread": rate / 2 / math.Sqrt(12), "rolloff": 0.85 * rate / 2, "entropy": 1, "kurtosis": 3,
			"packet01": math.Log10(1. / 16), "packet08": math.Log10(1. / 16), "packet16": math.Log10(1. / 16),
			"mobility": math.Sqrt2 * rate, "complexity": math.Sqrt(6) / 2,
			"zero_crossings": rate / 2,
		}},
		"a ramp": {sample(n, func(i float64) float64 { return i / rate }), 0, 1e-4, map[string]float64{
			"slope": 1, "residual": 0, "mean": 0.5, "min": 0, "max": 1,
		}},
		"a channel that does not move": {sample(n, func(float64) float64 { return 0.1 }), 1200, 1e-5, map[string]float64{
			"std": 0, "slope": 0, "residual": 0, "crest": 1, "shape": 1, "clearance": 1, "skewness": nan, "kurtosis": nan, "mobility": nan, "complexity": nan,
			"zero_crossings": 0, "centroid": nan, "rolloff": nan, "flatness": nan, "entropy": nan, "band01": nan, "harmonic01": nan,
			"envelope_depth": nan, "envelope_centroid": nan, "packet01": nan,
		}},
	} {
		got := get(tc.x, tc.rpm)
		for f, want := range tc.want {
			if v, ok := got[f]; !ok || !near(v, want, tc.tolerance) {
				t.Errorf("%s: %s = %v, want %v", name, f, v, want)
			}
		}
	}
}

// A tone in the middle of a packet's band is greatest in that packet.
func TestPacketsAreInOrderOfFrequency(t *testing.T) {
	const n = 4096
	e, err := NewExtractor(oneChannel(t, Vibration, n), []int{n}, FeatureSpec{Version: 2, Set: []string{"packets"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range packetCount {
		hz := (float64(i) + 0.5) * n / 2 / packetCount
		got := e.Extract(nil, [][]float32{sample(n, func(i float64) float64 { return math.Sin(2 * math.Pi * hz * i / n) })}, Context{})
		for j, v := range got {
			if v > got[i] {
				t.Errorf("%v Hz: packet %d has %v, packet %d only %v", hz, j+1, v, i+1, got[i])
			}
		}
	}
}

// Two channels that hear the same are coherent, two that do not are not.
func TestCoherence(t *testing.T) {
	const n = 20_000
	rng := rand.New(rand.NewPCG(17, 18))
	noise := func() []float32 { return sample(n, func(float64) float64 { return rng.NormFloat64() }) }
	turns := func(gain, phase float64) []float32 {
		return sample(n, func(i float64) float64 {
			t := 2 * math.Pi * 30 * i / n
			return gain*(math.Cos(t+phase)+math.Cos(2*t+3*phase)+math.Cos(3*t)+math.Cos(4*t+phase)) + 0.01*rng.NormFloat64()
		})
	}
	e, err := NewExtractor(vibrations(t, 4, n), slices.Repeat([]int{n}, 4), FeatureSpec{Version: 2, Set: []string{"coherence"}})
	if err != nil {
		t.Fatal(err)
	}
	got := e.Extract(nil, [][]float32{turns(1, 0), turns(-0.3, 1), noise(), noise()}, Context{SpindleSpeed: 30 * 60})
	if got[0] < 0.999 || got[1] > 0.5 || got[2] > 0.5 {
		t.Errorf("coherence %v, want 1 of the same turns, little of noise", got)
	}
	if got := e.Extract(nil, [][]float32{turns(1, 0), turns(1, 1), noise(), noise()}, Context{}); got[0] == got[0] {
		t.Errorf("coherence %v without a speed", got[0])
	}
}

func TestVersion2AllocatesNothing(t *testing.T) {
	l, counts, window := gunDrillWindow()
	e, err := NewExtractor(l, counts, FeatureSpec{Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, len(e.Names()))
	c := Context{SpindleSpeed: 1650}
	if n := testing.AllocsPerRun(3, func() { e.Extract(dst, window, c) }); n != 0 {
		t.Errorf("%v allocations a window", n)
	}
	window[3][7] = float32(math.NaN()) // to the twin
	if n := testing.AllocsPerRun(2, func() { e.Extract(dst, window, c) }); n != 0 {
		t.Errorf("%v allocations a window with a sample missing", n)
	}
}
