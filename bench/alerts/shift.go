package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// stay is a tool's time in the machine.
type stay struct {
	tool  sim.Tool
	holes int // after which it is taken out in good time; 0: at the end of its life
}

// plan is what happens to one machine.
type plan struct {
	name   string // of the machine
	seed   uint64
	stays  []stay
	hole   time.Duration // drilling time of a hole; 0: of 50 mm at the tool's feed
	pause  time.Duration // between two holes
	faults []sim.Fault   // of sensors
}

// begin is when every plan does.
var begin = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

func (p *plan) open() (source.Source, error) {
	l := &line{plan: p, start: begin}
	if err := l.change(); err != nil {
		return nil, err
	}
	return sim.WithFaults(l, p.faults)
}

// line is a machine in which one tool follows the other. A tool that is taken out in
// good time is taken out before a hole.
type line struct {
	plan  *plan
	next  int // stay that comes next
	start time.Time
	drill *sim.Drill
	hole  string
	holes int // that the tool at hand has begun
}

// change puts the next tool in. It returns io.EOF after the last.
func (l *line) change() (err error) {
	if l.next == len(l.plan.stays) {
		return io.EOF
	}
	l.drill, err = sim.New(sim.Settings{
		Machine: l.plan.name, Start: l.start, Seed: l.plan.seed, Tools: []sim.Tool{l.plan.stays[l.next].tool}, Hole: l.plan.hole, Pause: l.plan.pause,
	})
	l.next++
	l.hole, l.holes = "", 0
	return err
}

func (l *line) Layout() *signal.Layout { return signal.GunDrill() }

func (l *line) Next(ctx context.Context) (*source.Block, error) {
	for {
		b, err := l.drill.Next(ctx)
		if err == nil && b.Group == 0 {
			if b.Hole != l.hole {
				l.hole = b.Hole
				l.holes++
			}
			if most := l.plan.stays[l.next-1].holes; most > 0 && l.holes > most {
				err = io.EOF
			} else {
				l.start = b.Time.Add(time.Second) // a block of a drill is one
			}
		}
		if errors.Is(err, io.EOF) {
			if err = l.change(); err == nil {
				continue
			}
		}
		return b, err
	}
}

type size struct {
	shift                        time.Duration // length of the shift
	healthyTools                 time.Duration // cutting with tools that are fit, on several machines
	failingTools, failingSensors int           // more than in the shift
	life                         time.Duration // of a tool, cutting
	hole                         time.Duration // drilling time of a hole; 0: of 50 mm at the tool's feed
}

// full is what docs/figures/alerts.md is about: tools live as long as the paper's, for
// some ten holes of two minutes. Quick is the same in small.
var (
	full  = size{shift: 8 * time.Hour, healthyTools: 24 * time.Hour, failingTools: 20, failingSensors: 200, life: 22 * time.Minute}
	quick = size{shift: time.Hour, failingTools: 20, failingSensors: 40, life: 165 * time.Second, hole: 24 * time.Second}
)

// fit is the share of its life after which a tool is taken out in good time.
const fit = 0.7

// tool returns a tool of the experiment with a life and an end of its own.
func tool(n int, seed uint64, end string, life time.Duration) sim.Tool {
	kinds := sim.Tools(seed+uint64(n), life)
	t := kinds[n%len(kinds)]
	t.Name, t.End, t.Life = fmt.Sprintf("T%03d", n+1), end, life
	return t
}

// drilling returns how long a hole takes a tool.
func (p *plan) drilling(t sim.Tool) time.Duration {
	return cmp.Or(p.hole, time.Duration(50/(t.FeedUM/1000*t.SpeedRPM)*float64(time.Minute)))
}

// healthy returns tool n, to be taken out in good time, and how long it stays and cuts.
func (p *plan) healthy(n int, life time.Duration) (s stay, stays, cuts time.Duration) {
	s.tool = tool(n, p.seed, sim.Worn, life)
	hole := p.drilling(s.tool)
	s.holes = max(1, int(fit*life.Seconds()/hole.Seconds()))
	return s, time.Duration(s.holes) * (hole + p.pause), time.Duration(s.holes) * hole
}

// shift returns a machine's shift: tools that are taken out in
// good time, and among them three that wear out, chip and break; and five sensors that fail,
// each for a minute and in its own way.
func shift(seed uint64, z size) *plan {
	p := &plan{name: "acme/spore/bay2/line1/usk25", seed: seed, hole: z.hole, pause: 17 * time.Second}
	length := z.shift
	ends := []string{sim.Worn, sim.Chipped, sim.Broken}
	var now time.Duration
	for n := 0; now < length; n++ {
		if k := len(ends); k > 0 && now > length*time.Duration(4-k)/4-z.life {
			t := tool(n, seed, ends[0], z.life)
			p.stays = append(p.stays, stay{tool: t})
			now += z.life + z.life/p.drilling(t)*p.pause
			ends = ends[1:]
			continue
		}
		s, stays, _ := p.healthy(n, z.life)
		p.stays = append(p.stays, s)
		now += stays
	}
	for i, f := range []sim.Fault{
		{Kind: sim.Flatline, Channel: "ch07"}, {Kind: sim.Dropout, Channel: "ch02"}, {Kind: sim.Clipping, Channel: "ch11"},
		{Kind: sim.NonFinite, Channel: "torque"}, {Kind: sim.ClockDrift, Channel: "ch01"},
	} {
		// Between the tools that fail: while the clock of all accelerations is wrong no tool is judged.
		f.From, f.For = time.Duration([...]float64{0.05, 0.12, 0.42, 0.66, 0.93}[i]*float64(length)).Round(time.Second), time.Minute
		p.faults = append(p.faults, f)
	}
	return p
}

// healthyTools returns a machine that cuts for the given time with tools that are fit.
func healthyTools(name string, seed uint64, cutting time.Duration, z size) *plan {
	p := &plan{name: name, seed: seed, hole: z.hole, pause: 5 * time.Second}
	var cut time.Duration
	for n := 0; cut < cutting; n++ {
		s, _, cuts := p.healthy(n, z.life)
		p.stays = append(p.stays, s)
		cut += cuts
	}
	return p
}

// failingTools returns a machine of the experiment's tools from..to, which all fail: 11 of the
// 20 wear out, 6 chip and 3 break. They live for four minutes at most.
func failingTools(name string, seed uint64, from, to int, z size) *plan {
	p := &plan{name: name, seed: seed, hole: z.hole, pause: 5 * time.Second}
	for _, t := range sim.Tools(seed, min(z.life, 4*time.Minute))[from:to] {
		p.stays = append(p.stays, stay{tool: t})
	}
	return p
}

// failingSensors returns a machine whose tools are fit and of whose sensors n fail, one every 30 s
// for 12 s.
func failingSensors(name string, seed uint64, n int, z size) *plan {
	const every = 30 * time.Second
	p := healthyTools(name, seed, time.Duration(n+2)*every, z)
	channels := signal.GunDrill().Channels()
	kinds := []sim.FaultKind{sim.Flatline, sim.Dropout, sim.Clipping, sim.NonFinite}
	for i := range n {
		f := sim.Fault{Kind: kinds[i%len(kinds)], Channel: channels[(5*i)%len(channels)].Name, From: time.Duration(i+1) * every, For: 12 * time.Second}
		if f.Kind == sim.Clipping && channels[(5*i)%len(channels)].Range == 0 {
			f.Kind = sim.Flatline // nothing says where it clips
		}
		if i%10 == 9 {
			f.Kind, f.Channel = sim.ClockStep, channels[i%len(channels)].Name
		}
		p.faults = append(p.faults, f)
	}
	return p
}

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

func (f *findings) found() (n int) {
	for i := range f.failures {
		if f.failures[i].found() {
			n++
		}
	}
	return n
}

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
		d := watched.Apply(machine.Window{Features: features, Offset: event.Offset{At: int64(seq)}, At: w.End(), Now: w.End()})
		class, known := rule.Class(c.Truth.VBMeanUM, c.Truth.VBMaxUM, c.Truth.State)
		r.moments = append(r.moments, moment{
			end: w.End(), tool: stayOf[w.Tool], faulty: known && class > 0, wear: c.Truth.VBMaxUM, phase: c.Truth.Phase,
			verdict: d.Result.Verdict, score: d.Result.Score, alarm: d.Result.Alarm,
		})
		r.alerts = append(r.alerts, d.Alerts...)
		r.advisories = append(r.advisories, d.Advisories...)
	}
}
