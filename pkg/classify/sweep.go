package classify

import (
	"math"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/score"
)

// judged holds rows whose posteriors and classes are both known: what costs are
// chosen on.
type judged struct {
	k         int
	posterior []float64 // N×K, row-major
	y         []int
	counts    []int              // rows of each class
	pair      *kernel.SortedOdds // of two classes, once order has made it
}

func newJudged(k int, posterior []float64, y []int) judged {
	counts := make([]int, k)
	for _, label := range y {
		counts[label]++
	}
	return judged{k: k, posterior: posterior, y: y, counts: counts}
}

func (d judged) row(i int) []float64 { return d.posterior[i*d.k : (i+1)*d.k] }

// confusion returns what the costs c decide.
func (d judged) confusion(c CostVector) score.Confusion {
	m := score.NewConfusion(d.k)
	for i, label := range d.y {
		m.Add(label, c.Decide(d.row(i)))
	}
	return m
}

// plateau is an interval of cuts that decide alike. A cut t decides for the
// second of two classes where ln(P1/P0) > t.
type plateau struct {
	low, high float64
	fitness   float64 // the metric there
}

// order returns the rows of two classes in order of their odds. The quotient of
// two float32 values is exact enough in float64 to tell any two different ones
// apart, which their logarithms are not.
func (d judged) order() *kernel.SortedOdds {
	if d.pair != nil {
		return d.pair
	}
	odds := [2][]float64{make([]float64, 0, d.counts[0]), make([]float64, 0, d.counts[1])}
	for i, label := range d.y {
		p := d.row(i)
		odds[label] = append(odds[label], p[1]/p[0])
	}
	return kernel.NewSortedOdds(odds[0], odds[1])
}

// sweep returns the widest of the plateaus on which two classes' metric is
// greatest among all costs.
//
// Cuts are looked for within ±largestLog. If no cut gets a row of either class
// right without getting the whole other class wrong, the G-mean is 0 and its
// plateau spans everything.
func (d judged) sweep(m score.Metric) plateau {
	if m != score.GMean {
		low, high, most := d.order().BestOf(largestLog, func(right0, right1 int) float64 {
			right := [2]int{right0, right1}
			return m.Value(d.counts, func(class int) float64 { return float64(right[class]) / float64(d.counts[class]) })
		})
		return plateau{low, high, most}
	}
	low, high, most := d.order().Best(largestLog)
	return plateau{low, high, math.Sqrt(float64(most) / float64(d.counts[0]) / float64(d.counts[1]))}
}

// smoothed returns the cut of two classes that maximises the metric of the smoothed
// recalls, see [kernel.SortedOdds.SmoothedCut].
func (d judged) smoothed(m score.Metric) float64 {
	return d.order().SmoothedCut(largestLog, func(recall0, recall1 float64) float64 {
		if m == score.GMean {
			return recall0 * recall1 // its square has the same maximum
		}
		smooth := [2]float64{recall0, recall1}
		return m.Value(d.counts, func(class int) float64 { return smooth[class] })
	})
}

// spread says how far posteriors of the given rows differ from row to row: the
// standard deviation of the log odds of a class against the rest, of the class
// where it is largest.
func (d judged) spread(rows rowSet) float64 {
	var most float64
	n := float64(rows.rows)
	for j := range d.k {
		odds := func(i int) float64 {
			p := d.row(i)[j]
			return min(max(math.Log(p/(1-p)), -largestLog), largestLog)
		}
		var mean, variance float64
		rows.each(func(i int) { mean += odds(i) / n })
		rows.each(func(i int) {
			z := odds(i)
			variance += (z - mean) * (z - mean) / n
		})
		most = max(most, math.Sqrt(variance))
	}
	return most
}

// all returns the set of all rows of d.
func (d judged) all() rowSet {
	return rowSet{[]run{{0, len(d.y), 0}}, len(d.y)}
}
