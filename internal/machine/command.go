package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/statement"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// How long after it was issued a command may reach Kafka, and how long before: clocks
// differ. What was recorded and is sent again later comes too late; what is sent again
// sooner has an id that is still remembered.
const (
	commandAge   = 5 * time.Minute
	commandAhead = time.Minute
)

// Of a machine's commands, the last keptCommands are remembered, and up to maxCommands within commandAge.
const (
	keptCommands = 64
	maxCommands  = 1000
)

// Command is a message of the commands topic. Each one gets one outcome: an alert that
// answers it, or a dead letter. Each id is carried out at most once. A command that is set
// aside because nothing is known of its machine leaves no id behind: a later message may
// use that id, and is carried out if the machine is known by then.
type Command struct {
	Key    string
	Value  []byte
	Offset int64     // where it lies in the machine's partition of the commands topic
	At     time.Time // when Kafka got it
}

// commands are those that a machine has had and that could come again, in the order in
// which they came.
type commands struct {
	IDs []CommandID `json:"ids"`
}

// CommandID is a command that came.
type CommandID struct {
	ID string    `json:"id"`
	At time.Time `json:"at"` // when it reached Kafka
}

// note remembers a command, and forgets those before the last keptCommands that would be
// refused as too old. The last ones stay, since Kafka's clock may be wrong for a while: a
// command that came an hour ahead must not make those before it new again.
func (h *commands) note(id string, at time.Time) {
	old := max(0, len(h.IDs)+1-keptCommands)
	last := slices.Clone(h.IDs[old:])
	h.IDs = slices.DeleteFunc(h.IDs[:old], func(o CommandID) bool { return at.Sub(o.At).Abs() > commandAge+commandAhead })
	h.IDs = append(append(h.IDs, last...), CommandID{id, at})
	h.IDs = slices.Delete(h.IDs, 0, max(0, len(h.IDs)-maxCommands))
}

// has reports whether a command of the id came.
func (h *commands) has(id string) bool {
	return slices.ContainsFunc(h.IDs, func(o CommandID) bool { return o.ID == id })
}

// errRepeated is returned for a command that was carried out or refused before.
var errRepeated = errors.New("a command of this id came before: give a command that is sent again an id and a time of its own")

// apply carries a command out, or says why not: in an alert, or in Refused where the
// sender cannot be answered there.
func (c Command) apply(m *Machine) {
	e, err := event.ReadCommand(c.Key, c.Value)
	if err != nil {
		m.decision.Refused = err.Error()
		return
	}
	if e.Action == event.Fetch {
		return // a gateway answers it
	}
	if m.Commands.has(e.ID) {
		m.decision.Refused = fmt.Sprintf("command %s: %v", e.ID, errRepeated)
		return
	}
	m.alarms.expire(c.At)
	why := m.causeWithoutWindow("/command/"+e.ID, c.At)
	why.by, why.note, why.action, why.reason = e.By, e.Note, e.ID, "acknowledged"
	why.falseAlarm = e.FalseAlarm
	alerts, err := m.carryOut(e, c.At, why)
	m.Commands.note(e.ID, c.At)
	m.dirty.slow = true
	if err != nil {
		b := m.alarms.inSpindle()
		a := b.other(event.Refused, why, b.alarm.Incident)
		a.Text = fmt.Sprintf("%s: %s by %s: %v.", event.ShortName(m.Machine), e.Action, e.By, err)
		alerts = []event.Alert{a}
	}
	m.decision.Alerts = append(m.decision.Alerts, alerts...)
}

// carryOut does what a command wants, and returns the alerts that say so. Its errors are
// sentences behind the name of the command.
func (m *Machine) carryOut(c *event.Command, arrived time.Time, why cause) ([]event.Alert, error) {
	if err := m.Commands.timely(c, arrived); err != nil {
		return nil, err
	}
	switch {
	case c.Action == event.NewTool:
		return m.newToolCommand(c, why)
	case c.Action == event.Rename:
		return nil, fmt.Errorf("%w: windows of it came before: retire it first, so that it can go on with what is remembered of %s", alarm.ErrRefused, c.Was)
	case c.Action == event.Retire:
		return m.retire(why), nil
	case len(m.Tools) == 0:
		return nil, fmt.Errorf("%w: no window of it has been judged, so it has no alarm", alarm.ErrRefused)
	case c.Action.Marks():
		a, err := m.alarms.mark(c, why)
		return []event.Alert{a}, err
	}
	t, err := m.meant(c)
	if err != nil {
		return nil, err
	}
	alerts, err := m.alarms.command(t, c, why)
	if err != nil {
		return nil, err
	}
	m.dirty.tool(t)
	if c.FalseAlarm {
		m.markPast(c.Incident)
	}
	return alerts, nil
}

// markPast marks an alarm that is remembered as false.
func (m *Machine) markPast(incident string) {
	if r := m.pastAlarm(incident); r != nil {
		r.False = true
		m.dirty.slow = true
	}
}

// meant returns the tool that a command to an alarm is about: the one whose open alarm it names, the one that it
// names, or the one in the spindle.
func (s *State) meant(c *event.Command) (*Tool, error) {
	var of *Tool
	for _, t := range s.Tools {
		if c.Incident != "" && t.Alarm.Incident == c.Incident {
			of = t
		}
	}
	switch {
	case c.Incident != "" && of == nil:
		return nil, fmt.Errorf("%w: alarm %s is closed", alarm.ErrRefused, c.Incident)
	case of != nil && !c.Action.MasksMachine():
		return of, nil
	case c.Tool != "":
		if i := s.indexTool(c.Tool); i >= 0 {
			return s.Tools[i], nil
		}
		return nil, fmt.Errorf("%w: no tool %q is remembered here", alarm.ErrRefused, c.Tool)
	}
	return s.inSpindle(), nil
}

// newToolCommand declares a tool new under its name.
func (m *Machine) newToolCommand(c *event.Command, why cause) ([]event.Alert, error) {
	if m.indexTool(c.Tool) < 0 && !m.Forgotten.Has(c.Tool, "") {
		return nil, fmt.Errorf("%w: no tool %q is remembered here, so that it is new anyway", alarm.ErrRefused, c.Tool)
	}
	why.reason = "new_tool"
	m.tools.declareNew(c.Tool, why)
	return []event.Alert{m.tools.toolIsNew(c.Tool, why)}, nil
}

// retire ends the alarm and the advisories of the machine, which is taken off. It begins again with the
// next window. Only the ids of its commands are remembered.
func (m *Machine) retire(why cause) []event.Alert {
	why.reason = "retired"
	b := m.alarms.inSpindle()
	changes := b.alarm.TakeOut()
	if b.alarm.Shelf != nil {
		changes = append([]alarm.Change{alarm.Unshelved}, changes...)
	}
	m.Masks = alarm.Masks{} // masks go too
	why.word = "normal"
	alerts := b.report(changes, b.alarm.State, why)
	m.alarms.takeOutTrials(b.tool, why)
	for _, n := range slices.Clone(m.Notices) {
		if !n.Silent {
			m.Notices.clear(m.decision, n.Kind, n.Subject, m.alarms.byCause(why, b.tool.Name), fmt.Sprintf("%s: advisory of %s is over, the machine is retired", event.ShortName(m.Machine), statement.Clock(n.Since)))
		}
	}
	a := b.other(event.Retired, why, "")
	a.Text = fmt.Sprintf("%s: retired by %s; nothing is remembered of it.", event.ShortName(m.Machine), why.by)
	m.dirty.all(m.Tools)
	m.State = State{headState: headState{Machine: m.Machine, Model: m.Model}, slowState: slowState{Commands: m.Commands}}
	m.deploy(nil)
	m.gone = true
	m.judges.build, m.judges.retained = nil, nil // of what is forgotten
	return append(alerts, a)
}

// timely reports a command that is not of now, or one of too many behind those that came.
func (h *commands) timely(c *event.Command, arrived time.Time) error {
	switch age := arrived.Sub(c.Issued); {
	case age > commandAge:
		return fmt.Errorf("%w: it arrived %v after it was issued, and expires after %v: send it again, and look at the sender's clock",
			alarm.ErrRefused, age.Round(time.Second), commandAge)
	case age < -commandAhead:
		return fmt.Errorf("%w: it was issued %v after it arrived: set the sender's clock", alarm.ErrRefused, -age.Round(time.Second))
	case len(h.IDs) >= maxCommands && arrived.Sub(h.IDs[0].At).Abs() <= commandAge+commandAhead:
		return fmt.Errorf("%w: more than %d commands in %v", alarm.ErrRefused, maxCommands, commandAge)
	}
	return nil
}

// changeOf says which change of a mask an action is.
var changeOf = map[event.Action]alarm.Change{
	event.Shelve: alarm.Shelved, event.Unshelve: alarm.Unshelved, event.Suppress: alarm.Suppressed, event.Unsuppress: alarm.Unsuppressed,
	event.OutOfService: alarm.OutOfService, event.InService: alarm.InService,
}
