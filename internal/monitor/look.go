package monitor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/window"
)

// Bounds of what is read of windows that another monitor judges.
const (
	lookEvery   = time.Second
	lookMost    = 4                // machines in a round
	lookAgain   = 2 * time.Second  // after a window that is newer than the one before
	lookSeldom  = 30 * time.Second // at most, after several times without
	lookWithin  = 20 * time.Second // for one machine
	lookBytes   = 64 << 20         // of windows, for one machine
	lookCovered = 10 * time.Second // of the topic that have no window of a machine whose results come: its gateway keeps them
)

// lookDepths are how many offsets of a partition are read from its end, until a window of the
// machine is among them.
var lookDepths = []int64{4, 32, 256}

// looker shows pages the last window of machines that this monitor does not judge, or that are
// silent: it reads it from the topic of windows, only while a page looks at the machine.
type looker struct {
	bus     bus.Config
	hub     *web.Hub
	layouts *layouts
	seen    map[string]*looked // machines that pages look at
}

// looked is what the looker knows of a machine.
type looked struct {
	epoch string
	seq   uint64
	due   time.Time
	wait  time.Duration
}

// run looks until ctx ends. Without the right to read windows pages have none.
func (l *looker) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.round(ctx, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// round looks for the windows that are due.
func (l *looker) round(ctx context.Context, now time.Time) {
	for _, name := range l.due(l.hub.Unseen(), now) {
		s := l.seen[name]
		s.wait = min(max(2*s.wait, lookAgain), lookSeldom)
		if l.look(ctx, name, s) {
			s.wait = lookAgain
		}
		s.due = time.Now().Add(s.wait)
	}
}

// due returns which of the machines are looked for now: at most lookMost, first those that have waited longest,
// so that each gets its turn. It forgets all others.
func (l *looker) due(names []string, now time.Time) (due []string) {
	maps.DeleteFunc(l.seen, func(name string, _ *looked) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		if l.seen[name] == nil {
			l.seen[name] = &looked{due: now}
		}
		if !now.Before(l.seen[name].due) {
			due = append(due, name)
		}
	}
	slices.SortStableFunc(due, func(a, b string) int { return l.seen[a].due.Compare(l.seen[b].due) })
	return due[:min(len(due), lookMost)]
}

// look shows the last window of a machine. It reports whether that is another one than before.
func (l *looker) look(ctx context.Context, name string, s *looked) bool {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	last, covered, err := l.last(ctx, name)
	if err != nil {
		return false // pages say that no window has come
	}
	if last == nil {
		if covered {
			l.hub.ShowBare(name)
		}
		return false
	}
	var w window.Window
	f, err := l.layouts.openWindow(last, &w)
	if err != nil || w.EpochString() == s.epoch && w.Seq == s.seq {
		return false
	}
	s.epoch, s.seq = w.EpochString(), w.Seq
	l.hub.Show(web.Window{
		Layout: f.codec.Layout(), Machine: w.Machine, Tool: w.Tool, Hole: w.Hole, Epoch: s.epoch, Seq: w.Seq, Start: w.Start, Samples: w.Samples,
	})
	return true
}

// lastIn returns the newest window of a machine in a range of a partition, nil if there is none, and when the range begins.
func (l *looker) lastIn(ctx context.Context, name string, id int, r bus.Range) (last *bus.Message, began time.Time, err error) {
	bytes := 0
	err = bus.ReadRange(ctx, l.bus, bus.TopicWindows, id, r, func(m bus.Message) error {
		if began.IsZero() {
			began = m.Time
		}
		if m.Key == name && m.Damage == nil && !envelope.IsLedger(&m) {
			last = &m
		}
		if bytes += len(m.Value); bytes > lookBytes {
			return errEnough
		}
		return nil
	})
	return last, began, err
}

// last returns the newest window of a machine, nil if none is among those that were read, and
// whether those are of so long a time that there would be one.
func (l *looker) last(ctx context.Context, name string) (last *bus.Message, covered bool, err error) {
	n, err := bus.Partitions(ctx, l.bus, bus.TopicWindows)
	if err != nil {
		return nil, false, err
	}
	id := bus.PartitionOf(name, n)
	first, end, err := bus.Bounds(ctx, l.bus, bus.TopicWindows, id)
	if err != nil {
		return nil, false, err
	}
	for i, depth := range lookDepths {
		from := max(first, end-depth)
		if from == end {
			return nil, true, nil
		}
		last, began, err := l.lastIn(ctx, name, id, bus.Range{From: from, To: end})
		switch {
		case last != nil:
			return last, false, nil
		case errors.Is(err, errEnough):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		case from == first:
			return nil, true, nil
		case i == len(lookDepths)-1:
			return nil, time.Since(began) > lookCovered, nil
		}
	}
	return nil, false, nil
}
