package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/window"
)

// kinds returns models of a layout, with the channels torque and ch01, that take different
// features, by what they take.
func kinds(layout *signal.Layout) map[string]*Model {
	drillModel := func(list signal.FeatureSpec) *Model {
		m := drillModel(list)
		m.Layout, m.Usual = layout, make([]signal.Quality, len(layout.Channels()))
		m.Cycle = window.CuttingOf(layout, samplesOf(m)).Cycle
		return m
	}
	all := map[string]*Model{
		"default":      drillModel(signal.FeatureSpec{}),
		"rms":          drillModel(signal.FeatureSpec{Set: []string{"rms"}}),
		"min":          drillModel(signal.FeatureSpec{Set: []string{"min", "rms"}}),
		"packets":      drillModel(signal.FeatureSpec{Set: []string{"packets", "shape"}}),
		"version 1":    drillModel(signal.FeatureSpec{Version: 1}),
		"version 99":   drillModel(signal.FeatureSpec{Version: 99}),
		"no such":      drillModel(signal.FeatureSpec{Set: []string{"horsepower"}}),
		"longer":       drillModel(signal.FeatureSpec{}),
		"hop":          drillModel(signal.FeatureSpec{Set: []string{"min"}}),
		"no cutting":   drillModel(signal.FeatureSpec{}),
		"gate":         drillModel(signal.FeatureSpec{}),
		"gate of ch01": drillModel(signal.FeatureSpec{}),
		"five frames":  drillModel(signal.FeatureSpec{}),
		"min, no gate": drillModel(signal.FeatureSpec{Set: []string{"min"}}),
	}
	all["longer"].Window.Length = 2 * time.Second
	all["hop"].Window.Hop = 500 * time.Millisecond
	all["no cutting"].Cycle, all["no cutting"].Gate = nil, nil
	all["gate"].Cycle, all["gate"].Gate = nil, &Gate{Channel: "torque"}
	all["gate of ch01"].Cycle, all["gate of ch01"].Gate = nil, &Gate{Channel: "ch01"}
	all["five frames"].Cycle, all["five frames"].Gate = &cycle.Model{Frames: 5, Inputs: []cycle.Input{{Channel: "torque", Measure: cycle.Mean}}}, nil
	all["min, no gate"].Gate = nil
	return all
}

// Models judge together by the default features and what they take beyond them. One that does
// not go with those before it is left out, with the reason, and the others judge.
func TestJointForm(t *testing.T) {
	all := kinds(signal.GunDrill())
	plain, err := all["default"].Form()
	if err != nil {
		t.Fatal(err)
	}
	for models, want := range map[string]struct {
		unfit  map[string]string // by model
		extra  int               // features beyond the default ones
		format string            // "default": the form is the default one
	}{
		"default":                       {format: "default"},
		"default|rms|no cutting":        {format: "default"},
		"rms":                           {format: "default"},
		"default|min":                   {extra: 14},
		"min|default|hop":               {extra: 14},
		"hop|min|default":               {extra: 14},
		"default|version 1":             {unfit: map[string]string{"version 1": "version 1: this program computes version 2"}, format: "default"},
		"default|min|version 1|hop":     {unfit: map[string]string{"version 1": "version 1"}, extra: 14},
		"version 1|default|min":         {unfit: map[string]string{"version 1": "version 1"}, extra: 14},
		"version 99|default":            {unfit: map[string]string{"version 99": "computes version 2"}, format: "default"},
		"default|no such":               {unfit: map[string]string{"no such": "horsepower"}, format: "default"},
		"default|longer":                {unfit: map[string]string{"longer": "trained on windows of 2s, these have 1s"}, format: "default"},
		"default|gate|min":              {unfit: map[string]string{"gate": "tells cutting by another channel"}, extra: 14},
		"gate|min|gate of ch01":         {unfit: map[string]string{"min": "tells cutting by another channel", "gate of ch01": "tells cutting by another channel"}},
		"gate|min, no gate|five frames": {unfit: map[string]string{"five frames": "other frames"}, extra: 14},
		"five frames|gate|no cutting":   {},
		"no such|version 99":            {unfit: map[string]string{"no such": "horsepower", "version 99": "version 99"}, format: "none"},
	} {
		var given []*Model
		names := strings.Split(models, "|")
		for _, name := range names {
			given = append(given, all[name])
		}
		form, unfit := JointForm(given)
		if form == nil || want.format == "none" {
			if form != nil || want.format != "none" {
				t.Errorf("%s: form %v", models, form)
			}
			continue
		}
		if got := len(form.Names()) - len(plain.Names()); got != want.extra || (want.format == "default") != (form.Fingerprint() == plain.Fingerprint()) {
			t.Errorf("%s: %d features more than the default", models, got)
		}
		for i, name := range names {
			text := want.unfit[name]
			switch err := unfit[i]; {
			case text == "" && (err != nil || given[i].Covers(form) != nil):
				t.Errorf("%s: %s: %v, %v", models, name, err, given[i].Covers(form))
			case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
				t.Errorf("%s: %s: %v, want %s", models, name, err, text)
			}
		}
	}
	if form, unfit := JointForm(nil); form != nil || len(unfit) != 0 {
		t.Errorf("of no model: %v, %v", form, unfit)
	}
}

// The law, for any models in any order: a model is left out only for one before it, what the
// others take is there, and models that all go together have one form in any order.
func TestJointFormOfAnyModels(t *testing.T) {
	layout, err := signal.NewLayout("slow drill", []signal.Channel{
		{Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 200}, {Name: "torque", Kind: signal.Force, Unit: "Nm", Rate: 200}, {Name: "ch01", Kind: signal.Vibration, Unit: "g", Rate: 200},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := kinds(layout)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.SliceOfN(rapid.SampledFrom(names), 1, 6).Draw(t, "models")
		var models, fit []*Model
		for _, name := range order {
			models = append(models, all[name])
		}
		form, unfit := JointForm(models)
		for i, m := range models {
			before, _ := JointForm(append(slices.Clone(fit), m))
			if unfit[i] == nil {
				fit = append(fit, m)
				if err := m.Covers(form); err != nil {
					t.Fatalf("%s fits, and: %v", order[i], err)
				}
			} else if before != nil && m.Covers(before) == nil {
				t.Fatalf("%s is left out, and goes with those before it: %v", order[i], unfit[i])
			}
		}
		if len(fit) == 0 {
			return
		}
		slices.Reverse(fit)
		again, unfit := JointForm(fit)
		if i := slices.IndexFunc(unfit, func(err error) bool { return err != nil }); i >= 0 || again.Fingerprint() != form.Fingerprint() {
			t.Fatalf("in another order: %v, %s and %s", errors.Join(unfit...), again.Fingerprint(), form.Fingerprint())
		}
	})
}

// A judge takes its features by name: out of a form that has more, in another place, they are
// the ones that its own form gives, bit for bit.
func TestTakeOfMore(t *testing.T) {
	all := kinds(signal.GunDrill())
	models := []*Model{all["default"], all["min"], all["packets"], all["hop"]}
	form, unfit := JointForm(models)
	if err := errors.Join(unfit...); err != nil {
		t.Fatal(err)
	}
	w := noise(models[0])
	var more window.Features
	form.NewExtractor().Extract(w, &more)
	for i, m := range models {
		own, err := m.Form()
		if err != nil {
			t.Fatal(err)
		}
		var alone window.Features
		own.NewExtractor().Extract(w, &alone)
		var want, got Observation
		if err := errors.Join(m.NewJudge().Take(&alone, &want), m.NewJudge().Take(&more, &got)); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want) || len(got.Features) == 0 {
			t.Errorf("model %d: %d features of more give\n%v\nalone\n%v", i, len(more.Values), got, want)
		}
	}
}
