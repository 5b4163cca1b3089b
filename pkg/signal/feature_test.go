package signal

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plainFamilies are families of which every feature has a closed form, or a gain that is plain to see.
var plainFamilies = FeatureSpec{Set: []string{"mean", "std", "rms", "min", "max", "peak", "peak_to_peak", "slope", "crest", "skewness", "kurtosis", "bands", "centroid"}}

// oneChannel returns a layout of a single channel "x".
func oneChannel(t testing.TB, k Kind, rate float64) *Layout {
	t.Helper()
	l, err := NewLayout("test", []Channel{{Name: "x", Kind: k, Rate: rate}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// features returns the plain features of x by its name without the channel.
func features(t testing.TB, x []float32, rate float64) map[string]float64 {
	t.Helper()
	e, err := NewExtractor(oneChannel(t, Vibration, rate), []int{len(x)}, plainFamilies)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for i, v := range e.Extract(nil, [][]float32{x}, Context{}) {
		got[strings.TrimPrefix(e.Names()[i], "x.")] = float64(v)
	}
	return got
}

func sample(n int, f func(i float64) float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(f(float64(i)))
	}
	return x
}

func near(got, want, tol float64) bool {
	return math.Abs(got-want) <= tol*max(1, math.Abs(want)) || got != got && want != want
}

func TestFeatureClosedForms(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		x    []float32
		rate float64
		want map[string]float64
	}{
		"sine over whole periods: A/√2, crest √2, kurtosis 3/2, A²/2 in its band": {
			sample(20_480, func(i float64) float64 { return 3 * math.Sin(2*math.Pi*i*1200/20_480) }), 20_480,
			map[string]float64{
				"mean": 0, "std": 3 / math.Sqrt2, "rms": 3 / math.Sqrt2, "peak": 3, "peak_to_peak": 6, "crest": math.Sqrt2,
				"skewness": 0, "kurtosis": 1.5, "centroid": 1200, "band06": math.Log10(4.5),
			},
		},
		"one impulse in n samples: crest √n, kurtosis n less what the mean takes": {
			sample(4096, func(i float64) float64 {
				if i == 512 {
					return 8
				}
				return 0
			}), 4096,
			// with p = 1/n: m_2 = 64p(1−p), m_4/m_2² = (1 − 3p + 3p²)/(p(1−p))
			map[string]float64{
				"mean": 8. / 4096, "rms": 8 / math.Sqrt(4096), "peak": 8, "crest": 64,
				"std":      8 * math.Sqrt(4095) / 4096,
				"kurtosis": (1 - 3./4096 + 3./4096/4096) / (1. / 4096 * (1 - 1./4096)),
				"skewness": (1 - 2./4096) / math.Sqrt(1./4096*(1-1./4096)),
			},
		},
		"±2 by turns: peak = rms, kurtosis 1, all at half the rate": {
			sample(4096, func(i float64) float64 { return 2 - 4*math.Mod(i, 2) }), 100,
			map[string]float64{
				"mean": 0, "rms": 2, "crest": 1, "kurtosis": 1, "skewness": 0,
				"band10": math.Log10(4),
			},
		},
		"ramp of 0.5 a sample at 10 Hz rises by 5 a second": {
			sample(21, func(i float64) float64 { return 7 + i/2 }), 10,
			map[string]float64{"mean": 12, "slope": 5, "min": 7, "max": 17, "peak_to_peak": 10, "std": math.Sqrt((21*21 - 1) / 48.)},
		},
		"a channel that does not move has no shape": {
			sample(100, func(float64) float64 { return 0.1 }), 100,
			map[string]float64{
				"mean": float64(float32(0.1)), "std": 0, "slope": 0, "crest": 1, "peak_to_peak": 0,
				"skewness": nan, "kurtosis": nan, "centroid": nan, "band01": nan, "band07": nan,
			},
		},
		"silence has no crest either": {
			make([]float32, 64), 100,
			map[string]float64{"rms": 0, "peak": 0, "crest": nan},
		},
		"a single sample has no slope": {
			[]float32{-4}, 1,
			map[string]float64{"mean": -4, "std": 0, "rms": 4, "peak": 4, "min": -4, "max": -4, "slope": nan},
		},
		"the fourth power of a great number fits, its mean square does not": {
			[]float32{-1e38, 1e38}, 1,
			map[string]float64{"rms": 1e38, "kurtosis": 1, "peak_to_peak": 2e38, "slope": 2e38},
		},
		"beyond the range of float32": {
			[]float32{-3e38, 3e38}, 1,
			map[string]float64{"rms": 3e38, "peak_to_peak": nan},
		},
	} {
		got := features(t, tc.x, tc.rate)
		for f, want := range tc.want {
			v, ok := got[f]
			if !ok {
				t.Errorf("%s: no feature %s", name, f)
			} else if !near(v, want, 2e-6) {
				t.Errorf("%s: %s = %v, want %v", name, f, v, want)
			}
		}
	}
}

// wave is the signal of the reference values.
func wave(i float64) float64 {
	return math.Sin(0.37*i) + 0.5*math.Cos(1.3*i+1) + 0.1*math.Mod(i, 7)
}

// The values are from NumPy 2.4.6 and SciPy 1.17.1: mean, std, polyfit, stats.skew,
// stats.kurtosis(fisher=False).
func TestFeaturesAgainstSciPy(t *testing.T) {
	for name, tc := range map[string]struct {
		n    int
		rate float64
		want map[string]float64
	}{
		"2048 samples at 2 kHz": {2048, 2000, map[string]float64{
			"mean": 0.3019414605, "std": 0.815308008553, "rms": 0.869422678781, "min": -1.47864377499, "max": 2.09707427025,
			"skewness": -0.00579080702516, "kurtosis": 2.0912173008, "slope": -0.000818426555076,
		}},
		"20 samples at 10 Hz": {20, 10, map[string]float64{
			"mean": 0.349831618, "std": 0.8199573068, "rms": 0.8914662898, "min": -0.859632194, "max": 1.894151926, "slope": -0.3816893199,
		}},
	} {
		got := features(t, sample(tc.n, wave), tc.rate)
		for f, want := range tc.want {
			// float32 keeps 6e-8 of a value; the sine of another libm may differ in the last bit of x
			if !near(got[f], want, 3e-7) {
				t.Errorf("%s: %s = %.10g, want %.10g", name, f, got[f], want)
			}
		}
	}
}

// unitless lists the features without a unit, which no gain changes.
var unitless = []string{"crest", "skewness", "kurtosis", "centroid"}

func TestFeatureInvariances(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := sample(3000, func(i float64) float64 { return wave(i) + 0.3*rng.NormFloat64() })
	was := features(t, x, 1000)
	rapid.Check(t, func(r *rapid.T) {
		gain := math.Exp2(float64(rapid.IntRange(-20, 20).Draw(r, "log2 gain"))) // exact in float32
		scaled := features(t, sample(len(x), func(i float64) float64 { return gain * float64(x[int(i)]) }), 1000)
		for f, v := range was {
			want, tol := gain*v, 1e-6
			if slices.Contains(unitless, f) {
				want = v
			} else if strings.HasPrefix(f, "band") {
				want, tol = v+2*math.Log10(gain), 1e-6*max(1, 1/math.Abs(v+2*math.Log10(gain))) // the logarithm may be near 0
			}
			if math.Abs(scaled[f]-want) > tol*math.Abs(want) {
				r.Errorf("gain %v: %s = %v, want %v", gain, f, scaled[f], want)
			}
		}

		shift := float64(rapid.IntRange(-1000, 1000).Draw(r, "shift"))
		shifted := features(t, sample(len(x), func(i float64) float64 { return float64(x[int(i)]) + shift }), 1000)
		for _, f := range []string{"std", "peak_to_peak", "slope", "skewness", "kurtosis", "centroid", "band01", "band10"} {
			if !near(shifted[f], was[f], 2e-4) { // x + 1000 keeps 6e-5
				r.Errorf("shift %v: %s = %v, want %v", shift, f, shifted[f], was[f])
			}
		}
		for _, f := range []string{"mean", "min", "max"} {
			if !near(shifted[f], was[f]+shift, 1e-4) {
				r.Errorf("shift %v: %s = %v, want %v", shift, f, shifted[f], was[f]+shift)
			}
		}
	})
}

func TestMissingSamples(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	rng := rand.New(rand.NewPCG(3, 4))
	noise := sample(20_000, func(float64) float64 { return rng.NormFloat64() })

	whole := features(t, noise, 20_000)
	holed := slices.Clone(noise)
	for i := range holed {
		if i%10 == 3 || i > 15_000 && i < 17_500 {
			holed[i] = nan
		}
	}
	for f, v := range features(t, holed, 20_000) {
		tol := map[bool]float64{false: 0.1, true: 0.15}[strings.HasPrefix(f, "band")] // of noise, from 3/4 of the samples
		if f != "slope" && !near(v, whole[f], tol) {
			t.Errorf("with gaps: %s = %v, without %v", f, v, whole[f])
		}
	}

	ramp := sample(50, func(i float64) float64 { return 2 * i })
	ramp[0], ramp[17], ramp[18] = nan, nan, nan
	if got := features(t, ramp, 10); got["slope"] != 20 || got["min"] != 2 {
		t.Errorf("ramp with gaps: slope %v, min %v, want 20, 2", got["slope"], got["min"])
	}

	for name, bad := range map[string]float32{"no sample": nan, "infinite": inf, "minus infinite": -inf} {
		x := slices.Clone(noise[:2000])
		if bad == bad {
			x[77] = bad
		} else {
			for i := range x {
				x[i] = nan
			}
		}
		for f, v := range features(t, x, 20_000) {
			if v == v {
				t.Errorf("%s: %s = %v, want NaN", name, f, v)
			}
		}
	}
}

func TestFeatureNames(t *testing.T) {
	few := []string{"mean", "std", "rms", "min", "max", "slope"}
	bands := []string{"band01", "band02", "band03", "band04", "band05", "band06", "band07", "band08", "band09", "band10"}
	for name, tc := range map[string]struct {
		kind    Kind
		samples int
		set     []string
		want    []string
	}{
		"vibration":                         {Vibration, 20_000, []string{"rms", "peak", "crest", "skewness", "kurtosis", "bands", "centroid"}, slices.Concat([]string{"rms", "peak", "crest", "skewness", "kurtosis"}, bands, []string{"centroid"})},
		"thrust at 100 Hz":                  {Force, 100, nil, []string{"mean", "std", "rms", "peak_to_peak", "slope", "residual"}},
		"force at 10 kHz":                   {Force, 10_000, []string{"mean", "std", "rms", "peak_to_peak", "slope", "bands", "centroid"}, slices.Concat([]string{"mean", "std", "rms", "peak_to_peak", "slope"}, bands, []string{"centroid"})},
		"few samples":                       {Vibration, 20, nil, few},
		"one sample":                        {Current, 1, nil, []string{"mean"}},
		"shortest spectrum has seven bands": {Vibration, 64, []string{"bands"}, bands[:7]},
		"order of the list, not of the set": {Torque, 10, []string{"rms", "mean"}, []string{"mean", "rms"}},
		"no spectrum from few samples":      {Vibration, 63, []string{"bands", "rms"}, []string{"rms"}},
	} {
		e, err := NewExtractor(oneChannel(t, tc.kind, 100), []int{tc.samples}, FeatureSpec{Set: tc.set})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range tc.want {
			tc.want[i] = "x." + strings.TrimPrefix(tc.want[i], "x.")
		}
		if !slices.Equal(e.Names(), tc.want) {
			t.Errorf("%s: %v, want %v", name, e.Names(), tc.want)
		}
		if s := e.Spec(); s.Version != FeatureVersion || !slices.Equal(s.Set, tc.set) {
			t.Errorf("%s: spec %+v", name, s)
		}
	}
}

func TestFeatureChannel(t *testing.T) {
	l, err := NewLayout("turning", []Channel{{Name: "ra", Kind: Feature, Rate: 1}, {Name: "x", Kind: Current, Rate: 1}, {Name: "rz", Kind: Feature, Rate: 2}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExtractor(l, []int{1, 1, 2}, FeatureSpec{Set: []string{"max"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ra", "x.max", "rz"}; !slices.Equal(e.Names(), want) {
		t.Errorf("names %v, want %v", e.Names(), want)
	}
	got := e.Extract(nil, [][]float32{{0.1}, {3}, {1, 4}}, Context{})
	if want := []float32{0.1, 3, 2.5}; !slices.Equal(got, want) {
		t.Errorf("features %v, want %v: the value itself, bit for bit", got, want)
	}
	for i, want := range []int{0, 1, 2} {
		if got := e.Channels(i); !slices.Equal(got, []int{want}) {
			t.Errorf("feature %d is of channels %v, want %d", i, got, want)
		}
	}
}

func TestExtractorRejects(t *testing.T) {
	two := func(a, b Channel) *Layout {
		l, err := NewLayout("", []Channel{a, b})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	x, y := Channel{Name: "x", Kind: Force, Rate: 10}, Channel{Name: "x.rms", Kind: Feature, Rate: 10}
	for name, tc := range map[string]struct {
		layout *Layout
		spec   FeatureSpec
		want   []string
	}{
		"unknown family":   {oneChannel(t, Force, 10), FeatureSpec{Set: []string{"rms", "krutosis"}}, []string{`"krutosis"`, "kurtosis, zero_crossings"}},
		"older version":    {oneChannel(t, Force, 10), FeatureSpec{Version: 1}, []string{"version 1", "computes version 2: train the model again with this release"}},
		"twice":            {oneChannel(t, Force, 10), FeatureSpec{Set: []string{"rms", "rms"}}, []string{`"rms" is listed twice`}},
		"newer version":    {oneChannel(t, Force, 10), FeatureSpec{Version: 3}, []string{"version 3", "computes version 2"}},
		"nothing is left":  {oneChannel(t, Force, 10), FeatureSpec{Set: []string{"bands"}}, []string{"64 samples", "longer windows"}},
		"one name for two": {two(x, y), FeatureSpec{Set: []string{"rms"}}, []string{`"x"`, `"x.rms"`, "rename"}},
	} {
		samples := make([]int, len(tc.layout.Channels()))
		for i := range samples {
			samples[i] = 20
		}
		_, err := NewExtractor(tc.layout, samples, tc.spec)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
}

func TestExtractPanicsOnWrongShape(t *testing.T) {
	e, err := NewExtractor(oneChannel(t, Force, 10), []int{20}, FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for name, samples := range map[string][][]float32{"no channel": {}, "short": {make([]float32, 19)}, "long": {make([]float32, 21)}} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "signal: Extract: ") {
					t.Errorf("%s: recovered %q", name, s)
				}
			}()
			e.Extract(nil, samples, Context{})
		}()
	}
}

// gunDrillWindow returns a second of every channel of the gun drill.
func gunDrillWindow() (*Layout, []int, [][]float32) {
	l := GunDrill()
	rng := rand.New(rand.NewPCG(5, 6))
	var counts []int
	var window [][]float32
	for c, ch := range l.Channels() {
		n := int(ch.Rate)
		counts = append(counts, n)
		window = append(window, sample(n, func(i float64) float64 {
			return float64(c) + wave(i*(1+float64(c)/10)) + 0.2*rng.NormFloat64()
		}))
	}
	return l, counts, window
}

func TestExtractAllocatesNothing(t *testing.T) {
	l, counts, window := gunDrillWindow()
	e, err := NewExtractor(l, counts, FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, len(e.Names()))
	if n := testing.AllocsPerRun(3, func() { e.Extract(dst, window, Context{}) }); n != 0 {
		t.Errorf("%v allocations a window", n)
	}
	first := slices.Clone(e.Extract(dst, window, Context{}))
	was := window[0][0]
	window[0][0] += 100
	e.Extract(dst, window, Context{})
	window[0][0] = was
	if again := e.Extract(nil, window, Context{}); !slices.EqualFunc(first, again, sameBits) {
		t.Error("features depend on the window before")
	}
}

// What a version of the feature list computes stays as it is, to the bit and in every family of kernels: models compare
// with what they were trained on. Other processors may round what is in float64 another way.
func TestExtractKeepsItsBits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("bits were taken on amd64")
	}
	l, counts, window := gunDrillWindow()
	for _, tc := range []struct {
		samples int // of a second's; fewer have shorter transforms
		want    uint64
	}{{20_000, 0x2070d6a8b01136f3}, {10_007, 0x8667b42d7f8884ed}, {5000, 0xc0f0d2145d4d0364}, {2100, 0xb5076bc7bebcdeea}, {1024, 0xc44160f534dd021c}, {600, 0x179d2d776f56e521}} {
		var part [][]float32
		for i, x := range window {
			counts[i] = min(len(x), tc.samples)
			part = append(part, x[:counts[i]])
		}
		e, err := NewExtractor(l, counts, FeatureSpec{})
		if err != nil {
			t.Fatal(err)
		}
		hash := fnv.New64a()
		for _, v := range e.Extract(nil, part, Context{SpindleSpeed: 1650}) {
			if v != v {
				v = -1e30 // NaN has several
			}
			hash.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
		if got := hash.Sum64(); got != tc.want {
			t.Errorf("%d samples: features hash to %#x, want %#x", tc.samples, got, tc.want)
		}
	}
}

func ExampleExtractor() {
	layout, _ := NewLayout("lathe", []Channel{
		{Name: "thrust", Kind: Force, Unit: "N", Rate: 4},
		{Name: "power", Kind: Feature, Unit: "W", Rate: 1},
	})
	e, err := NewExtractor(layout, []int{4, 1}, FeatureSpec{Set: []string{"mean", "slope"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	features := e.Extract(nil, [][]float32{{400, 410, 420, 430}, {1250}}, Context{})
	for i, name := range e.Names() {
		fmt.Println(name, features[i])
	}
	// Output:
	// thrust.mean 415
	// thrust.slope 40
	// power 1250
}

func BenchmarkExtract(b *testing.B) {
	l, counts, window := gunDrillWindow()
	e, err := NewExtractor(l, counts, FeatureSpec{})
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]float32, len(e.Names()))
	b.ReportAllocs()
	for b.Loop() {
		e.Extract(dst, window, Context{SpindleSpeed: 1650})
	}
}

// A spindle speed is what someone says: of one that no spindle has, what follows the spindle is missing, and nothing else.
func TestSpindleSpeedBeyondAllBins(t *testing.T) {
	l, err := NewLayout("l", []Channel{{Name: "a", Kind: Vibration, Rate: 20_000}, {Name: "b", Kind: Vibration, Rate: 20_000}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{20_000, 320} { // by a panel, and by twins
		e, err := NewExtractor(l, []int{n, n}, everyFeature2)
		if err != nil {
			t.Fatal(err)
		}
		samples := [][]float32{sample(n, wave), sample(n, func(i float64) float64 { return wave(i * 1.1) })}
		want := e.Extract(nil, samples, Context{})
		for _, rpm := range []float64{1e21, 1e300, math.MaxFloat64, math.Inf(1), -1e300, math.NaN()} {
			for i, v := range e.Extract(nil, samples, Context{SpindleSpeed: rpm}) {
				if math.Float32bits(v) != math.Float32bits(want[i]) {
					t.Errorf("%d samples at %v rev/min: %s is %v, without a speed %v", n, rpm, e.Names()[i], v, want[i])
				}
			}
		}
	}
}
