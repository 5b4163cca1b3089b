package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/imbalance"
)

// Metric is a figure of a cell.
type Metric int

// The metrics. All but Seconds are at most 1, and better the higher they are.
const (
	Accuracy Metric = iota
	GMean
	AUC
	F1
	MCC
	Balanced
	Precision
	Recall
	Seconds // of training
	metrics
)

// String returns what tables call the metric.
func (m Metric) String() string {
	return [metrics]string{"accuracy", "G-mean", "AUC", "F1", "MCC", "balanced accuracy", "precision", "recall", "seconds"}[m]
}

func (m Metric) of(c *imbalance.Cell) float64 {
	return [metrics]float64{c.Accuracy, c.GMean, c.AUC, c.F1, c.MCC, c.BalancedAccuracy, c.Precision, c.Recall, c.Seconds}[m]
}

// folds is how many folds a set has.
const folds = 5

// score is one method on one set.
type score struct {
	trials int              // with all their folds
	mean   [metrics]float64 // over trials, of means over folds
	spread [metrics]float64 // over trials; NaN if there is but one
}

// pair is a method and a set.
type pair struct{ method, set string }

// board is the scores of all methods on all sets.
type board struct {
	methods []string                  // sorted
	sets    []string                  // sorted
	cells   map[pair][]imbalance.Cell // by trial and fold
	scores  map[pair]score            // of pairs with at least one whole trial
}

// newBoard reports a cell that is there twice.
func newBoard(cells []imbalance.Cell) (*board, error) {
	b := &board{cells: map[pair][]imbalance.Cell{}, scores: map[pair]score{}}
	methods, sets := map[string]bool{}, map[string]bool{}
	for _, c := range cells {
		k := pair{c.Method, c.Dataset}
		b.cells[k] = append(b.cells[k], c)
		methods[c.Method], sets[c.Dataset] = true, true
	}
	b.methods = slices.Sorted(maps.Keys(methods))
	b.sets = slices.Sorted(maps.Keys(sets))
	for k, of := range b.cells {
		slices.SortFunc(of, byTrial)
		for i := range of[1:] {
			if byTrial(of[i], of[i+1]) == 0 {
				return nil, fmt.Errorf("%s on %s, trial %d, fold %d: there are two such cells; name each file once", k.method, k.set, of[i].Trial, of[i].Fold)
			}
		}
		if s := newScore(of); s.trials > 0 {
			b.scores[k] = s
		}
	}
	return b, nil
}

func byTrial(a, b imbalance.Cell) int { return cmp.Or(a.Trial-b.Trial, a.Fold-b.Fold) }

// newScore leaves out trials that lack a fold.
func newScore(cells []imbalance.Cell) score {
	var trials [][metrics]float64
	for from := 0; from < len(cells); {
		to := from
		var mean [metrics]float64
		for ; to < len(cells) && cells[to].Trial == cells[from].Trial; to++ {
			for m := range metrics {
				mean[m] += m.of(&cells[to])
			}
		}
		if to-from == folds {
			for m := range mean {
				mean[m] = imbalance.Exact(mean[m] / folds)
			}
			trials = append(trials, mean)
		}
		from = to
	}
	s := score{trials: len(trials)}
	for m := range metrics {
		for _, t := range trials {
			s.mean[m] += t[m]
		}
		s.mean[m] = imbalance.Exact(s.mean[m] / float64(len(trials)))
		var of []float64
		for _, t := range trials {
			of = append(of, t[m])
		}
		if s.spread[m] = math.NaN(); len(of) > 1 {
			s.spread[m] = stat.StdDev(of, nil)
		}
	}
	return s
}

// has reports whether the method has a score on every one of the sets.
func (b *board) has(method string, sets []string) bool {
	return !slices.ContainsFunc(sets, func(set string) bool {
		_, ok := b.scores[pair{method, set}]
		return !ok
	})
}

// column returns a method's scores on sets.
func (b *board) column(method string, m Metric, sets []string) []float64 {
	v := make([]float64, len(sets))
	for i, set := range sets {
		v[i] = b.scores[pair{method, set}].mean[m]
	}
	return v
}

// trials is how many trials a method has on each of the sets, at least.
func (b *board) trials(method string, sets []string) int {
	least := math.MaxInt
	for _, set := range sets {
		least = min(least, b.scores[pair{method, set}].trials)
	}
	return least
}

// shared returns the scores of two methods on a set in the trials and folds that
// both have.
func (b *board) shared(x, y, set string, m Metric) (xs, ys []float64) {
	mine, theirs := b.cells[pair{x, set}], b.cells[pair{y, set}]
	for i, j := 0, 0; i < len(mine) && j < len(theirs); {
		switch order := byTrial(mine[i], theirs[j]); {
		case order < 0:
			i++
		case order > 0:
			j++
		default:
			xs, ys = append(xs, m.of(&mine[i])), append(ys, m.of(&theirs[j]))
			i, j = i+1, j+1
		}
	}
	return xs, ys
}

// gaps says which methods lack which sets, a line each.
func (b *board) gaps(sets []string) []string {
	var lines []string
	for _, m := range b.methods {
		var lacking []string
		for _, set := range sets {
			if !b.has(m, []string{set}) {
				lacking = append(lacking, set)
			}
		}
		if n := len(lacking); n > 6 {
			lines = append(lines, fmt.Sprintf("%s: %d of %d sets", m, n, len(sets)))
		} else if n > 0 {
			lines = append(lines, m+": "+strings.Join(lacking, ", "))
		}
	}
	return lines
}

func mean(v []float64) float64 { return stat.Mean(v, nil) }
