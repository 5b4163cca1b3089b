package shift

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// incident is the open alarm of a machine.
type incident struct {
	at           time.Time // when it was raised; zero: no open alarm
	name         string
	acknowledged bool
	over         bool
	of           *raised // nil if it was raised before the report
	before, last time.Time
}

func (i incident) open() bool { return !i.at.IsZero() && !i.acknowledged && !i.over }

// raised is an alarm of the report.
type raised struct {
	alert    event.Alert
	row      *toolRow
	marked   bool // by a person: as false
	answered bool
}

// masks are what keeps an alarm from calling, and what ends it.
var masks = map[event.AlertState]event.AlertState{
	"unshelved": "shelved", "unsuppressed": "suppressed", "in_service": "out_of_service",
}

// Alert takes the next alert of a machine, from the oldest on: alerts from before
// the time of the report say which alarms were open when it began.
func (r *Report) Alert(a event.Alert) {
	if r.seen[a.ID] {
		return
	}
	if a.State.Marks() {
		r.seen[a.ID] = true
		if of := r.find(a.Machine, a.Incident); of != nil { // people look back, also at a week that is over
			of.answer(a.State == event.MarkedFalse)
		}
		return
	}
	if !a.At.Before(r.cfg.Until) {
		return
	}
	r.seen[a.ID] = true
	r.change(r.machine(a.Machine), a)
}

// change takes what an alert says of the alarm of a machine.
func (r *Report) change(m *machineShift, a event.Alert) {
	i := &m.alarm
	switch a.State {
	case event.Raised:
		*i = incident{at: a.At, name: a.Incident, before: i.before, last: i.last}
		if r.within(a.At) {
			i.of = &raised{alert: a, row: r.row(m, a.At)}
			i.of.row.Alarms++
			r.raised = append(r.raised, i.of)
			m.ofTool(a)
		}
		r.transition(m, a.At)
	case "reactivated", "returned":
		i.over = a.State == "returned"
		r.transition(m, a.At)
	case event.Cleared:
		if a.Reason == "recovered" {
			r.transition(m, a.At)
		}
		*i = incident{before: i.before, last: i.last}
	case "acknowledged":
		r.acknowledged(i, a)
	case "shelved", "suppressed", "out_of_service":
		m.mask(a)
	case "unshelved", "unsuppressed", "in_service":
		r.unmask(m, masks[a.State], a)
	case event.ToolIsNew: // its shelf ends, also without a word of it
		if on := m.masks["shelved"]; on != nil && on.tools[a.Tool] {
			r.unmask(m, "shelved", a)
		}
	}
}

// mask is since when some alarm of a machine is masked, and under which tools.
type mask struct {
	since time.Time
	tools map[string]bool
}

// mask notes since when the alarm is masked.
func (m *machineShift) mask(a event.Alert) {
	on := m.masks[a.State]
	if on == nil {
		on = &mask{a.At, make(map[string]bool)}
		m.masks[a.State] = on
	}
	on.tools[a.Tool] = true
}

// unmask counts a mask that is over. One of no tool that has one is of the machine, which had another tool then.
func (r *Report) unmask(m *machineShift, what event.AlertState, a event.Alert) {
	on := m.masks[what]
	if on == nil {
		return
	}
	if !on.tools[a.Tool] {
		clear(on.tools)
	}
	if delete(on.tools, a.Tool); len(on.tools) == 0 {
		r.mask(m, what, on.since, a.At)
		delete(m.masks, what)
	}
}

// ofTool counts an alarm of the tool that is, or was, in then. Results may come
// before alerts or after: without them no tool is known.
func (m *machineShift) ofTool(a event.Alert) {
	for _, t := range m.Tools {
		if t.Tool == a.Tool && !a.At.Before(t.From) && !a.At.After(t.To) {
			t.Alarms++
			return
		}
	}
}

// acknowledged counts an acknowledgement, also of an alarm whose tool is in the magazine.
func (r *Report) acknowledged(i *incident, a event.Alert) {
	of := i.of
	if i.name == a.Incident {
		i.acknowledged = true
	} else {
		of = r.find(a.Machine, a.Incident)
	}
	if of == nil {
		return
	}
	took := seconds(max(a.At.Sub(of.alert.At), 0).Seconds())
	of.answer(a.FalseAlarm || of.marked)
	of.row.Acknowledged++
	of.row.AckTotal += took
	of.row.AckMost = max(of.row.AckMost, took)
}

// find returns an alarm of the report as it was raised last, nil if there is none of that name.
func (r *Report) find(machine, incident string) *raised {
	for _, of := range slices.Backward(r.raised) {
		if of.alert.Machine == machine && of.alert.Incident == incident {
			return of
		}
	}
	return nil
}

// answer says that a person has answered an alarm, and whether they call it false.
func (a *raised) answer(isFalse bool) {
	if !a.answered {
		a.answered = true
		a.row.Answered++
	}
	switch {
	case isFalse && !a.marked:
		a.row.False++
	case a.marked && !isFalse:
		a.row.False--
	}
	a.marked = isFalse
}

// transition counts a change of the alarm by itself.
func (r *Report) transition(m *machineShift, at time.Time) {
	i := &m.alarm
	if !i.before.IsZero() && at.Sub(i.before) < time.Minute && r.within(at) {
		r.row(m, at).Chattering++
	}
	i.before, i.last = i.last, at
}

func (r *Report) mask(m *machineShift, what event.AlertState, from, to time.Time) {
	r.span(m, from, to, func(row *toolRow, d time.Duration) {
		s := seconds(d.Seconds())
		switch what {
		case "shelved":
			row.Shelved += s
		case "suppressed":
			row.Suppressed += s
		default:
			row.OutOfService += s
		}
	})
}

// Advisory takes the next advisory.
func (r *Report) Advisory(a event.Advisory) {
	if a.State != event.Raised || r.seen[a.ID] || !r.within(a.At) {
		return
	}
	r.seen[a.ID] = true
	r.row(r.machine(a.Machine), a.At).Advisories[string(a.Kind)]++
}
