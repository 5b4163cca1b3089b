package vote

import "math"

// Recut returns g with its cut where rows are of classes y that were of classes was when Fit chose it. Votes are of rows
// held out; NaN of a row on which all experts abstained. A negative class is of a row that had no part in the choice. The cut moves by as
// much as the rule of Fit moves on these votes, so that equal classes leave it as it is. Experts stay as they are.
func (g *Guard) Recut(vote []float64, was, y []int) *Guard {
	before, now := votesOf(vote, was), votesOf(vote, y)
	for k := range 2 {
		if len(before[k]) == 0 || len(now[k]) == 0 {
			return g
		}
	}
	out := *g
	out.cut += cutOf(now) - cutOf(before)
	return &out
}

// votesOf returns copies of the votes of each class.
func votesOf(vote []float64, class []int) (votes [2][]float64) {
	for i, k := range class {
		if k >= 0 && !math.IsNaN(vote[i]) {
			votes[k] = append(votes[k], vote[i])
		}
	}
	return votes
}
