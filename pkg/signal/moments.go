package signal

import "math"

// moments is what the features of samples in any order, and the slope, are made of. All are NaN
// without a sample, or with an infinite one.
type moments struct {
	mean, meanSquare float64
	min, max         float64
	m2, m3, m4       float64 // central moments, divided by the number of samples
	slope            float64 // per second; NaN if there is one sample only
	times            float64 // variance of when the samples were taken, in s²
}

func (m *moments) rms() float64  { return math.Sqrt(m.meanSquare) }
func (m *moments) peak() float64 { return max(m.max, -m.min) }

// measure returns the moments of the samples of x that are there, taken at rate
// Hz. It goes over x twice: moments about the mean lose no digits to a large
// offset then.
func measure(x []float32, rate float64) moments {
	var n int
	var sum, squares float64
	var places float64 // sum of the indices of the samples that are there
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, v := range x {
		if v != v {
			continue
		}
		w := float64(v)
		n++
		sum += w
		squares += w * w
		places += float64(i)
		if w < lo {
			lo = w
		}
		if w > hi {
			hi = w
		}
	}
	if n == 0 || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		nan := math.NaN()
		return moments{nan, nan, nan, nan, nan, nan, nan, nan, nan}
	}

	count := float64(n)
	m := moments{mean: sum / count, meanSquare: squares / count, min: lo, max: hi}
	middle := places / count
	var s2, s3, s4, along, spread float64
	for i, v := range x {
		if v != v {
			continue
		}
		d := float64(v) - m.mean
		d2 := d * d
		s2 += d2
		s3 += d2 * d
		s4 += d2 * d2
		t := float64(i) - middle
		along += t * d
		spread += t * t
	}
	m.m2, m.m3, m.m4 = s2/count, s3/count, s4/count
	m.slope = along / spread * rate
	m.times = spread / count / (rate * rate)
	return m
}
