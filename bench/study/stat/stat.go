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

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
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
	w, ties := signedRanks(slices.DeleteFunc(differences(x, y), func(v float64) bool { return v == 0 }))
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
	w, _ := signedRanks(differences(x, y))
	if w.N > 0 {
		w.P = w.normal(0, alternative)
	}
	return w
}

// signedRanks ranks differences by their size. Ties is as in midRanks.
func signedRanks(d []float64) (w wilcoxon, ties float64) {
	size := make([]float64, len(d))
	for i, v := range d {
		size[i] = math.Abs(v)
	}
	rank, ties := midRanks(size)
	w = wilcoxon{N: len(d), P: 1}
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
	return w, ties
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

// AverageRanks returns the mean rank of each column over the rows of the table;
// the highest score of a row has rank 1. It panics if rows differ in length.
func AverageRanks(table [][]float64) []float64 {
	if len(table) == 0 {
		return nil
	}
	mean := make([]float64, len(table[0]))
	negative := make([]float64, len(mean))
	for _, row := range table {
		if len(row) != len(mean) {
			panic("stat: rows of different length")
		}
		for j, v := range row {
			negative[j] = -v
		}
		rank, _ := midRanks(negative)
		for j, r := range rank {
			mean[j] += r / float64(len(table))
		}
	}
	return mean
}

// Friedman is what the test of that name finds in a table of N rows and K
// columns: whether any column differs from any other.
type Friedman struct {
	N, K      int
	Ranks     []float64 // AverageRanks
	ChiSquare float64   // with K−1 degrees of freedom, corrected for ties
	P         float64
	// F is the statistic of Iman and Davenport, less conservative than ChiSquare,
	// with K−1 and (K−1)(N−1) degrees of freedom. It is infinite where all rows
	// have the same order.
	F  float64
	FP float64
}

// NewFriedman tests a table of at least two rows and two columns. Where every
// row is all ties, both p-values are 1.
//
// Source: Demšar 2006, §3.2.2; W. Conover, Practical Nonparametric Statistics,
// 1999, §5.8 for ties.
func NewFriedman(table [][]float64) Friedman {
	if len(table) < 2 || len(table[0]) < 2 {
		panic("stat: Friedman's test needs two rows and two columns")
	}
	f := Friedman{N: len(table), K: len(table[0]), Ranks: AverageRanks(table), P: 1, FP: 1}
	n, k := float64(f.N), float64(f.K)
	ties, spread := 0., 0.
	for _, row := range table {
		_, t := midRanks(row)
		ties += t
	}
	for _, r := range f.Ranks {
		spread += (r - (k+1)/2) * (r - (k+1)/2)
	}
	correction := 1 - ties/(n*(k*k*k-k))
	if correction <= 0 {
		return f
	}
	f.ChiSquare = 12 * n / (k * (k + 1)) * spread / correction
	f.P = mathext.GammaIncRegComp((k-1)/2, f.ChiSquare/2)
	left := n*(k-1) - f.ChiSquare
	if left <= 1e-9*n*(k-1) {
		f.F, f.FP = math.Inf(1), 0
		return f
	}
	f.F = (n - 1) * f.ChiSquare / left
	d1, d2 := k-1, (k-1)*(n-1)
	f.FP = mathext.RegIncBeta(d2/2, d1/2, d2/(d2+d1*f.F))
	return f
}

// AgainstControl returns, for each column but control, the two-sided p-value of
// having the control's mean rank, not yet adjusted; the control's own p-value
// is NaN. (Demšar 2006, §3.2.2: z = (R_i − R_0) / √(K(K+1)/(6N)).)
func (f Friedman) AgainstControl(control int) []float64 {
	p := make([]float64, f.K)
	se := math.Sqrt(float64(f.K*(f.K+1)) / float64(6*f.N))
	for j, r := range f.Ranks {
		p[j] = min(1, 2*normalTail(math.Abs(r-f.Ranks[control])/se))
	}
	p[control] = math.NaN()
	return p
}

// CriticalDifference is how far apart two mean ranks have to be for the methods
// to differ at level alpha, all pairs being compared (Nemenyi).
func (f Friedman) CriticalDifference(alpha float64) float64 {
	return rangeQuantile(f.K, 1-alpha) / math.Sqrt2 * math.Sqrt(float64(f.K*(f.K+1))/float64(6*f.N))
}

// rangeQuantile returns q such that k independent standard normal variables lie
// within q of each other with probability p: the studentized range with infinite
// degrees of freedom.
func rangeQuantile(k int, p float64) float64 {
	low, high := 0., 40.
	for range 60 {
		if q := (low + high) / 2; rangeProbability(k, q) < p {
			low = q
		} else {
			high = q
		}
	}
	return (low + high) / 2
}

// rangeProbability returns k ∫ φ(x) (Φ(x) − Φ(x−q))^(k−1) dx.
func rangeProbability(k int, q float64) float64 {
	return float64(k) * quad.Fixed(func(x float64) float64 {
		return distuv.UnitNormal.Prob(x) * math.Pow(normalTail(-x)-normalTail(q-x), float64(k-1))
	}, -9, 9, 300, nil, 0)
}

// Holm adjusts p-values of several tests so that the probability of even one
// false finding among them is at most the level they are compared with. NaN is
// no test and stays NaN. The result is new.
//
// Source: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
// Scandinavian J. of Statistics 6, 1979.
func Holm(p []float64) []float64 {
	adjusted := slices.Clone(p)
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	least := 0.
	for r, i := range order {
		least = max(least, min(1, float64(len(order)-r)*p[i]))
		adjusted[i] = least
	}
	return adjusted
}

// WinLoseDraw counts pairs in which x is above y, below it, and within tolerance.
func WinLoseDraw(x, y []float64, tolerance float64) (win, lose, draw int) {
	for _, d := range differences(x, y) {
		switch {
		case d > tolerance:
			win++
		case d < -tolerance:
			lose++
		default:
			draw++
		}
	}
	return win, lose, draw
}

// Cliff is Cliff's delta: the probability that a value of x is above one of y,
// less the probability that it is below; pairs are not used. From 0.147 on one
// speaks of a small effect, from 0.33 of a medium, from 0.474 of a large one.
// It is 0 without values.
//
// Source: N. Cliff, "Dominance Statistics", Psychological Bulletin 114, 1993;
// the names of sizes: J. Romano et al., 2006.
func Cliff(x, y []float64) float64 {
	if len(x) == 0 || len(y) == 0 {
		return 0
	}
	sum := 0
	for _, a := range x {
		for _, b := range y {
			sum += cmp.Compare(a, b)
		}
	}
	return float64(sum) / float64(len(x)*len(y))
}

// Spearman is the correlation of the ranks of x and y; NaN if one of them is
// constant. It panics if the lengths differ.
func Spearman(x, y []float64) float64 {
	rx, _ := midRanks(x)
	ry, _ := midRanks(y)
	return stat.Correlation(rx, ry, nil)
}

// Median returns the middle one of x, or the mean of the two in the middle; NaN of none.
func Median(x []float64) float64 {
	n := len(x)
	if n == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(n-1)/2] + x[n/2]) / 2
}
