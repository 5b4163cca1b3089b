package kernel

import (
	"math"
	"slices"
)

const (
	digitBits = 11
	digits    = (64 + digitBits - 1) / digitBits
	fewOdds   = 1 << 12 // that comparing sorts faster
)

// sortOdds sorts x, whose values are not negative, in ascending order, and
// returns it or another slice with its values. The bits of such floats order as
// they do, so a radix sort from the last digit to the first does it, without
// those digits that all values share.
func sortOdds(x []float64) []float64 {
	if len(x) < fewOdds {
		slices.Sort(x)
		return x
	}
	var counts [digits][1 << digitBits]int
	for _, v := range x {
		bits := math.Float64bits(v)
		for d := range digits {
			counts[d][bits>>(d*digitBits)&(1<<digitBits-1)]++
		}
	}
	other := make([]float64, len(x))
	for d := range digits {
		count, shift := &counts[d], d*digitBits
		if count[math.Float64bits(x[0])>>shift&(1<<digitBits-1)] == len(x) {
			continue
		}
		next := 0
		for i, n := range count {
			count[i] = next
			next += n
		}
		for _, v := range x {
			digit := math.Float64bits(v) >> shift & (1<<digitBits - 1)
			other[count[digit]] = v
			count[digit]++
		}
		x, other = other, x
	}
	return x
}
