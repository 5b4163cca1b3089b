package unknown

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

const (
	noveltyDirections = 64 // principal directions, at most
	noveltyRows       = 4096
	noveltyFolds      = 10
	foldStream        = 2 // of the random draws that deal out folds
	leastNoveltyTools = 3

	// leastVariance is the least σ² in standard deviations squared: features that
	// always go together would otherwise make any difference between them novel.
	leastVariance = 0.01
)

// FitNovelty fits to the rows of x, of which more than 4096 are thinned evenly, and
// calibrates p-values on whole groups that a fit has not seen: each tenth of them, or
// each one if there are fewer. All groups weigh the same in a p-value, however many
// rows they have, so a row of a new group that is as usual is novel, with a p-value up
// to rate, in about that share of rows on average; Promise says what is certain of few
// groups. Of the features those count for which counts is true, all if it is nil. It
// keeps none of its arguments. It returns classify.ErrTooFew if these rows are of fewer than three
// groups, no row with two features that vary, or too few rows for the rate.
//
// P has the p-values of the rows that it looked at, Rows their indices: of each
// group by the distances of the others.
func FitNovelty(ctx context.Context, x dbn.Rows, groups []string, counts []bool, rate float64, seed uint64, workers int) (*Novelty, HeldNovelty, error) {
	fail := func(err error) (*Novelty, HeldNovelty, error) {
		return nil, HeldNovelty{}, fmt.Errorf("unknown: %w", err)
	}
	if !(rate > 0 && rate < 1) {
		return fail(fmt.Errorf("novel up to a p-value of %v: %w: must be between 0 and 1", rate, classify.ErrSettings))
	}
	all, columns := x.Shape()
	if len(groups) != all {
		return fail(fmt.Errorf("%d groups for %d rows: %w", len(groups), all, classify.ErrSize))
	}
	if counts != nil && len(counts) != columns {
		return fail(fmt.Errorf("%d columns of which some count, of %d: %w", len(counts), columns, classify.ErrSize))
	}
	rows := evenly(all, noveltyRows)
	some := make([]string, len(rows))
	for i, row := range rows {
		some[i] = groups[row]
	}
	number, names := classify.NumberGroups(some) // thinning may leave out small ones
	if len(names) < leastNoveltyTools {
		return fail(fmt.Errorf("%d groups: %w: novelty needs %d", len(names), classify.ErrTooFew, leastNoveltyTools))
	}
	z, err := dbn.InMemory(classify.Part(x, rows))
	if err != nil {
		return fail(err)
	}
	folds := classify.GroupKFold(make([]int, len(some)), some, noveltyFolds, rand.New(rand.NewPCG(seed, foldStream)))
	n, distances, err := fitFolds(ctx, z, counts, folds, seed, workers)
	if err != nil {
		return fail(err)
	}
	n.Rate, n.tools = rate, newToolShares(negated(distances), number, len(names))
	if 1/float64(1+len(n.tools.at)) > rate {
		return fail(fmt.Errorf("%d rows that differ: %w: for a p-value of %v", len(n.tools.at), classify.ErrTooFew, rate))
	}
	return n, heldNovelty(rows, some, distances), nil
}

// fitFolds fits to all rows and to the training rows of each fold. It returns the fit
// to all, and the distance of each row by the fit that had not seen it. Of several
// errors it returns the one of the fit to all, or else of the first fold.
func fitFolds(ctx context.Context, z dbn.Matrix, counts []bool, folds []classify.Fold, seed uint64, workers int) (*Novelty, []float64, error) {
	var whole *Novelty
	distances := make([]float64, z.Rows)
	errs := make([]error, 1+len(folds))
	var g errgroup.Group // a failed fit ends no other, or the first error would depend on the workers
	g.SetLimit(workers)
	g.Go(func() error {
		whole, errs[0] = fitNovelty(z, counts, seed)
		return nil
	})
	for f, fold := range folds {
		g.Go(func() error {
			if errs[f+1] = context.Cause(ctx); errs[f+1] == nil {
				errs[f+1] = distancesOf(fold, z, counts, classify.DeriveSeed(seed, uint64(f+1)), distances)
			}
			return nil
		})
	}
	errs = append(errs, g.Wait()) // which is none
	return whole, distances, cmp.Or(errs...)
}

// distancesOf writes the distances of the fold's test rows by a fit to its training rows.
func distancesOf(fold classify.Fold, z dbn.Matrix, counts []bool, seed uint64, distances []float64) error {
	rest, err := dbn.InMemory(classify.Part(z, fold.Train))
	if err != nil {
		return err
	}
	n, err := fitNovelty(rest, counts, seed)
	if err != nil {
		return err
	}
	s := n.NewScorer()
	for _, i := range fold.Test {
		distances[i] = s.Distance(z.Row(i))
	}
	return nil
}

// HeldNovelty are p-values of rows whose group neither the fit nor the calibration has
// seen.
type HeldNovelty struct {
	Rows []int // indices, ascending
	P    []float64
}

// heldNovelty returns the p-value of each row by the distances of the other groups.
func heldNovelty(rows []int, groups []string, distances []float64) HeldNovelty {
	h := HeldNovelty{Rows: make([]int, len(rows)), P: make([]float64, len(rows))}
	number, names := classify.NumberGroups(groups)
	for g := range names {
		var others []float64
		var of []int32
		for i, d := range distances {
			if number[i] != int32(g) {
				others, of = append(others, -d), append(of, number[i])
			}
		}
		shares := newToolShares(others, of, len(names))
		for i, d := range distances {
			if number[i] == int32(g) {
				h.Rows[i], h.P[i] = rows[i], shares.tail(-d)
			}
		}
	}
	return h
}

// evenly returns up to most of the indices below n, evenly spread.
func evenly(n, most int) []int {
	m := min(n, most)
	out := make([]int, m)
	for i := range out {
		out[i] = int(int64(i) * int64(n) / int64(m))
	}
	return out
}

// fitNovelty fits means, standard deviations and principal directions of the columns
// that count, all if counts is nil.
func fitNovelty(x dbn.Matrix, counts []bool, seed uint64) (*Novelty, error) {
	n := &Novelty{center: make([]float64, x.Cols), scale: make([]float64, x.Cols)}
	column := make([]float64, 0, x.Rows)
	used := 0
	for j := range x.Cols {
		if counts != nil && !counts[j] {
			continue
		}
		column = column[:0]
		for i := range x.Rows {
			if v := float64(x.Data[i*x.Cols+j]); finite(v) {
				column = append(column, v)
			}
		}
		if len(column) < 2 || slices.Min(column) == slices.Max(column) {
			continue
		}
		n.center[j], n.scale[j] = meanSD(column)
		if !(n.scale[j] > 0) || !finite(n.scale[j]) {
			n.center[j], n.scale[j] = 0, 0
			continue
		}
		used++
	}
	if used < 2 {
		return nil, fmt.Errorf("%d features vary: %w: novelty needs two", used, classify.ErrTooFew)
	}
	z := make([]float32, x.Rows*x.Cols)
	var total float64
	for i := range x.Rows {
		row := z[i*x.Cols : (i+1)*x.Cols]
		n.standardise(row, x.Row(i))
		total += norm2(row) / float64(max(x.Rows-1, 1))
	}
	q := min(noveltyDirections, used/2, max(x.Rows-1, 1))
	directions, variances := principal(z, x.Rows, x.Cols, q, seed)
	rest := total
	for _, v := range variances {
		rest -= v
	}
	sigma2 := max(rest/float64(used-q), leastVariance)
	n.precision = 1 / sigma2
	for k, v := range variances {
		if v <= sigma2 {
			directions = directions[:k*x.Cols]
			break
		}
		weight := float32(math.Sqrt(1/sigma2 - 1/v))
		for j := range x.Cols {
			directions[k*x.Cols+j] *= weight
		}
	}
	n.basis = directions
	return n, nil
}
