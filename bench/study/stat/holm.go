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
