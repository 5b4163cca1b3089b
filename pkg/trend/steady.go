package trend

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/pkg/score"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// total is the sum of the squares of the factors that the weighted regression's inputs
// are multiplied by, so that a penalty means the same however many there are.
const total = 48

// mostInputs bounds the weighted regression; what has less weight hardly counts.
const mostInputs = 256

// steady is the weighted regression and the trees.
type steady struct {
	columns int      // features with a stability weight
	inputs  []Input  // by descending stability weight; their Weight is not set
	lines   []*Model // Weights and Bias of the regression, by penalty
	forest  []Tree
}

// sharedRows has the weighted regressions and the trees that were fitted to some of the tools, so that each is fitted once: leaving
// out tool a, and then tool b to choose what the model is made of, leaves the tools that leaving out b and then a does. It is
// for one table of rows and one Settings, and safe for concurrent use.
type sharedRows struct {
	mu    sync.Mutex
	known map[string]func() *steady
	ranks score.Known
}

// NewShared returns one that has nothing.
func NewShared() *sharedRows { return &sharedRows{known: make(map[string]func() *steady)} }

// steady fits the weighted regression and the trees on all tools but those held, unless s has them. It
// returns nil if no column follows the life of every tool.
func (r *regression) steady(held []int, alphas []float64, s Settings) *steady {
	var lives []score.Life
	name := fmt.Sprint(alphas, r.references != nil)
	for k, of := range r.chosen {
		if !slices.Contains(held, k) {
			lives = append(lives, score.Life{Tool: r.rows.Tool[of[0]], Rows: of})
			name += fmt.Sprintf(" %d %q", len(of), r.rows.Tool[of[0]])
		}
	}
	s.Shared.mu.Lock()
	fit, known := s.Shared.known[name]
	if !known {
		fit = sync.OnceValue(func() *steady { return r.fitSteady(lives, alphas, s) })
		s.Shared.known[name] = fit
	}
	s.Shared.mu.Unlock()
	return fit()
}

func (r *regression) fitSteady(lives []score.Life, alphas []float64, set Settings) *steady {
	var rows []int
	for _, l := range lives {
		rows = append(rows, l.Rows...)
	}
	rank := set.Shared.ranks.Rank(r.rows.Columns, r.rows.Row, lives)
	rank.Exclude(r.excluded)
	kept := rank.Kept()
	if len(kept) == 0 {
		return nil
	}
	s := &steady{columns: len(kept)}
	var factors []float64
	var squares float64
	for _, c := range kept[:min(len(kept), mostInputs/2)] {
		forms := []form{raw, difference}
		if r.positive(rows, c) {
			forms = []form{log, LogRatio}
		}
		if r.references == nil {
			forms = forms[:1]
		}
		for _, f := range forms {
			s.inputs = append(s.inputs, r.input(rows, c, f))
			factors = append(factors, rank.Weight[c])
			squares += rank.Weight[c] * rank.Weight[c]
		}
	}
	n, p := len(rows), len(s.inputs)
	z := blas64.General{Rows: n, Cols: p, Stride: p, Data: make([]float64, n*p)}
	first := min(p, forestInputs)
	grown := make([]float64, 0, n*first)
	roots := make([]float64, n)
	for k, i := range rows {
		row := z.Data[k*p : (k+1)*p]
		for c := range row {
			row[c] = r.value(&s.inputs[c], i)
		}
		grown = append(grown, row[:first]...)
		roots[k] = math.Sqrt(r.rows.WearUM[i])
	}
	s.forest = forest(grown, first, roots, set.Seed)
	for c := range factors {
		factors[c] *= math.Sqrt(total / squares)
	}
	s.lines = r.weigh(z, roots, factors, alphas)
	return s
}

// positive reports whether a column is positive in all of the rows that have it.
func (r *regression) positive(rows []int, c int) bool {
	for _, i := range rows {
		if r.rows.Row(i)[c] <= 0 { // NaN is not
			return false
		}
	}
	return true
}

// value returns an input of row i.
func (r *regression) value(in *Input, i int) float64 {
	if r.references == nil {
		return in.of(r.rows.Row(i), nil)
	}
	return in.of(r.rows.Row(i), r.references[i])
}

// input returns one form of a column with its mean and standard deviation over the rows.
func (r *regression) input(rows []int, c int, f form) Input {
	in := Input{Column: c, Form: f}
	var n, sum float64
	for _, i := range rows {
		var ref float32
		if f.relative() {
			ref = r.references[i][c]
		}
		if v := f.of(r.rows.Row(i)[c], ref); finite(v) { // Welford's updates
			n++
			d := v - in.Center
			in.Center += d / n
			sum += d * (v - in.Center)
		}
	}
	in.Scale = math.Sqrt(sum / max(n, 1))
	if !(in.Scale > 1e-9*math.Abs(in.Center)) { // rounding is not variation
		in.Scale = 1
	}
	return in
}

// weigh returns the ridge regressions of roots on z, whose columns it multiplies by the
// factors; the weights that it returns are for z as it was. It takes the means off z
// and roots.
func (r *regression) weigh(z blas64.General, roots, factors, alphas []float64) []*Model {
	n, p := z.Rows, z.Cols
	sum, y := make([]float64, p), 0.0
	for i := range n {
		row := z.Data[i*p : (i+1)*p]
		for c := range row {
			row[c] *= factors[c]
			sum[c] += row[c]
		}
		y += roots[i]
	}
	var lines []*Model
	if n < p {
		lines = r.dual(z, roots, sum, y, alphas)
	} else {
		gram := blas64.Symmetric{Uplo: blas.Upper, N: p, Stride: p, Data: make([]float64, p*p)}
		blas64.Syrk(blas.Trans, 1, z, 0, gram)
		cross := make([]float64, p)
		blas64.Gemv(blas.Trans, 1, z, blas64.Vector{N: n, Inc: 1, Data: roots}, 0, blas64.Vector{N: p, Inc: 1, Data: cross})
		lines = r.solve(gram, cross, sum, y, n, alphas)
	}
	for _, m := range lines {
		for c := range m.Weights {
			m.Weights[c] *= factors[c]
		}
	}
	return lines
}

// at returns the inputs of row i.
func (s *steady) at(r *regression, i int) []float64 {
	z := make([]float64, max(len(s.inputs), forestInputs))
	for c := range s.inputs {
		z[c] = r.value(&s.inputs[c], i)
	}
	return z
}

// into stores what the parts of m need of s, with penalty a.
func (s *steady) into(m *Model, a int) {
	m.Inputs, m.Forest, m.Offset = slices.Clone(s.inputs), s.forest, s.lines[a].Bias
	for c := range m.Inputs {
		m.Inputs[c].Weight = s.lines[a].Weights[c]
	}
	if !m.has(Trees) {
		m.Forest = nil
	}
	if !m.has(Weighted) {
		m.Inputs, m.Offset = m.Inputs[:min(len(m.Inputs), forestInputs)], 0
		for c := range m.Inputs {
			m.Inputs[c].Weight = 0
		}
	}
}
