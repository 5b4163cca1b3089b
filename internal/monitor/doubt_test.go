package monitor

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// unsure returns oneValue with conformal sets whose classes are far apart, so that what
// is between them is unknown, and with what drift is told by.
func unsure(t testing.TB) *model.Model {
	m := oneValue(t)
	var posterior []float64
	var y []int
	for i := range 40 {
		p := 1e-3
		if i%2 == 1 {
			p = 1 - p
		}
		posterior, y = append(posterior, 1-p, p), append(y, i%2)
	}
	var err error
	if m.Conformal, err = classify.NewConformal(posterior, y, slices.Repeat([]string{"A", "A", "B", "B"}, 10), 2, 0.05); err != nil {
		t.Fatal(err)
	}
	m.Drift = &model.Drift{Tools: 10, Center: []float64{10}, Scale: []float64{1}, Degrees: 1, Raise: 12, Clear: 4}
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Windows that the model does not know are neither for nor against an alarm; many of them
// are advised, once, whoever restarts, and a new tool ends it.
func TestUnknownIsAdvised(t *testing.T) {
	m := unsure(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	var told []event.Advisory
	seq := uint64(0)
	observe := func(tool string, value float32) *event.Result {
		t.Helper()
		w := at(seq, tool, false)
		w.Samples[0][0] = value
		seq++
		r, alerts := mach.observe(w, judge, m.Layout, m.ID())
		if len(alerts) > 0 {
			t.Errorf("window %d: %+v", seq, alerts)
		}
		told = append(told, mach.told...)
		text, err := json.Marshal(mach.state(m.ID(), nil))
		if err != nil {
			t.Fatal(err)
		}
		var s state
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		restarted := newTestMachine(t, m)
		if err := restarted.restore(s, m, 1); err != nil {
			t.Fatal(err)
		}
		if restarted.unsure != mach.unsure || !reflect.DeepEqual(restarted.drift, mach.drift) {
			t.Fatalf("window %d: after a restart %b, %+v", seq, restarted.unsure, restarted.drift)
		}
		mach = restarted
		return r
	}
	for range 2 {
		observe("T1", 10)
	}
	between := float32(0)
	for v := float32(10); v < 20; v += 0.25 { // where neither class is at home
		w := at(0, "T1", false)
		w.Samples[0][0] = v
		ref := mach.ref
		if judge.Judge(w, &ref, nil).Outcome == model.Unknown {
			between = v
		}
	}
	if between == 0 {
		t.Fatal("every value is known")
	}
	for range 15 {
		if r := observe("T1", between); r.Verdict != event.Unknown || r.Unknown == "" || r.Alarm != "normal" {
			t.Fatalf("%+v", r)
		}
	}
	if len(told) != 0 {
		t.Fatalf("told too soon: %+v", told)
	}
	observe("T1", between)
	observe("T1", between)
	if len(told) != 1 || told[0].Kind != event.UnknownAdvisory || told[0].State != event.Raised ||
		!strings.HasPrefix(told[0].Text, "drill: UNKNOWN, 16 of the last 32 windows of cutting, now ") {
		t.Fatalf("%+v", told)
	}
	observe("T2", 10)
	if len(told) != 2 || told[1].State != event.Cleared || told[1].Tool != "T1" || mach.unsure != 0 {
		t.Errorf("%+v", told)
	}
}

// Drift is told of once the third new tool is not as those of training, outlives tools, and
// is over when they are again; another model forgets it.
func TestDriftIsAdvised(t *testing.T) {
	m := unsure(t)
	judge, mach := m.NewJudge(), newTestMachine(t, m)
	seq := uint64(0)
	tool := func(name string, value float32, want event.AlertState) {
		t.Helper()
		var told []event.Advisory
		for range 4 {
			w := at(seq, name, false)
			w.Samples[0][0] = value
			seq++
			mach.observe(w, judge, m.Layout, m.ID())
			told = append(told, mach.told...)
		}
		switch {
		case want == "" && len(told) > 0, want != "" && (len(told) != 1 || told[0].Kind != event.DriftAdvisory || told[0].State != want):
			t.Errorf("tool %s: %+v, want %q", name, told, want)
		case want == event.Raised && (told[0].Severity != "info" || !strings.Contains(told[0].Text, "DRIFT") || !strings.Contains(told[0].Text, "most force.")):
			t.Errorf("%q", told[0].Text)
		}
	}
	tool("A", 14, "")
	tool("B", 14, "")
	tool("C", 14, event.Raised)
	tool("D", 14, "")
	other := oneValue(t)
	s := mach.state(m.ID(), nil)
	fresh := newTestMachine(t, other)
	if err := fresh.restore(s, other, 1); err != nil {
		t.Fatal(err)
	}
	fresh.observe(at(seq, "D", false), other.NewJudge(), other.Layout, other.ID())
	if len(fresh.told) != 1 || fresh.told[0].State != event.Cleared {
		t.Errorf("under a model without drift: %+v", fresh.told)
	}
	var last event.AlertState
	for i := range 12 {
		name := string(rune('E' + i))
		for range 4 {
			w := at(seq, name, false)
			seq++
			mach.observe(w, judge, m.Layout, m.ID())
			for _, a := range mach.told {
				last = a.State
			}
		}
	}
	if last != event.Cleared {
		t.Errorf("after twelve tools as of training it is %q", last)
	}
}
