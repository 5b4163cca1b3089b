package machine

import (
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/trend"
)

// otherLife reports whether life names another tool under the same name.
func (t *Tool) otherLife(life string) bool { return life != "" && life != t.Life }

func (m *Machine) indexTool(name string) int {
	return slices.IndexFunc(m.Tools, func(t *Tool) bool { return t.Name == name })
}

// newTool returns a tool of which nothing is known.
func newTool(name, life string) *Tool {
	return &Tool{Name: name, Life: life, From: -1, Reference: model.Reference{Tool: name}, Wear: trend.Tool{Name: name}, Alarm: alarm.State{Tool: name}}
}

// park keeps a tool that is not in the spindle, in place of one of the same name, and
// forgets the tool that was in the spindle the longest time ago if there are too many.
func (m *Machine) park(t *Tool) {
	t.Seen = m.nextSeen()
	m.Tools = slices.DeleteFunc(m.Tools, func(o *Tool) bool { return o.Name == t.Name })
	m.Tools = slices.Insert(m.Tools, max(len(m.Tools)-1, 0), t)
	m.forgetOldest()
}

// nextSeen returns what orders a tool behind all others.
func (m *Machine) nextSeen() (n int) {
	for _, t := range m.Tools {
		n = max(n, t.Seen+1)
	}
	return n
}

func (m *Machine) forgetOldest() {
	for len(m.Tools) > KeptTools {
		m.dirty.tools[m.Tools[0].Name] = true
		m.Tools = slices.Delete(m.Tools, 0, 1)
	}
}

// changeTool puts the tool of a window into the spindle, unless it is there: the tool
// before it waits, with all that is known of it. A tool that was in before comes back
// with all that was known of it, unless it was declared new.
func (m *Machine) changeTool(w Window, r *event.Result) {
	before := m.inSpindle()
	if before != nil && before.Name == w.Tool && !before.otherLife(w.ToolLife) {
		return
	}
	if m.next != nil {
		m.swapModel()
	}
	next := newTool(w.Tool, w.ToolLife)
	if i := m.indexTool(w.Tool); i >= 0 {
		if !m.Tools[i].otherLife(w.ToolLife) {
			next = m.Tools[i]
		}
		if m.Tools[i] != before {
			m.Tools = slices.Delete(m.Tools, i, i+1)
		}
	}
	m.swap(before, next, ofWindow(r, "tool_change"))
}

// swap takes one tool out of the spindle, nil if there was none, puts another one in, and
// publishes what that means for the alarm.
func (m *Machine) swap(before, next *Tool, c cause) {
	was := m.alarm.State()
	if before != nil {
		c.cutting = before.Cutting
	}
	out, left := m.alarm.TakeOut()
	if before != nil {
		incident := before.Incident
		m.decision.Alerts = append(m.decision.Alerts, m.report(out, was, c)...)
		m.dismiss(before.Name, c)
		before.Alarm, before.Incident = left, incident // it stands again when the tool comes back
		before.Seen = m.nextSeen()                     // a tool may have been parked since it was put in
		m.dirty.tools[before.Name] = true
		if before.Name == next.Name { // declared new under its name
			m.Tools = m.Tools[:len(m.Tools)-1]
		}
	}
	next.Seen = m.nextSeen()
	m.dirty.tools[next.Name] = true
	m.Tools = append(m.Tools, next)
	m.forgetOldest()
	was = alarm.State{Tool: next.Name, Since: next.Alarm.Since}
	in := m.alarm.PutIn(next.Name, next.Alarm)
	c.reason, c.cutting = "tool_back", next.Cutting
	c.tool = next.Name
	m.decision.Alerts = append(m.decision.Alerts, m.report(in, was, c)...)
}

// declareNew forgets what is known of a tool, which a person says is new. Its windows
// before may still come; they are of the old one.
func (m *Machine) declareNew(name string, c cause) {
	if t := m.inSpindle(); t != nil && t.Name == name {
		if m.next != nil {
			m.swapModel()
		}
		m.swap(t, newTool(name, t.Life), c) // the life that the ingester names was declared new
		return
	}
	if i := m.indexTool(name); i >= 0 {
		m.Tools = slices.Delete(m.Tools, i, i+1)
		m.dirty.tools[name] = true
	}
}

// incident returns what people call the alarm that stands, of the tool in the spindle.
func (m *Machine) incident() string {
	if t := m.inSpindle(); t != nil {
		return t.Incident
	}
	return ""
}
