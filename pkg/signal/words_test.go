package signal

import (
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	l, samples, _ := gunDrillWindow()
	e, err := NewExtractor(l, samples, FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{} // by channel and words
	got := map[string][2]string{}
	for i, name := range e.Names() {
		what, unit := e.Describe(i)
		got[name] = [2]string{what, unit}
		if low, high, ok := e.Band(i); ok != strings.Contains(name, ".band") || ok && span(low, high) != what {
			t.Errorf("%s is the band from %v to %v Hz: %v, in words %q", name, low, high, ok, what)
		}
		at := l.Channels()[e.Channels(i)[0]].Name + " " + what
		if before, twice := seen[at]; what == "" || twice && strings.Contains(name, "band") == strings.Contains(before, "band") {
			t.Errorf("%s and %s are both %q", before, name, what)
		}
		seen[at] = name
	}
	for name, want := range map[string][2]string{
		"torque.mean": {"mean", "N·m"}, "ch01.rms": {"rms", "g"}, "ch01.kurtosis": {"kurtosis", ""}, "ch01.centroid": {"spectral centroid", "Hz"},
		"ch01.band10": {"6.3-10 kHz", "log10 g²"}, "ch01.band01": {"0-156 Hz", "log10 g²"}, "thrust.slope": {"slope", "N/s"},
		"torque.slope": {"slope", "N·m/s"},
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for name, want := range map[string][2]string{
		"ch02.packet16": {"9.4-10 kHz", "log10 g²"}, "ch02.harmonic03": {"spindle harmonic 3", "log10 g²"},
		"ch02.envelope02": {"envelope, spindle harmonic 2", ""}, "ch02.coherence": {"coherence with the channel before", ""},
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for i := range registry {
		if e := &registry[i]; (e.words == "") != (e.name == "bands" || e.name == "packets") {
			t.Errorf("family %s is called %q by people", e.name, e.words)
		}
	}
}

// A feature that a recording holds is its own value; without a unit of the
// channel there is none of what is made from it.
func TestDescribeWithoutUnits(t *testing.T) {
	l, err := NewLayout("l", []Channel{{Name: "smcAC", Kind: Feature, Unit: "A", Rate: 1}, {Name: "x", Kind: Force, Rate: 10}, {Name: "y", Kind: Torque, Unit: "N·m", Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExtractor(l, []int{1, 10, 10}, FeatureSpec{Set: []string{"mean", "variance"}})
	if err != nil {
		t.Fatal(err)
	}
	if what, unit := e.Describe(0); what != "" || unit != "A" {
		t.Errorf("%q in %q", what, unit)
	}
	if what, unit := e.Describe(1); what != "mean" || unit != "" {
		t.Errorf("%q in %q", what, unit)
	}
	if what, unit := e.Describe(4); what != "variance" || unit != "(N·m)²" {
		t.Errorf("%q in %q", what, unit)
	}
}
