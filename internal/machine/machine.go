// Package machine decides what happens to one machine. It is pure: no Kafka, no clock, no
// goroutine, so that a simulation can drive it through as many bad days as it likes.
//
// A [Machine] holds its settings, one [State], and what changes that: its alarms, tools, judges and notices. [Machine.Apply] takes an
// [Event], which is a window, one that is refused, a command, a tick of the clock or evidence
// that was written, and returns a [Decision]: everything that is to be
// published, logged and counted. [Owner] is the machines of one partition, and the order
// in which its owner takes it over, reads and publishes.
//
// An alarm belongs to a tool life of a machine, and waits while another tool is in the spindle. What a model
// knows of a tool life is a [Judging], which belongs to that model for ever. A machine remembers
// the last [keptTools] tools, until a tool is declared new.
package machine

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/window"
)

// Settings are the same for all machines of a monitor.
type Settings struct {
	Group       string         // consumer group of the monitor: part of the ids of what it publishes
	Alarm       alarm.Settings // zero means alarm.Default
	Silence     time.Duration  // how long no window of a machine may come before that is an advisory; 0: never
	Evidence    bool           // alerts announce evidence
	EvidenceURL string         // address of the page that serves it, as receivers of alerts reach it
	Limits      Limits         // zero: the limits of a plant
}

// Limits bound what is remembered of a machine, and what it waits for. 0 means the value that a plant has, which the comments name.
type Limits struct {
	Tools    int // those seen last: keptTools
	Epochs   int // 256: a machine gets a new epoch with every spool, and some sources with every file
	Retained int // 20,000 windows that come while a build runs; with more, it runs again
	Unjudged int // 64 windows in a row without a verdict, and twice as many as a reference has, after which a machine is not watched
}

func (s *Settings) keptTools() int    { return cmp.Or(s.Limits.Tools, keptTools) }
func (s *Settings) keptEpochs() int   { return cmp.Or(s.Limits.Epochs, 256) }
func (s *Settings) mostRetained() int { return cmp.Or(s.Limits.Retained, 20_000) }
func (s *Settings) mostUnjudged() int { return cmp.Or(s.Limits.Unjudged, 64) }

// Model is a model as machines use it. It is not safe for concurrent use.
type Model struct {
	model *model.Model
	judge *model.Judge
	print string
	takes string // windowsOf what it is trained on

	sensors []sensed // that its guard knows, see byFeatures

	form  *window.Form // that covers was asked about last
	unfit error
}

// NewModel returns m for machines that are used by one goroutine.
func NewModel(m *model.Model) *Model {
	j := m.NewJudge()
	// The medians of features are the same for every model that measures the same features
	// in the same windows, and takes the same windows for cutting: networks and costs do not enter.
	text, err := json.Marshal(struct {
		Layout   string
		Window   window.Spec
		Version  int
		Features []string
		Windows  int
		Off      bool
		Cycle    *cycle.Model     `json:",omitempty"`
		Gate     *model.Gate      `json:",omitempty"`
		Usual    []signal.Quality `json:",omitempty"`
	}{m.Layout.Fingerprint(), m.Window, m.Features.Version, j.FeatureNames(), m.Reference.Windows, m.Reference.Mode == model.ReferenceOff, m.Cycle, m.Gate, m.Usual})
	assert(err == nil, "strings and numbers can be written: %v", err)
	sum := sha256.Sum256(text)
	return &Model{model: m, judge: j, print: fmt.Sprintf("%x", sum[:8]), takes: windowsOf(m.Layout, m.Window), sensors: sensorsOf(j, m.Layout)}
}

// windowsOf says in short which windows a layout and a length make.
func windowsOf(l *signal.Layout, s window.Spec) string {
	return l.Fingerprint() + "/" + s.Length.String()
}

func (m *Model) id() string { return m.model.ID() }

// errNoForm is why no model can judge features of a form that is not known.
var errNoForm = errors.New("the form of the features is not known")

// covers reports why the model cannot judge features of a form; nil: one that is not known.
func (m *Model) covers(form *window.Form) error {
	if form == nil {
		return errNoForm
	}
	if m.form != form {
		m.form, m.unfit = form, m.judge.Covers(form)
	}
	return m.unfit
}

// candidates are the models that the machines of one goroutine use. The zero value knows none.
type candidates struct {
	known func(id string) *model.Model // nil: none but those that are used
	used  map[string]*Model            // by id
}

// NewModels returns the models of a fleet.
func NewModels(f Fleet) *candidates { return &candidates{known: f.Model} }

// of returns the model with an id; nil if it is not known.
func (x *candidates) of(id string) *Model {
	if m := x.used[id]; m != nil || x.known == nil || id == "" {
		return m
	}
	if m := x.known(id); m != nil {
		return x.use(m)
	}
	return nil
}

// use returns m as the machines use it.
func (x *candidates) use(m *model.Model) *Model {
	if x.used[m.ID()] == nil {
		x.add(NewModel(m))
	}
	return x.used[m.ID()]
}

func (x *candidates) add(m *Model) {
	if x.used == nil {
		x.used = make(map[string]*Model)
	}
	x.used[m.id()] = m
}

// keep forgets the models that are not among some ids: judges take memory.
func (x *candidates) keep(ids map[string]bool) {
	maps.DeleteFunc(x.used, func(id string, _ *Model) bool { return !ids[id] })
}

// Machine is one machine. It is not safe for concurrent use.
type Machine struct {
	State
	settings *Settings
	judges   judges
	alarms   alarms
	tools    tools
	decision *Decision // of the event that is being applied, empty between two
	dirty    *dirty

	source       sourceLedger        // the last one; empty: none came since the monitor has the machine
	unshown      *event.Ledger       // that the next result shows; nil: none
	waitingSince time.Time           // since when a window is waited for, by our clock
	askedEnd     *Position           // up to which the partition must be judged before the machine may be called silent
	gone         bool                // it was retired, and no window has come since: only the ids of its commands are remembered
	stopped      string              // why nothing is judged any more: a defect, see stop
	unwritable   bool                // a defect: no record is written
	unread       []event.StateRecord // that a defect kept from being read; they stay as they are
}

// dirty says which records differ from those that were written last.
type dirty struct {
	head, slow bool
	tools      map[string]bool // names; of one that is forgotten too
	judgings   map[judgingKey]bool
}

// judgingKey names what a model knows of a tool.
type judgingKey struct{ tool, model string }

func (d *dirty) any() bool { return d.head || d.slow || len(d.tools) > 0 || len(d.judgings) > 0 }

func (d *dirty) judging(tool, model string) { d.judgings[judgingKey{tool, model}] = true }

// tool makes Records return all records of a tool, or their ends.
func (d *dirty) tool(t *Tool) {
	d.tools[t.Name] = true
	for _, j := range t.Judgings {
		d.judging(t.Name, j.Model)
	}
}

// all makes Records return all records of a machine that has those tools.
func (d *dirty) all(tools []*Tool) {
	d.head, d.slow = true, true
	for _, t := range tools {
		d.tool(t)
	}
}

// New returns a machine of which nothing is known, at that time, whose windows a model judges, of any layout.
// The model may be nil: then nothing judges them.
func New(name string, s *Settings, m *Model, now time.Time) (*Machine, error) {
	models, d := new(candidates), (*Deployment)(nil)
	if m != nil {
		models.add(m)
		d = &Deployment{Champion: m.model}
	}
	one, err := newMachine(name, s, models, func(string) *Deployment { return d }, now)
	if err != nil {
		return nil, err
	}
	if one.deploy(d); m != nil {
		one.Model = m.id()
	}
	return one, nil
}

func newMachine(name string, s *Settings, models *candidates, deployed func(layout string) *Deployment, now time.Time) (*Machine, error) {
	set, err := s.Alarm.Complete()
	if err != nil {
		return nil, err
	}
	m := &Machine{
		State: State{headState: headState{Machine: name}}, settings: s, waitingSince: now,
		decision: new(Decision), dirty: &dirty{tools: make(map[string]bool), judgings: make(map[judgingKey]bool)},
	}
	m.alarms = alarms{&m.State, set, s.Group, m.decision, m.dirty}
	m.tools = tools{&m.State, s, &m.alarms, m.decision, m.dirty}
	m.judges = judges{models: models, deployed: deployed, settings: s, state: &m.State, alarms: &m.alarms, decision: m.decision, dirty: m.dirty}
	return m, nil
}

// deploy makes a deployment the machine's; nil: none.
func (m *Machine) deploy(d *Deployment) {
	m.judges.deployment = d
	set := m.settings.Alarm
	if d != nil && d.Alarm != (alarm.Settings{}) {
		set = d.Alarm
	}
	var err error
	m.alarms.set, err = set.Complete()
	assert(err == nil, "a deployment is checked when it is read: %v", err)
}

// assert ends in a panic if something is not so that must be. The text says what is known, and what there is. A machine that panics is
// stopped, and the others go on.
func assert(ok bool, text string, args ...any) {
	if !ok {
		panic("machine: " + fmt.Sprintf(text, args...))
	}
}

// Event is something that happens to a machine: [Window], [refusedWindow], [Command], [Tick] or
// [EvidenceDone].
type Event interface{ apply(*Machine) }

// Window is a window of the machine that lies at an offset, as the features that it is judged
// by.
type Window struct {
	*window.Features
	Offset event.Offset
	At     time.Time // when Kafka got it
	Now    time.Time // by the clock of the monitor

	between bool     // it lies between windows of the tool in the spindle
	refused *Refusal // why no model can be asked: the features have no form that is known; nil: one may be
}

// layout returns the fingerprint of the layout.
func (w Window) layout() string {
	if w.refused != nil {
		return w.refused.Layout
	}
	return w.Form.Layout().Fingerprint()
}

// Tick is the time, by the clock of the monitor.
type Tick struct {
	Now     time.Time
	Trouble time.Time // when the broker did not answer, or answered again, last
	Next    Position  // what is to be judged next
	Waits   bool      // messages wait in Kafka, or may: their time comes first, and nothing is over by the clock of the monitor
}

// Decision is everything that follows from one event.
type Decision struct {
	Result     *event.Result // nil: no window was judged
	Alerts     []event.Alert
	Advisories []event.Advisory
	Evidence   *event.Evidence
	Shadows    []Output // what shadows say
	Refused    string   // why a command goes to the dead letters; empty: it does not
	Repeat     bool     // the window came before
	Unwatched  bool     // no model judged the window
	Missing    uint64   // windows missing between this one and the one before
	Defects    uint64   // that showed as panics
	Lines      []Line   // for the log
	AskEnd     bool     // the end of the windows topic decides whether the machine is silent
}

// Line is a line for the log.
type Line struct {
	Warn  bool
	Event string // a word that programs look for
	Text  string // for a person
}

// Empty reports whether there is nothing to publish, so that no record has changed either.
func (d *Decision) Empty() bool {
	return d.Result == nil && len(d.Alerts) == 0 && len(d.Shadows) == 0 && len(d.Advisories) == 0 && d.Evidence == nil && d.Refused == ""
}

// Apply lets an event happen and returns what follows from it. The decision is the
// caller's.
func (m *Machine) Apply(e Event) Decision {
	assert(m.stopped == "" && m.decision.Empty(), "%s takes %T: stopped %q, and of the event before is left %+v", m.Machine, e, m.stopped, m.decision)
	e.apply(m)
	if !m.decision.Empty() {
		m.dirty.head = true
	}
	return m.decision.take()
}

// take returns the decision, and begins another one.
func (d *Decision) take() Decision {
	made := *d
	*d = Decision{}
	return made
}

// inSpindle returns the tool that is in the spindle; nil before the first window.
func (s *State) inSpindle() *Tool {
	if len(s.Tools) == 0 {
		return nil
	}
	return s.Tools[len(s.Tools)-1]
}

func (t Tick) apply(m *Machine) {
	if !t.Waits {
		m.alarms.expire(t.Now)
		m.alarms.callAtLast(t.Now)
	}
	m.checkSilence(t)
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
	case m.askedEnd != nil && t.Next.beyond(*m.askedEnd):
		m.silent(t.Now)
	default:
		m.decision.AskEnd = true // again and again, as what lies before the end may be deleted unread
	}
}

// overdue reports whether no window of the machine has come for too long, and no advisory
// says so yet.
func (m *Machine) overdue(now time.Time) bool {
	return m.settings.Silence > 0 && now.Sub(m.waitingSince) >= m.settings.Silence && m.Notices.of(event.SilenceAdvisory, "") == nil
}

// EndIs answers a decision's AskEnd: the windows and features of the partition end there.
// Known is false if the broker did not answer; then the waiting begins again.
func (m *Machine) EndIs(end Position, known bool, now time.Time) {
	if !known {
		m.waitingSince, m.askedEnd = now, nil
		return
	}
	m.askedEnd = m.askedEnd.nearer(end)
}

func (d *Decision) warn(event, format string, args ...any) {
	d.Lines = append(d.Lines, Line{true, event, fmt.Sprintf(format, args...)})
}

// References returns how many tools have a reference, or are learning one.
func (s *State) References() (n int) {
	for _, t := range s.Tools {
		if slices.ContainsFunc(t.Judgings, func(j *Judging) bool { return j.Reference.Windows > 0 }) {
			n++
		}
	}
	return n
}

// AlarmWord returns the state of the alarm of the tool in the spindle, in the words of a result.
func (m *Machine) AlarmWord() string {
	return m.alarms.inSpindle().word()
}

// Judges returns the ids of the models that judge the tool in the spindle, and that will from its next entry or
// another tool on; empty if there is none.
func (m *Machine) Judges() (now, next string) {
	if m.judges.deployment != nil {
		now = m.judges.deployment.Champion.ID()
	}
	if t := m.inSpindle(); t != nil && t.By != now && m.judges.models.of(t.By) != nil && m.judges.models.anotherKnows(t, now, m.judges.form) {
		return t.By, now
	}
	return now, ""
}

// Shadows returns the ids of the models that judge the tool in the spindle as shadows, in order.
func (m *Machine) Shadows() (ids []string) {
	if t := m.inSpindle(); t != nil {
		for _, j := range t.Judgings {
			if j.Trial != nil && m.judges.deployment.trial(j.Model, m.lastAt()) {
				ids = append(ids, j.Model)
			}
		}
	}
	slices.Sort(ids)
	return ids
}
