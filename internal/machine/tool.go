package machine

import (
	"cmp"
	"fmt"
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

// life tells the tool apart from others of its name, for people and for training.
func (t *Tool) life() string { return cmp.Or(t.Life, t.Declared) }

// declared returns the life of a tool that was declared new under a name and is not remembered.
func (s *State) declared(name string) string {
	if d := find(s.Declared, func(d declaration) bool { return d.Tool == name }); d != nil {
		return d.Life
	}
	return ""
}

// declare keeps a life for the tool that comes next under a name, in place of another one; an empty life takes it away.
func (x *tools) declare(name, life string) {
	if life == "" && x.state.declared(name) == "" {
		return
	}
	all := slices.DeleteFunc(slices.Clone(x.state.Declared), func(d declaration) bool { return d.Tool == name })
	if life != "" {
		all = append(all, declaration{name, life})
	}
	x.state.Declared, x.dirty.slow = all[max(0, len(all)-keptDeclared):], true
}

// tools are the tools of a machine, and which of them is in its spindle.
type tools struct {
	state    *State
	settings *Settings
	alarms   *alarms
	decision *Decision // of the event that is being applied
	dirty    *dirty
}

// park keeps a tool that was never in the spindle, if there is room: it is the first one to be forgotten.
func (x *tools) park(t *Tool) {
	t.Seen = min(0, x.state.Tools[0].Seen) - 1
	if len(x.state.Tools) < x.settings.keptTools() {
		x.state.Tools = slices.Insert(x.state.Tools, 0, t)
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
func (x *tools) forget(i int) {
	x.dirty.tool(x.state.Tools[i])
	x.state.Tools = slices.Delete(x.state.Tools, i, i+1)
}

// forgetOldest makes room. What was in the spindle is not taken for new when it comes back.
func (x *tools) forgetOldest() {
	for len(x.state.Tools) > x.settings.keptTools() {
		t := x.state.Tools[0]
		if t.Seen >= 0 { // see park
			x.state.Forgotten, x.dirty.slow = x.state.Forgotten.With(t.Name, t.Life), true
		}
		if word := t.Alarm.Word(alarm.Masks{}); word != "normal" {
			x.decision.warn("tool_forgotten", "%s tool %s: forgotten, and its alarm (%s): the machine has more than %d tools in turn",
				event.ShortName(x.state.Machine), statement.Tool(t.Name), strings.TrimSpace(t.Alarm.Incident+" "+word), x.settings.keptTools())
		}
		x.declare(t.Name, t.Declared) // it has that life still when it comes back
		x.forget(0)
	}
}

// toolOf returns the tool of a window: one that is remembered, or another one.
func (s *State) toolOf(w Window) *Tool {
	if i := s.indexTool(w.Tool); i >= 0 && s.Tools[i].is(w.Tool, w.ToolLife) {
		return s.Tools[i]
	}
	used := s.Forgotten.Has(w.Tool, w.ToolLife)
	return &Tool{Name: w.Tool, Life: w.ToolLife, Declared: s.declared(w.Tool), Used: used, PastGone: used}
}

// changeTool puts the tool of a window into the spindle, and reports whether it was not there: the tool before it waits, with all
// that is known of it. A tool that was in before comes back with that, unless it was declared new.
func (x *tools) changeTool(w Window, r *event.Result) bool {
	before, next := x.state.inSpindle(), x.state.toolOf(w)
	if next == before {
		return false
	}
	isNew := !next.Used && !slices.Contains(x.state.Tools, next) && (x.state.indexTool(w.Tool) >= 0 || x.state.Forgotten.Has(w.Tool, "")) // its ingester says so
	c := ofWindow(r, "tool_change")
	x.warnAlike(next)
	if c.now = w.At; isNew && before != nil && before.Name == w.Tool {
		c.reason = "new_tool"
	}
	if x.swap(before, next, c); isNew {
		x.decision.Alerts = append(x.decision.Alerts, x.toolIsNew(w.Tool, c))
	}
	return true
}

// warnAlike warns of a tool that comes for the first time, if another one nearly has its name.
func (x *tools) warnAlike(next *Tool) {
	if slices.Contains(x.state.Tools, next) {
		return
	}
	fold := plain.Fold(next.Name)
	for _, t := range x.state.Tools {
		if t.Name != next.Name && plain.Fold(t.Name) == fold {
			x.decision.warn("tools_alike", "%s tools %q and %q: nearly the same name, and two tools with a reference and an alarm each: if they are one, let its senders write the name in one way",
				event.ShortName(x.state.Machine), t.Name, next.Name)
		}
	}
}

// swap takes one tool out of the spindle, nil if there was none, puts another one in, and
// publishes what that means for their alarms.
func (x *tools) swap(before, next *Tool, c cause) {
	if before != nil {
		x.leave(before, next, c)
	}
	if i := x.state.indexTool(next.Name); i >= 0 {
		if x.state.Tools[i] != next {
			x.dirty.tool(x.state.Tools[i]) // the tool under this name is another one now
		}
		x.state.Tools = slices.Delete(x.state.Tools, i, i+1)
	}
	x.declare(next.Name, "")
	next.Seen = x.state.nextSeen()
	x.state.Tools = append(x.state.Tools, next)
	x.dirty.tool(next)
	x.forgetOldest()
	assert(x.state.inSpindle() == next, "tool %q was put into the spindle of %s, which has %d tools", next.Name, x.state.Machine, len(x.state.Tools))
}

// leave takes a tool out of the spindle. Its alarm is not open in the machine any more. If the next one is a new tool
// under its name, the alarm and its shelf end.
func (x *tools) leave(before, next *Tool, c cause) {
	c.cutting = before.Cutting
	b := x.alarms.of(before)
	out := before.Alarm.TakeOut()
	was := before.Alarm.State
	if before.Name == next.Name && before.Alarm.Shelf != nil {
		out = append([]alarm.Change{alarm.Unshelved}, out...)
	}
	c.word = x.state.wordWithoutTool()
	b.publish(b.report(out, was, c))
	x.alarms.takeOutTrials(before, c)
	x.dismiss(before.Name, c)
	before.Seen = x.state.nextSeen() // a tool may have been parked since it was put in
	x.dirty.tool(before)
}

// declareNew forgets what is known of a tool, which a person says is new. Its windows
// before may still come; they are of the old one.
func (x *tools) declareNew(name string, c cause) {
	if t := x.state.inSpindle(); t != nil && t.Name == name {
		x.swap(t, &Tool{Name: name, Life: t.Life, Declared: c.action}, c) // the life that the ingester names was declared new
		return
	}
	if i := x.state.indexTool(name); i >= 0 {
		x.forget(i)
	}
	x.declare(name, c.action)
}

// dismiss clears the advisories of a tool that is taken out. Drift is of the machine.
func (x *tools) dismiss(tool string, c cause) {
	for _, n := range slices.Clone(x.state.Notices) {
		if n.Kind != event.UnknownAdvisory && n.Kind != event.ModelAdvisory {
			continue
		}
		if n.Kind == event.UnknownAdvisory && x.state.Unjudged >= x.settings.mostUnjudged() { // it is not the tool
			continue
		}
		why := "tool changed to " + statement.Tool(c.tool)
		if c.reason == "new_tool" {
			why = "tool declared new by " + statement.By(c.by)
		}
		x.state.Notices.clear(x.decision, n.Kind, n.Subject, x.alarms.byCause(c, tool), fmt.Sprintf("%s: advisory of %s is over, %s", event.ShortName(x.state.Machine), statement.Clock(n.Since), why))
	}
}

// toolIsNew says that a tool was declared new. What was forgotten under its name was another one.
func (x *tools) toolIsNew(tool string, why cause) event.Alert {
	x.state.Forgotten, x.dirty.slow = x.state.Forgotten.Without(tool), true
	b := x.alarms.inSpindle()
	a := b.other(event.ToolIsNew, why, "")
	a.Tool, a.ToolLife = tool, why.action
	a.Text = fmt.Sprintf("%s tool %s: declared new by %s; its reference is learnt from its next windows.", event.ShortName(x.state.Machine), tool, statement.By(why.by))
	return a
}
