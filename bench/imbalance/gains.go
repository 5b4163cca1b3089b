package imbalance

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// addCopies adds n copies of the rows to train on. In each copy every group reads as if its
// sensors had other gains: its column j is multiplied by exp(σ[j]·z), where z ~ N(0,1) is drawn by
// copy, group and column, in this order, and σ is spread. Copies stay in the group of their
// row, so that a fold holds a tool out with all its copies.
func (t *Task) addCopies(n int, rng *rand.Rand) {
	rows, groups := len(t.Y), slices.Compact(slices.Sorted(slices.Values(t.Groups)))
	sigma := t.spread(groups)
	for range n {
		gains := make(map[string][]float64)
		for _, g := range groups {
			for _, s := range sigma {
				gains[g] = append(gains[g], math.Exp(s*rng.NormFloat64()))
			}
		}
		for i := range rows {
			for j, v := range t.X.Row(i) {
				t.X.Data = append(t.X.Data, float32(float64(v)*gains[t.Groups[i]][j]))
			}
		}
		t.X.Rows += rows
		t.Y, t.Groups = append(t.Y, t.Y[:rows]...), append(t.Groups, t.Groups[:rows]...)
	}
}

// spread returns, by column, the standard deviation between the groups to train on of the
// logarithm of a group's level: the root mean square of its healthy rows, so that wear does not
// count. A level of 0 has no logarithm, and is left out; fewer than two levels have no spread.
func (t *Task) spread(groups []string) []float64 {
	square, healthy := make(map[string][]float64), make(map[string]float64)
	for _, g := range groups {
		square[g] = make([]float64, t.X.Cols)
	}
	for i, g := range t.Groups {
		if t.Y[i] == 0 {
			healthy[g]++
			for j, v := range t.X.Row(i) {
				square[g][j] += float64(v) * float64(v)
			}
		}
	}
	sigma := make([]float64, t.X.Cols)
	for j := range sigma {
		var levels []float64
		for _, g := range groups {
			if square[g][j] > 0 {
				levels = append(levels, math.Log(square[g][j]/healthy[g])/2)
			}
		}
		if len(levels) > 1 {
			sigma[j] = stat.StdDev(levels, nil)
		}
	}
	return sigma
}
