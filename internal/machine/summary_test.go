package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/window"
)

// A route that starts while an alarm is silent, because its tool came back within re_alarm, does not show it as open: it calls later, or
// its tool leaves without a word. A listing names the open alarm of a tool in the magazine.
func TestSummaryOfSilentAlarm(t *testing.T) {
	a := machinetest.OneValue(t)
	set := testAlarm
	set.ReAlarm = 10 * time.Minute
	p := newPlant(t, fleetOf(&Deployment{Champion: a, Alarm: set}, a))
	sum := func() *Summary {
		t.Helper()
		s, err := Summarise(p.stored())
		if err != nil {
			t.Fatal(err)
		}
		return &s
	}
	seq := p.run(0, 5, "T1", false)
	seq = p.run(seq, 8, "T1", true)
	incident := p.alerts[0].Incident
	if e := sum().Shown(group); e.Alarm != "raised" || e.Incident != incident || e.Severity != "warning" {
		t.Errorf("raised: %+v", e)
	}
	seq = p.run(seq, 1, "T2", false)
	s := sum()
	if e := s.Shown(group); e.Alarm != "normal" || len(s.Magazine) != 1 || s.Magazine[0].Name != "T1" || s.Magazine[0].Alarm.Word(s.Masks) != "raised" {
		t.Errorf("in the magazine: %+v, %+v", e, s.Magazine)
	}
	seq = p.run(seq, 1, "T1", true)
	if s = sum(); len(s.Magazine) != 0 {
		t.Errorf("in the spindle: %+v", s.Magazine)
	}
	if e := s.Shown(group); e.Alarm != "normal" || e.Incident != "" || e.Severity != "info" {
		t.Errorf("silent: %+v", e)
	}
	p.sent += 600 // seconds
	seq = p.run(seq, 1, "T1", true)
	if e := sum().Shown(group); e.Alarm != "raised" || e.Incident != incident {
		t.Errorf("it calls again: %+v", e)
	}
	seq = p.run(seq, 3, "T1", false)
	if e := sum().Shown(group); e.Alarm != "returned" || e.Incident != incident {
		t.Errorf("it has returned: %+v", e)
	}
	seq = p.run(seq, 1, "T2", false)
	p.run(seq, 1, "T1", false)
	if e := sum().Shown(group); e.Alarm != "normal" || e.Incident != "" || e.Text != "drill tool T1: no open alarm." {
		t.Errorf("silent, and it has returned: %+v", e)
	}
	wantStrings(t, "alerts", states(p.alerts), []string{"raised", "cleared tool_change", "raised tool_back", "returned", "cleared tool_change"})
}

// A route does not show as open what was not announced, even if people have answered it: nothing would say that it is over.
func TestShownIsAnnounced(t *testing.T) {
	shelf := alarm.Masks{Shelf: &alarm.Mask{By: "kim", Reason: "n", Until: noon}}
	for _, tc := range []struct {
		alarm    alarm.State
		machine  alarm.Masks
		word     string
		incident string
	}{
		{alarm.State{Raised: true, Announced: true}, alarm.Masks{}, "raised", "A"},
		{alarm.State{Raised: true, Announced: true, Acked: true}, alarm.Masks{}, "acknowledged", "A"},
		{alarm.State{Raised: true, Announced: true, Masks: shelf}, alarm.Masks{}, "shelved", "A"},
		{alarm.State{Raised: true}, alarm.Masks{}, "normal", ""},
		{alarm.State{Raised: true, Returned: true}, alarm.Masks{}, "normal", ""},
		{alarm.State{Raised: true, Acked: true}, alarm.Masks{}, "normal", ""},
		{alarm.State{Raised: true, Masks: shelf}, alarm.Masks{}, "shelved", ""},
		{alarm.State{Raised: true}, alarm.Masks{Service: shelf.Shelf}, "out_of_service", ""},
	} {
		s := Summary{Machine: drill, Tool: "T1", Alarm: Alarm{State: tc.alarm, Incident: "A"}, Masks: tc.machine}
		if e := s.Shown(group); e.Alarm != tc.word || e.Incident != tc.incident || strings.HasSuffix(e.Text, "no open alarm.") != (tc.incident == "") {
			t.Errorf("%+v: %s %q, %s", tc.alarm, e.Alarm, e.Incident, e.Text)
		}
	}
}

// What is listed of kept records.
func TestSummaryOfKeptRecords(t *testing.T) {
	a, b := machinetest.OneValue(t), machinetest.WithWear(t)
	s, err := Summarise(keptPlant(t, &Deployment{Champion: a, Shadows: []Shadow{{Model: b}}, Alarm: testAlarm}, a, b).stored())
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(s.Machine, s.Tool, s.Tools, s.Model == a.ID(), s.Word(), len(s.Raised), s.LastWindowAt)
	slices.SortFunc(s.Magazine, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range s.Magazine {
		text += fmt.Sprint(" ", m.Name, m.Alarm.Incident, m.Alarm.Word(s.Masks))
	}
	if want := "acme/line1/drillT34 truesuppressed2 2026-11-02 12:00:20 +0000 UTC T1A-OGMAIBP6suppressed T2A-ZGUWEMFGsuppressed"; text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// The words of a listing.
func TestSummaryInWords(t *testing.T) {
	p := newPlant(t, fleetOf(&Deployment{Champion: machinetest.OneValue(t), Alarm: testAlarm}, machinetest.OneValue(t)))
	features := int64(0)
	for i, step := range []struct {
		tool     string
		worn     bool
		windows  int
		want     string
		raised   int
		tools    int
		features bool
	}{
		{"", false, 1, "drill: no open alarm.", 0, 1, true},
		{"", false, 3, "drill: no open alarm.", 0, 1, false},
		{"", true, 4, "drill: the alarm of 02:00:04 is open, raised.", 1, 1, false},
		{"T2", false, 4, "drill tool T2: no open alarm.", 1, 2, true},
		{"T2", true, 4, "drill tool T2: the alarm of 02:00:12 is open, raised.", 2, 2, false},
	} {
		for range step.windows {
			w := at(uint64(p.sent), step.tool, step.worn)
			f := machinetest.Features(nil, w)
			if !step.features {
				p.window(f)
				continue
			}
			in := Input{Offset: features, At: p.now(), Open: func(into *window.Features) error { *into = *f; return nil }}
			p.sent, features = p.sent+1, features+1
			p.do(p.o.On(Read{Log: FeatureLog, Inputs: []Input{in}}, in.At))
		}
		s, err := Summarise(p.stored())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Shown(group).Text; got != step.want || len(s.Raised) != step.raised || s.Tools != step.tools || s.FeaturesOnly != step.features {
			t.Errorf("step %d: %q, %d marked, %d tools, features only: %v; want %+v", i, got, len(s.Raised), s.Tools, s.FeaturesOnly, step)
		}
	}
}
