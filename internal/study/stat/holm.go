package stat

import (
	"cmp"
	"math"
	"slices"
)

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
// It is 0 if there are no values.
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
