package monitor

import (
	"context"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// MinSilence is the least Config.Silence but none. A window may take that long to
// come without anything being wrong.
const MinSilence = 5 * time.Second

// watchClock does what time alone brings until ctx ends: it ends shelves whose time
// is over, and says which machines are silent.
func (s *partition) watchClock(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := s.endShelves(ctx); err != nil {
			return err
		}
		if s.cfg.Silence > 0 {
			if err := s.hark(ctx); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hark raises the silence of machines of which no window came for Config.Silence.
//
// A monitor that is behind hears nothing either, while the windows lie in Kafka. So
// when a machine's time is over, Kafka is asked how far the partition goes, and the
// machine is silent only if all that has been judged by then is not of it. While
// Kafka does not answer, and for a while after, nothing can be said of anybody: the
// time begins anew. So it does for whoever takes over a partition.
func (s *partition) hark(ctx context.Context) error {
	batch, cancel := outlive(ctx, s.grace)
	defer cancel()
	unsure, err := s.raiseSilence(batch)
	if err != nil || !unsure {
		return err
	}
	first, end, err := bus.Bounds(ctx, s.cfg.Bus, bus.TopicWindows, s.id) // not under the lock: windows are judged meanwhile
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, m := range s.machines {
		switch {
		case !s.overdue(m, now) || m.behind != nil:
		case err != nil: // an outage, of which the others here hear too
			m.patient = now
		default:
			upTo := end
			if first == end {
				upTo = math.MinInt64 // nothing lies there
			}
			m.behind = &upTo
		}
	}
	return nil
}

// raiseSilence raises that of machines of which nothing can lie in Kafka. It reports
// whether there are some of which that is not known.
func (s *partition) raiseSilence(ctx context.Context) (unsure bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, m := range s.machines {
		switch {
		case !s.overdue(m, now):
		case m.behind == nil:
			unsure = true
		case s.next >= *m.behind:
			m.told = nil
			m.silent(now, s.cfg.Model.ID())
			if err := s.keep(ctx, m, now, nil, m.told...); err != nil {
				return false, err
			}
		}
	}
	return unsure, nil
}

// overdue reports whether the windows of m have not come for too long, and nobody
// was told yet.
func (s *partition) overdue(m *machine, now time.Time) bool {
	since := m.patient
	if t := s.troubled.Load(); t != nil && t.After(since) {
		since = *t
	}
	if now.Sub(since) < s.cfg.Silence {
		m.behind = nil // what was asked before an outage is no answer any more
		return false
	}
	return m.notice(event.SilenceAdvisory, "") == nil
}

// onRetry returns what hears of trouble with the broker: it passes it on to next,
// and remembers when it was.
func (m *Monitor) onRetry(next func(error, time.Duration)) func(error, time.Duration) {
	return func(err error, since time.Duration) {
		now := m.now()
		m.troubled.Store(&now)
		if next != nil {
			next(err, since)
		}
	}
}

// advised counts, logs and shows advisories that were sent.
func (m *Monitor) advised(all []event.Advisory) {
	m.advisories.Add(uint64(len(all)))
	for _, a := range all {
		ev := m.cfg.Log.Info()
		if a.Severity == "warning" {
			ev = m.cfg.Log.Warn()
		}
		ev.Str("event", string(a.Kind)+"_"+string(a.State)).Str("machine", a.Machine).Str("subject", a.Subject).Msg(a.Text)
		if m.cfg.OnAdvisory != nil {
			m.cfg.OnAdvisory(a)
		}
	}
}
