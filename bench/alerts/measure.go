package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/machine/state"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	foundWithin = 30 * time.Second // after the label turns faulty
	nearLimit   = 270              // µm from which an alarm before the label is early, and not false: the label's limit is 300
	sensorTime  = 5 * time.Second  // after the end of a fault, in which the monitor may still report it
)

// failure is a tool that turned faulty.
type failure struct {
	tool  sim.Tool
	label time.Time     // end of the first window that is faulty by its label
	alarm time.Time     // zero: none
	delay time.Duration // of the alarm behind the label; negative: before it
	wear  float64       // µm at the alarm, or at the label if there is none
}

// found reports whether the alarm came in time: not too late, and not so early that
// it is false.
func (f *failure) found() bool {
	return !f.alarm.IsZero() && f.delay <= foundWithin && (f.delay >= 0 || f.wear >= nearLimit)
}

// sensed is a fault of a sensor, and what the monitor reported about it.
type sensed struct {
	fault    sim.Fault
	advisory *event.Advisory // nil: nothing
}

// findings is what a record comes to.
type findings struct {
	machine   time.Duration // time of windows
	cutting   time.Duration // of them, with the drill in the material
	tools     int
	retracts  int
	failures  []failure
	alarms    int           // raised
	falsely   []event.Alert // of them, of tools that were fit
	sensors   []sensed      // in the order of the plan
	spurious  int           // advisories of sensors that were well
	unsure    int           // advisories of what the model does not know, and of drift
	chatter   int           // times that an alarm or an advisory changed three times within a minute
	wrong     int           // windows that were judged and not as their label says
	judgement int           // windows judged
}

// measure is add of one machine.
func (r *record) measure() *findings {
	f := &findings{}
	f.add(r)
	return f
}

// add compares what the monitor reported about a machine with what was true.
func (f *findings) add(r *record) {
	f.tools += len(r.plan.stays)
	labels := make(map[int]time.Time) // of stays
	wear := func(at time.Time) float64 {
		i, _ := slices.BinarySearchFunc(r.moments, at, func(m moment, t time.Time) int { return m.end.Compare(t) })
		return r.moments[min(i, len(r.moments)-1)].wear
	}
	last := ""
	for _, m := range r.moments {
		f.machine += time.Second
		if m.phase == sim.Drilling || m.phase == sim.Entry {
			f.cutting += time.Second
		}
		if m.phase == sim.Retract && last != sim.Retract {
			f.retracts++
		}
		last = m.phase
		if _, ok := labels[m.tool]; m.faulty && !ok {
			labels[m.tool] = m.end
		}
		if m.verdict == event.Healthy || m.verdict == event.Faulty {
			f.judgement++
			if (m.verdict == event.Faulty) != m.faulty {
				f.wrong++
			}
		}
	}
	r.measureAlarms(f, labels, wear)
	r.measureSensors(f)
	f.chatter += r.chatter()
}

// measureAlarms compares the alarms with the tools' failures. labels has when the tool of a
// stay became faulty, if it did; wear returns the wear at a time.
func (r *record) measureAlarms(f *findings, labels map[int]time.Time, wear func(time.Time) float64) {
	raised := make(map[string]time.Time) // by tool, the first
	for _, a := range r.alerts {
		if a.State != event.Raised {
			continue
		}
		f.alarms++
		if _, ok := raised[a.Tool]; !ok {
			raised[a.Tool] = a.At
		}
		i := slices.IndexFunc(r.plan.stays, func(s stay) bool { return s.tool.Name == a.Tool })
		label, fails := labels[i]
		if early := a.At.Before(label) && wear(a.At) >= nearLimit; !fails || a.At.Before(label) && !early {
			f.falsely = append(f.falsely, a)
		}
	}
	for i, s := range r.plan.stays {
		label, ok := labels[i]
		if !ok {
			continue
		}
		x := failure{tool: s.tool, label: label, alarm: raised[s.tool.Name], wear: wear(label)}
		if !x.alarm.IsZero() {
			x.delay, x.wear = x.alarm.Sub(label), wear(x.alarm)
		}
		f.failures = append(f.failures, x)
	}
}

// measureSensors finds what the monitor reported for each fault, and what it reported without one.
func (r *record) measureSensors(f *findings) {
	due := make([]bool, len(r.advisories))
	for _, fault := range r.plan.faults {
		subject := fault.Channel
		if fault.Kind == sim.ClockStep || fault.Kind == sim.ClockDrift {
			subject = "" // the clock has none
		}
		s := sensed{fault: fault}
		for i := range r.advisories {
			a := &r.advisories[i]
			at := a.At.Sub(begin)
			if a.Kind != event.SensorAdvisory || a.Subject != subject || at < fault.From || at > fault.From+fault.For+2*time.Minute {
				continue
			}
			due[i] = true
			if s.advisory == nil && a.State == event.Raised && at <= fault.From+fault.For+sensorTime {
				s.advisory = a
			}
		}
		f.sensors = append(f.sensors, s)
	}
	for i, a := range r.advisories {
		switch {
		case a.State != event.Raised || due[i]:
		case a.Kind == event.SensorAdvisory:
			f.spurious++
		default:
			f.unsure++
		}
	}
}

// chatter counts the times that something changed three times within a minute by
// itself.
func (r *record) chatter() (n int) {
	changes := make(map[string][]time.Time)
	for _, a := range r.alerts {
		if a.Reason != "tool_change" {
			changes["alarm"] = append(changes["alarm"], a.At)
		}
	}
	for _, a := range r.advisories {
		key := string(a.Kind) + " " + a.Subject
		changes[key] = append(changes[key], a.At)
	}
	for _, at := range changes {
		for i := 2; i < len(at); i++ {
			if at[i].Sub(at[i-2]) <= time.Minute {
				n++
			}
		}
	}
	return n
}

// String returns the findings in a line.
func (f *findings) String() string {
	return fmt.Sprintf("%.1f h, %.1f h of cutting, %d tools, %d of %d failures found, %d alarms, %d false, %d of %d sensor faults shown, %d without one, %d advisories of the model's",
		f.machine.Hours(), f.cutting.Hours(), f.tools, f.found(), len(f.failures), f.alarms, len(f.falsely), f.shown(), len(f.sensors), f.spurious, f.unsure)
}

// found counts the failures that were found in time.
func (f *findings) found() (n int) {
	for i := range f.failures {
		if f.failures[i].found() {
			n++
		}
	}
	return n
}

// shown counts the faults of sensors that the monitor reported as such.
func (f *findings) shown() (n int) {
	for _, s := range f.sensors {
		if s.advisory != nil {
			n++
		}
	}
	return n
}

// moment is one window of a machine, with what is true of it.
type moment struct {
	end     time.Time
	tool    int // stay
	faulty  bool
	wear    float64 // maximum flank wear in µm
	phase   string
	verdict event.Verdict
	score   float64
	alarm   string
}

// record is all that one machine did and the monitor reported about it.
type record struct {
	plan       *plan
	moments    []moment
	alerts     []event.Alert
	advisories []event.Advisory
}

// follow lets a model watch a machine from its first to its last tool.
func follow(ctx context.Context, p *plan, m *model.Model) (*record, error) {
	src, err := p.open()
	if err != nil {
		return nil, err
	}
	cutter, err := source.NewCutter(src, m.Window)
	if err != nil {
		return nil, err
	}
	form, err := m.Form()
	if err != nil {
		return nil, err
	}
	watched, err := machine.New(p.name, &machine.Settings{Group: "replay", Alarm: alarm.Default}, machine.NewModel(m), time.Time{})
	if err != nil {
		return nil, err
	}
	extractor, features := form.NewExtractor(), new(window.Features)
	rule := card.RuleOf(m)
	r := &record{plan: p}
	stayOf := make(map[string]int)
	for i, s := range p.stays {
		stayOf[s.tool.Name] = i
	}
	for seq := uint64(0); ; seq++ {
		c, err := cutter.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", p.name, err)
		case c.Gap != nil:
			continue
		}
		w := c.Window
		w.Epoch, w.Seq = 1, seq
		extractor.Extract(w, features)
		d := watched.Apply(machine.Window{Features: features, Offset: state.Offset{At: int64(seq)}, At: w.End(), Now: w.End()})
		class, known := rule.Class(c.Truth.VBMeanUM, c.Truth.VBMaxUM, c.Truth.State)
		r.moments = append(r.moments, moment{
			end: w.End(), tool: stayOf[w.Tool], faulty: known && class > 0, wear: c.Truth.VBMaxUM, phase: c.Truth.Phase,
			verdict: d.Result.Verdict, score: d.Result.Score, alarm: d.Result.Alarm,
		})
		r.alerts = append(r.alerts, d.Alerts...)
		r.advisories = append(r.advisories, d.Advisories...)
	}
}
