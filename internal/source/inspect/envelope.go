package inspect

import "math"

// bins is how many bins an envelope has at most: more than a plot has dots.
const bins = 4096

// envelope is the least and the greatest value in bins of equally many samples.
// When its bins are full, it joins neighbours and goes on.
type envelope struct {
	Width    int64     // samples in a bin
	Min, Max []float64 // of each bin; NaN where no value is finite

	in int64 // samples in the last bin
}

func (e *envelope) add(v float64) {
	if e.Width == 0 {
		e.Width, e.in = 1, 1
	}
	if e.in == e.Width {
		if len(e.Min) == bins {
			e.halve()
		}
		if e.in == e.Width {
			e.Min, e.Max = append(e.Min, math.NaN()), append(e.Max, math.NaN())
			e.in = 0
		}
	}
	e.in++
	if v != v || math.IsInf(v, 0) {
		return
	}
	i := len(e.Min) - 1
	e.Min[i], e.Max[i] = fmin(e.Min[i], v), -fmin(-e.Max[i], -v)
}

// skip takes note of n samples that are not known.
func (e *envelope) skip(n int64) {
	for n > 0 {
		e.add(math.NaN()) // opens a bin, if the last is full
		more := min(n-1, e.Width-e.in)
		e.in += more
		n -= 1 + more
	}
}

// halve joins bins in pairs. The number of bins is even, so the last is full.
func (e *envelope) halve() {
	for i := range bins / 2 {
		e.Min[i] = fmin(e.Min[2*i], e.Min[2*i+1])
		e.Max[i] = -fmin(-e.Max[2*i], -e.Max[2*i+1])
	}
	e.Min, e.Max = e.Min[:bins/2], e.Max[:bins/2]
	e.Width *= 2
	e.in = e.Width
}

// fmin returns the lesser number, or the one that is one.
func fmin(a, b float64) float64 {
	if a != a || b < a {
		return b
	}
	return a
}
