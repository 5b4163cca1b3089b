package monitor

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/window"
)

// worker extracts the features of one partition's windows while it is assigned to us. It
// remembers nothing: the features of a window depend on nothing else.
type worker struct {
	*Monitor
	id         int
	homes      homes
	extractors extractors
	window     window.Window
	features   window.Features
	log        zerolog.Logger
	refused    map[string]bool // keys of messages that were set aside, at most maxForeign
}

// serveExtract extracts features of one partition's windows until ctx ends. Features, dead
// letters and the position are one transaction, so that each window's features are published
// once.
func (m *Monitor) serveExtract(ctx context.Context, p *bus.Partition) error {
	x := &worker{Monitor: m, id: p.ID(), extractors: make(extractors), refused: make(map[string]bool), log: m.cfg.Log.With().Int("partition", p.ID()).Logger()}
	p.OnFetched = func(end int64) { m.ready.fetched(p.ID(), ofWindows, end, m.now()) }
	if err := m.checkTopics(ctx); err != nil {
		return err
	}
	x.homes = m.homes()
	m.ready.assigned(p.ID(), m.now())
	defer m.ready.revoked(p.ID())
	txn, err := p.Fence(ctx)
	if err != nil {
		return fmt.Errorf("monitor: partition %d: %w", x.id, err)
	}
	m.ready.reached(x.id, ofWindows, txn.Begin())
	for wait := time.Duration(0); ; {
		msgs, err := p.Fetch(ctx, batchWindows, wait)
		if err != nil {
			return err
		}
		if wait = 0; len(msgs) > 1 {
			wait = batchWait
		}
		if err := x.publish(ctx, txn, msgs); err != nil {
			return err
		}
	}
}

// publish publishes the features of windows.
func (x *worker) publish(ctx context.Context, txn *bus.Txn, msgs []bus.Message) error {
	var out []bus.Message
	var asides []setAside
	for i := range msgs {
		m := &msgs[i]
		old, away := x.homes.check(m)
		if m.Header(envelope.Copied) != nil || old {
			continue
		}
		x.took.fetch.Observe(x.now().Sub(m.Time).Seconds())
		if away != nil {
			asides = append(asides, setAside{*m, away.Error(), away})
		} else if f, err := x.extract(m); err != nil {
			asides = append(asides, setAside{*m, err.Error(), err})
		} else {
			f.Pinned, f.Partition = true, x.id
			out = append(out, f)
		}
	}
	n, next := len(out), msgs[len(msgs)-1].Offset+1
	batch, cancel := withGrace(ctx, x.grace)
	defer cancel()
	began := x.now()
	if err := publishWith(batch, txn, out, asides, map[string]int64{bus.TopicWindows: next}, began); err != nil {
		return fmt.Errorf("monitor: partition %d: %w", x.id, err)
	}
	x.took.transaction.Observe(x.now().Sub(began).Seconds())
	x.ready.published(x.id, ofWindows, next, x.now())
	x.Monitor.features.Add(uint64(n))
	x.dead.Add(uint64(len(asides)))
	x.countAside(asides)
	for _, a := range asides {
		x.logAside(a)
	}
	return nil
}

// extract returns the message of the features of the window in m.
func (x *worker) extract(m *bus.Message) (bus.Message, error) {
	f, err := x.layouts.openWindow(m, &x.window)
	if err != nil {
		return bus.Message{}, err
	}
	x.extractors.of(f.features).Extract(&x.window, &x.features)
	e, err := f.features.Seal(&x.features)
	if err != nil {
		return bus.Message{}, fmt.Errorf("monitor: %w", err)
	}
	return envelope.Features(e, envelope.Monitor, m.Offset), nil
}

// logAside logs a message that was set aside: of each key the first, the others for debugging.
func (x *worker) logAside(a setAside) {
	key, ev := bounded(a.original.Key), x.log.Debug()
	if !x.refused[key] && len(x.refused) < maxForeign {
		x.refused[key] = true
		ev = x.log.Warn()
	}
	ev.Int64("offset", a.original.Offset).Str("key", key).Str("error", a.reason).Msg("message set aside on " + bus.TopicDead)
}
