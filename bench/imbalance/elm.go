package imbalance

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
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

func (r ridge) beta(c float64) []float64 {
	var b mat.VecDense
	b.MulVec(&r.vectors, mat.NewVecDense(len(r.values), r.within(c)))
	return b.RawVector().Data
}

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

// The grid of weighted extreme learning machines. Its authors take C from 2⁻¹⁸ to
// 2⁵⁰ and from 10 to 1000 units in steps of 10; more than 200 units change little on
// sets of this size, and take most of the time.
var welmUnits = []int{10, 20, 50, 100, 200}

const (
	welmFirst, welmLast = -18, 50 // powers of 2
	welmStep            = 2
	welmFolds           = 5
)

// welmFamily is the weighted extreme learning machine: W1 gives each class the
// same weight in all, W2 the larger one less by the golden ratio. Both choose
// among the same random units.
func welmFamily() family {
	const with = "10 to 200 logistic units with weights from U(−1,1) on columns in [−1,1], C from 2^−18 to 2^50, by the G-mean of 5 inner folds, "
	return family{
		effort: 1,
		methods: []Method{
			{"welm-w1", 3, with + "weights 1/n"},
			{"welm-w2", 3, with + "weights 1/n, of the larger class 0.618/n"},
		},
		solve: func(ctx context.Context, t Task) ([]methodAnswer, error) {
			var all []methodAnswer
			for _, golden := range []bool{false, true} {
				began := startWatch()
				e, err := fitWELM(ctx, t, golden)
				seconds := began.seconds()
				if err != nil {
					began.stop()
					return nil, err
				}
				a := answer(e.values(t.Test), seconds)
				a.Judging = began.seconds() - seconds
				began.stop()
				all = append(all, a)
			}
			return all, nil
		},
	}
}

func welmWeights(y []int, golden bool) [2]float64 {
	var n [2]int
	for _, label := range y {
		n[label]++
	}
	w := [2]float64{1 / float64(n[0]), 1 / float64(n[1])}
	if golden {
		for class := range w {
			if n[class] > n[1-class] {
				w[class] *= 0.618
			}
		}
	}
	return w
}

// fitWELM chooses units and C by inner folds, the fewest units and the smallest C
// of equals, and fits to all rows.
func fitWELM(ctx context.Context, t Task, golden bool) (*elm, error) {
	rng := newRand(seedOf("welm", t.Seed))
	folds := t.split(welmFolds, rng)
	units, power, most := welmUnits[0], 0, math.Inf(-1)
	for _, n := range welmUnits {
		u := newRandomUnits(t.X, n, newRand(seedOf("units", n, t.Seed)))
		h := u.apply(t.X)
		counts := make(map[int]score.Confusion)
		for _, fold := range folds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			train, y := pickRows(h, fold.Train), pick(t.Y, fold.Train)
			r := newRidge(train, y, welmWeights(y, golden))
			var base mat.Dense
			base.Mul(pickRows(h, fold.Test), &r.vectors)
			for p := welmFirst; p <= welmLast; p += welmStep {
				if counts[p] == nil {
					counts[p] = score.NewConfusion(2)
				}
				var v mat.VecDense
				v.MulVec(&base, mat.NewVecDense(n, r.within(math.Exp2(float64(p)))))
				for k, decision := range answer(v.RawVector().Data, 0).Decision {
					counts[p].Add(t.Y[fold.Test[k]], decision)
				}
			}
		}
		for p := welmFirst; p <= welmLast && folds != nil; p += welmStep {
			if g := counts[p].GMean(); g > most {
				units, power, most = n, p, g
			}
		}
	}
	e := &elm{units: newRandomUnits(t.X, units, newRand(seedOf("units", units, t.Seed)))}
	e.beta = newRidge(e.units.apply(t.X), t.Y, welmWeights(t.Y, golden)).beta(math.Exp2(float64(power)))
	return e, nil
}

func pickRows(m *mat.Dense, rows []int) *mat.Dense {
	_, cols := m.Dims()
	p := mat.NewDense(len(rows), cols, nil)
	for k, i := range rows {
		copy(p.RawRowView(k), m.RawRowView(i))
	}
	return p
}

// pick returns the given rows of x, nil of nil.
func pick[E any](x []E, rows []int) []E {
	if x == nil {
		return nil
	}
	p := make([]E, len(rows))
	for k, i := range rows {
		p[k] = x[i]
	}
	return p
}
