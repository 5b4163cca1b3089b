// Package costsearch counts, for many vectors of class weights, the rows of each
// class that are decided right: what a search for costs does thousands of times
// on the same posteriors.
//
// A row has a posterior P_j for each of K classes, and with the weights w it is
// decided for argmax_j w_j·P_j, of equals the lowest. Weights and posteriors are
// not negative. The recall of a class is the share of its rows that are decided
// right.
//
// For two classes only the odds P1/P0 matter: [Pair] sorts them once, and then
// an evaluation is two binary searches and the optimum one sweep. For more,
// [Rows] reads the posteriors once for all weights, in blocks that fit the first
// cache.
package costsearch

// Tally is what one vector of weights gives.
type Tally struct {
	// Right[k] is the number of rows of class k that are decided for k.
	Right []int
	// Share[k] is the mean of w_k·P_k / Σ_j w_j·P_j over the rows of class k, 0
	// where the sum is 0: as Right, but never flat.
	Share []float64
}

// NewTallies returns n tallies of k classes for Pair and Rows to write to.
func NewTallies(n, k int) []Tally {
	t := make([]Tally, n)
	for i := range t {
		t[i] = Tally{Right: make([]int, k), Share: make([]float64, k)}
	}
	return t
}
