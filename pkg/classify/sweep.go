package classify

import (
	"math"

	"github.com/flank-tcm/flank/internal/costsearch"
	"github.com/flank-tcm/flank/pkg/score"
)

// judged holds rows whose posteriors and classes are both known: what costs are
// chosen on.
type judged struct {
	k         int
	posterior []float64 // N×K, row-major
	y         []int
	counts    []int            // rows of each class
	pair      *costsearch.Pair // of two classes, once order has made it
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
func (d judged) order() *costsearch.Pair {
	if d.pair != nil {
		return d.pair
	}
	odds := [2][]float64{make([]float64, 0, d.counts[0]), make([]float64, 0, d.counts[1])}
	for i, label := range d.y {
		p := d.row(i)
		odds[label] = append(odds[label], p[1]/p[0])
	}
	return costsearch.NewPair(odds[0], odds[1])
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

const (
	orderStatistics = 2048 // of each class, at most, that stand for its rows
	gridPoints      = 512
)

// smoothed returns the cut t of two classes that maximises the metric of the
// smoothed recalls
//
//	R0(t) = mean_{y=0} Φ((t − z)/h0),  R1(t) = mean_{y=1} Φ((z − t)/h1),
//
// where z = ln(P1/P0) is a row's log odds, Φ the normal distribution function
// and h_k the bandwidth of class k by Silverman's rule (Density Estimation,
// 1986, eq. 3.31). It has neither the plateaus nor the noise of the plain one.
// Where it is flat, the middle of the flat part is taken.
func (d judged) smoothed(m score.Metric) float64 {
	var z [2][]float64
	low, high := largestLog, -largestLog
	var h [2]float64
	pair := d.order()
	for k := range z {
		z[k] = make([]float64, d.counts[k])
		for i, odds := range pair.Odds(k) {
			z[k][i] = min(max(math.Log(odds), -largestLog), largestLog)
		}
		low, high = min(low, z[k][0]), max(high, z[k][len(z[k])-1])
		h[k] = silverman(z[k])
		z[k] = thin(z[k], orderStatistics)
	}
	value := func(t float64) float64 {
		smooth := [2]float64{1 - recallAbove(z[0], t, h[0]), recallAbove(z[1], t, h[1])}
		if m == score.GMean {
			return smooth[0] * smooth[1] // its square has the same maximum
		}
		return m.Value(d.counts, func(class int) float64 { return smooth[class] })
	}
	t := argmaxOnGrid(value, low, high, gridPoints)
	step := (high - low) / gridPoints
	return argmaxOnGrid(value, max(t-step, low), min(t+step, high), 64)
}

// recallAbove returns the mean of Φ((z − t)/h), the smoothed share of z above t.
func recallAbove(z []float64, t, h float64) float64 {
	var sum float64
	for _, v := range z {
		sum += 0.5 * math.Erfc((t-v)/(h*math.Sqrt2))
	}
	return sum / float64(len(z))
}

// silverman returns the bandwidth 0.9·min(sd, IQR/1.34)·n^(-1/5) of sorted z,
// with sd alone if the quartiles coincide, and a hair if all values do.
func silverman(z []float64) float64 {
	mean, sd := meanSD(z)
	scale := sd
	if iqr := quantile(z, 0.75) - quantile(z, 0.25); iqr > 0 {
		scale = min(sd, iqr/1.34)
	}
	return max(0.9*scale*math.Pow(float64(len(z)), -0.2), 1e-9*max(1, math.Abs(mean)))
}

// thin returns at most n values of ascending z, the middles of n equal shares.
func thin[E int | float64](z []E, n int) []E {
	if len(z) <= n {
		return z
	}
	t := make([]E, n)
	for i := range t {
		t[i] = z[(2*i+1)*len(z)/(2*n)]
	}
	return t
}

// argmaxOnGrid returns the point of [low, high] at which f is greatest among n+1
// evenly spaced ones: the middle of the first run of equals.
func argmaxOnGrid(f func(float64) float64, low, high float64, n int) float64 {
	at := func(i int) float64 { return low + (high-low)*float64(i)/float64(n) }
	first, last, most := 0, 0, math.Inf(-1)
	for i := range n + 1 {
		switch v := f(at(i)); {
		case v > most+1e-12:
			first, last, most = i, i, v
		case v >= most-1e-12 && last == i-1:
			last = i
		}
	}
	return (at(first) + at(last)) / 2
}

// meanSD returns the mean and the population standard deviation of x.
func meanSD(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, math.Sqrt(sd)
}

// quantile returns the q-quantile of sorted x by linear interpolation between
// order statistics (type 7 of R. Hyndman and Y. Fan, "Sample Quantiles in
// Statistical Packages", The American Statistician 50, 1996).
func quantile(x []float64, q float64) float64 {
	at := q * float64(len(x)-1)
	i := int(at)
	if i+1 >= len(x) {
		return x[len(x)-1]
	}
	return x[i] + (at-float64(i))*(x[i+1]-x[i])
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
