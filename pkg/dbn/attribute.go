package dbn

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// LogOdds returns the log-odds of a class against another for a row x,
//
//	f(x) = ln P(y=class|x) − ln P(y=against|x),
//
// in float64, so that it stays finite where posteriors are rounded to 0 or 1. It
// panics if x is not as long as the network has inputs, or if the network lacks a class.
func (n *Network) LogOdds(x []float32, class, against int) float64 {
	n.checkOdds(len(x), class, against)
	p := n.newPath(class, against)
	z := p.zeros(0)
	p.n.layers[0].addTo(z, x)
	return p.logOdds(z)
}

// AttributeTo shares f(x) − f(base), f being LogOdds, out among the inputs by
// integrated gradients along the straight line from base to x,
//
//	dst[i] = (x[i] − base[i])·∫₀¹ ∂f/∂x_i(base + α·(x − base)) dα,
//
// and returns f(x) and f(base). Laws: the sum of dst is f(x) − f(base)
// (completeness); an input that is the same in x and base, or has no weights, gets
// 0 (dummy); inputs that have equal weights and values get equal shares (symmetry);
// without hidden layers dst[i] = (x[i] − base[i])·(W[i,class] − W[i,against]), which
// is exact. Otherwise the integral is Gauss and Legendre's rule on equal parts of
// the line, whose number is doubled until completeness holds within 1e-6 of
// 1 + |f(x) − f(base)|, or they are 256, which takes weights larger than any
// trained network has.
//
// It is for a row that someone asks about, not for every row: it allocates, and
// costs some hundred times a posterior of the layers above the first. dst, x and
// base are as long as the network has inputs and must be finite; it panics if they
// are not that long, or if the network lacks a class.
//
// Source: M. Sundararajan, A. Taly and Q. Yan, "Axiomatic Attribution for Deep
// Networks", ICML 2017, eq. 1 and §3.
func (n *Network) AttributeTo(dst []float64, x, base []float32, class, against int) (fx, fbase float64) {
	n.checkOdds(len(x), class, against)
	mustMatch(len(dst) == len(x) && len(base) == len(x), "attributions of %d inputs from a base of %d to a row of %d", len(dst), len(base), len(x))
	p := n.newPath(class, against)
	from, to := p.zeros(0), p.zeros(0)
	n.layers[0].addTo(from, base)
	n.layers[0].addTo(to, x)
	fx, fbase = p.logOdds(to), p.logOdds(from)
	slope := p.zeros(0) // mean of ∂f/∂z over the line, z what goes into the units of the first layer
	for parts := 4; ; parts *= 2 {
		clear(slope)
		p.integrate(slope, from, to, parts)
		var sum float64
		for j, s := range slope {
			sum += s * (to[j] - from[j])
		}
		if math.Abs(sum-(fx-fbase)) <= attributeTolerance*(1+math.Abs(fx-fbase)) || parts >= maxParts {
			break
		}
	}
	w := n.layers[0].weights
	for i := range dst {
		var g float64
		for j, v := range w.Row(i) {
			g += float64(v) * slope[j]
		}
		dst[i] = (float64(x[i]) - float64(base[i])) * g
	}
	return fx, fbase
}

const (
	attributeTolerance = 1e-6
	maxParts           = 256
	partNodes          = 8 // of Gauss and Legendre on each part
)

func (n *Network) checkOdds(inputs, class, against int) {
	k := n.Classes()
	mustMatch(inputs == n.Inputs(), "a row of %d features for a network of %d", inputs, n.Inputs())
	mustMatch(class >= 0 && class < k && against >= 0 && against < k, "odds of class %d against %d of %d", class, against, k)
}

// path is the scratch memory of one attribution.
type path struct {
	n              *Network
	class, against int
	on             [][]float64 // of every hidden layer, the values of its units
	back           [][]float64 // the derivative of f by what goes into them
}

func (n *Network) newPath(class, against int) *path {
	p := &path{n: n, class: class, against: against}
	for i := range len(n.layers) - 1 {
		p.on = append(p.on, p.zeros(i))
		p.back = append(p.back, p.zeros(i))
	}
	return p
}

// zeros returns a zero for every unit of a layer.
func (p *path) zeros(layer int) []float64 { return make([]float64, p.n.layers[layer].weights.Cols) }

// addTo adds bias and weighted inputs to z.
func (l layer) addTo(z []float64, x []float32) {
	for j, b := range l.bias {
		z[j] += float64(b)
	}
	for i, v := range x {
		if v == 0 {
			continue
		}
		for j, w := range l.weights.Row(i) {
			z[j] += float64(v) * float64(w)
		}
	}
}

// logOdds returns f where z goes into the first layer, and leaves the values of
// the hidden units in p.on.
func (p *path) logOdds(z []float64) float64 {
	last := len(p.n.layers) - 1
	if last == 0 {
		return z[p.class] - z[p.against]
	}
	for l := range last {
		if l > 0 {
			z = p.back[l] // scratch until derivatives are taken
			lay := p.n.layers[l]
			for j, b := range lay.bias {
				z[j] = float64(b)
			}
			for i, v := range p.on[l-1] {
				for j, w := range lay.weights.Row(i) {
					z[j] += v * float64(w)
				}
			}
		}
		for j, v := range z {
			p.on[l][j] = 1 / (1 + math.Exp(-v))
		}
	}
	top := p.n.layers[last]
	f := float64(top.bias[p.class]) - float64(top.bias[p.against])
	for i, v := range p.on[last-1] {
		w := top.weights.Row(i)
		f += v * (float64(w[p.class]) - float64(w[p.against]))
	}
	return f
}

// slopeAt returns the derivative of f by what goes into the first layer, at z. It
// is p's scratch memory, but without hidden layers.
func (p *path) slopeAt(z []float64) []float64 {
	last := len(p.n.layers) - 1
	if last == 0 {
		s := p.zeros(0)
		s[p.class]++
		s[p.against]--
		return s
	}
	p.logOdds(z)
	top := p.n.layers[last].weights
	for l := last - 1; l >= 0; l-- {
		for i, v := range p.on[l] {
			var g float64
			if l == last-1 {
				w := top.Row(i)
				g = float64(w[p.class]) - float64(w[p.against])
			} else {
				for j, w := range p.n.layers[l+1].weights.Row(i) {
					g += float64(w) * p.back[l+1][j]
				}
			}
			p.back[l][i] = g * v * (1 - v)
		}
	}
	return p.back[0]
}

// integrate adds to dst the mean of slopeAt over the line between two points, cut
// into equal parts.
func (p *path) integrate(dst, from, to []float64, parts int) {
	if len(p.n.layers) == 1 {
		copy(dst, p.slopeAt(from)) // the same everywhere
		return
	}
	at, weight := make([]float64, partNodes), make([]float64, partNodes)
	z := make([]float64, len(from))
	for part := range parts {
		quad.Legendre{}.FixedLocations(at, weight, float64(part)/float64(parts), float64(part+1)/float64(parts))
		for k, a := range at {
			for j := range z {
				z[j] = from[j] + a*(to[j]-from[j])
			}
			for j, s := range p.slopeAt(z) {
				dst[j] += weight[k] * s
			}
		}
	}
}
