package window

import (
	"math"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// baseline is over how much time a rate is measured, at least: sensor times
// that a computer gave may be some milliseconds off.
const baseline = 10 * time.Second

// clock compares the sensor times of the blocks of one rate with their sample
// counters. What it finds depends on the blocks alone, never on when they came.
type clock struct {
	rate   float64
	limits signal.Limits
	last   reading // of the last block
	from   reading // from where the rate is measured
	turn   reading // from where it will be measured once that is a baseline long
	ran    bool    // last, from and turn are set
	off    bool    // the rate was wrong when last measured
}

// reading is a sensor time and its sample counter.
type reading struct {
	first int64
	time  time.Time
}

// lag returns by how much more sensor time than samples passed from a to b.
func (c *clock) lag(a, b reading) time.Duration {
	return b.time.Sub(a.time) - c.span(a, b)
}

// span returns how long the samples from a to b took, by their number.
func (c *clock) span(a, b reading) time.Duration {
	return time.Duration(math.Round(float64(b.first-a.first) / c.rate * float64(time.Second)))
}

// restart forgets the session.
func (c *clock) restart() { c.ran, c.off = false, false }

// read takes the reading of the next block and returns what is wrong with it:
// ClockStep if the clock jumped since the block before, RateError while the rate
// is wrong. Blocks without a time say nothing.
func (c *clock) read(r reading) signal.Quality {
	if r.time.IsZero() {
		return 0
	}
	if !c.ran {
		c.last, c.from, c.turn, c.ran = r, r, r, true
		return 0
	}
	var q signal.Quality
	if c.lag(c.last, r).Abs() > c.limits.ClockStep {
		q |= signal.ClockStep
		c.from, c.turn = r, r // the rate is not to blame
	}
	c.last = r
	if d := c.span(c.from, r); d >= baseline {
		c.off = math.Abs(float64(c.lag(c.from, r))) > c.limits.Rate*float64(d)
		if c.span(c.turn, r) >= baseline {
			c.from, c.turn = c.turn, r
		}
	}
	if c.off {
		q |= signal.RateError
	}
	return q
}
