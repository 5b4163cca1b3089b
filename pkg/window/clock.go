package window

import (
	"math"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

const (
	// baseline is over how much time a rate is measured, at least: sensor times
	// that a computer gave may be some milliseconds off.
	baseline = 10 * time.Second

	// agreeing is how many steps that agree among themselves, over a baseline or more, are a rate.
	agreeing = 3

	// most is how many times faster or slower than the layout says a rate may be. A clock that stands still has none.
	most = 100
)

// clock compares the sensor times of the blocks of one rate with their sample
// counters. What it finds depends on the blocks alone, never on when they came.
type clock struct {
	rate     float64
	limits   signal.Limits
	last     reading // of the last block
	from     reading // from where the rate is measured
	turn     reading // from where it will be measured once that is a baseline long
	ran      bool    // last, from and turn are set
	off      bool    // the rate was wrong when last measured
	slope    float64 // by how much more time than samples passed then, relatively; 0 unless off
	steps    int     // that agree among themselves; 0: none was lately
	stepping reading // before the first of them
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

// slopeOf returns the lag from a to b as a share of the span.
func (c *clock) slopeOf(a, b reading) float64 { return float64(c.lag(a, b)) / float64(c.span(a, b)) }

// restart forgets the session. A rate that was wrong is taken to be wrong still, until it is measured again: with each change of
// the tool a session begins.
func (c *clock) restart() {
	*c = clock{rate: c.rate, limits: c.limits, off: c.off, slope: c.slope}
}

// measured returns the rate by the sensor clock while it is wrong; 0 if it is right, or none.
func (c *clock) measured() float64 {
	if factor := 1 + c.slope; c.off && factor > 1./most {
		return c.rate / factor
	}
	return 0
}

// read takes the reading of the next block and returns what is wrong with it:
// ClockStep if the clock jumped since the block before, RateError while the rate
// is wrong. Blocks without a time say nothing.
func (c *clock) read(r reading) signal.Quality {
	if r.time.IsZero() {
		return 0
	}
	var q signal.Quality
	if !c.ran {
		c.last, c.from, c.turn, c.ran = r, r, r, true
	}
	if !c.continues(r, c.slope) {
		q |= signal.ClockStep
		c.from, c.turn = r, r // the rate is not to blame
	}
	if c.agree(r, q != 0) {
		q = 0
		c.from, c.turn, c.steps = c.stepping, c.stepping, 0
	}
	c.last = r
	if d := c.span(c.from, r); d >= baseline {
		c.slope = c.slopeOf(c.from, r)
		if c.off = math.Abs(c.slope) > c.limits.Rate; !c.off {
			c.slope = 0
		}
		if c.span(c.turn, r) >= baseline {
			c.from, c.turn = c.turn, r
		}
	}
	if c.off {
		q |= signal.RateError
	}
	return q
}

// mark adds to m what the clock says at its block.
func (c *clock) mark(m *mark) {
	q := c.read(reading{m.first, m.time})
	if m.quality |= q; q&signal.RateError != 0 {
		m.rate = c.measured()
	}
}

// continues reports whether the clock went on to r as it does at a rate that differs by a slope from the layout's.
func (c *clock) continues(r reading, slope float64) bool {
	return (c.lag(c.last, r) - time.Duration(slope*float64(c.span(c.last, r)))).Abs() <= c.limits.ClockStep
}

// agree takes whether the clock has stepped at r. It reports whether steps have agreed for so long that they are a rate:
// then none of them was a step.
func (c *clock) agree(r reading, stepped bool) bool {
	same := c.steps > 0 && c.continues(r, c.slopeOf(c.stepping, c.last))
	switch {
	case stepped && same:
		c.steps++
	case stepped:
		c.steps, c.stepping = 1, c.last
	case !same:
		c.steps = 0
	}
	factor := 1 + c.slopeOf(c.stepping, r)
	return c.steps >= agreeing && c.span(c.stepping, r) >= baseline && factor > 1./most && factor < most
}
