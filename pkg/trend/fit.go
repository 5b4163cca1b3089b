package trend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Rows is what is learnt from: windows of cutting, those of one tool in the order
// of cutting.
type Rows struct {
	Columns int       // features
	X       []float32 // rows×Columns, by rows; NaN is missing
	WearUM  []float64 // of each row
	Tool    []string  // of each row
	Hole    []string  // of each row, or nil; empty where not known
}

// Row returns the features of row i, which it owns.
func (r *Rows) Row(i int) []float32 { return r.X[i*r.Columns : (i+1)*r.Columns] }

func (r *Rows) hole(i int) string {
	if r.Hole == nil {
		return ""
	}
	return r.Hole[i]
}

// parts deals tools to at most mostParts parts.
func parts(tools [][]int) [][]int {
	out := make([][]int, min(len(tools), mostParts))
	for k := range tools {
		out[k%len(out)] = append(out[k%len(out)], k)
	}
	return out
}

// byTool returns the rows of each tool, in the order in which tools first appear.
func (r *Rows) byTool() [][]int {
	var out [][]int
	at := make(map[string]int)
	for i, t := range r.Tool {
		k, known := at[t]
		if !known {
			k = len(out)
			at[t] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

// ErrTooFew is returned where there are not tools enough.
var ErrTooFew = errors.New("too few tools with measured wear")

const (
	leastTools = 4    // two of them are held out while a fit is scored
	mostParts  = 10   // that tools are dealt to; up to as many, each is held out alone
	mostRows   = 4000 // of all tools that are regressed; neighbours are near copies
)

// What is tried on tools held out.
var (
	penalties = []float64{3, 10, 30, 100, 300}
	medians   = []int{1, 3, 5, 9, 15, 31}
)

// known is the share of the rows learnt from that lie within Model.Distance.
const known = 0.99

// Choice says how a model was chosen.
type Choice struct {
	Penalty float64 `json:"penalty"` // α of the ridge regression
	Median  int     `json:"median"`  // windows
	RMS     float64 `json:"rms"`     // error of the published root on tools held out, in √µm
}

// Fit returns the model of the rows, which ends lives at limitUM (0: never). The
// penalty α and the length of the median are those of the least square error of
// the published root over all rows, when one tool after the other is held out of
// the regression (a tenth of them at a time, if there are more than ten); of
// equals, the first. Inputs are standardised with all tools. The interval is from the (1−Coverage)/2
// to the (1+Coverage)/2 quantile of the errors then, which is a split conformal
// interval whose parts are tools. Fit does not modify the rows, and returns
// ErrTooFew for fewer than three tools.
//
// Source: A. E. Hoerl, R. W. Kennard, "Ridge Regression: Biased Estimation for
// Nonorthogonal Problems", Technometrics 12(1), 1970, eq. 2.1. V. Vovk et al.,
// "Algorithmic Learning in a Random World", 2005, §4 (inductive conformal
// predictors), with errors pooled over the tools held out as in R. F. Barber et
// al., "Predictive inference with the jackknife+", Ann. Statist. 49(1), 2021.
func Fit(ctx context.Context, rows *Rows, limitUM float64) (*Model, Choice, error) {
	tools := rows.byTool()
	if len(tools) < leastTools-1 {
		return nil, Choice{}, fmt.Errorf("trend: %w: %d, at least %d are needed", ErrTooFew, len(tools), leastTools-1)
	}
	r := newRegression(rows, tools)
	errorsOf := make([][]float64, len(penalties)*len(medians)) // of each row, by penalty and median
	squares := make([]float64, len(errorsOf))
	for _, part := range parts(tools) {
		if ctx.Err() != nil {
			return nil, Choice{}, context.Cause(ctx)
		}
		for a, f := range r.without(part) {
			for _, k := range part {
				held := tools[k]
				roots := make([]float64, len(held))
				for n, i := range held {
					roots[n], _ = f.Root(rows.Row(i))
				}
				for b, width := range medians {
					c := a*len(medians) + b
					var most float64
					for n, i := range held {
						most = max(most, median(roots[max(0, n-width+1):n+1]))
						e := math.Sqrt(rows.WearUM[i]) - most
						errorsOf[c] = append(errorsOf[c], e)
						squares[c] += e * e
					}
				}
			}
		}
	}
	best := 0
	for c, s := range squares {
		if s < squares[best] {
			best = c
		}
	}
	choice := Choice{penalties[best/len(medians)], medians[best%len(medians)], math.Sqrt(squares[best] / float64(len(rows.Tool)))}
	m := r.all(choice.Penalty)
	es := errorsOf[best]
	slices.Sort(es)
	m.Median, m.LimitUM = choice.Median, limitUM
	m.Low, m.High = quantile(es, (1-Coverage)/2), quantile(es, (1+Coverage)/2)
	m.MostUM = slices.Max(rows.WearUM)
	distances := make([]float64, len(rows.Tool))
	for i := range distances {
		distances[i] = r.distance(rows.Row(i))
	}
	slices.Sort(distances)
	m.Distance = quantile(distances, known)
	return m, choice, nil
}

// quantile returns the p-quantile of ascending values, linear between them.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	return sorted[i] + (at-float64(i))*(sorted[j]-sorted[i])
}

// regression is sums over rows from which ridge regressions follow, of all tools
// or of all but one: those of a tool are taken off again.
type regression struct {
	rows          *Rows
	chosen        [][]int // rows of each tool that are regressed
	center, scale []float64

	gram  blas64.Symmetric // Σ z·zᵀ, upper triangle
	cross []float64        // Σ y·z
	sum   []float64        // Σ z
	y     float64          // Σ y
	n     int
}

func newRegression(rows *Rows, tools [][]int) *regression {
	r := &regression{rows: rows}
	p := rows.Columns
	r.center, r.scale = make([]float64, 2*p), make([]float64, 2*p)
	for _, of := range tools {
		rest := of
		if most := max(mostRows/len(tools), 1); len(of) > most {
			rest = make([]int, most)
			for k := range rest {
				rest[k] = of[k*len(of)/most]
			}
		}
		r.chosen = append(r.chosen, rest)
	}
	counts := make([]float64, 2*p)
	for _, of := range r.chosen {
		for _, i := range of {
			for c, v := range rows.Row(i) {
				if v != v {
					continue
				}
				for k, x := range [2]float64{float64(v), signedLog(float64(v))} { // Welford's updates
					at := c + k*p
					counts[at]++
					d := x - r.center[at]
					r.center[at] += d / counts[at]
					r.scale[at] += d * (x - r.center[at])
				}
			}
		}
	}
	for c := range r.scale {
		r.scale[c] = math.Sqrt(r.scale[c] / max(counts[c], 1))
		if !(r.scale[c] > 1e-9*math.Abs(r.center[c])) { // rounding is not variation
			r.scale[c] = 1
		}
	}
	for _, of := range r.chosen {
		r.n += len(of)
	}
	r.cross, r.sum = make([]float64, 2*p), make([]float64, 2*p)
	if r.wide() {
		return r
	}
	r.gram = blas64.Symmetric{Uplo: blas.Upper, N: 2 * p, Stride: 2 * p, Data: make([]float64, 4*p*p)}
	for k := range r.chosen {
		r.add(1, k, r.gram, r.cross, r.sum, &r.y)
	}
	return r
}

// wide reports whether there are fewer rows than inputs. Then no sums are kept,
// and regressions are solved among the rows.
func (r *regression) wide() bool { return r.n < 2*r.rows.Columns }

// inputs stores the standardised inputs of a row in z, which has length 2p.
func (r *regression) inputs(z []float64, x []float32) {
	p := len(x)
	for i, v := range x {
		z[i], z[p+i] = 0, 0
		if v == v {
			z[i] = standard(float64(v), r.center[i], r.scale[i])
			z[p+i] = standard(signedLog(float64(v)), r.center[p+i], r.scale[p+i])
		}
	}
}

// distance returns the mean square of the inputs of a row.
func (r *regression) distance(x []float32) float64 {
	z := make([]float64, 2*len(x))
	r.inputs(z, x)
	var sum float64
	for _, v := range z {
		sum += v * v
	}
	return sum / float64(len(z))
}

// add adds sign times the sums over tool k and returns how many rows it has.
func (r *regression) add(sign float64, k int, gram blas64.Symmetric, cross, sum []float64, y *float64) int {
	p2, of := 2*r.rows.Columns, r.chosen[k]
	z := blas64.General{Rows: len(of), Cols: p2, Stride: p2, Data: make([]float64, len(of)*p2)}
	for n, i := range of {
		row := z.Data[n*p2 : (n+1)*p2]
		r.inputs(row, r.rows.Row(i))
		root := math.Sqrt(r.rows.WearUM[i])
		*y += sign * root
		for c, v := range row {
			cross[c] += sign * root * v
			sum[c] += sign * v
		}
	}
	blas64.Syrk(blas.Trans, sign, z, 1, gram)
	return len(of)
}

// without returns the regressions of each penalty on all tools but those held.
func (r *regression) without(held []int) []*Model {
	if r.wide() {
		return r.solveRows(held, penalties)
	}
	gram := r.gram
	gram.Data = slices.Clone(gram.Data)
	cross, sum, y := slices.Clone(r.cross), slices.Clone(r.sum), r.y
	n := r.n
	for _, k := range held {
		n -= r.add(-1, k, gram, cross, sum, &y)
	}
	return r.solve(gram, cross, sum, y, n, penalties)
}

// all returns the regression on all tools.
func (r *regression) all(alpha float64) *Model {
	if r.wide() {
		return r.solveRows(nil, []float64{alpha})[0]
	}
	return r.solve(r.gram, r.cross, r.sum, r.y, r.n, []float64{alpha})[0]
}

// solveRows returns the regressions of all tools but those held, for each penalty
// α, as solve does, by
//
//	w = Zᵀ·(Z·Zᵀ + α·I)⁻¹·y,
//
// which is the same and is less work with fewer rows than inputs.
func (r *regression) solveRows(held []int, alphas []float64) []*Model {
	p2 := 2 * r.rows.Columns
	z := blas64.General{Cols: p2, Stride: p2}
	var roots []float64
	sum, y := make([]float64, p2), 0.0
	for k, of := range r.chosen {
		if slices.Contains(held, k) {
			continue
		}
		for _, i := range of {
			at := len(z.Data)
			z.Data = append(z.Data, make([]float64, p2)...)
			r.inputs(z.Data[at:], r.rows.Row(i))
			for c, v := range z.Data[at:] {
				sum[c] += v
			}
			roots = append(roots, math.Sqrt(r.rows.WearUM[i]))
			y += roots[len(roots)-1]
		}
	}
	n := len(roots)
	z.Rows = n
	for i := range n {
		roots[i] -= y / float64(n)
		for c := range p2 {
			z.Data[i*p2+c] -= sum[c] / float64(n)
		}
	}
	kernel := mat.NewSymDense(n, nil)
	blas64.Syrk(blas.NoTrans, 1, z, 0, kernel.RawSymmetric())
	dual := mat.NewVecDense(n, nil)
	return ridge(kernel, mat.NewVecDense(n, roots), dual, alphas, func() *Model {
		m := r.model(sum, y, n)
		blas64.Gemv(blas.Trans, 1, z, dual.RawVector(), 0, blas64.Vector{N: p2, Inc: 1, Data: m.Weights})
		return m
	}, sum, n)
}

// solve returns the regressions of the sums over n rows, for each penalty α:
//
//	w = (Zᵀ·Z + α·I)⁻¹·Zᵀ·y,
//
// of inputs and roots less their means. The bias is not penalised.
func (r *regression) solve(gram blas64.Symmetric, cross, sum []float64, y float64, n int, alphas []float64) []*Model {
	p2 := len(sum)
	centered := mat.NewSymDense(p2, slices.Clone(gram.Data))
	blas64.Syr(-1/float64(n), blas64.Vector{N: p2, Inc: 1, Data: sum}, centered.RawSymmetric())
	b := mat.NewVecDense(p2, nil)
	for c := range cross {
		b.SetVec(c, cross[c]-y/float64(n)*sum[c])
	}
	w := mat.NewVecDense(p2, nil)
	return ridge(centered, b, w, alphas, func() *Model {
		m := r.model(sum, y, n)
		copy(m.Weights, w.RawVector().Data)
		return m
	}, sum, n)
}

// model returns a model of n rows without weights, whose bias is the mean root.
func (r *regression) model(sum []float64, y float64, n int) *Model {
	return &Model{Center: r.center, Scale: r.scale, Weights: make([]float64, len(sum)), Bias: y / float64(n)}
}

// ridge solves (a + α·I)·x = b for each α, ascending, and calls make for the model of
// x, from whose bias it takes what the means of the inputs, sum over n, weigh. It
// modifies a.
func ridge(a *mat.SymDense, b, x *mat.VecDense, alphas []float64, make func() *Model, sum []float64, n int) []*Model {
	var out []*Model
	last := 0.0
	for _, alpha := range alphas {
		for c := range a.SymmetricDim() {
			a.SetSym(c, c, a.At(c, c)+alpha-last)
		}
		last = alpha
		var chol mat.Cholesky
		if !chol.Factorize(a) {
			panic("trend: Z'Z + αI is not positive definite") // inputs are within ±5, and α is 1 or more
		}
		// A matrix that is near to singular is what the penalty is there for.
		_ = chol.SolveVecTo(x, b)
		m := make()
		for c, w := range m.Weights {
			m.Bias -= w * sum[c] / float64(n)
		}
		out = append(out, m)
	}
	return out
}
