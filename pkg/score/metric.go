package score

import "math"

// Metric is the figure that costs maximise: a function of how many rows of each
// class there are and of which share of them is decided right. The empty one is
// GMean.
type Metric string

const (
	// GMean is the default, see [Confusion.GMean]: no class may be
	// given up for another.
	GMean Metric = "gmean"
	// BalancedAccuracy is for those who would trade one class's recall
	// for another's at par, see [Confusion.BalancedAccuracy].
	BalancedAccuracy Metric = "balanced-accuracy"
	// F1 and MCC weigh false alarms by how many there are, so
	// their costs are good for the class ratio of training only. Of two classes;
	// see [Confusion.F1] and [Confusion.MCC].
	F1  Metric = "f1"
	MCC Metric = "mcc"
)

// Metrics are all there are, the default first.
var Metrics = []Metric{GMean, BalancedAccuracy, F1, MCC}

// PairOnly reports whether m is a figure of two classes.
func (m Metric) PairOnly() bool { return m == F1 || m == MCC }

// Value returns m of the given recalls of classes with counts rows each; classes
// without rows do not count.
func (m Metric) Value(counts []int, recall func(class int) float64) float64 {
	switch m {
	case F1, MCC:
		n0, n1 := float64(counts[0]), float64(counts[1])
		tp, tn := recall(1)*n1, recall(0)*n0
		fn, fp := n1-tp, n0-tn
		if m == F1 {
			return 2 * tp / max(tp+fp+n1, 1) // 0 by 0 is 0
		}
		norm := math.Sqrt((tp + fp) * n1 * n0 * (tn + fn))
		if !(norm > 0) {
			return 0
		}
		return (tp*tn - fp*fn) / norm
	}
	product, sum, present := 1.0, 0.0, 0
	for class, n := range counts {
		if n > 0 {
			product *= recall(class)
			sum += recall(class)
			present++
		}
	}
	if m == BalancedAccuracy {
		return sum / float64(max(present, 1))
	}
	return math.Pow(product, 1/float64(max(present, 1)))
}

// Of returns m of what was decided.
func (m Metric) Of(c Confusion) float64 {
	counts := make([]int, len(c))
	for i := range c {
		counts[i] = c.RowsOf(i)
	}
	return m.Value(counts, c.RecallOf)
}
