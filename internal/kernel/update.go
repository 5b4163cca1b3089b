package kernel

import "math"

// SumRows stores in dst the sums of the columns of x, a matrix of rows as long
// as dst.
func SumRows(dst, x []float32) {
	check(len(dst) > 0 && len(x)%len(dst) == 0, "SumRows: x is not a whole number of rows")
	active.sumRows(dst, x)
}

// Residual adds y-x to dst and returns the sum of (y-x)².
func Residual(dst, x, y []float32) float32 {
	check(len(dst) == len(x) && len(x) == len(y), "Residual: lengths differ")
	return active.residual(dst, x, y)
}

// MomentumStep holds the constants of a step of gradient descent with momentum.
type MomentumStep struct {
	Rate     float32 // learning rate
	Momentum float32 // share of the last step that is kept
	Scale    float32 // factor of the gradient, usually 1/rows
	Decay    float32 // L2 penalty: its gradient is Decay·w
}

// Momentum makes one step of descent on the weights w with velocity v and
// gradient g:
//
//	v = Momentum·v - Rate·(Scale·g + Decay·w),  w = w + v.
func Momentum(w, v, g []float32, s *MomentumStep) {
	check(len(w) == len(v) && len(w) == len(g), "Momentum: lengths differ")
	active.momentum(w, v, g, s)
}

// AdamStep holds the constants of a step of Adam. The corrections for the start
// of the averages at zero belong to Rate and Epsilon.
type AdamStep struct {
	Rate         float32 // α·√(1-β2ᵗ)/(1-β1ᵗ) at step t
	Epsilon      float32 // ε·√(1-β2ᵗ)
	Beta1, Beta2 float32
	Scale        float32 // factor of the gradient, usually 1/rows
	Decay        float32 // L2 penalty: its gradient is Decay·w
}

// Adam makes one step of descent on the weights w with averages m and v and
// gradient g:
//
//	d = Scale·g + Decay·w
//	m = β1·m + (1-β1)·d,  v = β2·v + (1-β2)·d²
//	w = w - Rate·m/(√v + Epsilon).
//
// Source: D. Kingma and J. Ba, "Adam", ICLR 2015, algorithm 1 in the form of
// the end of its section 2.
func Adam(w, m, v, g []float32, s *AdamStep) {
	check(len(w) == len(m) && len(w) == len(v) && len(w) == len(g), "Adam: lengths differ")
	active.adam(w, m, v, g, s)
}

// As in logistic.go, conversions keep products from being fused.

func sumRowsGo(dst, x []float32) {
	clear(dst)
	for len(x) >= len(dst) {
		for j, v := range x[:len(dst)] {
			dst[j] += v
		}
		x = x[len(dst):]
	}
}

// residualGo sums squares in 16 lanes, as the vector families do.
func residualGo(dst, x, y []float32) float32 {
	var sum [lanes]float32
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		d := y[i] - x[i]
		dst[i] += d
		sum[i%lanes] += float32(d * d)
	}
	for half := lanes / 2; half > 0; half /= 2 {
		for i := range half {
			sum[i] += sum[i+half]
		}
	}
	return sum[0]
}

func momentumGo(w, v, g []float32, s *MomentumStep) {
	rate, momentum, scale, decay := s.Rate, s.Momentum, s.Scale, s.Decay
	v, g = v[:len(w)], g[:len(w)]
	for i, x := range w {
		d := float32(scale*g[i]) + float32(decay*x)
		u := float32(momentum*v[i]) - float32(rate*d)
		v[i] = u
		w[i] = x + u
	}
}

func adamGo(w, m, v, g []float32, s *AdamStep) {
	rate, epsilon, scale, decay := s.Rate, s.Epsilon, s.Scale, s.Decay
	beta1, beta2 := s.Beta1, s.Beta2
	rest1, rest2 := 1-beta1, 1-beta2
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	for i, x := range w {
		d := float32(scale*g[i]) + float32(decay*x)
		a := float32(beta1*m[i]) + float32(rest1*d)
		b := float32(beta2*v[i]) + float32(rest2*float32(d*d))
		m[i], v[i] = a, b
		w[i] = x - float32(rate*a)/(float32(math.Sqrt(float64(b)))+epsilon)
	}
}
