// Package oracle says what Flank promises about one machine: docs/concepts/alarms.md,
// docs/concepts/tools.md, docs/concepts/advisories.md and docs/algorithm/drift.md. Tests and the simulation
// hold internal/machine against it.
//
// It shares no code with the product. It is as simple as it can be: it keeps every window, and
// counts them again for each question. It has no records and no restart, so a machine that
// follows it forgets nothing over a restart.
//
// What a model says of a window is an argument, see [Model]. The oracle decides which model
// judges, and by which windows of the tool.
package oracle

import (
	"cmp"
	"slices"
	"time"
)

// Machine is one machine. Fill in the exported fields, and change them whenever they change.
type Machine struct {
	Settings Settings // of the alarm
	Silence  time.Duration
	Limits   Limits
	Deployed map[string]*Deployment // by Window.Layout; empty layout: for every other one

	epochs  []*epoch        // the leading one last
	known   bool            // a window came since it was new
	judged  bool            // and one was judged
	layout  string          // of the last window in order
	newest  time.Time       // end of the last window in order
	ids     map[string]bool // of commands that came
	waiting time.Time

	unjudged int // windows in order since the last one with a verdict

	counts *Settings // by which windows are counted; nil: the present ones

	drift map[string]*drifting // by the id of a model

	now time.Time // of the present event

	alarmBook
}

// magazine has the tools of a machine.
type magazine struct {
	tools       []*tool   // those in the magazine, in the order in which they left the spindle; then the one in the spindle
	forgotten   []*tool   // for room, the last one last
	untoldSince time.Time // when the windows in order began that name no tool, behind the last one of the tool in the spindle; zero: there are none
}

// answers has what a machine says, and what it has said and still holds.
type answers struct {
	out     *Outcome // of the present event
	open    map[string]*condition
	sensors map[string]*sensor // by subject
}

// alarmBook has the alarms of a machine's tools.
type alarmBook struct {
	magazine
	answers
	masks    masks            // of all its tools
	numbered int              // how many alarms there were
	past     []pastAlarm      // that were called
	set      func() *Settings // the present ones
}

// Settings are the settings of alarms.md.
type Settings struct {
	K, N, Clear       int
	OnHold, OffHold   time.Duration
	Latch             bool
	MaxShelf, ReAlarm time.Duration
	Threshold         float64
}

// Limits say how much a machine remembers. Zero means the numbers of tools.md.
type Limits struct {
	Tools  int // 64
	Epochs int // 256

	Unjudged int // windows without a verdict, and twice the model's reference, after which it is not monitored: 64
}

func (l Limits) unjudged() int { return cmp.Or(l.Unjudged, 64) }

// Deployment says which models judge windows of a layout.
type Deployment struct {
	Champion *Model
	Now      bool // a new champion judges as soon as it has seen all of the tool in the spindle
	Shadows  []Shadow
	Settings *Settings // of the alarm, while the machine's last window in order was of the layout; nil: the machine's
}

// Shadow is a model that judges the champion's windows and moves no alarm.
type Shadow struct {
	*Model
	Until time.Time // by Kafka's clock; zero: for ever
}

// over reports whether the shadow has ended.
func (s Shadow) over(at time.Time) bool { return !s.Until.IsZero() && !at.Before(s.Until) }

// Window is a window as Kafka has it. Two windows of one epoch and number are one window that
// came twice.
type Window struct {
	Tool, Life string // an empty life is the present one
	Epoch      string
	Seq        uint64
	Start, End time.Time // by sensors: they only say how long it cut
	At         time.Time // when Kafka got it
	Now        time.Time // by the monitor's clock
	Layout     string
	Value      any // for Model.Judge
	Sensors    []Sensor
}

// NoTool is why a window is unknown that names no tool.
const NoTool = "no_tool"

// Place says how a window counts.
type Place string

// The places.
const (
	InOrder     Place = "in order"
	Provisional Place = "provisional" // of an epoch that may take over: it moves its own tool, which is not in the spindle
	Late        Place = "late"        // it moves nothing
	Rival       Place = "rival"       // likewise, of a second ingester
	Repeat      Place = "repeat"      // it came before
	Nowhere     Place = "nowhere"     // of a machine of which no window was ever judged
)

// Outcome is what follows from an event.
type Outcome struct {
	Place      Place
	Result     *Result // nil: no model judges the window
	Trials     []Result
	Alerts     []Alert // an alert of a shadow names it
	Advisories []Advisory
	Answer     Answer // to a command
}

// Result is what is published about a window.
type Result struct {
	Model    string
	Verdict  Verdict
	Late     bool
	Alarm    string // of the tool in the spindle, after the event; empty for a shadow
	Incident int    // likewise
}

// Alert is what is published about an alarm.
type Alert struct {
	State, Reason, Tool, Severity string
	Alarm                         string    // the state afterwards
	Incident                      int       // tells alarms apart: 1, 2, …; 0: of none
	At                            time.Time // of what ended by itself; zero: the time of the event
	Shadow                        string    // id of the model; empty: of the machine
}

// Advisory is what is published about another condition than an alarm. The kind of one of a sensor has its subject.
type Advisory struct{ Kind, State string }

// The kinds of advisories that the oracle knows.
const (
	TwoIngesters  = "two_ingesters"
	Refused       = "windows_refused"
	Silent        = "silence"
	ModelChanged  = "model_changed"
	UsedReference = "used_reference" // the reference was learnt from a tool that was not new
	Faulty        = "sensor "        // and its subject
	Unmonitored   = "unknown"
	Drifts        = "drift"
)

// Window takes a machine's next window.
func (m *Machine) Window(w Window) Outcome {
	out := m.begin(w.At)
	m.known = true
	d := m.deployment(w.Layout)
	if !m.judged && (d == nil || !d.Champion.covers(&w)) {
		m.awake(w.Now)
		m.refuse(w.At)
		out.Place = Nowhere
		return m.finish()
	}
	m.judged = true
	untold := m.untold(&w)
	out.Place = m.place(&w)
	if out.Place != InOrder { // a late one may be of a tool without a name
		untold = untold && w.End.Before(m.newest.Add(time.Minute)) && w.End.After(m.newest.Add(-time.Minute))
	}
	if out.Place == Repeat {
		return m.finish()
	}
	m.awake(w.Now)
	m.ingesters(&w, out.Place)
	switch {
	case untold:
		m.passOver(&w, d)
	case out.Place == InOrder:
		m.layout, m.newest, m.untoldSince = w.Layout, w.End, time.Time{}
		entered := m.putIn(&w)
		t := m.spindle()
		t.windows = append(t.windows, &w)
		if r := m.judge(t, &w, d, entered); r == nil {
			m.refuse(w.At)
		}
		m.modelAdvisories(t, &w, d)
		if entered {
			m.announce(w.At, "tool_back")
		}
	case out.Place == Provisional:
		if t := m.toolOf(&w); t.judgeable(&w, d) {
			m.keep(t)
			t.windows = append(t.windows, &w)
			m.judge(t, &w, d, false)
		}
	default:
		m.look(&w, d)
	}
	if r := out.Result; r != nil {
		if out.Place == InOrder {
			m.accept(w.At)
		}
		if out.Place == InOrder {
			m.sense(&w)
			m.unknown(m.spindle(), &w, r, d)
		}
		if out.Place == InOrder && !untold {
			m.drifts(m.spindle(), &w, d)
		}
		r.Alarm, r.Incident = m.Alarm(), m.spindle().alarm.incident
	}
	return m.finish()
}

// Unreadable takes a window that no monitor can open, of which Kafka says that it is of the
// machine.
func (m *Machine) Unreadable(at, now time.Time) Outcome {
	m.begin(at)
	m.known = true
	m.awake(now)
	m.refuse(at)
	return m.finish()
}

// Tick is the time by the monitor's clock.
type Tick struct {
	Now     time.Time
	Trouble time.Time // when the broker did not answer last
	Behind  bool      // the monitor has not judged everything that Kafka had when the machine was overdue
}

// Tick takes the time.
func (m *Machine) Tick(t Tick) Outcome {
	m.begin(t.Now)
	if t.Trouble.After(m.waiting) {
		m.waiting = t.Trouble
	}
	if m.Overdue(t.Now) && !t.Behind {
		m.raise(Silent)
	}
	return m.finish()
}

// Restarted says that another monitor has taken the machine over.
func (m *Machine) Restarted(now time.Time) { m.waiting = now }

// Overdue reports whether no window has come for so long that the machine is silent, unless the
// monitor is behind, and no advisory says so yet.
func (m *Machine) Overdue(now time.Time) bool {
	return m.known && m.Silence > 0 && now.Sub(m.waiting) >= m.Silence && m.open[Silent] == nil
}

// Alarm returns the state of the machine's alarm, as results have it.
func (m *alarmBook) Alarm() string {
	if len(m.tools) == 0 {
		return m.empty()
	}
	return m.word(m.spindle())
}

// Known reports whether a window came since the machine was new.
func (m *Machine) Known() bool { return m.known }

// Came reports whether a command of an id came before.
func (m *Machine) Came(id string) bool { return m.ids[id] }

// Open reports whether an advisory is open.
func (m *answers) Open(kind string) bool { return m.open[kind] != nil }

// begin begins an event. Shelves and silences that its time ends come first, in the order of time: an event
// that is handled late has the outcome of one that is handled at once.
func (m *Machine) begin(now time.Time) *Outcome {
	m.out, m.now, m.set = &Outcome{}, now, m.settings
	if m.open == nil {
		m.forget()
		m.ids, m.waiting = make(map[string]bool), now
	}
	for m.endNext(now) {
	}
	return m.out
}

// endNext ends the shelf or the silence that is over first, and reports whether there was something.
func (m *Machine) endNext(now time.Time) bool {
	var shelf *tool
	for _, t := range m.tools {
		if until := t.masks.shelf; !until.IsZero() && !now.Before(until) && (shelf == nil || until.Before(shelf.masks.shelf)) {
			shelf = t
		}
	}
	wait, at := m.firstToCall(now)
	if shelf != nil && (wait == nil || !at.Before(shelf.masks.shelf)) {
		until := shelf.masks.shelf
		m.unmask(shelf, "shelved", "expired", until)
		return true
	}
	if wait != nil {
		m.call(m.spindle(), wait, at, "tool_back", at)
		return true
	}
	return false
}

// finish ends an event. A silence that is over by the settings of a layout which the event has brought ends
// before the next one.
func (m *Machine) finish() Outcome {
	if len(m.tools) > 0 {
		for _, a := range m.spindle().alarms() {
			if a.called.IsZero() {
				m.announceAt([]*alarm{a}, m.now, "", time.Time{})
			}
		}
	}
	out := *m.out
	m.out = nil
	return out
}

// forget makes it a machine of which nothing is known, but for the commands that came.
func (m *Machine) forget() {
	m.epochs, m.tools, m.forgotten, m.masks, m.known, m.judged, m.layout, m.past, m.drift = nil, nil, nil, masks{}, false, false, "", nil, nil
	m.unjudged = 0
	m.open, m.sensors = make(map[string]*condition), make(map[string]*sensor)
}

// Rename returns a machine that goes on under another name with what is known of an old one, and
// what follows from that. The command has an id, Kafka got it at a time, and a monitor's clock shows another.
func Rename(old *Machine, id string, at, now time.Time) (*Machine, Outcome) {
	m := &Machine{
		layout:   old.layout,
		Settings: old.Settings, Silence: old.Silence, Limits: old.Limits, Deployed: old.Deployed,
		known: old.known, judged: len(old.tools) > 0, ids: map[string]bool{id: true}, waiting: now, drift: make(map[string]*drifting),
	}
	m.open, m.sensors = make(map[string]*condition), make(map[string]*sensor)
	m.past, m.numbered, m.masks, m.forgotten = slices.Clone(old.past), old.numbered, old.masks, slices.Clone(old.forgotten)
	for _, t := range old.tools {
		m.tools = append(m.tools, t.renamed())
	}
	for id, d := range old.drift {
		m.drift[id] = &drifting{slices.Clone(d.tools), slices.Clone(d.refs), d.there}
	}
	for known := range old.ids {
		m.ids[known] = true
	}
	m.begin(at)
	m.out.Answer = Done
	tool := ""
	if len(m.tools) > 0 {
		tool = m.spindle().name
	}
	m.alert(Alert{State: "renamed", Tool: tool, Severity: "info", Alarm: m.empty()}) // no alarm has called under this name
	m.announce(at, "tool_back")
	return m, m.finish()
}

// spindle returns the tool in the spindle. There is one as soon as a window was judged.
func (m *magazine) spindle() *tool { return m.tools[len(m.tools)-1] }

func (m *Machine) deployment(layout string) *Deployment {
	if d := m.Deployed[layout]; d != nil {
		return d
	}
	return m.Deployed[""]
}

// AlarmSettings returns the present settings of the alarm.
func (m *Machine) AlarmSettings() *Settings { return m.settings() }

func (m *Machine) settings() *Settings {
	if m.counts != nil {
		return m.counts
	}
	if d := m.deployment(m.layout); d != nil && d.Settings != nil {
		return d.Settings
	}
	return &m.Settings
}

func (m *answers) alert(a Alert) { m.out.Alerts = append(m.out.Alerts, a) }
