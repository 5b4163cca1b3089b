package classify

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// HeldOut is what costs were chosen on, for them to be chosen again once rows have other labels. Its posteriors are
// float32 numbers.
type HeldOut struct {
	ByGroup     bool      // rows were held out with their groups
	Folds       int       // networks that judged rows held out
	Temperature float64   // of the classifier's network
	Posterior   []float64 // N×K, row-major, as networks gave them: neither tempered nor bounded by the guard
	Fold        []int     // by row: the fold that held it out; -1: the classifier judged it, which never saw a label of its group
	Vote        []float64 // by row, of the guard's experts that had not seen its group; NaN: all abstained. Nil without a guard

	// Early are the rows of Table.Unlabelled that counted as healthy in fine-tuning, ascending.
	Early []int
}

// keepHeldOut notes in r what costs are chosen on, before posteriors are tempered.
func (r *Report) keepHeldOut(posterior []float64, folds dealt, early rowSet) {
	h := &HeldOut{ByGroup: r.Costs.Posteriors == byGroup, Folds: folds.folds, Posterior: slices.Clone(posterior), Fold: make([]int, len(folds.fold))}
	for i, f := range folds.fold {
		h.Fold[i] = int(f)
	}
	early.each(func(i int) { h.Early = append(h.Early, i) })
	r.HeldOut = h
}

// toFloat32 rounds posteriors of several networks that were joined to what HeldOut keeps; one network gives such posteriors already.
func toFloat32(x []float64) {
	for i, v := range x {
		x[i] = float64(float32(v))
	}
}

// JudgeUnlabelled returns what HeldOut has of rows that c was trained without a label of: posteriors of the network before the
// temperature, and the votes of the guard, nil without one.
func (c *Classifier) JudgeUnlabelled(x dbn.Rows, temperature float64) (posterior, vote []float64, err error) {
	rows, columns := x.Shape()
	k := c.Classes()
	posterior = make([]float64, rows*k)
	if err := eachPosterior(x, c.encoder, c.network, func(i int, p []float64) { copy(posterior[i*k:], p) }); err != nil {
		return nil, nil, err
	}
	temper(posterior, k, 1/temperature)
	toFloat32(posterior)
	if c.guard == nil {
		return posterior, nil, nil
	}
	vote = make([]float64, rows)
	s, row := c.guard.NewScorer(), make([]float32, columns)
	for i := range vote {
		if err := x.ReadRows(row, i); err != nil {
			return nil, nil, err
		}
		vote[i] = math.NaN()
		if j := s.Judge(row, math.NaN()); j.Voting > 0 {
			vote[i] = float64(float32(j.Vote))
		}
	}
	return posterior, vote, nil
}

// Recost returns c with costs, temperature and cut of the guard chosen again on rows whose classes are y now and, as the costs
// of c were chosen, were was; a negative class in was says that the row had no part in that. Groups are the names by which
// rows were held out. The rest of the network is the one of c. With the same rows and classes the result is equal to c.
//
// Of the Report only figures of costs, Posterior, Held, Warnings and sizes are filled in. Errors wrap ErrSize, ErrTooFew,
// errClasses or ErrSettings, or are the cause of ctx.
func (c *Classifier) Recost(ctx context.Context, h *HeldOut, y, was []int, groups []string, s Settings) (*Classifier, *Report, error) {
	k := c.Classes()
	if n := len(y); !c.isOf(h, n) || len(was) != n || len(groups) != n {
		return nil, nil, fmt.Errorf("classify: %d labels for %d posteriors of %d classes, %d folds, %d groups: %w", n, len(h.Posterior), k, len(h.Fold), len(groups), ErrSize)
	}
	counts := countClasses(y)
	if len(counts) != k || slices.Contains(counts, 0) {
		return nil, nil, fmt.Errorf("classify: choosing costs of %d classes on rows of %v: %w: each needs some", k, counts, errClasses)
	}
	s = s.withDefaults()
	if err := s.Costs.check(k); err != nil {
		return nil, nil, err
	}
	_, names := NumberGroups(groups)
	r := &Report{Rows: len(y), Columns: c.Columns(), Inputs: c.encoder.Inputs(), ClassCounts: counts, Groups: len(names), Warnings: []string{}}
	r.Costs.Folds, r.Costs.Posteriors = h.Folds, byRow
	if h.ByGroup {
		r.Costs.Posteriors = byGroup
	}
	s = s.settle(y, groups, k, r)
	s.Costs.JADE.Seed = DeriveSeed(s.Seed, searchSeed)
	own := func() (judged, error) {
		return judged{}, fmt.Errorf("posteriors held out are near constant, and posteriors of training take the rows: %w: train again", ErrTooFew)
	}
	out := &Classifier{encoder: c.encoder, network: c.network, guard: c.guard}
	var err error
	if out.costs, err = keepCosts(ctx, own, newJudged(k, slices.Clone(h.Posterior), y), h.dealt(), s.Costs, r); err != nil {
		return nil, nil, fmt.Errorf("classify: %w", err)
	}
	if r.Costs.Temperature != h.Temperature {
		out.network = c.network.Temper(r.Costs.Temperature / h.Temperature)
	}
	if c.guard != nil {
		out.guard = c.guard.Recut(h.Vote, was, y)
		out.bound(h.Vote, r.Posterior)
		r.Held = scoresOf(out.costs, r.Posterior, y)
	}
	return out, r, nil
}

// isOf reports whether h is of n rows and of a classifier like c.
func (c *Classifier) isOf(h *HeldOut, n int) bool {
	return len(h.Posterior) == n*c.Classes() && len(h.Fold) == n && (c.guard == nil || len(h.Vote) == n)
}

// dealt returns the folds; rows that the classifier judged are one more.
func (h *HeldOut) dealt() dealt {
	d := dealt{make([]int32, len(h.Fold)), h.Folds}
	for i, f := range h.Fold {
		if f < 0 {
			f, d.folds = h.Folds, h.Folds+1
		}
		d.fold[i] = int32(f)
	}
	return d
}

// bound lets the guard of c, given its votes, bound posteriors of rows held out.
func (c *Classifier) bound(vote, posterior []float64) {
	for i, v := range vote {
		if p := posterior[2*i : 2*i+2]; v == v {
			c.costs.set(p, c.guard.Bounded(v, c.Score(p)))
		}
	}
}

// Judged returns the posteriors of h, N×K, as c gives them to rows: tempered, and bounded by the guard.
func (c *Classifier) Judged(h *HeldOut) []float64 {
	posterior := slices.Clone(h.Posterior)
	temper(posterior, c.Classes(), h.Temperature)
	if c.guard != nil {
		c.bound(h.Vote, posterior)
	}
	return posterior
}

// Rows returns what h has of some rows.
func (h *HeldOut) Rows(rows []int) *HeldOut {
	k := len(h.Posterior) / len(h.Fold)
	out := &HeldOut{ByGroup: h.ByGroup, Folds: h.Folds, Temperature: h.Temperature}
	for _, i := range rows {
		out.Posterior, out.Fold = append(out.Posterior, h.Posterior[i*k:(i+1)*k]...), append(out.Fold, h.Fold[i])
		if h.Vote != nil {
			out.Vote = append(out.Vote, h.Vote[i])
		}
	}
	return out
}

// Shift returns by how much the weight of a class against another one differs between two costs at most, as a logarithm.
func Shift(a, b CostVector) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	other := b.logWeights()
	for j, v := range a.logWeights() {
		low, high = min(low, other[j]-v), max(high, other[j]-v)
	}
	return high - low
}
