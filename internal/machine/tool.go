package machine

import (
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/alarm"
)

func (s *State) indexTool(name string) int {
	return slices.IndexFunc(s.Tools, func(t *Tool) bool { return t.Name == name })
}

// is reports whether a window's tool and life name the tool. Another life is another tool under the same name.
func (t *Tool) is(name, life string) bool { return t.Name == name && (life == "" || life == t.Life) }

// park keeps a tool that was never in the spindle, if there is room: it is the first one to be forgotten.
func (m *Machine) park(t *Tool) {
	t.Seen = min(0, m.Tools[0].Seen) - 1
	if len(m.Tools) < m.settings.keptTools() {
		m.Tools = slices.Insert(m.Tools, 0, t)
	}
}

// nextSeen returns what orders a tool behind all others.
func (s *State) nextSeen() (n int) {
	for _, t := range s.Tools {
		n = max(n, t.Seen+1)
	}
	return n
}

// forget forgets a tool.
func (m *Machine) forget(i int) {
	m.writeTool(m.Tools[i])
	m.Tools = slices.Delete(m.Tools, i, i+1)
}

// forgetOldest makes room. What was in the spindle is not taken for new when it comes back.
func (m *Machine) forgetOldest() {
	for len(m.Tools) > m.settings.keptTools() {
		t := m.Tools[0]
		if t.Seen >= 0 { // see park
			m.Forgotten, m.dirty.slow = m.Forgotten.With(t.Name, t.Life), true
		}
		if word := t.Alarm.Word(alarm.Masks{}); word != "normal" && m.decision != nil {
			m.decision.warn("tool_forgotten", "%s tool %s: forgotten, and its alarm (%s): the machine has more than %d tools in turn",
				event.ShortName(m.Machine), statement.Tool(t.Name), strings.TrimSpace(t.Alarm.Incident+" "+word), m.settings.keptTools())
		}
		m.forget(0)
	}
}

// toolOf returns the tool of a window: one that is remembered, or another one.
func (s *State) toolOf(w Window) *Tool {
	if i := s.indexTool(w.Tool); i >= 0 && s.Tools[i].is(w.Tool, w.ToolLife) {
		return s.Tools[i]
	}
	used := s.Forgotten.Has(w.Tool, w.ToolLife)
	return &Tool{Name: w.Tool, Life: w.ToolLife, Used: used, PastGone: used}
}

// changeTool puts the tool of a window into the spindle, and reports whether it was not there: the tool before it waits, with all
// that is known of it. A tool that was in before comes back with that, unless it was declared new.
func (m *Machine) changeTool(w Window, r *event.Result) bool {
	before, next := m.inSpindle(), m.toolOf(w)
	if next == before {
		return false
	}
	isNew := !next.Used && !slices.Contains(m.Tools, next) && (m.indexTool(w.Tool) >= 0 || m.Forgotten.Has(w.Tool, "")) // its ingester says so
	c := ofWindow(r, "tool_change")
	m.warnAlike(next)
	if c.now = w.At; isNew && before != nil && before.Name == w.Tool {
		c.reason = "new_tool"
	}
	if m.swap(before, next, c); isNew {
		m.decision.Alerts = append(m.decision.Alerts, m.toolIsNew(w.Tool, c))
	}
	return true
}

// warnAlike warns of a tool that comes for the first time, if another one nearly has its name.
func (m *Machine) warnAlike(next *Tool) {
	if slices.Contains(m.Tools, next) {
		return
	}
	fold := plain.Fold(next.Name)
	for _, t := range m.Tools {
		if t.Name != next.Name && plain.Fold(t.Name) == fold {
			m.decision.warn("tools_alike", "%s tools %q and %q: nearly the same name, and two tools with a reference and an alarm each: if they are one, let its senders write the name in one way",
				event.ShortName(m.Machine), t.Name, next.Name)
		}
	}
}

// swap takes one tool out of the spindle, nil if there was none, puts another one in, and
// publishes what that means for their alarms.
func (m *Machine) swap(before, next *Tool, c cause) {
	if before != nil {
		m.leave(before, next, c)
	}
	if i := m.indexTool(next.Name); i >= 0 {
		if m.Tools[i] != next {
			m.writeTool(m.Tools[i]) // the tool under this name is another one now
		}
		m.Tools = slices.Delete(m.Tools, i, i+1)
	}
	next.Seen = m.nextSeen()
	m.Tools = append(m.Tools, next)
	m.writeTool(next)
	m.forgetOldest()
}

// enters announces the alarm of a tool that has just been put in.
func (m *Machine) enters(next *Tool, c cause) {
	c.reason, c.cutting, c.tool = "tool_back", next.Cutting, next.Name
	m.announceAll(next, c)
}

// leave takes a tool out of the spindle. Its alarm is not open in the machine any more. If the next one is a new tool
// under its name, the alarm and its shelf end.
func (m *Machine) leave(before, next *Tool, c cause) {
	c.cutting = before.Cutting
	b := m.bell(before)
	out := before.Alarm.TakeOut()
	was := before.Alarm.State
	if before.Name == next.Name && before.Alarm.Shelf != nil {
		out = append([]alarm.Change{alarm.Unshelved}, out...)
	}
	c.word = m.wordWithoutTool()
	m.decision.Alerts = append(m.decision.Alerts, m.report(b, out, was, c)...)
	m.takeOutTrials(before, c)
	m.dismiss(before.Name, c)
	before.Seen = m.nextSeen() // a tool may have been parked since it was put in
	m.writeTool(before)
}

// takeOutTrials says of a tool that leaves the spindle what that means for the alarms that its shadows would have.
func (m *Machine) takeOutTrials(t *Tool, c cause) {
	c.word = "normal" // no one masks what a shadow says
	for _, j := range t.Judgings {
		if j.Trial != nil {
			m.decision.tellTrial(m.report(m.trial(t, j), j.Trial.TakeOut(), j.Trial.State, c))
		}
	}
}

// declareNew forgets what is known of a tool, which a person says is new. Its windows
// before may still come; they are of the old one.
func (m *Machine) declareNew(name string, c cause) {
	if t := m.inSpindle(); t != nil && t.Name == name {
		m.swap(t, &Tool{Name: name, Life: t.Life}, c) // the life that the ingester names was declared new
		return
	}
	if i := m.indexTool(name); i >= 0 {
		m.forget(i)
	}
}
