package inspect

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
)

// Clock is what a column of times says of a recording for which there is no
// layout that would name it.
type Clock struct {
	Column    string
	Step      float64 // usual step between rows: the median of the first 1000
	Stamps    bool    // the column holds dates; then Step is in seconds
	Backwards int     // rows at which time goes back or stands still

	channel int
	last    float64
	seen    bool
	steps   []float64
	late    []step // longer than the step before
}

type step struct {
	at     int64
	length float64
}

const clockSample = 1000

// clockOf returns a clock for the first of the channels whose name says that it
// holds times, nil if there is none.
func (s *Summary) clockOf(set []int) *Clock {
	if s.Clock != nil || s.Sessions > 0 {
		return nil
	}
	for _, i := range set {
		switch name := strings.ToLower(strings.TrimSpace(s.Channels[i].Name)); name {
		case "t", "time", "timestamp", "zeit", "time (s)", "time [s]", "time_s", "t (s)", "t [s]":
			s.Clock = &Clock{Column: s.Channels[i].Name, channel: i, Stamps: s.Channels[i].Text}
			return s.Clock
		}
	}
	return nil
}

// add takes the times of rows from number at on.
func (c *Clock) add(v track.Values, at int64) {
	for i, text := range v.Texts {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t, err = time.Parse("2006-01-02 15:04:05", text)
		}
		if err == nil {
			c.tick(float64(t.UnixNano())/1e9, at+int64(i))
		}
	}
	for i, x := range v.Numbers {
		if x == x && !math.IsInf(x, 0) {
			c.tick(x, at+int64(i))
		}
	}
}

func (c *Clock) tick(x float64, at int64) {
	d := x - c.last
	c.last = x
	if !c.seen {
		c.seen = true
		return
	}
	if d <= 0 {
		c.Backwards++
		return
	}
	if len(c.steps) < clockSample {
		c.steps = append(c.steps, d)
		if len(c.steps) == clockSample {
			c.settle()
		}
	}
	// Until the usual step is known, every step may be a gap.
	if c.Step == 0 || d > 1.5*c.Step {
		if len(c.late) < 100*maxGaps {
			c.late = append(c.late, step{at, d})
		}
	}
}

func (c *Clock) settle() {
	if len(c.steps) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(c.steps))
	c.Step = sorted[len(sorted)/2]
	c.late = slices.DeleteFunc(c.late, func(s step) bool { return s.length <= 1.5*c.Step })
}

// fromClock sets rates and gaps by the clock. A rate that is stated stands.
func (s *Summary) fromClock(stated float64) {
	c := s.Clock
	if c == nil {
		return
	}
	if c.Step == 0 {
		c.settle()
	}
	if c.Step == 0 {
		s.Clock = nil // constant, or not in order: no time
		return
	}
	for _, l := range c.late {
		s.gap(Gap{At: l.at, Duration: time.Duration((l.length - c.Step) * 1e9)})
	}
	if stated != 0 {
		return
	}
	for i := range s.Channels {
		if ch := &s.Channels[i]; ch.Rate == 0 && ch.Count == s.Channels[c.channel].Count {
			ch.Rate = 1 / c.Step
		}
	}
}
