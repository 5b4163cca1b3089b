package imbalance

import (
	"math"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// svc is a support vector classifier with the kernel exp(−γ|a−b|²). Resamplers ask it for
// its support vectors.
type svc struct {
	x       dbn.Matrix
	gamma   float64
	sign    []float64         // −1 or 1 by row
	alpha   []float64         // by row, in [0, C]; above 0: the row is a support vector
	kernels map[int][]float64 // rows of the kernel matrix that were asked for
}

const (
	svcC         = 1
	svcTolerance = 1e-3 // of the optimality conditions
)

// fitSVC solves the dual problem
//
//	min ½·Σ_ij α_i·α_j·s_i·s_j·K(x_i, x_j) − Σ_i α_i,  0 ≤ α_i ≤ C,  Σ_i s_i·α_i = 0
//
// by sequential minimal optimisation with second-order working sets, as LIBSVM
// does, without its shrinking. C is 1 and γ 1/(columns·variance of all values), as
// scikit-learn has them. Both classes must be there.
//
// Source: R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working Set Selection Using Second
// Order Information for Training Support Vector Machines", JMLR 6, 2005, §2.
func fitSVC(x dbn.Matrix, y []int) *svc {
	s := &svc{x: x, sign: make([]float64, len(y)), alpha: make([]float64, len(y)), kernels: make(map[int][]float64)}
	for i, label := range y {
		s.sign[i] = float64(2*label - 1)
	}
	var mean, variance float64
	for _, v := range x.Data {
		mean += float64(v) / float64(len(x.Data))
	}
	for _, v := range x.Data {
		variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x.Data))
	}
	s.gamma = 1
	if variance > 0 {
		s.gamma = 1 / (float64(x.Cols) * variance)
	}
	s.solve()
	return s
}

// solve sets alpha.
func (s *svc) solve() {
	n := len(s.alpha)
	gradient := make([]float64, n) // of the objective
	for i := range gradient {
		gradient[i] = -1
	}
	for range max(10_000_000, 100*n) {
		i, j := s.workingSet(gradient)
		if j < 0 {
			break
		}
		ki, kj := s.kernel(i), s.kernel(j)
		oldI, oldJ := s.alpha[i], s.alpha[j]
		s.step(i, j, gradient, max(2-2*ki[j], 1e-12))
		di, dj := s.sign[i]*(s.alpha[i]-oldI), s.sign[j]*(s.alpha[j]-oldJ)
		for k := range gradient {
			gradient[k] += s.sign[k] * (ki[k]*di + kj[k]*dj)
		}
	}
}

// workingSet returns the two rows to change next, or j = −1 if all is well.
func (s *svc) workingSet(gradient []float64) (i, j int) {
	i, j = -1, -1
	top := math.Inf(-1)
	for k, g := range gradient {
		if s.canRise(k) && -s.sign[k]*g >= top {
			top, i = -s.sign[k]*g, k
		}
	}
	if i < 0 {
		return -1, -1
	}
	ki := s.kernel(i)
	bottom, gain := math.Inf(-1), math.Inf(1)
	for k, g := range gradient {
		if !s.canFall(k) {
			continue
		}
		v := s.sign[k] * g
		bottom = max(bottom, v)
		if b := top + v; b > 0 {
			if d := -b * b / max(2-2*ki[k], 1e-12); d <= gain {
				gain, j = d, k
			}
		}
	}
	if top+bottom < svcTolerance {
		return i, -1
	}
	return i, j
}

// canRise reports whether s_k·α_k may grow, canFall whether it may shrink.
func (s *svc) canRise(k int) bool {
	return s.sign[k] > 0 && s.alpha[k] < svcC || s.sign[k] < 0 && s.alpha[k] > 0
}

func (s *svc) canFall(k int) bool {
	return s.sign[k] < 0 && s.alpha[k] < svcC || s.sign[k] > 0 && s.alpha[k] > 0
}

// step moves α_i and α_j to the optimum of the two, within their box.
func (s *svc) step(i, j int, gradient []float64, curvature float64) {
	// s_i·α_i grows by d, s_j·α_j shrinks by it.
	d := (-s.sign[i]*gradient[i] + s.sign[j]*gradient[j]) / curvature
	room := func(k int, sign float64) float64 {
		if sign > 0 {
			return svcC - s.alpha[k]
		}
		return s.alpha[k]
	}
	d = min(d, room(i, s.sign[i]), room(j, -s.sign[j]))
	move := func(k int, by float64) {
		s.alpha[k] = min(max(s.alpha[k]+by, 0), svcC)
		const hair = 1e-14 // what rounding leaves of a step to the bound
		if s.alpha[k] < hair {
			s.alpha[k] = 0
		} else if s.alpha[k] > svcC-hair {
			s.alpha[k] = svcC
		}
	}
	move(i, s.sign[i]*d)
	move(j, -s.sign[j]*d)
}

// kernel returns a row of the kernel matrix.
func (s *svc) kernel(i int) []float64 {
	row := s.kernels[i]
	if row == nil {
		row = make([]float64, s.x.Rows)
		for k := range row {
			row[k] = math.Exp(-s.gamma * distance(s.x.Row(i), s.x.Row(k)))
		}
		s.kernels[i] = row
	}
	return row
}

// support returns the support vectors of a class, as rows of x.
func (s *svc) support(y []int, class int) []int {
	var rows []int
	for i, a := range s.alpha {
		if a > 0 && y[i] == class {
			rows = append(rows, i)
		}
	}
	return rows
}
