package stat

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

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
