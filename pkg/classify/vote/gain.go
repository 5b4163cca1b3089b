package vote

import (
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/score"
)

// stepNoise is the standard deviation of a step for a mean absolute difference of 1 from one window to the next, of
// normal noise: one window has √(π/2)/√2, and the variance of a median of n is π/2n of a window's.
var stepNoise = math.Sqrt(math.Pi/2) / math.Sqrt2 * math.Sqrt(math.Pi/2*(1./newWindows+1./oldWindows))

// steps is what is remembered of the level of a sensor.
type steps struct {
	Levels []float64 `json:"levels,omitempty"` // ln of each size as it would be without Gain, of window after window, the newest last
	Seen   uint8     `json:"seen,omitempty"`   // windows that Levels has
	Rest   uint8     `json:"rest,omitempty"`   // windows until steps are looked for again
	Gain   float64   `json:"gain,omitempty"`   // ln of what it reads of what it should
	Noise  float64   `json:"noise,omitempty"`  // mean absolute difference from one window to the next
	Of     uint8     `json:"of,omitempty"`     // how many differences that is the mean of, up to noiseWindows
	Gap    uint8     `json:"gap,omitempty"`    // windows without a value since the last one
}

// skip passes over a window without a value: a sensor may be plugged in again with another gain. It forgets the windows before a long gap.
func (s *steps) skip() {
	if s.Gap++; s.Gap >= longGap {
		*s = steps{Levels: s.Levels, Gain: s.Gain}
	}
}

// add takes the logarithms of the sizes in the next window of cutting, and skips it if one is not finite. It reports whether it took it.
func (s *steps) add(sizes []int, ln func(column int) float64) bool {
	n := len(sizes)
	if len(s.Levels) != stepWindows*n {
		*s = steps{Levels: make([]float64, stepWindows*n), Gain: s.Gain}
	}
	for _, j := range sizes {
		if v := ln(j); math.IsNaN(v) || math.IsInf(v, 0) {
			s.skip()
			return false
		}
	}
	s.Gap = 0
	copy(s.Levels, s.Levels[n:])
	for k, j := range sizes {
		s.window(stepWindows - 1)[k] = rounded(ln(j) - s.Gain)
	}
	s.Seen = min(s.Seen, stepWindows-1) + 1
	s.Rest = max(s.Rest, 1) - 1
	// Of the windows that are old when there are all, the newest two: the noise is without a step that is being looked at.
	if before := oldWindows - 2; int(s.Seen) >= stepWindows-before {
		s.Of = min(s.Of, noiseWindows-1) + 1
		d := math.Abs(middle(s.window(before+1)) - middle(s.window(before)))
		s.Noise = rounded(s.Noise + (d-s.Noise)/float64(s.Of))
	}
	return true
}

// window returns the sizes in one of the windows, 0 the oldest.
func (s *steps) window(i int) []float64 {
	n := len(s.Levels) / stepWindows
	return s.Levels[i*n : (i+1)*n]
}

// rounded returns x so that it is short as JSON.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// step returns the step between the old and the new windows, the median over the sizes, and by how much these differ. It is
// 0 until there are so many.
func (s *steps) step() (step, spread float64) {
	if s.Seen < stepWindows {
		return 0, 0
	}
	n := len(s.Levels) / stepWindows
	var by [mostSizes]float64
	for k := range n {
		var x [stepWindows]float64
		for i := range x {
			x[i] = s.Levels[i*n+k]
		}
		by[k] = middle(x[oldWindows:]) - middle(x[:oldWindows])
	}
	return middle(by[:n]), slices.Max(by[:n]) - slices.Min(by[:n])
}

// middle returns the median of a few values.
func middle(x []float64) float64 {
	var sorted [max(stepWindows, mostSizes)]float64
	s := append(sorted[:0], x...)
	slices.Sort(s)
	return median(s)
}

// back reports whether a step takes back more than half of the gain that was found, to less than mostWear: the sensor reads as
// before. Wear that goes on meanwhile makes the two steps differ.
func (s *steps) back(step float64) bool {
	return s.Gain*step < 0 && math.Abs(s.Gain+step) < max(leastStep, min(math.Abs(s.Gain)/2, mostWear))
}

// correct takes a step out of what follows, and of the new windows that have it. A gain that is less than a step is none.
func (s *steps) correct(step float64) {
	gain := rounded(s.Gain + step)
	if math.Abs(gain) < leastStep || s.back(step) {
		gain = 0
	}
	step, s.Gain = gain-s.Gain, gain
	s.Rest = stepWindows
	for i := stepWindows - (newWindows - 1); i < stepWindows; i++ {
		for k := range s.window(i) {
			s.window(i)[k] = rounded(s.window(i)[k] - step)
		}
	}
}

// look takes the logarithms of the sizes of a window of cutting, and finds the sensor whose gain has stepped in it; -1 if none has, or
// if the reference is not settled yet. The gain is in the memory then.
func (g *Guard) look(m Memory, settled bool, failed func(k int) bool, ln func(column int) float64) int {
	found, moved, step := -1, 0, 0.0
	for k := range g.sensors {
		s := &g.sensors[k]
		of := &m[s.name].Steps
		switch {
		case len(s.sizes) == 0:
			continue
		case failed(k):
			of.skip()
			continue
		}
		if !of.add(s.sizes, ln) {
			continue
		}
		by, spread := of.step()
		size := math.Abs(by)
		if size > s.natural {
			moved++
		}
		least := s.least
		if of.back(by) { // a gain that was found may end at any time: what no tool does by nature is enough
			least = max(leastStep, s.natural)
		}
		if size > max(least, noiseMargin*stepNoise*of.Noise) && spread < alike && of.Rest == 0 {
			found, step = k, by
		}
	}
	if found < 0 || moved > 1 || !settled {
		return -1
	}
	m[g.sensors[found].name].Steps.correct(step)
	return found
}

// lookFor makes g look for steps of gains, or says why it does not: too few sensors have sizes, or some tool would be taken for one with
// a step by what the others do by nature.
func (f *fitter) lookFor(g *Guard, seen Whole) (off string) {
	sizes, natural := make([][]int, len(g.sensors)), make([][]float64, len(g.sensors)) // by sensor, the latter and by tool
	looked := 0
	for k := range g.sensors {
		if sizes[k] = f.sizes(f.kept[k].Sensor); len(sizes[k]) < leastSizes || len(sizes[k]) > mostSizes {
			sizes[k] = nil
			continue
		}
		looked++
		for _, l := range seen.Lives {
			natural[k] = append(natural[k], seen.largestStep(l, sizes[k]))
		}
	}
	if looked < leastLooked {
		return fmt.Sprintf("%d sensors have %d to %d levels that are taken as logarithms, and it takes %d", looked, leastSizes, mostSizes, leastLooked)
	}
	of := func(without int) {
		for k := range g.sensors {
			s := &g.sensors[k]
			s.sizes, s.natural = sizes[k], 0
			for t, step := range natural[k] {
				if t != without {
					s.natural = max(s.natural, step)
				}
			}
			s.least = max(leastStep, s.natural*margin(naturalMargin, len(seen.Lives)))
		}
	}
	for t, l := range seen.Lives {
		of(t)
		var m Memory
		m.prepare(g)
		for _, i := range l.Rows {
			if k := g.look(m, true, func(int) bool { return false }, seen.ln(i)); k >= 0 {
				for j := range g.sensors {
					g.sensors[j].sizes = nil
				}
				return fmt.Sprintf("%s of tool %s changes as if its gain stepped, and no other tool's does", g.sensors[k].name, l.Tool)
			}
		}
	}
	of(-1)
	return ""
}

// largestStep returns the largest step of a sensor, which has these sizes, in the life of a tool.
func (x Whole) largestStep(l score.Life, sizes []int) (most float64) {
	var of steps
	for _, i := range l.Rows {
		of.add(sizes, x.ln(i))
		by, _ := of.step()
		most = max(most, math.Abs(by))
	}
	return most
}

// ln returns the values of a row, which are logarithms where steps are looked for.
func (x Whole) ln(i int) func(column int) float64 {
	row := x.Row(i)
	return func(j int) float64 { return float64(row[j]) }
}
