package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
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
