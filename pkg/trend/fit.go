package trend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Rows is what is learnt from: windows of cutting, each tool's in the order of cutting.
type Rows struct {
	Columns int       // features
	X       []float32 // rows×Columns, by rows; NaN is missing
	WearUM  []float64 // of each row
	Tool    []string  // of each row
	Hole    []string  // of each row, or nil; empty where not known

	// Reference has, of each row, the tool's reference as it was after that window:
	// the median of each of Columns features over the tool's first windows of cutting,
	// NaN where there was no value; nil before it was settled. Rows may share it; they
	// do not own it. Nil where no references are taken.
	Reference [][]float32
}

// Row returns the features of row i, which it owns.
func (r *Rows) Row(i int) []float32 { return r.X[i*r.Columns : (i+1)*r.Columns] }

func (r *Rows) hole(i int) string {
	if r.Hole == nil {
		return ""
	}
	return r.Hole[i]
}

// ReferenceOf returns the reference of row i as the monitor has it then, or nil.
func (r *Rows) ReferenceOf(i int) []float32 {
	if r.Reference == nil {
		return nil
	}
	return r.Reference[i]
}

// referenced reports whether any tool has a reference.
func (r *Rows) referenced() bool {
	return slices.ContainsFunc(r.Reference, func(x []float32) bool { return x != nil })
}

// settled returns the references that the rows are learnt from with: before a tool has
// one, its first; all missing for a tool that never has one.
func (r *Rows) settled(tools [][]int) [][]float32 {
	if !r.referenced() {
		return nil
	}
	none := make([]float32, r.Columns)
	for c := range none {
		none[c] = float32(math.NaN())
	}
	out := make([][]float32, len(r.Tool))
	for _, of := range tools {
		next := none
		for _, i := range slices.Backward(of) {
			if r.Reference[i] != nil {
				next = r.Reference[i]
			}
			out[i] = next
		}
	}
	return out
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
	leastTools  = 2    // one of them is held out while the errors are measured
	leastChoice = 3    // with fewer, nothing is chosen: a fit without one of them is of one tool
	mostParts   = 10   // that tools are dealt to; up to as many, each is held out alone
	mostRows    = 4000 // of all tools that are regressed; neighbours are near copies
)

// What is tried on tools held out.
var (
	penalties = []float64{3, 10, 30, 100, 300, 1000}
	medians   = []int{1, 3, 5, 9, 15, 31}
	mixes     = [][]Part{{Ridge, Weighted, Trees}, {Ridge, Weighted}, {Ridge, Trees}, {Weighted, Trees}, {Ridge}, {Weighted}, {Trees}}
)

// usualMedian is the median with which penalties and parts are compared. Models of two
// tools have it too.
const usualMedian = 5

// known is the share of the rows learnt from that lie within Model.Distance.
const known = 0.99

// Settings says how wear is learnt.
type Settings struct {
	LimitUM float64 // wear at which lives end; 0: never
	Exclude []int   // columns of features that must not be used, in any order; the caller's
	Seed    uint64  // of the trees

	// Shared, if not nil, has what was fitted to the same rows before. It never changes a result.
	Shared *sharedRows

	// Progress, if not nil, is called by CrossValidate as parts of the tools have been held out, by one goroutine at a time.
	Progress func(done, total int)
}

// Choice says how a model was chosen.
type Choice struct {
	Parts    []Part  `json:"parts"`            // that the estimate is the mean of
	Penalty  float64 `json:"penalty"`          // α of the ridge regression
	Weighted float64 `json:"weighted_penalty"` // α of the weighted one; 0 without
	Median   int     `json:"median"`           // windows
	RMS      float64 `json:"rms"`              // error of the published root on tools held out, in √µm
	Fixed    bool    `json:"fixed,omitempty"`  // by rule, as two tools are too few to choose on
	Steady   int     `json:"steady"`           // features with a stability weight
	Tried    []Tried `json:"tried,omitempty"`  // on tools held out, in the order of preference
}

// Tried is a mean of parts and its error on tools held out.
type Tried struct {
	Parts []Part  `json:"parts"`
	RMS   float64 `json:"rms"` // of the published root, in √µm
}

// trial is what each regression says of rows whose tool was held out of it, in √µm.
type trial struct {
	ridge    [][]float64 // by penalty and row
	weighted [][]float64
	trees    []float64
}

// holdOut fits the regressions without one part of the tools after the other.
func (r *regression) holdOut(ctx context.Context, tools [][]int, s Settings, alphas func(rows int) []float64) (*trial, error) {
	n := len(r.rows.Tool)
	t := &trial{trees: make([]float64, n)}
	for range alphas(0) {
		t.ridge, t.weighted = append(t.ridge, make([]float64, n)), append(t.weighted, make([]float64, n))
	}
	z := make([]float64, 2*r.rows.Columns)
	for _, part := range parts(tools) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		tried := alphas(r.count(part))
		ridges, steady := r.without(part, tried), r.steady(part, tried, s)
		mean := r.mean(part)
		for _, k := range part {
			for _, i := range tools[k] {
				r.inputs(z, r.rows.Row(i))
				for a, m := range ridges {
					t.ridge[a][i] = m.Bias + dot(m.Weights, z)
				}
				if steady == nil { // nothing follows the life of every tool: the mean wear
					for a := range tried {
						t.weighted[a][i] = mean
					}
					t.trees[i] = mean
					continue
				}
				x := steady.at(r, i)
				for a, m := range steady.lines {
					t.weighted[a][i] = m.Bias + dot(m.Weights, x)
				}
				t.trees[i] = average(steady.forest, x)
			}
		}
	}
	return t, nil
}

// dot returns Σ a·b over the elements of a.
func dot(a, b []float64) float64 {
	return blas64.Dot(blas64.Vector{N: len(a), Inc: 1, Data: a}, blas64.Vector{N: len(a), Inc: 1, Data: b})
}

// of returns the root of row i by a mean of parts with the penalties a and b.
func (t *trial) of(mix []Part, a, b, i int) float64 {
	var sum float64
	for _, p := range mix {
		switch p {
		case Ridge:
			sum += t.ridge[a][i]
		case Weighted:
			sum += t.weighted[b][i]
		case Trees:
			sum += t.trees[i]
		}
	}
	return max(sum/float64(len(mix)), 0)
}

// errors returns, by tool, the errors of what is published of its rows, in √µm. Rows
// before the tool's reference have none.
func (t *trial) errors(rows *Rows, tools [][]int, mix []Part, a, b, width int) [][]float64 {
	referenced := rows.referenced()
	out := make([][]float64, len(tools))
	for k, of := range tools {
		var roots []float64
		var most float64
		for _, i := range of {
			if referenced && rows.Reference[i] == nil {
				continue
			}
			roots = append(roots, t.of(mix, a, b, i))
			most = max(most, median(roots[max(0, len(roots)-width):]))
			out[k] = append(out[k], math.Sqrt(rows.WearUM[i])-most)
		}
	}
	return out
}

// median returns the width of the running median with the smallest error.
func (t *trial) median(rows *Rows, tools [][]int, mix []Part, a, b int) int {
	best, least := usualMedian, math.Inf(1)
	for _, width := range medians {
		if e := rms(t.errors(rows, tools, mix, a, b, width)); e < least {
			best, least = width, e
		}
	}
	return best
}

// penalties returns which penalties of the ridge and of the weighted regression give a
// mean of parts the least error, and that error. Of a part that mix lacks it
// returns the first penalty.
func (t *trial) penalties(rows *Rows, tools [][]int, mix []Part) (a, b int, least float64) {
	count := func(p Part, n int) int {
		if slices.Contains(mix, p) {
			return n
		}
		return 1
	}
	least = math.Inf(1)
	for i := range count(Ridge, len(t.ridge)) {
		for j := range count(Weighted, len(t.weighted)) {
			if e := rms(t.errors(rows, tools, mix, i, j, usualMedian)); e < least {
				a, b, least = i, j, e
			}
		}
	}
	return a, b, least
}

// rms returns the root of the mean square of all errors.
func rms(errors [][]float64) float64 {
	var sum float64
	n := 0
	for _, of := range errors {
		for _, e := range of {
			sum += e * e
			n++
		}
	}
	return math.Sqrt(sum / float64(max(n, 1)))
}

// Fit returns the model of the rows. Every choice is made by the least square error of
// the published root over all rows, when one tool after the other is held out of all
// regressions and their stability weights (a tenth of them at a time, if there are more
// than ten); of equals, the first: for each mean of parts the penalties, with a median
// of five windows; then the parts, see choose; then the length of the median. The inputs of the ridge
// regression are standardised with all tools. With two tools nothing is chosen: all parts, a penalty of as many as there are rows, a median of five.
// Features without any stability weight leave the ridge regression alone. The interval is
// symmetric in √µm, see margin. Fit does not modify the rows, and returns ErrTooFew for
// fewer than two tools.
//
// Source: A. E. Hoerl, R. W. Kennard, "Ridge Regression: Biased Estimation for
// Nonorthogonal Problems", Technometrics 12(1), 1970, eq. 2.1.
func Fit(ctx context.Context, rows *Rows, s Settings) (*Model, Choice, error) {
	tools := rows.byTool()
	if len(tools) < leastTools {
		return nil, Choice{}, fmt.Errorf("trend: %w: %d, at least %d are needed", ErrTooFew, len(tools), leastTools)
	}
	s.Shared = cmp.Or(s.Shared, NewShared())
	r := newRegression(rows, tools, s.Exclude)
	c := Choice{Parts: mixes[0], Median: usualMedian, Fixed: len(tools) < leastChoice}
	alphas := func(int) []float64 { return penalties }
	if c.Fixed {
		alphas = func(n int) []float64 { return []float64{float64(n)} }
	}
	t, err := r.holdOut(ctx, tools, s, alphas)
	if err != nil {
		return nil, Choice{}, err
	}
	tried := alphas(r.n)
	all := r.steady(nil, tried, s)
	mixes := mixes
	switch {
	case all == nil:
		mixes = [][]Part{{Ridge}}
	case c.Fixed:
		mixes = mixes[:1]
	}
	var best [][2]int // penalties of each mix, as indices
	for _, mix := range mixes {
		a, b, e := t.penalties(rows, tools, mix)
		best = append(best, [2]int{a, b})
		c.Tried = append(c.Tried, Tried{mix, e})
	}
	k := choose(c.Tried)
	c.Parts = mixes[k]
	a, b := best[k][0], best[k][1]
	if !c.Fixed {
		c.Median = t.median(rows, tools, c.Parts, a, b)
	}
	errs := t.errors(rows, tools, c.Parts, a, b, c.Median)
	c.Penalty, c.RMS = tried[a], rms(errs)
	m := r.all(c.Penalty)
	m.Parts, m.Reference, m.Excluded = c.Parts, rows.referenced(), r.excluded
	m.Median, m.LimitUM = c.Median, s.LimitUM
	m.High = margin(errs)
	m.Low = -m.High
	m.MostUM = slices.Max(rows.WearUM)
	if all != nil {
		c.Steady = all.columns
	}
	if m.has(Weighted) {
		c.Weighted = tried[b]
	}
	if m.has(Weighted) || m.has(Trees) {
		all.into(m, b)
	}
	m.Distance = m.knownDistance(rows)
	return m, c, nil
}

// knownDistance returns the distance that most training rows stay within.
func (m *Model) knownDistance(rows *Rows) float64 {
	distances := make([]float64, len(rows.Tool))
	for i := range distances {
		_, d := m.ridge(rows.Row(i))
		distances[i] = d / float64(max(2*(rows.Columns-len(m.Excluded)), 1))
	}
	slices.Sort(distances)
	return quantile(distances, known)
}

// clearly is how much less error than the mean of all parts another mix must have to be
// taken: what was left out of a mean of three by chance is missed on the next tool.
const clearly = 0.9

// choose returns which of tried is taken: the first, or the one of the least error if
// that is clearly less.
func choose(tried []Tried) int {
	best := 0
	for k, t := range tried {
		if t.RMS < tried[best].RMS {
			best = k
		}
	}
	if tried[best].RMS < clearly*tried[0].RMS {
		return best
	}
	return 0
}

// margin returns by how much, in √µm, the interval goes to either side of the published
// root: the 0.8·(K+1)/K quantile of the absolute errors on K tools held out, of which
// every tool weighs 1/K, however many rows it has. Up to four tools that is the largest
// error.
//
// Source: V. Vovk et al., "Algorithmic Learning in a Random World", 2005, §4 (inductive
// conformal predictors), with tools in the place of examples; R. F. Barber et al.,
// "Predictive inference with the jackknife+", Ann. Statist. 49(1), 2021.
func margin(errs [][]float64) float64 {
	type weighed struct{ miss, weight float64 }
	var all []weighed
	tools := 0.0
	for _, of := range errs {
		if len(of) > 0 {
			tools++
		}
		for _, e := range of {
			all = append(all, weighed{math.Abs(e), 1 / float64(len(of))})
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Compare(a.miss, b.miss) })
	share := Coverage * (tools + 1) // of tools
	sum := 0.0
	for _, w := range all {
		if sum += w.weight; sum >= share-1e-9 { // sums of 1/n are rounded
			return w.miss
		}
	}
	return all[len(all)-1].miss
}

// quantile returns the p-quantile of ascending values, linear between them.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	return sorted[i] + (at-float64(i))*(sorted[j]-sorted[i])
}

// regression is sums over rows from which ridge regressions follow, of all tools
// or of all but one: the sums of a tool are subtracted again.
type regression struct {
	rows          *Rows
	excluded      []int       // columns, ascending
	chosen        [][]int     // rows of each tool that are regressed
	references    [][]float32 // of each row; nil: none are taken
	center, scale []float64

	gram  blas64.Symmetric // Σ z·zᵀ, upper triangle
	cross []float64        // Σ y·z
	sum   []float64        // Σ z
	y     float64          // Σ y
	n     int
}

func newRegression(rows *Rows, tools [][]int, exclude []int) *regression {
	r := &regression{rows: rows, references: rows.settled(tools)}
	if len(exclude) > 0 {
		r.excluded = slices.Compact(slices.Sorted(slices.Values(exclude)))
	}
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
				if !finite(float64(v)) || slices.Contains(r.excluded, c) {
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

// count returns how many rows are regressed without the tools held.
func (r *regression) count(held []int) int {
	n := r.n
	for _, k := range held {
		n -= len(r.chosen[k])
	}
	return n
}

// mean returns the mean root of the rows that are regressed without the tools held.
func (r *regression) mean(held []int) float64 {
	var sum float64
	for k, of := range r.chosen {
		if slices.Contains(held, k) {
			continue
		}
		for _, i := range of {
			sum += math.Sqrt(r.rows.WearUM[i])
		}
	}
	return sum / float64(r.count(held))
}

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
	for _, i := range r.excluded {
		z[i], z[p+i] = 0, 0
	}
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
func (r *regression) without(held []int, penalties []float64) []*Model {
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
	z.Rows = len(roots)
	return r.dual(z, roots, sum, y, alphas)
}

// dual solves among the rows of z, with the sums over them of z and of the roots. It
// takes their means off z and roots.
func (r *regression) dual(z blas64.General, roots, sum []float64, y float64, alphas []float64) []*Model {
	n, p2 := z.Rows, z.Cols
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
