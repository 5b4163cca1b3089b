package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// publish writes everything that follows from a batch in one transaction: state, results,
// alerts, features, dead letters and the position. Then it logs, counts and shows it. It is
// the only way by which a monitor that judges publishes anything.
func (s *partition) publish(ctx context.Context, b *machine.Batch) error {
	now, sealed := s.mon.now(), s.sealed
	s.sealed = nil
	msgs := make([]bus.Message, 0, len(b.State)+len(b.Events)+len(sealed)+len(b.Letters))
	for _, r := range b.State {
		msgs = append(msgs, stateMessage(r, now))
	}
	for _, e := range b.Events {
		msgs = append(msgs, eventMessage(e))
	}
	msgs = append(msgs, sealed...)
	for i := range msgs {
		msgs[i].Pinned, msgs[i].Partition = true, s.id
	}
	positions := make(map[string]int64)
	for topic, at := range map[string]int64{bus.TopicWindows: b.Position.Windows, bus.TopicFeatures: b.Position.Features, bus.TopicCommands: b.Position.Commands} {
		if at >= 0 {
			positions[topic] = at
		}
	}
	letters := make([]setAside, len(b.Letters))
	for i, l := range b.Letters {
		letters[i] = setAside{s.original(l), l.Reason, l.Err}
	}
	if err := publishWith(ctx, s.txn, msgs, letters, positions, now); err != nil {
		return fmt.Errorf("monitor: partition %d: %w", s.id, err)
	}
	s.mon.countAside(letters)
	s.measure(b, now)
	s.mon.features.Add(uint64(len(sealed)))
	s.mon.ready.published(s.id, ofWindows, b.Position.Windows, now)
	s.mon.ready.reached(s.id, ofFeatures, b.Position.Features)
	s.published(b)
	s.auditCommands(b)
	s.forgetRaw(b.Position)
	s.returnLoans()
	return nil
}

// setAside is a message that becomes a dead letter, and why.
type setAside struct {
	original bus.Message
	reason   string
	err      error
}

// letter returns the dead letter. Of windows of another layout, which come for as long as no
// one changes that, it has the beginning; of what could not be read, nothing.
func (l *setAside) letter(now time.Time) bus.Message {
	switch {
	case l.original.Damage != nil:
		return bus.BareLetter(l.original, -1, "monitor: "+l.original.Damage.Error(), now)
	case errors.Is(l.err, window.ErrForeign):
		return bus.CutLetter(l.original, l.reason, now)
	}
	return bus.DeadLetter(l.original, l.reason, now)
}

// why names the reason in one of asideReasons.
func (l *setAside) why() string {
	var mismatch *window.Mismatch
	switch {
	case l.original.Topic == bus.TopicCommands:
		return "command"
	case l.original.Topic == bus.TopicState:
		return "state"
	case l.original.Damage != nil:
		return "damaged"
	case errors.As(l.err, &mismatch):
		return strings.ReplaceAll(mismatch.What, " ", "_")
	case errors.Is(l.err, window.ErrCorrupt):
		return "corrupt"
	}
	return "not_a_window"
}

// asideReasons are why messages are set aside, as labels of a metric. "command" and "state" are of
// these topics, the others of windows and features.
var asideReasons = []string{
	"damaged", "corrupt", "not_a_window", "command", "state",
	"layout", "window_length", "features", "schema", // of a window.Mismatch
}

// asideCounts counts messages that were set aside, by the place of the reason in asideReasons.
type asideCounts [9]atomic.Uint64

// countAside counts messages that were set aside, by their reasons.
func (m *Monitor) countAside(all []setAside) {
	for i := range all {
		if at := slices.Index(asideReasons, all[i].why()); at >= 0 {
			m.aside[at].Add(1)
		}
	}
}

// each yields the reasons with their counts.
func (c *asideCounts) each(yield func([]string, uint64) bool) {
	for i, why := range asideReasons {
		if !yield([]string{why}, c[i].Load()) {
			return
		}
	}
}

// publishWith publishes messages, dead letters and positions. A letter must not stop the
// stream: of one that is too large, its position and the reason must do.
func publishWith(ctx context.Context, txn *bus.Txn, msgs []bus.Message, asides []setAside, positions map[string]int64, now time.Time) error {
	for i := range asides {
		msgs = append(msgs, asides[i].letter(now))
	}
	letters := msgs[len(msgs)-len(asides):]
	err := txn.Publish(ctx, msgs, positions)
	for cut := make(map[int]bool); errors.Is(err, bus.ErrTooLarge) && len(cut) < len(letters); {
		largest := -1
		for i := range letters {
			if !cut[i] && (largest < 0 || letters[i].Size() > letters[largest].Size()) {
				largest = i
			}
		}
		cut[largest] = true
		m := asides[largest].original
		letters[largest] = bus.BareLetter(m, len(m.Value), asides[largest].reason+" (and it is too large for this topic: look for it where it lay)", now)
		err = txn.Publish(ctx, msgs, positions)
	}
	return err
}

var topics = [...]string{machine.WindowLog: bus.TopicWindows, machine.FeatureLog: bus.TopicFeatures, machine.CommandLog: bus.TopicCommands, machine.StateLog: bus.TopicState}

// original returns the message that a letter is about.
func (s *partition) original(l machine.Letter) bus.Message {
	topic := topics[l.Log]
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.raw[letterKey{topic, l.Offset}]
	if !ok {
		return bus.Message{Topic: topic, Partition: s.id, Offset: l.Offset, Key: l.Key}
	}
	return m
}

// forgetRaw gives the memory of messages back that are done with.
func (s *partition) forgetRaw(at machine.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := map[string]int64{bus.TopicWindows: at.Windows, bus.TopicFeatures: at.Features, bus.TopicCommands: at.Commands, bus.TopicState: math.MaxInt64}
	for k := range s.raw {
		if k.offset < below[k.topic] {
			delete(s.raw, k)
		}
	}
}

// returnLoans gives the memory of windows back whose letters and features are published.
func (s *partition) returnLoans() {
	for i, l := range s.loans {
		l.Return()
		s.loans[i] = nil
	}
	s.loans = s.loans[:0]
}

// published counts, logs and shows what readers can see now.
func (s *partition) published(b *machine.Batch) {
	s.mon.judged.Add(b.Judged)
	s.mon.late.Add(b.Late)
	s.mon.repeats.Add(b.Repeats)
	s.mon.unwatched.Add(b.Unwatched)
	s.mon.panics.Add(b.Panics)
	s.mon.dead.Add(uint64(len(b.Letters)))
	for _, l := range b.Letters {
		s.logLetter(l)
	}
	for _, e := range b.Events {
		s.tell(e)
	}
	for _, l := range b.Lines {
		if l.Event == "tools_alike" {
			s.mon.alike.Add(1)
		}
		s.say(l.Warn).Str("event", l.Event).Str("machine", l.Machine).Msg(l.Text)
	}
	s.countMachines()
}

// measure notes how long a batch took whose transaction began at that time, and its results.
func (s *partition) measure(b *machine.Batch, began time.Time) {
	now := s.mon.now()
	s.mon.took.transaction.Observe(now.Sub(began).Seconds())
	for _, e := range b.Events {
		if r, ok := e.(machine.Result); ok && !r.Late {
			s.mon.took.result.Observe(now.Sub(r.End).Seconds())
		}
	}
	s.mon.table.judged(s.id, b.Events)
}

// countMachines notes how the machines are, and counts the windows that have not come.
func (s *partition) countMachines() {
	holes := uint64(0)
	s.owner.Machines(func(m *machine.Machine) { holes += m.Missing() })
	s.mon.missing.Add(int64(holes) - int64(s.holes))
	s.holes = holes
	s.mon.table.update(s.id, s.owner)
}

// tell counts, logs and shows one event.
func (s *partition) tell(o machine.Output) {
	switch o := o.(type) {
	case machine.ShadowResult, machine.ShadowAlert: // people hear of it by `trainer shadow report`
	case machine.Result:
		s.sayGap(o.Result, o.Missing)
	case machine.Alert:
		s.mon.alerts.Add(1)
		s.say(o.Severity == "warning").Str("event", "alarm_"+string(o.State)).Str("machine", o.Machine).Str("incident", o.Incident).Str("by", o.By).Str("command", o.Command).Msg(o.Text)
		tellOf(s.mon.cfg.OnAlert, o.Alert)
	case machine.Advisory:
		s.mon.advisories.Add(1)
		s.say(o.Severity == "warning").Str("event", string(o.Kind)+"_"+string(o.State)).Str("machine", o.Machine).Str("subject", o.Subject).Msg(o.Text)
		tellOf(s.mon.cfg.OnAdvisory, o.Advisory)
	case machine.Evidence:
		s.say(!o.Complete).Str("event", "evidence").Str("machine", o.Machine).Str("alert", o.Alert).Str("url", o.URL).Msg(o.Text)
		tellOf(s.mon.cfg.OnEvidence, o.Evidence)
	}
}

// tellOf tells who wants to know of an event, if there is one.
func tellOf[T any](who func(T), of *T) {
	if who != nil {
		who(*of)
	}
}

// say begins a line of the log, a warning or not.
func (s *partition) say(warning bool) *zerolog.Event {
	if warning {
		return s.log.Warn()
	}
	return s.log.Info()
}

// sayGap logs windows that did not come before the one of r. They may still come, late.
func (s *partition) sayGap(r *event.Result, missing uint64) {
	if missing == 0 {
		return
	}
	s.mon.seqGaps.Add(1)
	s.mon.missed.Add(missing)
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
	case l.Log == machine.StateLog:
		return // a line of its machine says it
	case l.Log == machine.CommandLog:
		text = "command set aside on " + bus.TopicDead
	case l.Advised:
		ev = s.log.Debug()
	case errors.Is(l.Err, window.ErrForeign):
		if s.foreign[m] || len(s.foreign) == maxForeign {
			ev = s.log.Debug()
			break
		}
		s.foreign[m] = true
		ev = s.log.Error()
		text = "no window of this machine can be judged; until someone corrects that, its messages are set aside on " + bus.TopicDead
	}
	ev.Int64("offset", l.Offset).Str("key", m).Str("error", l.Reason).Msg(text)
}
