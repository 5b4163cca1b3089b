package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	batchWindows = 64
	batchWait    = 5 * time.Millisecond
	maxForeign   = 1000 // more machines than a partition has, fewer keys than a flood of garbage
)

// partition is one partition of the windows topic while it is assigned to us.
type partition struct {
	*Monitor
	id   int
	turn uint64 // higher than that of whoever had the partition before

	mu       sync.Mutex // windows, commands and the clock each move machines
	machines map[string]*machine
	judge    *model.Judge
	window   window.Window
	next     int64           // offset of the window to be judged next
	foreign  map[string]bool // keys, at most maxForeign of them, of which a window of another layout came
	log      zerolog.Logger
}

// serve judges one partition, and does what its machines' commands say, until ctx
// ends.
func (m *Monitor) serve(ctx context.Context, p *bus.Partition) error {
	s := &partition{
		Monitor: m, id: p.ID(), machines: make(map[string]*machine), judge: m.cfg.Model.NewJudge(),
		next: p.Next(), foreign: make(map[string]bool), log: m.cfg.Log.With().Int("partition", p.ID()).Logger(),
	}
	defer func() { // whoever gets the partition next counts them
		for _, mach := range s.machines {
			s.missing.Add(-int64(mach.holes))
		}
	}()
	if err := s.load(ctx, uint64(max(p.Generation(), 0))); err != nil {
		return err
	}
	return together(ctx, func(ctx context.Context) error { return s.follow(ctx, p) }, s.listen, s.watchClock, s.payDebts)
}

// follow judges the windows of the partition until ctx ends.
func (s *partition) follow(ctx context.Context, p *bus.Partition) error {
	for {
		msgs, err := p.Fetch(ctx, batchWindows, batchWait)
		if err != nil {
			return err
		}
		batch, cancel := outlive(ctx, s.grace)
		s.mu.Lock()
		if err = s.settle(batch, msgs); err == nil {
			s.next = msgs[len(msgs)-1].Offset + 1
		}
		s.mu.Unlock()
		if err == nil {
			err = p.Commit(batch, msgs[len(msgs)-1].Offset+1)
		}
		cancel()
		if err != nil {
			return err
		}
	}
}

// together runs all until one of them ends, then waits for the others, and
// returns the error of the first.
func together(ctx context.Context, all ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(all))
	for _, f := range all {
		go func() { errs <- f(ctx) }()
	}
	first := <-errs
	cancel()
	for range len(all) - 1 {
		_ = <-errs // they ended because they were told to
	}
	return first
}

// outlive returns a context that is canceled some time after ctx, so that what
// was begun can be finished.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// load reads the state of the partition's machines and sends again what may
// not have been sent. The state topic has as many partitions as the windows
// topic and the same keys, so a machine is in the same partition of both.
//
// A monitor that was suspended in the middle of a batch finishes it when it wakes,
// although another has had the partition since: its record then lies behind newer
// ones. So of the records of a machine the last one of the highest turn counts.
func (s *partition) load(ctx context.Context, generation uint64) error {
	last, stale := make(map[string]bus.Message), 0
	err := bus.ReadFrom(ctx, s.cfg.Bus, bus.TopicState, s.id, bus.FirstOffset, false, func(m bus.Message) error {
		turn, written := turnOf(m)
		s.turn = max(s.turn, turn)
		if before, ok := last[m.Key]; ok && written {
			if t, _ := turnOf(before); t > turn {
				stale++
				return nil
			}
		}
		last[m.Key] = m
		return nil
	})
	if err != nil {
		return fmt.Errorf("monitor: state: %w", err)
	}
	s.turn = max(s.turn+1, generation)
	if stale > 0 {
		s.log.Warn().Int("records", stale).Msg("passed over records of a monitor that had lost the partition when it wrote them: it was suspended, or its processor overloaded")
	}
	var again []bus.Message
	for _, name := range slices.Sorted(maps.Keys(last)) {
		record := last[name]
		if len(record.Value) == 0 {
			continue // a tombstone
		}
		mach, pending, err := s.restore(record)
		if err != nil {
			if err := s.beginAnew(ctx, record, err); err != nil {
				return err
			}
			continue
		}
		s.machines[name] = mach
		s.missing.Add(mach.countHoles())
		again = append(again, pending...)
	}
	if len(again) == 0 {
		return nil
	}
	s.log.Debug().Int("messages", len(again)).Msg("sending again what may not have been sent")
	return s.out.Send(ctx, again)
}

// restore returns the machine of a record, and what was to be sent with it.
func (s *partition) restore(record bus.Message) (*machine, []bus.Message, error) {
	st, again, err := readState(record)
	if err != nil {
		return nil, nil, err
	}
	mach, err := s.newMachine(record.Key)
	if err != nil {
		return nil, nil, err
	}
	if err := mach.restore(st, s.cfg.Model, len(s.judge.FeatureNames())); err != nil {
		return nil, nil, err
	}
	return mach, again, nil
}

// newMachine returns a machine of which nothing is known.
func (s *partition) newMachine(name string) (*machine, error) {
	m, err := newMachine(name, s.cfg.Alarm, s.cfg.Model.Reference, s.log)
	if err == nil {
		m.patient = s.now()
	}
	return m, err
}

// beginAnew sets a record aside that cannot be used. One machine's record must
// not blind the monitor to all the others.
func (s *partition) beginAnew(ctx context.Context, record bus.Message, cause error) error {
	s.log.Error().Err(cause).Str("machine", record.Key).Str("topic", record.Topic).Int64("offset", record.Offset).
		Msg("record of a machine set aside on " + bus.TopicDead + ": its alarm is forgotten and its reference is learnt " +
			"from the tool at hand, however worn: change the tool, or do not trust its verdicts until it is changed")
	if err := s.setAside(ctx, []letter{{record, cause.Error()}}); err != nil {
		return fmt.Errorf("monitor: dead letter: %w", err)
	}
	tombstone := bus.Message{Topic: bus.TopicState, Key: record.Key, Headers: []bus.Header{s.turnHeader()}}
	if err := s.out.Send(ctx, []bus.Message{tombstone}); err != nil {
		return fmt.Errorf("monitor: state: %w", err)
	}
	return nil
}

// verdicts is what was decided in a batch on the windows of one machine.
type verdicts struct {
	windows uint64
	late    uint64    // of them
	end     time.Time // of the last window
	alerts  []event.Alert
	advised []event.Advisory
	out     []pending // results, alerts and advisories, in order
}

// settle judges a batch and makes what was decided durable.
func (s *partition) settle(ctx context.Context, msgs []bus.Message) error {
	decided := make(map[string]*verdicts)
	var order []string // of machines
	var dead []letter
	for i := range msgs {
		if err := Open(s.codec, &msgs[i], &s.window); err != nil {
			s.complain(&msgs[i], err)
			dead = append(dead, letter{msgs[i], err.Error()})
			continue
		}
		w := &s.window
		mach := s.machines[w.Machine]
		if mach == nil {
			var err error
			if mach, err = s.newMachine(w.Machine); err != nil {
				return err
			}
			s.machines[w.Machine] = mach
		}
		mach.offset = msgs[i].Offset
		r, alerts := mach.observe(w, s.judge, s.cfg.Model.Layout, s.cfg.Model.ID())
		if r == nil {
			s.repeats.Add(1)
			continue
		}
		mach.awake(s.now(), r)
		s.promise(mach, alerts, w.Start)
		s.sayGap(w, mach.gap)
		d := decided[w.Machine]
		if d == nil {
			d = new(verdicts)
			decided[w.Machine] = d
			order = append(order, w.Machine)
		}
		d.windows++
		if r.Late {
			d.late++
		}
		d.end = r.End
		d.alerts = append(d.alerts, alerts...)
		d.advised = append(d.advised, mach.told...)
		d.out = append(d.out, pending{event.ResultType, event.JSON(r)})
		for _, a := range alerts {
			d.out = append(d.out, pending{event.AlertType, event.JSON(a)})
		}
		for _, a := range mach.told {
			d.out = append(d.out, pending{event.AdvisoryType, event.JSON(a)})
		}
		if s.cfg.OnWindow != nil {
			s.cfg.OnWindow(w, *r)
		}
	}
	var states, out []bus.Message
	for _, name := range order {
		d := decided[name]
		states = append(states, s.record(s.machines[name], d.end, d.out))
		for _, p := range d.out {
			msg, err := p.message()
			if err != nil {
				return err
			}
			out = append(out, msg)
		}
	}
	if err := s.out.Send(ctx, states); err != nil {
		return fmt.Errorf("monitor: state: %w", err)
	}
	if err := s.out.Send(ctx, out); err != nil {
		return fmt.Errorf("monitor: results: %w", err)
	}
	if err := s.setAside(ctx, dead); err != nil {
		return fmt.Errorf("monitor: dead letters: %w", err)
	}
	for _, name := range order {
		d := decided[name]
		s.judged.Add(d.windows)
		s.alerts.Add(uint64(len(d.alerts)))
		s.late.Add(d.late)
		s.missing.Add(s.machines[name].countHoles())
		if s.cfg.OnAlert != nil {
			for _, a := range d.alerts {
				s.cfg.OnAlert(a)
			}
		}
		s.advised(d.advised)
	}
	return nil
}

// sayGap declares windows that did not come before w. They may still come, late.
func (s *partition) sayGap(w *window.Window, missing uint64) {
	if missing == 0 {
		return
	}
	s.seqGaps.Add(1)
	s.missed.Add(missing)
	s.log.Warn().Str("event", "seq_gap").Str("machine", w.Machine).Str("epoch", w.EpochString()).
		Uint64("from", w.Seq-missing).Uint64("to", w.Seq-1).Uint64("windows", missing).
		Msg("windows are missing: given up by a full spool, or lost by the broker; `ingest spool resend` brings back what the spool still has")
}

// record returns what is kept of a machine after something that happened at the
// given time, with what is to be sent of it.
func (s *partition) record(m *machine, at time.Time, out []pending) bus.Message {
	record := message(bus.TopicState, m.name+"/state", m.name, event.StateType, at, event.JSON(m.state(s.cfg.Model.ID(), out)))
	record.Headers = append(record.Headers, s.turnHeader())
	return record
}

// turnHeader marks the records of this turn.
func (s *partition) turnHeader() bus.Header {
	return bus.Header{Key: headerTurn, Value: strconv.AppendUint(nil, s.turn, 10)}
}

// complain logs why a message is set aside. Windows of another layout come as
// long as nobody changes it, so of each machine the first is said out loud.
func (s *partition) complain(m *bus.Message, err error) {
	ev, msg := s.log.Warn(), "message set aside on "+bus.TopicDead
	key := m.Key[:min(len(m.Key), 256)] // a stranger's may be megabytes
	if errors.Is(err, window.ErrForeign) {
		if s.foreign[key] || len(s.foreign) == maxForeign {
			ev = s.log.Debug()
		} else {
			s.foreign[key] = true
			ev = s.log.Error().Str("model_layout", s.cfg.Model.Layout.Fingerprint()).Stringer("model_window", s.cfg.Model.Window.Length)
			msg = "no window of this machine can be judged: its layout or window length is not the model's: train a model on it, " +
				"or correct the ingester's configuration; until then its windows are set aside on " + bus.TopicDead
		}
	}
	ev.Int64("offset", m.Offset).Str("key", key).Err(err).Msg(msg)
}

// letter is a message that cannot be used, and why.
type letter struct {
	msg    bus.Message
	reason string
}

// setAside puts letters on the dead-letter topic. Of one that the topic does not
// take, its position and the reason must do. A letter may be there twice: its
// identity is the position.
func (s *partition) setAside(ctx context.Context, letters []letter) error {
	now := time.Now()
	dead := make([]bus.Message, len(letters))
	for i, l := range letters {
		dead[i] = bus.DeadLetter(l.msg, l.reason, now)
	}
	err := s.out.Send(ctx, dead)
	if errors.Is(err, bus.ErrTooLarge) {
		err = nil
		for i := 0; i < len(dead) && err == nil; i++ {
			if err = s.out.Send(ctx, dead[i:i+1]); errors.Is(err, bus.ErrTooLarge) {
				m := letters[i].msg
				m.Key, m.Value, m.Headers = m.Key[:min(len(m.Key), 256)], nil, nil
				reason := letters[i].reason + " (and it is too large for this topic: look for it where it lay)"
				err = s.out.Send(ctx, []bus.Message{bus.DeadLetter(m, reason, now)})
			}
		}
	}
	if err == nil {
		s.dead.Add(uint64(len(letters)))
	}
	return err
}
