package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/bench/study/stat"
)

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
	order := make([]int, len(methods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(byName.Ranks[i], byName.Ranks[j]) })
	c.test = byName
	c.test.Ranks = nil
	for _, i := range order {
		c.methods = append(c.methods, methods[i])
		c.test.Ranks = append(c.test.Ranks, byName.Ranks[i])
	}
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

// rank returns a method's mean rank.
func (c *comparison) rank(method string) float64 {
	return c.test.Ranks[slices.Index(c.methods, method)]
}
