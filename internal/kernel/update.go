package kernel

import "math"

// Negate replaces every x by -x.
func Negate(x []float32) { active.negate(x) }

// AddRows adds every row of x, a matrix of rows as long as dst, to dst, one
// after the other.
func AddRows(dst, x []float32) {
	check(len(dst) > 0 && len(x)%len(dst) == 0, "AddRows: x is not a whole number of rows")
	active.addRows(dst, x)
}

// SubRows subtracts every row of x from dst, as AddRows adds them.
func SubRows(dst, x []float32) {
	check(len(dst) > 0 && len(x)%len(dst) == 0, "SubRows: x is not a whole number of rows")
	active.subRows(dst, x)
}

// SquaredDistance returns the sum of (y-x)². Not more than a few hundred terms
// are added in float32.
func SquaredDistance(x, y []float32) float64 {
	check(len(x) == len(y), "SquaredDistance: lengths differ")
	const block = 4096 // of which each of 16 lanes adds up 256
	var sum float64
	for ; len(x) > block; x, y = x[block:], y[block:] {
		sum += float64(active.squares(x[:block], y[:block]))
	}
	return sum + float64(active.squares(x, y))
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
//	v = settle(Momentum·v - Rate·(Scale·g + Decay·w), 1e-17),  w = w + v,
//
// where settle(x, least) is 0 for |x| < least, and else x. A weight without a gradient of its own, as of a hidden unit that
// is 1 for every row, is shrunk by decay only. Without settle it becomes a subnormal number, and so do its averages, with
// which a processor reckons up to a hundred times as slowly. No weight that says something notices a step of 1e-17.
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
//	d = settle(Scale·g + Decay·w, 1e-17)
//	m = settle(β1·m + (1-β1)·d, 1e-17),  v = settle(β2·v + (1-β2)·d², 1e-34)
//	w = w - Rate·m/(√v + Epsilon),
//
// with settle as in Momentum.
//
// Source: D. Kingma and J. Ba, "Adam", ICLR 2015, algorithm 1 in the form of
// the end of its section 2.
func Adam(w, m, v, g []float32, s *AdamStep) {
	check(len(w) == len(m) && len(w) == len(v) && len(w) == len(g), "Adam: lengths differ")
	active.adam(w, m, v, g, s)
}

// As in logistic.go, conversions keep products from being fused.

func negateGo(x []float32) {
	for i, v := range x {
		x[i] = -v
	}
}

func addRowsGo(dst, x []float32) {
	for ; len(x) > 0; x = x[len(dst):] {
		for j, v := range x[:len(dst)] {
			dst[j] += v
		}
	}
}

func subRowsGo(dst, x []float32) {
	for ; len(x) > 0; x = x[len(dst):] {
		for j, v := range x[:len(dst)] {
			dst[j] -= v
		}
	}
}

// squaresGo sums in 16 lanes, as the vector families do.
func squaresGo(x, y []float32) float32 {
	var sum [lanes]float32
	y = y[:len(x)]
	for i, v := range x {
		d := y[i] - v
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
		u := settle(float32(momentum*v[i])-float32(rate*d), leastStep)
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
		d := settle(float32(scale*g[i])+float32(decay*x), leastStep)
		a := settle(float32(beta1*m[i])+float32(rest1*d), leastStep)
		b := settle(float32(beta2*v[i])+float32(rest2*float32(d*d)), leastSquare)
		m[i], v[i] = a, b
		w[i] = x - float32(rate*a)/(float32(math.Sqrt(float64(b)))+epsilon)
	}
}

// What settle takes for 0. A gradient of leastStep adds leastSquare/1000 to the average of squares, which is the least number
// that these loops reckon with, and float32 has none subnormal above 1.2e-38.
const (
	leastStep   float32 = 1e-17
	leastSquare         = leastStep * leastStep
)

func settle(x, least float32) float32 {
	// Bits without the sign order as sizes do, and this branch goes the same way nearly always.
	if math.Float32bits(x)&^(1<<31) < math.Float32bits(least) {
		return 0
	}
	return x
}
