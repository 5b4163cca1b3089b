package imbalance

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// elm is an extreme learning machine: a layer of random logistic units that are
// never trained, and a linear output that is. A row of class 1 has a positive
// output.
type elm struct {
	units randomUnits
	beta  []float64 // by unit
}

// randomUnits are L logistic units of columns scaled to [−1, 1] by the training
// rows, with weights and biases from U(−1, 1).
type randomUnits struct {
	low, width []float64 // by column; width 0: the column is constant
	weights    []float64 // L×(columns+1), the bias last
	n          int
}

func newRandomUnits(x dbn.Matrix, n int, rng *rand.Rand) randomUnits {
	u := randomUnits{low: make([]float64, x.Cols), width: make([]float64, x.Cols), weights: make([]float64, n*(x.Cols+1)), n: n}
	for j := range x.Cols {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range x.Rows {
			if v := float64(x.Row(i)[j]); v == v {
				low, high = min(low, v), max(high, v)
			}
		}
		if low < high {
			u.low[j], u.width[j] = low, high-low
		}
	}
	for i := range u.weights {
		u.weights[i] = 2*rng.Float64() - 1
	}
	return u
}

// apply returns the activities of the units, N×L. A missing value counts as the
// middle of its column.
func (u randomUnits) apply(x dbn.Matrix) *mat.Dense {
	h := mat.NewDense(x.Rows, u.n, nil)
	d := x.Cols
	scaled := make([]float64, d)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if scaled[j] = 0; u.width[j] > 0 && v == v {
				scaled[j] = 2*(float64(v)-u.low[j])/u.width[j] - 1
			}
		}
		row := h.RawRowView(i)
		for l := range row {
			w := u.weights[l*(d+1) : (l+1)*(d+1)]
			sum := w[d]
			for j, v := range scaled {
				sum += v * w[j]
			}
			row[l] = 1 / (1 + math.Exp(-sum))
		}
	}
	return h
}

// ridge holds what is needed to solve
//
//	β(C) = (I/C + HᵀΩH)⁻¹·HᵀΩt
//
// for any C, where Ω is the diagonal matrix of the rows' weights and t is −1 or 1:
// the eigenvectors V of HᵀΩH, its eigenvalues, and VᵀHᵀΩt.
//
// Source: W. Zong, G.-B. Huang and Y. Chen, "Weighted Extreme Learning Machine
// for Imbalance Learning", Neurocomputing 101, 2013, eq. 10.
type ridge struct {
	vectors mat.Dense
	values  []float64
	target  []float64
}

func newRidge(h *mat.Dense, y []int, weight [2]float64) ridge {
	n, units := h.Dims()
	weighted := mat.NewDense(n, units, nil)
	t := mat.NewVecDense(n, nil)
	for i, label := range y {
		w := math.Sqrt(weight[label])
		for l, v := range h.RawRowView(i) {
			weighted.RawRowView(i)[l] = w * v
		}
		t.SetVec(i, w*float64(2*label-1))
	}
	var square mat.SymDense
	square.SymOuterK(1, weighted.T())
	var r ridge
	var eigen mat.EigenSym
	if !eigen.Factorize(&square, true) {
		panic("study: eigenvalues of a matrix that is not finite")
	}
	r.values = eigen.Values(nil)
	eigen.VectorsTo(&r.vectors)
	var side, target mat.VecDense
	side.MulVec(weighted.T(), t)
	target.MulVec(r.vectors.T(), &side)
	r.target = target.RawVector().Data
	return r
}

// within returns Vᵀβ(C), the output weights in the base of the eigenvectors.
func (r ridge) within(c float64) []float64 {
	b := make([]float64, len(r.values))
	for i, v := range r.values {
		b[i] = r.target[i] / (max(v, 0) + 1/c)
	}
	return b
}

// beta returns β(C).
func (r ridge) beta(c float64) []float64 {
	var b mat.VecDense
	b.MulVec(&r.vectors, mat.NewVecDense(len(r.values), r.within(c)))
	return b.RawVector().Data
}

// values returns the outputs of rows.
func (e *elm) values(x dbn.Matrix) []float64 {
	var v mat.VecDense
	v.MulVec(e.units.apply(x), mat.NewVecDense(len(e.beta), e.beta))
	return v.RawVector().Data
}

// answer decides by the sign of outputs.
func answer(values []float64, seconds float64) methodAnswer {
	a := methodAnswer{Score: values, Seconds: seconds}
	for _, v := range values {
		decision := 0
		if v > 0 {
			decision = 1
		}
		a.Decision = append(a.Decision, decision)
	}
	return a
}
