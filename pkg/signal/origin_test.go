package signal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Each feature that Flank computes becomes, if all samples are multiplied by a factor, what its
// Gain says.
func TestGainsAgainstScaledSamples(t *testing.T) {
	l := layoutOf(t, Channel{Name: "acc", Kind: Vibration, Rate: 2000}, Channel{Name: "acc2", Kind: Vibration, Rate: 2000}, Channel{Name: "thrust", Kind: Force, Rate: 100})
	counts := []int{2000, 2000, 100}
	e, err := NewExtractor(l, counts, FeatureSpec{Set: registryNames()})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		f := rapid.Float64Range(0.5, 2).Draw(t, "factor")
		x, scaled := make([][]float32, 3), make([][]float32, 3)
		for i, n := range counts {
			for k := range n {
				v := float32(3*math.Sin(2*math.Pi*25*float64(k)/l.channels[i].Rate) + 0.4*rng.NormFloat64() + 1 + float64(k)/float64(n))
				x[i], scaled[i] = append(x[i], v), append(scaled[i], float32(float64(v)*f))
			}
		}
		c := Context{SpindleSpeed: 1500}
		before := slices.Clone(e.Extract(nil, x, c))
		for i, got := range e.Extract(nil, scaled, c) {
			o := e.Origins()[i]
			want := o.Gain.Scale(float64(before[i]), f)
			if math.Abs(float64(got)-want) > 2e-3*max(1, math.Abs(want)) || before[i] != before[i] && got == got {
				t.Fatalf("%s of %v times the samples is %v, want %v; of the samples it is %v", e.Names()[i], f, got, want, before[i])
			}
			if pair := e.Channels(i); len(pair) > 1 != (o.Other != "") || len(pair) > 1 && o.Other != l.channels[pair[1]].Name {
				t.Fatalf("%s of channels %v: the other sensor is %q", e.Names()[i], pair, o.Other)
			}
			if !o.Samples || o.Sensor != l.channels[e.Channels(i)[0]].Name {
				t.Fatalf("%s is of %+v", e.Names()[i], o)
			}
		}
	})
}

func layoutOf(t *testing.T, channels ...Channel) *Layout {
	t.Helper()
	l, err := NewLayout("test", channels)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOrigins(t *testing.T) {
	level, square, none := Gain{Power: 1}, Gain{Power: 2}, Gain{}
	for name, want := range map[string]FeatureOrigin{
		"F_c_RMS":            {Sensor: "F_c", Group: "F", Gain: level},
		"F_c_KURT":           {Sensor: "F_c", Group: "F", Gain: none},
		"TV2.Z_MAX":          {Sensor: "TV2.Z", Gain: level},
		"AE_VAR":             {Sensor: "AE", Gain: square},
		"AE_C_0.1":           {Sensor: "AE", Gain: none},
		"AE_CF":              {Sensor: "AE", Gain: none},
		"acc_1_energy":       {Sensor: "acc_1", Group: "acc", Gain: square},
		"load":               {Sensor: "load", Gain: level},
		"sensor_1":           {Sensor: "sensor_1", Group: "sensor", Gain: level},
		"ch01.rms":           {Sensor: "ch01", Gain: level},
		"ch01.peak_to_peak":  {Sensor: "ch01", Gain: level},
		"ch01.band03":        {Sensor: "ch01", Gain: Gain{Power: 2, Decades: true}},
		"CON.SV2.S":          {Sensor: "CON.SV2.S", Gain: level},
		"acc_x.envelope02":   {Sensor: "acc_x", Group: "acc", Gain: Gain{Decades: true}},
		"spindle_load_mean":  {Sensor: "spindle_load", Group: "spindle", Gain: level},
		"spindle_load_other": {Sensor: "spindle_load_other", Group: "spindle_load", Gain: level}, // of no feature that is known
		"F_c":                {Sensor: "F_c", Group: "F", Gain: level},
		"F_c_peak_to_peak":   {Sensor: "F_c", Group: "F", Gain: level},
		"AE_MAX_2":           {Sensor: "AE", Gain: level},
		"acc.RMS":            {Sensor: "acc", Gain: level},
		"_":                  {Sensor: "_", Gain: level},
	} {
		if got := originOf(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	l := layoutOf(t, Channel{Name: "F_c_RMS", Kind: Feature, Rate: 1, Sensor: "dynamometer", Unit: "N"}, Channel{Name: "thrust", Kind: Force, Rate: 100, Sensor: "cell"})
	e, err := NewExtractor(l, []int{1, 100}, FeatureSpec{Set: []string{"rms"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []FeatureOrigin{{Sensor: "dynamometer", Group: "N", Gain: level}, {Sensor: "cell", Group: "force", Gain: level, Samples: true}}
	if got := e.Origins(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
