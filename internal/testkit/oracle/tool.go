package oracle

import (
	"cmp"
	"slices"
	"time"
)

// tool is one life of one tool.
type tool struct {
	name, life string
	windows    []*Window // that moved it
	alarm      alarm
	masks      masks
	judgings   []*judging
	by         []*Model // that judged its windows, in order
	vain       []string // ids of models that have seen its past and could not use it
	pastGone   bool     // its first windows are not in Kafka any more
	was        bool     // in the spindle
	used       bool     // it came back after it was forgotten for room: it is not known with which window it began
}

// masks keep alarms from calling.
type masks struct {
	shelf                    time.Time // its end; zero: there is none
	suppressed, outOfService bool
}

func (k masks) on() bool { return !k.shelf.IsZero() || k.suppressed || k.outOfService }

// is reports whether a window is of the tool.
func (t *tool) is(w *Window) bool { return t.name == w.Tool && (w.Life == "" || w.Life == t.life) }

func (m *magazine) inSpindle(w *Window) bool { return len(m.tools) > 0 && m.spindle().is(w) }

// untold reports whether a window names no tool within the first minute of such windows behind a window of the tool in the spindle: the
// control has forgotten it for a moment, and the window counts for none.
func (m *Machine) untold(w *Window) bool {
	if len(m.tools) == 0 || m.spindle().name == "" || w.Tool != "" {
		return false
	}
	since := m.untoldSince
	if since.IsZero() {
		since = w.Start
	}
	return w.End.Before(since.Add(time.Minute)) && w.End.After(since.Add(-time.Minute))
}

// passOver takes a window that counts for no tool.
func (m *Machine) passOver(w *Window, d *Deployment) {
	t := m.spindle()
	if m.out.Place == InOrder {
		if m.newest = w.End; m.untoldSince.IsZero() {
			m.untoldSince = w.Start
		}
		if !w.End.After(m.untoldSince) {
			m.untoldSince = time.Time{}
		}
	}
	if !t.judgeable(w, d) {
		if m.out.Place == InOrder {
			m.refuse(w.At)
		}
		return
	}
	by := d.Champion
	if j := t.pick(w, d, false); j != nil {
		by = j.model
	}
	m.out.Result = &Result{Model: by.ID, Verdict: without(by, w, NoTool), Late: m.out.Place != InOrder}
	m.lookTrials(t, w, d, func(j *judging) Verdict { return without(j.model, w, NoTool) })
}

// named returns the tool of a name; nil if none is remembered.
func (m *magazine) named(name string) *tool {
	for _, t := range m.tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

// toolOf returns the tool of a window: the one that is remembered, or a new one.
func (m *magazine) toolOf(w *Window) *tool {
	if t := m.named(w.Tool); t != nil && t.is(w) {
		return t
	}
	t := &tool{name: w.Tool, life: w.Life}
	if f := m.forgottenTool(w.Tool); f != nil && (w.Life == "" || w.Life == f.life) {
		t.used, t.pastGone = true, true
	}
	return t
}

// keptNames is how many tools the machine can tell from new ones, of those that it has forgotten for room.
const keptNames = 1000

// forgottenTool returns the tool of a name that was forgotten for room; nil if none was.
func (m *magazine) forgottenTool(name string) *tool {
	for _, t := range m.forgotten {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (m *magazine) dropForgotten(name string) {
	m.forgotten = slices.DeleteFunc(m.forgotten, func(t *tool) bool { return t.name == name })
}

// keep remembers a tool that was never in the spindle, if there is room: it is the first one to be forgotten. A new life of a
// tool is not remembered before its epoch leads.
func (m *Machine) keep(t *tool) {
	if m.named(t.name) == nil && len(m.tools) < cmp.Or(m.Limits.Tools, 64) {
		m.tools = slices.Insert(m.tools, 0, t)
	}
}

func (m *magazine) drop(name string) {
	m.tools = slices.DeleteFunc(m.tools, func(t *tool) bool { return t.name == name })
}

func (m *Machine) dropOldest() {
	if len(m.tools) > cmp.Or(m.Limits.Tools, 64) {
		if t := m.tools[0]; t.was { // else no one takes it for new that has seen it
			m.dropForgotten(t.name)
			m.forgotten = append(m.forgotten, t)
			m.forgotten = m.forgotten[max(0, len(m.forgotten)-keptNames):]
		}
		m.tools = slices.Delete(m.tools, 0, 1)
	}
}

// putIn puts the tool of a window into the spindle, and reports whether it was not there. A life that is not the one of a name that
// is known was declared new.
func (m *Machine) putIn(w *Window) bool {
	if m.inSpindle(w) {
		return false
	}
	next := m.toolOf(w)
	declared := !slices.Contains(m.tools, next) && !next.used && (m.named(w.Tool) != nil || m.forgottenTool(w.Tool) != nil)
	reason := "tool_change"
	if declared && m.spindle().name == w.Tool {
		reason = "new_tool"
	}
	m.takeOut(next, reason)
	m.drop(next.name)
	next.was = true
	m.tools = append(m.tools, next)
	m.dropOldest()
	if declared {
		m.sayNew(w.Tool)
	}
	return true
}

// takeOut says what it means for alarms that the tool leaves the spindle; next is nil if no tool
// follows. The shelf of a tool that comes back stays.
func (m *Machine) takeOut(next *tool, reason string) {
	if len(m.tools) == 0 {
		return
	}
	t := m.spindle()
	if ends := next == nil || next.name == t.name; ends && !t.masks.shelf.IsZero() {
		why := reason
		if m.out.Answer != "" {
			why = "" // a person did it
		}
		m.alert(Alert{State: "unshelved", Reason: why, Tool: t.name, Severity: "info", Alarm: m.empty(), Incident: t.alarm.incident})
	}
	m.silence(t, &t.alarm, reason)
	for _, j := range t.judgings {
		m.silence(t, &j.trial, reason)
	}
	if m.unjudged < m.Limits.unjudged() { // else it is not the tool
		m.clear(Unmonitored)
	}
	m.clear(ModelChanged)
	m.clear(UsedReference)
}

// silence clears an alarm of a tool that leaves the spindle, for those who read alerts. The alarm
// itself goes on.
func (m *alarmBook) silence(t *tool, a *alarm, reason string) {
	if a.announced {
		a.announced = false
		m.alert(Alert{State: "cleared", Reason: reason, Tool: t.name, Severity: "info", Alarm: m.emptyFor(a), Incident: a.incident, Shadow: a.shadow})
	}
}

// renamed returns the tool of a machine that has another name. Its alarm has never called there.
func (t *tool) renamed() *tool {
	of := *t
	of.pastGone = true // under the other name
	of.windows, of.by = slices.Clone(t.windows), slices.Clone(t.by)
	of.alarm.renamed()
	of.judgings = nil
	for _, j := range t.judgings {
		n := *j
		n.trial.renamed()
		of.judgings = append(of.judgings, &n)
	}
	return &of
}
