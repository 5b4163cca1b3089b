package source

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// eachSecond is a source of blocks of one second from a time on.
type eachSecond struct {
	layout *signal.Layout
	next   time.Time
}

func (s *eachSecond) Layout() *signal.Layout { return s.layout }

func (s *eachSecond) Close() error { return nil }

func (s *eachSecond) Next(context.Context) (*Block, error) {
	b := &Block{Block: signal.Block{Time: s.next, Samples: [][]float32{make([]float32, 10)}}}
	s.next = s.next.Add(time.Second)
	return b, nil
}

// A source by the clock that starts slowly catches up; a recording begins when it is opened.
func TestPaceCatchesUp(t *testing.T) {
	layout, err := signal.NewLayout("one", []signal.Channel{{Name: "force", Kind: signal.Force, Unit: "N", Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		since time.Duration
		speed float64
		waits []time.Duration
	}{
		"at once":             {0, 1, []time.Duration{time.Second, 2 * time.Second}},
		"three seconds late":  {3 * time.Second, 1, []time.Duration{-2 * time.Second, -time.Second}},
		"a recording":         {time.Hour, 1, []time.Duration{time.Second, 2 * time.Second}},
		"twice as fast":       {3 * time.Second, 2, []time.Duration{time.Second / 2, time.Second}},
		"a clock that is off": {-time.Second, 1, []time.Duration{time.Second, 2 * time.Second}},
	} {
		var waits []time.Duration
		clock := Clock{Now: func() time.Time { return now }, After: func(d time.Duration) <-chan time.Time {
			waits = append(waits, d)
			c := make(chan time.Time, 1)
			c <- now
			return c
		}}
		p := Pace(&eachSecond{layout, now.Add(-tc.since)}, tc.speed, clock, nil)
		for range tc.waits {
			if _, err := p.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range tc.waits {
			if waits[i] != want {
				t.Errorf("%s: waits %v, want %v", name, waits, tc.waits)
				break
			}
		}
	}
}

// What an earlier run has delivered takes no time. The clock starts behind it.
func TestPacePassesOverWhatIsKnown(t *testing.T) {
	layout, err := signal.NewLayout("one", []signal.Channel{{Name: "force", Kind: signal.Force, Unit: "N", Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var waits []time.Duration
	clock := Clock{Now: func() time.Time { return now }, After: func(d time.Duration) <-chan time.Time {
		waits = append(waits, d)
		c := make(chan time.Time, 1)
		c <- now
		return c
	}}
	taken := 0
	p := Pace(&eachSecond{layout, now.Add(-time.Hour)}, 2, clock, func() bool { return taken < 100 })
	for ; taken < 102; taken++ {
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []time.Duration{time.Second / 2, time.Second}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}
