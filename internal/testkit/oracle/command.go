package oracle

import (
	"slices"
	"time"
)

// Command is a command that Kafka got at a time. Actions are the actions of tcm.commands.v1.
type Command struct {
	ID, Action string
	Tool       string // new_tool; suppress and the like: of that tool alone, if OfTool
	OfTool     bool
	At, Issued time.Time
	Until      time.Time
	Incident   int // as Alert has it; 0: none is named; less: one that never was
	FalseAlarm bool
}

// Answer is what becomes of a command.
type Answer string

// The answers.
const (
	Done          Answer = "done"
	RefusedAnswer Answer = "refused" // an alert says so
	Again         Answer = "again"   // its id came before, or it is a rename that came too late
	Unknown       Answer = "unknown" // nothing is known of the machine
)

// How late and how early a command may come, by its sender's clock.
const (
	oldest = 5 * time.Minute
	ahead  = time.Minute
)

// pastAlarm is an alarm of which an alert said that it is raised or acknowledged.
type pastAlarm struct {
	incident int
	tool     string
	isFalse  bool
}

// keptPast is how many of them may be marked as false.
const keptPast = 50

func (m *alarmBook) remember(a pastAlarm) {
	if m.pastAlarm(a.incident) != nil {
		return // its tool has come back
	}
	m.past = append(m.past, a)
	m.past = m.past[max(0, len(m.past)-keptPast):]
}

func (m *alarmBook) pastAlarm(incident int) *pastAlarm {
	i := slices.IndexFunc(m.past, func(a pastAlarm) bool { return a.incident == incident })
	if i < 0 {
		return nil
	}
	return &m.past[i]
}

// Command takes a command. The alert "refused" is not among the alerts.
func (m *Machine) Command(c Command) Outcome {
	switch {
	case m.ids[c.ID]:
		return Outcome{Answer: Again}
	case !m.known && c.Action == "rename" && !c.Timely():
		return Outcome{Answer: Again} // it is set aside, since its machine is not known
	case !m.known:
		return Outcome{Answer: Unknown}
	}
	out := m.begin(c.At)
	m.ids[c.ID] = true
	out.Answer = RefusedAnswer
	if c.Timely() && m.carryOut(c) {
		out.Answer = Done
	}
	return m.finish()
}

// Timely reports whether a command came neither late nor early.
func (c Command) Timely() bool {
	age := c.At.Sub(c.Issued)
	return age <= oldest && age >= -ahead
}

func (m *Machine) carryOut(c Command) bool {
	if c.Action == "retire" {
		m.retire()
		return true
	}
	if len(m.tools) == 0 || c.Action == "rename" { // a machine that is known goes on as it is
		return false
	}
	switch c.Action {
	case "new_tool":
		return m.declareNew(c.Tool)
	case "acknowledge":
		return m.acknowledge(c)
	case "mark_false", "unmark_false":
		return m.mark(c)
	case "shelve", "unshelve":
		t := m.spindle()
		if c.Incident != 0 {
			t = m.withAlarm(c.Incident)
		}
		switch {
		case t == nil:
			return false
		case c.Action == "unshelve":
			return m.unmask(t, "shelved", "", c.At)
		}
		until, longest := c.Until, m.settings().MaxShelf
		if until.Sub(c.Issued) <= longest && until.Sub(c.At) > longest { // by the sender's clock it is not too long
			until = c.At.Add(longest)
		}
		long := until.Sub(c.At)
		return long > 0 && long <= longest && m.mask(t, "shelved", until)
	}
	var t *tool // nil: the machine
	if c.OfTool {
		if t = m.named(c.Tool); t == nil {
			return false
		}
	}
	switch c.Action {
	case "suppress":
		return m.mask(t, "suppressed", time.Time{})
	case "unsuppress":
		return m.unmask(t, "suppressed", "", c.At)
	case "out_of_service":
		return m.mask(t, "out_of_service", time.Time{})
	case "in_service":
		return m.unmask(t, "out_of_service", "", c.At)
	}
	panic("oracle: action " + c.Action)
}

// withAlarm returns the tool with an open alarm of that number; nil if there is none.
func (m *magazine) withAlarm(incident int) *tool {
	for _, t := range m.tools {
		if t.alarm.state != "" && t.alarm.incident == incident {
			return t
		}
	}
	return nil
}

func (m *alarmBook) acknowledge(c Command) bool {
	t := m.withAlarm(c.Incident)
	if t == nil || t.alarm.state == "acknowledged" {
		return false
	}
	a := &t.alarm
	m.remember(pastAlarm{incident: a.incident, tool: t.name}) // people know it by now, also if it never called
	if c.FalseAlarm {
		m.pastAlarm(a.incident).isFalse = true
	}
	if a.state == "raised" {
		a.state = "acknowledged"
		m.say("acknowledged", "", t, a, time.Time{})
		return true
	}
	a.state = "" // the condition is over: how long it has been on again goes on
	m.say("acknowledged", "", t, a, time.Time{})
	m.end(t, a, "acknowledged")
	return true
}

// mark says that an alarm was false, or withdraws that.
func (m *alarmBook) mark(c Command) bool {
	p, yes := m.pastAlarm(c.Incident), c.Action == "mark_false"
	if p == nil || p.isFalse == yes {
		return false
	}
	p.isFalse = yes
	state := "unmarked_false"
	if yes {
		state = "marked_false"
	}
	m.alert(Alert{State: state, Tool: p.tool, Severity: "info", Alarm: m.Alarm(), Incident: p.incident})
	return true
}

// declareNew forgets what is known of a tool.
func (m *Machine) declareNew(name string) bool {
	t := m.named(name)
	if t == nil && m.forgottenTool(name) == nil {
		return false
	}
	if t != m.spindle() {
		m.drop(name)
	} else {
		next := &tool{name: name, life: t.life, was: true} // the life that its ingester names is the new one
		m.takeOut(next, "new_tool")
		m.drop(name)
		m.tools = append(m.tools, next)
	}
	m.sayNew(name)
	return true
}

// sayNew says that a tool was declared new. It is not the one that was forgotten.
func (m *alarmBook) sayNew(name string) {
	m.dropForgotten(name)
	m.alert(Alert{State: "tool_is_new", Tool: name, Severity: "info", Alarm: m.Alarm()})
}

// retire forgets the machine.
func (m *Machine) retire() {
	tool := ""
	if len(m.tools) > 0 {
		tool = m.spindle().name
	}
	m.masks = masks{}
	m.takeOut(nil, "retired")
	for kind := range m.open {
		m.clear(kind)
	}
	m.alert(Alert{State: "retired", Tool: tool, Severity: "info", Alarm: "normal"})
	m.forget()
}
