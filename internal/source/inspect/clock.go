package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Clock is what a column of times says of a recording for which there is no
// layout that would name it.
type Clock struct {
	Column    string
	Step      float64   // usual step between rows, in seconds: the median of the first 1000
	Unit      float64   // seconds that 1 in the column stands for; 0 if the column does not say it, and it is taken for 1
	Stamps    bool      // the column holds dates
	Start     time.Time // of the first row; zero if it is only counted from
	Backwards int       // rows at which time goes back or stands still

	channel int
	last    tick
	seen    bool
	period  float64 // the last step forwards that was not much longer than the one before
	steps   []float64
	late    []step // longer than the step before
	changes []string
}

// tick is the time of a row.
type tick struct {
	seconds float64
	at      time.Time // of a local date and time, zero of others
}

type step struct {
	at     int64
	length float64
}

const clockSample = 1000

// clockNames are the names of columns that are taken for times, in lower case and
// without a unit.
var clockNames = []string{"t", "time", "timestamp", "zeit", "time_s", "time_ms"}

// clockOf returns a clock for the first of the channels whose name says that it
// holds times, nil if there is none.
func (s *Summary) clockOf(set []int) *Clock {
	if s.Clock != nil || s.Sessions > 0 {
		return nil
	}
	for _, i := range set {
		column := s.Channels[i].Name
		name, unit, _ := source.SplitUnit(column)
		if name = strings.ToLower(name); !slices.Contains(clockNames, name) {
			continue
		}
		s.Clock = &Clock{Column: column, channel: i, Stamps: s.Channels[i].Text}
		switch {
		case unit != "":
			s.Clock.Unit = source.UnitOfTime(column)
		case name == "time_s":
			s.Clock.Unit = 1
		case name == "time_ms":
			s.Clock.Unit = 1e-3
		}
		return s.Clock
	}
	return nil
}

// add takes the times of rows from number at on.
func (c *Clock) add(v track.Values, at int64) {
	for i, text := range v.Texts {
		t, hasZone, ok := source.ParseTime(text)
		if !ok {
			continue
		}
		now := tick{seconds: float64(t.UnixNano()) / 1e9}
		if !hasZone {
			now.at = t
		}
		if !c.seen {
			c.Start = t
		}
		c.tick(now, at+int64(i))
	}
	for i, x := range v.Numbers {
		if x != x || math.IsInf(x, 0) {
			continue
		}
		if x *= cmp.Or(c.Unit, 1); !c.seen && x >= 1e9 && x < 1<<33 {
			c.Start = time.UnixMicro(int64(x * 1e6)).UTC()
		}
		c.tick(tick{seconds: x}, at+int64(i))
	}
}

func (c *Clock) tick(now tick, at int64) {
	before := c.last
	d := now.seconds - before.seconds
	c.last = now
	if !c.seen {
		c.seen = true
		return
	}
	c.checkLocal(before, now, at)
	if d <= 0 {
		c.Backwards++
		return
	}
	if c.period == 0 || d <= 1.5*c.period {
		c.period = d
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

// checkLocal notes where local time jumps as it does when daylight saving time begins or
// ends.
func (c *Clock) checkLocal(before, now tick, at int64) {
	if before.at.IsZero() || now.at.IsZero() || c.period == 0 || len(c.changes) > 10 {
		return
	}
	period := time.Duration(c.period * float64(time.Second))
	where := fmt.Sprintf("column %q: from row %d, %s, to row %d, %s, ", c.Column, at, before.at.Format(time.DateTime), at+1, now.at.Format(time.DateTime))
	switch {
	case source.ClockWentBack(now.at.Sub(before.at), period):
		c.changes = append(c.changes, where+"time goes back by about an hour: it seems that daylight saving time ended, when local time repeats an hour; record UTC, or local time with its offset")
	case source.ClockWentOn(before.at, now.at, period):
		c.changes = append(c.changes, where+"an hour is missing: it seems that daylight saving time began, when local time leaves out an hour; record UTC, or local time with its offset")
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
	s.Notes = append(s.Notes, c.changes...)
	if signal.HasClock(c.Start) {
		s.Start = c.Start
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
