package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// readyWithin is how old the last sign of life of a partition may be.
const readyWithin = 5 * time.Second

// readiness is what a monitor knows of its own health. It is safe for concurrent use.
type readiness struct {
	mu         sync.Mutex
	joined     bool // a generation gave us partitions, or none
	share      int  // how many partitions the newest generation gave us
	started    bool // all of them have been read since the monitor began
	partitions map[int]*health
	troubledAt time.Time
	failing    error // of the broker; nil: it answers
	since      time.Time
	short      time.Time // since when it has fewer partitions at hand than its share; zero: it has them
}

const (
	standstillAfter = 15 * time.Second // without judging what comes: the log says why
	standstillAgain = time.Minute      // until the log says it again
)

// standstill is what the log knows of a monitor that is not ready.
type standstill struct{ since, said time.Time }

// watchStandstill looks every second whether the monitor stands still, until ctx ends.
func (m *Monitor) watchStandstill(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var s standstill
	for {
		select {
		case <-tick.C:
			m.sayStandstill(&s, m.now())
		case <-ctx.Done():
			return
		}
	}
}

// sayStandstill counts a standstill and logs it, with its reason, and its end.
func (m *Monitor) sayStandstill(s *standstill, now time.Time) {
	why := m.ready.check(now)
	if why == nil {
		if !s.said.IsZero() {
			m.cfg.Log.Info().Str("event", "judging_goes_on").Dur("after_ms", now.Sub(s.since)).Msg("the monitor judges what comes again")
		}
		*s = standstill{}
		return
	}
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < standstillAfter || now.Sub(s.said) < standstillAgain {
		return
	}
	if s.said.IsZero() {
		m.standstills.Add(1)
	}
	s.said = now
	m.cfg.Log.Warn().Err(why).Str("event", "standstill").Dur("for_ms", now.Sub(s.since)).Msg("the monitor does not judge what comes: the error says what it waits for, and /readyz says the same")
}

// health is what is known of one partition.
type health struct {
	assigned  time.Time
	fetched   time.Time // when the broker answered a fetch last
	published time.Time // when a batch was published last
	next, end [2]int64  // of windows and of features: to be judged next, and behind the newest
}

// What of a partition is judged.
const (
	ofWindows = iota
	ofFeatures
)

func (r *readiness) assigned(id int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.partitions == nil {
		r.partitions = make(map[int]*health)
	}
	r.partitions[id] = &health{assigned: now}
}

// generation notes that the monitor is a member of its group, with partitions or, where
// there are more members than partitions, none.
func (r *readiness) generation(partitions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined, r.share = true, partitions
}

func (r *readiness) revoked(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.partitions, id)
}

// fetched notes that the broker answered a fetch, and where the windows or the features end.
func (r *readiness) fetched(id, of int, end int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.partitions[id]; h != nil {
		h.fetched, h.end[of] = now, end
	}
}

// published notes up to where the windows or the features are judged. It is negative while there
// was none.
func (r *readiness) published(id, of int, next int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.partitions[id]; h != nil {
		h.published = now
		if next >= 0 {
			h.next[of] = next
		}
	}
}

// reached notes up to where the windows or the features were judged by others, or are not to
// be judged.
func (r *readiness) reached(id, of int, next int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.partitions[id]; h != nil {
		h.next[of] = max(h.next[of], next)
	}
}

func (r *readiness) trouble(err error, since time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubledAt, r.failing = now, err
	if err != nil {
		r.since = now.Add(-since)
	}
}

// lastTrouble returns when the broker did not answer, or answered again, last.
func (r *readiness) lastTrouble() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.troubledAt
}

// stuck reports that a partition gives no sign of life, or that its windows wait.
func (h *health) stuck(now time.Time) error {
	moved := slices.MaxFunc([]time.Time{h.assigned, h.published}, time.Time.Compare)
	alive := slices.MaxFunc([]time.Time{moved, h.fetched}, time.Time.Compare)
	switch {
	case now.Sub(alive) > readyWithin:
		return fmt.Errorf("no answer from the broker for %v", now.Sub(alive).Round(time.Second))
	case h.waiting() > 0 && !h.fetched.IsZero() && now.Sub(moved) > readyWithin && h.fetched.After(moved):
		return fmt.Errorf("%d windows wait, and none was judged for %v", h.waiting(), now.Sub(moved).Round(time.Second))
	}
	return nil
}

// check reports why the monitor is not ready at that time, or nil.
func (r *readiness) check(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing != nil {
		return fmt.Errorf("waiting for Kafka for %v: %w", now.Sub(r.since).Round(time.Second), r.failing)
	}
	return r.idle(now)
}

// idle reports why the monitor does not judge although the broker answers, or nil. The caller holds mu.
func (r *readiness) idle(now time.Time) error {
	switch {
	case len(r.partitions) >= r.share:
		r.short = time.Time{}
	case r.short.IsZero():
		r.short = now
	}
	if !r.joined {
		return errors.New("the monitor has not joined its group yet")
	}
	var ids []int
	read := 0
	for id, h := range r.partitions {
		ids = append(ids, id)
		if !h.fetched.IsZero() {
			read++
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := r.partitions[id].stuck(now); err != nil {
			return fmt.Errorf("partition %d: %w", id, err)
		}
	}
	if read < r.share && !r.started {
		return fmt.Errorf("the monitor has begun, and reads what its machines were like: %d of %d partitions are done", read, r.share)
	}
	r.started = true
	if !r.short.IsZero() && now.Sub(r.short) > readyWithin {
		return fmt.Errorf("the group gave the monitor %d partitions, and for %v it has had %d at hand: it waits for the group's next generation, or for the partitions' last owner in this program", r.share, now.Sub(r.short).Round(time.Second), len(r.partitions))
	}
	return nil
}

// waiting returns how many windows, or features of windows, wait to be judged.
func (h *health) waiting() int64 {
	return max(h.end[ofWindows]-h.next[ofWindows], h.end[ofFeatures]-h.next[ofFeatures], 0)
}

// waits reports whether messages of a partition may wait in Kafka: the broker does not answer or has not for long, or windows are behind.
// Commands that came while the monitor was away are read by readyWithin.
func (r *readiness) waits(id int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.partitions[id]
	return h == nil || r.failing != nil || h.fetched.IsZero() || now.Sub(h.assigned) < readyWithin || now.Sub(r.troubledAt) < readyWithin || h.waiting() > 0
}

// Ready reports why the monitor does not judge what comes, or nil: the broker does not
// answer, the monitor is not in its group, or a partition stands still. It follows within
// five seconds, and is safe for concurrent use.
func (m *Monitor) Ready() error { return m.ready.check(m.now()) }
