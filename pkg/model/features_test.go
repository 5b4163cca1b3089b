package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/window"
)

// drillModel returns a model of the gun drill's windows by a list of features, without a
// classifier.
func drillModel(list signal.FeatureSpec) *Model {
	layout := signal.GunDrill()
	m := &Model{Layout: layout, Window: window.DefaultSpec, Features: list, Usual: make([]signal.Quality, len(layout.Channels()))}
	c := window.CuttingOf(layout, samplesOf(m))
	m.Cycle, m.Gate = c.Cycle, &Gate{Channel: c.Gate, Threshold: 1}
	return m
}

func samplesOf(m *Model) (samples []int) {
	for _, c := range m.Layout.Channels() {
		samples = append(samples, m.Window.Samples(c.Rate))
	}
	return samples
}

func noise(m *Model) *window.Window {
	rng := rand.New(rand.NewPCG(7, 8))
	w := &window.Window{Context: signal.Context{Machine: "m", Tool: "T1", SpindleSpeed: 1650}, Start: time.Unix(5, 0).UTC(), Length: m.Window.Length}
	for i, n := range samplesOf(m) {
		w.Samples = append(w.Samples, make([]float32, n))
		for k := range w.Samples[i] {
			w.Samples[i][k] = 5 + float32(rng.NormFloat64())
		}
		w.Quality = append(w.Quality, signal.Quality(i%3))
	}
	w.Samples[2][7] = float32(math.NaN())
	return w
}

// What a judge takes from sealed features is what it takes from the window, bit by bit: by the
// default list, a list of its own, and with a cutting state of its own.
func TestTakeIsObserve(t *testing.T) {
	few := drillModel(signal.FeatureSpec{})
	few.Cycle = &cycle.Model{Frames: 5, Inputs: []cycle.Input{{Channel: "torque", Measure: cycle.Mean}}}
	gated := drillModel(signal.FeatureSpec{})
	gated.Cycle, gated.Gate = nil, &Gate{Channel: "torque", Threshold: 2}
	plain := drillModel(signal.FeatureSpec{})
	plain.Cycle, plain.Gate = nil, nil
	for name, tc := range map[string]struct {
		m        *Model
		byLayout bool // the features that any program extracts from windows of the layout will do
	}{
		"default":             {drillModel(signal.FeatureSpec{}), true},
		"a set":               {drillModel(signal.FeatureSpec{Set: []string{"rms"}}), true},
		"a set of its own":    {drillModel(signal.FeatureSpec{Set: []string{"min", "rms"}}), false},
		"a cycle of its own":  {few, false},
		"a gate of its own":   {gated, false},
		"without any cutting": {plain, true},
	} {
		m, w := tc.m, noise(tc.m)
		form, err := m.Form()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var x, opened window.Features
		form.NewExtractor().Extract(w, &x)
		e, err := form.Seal(&x)
		if err == nil {
			err = form.Open(e, &opened)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var want, got Observation
		j := m.NewJudge()
		j.Observe(w, &want)
		if err := j.Take(&opened, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
		if got.Tool != want.Tool || !got.Start.Equal(want.Start) || math.Float64bits(got.Level) != math.Float64bits(want.Level) || !slices.Equal(got.Quality, want.Quality) ||
			!slices.EqualFunc(got.Frames, want.Frames, same) || !slices.EqualFunc(got.Features, want.Features, same) {
			t.Errorf("%s: features give %+v, the window %+v", name, got, want)
		}
		byLayout, err := window.NewForm(m.Layout, m.Window, signal.FeatureSpec{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch err := m.Covers(byLayout); {
		case tc.byLayout && err != nil, !tc.byLayout && !errors.Is(err, ErrUnfit):
			t.Errorf("%s: the layout's own features: %v", name, err)
		}
	}
}

// Features that do not do for a model are refused with what is missing.
func TestCoversNamesWhatIsMissing(t *testing.T) {
	m := drillModel(signal.FeatureSpec{})
	for text, form := range map[string]func() (*window.Form, error){
		"trained on windows of 1s, these have 2s": func() (*window.Form, error) {
			return window.NewForm(m.Layout, window.Spec{Length: 2 * time.Second}, signal.FeatureSpec{}, nil)
		},
		`it takes feature "ch01.peak"`: func() (*window.Form, error) {
			return window.NewForm(m.Layout, m.Window, signal.FeatureSpec{Set: []string{"rms"}}, nil)
		},
		"tells cutting by": func() (*window.Form, error) {
			return window.NewForm(m.Layout, m.Window, signal.FeatureSpec{}, &window.Cutting{})
		},
	} {
		f, err := form()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Covers(f); !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}
