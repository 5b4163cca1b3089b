package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Many windows that are unknown are one advisory, across restarts, and a new tool ends it.
func TestUnknownIsAdvised(t *testing.T) {
	m := machinetest.Unsure(t)
	b := newBench(t, m)
	var advisories []event.Advisory
	seq := uint64(0)
	observe := func(tool string, value float32) *event.Result {
		t.Helper()
		w := at(seq, tool, false)
		w.Samples[0][0] = value
		seq++
		d := b.window(w)
		if len(d.Alerts) > 0 {
			t.Errorf("window %d: %+v", seq, d.Alerts)
		}
		advisories = append(advisories, d.Advisories...)
		unknown, drift := b.m.inSpindle().judging(b.m.Model).Unknown, event.JSON(b.m.slow())
		b.restart()
		if got := b.m.inSpindle().judging(b.m.Model).Unknown; got != unknown || !bytes.Equal(event.JSON(b.m.slow()), drift) {
			t.Fatalf("window %d: after a restart %b, %+v", seq, got, b.m.Drift)
		}
		return d.Result
	}
	for range 2 {
		observe("T1", 10)
	}
	between := float32(0)
	judge := m.NewJudge()
	for v := float32(10); v < 20; v += 0.25 { // where neither class is at home
		w := at(0, "T1", false)
		w.Samples[0][0] = v
		ref := b.m.inSpindle().judging(b.m.Model).Reference
		if v := judge.Judge(w, &ref, nil); v.Outcome == model.Unknown && v.Decided == 0 {
			between = w.Samples[0][0]
		}
	}
	if between == 0 {
		t.Fatal("every value that is decided healthy is known")
	}
	for range 15 {
		if r := observe("T1", between); r.Verdict != event.Unknown || r.Unknown == "" || r.Alarm != "normal" {
			t.Fatalf("%+v", r)
		}
	}
	if len(advisories) != 0 {
		t.Fatalf("raised too soon: %+v", advisories)
	}
	observe("T1", between)
	observe("T1", between)
	if len(advisories) != 1 || advisories[0].Kind != event.UnknownAdvisory || advisories[0].State != event.Raised ||
		!strings.HasPrefix(advisories[0].Text, "drill: UNKNOWN, 16 of the last 32 windows of cutting, now ") {
		t.Fatalf("%+v", advisories)
	}
	observe("T2", 10)
	if len(advisories) != 2 || advisories[1].State != event.Cleared || advisories[1].Tool != "T1" || b.m.inSpindle().judging(b.m.Model).Unknown != 0 {
		t.Errorf("%+v", advisories)
	}
}

// An ambiguous window counts for the alarm as it was decided, also after a restart, and its alert says so. An
// implausible one does not count. Many of either are one advisory.
func TestAmbiguousWindowsCount(t *testing.T) {
	for name, tc := range map[string]struct {
		healthy, faulty  float64 // see machinetest.MakeSets
		values           []float32
		state, faultyOf  string
		unknown, advised int
	}{
		"decided faulty":           {0.3, 0.2, []float32{17, 17}, "raised", "2 of 2", 2, 0},
		"with faulty ones":         {0.3, 0.2, []float32{17, 10, 20}, "raised", "2 of 3", 1, 0},
		"decided healthy":          {0.3, 0.2, []float32{20, 15.5, 20}, "raised", "2 of 3", 1, 0},
		"decided healthy ones end": {0.3, 0.2, []float32{20, 20, 15.5, 15.5, 15.5}, "returned", "0 of 3", 3, 0},
		"out of sight":             {0.3, 0.2, []float32{17, 10, 10, 20, 20}, "raised", "2 of 3", 0, 0},
		"implausible":              {0.15, 0.8, []float32{17, 17}, "raised", "2 of 2", 2, 0},
		"advised as well":          {0.3, 0.2, slices.Repeat([]float32{15.5}, 17), "", "", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := machinetest.OneValue(t)
			machinetest.MakeSets(t, m, tc.healthy, tc.faulty)
			b := newBench(t, m)
			var last event.Alert
			advised := 0
			for seq, v := range append([]float32{10, 10}, tc.values...) {
				w := at(uint64(seq), "T1", false)
				w.Samples[0][0] = v
				d := b.window(w)
				for _, last = range d.Alerts {
				}
				advised += len(d.Advisories)
				b.restart()
			}
			counts := ""
			if last.Of > 0 {
				counts = fmt.Sprintf("%d of %d", last.Faulty, last.Of)
			}
			if string(last.State) != tc.state || counts != tc.faultyOf || last.Unknown != tc.unknown || advised != tc.advised ||
				tc.state == "raised" && strings.Contains(last.Text, "unknown") != (tc.unknown > 0) {
				t.Errorf("%s, %s, %d unknown, %d advisories: %s", last.State, counts, last.Unknown, advised, last.Text)
			}
		})
	}
}

// Windows that are out of distribution count neither as healthy nor as faulty.
func TestWindowsOutOfDistributionDoNotCount(t *testing.T) {
	m := machinetest.TwoValues(t)
	x, tools := dbn.NewMatrix(200, 2), make([]string, 200)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x.Rows {
		age := rng.Float64()
		x.Row(i)[0], x.Row(i)[1], tools[i] = float32(age+0.1*rng.NormFloat64()), float32(age+0.1*rng.NormFloat64()), fmt.Sprint(i/20)
	}
	var err error
	if m.Novelty, _, err = unknown.FitNovelty(t.Context(), x, tools, nil, 0.1, 1, 1); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, m)
	var raised []string
	for seq, v := range []float32{10, 10, 20, -200, -200, -200, 20} {
		w := at(uint64(seq), "T1", false)
		w.Samples, w.Quality = [][]float32{{v}, {v}}, make([]signal.Quality, 2)
		d := b.window(w)
		if unknown := d.Result.Unknown == string(model.OutOfDistribution); unknown != (v < 0) {
			t.Errorf("window %d: %+v", seq, d.Result)
		}
		for _, a := range d.Alerts {
			raised = append(raised, fmt.Sprintf("window %d: %s, %d of %d, %d unknown", seq, a.State, a.Faulty, a.Of, a.Unknown))
		}
	}
	if want := []string{"window 6: raised, 2 of 2, 0 unknown"}; !slices.Equal(raised, want) {
		t.Errorf("%v, want %v", raised, want)
	}
}

// Only windows that a model has judged, or might have, count for what it does not know.
func TestWhichWindowsAreUnknown(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.m.decision = &Decision{}
	for verdict, want := range map[event.Verdict]uint64{
		event.Healthy: 0b1010, event.Faulty: 0b1010, event.Unknown: 0b1011,
		event.Learning: 0b101, event.NotCutting: 0b101, event.SensorFault: 0b101,
	} {
		j := &Judging{Unknown: 0b101}
		if b.m.countUnknown(candidate{j, NewModel(b.model)}, &event.Result{Verdict: verdict}); j.Unknown != want {
			t.Errorf("%s: %b, want %b", verdict, j.Unknown, want)
		}
	}
}

// Drift names the channels of which most features have moved.
func TestMovedChannels(t *testing.T) {
	var d model.DriftMemory
	if err := json.Unmarshal([]byte(`{"tools":1,"f":1,"weight":1,"squares":1,"mean":"AACAPwAAgD8AAIA/AACAPwAAgD8="}`), &d); err != nil { // 1 of each
		t.Fatal(err)
	}
	if got := moved(&d, []string{"a.rms", "b.rms", "c.rms", "b.max", "d.rms"}); got != "most b, a, c" {
		t.Error(got)
	}
}

// Drift is an advisory once the third new tool differs from the tools of training. It outlives
// tools, and is over when they are again. Another model forgets it.
func TestDriftIsAdvised(t *testing.T) {
	m := machinetest.Unsure(t)
	b := newBench(t, m)
	seq := uint64(0)
	tool := func(name string, value float32, want event.AlertState) {
		t.Helper()
		var got []event.Advisory
		for range 4 {
			w := at(seq, name, false)
			w.Samples[0][0] = value
			seq++
			got = append(got, b.window(w).Advisories...)
		}
		switch {
		case want == "" && len(got) > 0, want != "" && (len(got) != 1 || got[0].Kind != event.DriftAdvisory || got[0].State != want):
			t.Errorf("tool %s: %+v, want %q", name, got, want)
		case want == event.Raised && (got[0].Severity != "info" || !strings.Contains(got[0].Text, "DRIFT") || !strings.Contains(got[0].Text, "most force.")):
			t.Errorf("%q", got[0].Text)
		}
	}
	tool("A", 14, "")
	tool("B", 14, "")
	tool("C", 14, event.Raised)
	tool("D", 14, "")
	fresh := newBench(t, m)
	fresh.records = maps.Clone(b.records)
	fresh.restartUnder(machinetest.OneValue(t))
	if d := fresh.window(at(seq, "D", false)); len(d.Advisories) != 1 || d.Advisories[0].State != event.Cleared ||
		!strings.HasSuffix(d.Advisories[0].Text, "is forgotten, the model is another") {
		t.Errorf("under a model without drift: %+v", d.Advisories)
	}
	b.m.Drift["gone"] = new(model.DriftMemory) // of a model that judges no tool any more
	for _, t := range b.m.Tools {
		t.Drifted = []string{"gone"}
	}
	var last event.Advisory
	for i := range 12 {
		name := string(rune('E' + i))
		for range 4 {
			w := at(seq, name, false)
			seq++
			for _, a := range b.window(w).Advisories {
				last = a
			}
		}
	}
	if last.State != event.Cleared || !strings.HasSuffix(last.Text, "is over") {
		t.Errorf("after twelve tools as of training it is %+v", last)
	}
	if b.m.Drift["gone"] != nil || slices.ContainsFunc(b.m.Tools, func(t *Tool) bool { return slices.Contains(t.Drifted, "gone") }) {
		t.Error("the drift of a model that is gone is remembered")
	}
}

// Tools without a name count for drift, each of their lives once.
func TestDriftOfToolsWithoutAName(t *testing.T) {
	b := newBench(t, machinetest.Unsure(t))
	var got []string
	for life := range uint64(4) {
		for i := range uint64(4) {
			w := at(4*life+i, "", false)
			w.Samples[0][0] = 14
			for _, a := range b.window(w).Advisories {
				got = append(got, fmt.Sprintf("%s %s by tool %d", a.Kind, a.State, life+1))
			}
		}
		b.restart()
		b.command(event.Command{ID: fmt.Sprint(life), Machine: drill, Action: event.NewTool, By: "kim", Issued: noon}, noon)
	}
	wantStrings(t, "advisories", got, []string{"drift raised by tool 3"})
}
