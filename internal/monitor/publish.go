package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// publish writes everything that follows from a batch in one transaction: state, results,
// alerts, dead letters and the position. Then it logs, counts and shows it. It is the only
// way by which a monitor publishes anything.
func (s *partition) publish(ctx context.Context, b *machine.Batch) error {
	now := s.now()
	msgs := make([]bus.Message, 0, len(b.State)+len(b.Events)+len(b.Letters))
	for _, r := range b.State {
		msgs = append(msgs, stateMessage(r, now))
	}
	for i := range b.Events {
		if b.Events[i].Handover == nil {
			msgs = append(msgs, eventMessage(&b.Events[i]))
		}
	}
	for i := range msgs { // the machines of the partition, however many there are now
		msgs[i].Pinned, msgs[i].Partition = true, s.id
	}
	moved, err := s.handoverMessages(ctx, b, now)
	if err != nil {
		return err
	}
	msgs = append(msgs, moved...)
	for _, l := range b.Letters {
		msgs = append(msgs, letter(s.original(l), l, now))
	}
	positions := make(map[string]int64)
	if b.Position.Windows >= 0 {
		positions[bus.TopicWindows] = b.Position.Windows
	}
	if b.Position.Commands >= 0 {
		positions[bus.TopicCommands] = b.Position.Commands
	}
	err = s.txn.Publish(ctx, msgs, positions)
	letters := msgs[len(msgs)-len(b.Letters):]
	for cut := make(map[int]bool); errors.Is(err, bus.ErrTooLarge) && len(cut) < len(letters); {
		// A letter must not stop the stream: of the largest one, its position and the
		// reason must do.
		largest := -1
		for i := range letters {
			if !cut[i] && (largest < 0 || letters[i].Size() > letters[largest].Size()) {
				largest = i
			}
		}
		cut[largest] = true
		m := s.original(b.Letters[largest])
		letters[largest] = bus.BareLetter(m, len(m.Value), b.Letters[largest].Reason+" (and it is too large for this topic: look for it where it lay)", now)
		err = s.txn.Publish(ctx, msgs, positions)
	}
	if err != nil {
		return fmt.Errorf("monitor: partition %d: %w", s.id, err)
	}
	s.ready.published(s.id, b.Position.Windows, now)
	s.published(b)
	s.forgetRaw(b.Position)
	return nil
}

// letter returns the dead letter of a message. Of windows of another layout, which come for
// as long as no one changes that, it has the beginning; of what could not be read, nothing.
func letter(m bus.Message, l machine.Letter, now time.Time) bus.Message {
	switch {
	case m.Damage != nil:
		return bus.BareLetter(m, -1, l.Reason, now)
	case errors.Is(l.Err, window.ErrForeign):
		return bus.CutLetter(m, l.Reason, now)
	}
	return bus.DeadLetter(m, l.Reason, now)
}

// original returns the message that a letter is about.
func (s *partition) original(l machine.Letter) bus.Message {
	topic, key := bus.TopicWindows, ""
	switch {
	case l.Command:
		topic = bus.TopicCommands
	case l.State:
		topic, key = bus.TopicState, l.Key
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.raw[letterKey{topic, l.Offset, key}]
	if !ok {
		m, ok = s.again[letterKey{topic, l.Offset, key}]
	}
	if !ok {
		return bus.Message{Topic: topic, Partition: s.id, Offset: l.Offset, Key: l.Key}
	}
	return m
}

// forgetRaw gives the memory of messages back that are done with.
func (s *partition) forgetRaw(at machine.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.raw {
		if k.topic == bus.TopicState || k.topic == bus.TopicWindows && k.offset < at.Windows || k.topic == bus.TopicCommands && k.offset < at.Commands {
			delete(s.raw, k)
		}
	}
}

// published counts, logs and shows what readers can see now.
func (s *partition) published(b *machine.Batch) {
	s.judged.Add(b.Judged)
	s.late.Add(b.Late)
	s.repeats.Add(b.Repeats)
	s.dead.Add(uint64(len(b.Letters)))
	for _, l := range b.Letters {
		s.logLetter(l)
	}
	for i := range b.Events {
		s.show(&b.Events[i])
	}
	for _, l := range b.Lines {
		ev := s.log.Info()
		if l.Warn {
			ev = s.log.Warn()
		}
		ev.Str("event", l.Event).Str("machine", l.Machine).Msg(l.Text)
	}
	s.countMissing()
}

// countMissing counts the windows that have not come.
func (s *partition) countMissing() {
	holes := uint64(0)
	s.owner.Machines(func(m *machine.Machine) { holes += m.Missing() })
	s.missing.Add(int64(holes) - int64(s.holes))
	s.holes = holes
}

// show counts, logs and shows one event.
func (s *partition) show(o *machine.Output) {
	switch {
	case o.Result != nil:
		s.sayGap(o.Result, o.Missing)
	case o.Alert != nil:
		a := o.Alert
		s.alerts.Add(1)
		ev := s.log.Info()
		if a.Severity == "warning" {
			ev = s.log.Warn()
		}
		ev.Str("event", "alarm_"+string(a.State)).Str("machine", a.Machine).Str("incident", a.Incident).Str("by", a.By).Str("command", a.Command).Msg(a.Text)
		if s.cfg.OnAlert != nil {
			s.cfg.OnAlert(*a)
		}
	case o.Advisory != nil:
		a := o.Advisory
		s.advisories.Add(1)
		ev := s.log.Info()
		if a.Severity == "warning" {
			ev = s.log.Warn()
		}
		ev.Str("event", string(a.Kind)+"_"+string(a.State)).Str("machine", a.Machine).Str("subject", a.Subject).Msg(a.Text)
		if s.cfg.OnAdvisory != nil {
			s.cfg.OnAdvisory(*a)
		}
	case o.Evidence != nil:
		e := o.Evidence
		ev := s.log.Info()
		if !e.Complete {
			ev = s.log.Warn()
		}
		ev.Str("event", "evidence").Str("machine", e.Machine).Str("alert", e.Alert).Str("url", e.URL).Msg(e.Text)
		if s.cfg.OnEvidence != nil {
			s.cfg.OnEvidence(*e)
		}
	}
}

// sayGap logs windows that did not come before the one of r. They may still come, late.
func (s *partition) sayGap(r *event.Result, missing uint64) {
	if missing == 0 {
		return
	}
	s.seqGaps.Add(1)
	s.missed.Add(missing)
	s.log.Warn().Str("event", "seq_gap").Str("machine", r.Machine).Str("epoch", r.Epoch).
		Uint64("from", r.Seq-missing).Uint64("to", r.Seq-1).Uint64("windows", missing).
		Msg("windows are missing: dropped by a full spool, or lost by the broker; `ingest spool resend` brings back what the spool still has")
}

// logLetter logs why a message was set aside. Windows of another layout come until someone
// changes it, so the first one of each machine is an error and the others are for debugging.
func (s *partition) logLetter(l machine.Letter) {
	ev, text := s.log.Warn(), "message set aside on "+bus.TopicDead
	m := bounded(l.Key)
	var unread *unreadable
	if errors.As(l.Err, &unread) {
		m = bounded(unread.key)
	}
	switch {
	case l.State:
		return // a line of its machine says it
	case l.Command:
		text = "command set aside on " + bus.TopicDead
	case l.Advised:
		ev = s.log.Debug()
	case errors.Is(l.Err, window.ErrForeign):
		if s.foreign[m] || len(s.foreign) == maxForeign {
			ev = s.log.Debug()
			break
		}
		s.foreign[m] = true
		ev = s.log.Error().Str("model_layout", s.cfg.Model.Layout.Fingerprint()).Stringer("model_window", s.cfg.Model.Window.Length)
		text = "no window of this machine can be judged: its layout or window length is not the model's: train a model on it, " +
			"or correct the ingester's configuration; until then its windows are set aside on " + bus.TopicDead
	}
	ev.Int64("offset", l.Offset).Str("key", m).Str("error", l.Reason).Msg(text)
}
