package main

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/train"
)

// A quarter of an hour of the shift, with a model of eight tools: what `make shift`
// measures of eight hours holds in small.
func TestShift(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("trains a model and simulates a quarter of an hour, in one goroutine")
	}
	job := train.SimulatedHistory("acme/spore/bay2/line1/history", 1)
	job.Inputs = job.Inputs[:8]
	job.Config.Costs.Folds = 2
	m, _, err := train.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{name: "acme/spore/bay2/line1/usk25", seed: 2, hole: 24 * time.Second, pause: 6 * time.Second}
	for n, end := range []string{sim.Worn, sim.Chipped, sim.Worn, sim.Broken} {
		s := stay{tool: tool(n, p.seed, end, 150*time.Second)}
		if n == 0 {
			s.holes = 3 // fit when it is taken out
		}
		p.stays = append(p.stays, s)
	}
	for i, f := range []sim.Fault{
		{Kind: sim.Flatline, Channel: "ch07"}, {Kind: sim.Dropout, Channel: "ch02"}, {Kind: sim.Clipping, Channel: "ch11"},
		{Kind: sim.NonFinite, Channel: "torque"}, {Kind: sim.ClockStep, Channel: "ch01"},
	} {
		f.From, f.For = time.Duration(7+80*i)*time.Second, 10*time.Second
		p.faults = append(p.faults, f)
	}
	r, err := follow(t.Context(), p, m)
	if err != nil {
		t.Fatal(err)
	}
	f := r.measure()
	if f.found() != 3 || len(f.failures) != 3 || len(f.falsely) > 0 || f.chatter > 0 || f.shown() != 5 || f.spurious > 0 || f.retracts < 15 {
		t.Errorf("%+v", f)
		for _, a := range r.alerts {
			t.Log(a.At.Sub(begin), a.Text)
		}
		for _, a := range r.advisories {
			t.Log(a.At.Sub(begin), a.Text)
		}
	}
	for _, s := range f.sensors {
		if a := s.advisory; a != nil && s.fault.Channel == "ch07" && a.Text != "usk25: SENSOR ch07 Failure: flatline; tool verdict on 13 channels" {
			t.Errorf("%q", a.Text)
		}
	}
	if svg := string(r.draw()); !strings.Contains(svg, "broken") || !strings.Contains(svg, "flatline") {
		t.Error("the plot lacks something")
	}
	again, err := follow(t.Context(), &plan{name: p.name, seed: p.seed, hole: p.hole, pause: p.pause, stays: p.stays[:1]}, m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range min(5, len(again.moments)) {
		if again.moments[i] != r.moments[i] {
			t.Errorf("window %d differs from run to run", i)
		}
	}
}

// What the measure says of a record that is made up.
func TestMeasure(t *testing.T) {
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	made := func() *record {
		r := &record{plan: &plan{stays: []stay{{tool: sim.Tool{Name: "T1"}}, {tool: sim.Tool{Name: "T2"}}}}}
		for i := range 200 { // T2 is faulty from 150 s on, at 2 µm a second
			m := moment{end: at(i), tool: i / 100, wear: float64(2 * i), faulty: i >= 150, phase: sim.Drilling, verdict: event.Healthy}
			if i%50 == 49 {
				m.phase, m.verdict = sim.Retract, event.NotCutting
			}
			r.moments = append(r.moments, m)
		}
		return r
	}
	raise := func(tool string, s int) event.Alert { return event.Alert{Tool: tool, State: event.Raised, At: at(s)} }
	for name, tc := range map[string]struct {
		alerts         []event.Alert
		found, falsely int
		delay          time.Duration
	}{
		"in time":                    {[]event.Alert{raise("T2", 160)}, 1, 0, 10 * time.Second},
		"too late":                   {[]event.Alert{raise("T2", 181)}, 0, 0, 31 * time.Second},
		"early, worn almost as much": {[]event.Alert{raise("T2", 140)}, 1, 0, -10 * time.Second},
		"early, and false":           {[]event.Alert{raise("T2", 120)}, 0, 1, -30 * time.Second},
		"of a tool that was fit":     {[]event.Alert{raise("T1", 50), raise("T2", 150)}, 1, 1, 0},
		"never":                      {nil, 0, 0, 0},
	} {
		r := made()
		r.alerts = tc.alerts
		f := r.measure()
		if len(f.failures) != 1 || f.found() != tc.found || len(f.falsely) != tc.falsely || f.failures[0].delay != tc.delay || f.retracts != 4 || f.chatter != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}

	r := made()
	r.plan.faults = []sim.Fault{{Kind: sim.Flatline, Channel: "ch1", From: 10 * time.Second, For: 10 * time.Second}, {Kind: sim.ClockStep, Channel: "ch2", From: time.Minute, For: time.Second}}
	say := func(subject string, state event.AlertState, s int) {
		r.advisories = append(r.advisories, event.Advisory{Kind: event.SensorAdvisory, Subject: subject, State: state, At: at(s)})
	}
	say("ch1", event.Raised, 13)
	say("ch3", event.Raised, 13)
	say("ch3", event.Cleared, 14)
	say("ch3", event.Raised, 15)
	if f := r.measure(); f.shown() != 1 || f.spurious != 2 || f.chatter != 1 {
		t.Errorf("%+v", f)
	}
	say("", event.Raised, 61)
	if f := r.measure(); f.shown() != 2 {
		t.Errorf("%d shown", f.shown())
	}
}
