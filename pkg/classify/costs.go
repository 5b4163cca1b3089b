package classify

import (
	"fmt"
	"math"
	"slices"
)

// CostVector has one cost c_j in [0, 1] for each class j.
//
// The weight w_j = 1 − c_j is what missing a row of class j counts: with w_i the
// loss of deciding anything but i for a row of class i, the decision of least
// expected loss is argmax_j w_j·P(y=j|x) (C. Elkan, "The Foundations of
// Cost-Sensitive Learning", IJCAI 2001). So a rare class that must not be missed
// has a large weight and a small cost. The paper evolves c and calls it a
// misclassification cost, hence the name. Weights that differ by a factor give
// the same decisions: only K − 1 numbers matter.
type CostVector []float64

// weighted returns the costs whose weights are in proportion to w, the largest
// scaled to 1: c_j = 1 − w_j/max w. Weights must not be negative or all zero.
// They are kept within a factor of 1e13 of the largest, because 1 − w cannot
// hold less.
func weighted(w []float64) CostVector {
	top := slices.Max(w)
	c := make(CostVector, len(w))
	for j := range w {
		c[j] = 1 - max(w[j]/top, leastWeight)
	}
	return c
}

// leastWeight is the least weight that costs hold together with a weight of 1, with an error below
// one part in 500.
const leastWeight = 1e-13

// largestLog is ln(1/leastWeight): log odds beyond it cannot be cut at.
var largestLog = -math.Log(leastWeight)

// InversePrior returns the costs with weights w_j = 1/n_j, where n_j is the
// number of rows of class j: the decisions of a world in which all classes are
// equally frequent. A class without rows weighs as much as one with a single row.
func InversePrior(counts []int) CostVector {
	w := make([]float64, len(counts))
	for j, n := range counts {
		w[j] = 1 / float64(max(n, 1))
	}
	return weighted(w)
}

// Decide returns argmax_j (1 − c_j)·posterior[j], of equals the lowest. If every
// cost is 1, nothing weighs anything, and it returns argmax_j posterior[j]. A NaN
// never wins.
func (c CostVector) Decide(posterior []float64) int {
	best, most := 0, 0.0
	for j, p := range posterior {
		if v := (1 - c[j]) * p; v > most {
			best, most = j, v
		}
	}
	if most == 0 && c.weightless() {
		for j, p := range posterior {
			if p > most {
				best, most = j, p
			}
		}
	}
	return best
}

func (c CostVector) weightless() bool {
	return !slices.ContainsFunc(c, func(cost float64) bool { return cost != 1 })
}

// Score returns how much speaks against the first class, in [0, 1]: the weighted
// share of the strongest other class in the sum of the two,
//
//	max_{j>0} w_j·P(y=j|x) / (w_0·P(y=0|x) + max_{j>0} w_j·P(y=j|x)).
//
// It is at least 0.5 exactly if Decide returns another class than the first. For
// two classes it is the weighted share of the second.
func (c CostVector) Score(posterior []float64) float64 {
	weightless := c.weightless()
	var first, most float64
	for j, p := range posterior {
		w := 1 - c[j]
		if weightless {
			w = 1
		}
		if j == 0 {
			first = w * p
		} else {
			most = max(most, w*p)
		}
	}
	share := most
	if sum := first + most; sum > 0 {
		share /= sum
	}
	// Rounding, and a tie, which goes to the lower class, are settled by Decide.
	if c.Decide(posterior) == 0 {
		return min(share, math.Nextafter(0.5, 0))
	}
	return max(share, 0.5)
}

// logWeights returns ln w_j less their mean, each within ±largestLog of the
// largest, so that vectors with equal decisions have equal logs.
func (c CostVector) logWeights() []float64 {
	l := make([]float64, len(c))
	top := math.Inf(-1)
	for j, v := range c {
		l[j] = math.Log(1 - v)
		top = max(top, l[j])
	}
	if math.IsInf(top, -1) { // all costs are 1: as good as equal ones
		return make([]float64, len(c))
	}
	var mean float64
	for j := range l {
		l[j] = max(l[j], top-largestLog)
		mean += l[j] / float64(len(l))
	}
	for j := range l {
		l[j] -= mean
	}
	return l
}

// between returns the costs whose log weights are the given share of the way
// from the ones of a to the ones of b.
func between(a, b CostVector, share float64) CostVector {
	w := a.logWeights()
	for j, v := range b.logWeights() {
		w[j] = math.Exp(w[j]*(1-share) + v*share)
	}
	return weighted(w)
}

// cut returns the costs of two classes that decide for the second one where
// ln(P1/P0) > t, that is, with ln(w0/w1) = t.
func cut(t float64) CostVector {
	if t < 0 {
		return weighted([]float64{math.Exp(t), 1})
	}
	return weighted([]float64{1, math.Exp(-t)})
}

// cutOf is the inverse of cut.
func (c CostVector) cutOf() float64 {
	l := c.logWeights()
	return l[0] - l[1]
}

// Threshold returns the posterior of the second of two classes above which c
// decides for it. It panics unless c has two costs.
func (c CostVector) Threshold() float64 {
	if len(c) != 2 {
		panic(fmt.Sprintf("classify: the threshold of %d costs", len(c)))
	}
	return threshold(c.cutOf())
}
