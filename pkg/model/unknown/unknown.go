// Package unknown says on which rows a classifier's decision is not to be relied on.
//
// [Conformal] looks at the posterior of a row: the set of classes that it is
// compatible with may hold several classes or none. [Novelty] looks at the features:
// how unlike the rows of training a row is. Both are calibrated on rows that were held
// out, by tool: windows of one tool are near copies, so all tools weigh the same.
//
// A row, its class and its group are what they are in pkg/classify, and so are the
// errors that the functions here return.
package unknown

import "math"

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

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
