package kernel

import (
	"math"
	"slices"
	"sync"
)

const gridPoints = 512

// SmoothedCut returns the cut t of two classes, in log odds, that maximises value of the
// smoothed recalls
//
//	R0(t) = mean_{y=0} Φ((t − z)/h0),  R1(t) = mean_{y=1} Φ((z − t)/h1),
//
// where z = ln(P1/P0) is a row's log odds within ±limit, Φ the normal distribution
// function and h_k the bandwidth of class k by Silverman's rule (Density Estimation,
// 1986, eq. 3.31). It has neither the plateaus nor the noise of the plain recalls.
// Where value is flat, the middle of the flat part is taken. A class of more than 2,048
// rows is represented by as many of them, evenly spread. Each class must have a row.
func (p *SortedOdds) SmoothedCut(limit float64, value func(recall0, recall1 float64) float64) float64 {
	low, high := limit, -limit
	var z [2][]float64
	var h [2]float64
	for k, odds := range p.odds {
		z[k] = make([]float64, len(odds))
		for i, o := range odds {
			z[k][i] = min(max(math.Log(o), -limit), limit)
		}
		low, high = min(low, z[k][0]), max(high, z[k][len(z[k])-1])
		h[k] = silverman(z[k])
		z[k] = thin(z[k], representatives)
	}
	at := func(t float64) float64 { return value(1-recallAbove(z[0], t, h[0]), recallAbove(z[1], t, h[1])) }
	t := argmaxOnGrid(at, low, high, gridPoints)
	step := (high - low) / gridPoints
	return argmaxOnGrid(at, max(t-step, low), min(t+step, high), 64)
}

// recallAbove returns the mean of Φ((z − t)/h), the smoothed share of ascending z above t.
func recallAbove(z []float64, t, h float64) float64 {
	from, _ := slices.BinarySearch(z, t-normalEnd*h)
	to, _ := slices.BinarySearch(z, t+normalEnd*h)
	sum, table := float64(len(z)-to), normalTable()
	for _, v := range z[from:to] {
		sum += table.at((v - t) / h)
	}
	return sum / float64(len(z))
}

// Φ and its slope are known at normalPoints points a unit, up to normalEnd: beyond, Φ is 0 or 1 to 1e-16.
const (
	normalEnd    = 8.25
	normalPoints = 64
)

type normalValues [2*normalEnd*normalPoints + 2]struct{ value, slope float64 } // slope: from one point to the next

var normalTable = sync.OnceValue(func() *normalValues {
	var n normalValues
	for i := range n {
		x := float64(i)/normalPoints - normalEnd
		n[i].value = 0.5 * math.Erfc(-x/math.Sqrt2)
		n[i].slope = math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) / normalPoints
	}
	return &n
})

// at returns Φ(x) to 5e-11 for x within ±normalEnd, by the cubic through value and slope of two neighbouring points.
func (n *normalValues) at(x float64) float64 {
	at := (x + normalEnd) * normalPoints
	i := int(at)
	u := at - float64(i)
	a, b := &n[i], &n[i+1]
	rise := b.value - a.value
	return a.value + u*(a.slope+u*(3*rise-2*a.slope-b.slope+u*(a.slope+b.slope-2*rise)))
}

// silverman returns the bandwidth 0.9·min(sd, IQR/1.34)·n^(-1/5) of sorted z,
// with sd alone if the quartiles coincide, and a hair if all values do.
func silverman(z []float64) float64 {
	mean, sd := MeanSD(z)
	scale := sd
	if iqr := Quantile(z, 0.75) - Quantile(z, 0.25); iqr > 0 {
		scale = min(sd, iqr/1.34)
	}
	return max(0.9*scale*math.Pow(float64(len(z)), -0.2), 1e-9*max(1, math.Abs(mean)))
}

// thin returns at most n values of ascending z, the middles of n equal shares.
func thin(z []float64, n int) []float64 {
	if len(z) <= n {
		return z
	}
	t := make([]float64, n)
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

// MeanSD returns the mean and the population standard deviation of x.
func MeanSD(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, math.Sqrt(sd)
}

// Quantile returns the q-quantile of sorted x by linear interpolation between
// order statistics (type 7 of R. Hyndman and Y. Fan, "Sample Quantiles in
// Statistical Packages", The American Statistician 50, 1996).
func Quantile(x []float64, q float64) float64 {
	at := q * float64(len(x)-1)
	i := int(at)
	if i+1 >= len(x) {
		return x[len(x)-1]
	}
	return x[i] + (at-float64(i))*(x[i+1]-x[i])
}
