package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/window"
)

// How a command looks at what machines send and what is judged.
const (
	lately       = 15 * time.Minute
	mostResults  = 100 // of each partition at a time
	mostFeatures = 200
	mostWindows  = 2  // they are large
	deepest      = 50 // times
	lookers      = 8
)

// lookFor bounds how long a person waits for the names of machines. Tests raise it.
var lookFor = 3 * time.Second

// newest calls fn for the newest messages of each key of a topic that are not older than lately, one at a time. It goes back so many
// messages of each partition at a time, and then calls fn only for keys that it has not met. What cannot be read quickly is left out:
// whole is false then.
func newest(ctx context.Context, cfg bus.Config, topic string, most int64, fn func(bus.Message)) (whole bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	cfg.OnRetry = nil
	n, err := bus.Partitions(ctx, cfg, topic)
	if err != nil {
		return false, err
	}
	whole = true
	var (
		mu   sync.Mutex
		errs error
		wg   sync.WaitGroup
		next = make(chan int)
	)
	one := func(m bus.Message) {
		mu.Lock()
		defer mu.Unlock()
		fn(m)
	}
	for range lookers {
		wg.Go(func() {
			for p := range next {
				ended, err := newestOf(ctx, cfg, topic, p, most, one)
				mu.Lock()
				whole, errs = whole && ended, errors.Join(errs, err)
				mu.Unlock()
			}
		})
	}
	for p := range n {
		next <- p
	}
	close(next)
	wg.Wait()
	return whole, errs
}

// newestOf is newest for a partition. It reports whether it came to a message that is older than lately.
func newestOf(ctx context.Context, cfg bus.Config, topic string, p int, most int64, fn func(bus.Message)) (ended bool, err error) {
	first, end, err := bus.Bounds(ctx, cfg, topic, p)
	if err != nil {
		return false, err
	}
	met, since := make(map[string]bool), time.Now().Add(-lately)
	for range deepest {
		from, now := max(first, end-most), make(map[string]bool)
		if from == end {
			return true, nil
		}
		err := bus.ReadRange(ctx, cfg, topic, p, bus.Range{From: from, To: end, Since: since}, func(m bus.Message) error {
			if now[m.Key] = true; !met[m.Key] {
				fn(m)
			}
			return nil
		})
		switch {
		case err != nil && len(met) == 0:
			return false, err
		case err != nil: // no time is left
			return false, nil
		case len(now) == 0: // all are older
			return true, nil
		}
		maps.Copy(met, now)
		end = from
	}
	return false, nil
}

// machinesNow returns the machines for which want holds and that had results lately; none if
// that cannot be found out quickly.
func machinesNow(ctx context.Context, cfg bus.Config, want func(machine string) bool) []string {
	names := make(map[string]bool)
	_, _ = newest(ctx, cfg, bus.TopicResults, mostResults, func(m bus.Message) { // what is found by then is shown
		var r event.Result
		if json.Unmarshal(m.Value, &r) == nil && want(r.Machine) {
			names[r.Machine] = true
		}
	})
	return slices.Sorted(maps.Keys(names))
}

// sent is what a machine has sent last.
type sent struct {
	layout string        // fingerprint
	form   string        // fingerprint of the features; empty: they are not known
	edge   bool          // its gateway extracts them, and Kafka does not have its windows
	length time.Duration // of windows; 0: not known

	epoch, seq uint64 // of the newest window
	end        time.Time
	apart      [3]time.Duration // between the ends of the newest windows that follow each other
}

// window notes a window that ended then, of an epoch and with a number.
func (s *sent) window(e window.Envelope, end time.Time) {
	switch {
	case e.Layout != s.layout:
		*s = sent{layout: e.Layout}
	case e.Epoch == s.epoch && e.Seq == s.seq+1 && end.After(s.end):
		s.apart = [3]time.Duration{s.apart[1], s.apart[2], end.Sub(s.end)}
	}
	s.epoch, s.seq, s.end = e.Epoch, e.Seq, end
}

// hop returns the time from one window to the next, 0 if it is not known. Behind a gap it is longer.
func (s *sent) hop() time.Duration { return slices.Min(s.apart[:]).Round(time.Millisecond) }

// sentLately returns what machines have sent lately, by their names: the features that gateways and
// monitors have extracted, or the windows if no monitor extracts. Known is false if that cannot be
// read, and whole if machines may be missing.
func sentLately(ctx context.Context, cfg bus.Config) (all map[string]*sent, known, whole bool) {
	all = make(map[string]*sent)
	of := func(m *bus.Message, e window.Envelope) *sent {
		end, err := time.Parse(time.RFC3339Nano, string(m.Header("ce_time")))
		if err != nil || m.Key != e.Machine || e.Machine == "" {
			return nil
		}
		if all[e.Machine] == nil {
			all[e.Machine] = new(sent)
		}
		all[e.Machine].window(e, end)
		return all[e.Machine]
	}
	whole, err := newest(ctx, cfg, bus.TopicFeatures, mostFeatures, func(m bus.Message) {
		e, err := envelope.Of(&m)
		if by, _, bad := envelope.Origin(&m); m.Damage == nil && err == nil && bad == nil {
			if s := of(&m, e); s != nil {
				s.form, s.edge = e.Features, by == envelope.Gateway
			}
		}
	})
	if err != nil {
		return all, false, false
	}
	_, _ = newest(ctx, cfg, bus.TopicResults, mostResults, func(m bus.Message) {
		var r event.Result
		if json.Unmarshal(m.Value, &r) == nil && all[r.Machine] != nil {
			all[r.Machine].length = r.End.Sub(r.Start)
		}
	})
	if len(all) > 0 {
		return all, true, whole
	}
	whole, err = newest(ctx, cfg, bus.TopicWindows, mostWindows, func(m bus.Message) {
		e, err := envelope.Of(&m)
		if m.Damage != nil || err != nil || m.Header(envelope.Copied) != nil {
			return
		}
		if _, spec, err := window.LayoutOf(e); err == nil {
			if s := of(&m, e); s != nil {
				s.length = spec.Length
			}
		}
	})
	return all, err == nil, whole
}
