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
	begun    reading // of the first block of the session
	mixed    bool    // the session has steps that do not agree, or not from its beginning on
	past     elapsed // of sessions before that were too short to measure a rate
}

// elapsed is how long samples took by their number, and by how much more sensor time passed.
type elapsed struct{ span, lag time.Duration }

// isBaseline reports whether that is long enough to measure a rate: by the number of samples, or by sensor time.
func (e elapsed) isBaseline() bool { return max(e.span, e.span+e.lag) >= baseline }

// slope returns the lag as a share of the span.
func (e elapsed) slope() float64 { return float64(e.lag) / float64(e.span) }

// between returns what elapsed from a to b.
func (c *clock) between(a, b reading) elapsed { return elapsed{c.span(a, b), c.lag(a, b)} }

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
	past := c.past
	if e := c.between(c.begun, c.last); c.ran && !c.mixed && e.span > 0 {
		past = elapsed{past.span + e.span, past.lag + e.lag}
	}
	*c = clock{rate: c.rate, limits: c.limits, off: c.off, slope: c.slope, past: past}
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
		c.last, c.from, c.turn, c.begun, c.ran = r, r, r, r, true
	}
	if !c.continues(r, c.slope) {
		q |= signal.ClockStep
		c.from, c.turn = r, r // the rate is not to blame
	}
	before := c.steps
	agreed := c.agree(r, q != 0)
	c.mixed = c.mixed || c.steps > 0 && c.stepping != c.begun || c.steps == 0 && before > 0
	if agreed {
		q = 0
		c.from, c.turn, c.steps = c.stepping, c.stepping, 0
	}
	c.last = r
	e := c.between(c.begun, r)
	switch all := (elapsed{c.past.span + e.span, c.past.lag + e.lag}); {
	case c.past.span > 0 && !c.mixed && e.span > 0 && all.isBaseline():
		c.measure(all)
		c.past, c.from, c.turn = elapsed{}, r, r
		if c.off {
			q, c.steps = 0, 0
		}
	case c.between(c.from, r).isBaseline() && c.span(c.from, r) > 0:
		c.measure(c.between(c.from, r))
		c.past = elapsed{}
		if c.between(c.turn, r).isBaseline() {
			c.from, c.turn = c.turn, r
		}
	}
	if c.off {
		q |= signal.RateError
	}
	return q
}

// measure takes what elapsed in a baseline or more for the rate. A clock that stands still, or nearly, has none.
func (c *clock) measure(e elapsed) {
	factor := 1 + e.slope()
	if c.slope, c.off = e.slope(), math.Abs(e.slope()) > c.limits.Rate && factor > 1./most && factor < most; !c.off {
		c.slope = 0
	}
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
	return c.steps >= agreeing && c.between(c.stepping, r).isBaseline() && factor > 1./most && factor < most
}
