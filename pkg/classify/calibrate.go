package classify

import (
	"fmt"
	"math"
)

// Temperature returns the T in [0.5, 50] at which the posteriors
//
//	P_T(y=j|x) = P(y=j|x)^(1/T) / Σ_i P(y=i|x)^(1/T)
//
// of rows of classes y, N×K row-major, have the least mean cross-entropy. T
// above 1 says that posteriors are too sure of themselves. The order of rows by
// odds stays as it is. The cross-entropy is convex in 1/T, so that its
// derivative is bisected. It is 1 without rows, and Temperature panics if the
// lengths do not agree.
//
// Source: C. Guo, G. Pleiss, Y. Sun and K. Weinberger, "On Calibration of
// Modern Neural Networks", ICML 2017, §4.2.
func Temperature(posterior []float64, y []int, k int) float64 {
	if len(posterior) != len(y)*k {
		panic(fmt.Sprintf("classify: temperature of %d posteriors and %d labels of %d classes", len(posterior), len(y), k))
	}
	if len(y) == 0 {
		return 1
	}
	if k == 2 {
		return bisectTemperature(slopeOfPair(posterior, y))
	}
	logs := make([]float64, len(posterior))
	for i, p := range posterior {
		logs[i] = max(math.Log(p), leastLog)
	}
	// The derivative of the summed cross-entropy by b = 1/T is Σ_n E[ln P_n]
	// under P_T less ln P_n(y_n).
	return bisectTemperature(func(b float64) float64 {
		var sum float64
		for n, label := range y {
			z := logs[n*k : (n+1)*k]
			top := math.Inf(-1)
			for _, v := range z {
				top = max(top, v)
			}
			var norm, mean float64
			for _, v := range z {
				e := math.Exp(b * (v - top))
				norm += e
				mean += e * v
			}
			sum += mean/norm - z[label]
		}
		return sum
	})
}

// slopeOfPair returns the derivative for two classes: with m = ln P(other)/P(y)
// the cross-entropy of a row is ln(1 + exp(b·m)), so that half the memory and one
// exponential will do.
func slopeOfPair(posterior []float64, y []int) func(b float64) float64 {
	odds := make([]float64, len(y))
	for i, label := range y {
		odds[i] = max(math.Log(posterior[2*i+1-label]), leastLog) - max(math.Log(posterior[2*i+label]), leastLog)
	}
	return func(b float64) float64 {
		var sum float64
		for _, m := range odds {
			sum += m / (1 + math.Exp(-b*m))
		}
		return sum
	}
}

// bisectTemperature returns 1/b where the slope, which ascends, is 0.
func bisectTemperature(slope func(b float64) float64) float64 {
	low, high := 1.0/mostTemperature, 1.0/leastTemperature
	if slope(low) >= 0 {
		return mostTemperature
	}
	if slope(high) <= 0 {
		return leastTemperature
	}
	for range 60 {
		if b := (low + high) / 2; slope(b) < 0 {
			low = b
		} else {
			high = b
		}
	}
	return 2 / (low + high)
}

// leastLog stands for the logarithm of a posterior of 0: the logarithm of the
// least positive float32, which networks compute in.
var leastLog = math.Log(math.SmallestNonzeroFloat32)

// temper replaces posteriors, N×K row-major, by those at temperature t > 0.
func temper(posterior []float64, k int, t float64) {
	if t == 1 {
		return
	}
	for ; len(posterior) > 0; posterior = posterior[k:] {
		row := posterior[:k]
		top := math.Inf(-1)
		for _, p := range row {
			top = max(top, p)
		}
		var sum float64
		for j, p := range row {
			row[j] = math.Pow(p/top, 1/t)
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
	}
}
