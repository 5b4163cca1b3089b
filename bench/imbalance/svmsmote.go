package imbalance

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// svmsmote makes up rows at the support vectors of the smaller class, of an svc,
// that are not noise: from those in danger, see [borderline1], towards neighbours
// of that class, from the others up to half as far away from them. What share of
// the rows comes from which kind is drawn from Beta(10, 10); if there are none of a
// kind, its share is missing, as in imbalanced-learn. If all are noise, which
// imbalanced-learn refuses, nothing is made up. Of more than 10,000 rows, the svc
// sees as many, drawn at random with both classes' shares. (H. Nguyen, E. Cooper and K. Kamei,
// "Borderline Over-sampling for Imbalanced Data Classification", IJKESDP 3, 2011.)
func svmsmote(x dbn.Matrix, y []int, rng *rand.Rand) (dbn.Matrix, []int) {
	l := lackOf(y)
	danger, safe := standing(x, y, supportVectors(x, y, l.class, rng), l)
	share := distuv.Beta{Alpha: 10, Beta: 10, Src: rng}.Rand()
	toDanger := int(share * float64(l.need+1))
	g := grow(x, y, l)
	if len(danger) > 0 {
		g.between(danger, neighbours(x, danger, l.rows, fewNeighbours), toDanger, wholeStep, rng)
	}
	if len(safe) > 0 {
		away := func(_ int, rng *rand.Rand) float64 { return -rng.Float64() / 2 }
		g.between(safe, neighbours(x, safe, l.rows, fewNeighbours), l.need-toDanger, away, rng)
	}
	return g.x, g.y
}

// svcRows is how many rows an svc is fitted to, at most: it takes the square of
// them in time and memory.
const svcRows = 10_000

func supportVectors(x dbn.Matrix, y []int, class int, rng *rand.Rand) []int {
	parts := (len(y) + svcRows - 1) / svcRows
	if parts < 2 {
		return fitSVC(x, y).support(y, class)
	}
	some := classify.StratifiedKFold(y, parts, rng)[0].Test
	var rows []int
	labels := pick(y, some)
	for _, i := range fitSVC(rowsOf(x, some), labels).support(labels, class) {
		rows = append(rows, some[i])
	}
	return rows
}

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
		if s.room(k, 1) > 0 && -s.sign[k]*g >= top {
			top, i = -s.sign[k]*g, k
		}
	}
	if i < 0 {
		return -1, -1
	}
	ki := s.kernel(i)
	bottom, gain := math.Inf(-1), math.Inf(1)
	for k, g := range gradient {
		if s.room(k, -1) <= 0 {
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

// room returns how far α_k can move so that s_k·α_k grows, with a sign of 1, or shrinks, with −1.
func (s *svc) room(k int, sign float64) float64 {
	if sign*s.sign[k] > 0 {
		return svcC - s.alpha[k]
	}
	return s.alpha[k]
}

// step moves α_i and α_j to the optimum of the two, within their box.
func (s *svc) step(i, j int, gradient []float64, curvature float64) {
	// s_i·α_i grows by d, s_j·α_j shrinks by it.
	d := (-s.sign[i]*gradient[i] + s.sign[j]*gradient[j]) / curvature
	d = min(d, s.room(i, 1), s.room(j, -1))
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
