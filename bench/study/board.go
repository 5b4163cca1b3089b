package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	gonum "gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/bench/study/stat"
)

// Metric is a figure of a cell.
type Metric int

// The metrics, in the order of [imbalance.Cell.Figures]. All but Seconds are at most 1, and better the higher they are.
const (
	Accuracy Metric = iota
	GMean
	AUC
	Precision
	Recall
	F1
	Seconds // of training
	MCC
	Balanced
	metrics
)

// String returns what tables call the metric.
func (m Metric) String() string {
	return [metrics]string{"accuracy", "G-mean", "AUC", "precision", "recall", "F1", "seconds", "MCC", "balanced accuracy"}[m]
}

func (m Metric) of(c *imbalance.Cell) float64 { return *c.Figures()[m] }

// folds is how many folds a set has.
const folds = 5

type score struct {
	trials int              // with all their folds
	mean   [metrics]float64 // over trials, of means over folds
	spread [metrics]float64 // over trials; NaN if there is but one
}

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
		var of []float64
		for _, t := range trials {
			s.mean[m] += t[m]
			of = append(of, t[m])
		}
		s.mean[m] = imbalance.Exact(s.mean[m] / float64(len(trials)))
		if s.spread[m] = math.NaN(); len(of) > 1 {
			s.spread[m] = gonum.StdDev(of, nil)
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
	for i := range mine {
		if j, ok := slices.BinarySearchFunc(theirs, mine[i], byTrial); ok {
			xs, ys = append(xs, m.of(&mine[i])), append(ys, m.of(&theirs[j]))
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

func mean(v []float64) float64 { return gonum.Mean(v, nil) }

// level is the one that tests are made at.
const level = 0.05

// drawWithin is half of the last digit of four: closer means are a draw.
const drawWithin = 5e-5

// leastPairs is from how many pairs on a signed-rank test can reach the level.
const leastPairs = 6

// comparison is one method, the control, against others by one metric.
type comparison struct {
	metric  Metric
	methods []string // best mean rank first
	control string
	sets    []string
	test    stat.Friedman
	against map[string]versus // by method, without the control
	values  []float64         // of the control, by set
}

// versus is the control against a method.
type versus struct {
	rankP, rankHolm     float64 // z-test of the mean ranks; adjusted
	pairsP, pairsHolm   float64 // signed-rank test over sets; adjusted
	biserial, cliff     float64
	win, lose, draw     int
	clearWin, clearLose int  // sets on which trials and folds tell them apart
	tested              bool // whether there are enough for that
}

// found says in words what the signed-rank test, not adjusted, found.
func (v versus) found() string {
	switch {
	case !(v.pairsP < level):
		return "the two are not told apart"
	case v.biserial > 0:
		return "it is the better one"
	}
	return "it is the worse one"
}

// compare panics if a method lacks a set.
func (b *board) compare(metric Metric, control string, methods, sets []string) comparison {
	c := comparison{metric: metric, control: control, sets: sets, against: map[string]versus{}}
	table := make([][]float64, len(sets))
	for i, set := range sets {
		for _, m := range methods {
			s, ok := b.scores[pair{m, set}]
			if !ok {
				panic(fmt.Sprintf("study: %s has no score on %s", m, set))
			}
			table[i] = append(table[i], s.mean[metric])
		}
	}
	byName := stat.NewFriedman(table)
	rank := make(map[string]float64)
	for i, m := range methods {
		rank[m] = byName.Ranks[i]
	}
	c.methods = slices.SortedStableFunc(slices.Values(methods), func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	c.test = byName
	c.test.Ranks = slices.Sorted(slices.Values(byName.Ranks))
	at := slices.Index(c.methods, control)
	rankP := c.test.AgainstControl(at)
	pairsP := make([]float64, len(c.methods))
	c.values = b.column(control, metric, sets)
	for j, m := range c.methods {
		if j == at {
			pairsP[j] = math.NaN()
			continue
		}
		v := b.versus(&c, m)
		v.rankP, pairsP[j] = rankP[j], v.pairsP
		c.against[m] = v
	}
	rankHolm, pairsHolm := stat.Holm(rankP), stat.Holm(pairsP)
	for j, m := range c.methods {
		if j != at {
			v := c.against[m]
			v.rankHolm, v.pairsHolm = rankHolm[j], pairsHolm[j]
			c.against[m] = v
		}
	}
	return c
}

// versus compares the control with a method, but for what depends on the other methods.
func (b *board) versus(c *comparison, method string) versus {
	theirs := b.column(method, c.metric, c.sets)
	w := stat.SignedRank(c.values, theirs, stat.Differs)
	v := versus{pairsP: w.P, biserial: w.Biserial(), cliff: stat.Cliff(c.values, theirs), tested: true}
	v.win, v.lose, v.draw = stat.WinLoseDraw(c.values, theirs, drawWithin)
	for _, set := range c.sets {
		xs, ys := b.shared(c.control, method, set, c.metric)
		v.tested = v.tested && len(xs) >= leastPairs
		if w := stat.SignedRank(xs, ys, stat.Differs); w.P < level {
			if w.Plus > w.Minus {
				v.clearWin++
			} else {
				v.clearLose++
			}
		}
	}
	return v
}

func (c *comparison) rank(method string) float64 {
	return c.test.Ranks[slices.Index(c.methods, method)]
}
