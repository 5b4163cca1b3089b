package shift

import (
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// incident is the open alarm of a machine.
type incident struct {
	at           time.Time // when it was raised; zero: no open alarm
	acknowledged bool
	over         bool
	row          *toolRow // nil if it was raised before the report
	index        int      // of raised, if there is a row
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
		r.mark(a.Machine, a.Incident, a.State == event.MarkedFalse) // people look back, also at a week that is over
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
		*i = incident{at: a.At, before: i.before, last: i.last}
		if r.within(a.At) {
			i.row, i.index = r.row(m, a.At), len(r.raised)
			i.row.Alarms++
			r.raised = append(r.raised, raised{alert: a, row: i.row})
			r.ofTool(m, a)
		}
		r.transition(m, a.At)
	case "reactivated":
		i.over = false
		r.transition(m, a.At)
	case "returned":
		i.over = true
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
		r.unmask(m, masks[a.State], a.At)
	}
}

// mask notes since when the alarm is masked.
func (m *machineShift) mask(a event.Alert) {
	if since, there := m.masks[a.State]; !there || since.After(a.At) {
		m.masks[a.State] = a.At
	}
}

// unmask counts a mask that is over.
func (r *Report) unmask(m *machineShift, what event.AlertState, at time.Time) {
	if since, there := m.masks[what]; there {
		r.mask(m, what, since, at)
		delete(m.masks, what)
	}
}

// ofTool counts an alarm of the tool that is, or was, in then. Results may come
// before alerts or after: without them no tool is known.
func (r *Report) ofTool(m *machineShift, a event.Alert) {
	for _, t := range m.Tools {
		if t.Tool == a.Tool && !a.At.Before(t.From) && !a.At.After(t.To) {
			t.Alarms++
			return
		}
	}
}

func (r *Report) acknowledged(i *incident, a event.Alert) {
	i.acknowledged = true
	if i.row == nil {
		return
	}
	took := seconds(max(a.At.Sub(i.at), 0).Seconds())
	r.raised[i.index].answer()
	i.row.Acknowledged++
	i.row.AckTotal += took
	i.row.AckMost = max(i.row.AckMost, took)
	if a.FalseAlarm {
		r.raised[i.index].mark(true)
	}
}

// mark says of an alarm of the report that a person calls it false, or does no more.
func (r *Report) mark(machine, incident string, yes bool) {
	for i := range r.raised {
		if a := &r.raised[i]; a.alert.Machine == machine && a.alert.Incident == incident {
			a.answer()
			a.mark(yes)
			return
		}
	}
}

func (a *raised) answer() {
	if !a.answered {
		a.answered = true
		a.row.Answered++
	}
}

func (a *raised) mark(yes bool) {
	if a.marked == yes {
		return
	}
	if a.marked = yes; yes {
		a.row.False++
	} else {
		a.row.False--
	}
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
