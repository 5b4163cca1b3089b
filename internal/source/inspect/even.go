package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/source"
)

// settle finds the usual step of the first rows: the mean one if rows lie on an even grid, however they jitter or repeat, and
// else the median.
func (c *Clock) settle() {
	var steps []float64
	still := 0
	for i := 1; i < len(c.first); i++ {
		switch d := c.first[i].seconds - c.first[i-1].seconds; {
		case d > 0:
			steps = append(steps, d)
		case d == 0:
			still++
		}
	}
	if len(steps) == 0 {
		return
	}
	slices.Sort(steps)
	c.Step = steps[len(steps)/2]
	c.usual = c.Step
	mean, ok := even(c.first)
	span := c.first[len(c.first)-1].seconds - c.first[0].seconds
	switch {
	case still > len(c.first)/10 && !c.disordered():
		c.coarse = c.Step
		c.Step = c.perStamp()
	case ok && still == 0 && lostEvenly(steps):
		c.ByRate = true
		c.Doubt = fmt.Sprintf("its steps are %.6g s and multiples of it: either rows are lost of %.6g a second, or rows come %.4g times a second and have coarse times", c.Step, 1/c.Step, 1/mean)
	case ok && (!regular(steps) || math.Abs(mean/c.Step-1) > 0.01):
		c.Step = mean
	case c.mixed() && span > 0:
		c.Step = span / float64(len(c.first)-1)
	case !regular(steps) && steps[len(steps)/50] > 0.3*c.usual: // rows are missing, and others jitter
		n, sum := 0., 0.
		for _, d := range steps {
			n, sum = n+max(1, math.Round(d/c.Step)), sum+d
		}
		c.Step = sum / n
	}
	c.settleDays()
	for _, t := range c.first {
		c.follow(t)
	}
	c.first = nil
}

// mixed reports whether so many rows are out of order, or have the time of another one, that the steps between the others say nothing.
func (c *Clock) mixed() bool {
	odd := c.Backwards + c.Still
	return c.Restarts == 0 && c.coarse == 0 && odd > 2 && int64(odd)*1000 > c.rows || c.catchesUp()
}

// disordered reports whether rows go back in time so often that their stamps say where none of them is.
func (c *Clock) disordered() bool {
	return c.Restarts == 0 && c.Backwards > 2 && int64(c.Backwards)*1000 > c.rows
}

// catchesUp reports whether the rows behind gaps come early by about as much as the gaps last: none are missing, a logger was late and wrote them at once.
func (c *Clock) catchesUp() bool { return c.coarse == 0 && c.lost > 2 && c.early > 0.8*float64(c.lost) }

// perStamp returns the step of rows whose stamps repeat: the time of stamps by their rows. The first may have begun before, and a stamp with a gap
// has fewer rows, or a longer time.
func (c *Clock) perStamp() float64 {
	type stamp struct{ rows, seconds float64 }
	var all []stamp
	since := -1
	for i := 1; i < len(c.first); i++ {
		if c.first[i].seconds == c.first[i-1].seconds {
			continue
		}
		if since >= 0 {
			all = append(all, stamp{float64(i - since), c.first[i].seconds - c.first[since].seconds})
		}
		since = i
	}
	if len(all) == 0 {
		return c.Step
	}
	slices.SortFunc(all, func(a, b stamp) int { return cmp.Compare(a.rows, b.rows) })
	usual := all[len(all)/2].rows
	var rows, seconds float64
	sum := func(most, off float64) { // of stamps that last at most so many usual ones, and have so many rows more or less
		rows, seconds = 0, 0
		for _, s := range all {
			if s.seconds > 0 && s.seconds <= most*c.coarse && math.Abs(s.rows-usual) <= off {
				rows, seconds = rows+s.rows, seconds+s.seconds
			}
		}
	}
	if sum(1.5, max(1.5, 0.1*usual)); rows < 3*float64(len(all)) { // whole stamps may have no row
		sum(4.5, math.Inf(1))
	}
	if rows == 0 {
		return c.Step
	}
	return seconds / rows
}

// lostEvenly reports whether sorted steps are the median and whole multiples of it, as where each tenth row is lost, or times are coarse.
func lostEvenly(steps []float64) bool {
	middle, more := steps[len(steps)/2], 0
	for _, d := range steps {
		n := math.Round(d / middle)
		if n < 1 || math.Abs(d/middle-n) > 0.01 {
			return false
		}
		if n > 1 {
			more++
		}
	}
	return more*50 > len(steps)
}

// regular reports whether nine of ten sorted steps are the median but for 2 %: others are gaps.
func regular(steps []float64) bool {
	middle, same := steps[len(steps)/2], 0
	for _, d := range steps {
		if math.Abs(d/middle-1) < 0.02 {
			same++
		}
	}
	return 10*same >= 9*len(steps)
}

// even returns the mean step of rows that lie on an even grid: none is further than three quarters of a step from it.
func even(rows []tick) (step float64, ok bool) {
	n := len(rows)
	if n < 8 {
		return 0, false
	}
	var fit line
	for i, t := range rows {
		fit.add(float64(i), t.seconds-rows[0].seconds)
	}
	step, at := fit.slope(), fit.level()
	for i, t := range rows {
		if math.Abs(t.seconds-rows[0].seconds-at-step*float64(i)) > 0.75*step {
			return 0, false
		}
	}
	return step, step > 0
}

// line is a least-squares line through points, as they come.
type line struct{ n, x, y, xx, xy float64 }

func (l *line) add(x, y float64) {
	l.n++
	dx, dy := x-l.x, y-l.y
	l.x += dx / l.n
	l.y += dy / l.n
	l.xx += dx * (x - l.x)
	l.xy += dx * (y - l.y)
}

func (l *line) slope() float64 { return l.xy / l.xx }
func (l *line) level() float64 { return l.y - l.slope()*l.x }

// follow compares a row with the grid of the rows before it, and notes a gap.
func (c *Clock) follow(t tick) {
	if c.fit.n == 0 {
		c.zero = t.seconds
		c.grid.Begin(0)
		c.fit.add(0, 0)
		return
	}
	at := t.seconds - c.zero
	if at == c.stated && c.coarse == 0 {
		at += c.Step / 4 // where a table places a row with the time of the one before
	} else {
		c.stated = at
	}
	most := source.OffGrid + c.coarse/c.Step
	late, missing := c.grid.Next(at/c.Step, most)
	if late < -most {
		c.early -= late
	}
	if late = math.Abs(late); late <= most {
		c.Jitter = max(c.Jitter, late)
	} else if missing > 0 && len(c.late) < maxGaps {
		c.late = append(c.late, hole{t.row, missing})
	}
	if missing > 0 {
		c.holes++
		c.lost += missing
		c.longest = max(c.longest, missing)
	}
	if c.pieces == 0 {
		if c.coarse == 0 || at > c.at { // of rows with one stamp only the first is where it says
			c.fit.add(float64(c.grid.Index), at)
		}
		c.at, c.index = at, c.grid.Index
	}
}
