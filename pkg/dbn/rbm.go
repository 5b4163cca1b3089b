package dbn

import (
	"math"
	"math/rand/v2"

	"github.com/flank-tcm/flank/internal/kernel"
)

// rbm is a restricted Boltzmann machine with V visible units and H hidden
// units, which are Bernoulli. With visible bias a, hidden bias b and weights W
// its energy is
//
//	E(v,h) = -a·v - b·h - vᵀWh           for Bernoulli visible units,
//	E(v,h) = |v-a|²/2 - b·h - vᵀWh       for Gaussian ones of unit variance,
//
// and P(v,h) is proportional to exp(-E(v,h)). Its methods only read it, except
// Train, and may be called from several goroutines while nothing writes to it.
type rbm struct {
	Visible     Unit
	Weights     Matrix    // W, V×H
	VisibleBias []float32 // a
	HiddenBias  []float32 // b
}

// newRBM returns an RBM to be trained on rows like x, which it does
// not keep: weights from a normal law of standard deviation 0.01, hidden biases
// 0, visible biases ln(p/(1-p)) with p the share in which a unit is on (kept
// off 0 and 1 by half an observation of either) or, for Gaussian units, their
// mean. (The guide, §8.)
func newRBM(x Matrix, hidden int, visible Unit, rng *rand.Rand) *rbm {
	mustMatch(x.Rows > 0 && len(x.Data) == x.Rows*x.Cols, "NewRBM: %d values for %d rows of %d", len(x.Data), x.Rows, x.Cols)
	r := &rbm{
		Visible:     visible,
		Weights:     NewMatrix(x.Cols, hidden),
		VisibleBias: make([]float32, x.Cols),
		HiddenBias:  make([]float32, hidden),
	}
	for i := range r.Weights.Data {
		r.Weights.Data[i] = float32(0.01 * rng.NormFloat64())
	}
	sums := make([]float64, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			sums[j] += float64(v)
		}
	}
	n := float64(x.Rows)
	for j, sum := range sums {
		if visible == Gaussian {
			r.VisibleBias[j] = float32(sum / n)
		} else {
			r.VisibleBias[j] = float32(math.Log((sum + 0.5) / (n - sum + 0.5)))
		}
	}
	return r
}

// HiddenTo stores in dst, N×H, the probability that each hidden unit is on,
//
//	dst[n,j] = σ(b[j] + Σ_i v[n,i]·W[i,j]),
//
// for every row of v, N×V. It panics if the shapes do not agree.
func (r *rbm) HiddenTo(dst, v Matrix) {
	r.hiddenInput(dst, v)
	kernel.Sigmoid(dst.Data)
}

// hiddenInput is HiddenTo without σ.
func (r *rbm) hiddenInput(dst, v Matrix) {
	w := r.Weights
	mustMatch(dst.Rows == v.Rows && v.Cols == w.Rows && dst.Cols == w.Cols,
		"hidden %d×%d of visible %d×%d by weights %d×%d", dst.Rows, dst.Cols, v.Rows, v.Cols, w.Rows, w.Cols)
	kernel.Gemm(0, v.Rows, w.Cols, w.Rows, v.Data, w.Data, r.HiddenBias, dst.Data)
}

// VisibleTo stores in dst, N×V, the mean of each visible unit given the hidden
// units,
//
//	dst[n,i] = f(a[i] + Σ_j W[i,j]·h[n,j]),
//
// for every row of h, N×H, where f is σ for Bernoulli units and the identity
// for Gaussian ones. It panics if the shapes do not agree.
func (r *rbm) VisibleTo(dst, h Matrix) {
	w := r.Weights
	mustMatch(dst.Rows == h.Rows && dst.Cols == w.Rows && h.Cols == w.Cols,
		"visible %d×%d of hidden %d×%d by weights %d×%d", dst.Rows, dst.Cols, h.Rows, h.Cols, w.Rows, w.Cols)
	kernel.Gemm(kernel.TransB, h.Rows, w.Rows, w.Cols, h.Data, w.Data, r.VisibleBias, dst.Data)
	if r.Visible == Bernoulli {
		kernel.Sigmoid(dst.Data)
	}
}

// FreeEnergyTo stores in dst the free energy of every row of v, N×V,
//
//	F(v) = -a·v - Σ_j ln(1 + exp(b[j] + Σ_i v[i]·W[i,j])),
//
// with |v-a|²/2 for -a·v if visible units are Gaussian. P(v) is proportional to
// exp(-F(v)). It panics if the shapes do not agree.
func (r *rbm) FreeEnergyTo(dst []float64, v Matrix) {
	mustMatch(len(dst) == v.Rows, "free energy: %d results for %d rows", len(dst), v.Rows)
	inputs := NewMatrix(min(v.Rows, chunk), r.Weights.Cols)
	for from := 0; from < v.Rows; from += chunk {
		part := v.rows(from, min(from+chunk, v.Rows))
		in := inputs.rows(0, part.Rows)
		r.hiddenInput(in, part)
		for i := range part.Rows {
			var f float64
			for j, x := range part.Row(i) {
				a := float64(r.VisibleBias[j])
				if r.Visible == Gaussian {
					f += (float64(x) - a) * (float64(x) - a) / 2
				} else {
					f -= a * float64(x)
				}
			}
			for _, x := range in.Row(i) {
				f -= softplus(float64(x))
			}
			dst[from+i] = f
		}
	}
}

// chunk is how many rows are worked on at a time where all do not fit the cache.
const chunk = 128

// softplus returns ln(1+eˣ) without overflow.
func softplus(x float64) float64 {
	return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
}
