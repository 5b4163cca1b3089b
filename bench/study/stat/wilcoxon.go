// Package stat compares methods by their scores on many data sets.
//
// A score is better the higher it is. Scores are paired: x[i] and y[i] are those
// of two methods on data set i. A table has one row for each data set and one
// column for each method. Ranks count from 1; equal values share the mean of
// their ranks, the mid-rank. A p-value is the probability of a difference as
// large as the one seen, or larger, between methods that do not differ.
//
// Which tests, and why no t-tests: J. Demšar, "Statistical Comparisons of
// Classifiers over Multiple Data Sets", J. Machine Learning Research 7, 2006.
package stat

import (
	"cmp"
	"math"
	"slices"
)

// alternative is what a test is to tell from "no difference".
type alternative int

// The alternatives.
const (
	Differs alternative = iota // x and y differ, either way: two-sided
	Greater                    // x is above y
)

// wilcoxon is what the signed-rank test finds in pairs.
type wilcoxon struct {
	N     int     // pairs ranked
	Plus  float64 // sum of the ranks of |x−y| where x is above y
	Minus float64 // the same where y is above x
	P     float64 // 1 if N is 0
	Exact bool    // P counts all 2^N signs; otherwise it follows the normal law
}

// Biserial is the matched-pairs rank-biserial correlation, (Plus−Minus)/(Plus+Minus):
// 1 if x is above y in every pair, −1 if it is below, 0 if N is 0.
//
// Source: D. Kerby, "The Simple Difference Formula", Comprehensive Psychology 3, 2014.
func (w wilcoxon) Biserial() float64 {
	if w.N == 0 {
		return 0
	}
	return (w.Plus - w.Minus) / (w.Plus + w.Minus)
}

// exactPairs is up to how many pairs P is counted.
const exactPairs = 50

// SignedRank is the Wilcoxon signed-rank test. Pairs without a difference are
// dropped. P is exact for up to 50 pairs whose differences are all of different
// size; otherwise it follows the normal law, its variance corrected for ties,
// without continuity correction. SignedRank panics if the lengths differ.
func SignedRank(x, y []float64, alternative alternative) wilcoxon {
	d := differences(x, y)
	d = slices.DeleteFunc(d, func(v float64) bool { return v == 0 })
	rank, ties := midRanks(magnitudes(d))
	w := wilcoxon{N: len(d), P: 1}
	for i, v := range d {
		if v > 0 {
			w.Plus += rank[i]
		} else {
			w.Minus += rank[i]
		}
	}
	switch {
	case w.N == 0:
	case w.N <= exactPairs && ties == 0:
		w.Exact = true
		w.P = exactSignedRank(w.N, int(w.Plus), alternative)
	default:
		w.P = w.normal(ties, alternative)
	}
	return w
}

// SignedRankSplit is the variant whose one-sided p-values a paper on ECS-DBN
// prints in its row "Holm post-hoc Test": pairs without a difference are ranked
// as well, half of their ranks counted for either side, and P follows the
// normal law, its variance not corrected for ties.
//
// Source of the figures: C. Zhang et al., "A Cost-Sensitive Deep Belief Network
// for Imbalanced Classification", IEEE TNNLS 30(1), 2019, annex.
func SignedRankSplit(x, y []float64, alternative alternative) wilcoxon {
	d := differences(x, y)
	rank, _ := midRanks(magnitudes(d))
	w := wilcoxon{N: len(d), P: 1}
	for i, v := range d {
		switch {
		case v > 0:
			w.Plus += rank[i]
		case v < 0:
			w.Minus += rank[i]
		default:
			w.Plus += rank[i] / 2
			w.Minus += rank[i] / 2
		}
	}
	if w.N > 0 {
		w.P = w.normal(0, alternative)
	}
	return w
}

// normal returns P by the normal law. Ties is the sum of t³−t over groups of t
// equal magnitudes.
func (w wilcoxon) normal(ties float64, alternative alternative) float64 {
	n := float64(w.N)
	z := (w.Plus - n*(n+1)/4) / math.Sqrt(n*(n+1)*(2*n+1)/24-ties/48)
	if alternative == Greater {
		return normalTail(z)
	}
	return min(1, 2*normalTail(math.Abs(z)))
}

// exactSignedRank returns P for n ranks, of which those with a plus sum to plus.
func exactSignedRank(n, plus int, alternative alternative) float64 {
	// ways[s] is how many subsets of 1..n sum to s, at most 2⁵⁰: exact in a float64.
	total := n * (n + 1) / 2
	ways := make([]float64, total+1)
	ways[0] = 1
	for r := 1; r <= n; r++ {
		for s := r * (r + 1) / 2; s >= r; s-- {
			ways[s] += ways[s-r]
		}
	}
	tail := func(from int) float64 {
		sum := 0.
		for _, w := range ways[from:] {
			sum += w
		}
		return sum / math.Exp2(float64(n))
	}
	if alternative == Greater {
		return tail(plus)
	}
	return min(1, 2*tail(max(plus, total-plus)))
}

// differences returns x−y to twelve digits behind the point: 0.9−0.8 and 0.8−0.7
// are of equal size, as they are not in a float64.
func differences(x, y []float64) []float64 {
	if len(x) != len(y) {
		panic("stat: pairs of different length")
	}
	d := make([]float64, len(x))
	for i := range x {
		d[i] = math.Round((x[i]-y[i])*1e12) / 1e12
	}
	return d
}

func magnitudes(d []float64) []float64 {
	a := make([]float64, len(d))
	for i, v := range d {
		a[i] = math.Abs(v)
	}
	return a
}

// midRanks returns the rank of each value, the least being 1, and the sum of
// t³−t over groups of t equal values.
func midRanks(v []float64) (rank []float64, ties float64) {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	rank = make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			rank[i] = float64(from+to+1) / 2
		}
		t := float64(to - from)
		ties += t*t*t - t
		from = to
	}
	return rank, ties
}

// normalTail is the probability that a standard normal variable exceeds z.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
