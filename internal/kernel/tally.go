package kernel

// Tally is what one vector of class weights gives. A row has a posterior P_j for
// each of K classes, and with the weights w it is decided for argmax_j w_j·P_j, of
// equals the lowest. Weights and posteriors are not negative. The recall of a class
// is the share of its rows that are decided right.
//
// For two classes only the odds P1/P0 matter: [SortedOdds] sorts them once, and
// then an evaluation is two binary searches and the optimum one sweep. For more,
// [Posteriors] reads the posteriors once for all weights, in blocks that fit the
// first cache.
type Tally struct {
	// Right[k] is the number of rows of class k that are decided for k.
	Right []int
	// Share[k] is the mean of w_k·P_k / Σ_j w_j·P_j over the rows of class k, 0
	// where the sum is 0: as Right, but never flat.
	Share []float64
}

// NewTallies returns n tallies of k classes for SortedOdds and Posteriors to write to.
func NewTallies(n, k int) []Tally {
	t := make([]Tally, n)
	for i := range t {
		t[i] = Tally{Right: make([]int, k), Share: make([]float64, k)}
	}
	return t
}
