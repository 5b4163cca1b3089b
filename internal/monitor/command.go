package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// How long after it was issued a command may reach Kafka, and how long before:
// clocks differ. What was recorded and is sent again later comes too late; what is
// sent again sooner has an id that is still remembered.
const (
	commandAge   = 5 * time.Minute
	commandAhead = time.Minute
)

// maxCommand is the longest command that is read, and maxHeard how many of a
// machine are remembered within commandAge.
const (
	maxCommand = 16 << 10
	maxHeard   = 1000
)

// heard are the commands that a machine has had.
type heard struct {
	Last time.Time `json:"last"` // when the last one reached Kafka
	IDs  []heardID `json:"ids"`  // of those that could come again, in the order in which they came
}

type heardID struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`     // when it reached Kafka
	Offset int64     `json:"offset"` // where it lies
}

// note remembers a command, and forgets those that would be refused as too old.
func (h *heard) note(id string, m *bus.Message) {
	h.IDs = slices.DeleteFunc(h.IDs, func(o heardID) bool { return m.Time.Sub(o.At) > commandAge+commandAhead })
	h.IDs = append(h.IDs, heardID{id, m.Time, m.Offset})
	h.Last = m.Time
}

// errHeard is returned for a command that was carried out or refused before.
var errHeard = errors.New("a command of this id came before: whoever sends it again, give it an id and a time of its own")

// SendCommand puts a command on its topic, where the monitor that judges the
// machine gets it. It reports one that no monitor would read.
func SendCommand(ctx context.Context, out *bus.Producer, c event.Command) error {
	m, err := commandMessage(c)
	if err != nil {
		return err
	}
	return out.Send(ctx, []bus.Message{m})
}

func commandMessage(c event.Command) (bus.Message, error) {
	if err := c.Check(); err != nil {
		return bus.Message{}, fmt.Errorf("command: %w", err)
	}
	return message(bus.TopicCommands, c.ID, c.Machine, event.CommandType, c.Issued, event.JSON(c)), nil
}

// readCommand returns the command in a message. It reports what is none.
func readCommand(m *bus.Message) (c event.Command, err error) {
	if len(m.Value) > maxCommand {
		return c, fmt.Errorf("monitor: command of %d bytes: at most %d", len(m.Value), maxCommand)
	}
	if err := json.Unmarshal(m.Value, &c); err != nil {
		return c, fmt.Errorf("monitor: command: %w", err)
	}
	if err := c.Check(); err != nil {
		return c, fmt.Errorf("monitor: command: %w", err)
	}
	if c.Machine != m.Key {
		return c, fmt.Errorf("monitor: command: key %.64q, it is for machine %.64q", m.Key, c.Machine)
	}
	return c, nil
}

// listen carries out the commands of the partition's machines until ctx ends. The
// topic has as many partitions as the windows and the same keys.
func (s *partition) listen(ctx context.Context) error {
	return bus.ReadFrom(ctx, s.cfg.Bus, bus.TopicCommands, s.id, bus.FirstOffset, true, func(m bus.Message) error {
		batch, cancel := outlive(ctx, s.grace)
		defer cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.obey(batch, &m)
	})
}

func (s *partition) endShelves(ctx context.Context) error {
	batch, cancel := outlive(ctx, s.grace)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, mach := range s.machines {
		if alerts := mach.expire(now, s.cfg.Model.ID()); len(alerts) > 0 {
			if err := s.keep(batch, mach, now, alerts); err != nil {
				return err
			}
		}
	}
	return nil
}

// obey carries out a command, or says why not: on the alerts topic, or, where
// nobody can be told there, on that of dead letters.
func (s *partition) obey(ctx context.Context, m *bus.Message) error {
	mach := s.machines[m.Key]
	if mach == nil {
		if s.now().Sub(m.Time) > commandAge {
			return nil // it was said when it came
		}
		return s.refuse(ctx, m, fmt.Errorf("monitor: command for machine %.64q: no window of it has ever been judged", m.Key))
	}
	if m.Time.Before(mach.deaf) {
		return nil // the monitor before had it
	}
	c, err := readCommand(m)
	if err != nil {
		if s.now().Sub(m.Time) > commandAge {
			return nil
		}
		return s.refuse(ctx, m, err)
	}
	if i := slices.IndexFunc(mach.heard.IDs, func(o heardID) bool { return o.ID == c.ID }); i >= 0 {
		if mach.heard.IDs[i].Offset == m.Offset || s.now().Sub(m.Time) > commandAge {
			return nil
		}
		return s.refuse(ctx, m, fmt.Errorf("monitor: command %s: %w", c.ID, errHeard))
	}
	return s.keep(ctx, mach, m.Time, mach.obey(c, m, s.cfg.Model.ID()))
}

// refuse sets a command aside.
func (s *partition) refuse(ctx context.Context, m *bus.Message, cause error) error {
	s.log.Warn().Int64("offset", m.Offset).Str("key", m.Key[:min(len(m.Key), 256)]).Err(cause).Msg("command set aside on " + bus.TopicDead)
	if err := s.setAside(ctx, []letter{{*m, cause.Error()}}); err != nil {
		return fmt.Errorf("monitor: dead letter: %w", err)
	}
	return nil
}

// keep makes what was decided without a window durable and sends it.
func (s *partition) keep(ctx context.Context, mach *machine, at time.Time, alerts []event.Alert, advisories ...event.Advisory) error {
	var pendings []pending
	for _, a := range alerts {
		pendings = append(pendings, pending{event.AlertType, event.JSON(a)})
	}
	for _, a := range advisories {
		pendings = append(pendings, pending{event.AdvisoryType, event.JSON(a)})
	}
	var out []bus.Message
	for _, p := range pendings {
		m, err := p.message()
		if err != nil {
			return err
		}
		out = append(out, m)
	}
	if err := s.out.Send(ctx, []bus.Message{s.record(mach, at, pendings)}); err != nil {
		return fmt.Errorf("monitor: state: %w", err)
	}
	if err := s.out.Send(ctx, out); err != nil {
		return fmt.Errorf("monitor: alerts: %w", err)
	}
	s.alerts.Add(uint64(len(alerts)))
	for _, a := range alerts {
		s.log.Info().Str("event", "alarm_"+string(a.State)).Str("machine", a.Machine).Str("by", a.By).Str("command", a.Command).Msg(a.Text)
		if s.cfg.OnAlert != nil {
			s.cfg.OnAlert(a)
		}
	}
	s.advised(advisories)
	return nil
}

// obey does to the alarm what a command wants, or says why not.
func (m *machine) obey(c event.Command, at *bus.Message, modelID string) []event.Alert {
	was := m.alarm.State()
	why := m.unbidden(m.name+"/command/"+c.ID, at.Time, modelID)
	why.by, why.note, why.until, why.action, why.reason = c.By, c.Note, c.Until, c.ID, "acknowledged"
	why.falseAlarm = c.FalseAlarm
	alerts, err := m.carryOut(c, at.Time, why)
	m.heard.note(c.ID, at)
	if err == nil {
		return alerts
	}
	a := m.alert("refused", was, why)
	a.Incident = m.incident
	a.Text = fmt.Sprintf("%s: %s by %s: %v.", short(m.name), c.Action, c.By, err)
	return []event.Alert{a}
}

// carryOut does what a command wants, and returns what is to be told. Its errors are
// sentences behind the name of the command.
func (m *machine) carryOut(c event.Command, arrived time.Time, why cause) ([]event.Alert, error) {
	if err := m.timely(c, arrived); err != nil {
		return nil, err
	}
	if c.Action.Marks() {
		a, err := m.mark(c, why)
		return []event.Alert{a}, err
	}
	was := m.alarm.State()
	changes, err := m.try(c, arrived)
	if err != nil {
		return nil, err
	}
	if r := m.past(c.Incident); r != nil && c.FalseAlarm {
		r.False = true
	}
	return m.report(changes, was, why), nil
}

// timely reports a command that is not of now, or one of too many.
func (m *machine) timely(c event.Command, arrived time.Time) error {
	switch age := arrived.Sub(c.Issued); {
	case age > commandAge:
		return fmt.Errorf("%w: it arrived %v after it was issued, and expires after %v: send it anew, and look at the sender's clock",
			alarm.ErrRefused, age.Round(time.Second), commandAge)
	case age < -commandAhead:
		return fmt.Errorf("%w: it was issued %v after it arrived: set the sender's clock", alarm.ErrRefused, -age.Round(time.Second))
	case len(m.heard.IDs) >= maxHeard && arrived.Sub(m.heard.IDs[0].At) <= commandAge+commandAhead:
		return fmt.Errorf("%w: more than %d commands in %v", alarm.ErrRefused, maxHeard, commandAge)
	}
	return nil
}

// try does what a command wants to the alarm.
func (m *machine) try(c event.Command, arrived time.Time) ([]alarm.Change, error) {
	if c.Incident != "" && c.Incident != m.incident {
		return nil, fmt.Errorf("%w: alarm %s does not stand any more", alarm.ErrRefused, c.Incident)
	}
	mask := alarm.Mask{By: c.By, Reason: c.Note, Since: arrived, Until: c.Until}
	switch c.Action {
	case event.Acknowledge:
		return m.alarm.Acknowledge()
	case event.Shelve:
		return m.alarm.Shelve(mask)
	case event.Unshelve:
		return m.alarm.Unshelve()
	case event.Suppress:
		return m.alarm.Suppress(mask)
	case event.Unsuppress:
		return m.alarm.Unsuppress()
	case event.OutOfService:
		return m.alarm.Remove(mask)
	}
	return m.alarm.PutBack()
}
