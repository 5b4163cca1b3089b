// Package machine decides what happens to one machine. It is pure: no Kafka, no clock, no
// goroutine, so that a simulation can drive it through as many bad days as it likes.
//
// A [Machine] holds its settings, its model and one [State]. [Machine.Apply] takes an
// [Event], which is a window, one that is refused, a command, a tick of the clock, evidence
// that was written or a reference that was rebuilt, and returns a [Decision]: everything that is to be
// published, logged and counted. [Owner] is the machines of one partition, and the order
// in which its owner takes it over, reads and publishes.
//
// Reference, wear, drift and alarm belong to a tool of a machine. They wait while another
// tool is in the spindle, for the last [KeptTools] tools, until the tool is declared new.
package machine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Settings are the same for all machines of a monitor.
type Settings struct {
	Group       string         // consumer group of the monitor: part of the ids of what it publishes
	Alarm       alarm.Settings // zero means alarm.Default
	Silence     time.Duration  // how long no window of a machine may come before that is an advisory; 0: never
	Evidence    bool           // alerts announce evidence
	EvidenceURL string         // address of the page that serves it, as receivers of alerts reach it
}

// Model is a model as machines use it. It is not safe for concurrent use.
type Model struct {
	model *model.Model
	judge *model.Judge
	print string

	form  *window.Form // that covers was asked about last
	unfit error
}

// NewModel returns m for machines that are used by one goroutine.
func NewModel(m *model.Model) *Model {
	j := m.NewJudge()
	// The medians of features are the same for every model that measures the same features
	// in the same windows: networks and costs do not enter.
	text, err := json.Marshal(struct {
		Layout   string
		Window   window.Spec
		Version  int
		Features []string
		Windows  int
		Off      bool
	}{m.Layout.Fingerprint(), m.Window, m.Features.Version, j.FeatureNames(), m.Reference.Windows, m.Reference.Mode == model.ReferenceOff})
	if err != nil {
		panic("machine: NewModel: " + err.Error()) // strings and numbers
	}
	sum := sha256.Sum256(text)
	return &Model{model: m, judge: j, print: fmt.Sprintf("%x", sum[:8])}
}

// fingerprint names what a reference under the model is of: layout, window, features and
// their version, and how many windows are learnt from. A reference survives any model
// of the same fingerprint.
func (m *Model) fingerprint() string { return m.print }

// Machine is one machine. It is not safe for concurrent use.
type Machine struct {
	State
	settings *Settings
	model    *Model       // that judges; nil: none is deployed
	alarm    *alarm.Alarm // of the tool in the spindle

	deployment *Deployment    // nil before the first window
	alarmed    alarm.Settings // of alarm
	next       *Model         // that judges from the next tool on; nil: none
	replay     *Replay        // that runs
	retained   []retained     // windows that were judged since it began
	awaiting   bool           // a shadow that has not seen the past of its tool
	passing    string         // a shadow passes over that tool, whose past cannot be found

	waitingSince time.Time // since when a window is waited for, by our clock
	askedEnd     *Position // up to which the partition must be judged before the machine may be called silent
	gone         bool      // it was retired, and no window has come since: only the ids of its commands are remembered
	dirty        dirty
	decision     *Decision // of the event that is being applied
}

// dirty says which records differ from those that were written last.
type dirty struct {
	head, slow bool
	tools      map[string]bool // names; of one that is forgotten too
}

// New returns a machine of which nothing is known, at that time. The model may be nil: then
// none is deployed for it.
func New(name string, s *Settings, m *Model, now time.Time) (*Machine, error) {
	a, err := alarm.New(s.Alarm)
	if err != nil {
		return nil, err
	}
	return &Machine{State: State{Machine: name}, settings: s, model: m, alarm: a, alarmed: s.Alarm, waitingSince: now, dirty: dirty{tools: make(map[string]bool)}}, nil
}

// writeAll makes Records return all records.
func (m *Machine) writeAll() {
	m.dirty.head, m.dirty.slow = true, true
	for _, t := range m.Tools {
		m.dirty.tools[t.Name] = true
	}
}

// Event is something that happens to a machine: [Window], [RefusedWindow], a window that is passed
// over, [Command], [Tick], [EvidenceDone] or [Rebuilt].
type Event interface{ apply(*Machine) }

// Window is a window of the machine that lies at an offset, as the features that it is judged
// by.
type Window struct {
	*window.Features
	Offset int64     // in the machine's partition of the windows topic; see InFeatures
	At     time.Time // when Kafka got it
	Now    time.Time // by the clock of the monitor
}

// Tick is the time, by the clock of the monitor.
type Tick struct {
	Now     time.Time
	Trouble time.Time // when the broker did not answer, or answered again, last
	Next    Position  // what is to be judged next
}

// Decision is everything that follows from one event.
type Decision struct {
	Result     *event.Result // nil: no window was judged
	Alerts     []event.Alert
	Advisories []event.Advisory
	Evidence   *event.Evidence
	Refused    string // why a command goes to the dead letters; empty: it does not
	Repeat     bool   // the window was judged before
	Missing    uint64 // windows missing between this one and the one before
	Lines      []Line // for the log
	AskEnd     bool   // the end of the windows topic decides whether the machine is silent
}

// Line is a line for the log.
type Line struct {
	Warn  bool
	Event string // a word that programs look for
	Text  string // for a person
}

// Empty reports whether there is nothing to publish, so that no record has changed either.
func (d *Decision) Empty() bool {
	return d.Result == nil && len(d.Alerts) == 0 && len(d.Advisories) == 0 && d.Evidence == nil && d.Refused == ""
}

// Apply lets an event happen and returns what follows from it. The decision is the
// caller's.
func (m *Machine) Apply(e Event) Decision {
	var d Decision
	m.decision = &d
	e.apply(m)
	m.decision = nil
	if t := m.inSpindle(); t != nil {
		t.Alarm = m.alarm.State()
	}
	if !d.Empty() {
		m.dirty.head = true
	}
	return d
}

// inSpindle returns the tool that is in the spindle; nil before the first window.
func (m *Machine) inSpindle() *Tool {
	if len(m.Tools) == 0 {
		return nil
	}
	return m.Tools[len(m.Tools)-1]
}

func (t Tick) apply(m *Machine) {
	m.decision.Alerts = append(m.decision.Alerts, m.expire(t.Now)...)
	if m.settings.Silence > 0 {
		m.checkSilence(t)
	}
}

// expire ends a shelf whose time is over.
func (m *Machine) expire(now time.Time) []event.Alert {
	was := m.alarm.State()
	changes := m.alarm.Expire(now)
	if len(changes) == 0 {
		return nil
	}
	c := m.causeWithoutWindow(fmt.Sprintf("%s/%s/shelf/%d", m.Machine, m.settings.Group, was.Shelf.Since.UnixNano()), was.Shelf.Until)
	c.reason = "expired"
	return m.report(changes, was, c)
}

// checkSilence raises the silence of a machine of which no window came for
// Settings.Silence.
//
// A monitor that is behind gets no windows either, while they lie in Kafka. So when a
// machine's time is over, the decision asks how far the partition goes, see
// [Machine.EndIs], and the machine is silent only if all that has been judged by then is
// not of it. While Kafka does not answer, and for a while after, nothing is known of any
// machine: the time begins again. So it does after a partition was taken over.
func (m *Machine) checkSilence(t Tick) {
	if t.Trouble.After(m.waitingSince) {
		m.waitingSince, m.askedEnd = t.Trouble, nil // what was asked before an outage is not an answer any more
	}
	switch {
	case !m.overdue(t.Now): // or people know
	case m.askedEnd == nil:
		m.decision.AskEnd = true
	case t.Next.beyond(*m.askedEnd):
		m.silent(t.Now)
	}
}

// overdue reports whether no window of the machine has come for too long, and no advisory
// says so yet.
func (m *Machine) overdue(now time.Time) bool {
	return m.settings.Silence > 0 && now.Sub(m.waitingSince) >= m.settings.Silence && m.notice(event.SilenceAdvisory, "") == nil
}

// EndIs answers a decision's AskEnd: the windows and features of the partition end there.
// Known is false if the broker did not answer; then the waiting begins again.
func (m *Machine) EndIs(end Position, known bool, now time.Time) {
	if !known {
		m.waitingSince, m.askedEnd = now, nil
		return
	}
	if m.askedEnd == nil {
		m.askedEnd = &end
	}
}

func (m *Machine) warn(event, format string, args ...any) {
	m.decision.Lines = append(m.decision.Lines, Line{true, event, fmt.Sprintf(format, args...)})
}

// Missing returns how many windows have not come, in all epochs: between the first and the
// last that were judged.
func (m *Machine) Missing() (n uint64) {
	for _, e := range m.Epochs {
		n += e.Judged.holes()
	}
	return n
}

// References returns how many tools have a reference, or are learning one.
func (m *Machine) References() (n int) {
	for _, t := range m.Tools {
		if t.Reference.Windows > 0 || t.Rebuild {
			n++
		}
	}
	return n
}
