package stat

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

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
