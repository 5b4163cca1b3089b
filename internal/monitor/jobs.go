package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// startJob begins work that is due and holds up no window: the past of a tool that a model is to see, or
// evidence that is to be written. One is done at a time; both read from Kafka again.
func (s *partition) startJob(ctx context.Context, working *sync.WaitGroup) {
	if s.busy.Load() {
		return
	}
	var job func(context.Context) machine.Reply
	if b := s.owner.BuildDue(s.mon.now()); b != nil {
		job = func(ctx context.Context) machine.Reply { return s.build(ctx, b) }
	}
	s.owner.Machines(func(m *machine.Machine) {
		if job != nil {
			return
		}
		if j, ok := m.EvidenceDue(s.mon.now()); ok {
			name, usual := m.Machine, m.UsualBands(j)
			job = func(ctx context.Context) machine.Reply {
				return machine.EvidenceOf{Machine: name, EvidenceDone: machine.EvidenceDone{Job: j, Evidence: s.gather(ctx, name, j, usual)}}
			}
		}
	})
	if job == nil {
		return
	}
	s.busy.Store(true)
	working.Go(func() {
		defer s.busy.Store(false)
		_ = s.reply(ctx, job(ctx)) // else the next owner does it
	})
}

// clocks is by how much the clocks of brokers may differ: the windows' broker says when a tool's first window came, and another one
// when its features did.
const clocks = time.Minute

// errEnough ends the reading of windows.
var errEnough = errors.New("enough")

// build shows a model the features of a tool's windows: those that were published, or what is extracted again from the
// windows, as long as Kafka has them, if the model takes other ones.
func (s *partition) build(ctx context.Context, b *machine.Build) machine.Reply {
	topic, open := bus.TopicFeatures, s.mon.layouts.openFeatures
	if !s.mon.layouts.publishes(b.Model()) {
		var w window.Window
		own := make(extractors) // the partition's are used meanwhile
		topic = bus.TopicWindows
		open = func(m *bus.Message, into *window.Features) error {
			f, err := s.mon.layouts.openWindow(m, &w)
			if err == nil {
				own.of(f.judged).Extract(&w, into)
			}
			return err
		}
	}
	var features window.Features
	job := b.Job()
	// A transaction of another group may lie before features that are published.
	err := bus.ReadRange(ctx, s.mon.cfg.Bus, topic, s.id, bus.Range{Since: job.First.At.Add(-clocks), Settled: topic == bus.TopicFeatures}, func(m bus.Message) error {
		if m.Key == job.Machine && open(&m, &features) == nil {
			b.Observe(&features, m.Time)
		}
		return nil
	})
	if b.Failed = err != nil; b.Failed && ctx.Err() == nil {
		s.log.Warn().Err(err).Str("machine", job.Machine).Str("topic", topic).Msg("cannot read a tool's past; trying again")
	}
	return b
}

// reading calls each for messages of windows, in order, until it fails.
type reading func(each func(*bus.Message) error) error

// codecOf returns the codec of a machine's first window.
func (s *partition) codecOf(name string, read reading) (codec *window.Codec, err error) {
	var w window.Window
	err = read(func(m *bus.Message) error {
		if m.Key != name {
			return nil
		}
		f, err := s.mon.layouts.openWindow(m, &w)
		if err != nil {
			return nil
		}
		codec = f.codec
		return errEnough
	})
	switch {
	case codec != nil:
		return codec, nil
	case err != nil:
		return nil, err
	}
	return nil, evidence.ErrNothing
}

// gather reads the windows of a span again, keeps them with what is usual for the tool, and says
// what became of it.
func (s *partition) gather(ctx context.Context, name string, j machine.EvidenceJob, usual []evidence.Band) event.Evidence {
	e, about := j.About(name, s.mon.cfg.EvidenceURL)
	if s.mon.cfg.Evidence == nil {
		e.Text = about + " not kept: the monitor has no evidence.dir any more."
		return e
	}
	why := ""
	read := func(each func(*bus.Message) error) error {
		return bus.ReadRange(ctx, s.mon.cfg.Bus, bus.TopicWindows, s.id, bus.Range{From: j.Offset.At}, func(m bus.Message) error { return each(&m) })
	}
	if j.Offset.Features {
		read, why = s.fetchEvidence(ctx, name, j)
	}
	k, err := s.keep(name, j, usual, read)
	switch e.Windows, e.Bytes, e.SHA256 = k.Windows, k.Bytes, k.SHA256; {
	case err != nil:
		e.Text = fmt.Sprintf("%s not kept: %v%s.", about, err, why)
	case k.Missing > 0:
		e.Text = fmt.Sprintf("%s kept, but for %v of it, of which no window came: %d windows, %.1f MB%s.", about, k.Missing, k.Windows, float64(k.Bytes)/1e6, why)
	default:
		e.Complete = true
		e.Text = fmt.Sprintf("%s kept: %d windows, %.1f MB.", about, k.Windows, float64(k.Bytes)/1e6)
	}
	return e
}

// keep writes evidence of the windows that are read, and of what is usual for the tool.
func (s *partition) keep(name string, j machine.EvidenceJob, usual []evidence.Band, read reading) (evidence.Kept, error) {
	codec, err := s.codecOf(name, read)
	if err != nil {
		return evidence.Kept{}, err
	}
	facts := evidence.Facts{Alert: j.Alert, Machine: name, Incident: j.Incident, Model: j.Model, At: j.At, From: j.From, To: j.To, Usual: usual}
	return s.mon.cfg.Evidence.Write(j.Name, codec, facts, func(add func(*window.Window) error) error {
		var w window.Window
		next := uint64(0) // windows may have been sent again
		err := read(func(m *bus.Message) error {
			if m.Key != name {
				return nil
			}
			if err := envelope.Open(codec, m, &w); err != nil || w.EpochString() != j.Epoch || w.Seq < next {
				return nil
			}
			if !w.Start.Before(j.To) {
				return errEnough
			}
			next = w.Seq + 1
			return add(&w)
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
}
