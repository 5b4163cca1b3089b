package monitor

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
)

// auditCommands passes a record on of every command that the batch has carried out or refused. It is
// called once readers can see the batch, and before the commands are forgotten.
func (s *partition) auditCommands(b *machine.Batch) {
	if s.mon.cfg.OnAudit == nil {
		return
	}
	s.mu.Lock()
	var commands []bus.Message
	for k, m := range s.raw {
		if k.topic == bus.TopicCommands && k.offset < b.Position.Commands {
			commands = append(commands, m)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(commands, func(a, c bus.Message) int { return cmp.Compare(a.Offset, c.Offset) })
	for i := range commands {
		if a, ok := auditOf(&commands[i], b); ok {
			a.Group = s.mon.cfg.Group
			s.mon.cfg.OnAudit(a)
		}
	}
}

// auditOf returns the record of a command, if the batch says what became of it. A command that a
// gateway answers, or a monitor of another partition, has none here.
func auditOf(m *bus.Message, b *machine.Batch) (a event.Audit, ok bool) {
	var c event.Command
	if json.Unmarshal(m.Value, &c) != nil {
		c = event.Command{}
	}
	a = event.Audit{
		Actor: event.Actor{Name: c.By, Identified: event.ByCommand}, Action: c.Action, Machine: bounded(m.Key), Alarm: c.Incident, Object: cmp.Or(c.Tool, c.Was),
		Command: c.ID, Outcome: event.Accepted,
	}
	if i := slices.IndexFunc(b.Letters, func(l machine.Letter) bool { return l.Log == machine.CommandLog && l.Offset == m.Offset }); i >= 0 {
		a.Outcome, a.Reason = event.Denied, b.Letters[i].Reason
		return a, true
	}
	for _, e := range b.Events {
		alert, is := e.(machine.Alert)
		if !is || c.ID == "" || alert.Command != c.ID || alert.Machine != m.Key {
			continue
		}
		if ok = true; alert.State == event.Refused {
			a.Outcome, a.Reason = event.Denied, reasonOf(alert.Text, &c)
		}
	}
	return a, ok
}

// reasonOf returns why a command was refused, from the text of the alert that says so: machine,
// action and person are in the record already.
func reasonOf(text string, c *event.Command) string {
	if _, reason, ok := strings.Cut(text, string(c.Action)+" by "+c.By+": "); ok {
		text = reason
	}
	return strings.TrimSuffix(text, ".")
}
