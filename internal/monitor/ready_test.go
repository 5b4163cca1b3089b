package monitor

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/await"
)

// A monitor that has just begun is ready when it has read all its partitions. Partitions that it
// gets later do not take that back.
func TestReadyWhenAllIsRead(t *testing.T) {
	var r readiness
	now := time.Now()
	want := func(step, text string) {
		t.Helper()
		err := r.check(now)
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("%s: %v, want %q", step, err, text)
		}
	}
	want("before it joins", "has not joined its group yet")
	r.generation(2)
	want("before it has a partition", "0 of 2 partitions are done")
	r.assigned(4, now)
	r.assigned(7, now)
	r.fetched(4, ofWindows, 10, now)
	want("one of two is read", "1 of 2 partitions are done")
	r.generation(1) // another member has joined
	r.revoked(7)
	want("the other one has gone", "")
	r.generation(3)
	r.assigned(8, now)
	want("another member has left", "")
	now = now.Add(readyWithin + time.Second)
	r.fetched(4, ofWindows, 0, now)
	want("a partition stands still", "partition 8: no answer from the broker")
}

// A monitor that has lost its partitions and waits for its group's next generation is not ready,
// although no request fails. The next generation makes it ready again.
func TestNotReadyWithoutItsShare(t *testing.T) {
	var r readiness
	now := time.Now()
	want := func(step, text string) {
		t.Helper()
		err := r.check(now)
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("%s: %v, want %q", step, err, text)
		}
	}
	r.generation(2)
	for id := range 2 {
		r.assigned(id, now)
		r.fetched(id, ofWindows, 0, now)
	}
	want("it has both", "")
	r.revoked(0)
	r.revoked(1)
	want("it has just lost them", "")
	now = now.Add(readyWithin)
	want("it waits for a moment", "")
	now = now.Add(time.Second)
	want("it waits for long", "the group gave the monitor 2 partitions, and for 6s it has had 0 at hand")
	r.generation(0)
	want("another member has them", "")
	r.generation(1)
	want("it gets one", "")
	r.assigned(0, now)
	r.fetched(0, ofWindows, 0, now)
	want("it has one", "")
	now = now.Add(readyWithin)
	want("it stays so", "")
}

// The log says once a minute that a monitor does not judge what comes, with the reason, and once
// that it does again. Each standstill counts once; a short one does not.
func TestStandstill(t *testing.T) {
	var log bytes.Buffer
	m := &Monitor{cfg: Config{Log: zerolog.New(&log)}}
	var s standstill
	begin := time.Unix(1_800_000_000, 0)
	m.ready.generation(1)
	m.ready.assigned(3, begin)
	m.ready.fetched(3, ofWindows, 0, begin)
	for second := range 120 {
		now := begin.Add(time.Duration(second) * time.Second)
		if second < 2 || 10 <= second && second < 12 || second > 100 {
			m.ready.fetched(3, ofWindows, 0, now)
		}
		m.sayStandstill(&s, now)
	}
	var got []string
	for line := range strings.Lines(log.String()) {
		var say struct{ Event, Error string }
		if err := json.Unmarshal([]byte(line), &say); err != nil {
			t.Fatal(err)
		}
		got = append(got, say.Event+" "+say.Error)
	}
	want := []string{
		"standstill partition 3: no answer from the broker for 21s", // 11 s was the last answer
		"standstill partition 3: no answer from the broker for 1m21s",
		"judging_goes_on ",
	}
	if !slices.Equal(got, want) || m.Stats().Standstills != 1 {
		t.Errorf("%d standstills, log %q, want %q", m.Stats().Standstills, got, want)
	}
}

// A monitor whose broker never answers says so, and why.
func TestStandstillWithoutBroker(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	p.broker.Close()
	var seconds atomic.Int64
	mon := p.monitor(func(m *Monitor) { m.now = func() time.Time { return time.Unix(seconds.Add(20), 0) } })
	mon.untilStats(t, func(s Stats) bool { return s.Standstills == 1 })
	await.Until(t, "the log says why", func() bool {
		return strings.Contains(p.log.String(), `"event":"standstill"`) && strings.Contains(p.log.String(), "no Kafka broker answers at")
	})
}

// A partition without windows, or whose windows are all gone, stays ready when the monitor
// publishes something else there.
func TestReadyWithoutWindows(t *testing.T) {
	for _, end := range []int64{0, 1000} {
		var r readiness
		now := time.Now()
		r.generation(1)
		r.assigned(4, now)
		r.reached(4, ofWindows, end)
		r.fetched(4, ofWindows, end, now)
		r.published(4, ofWindows, bus.FirstOffset, now)
		now = now.Add(2 * readyWithin)
		r.fetched(4, ofWindows, end, now)
		if err := r.check(now); err != nil {
			t.Errorf("no windows before %d: %v", end, err)
		}
		r.fetched(4, ofWindows, end+3, now)
		if err := r.check(now); err == nil || !strings.Contains(err.Error(), "3 windows wait") {
			t.Errorf("three windows behind %d: %v", end, err)
		}
	}
}

// A member without a partition is ready.
func TestReadyWithoutPartitions(t *testing.T) {
	var r readiness
	r.generation(0)
	if err := r.check(time.Now()); err != nil {
		t.Error(err)
	}
}
