// Package bootstrap says how far figures depend on which tools there happened to be.
//
// Tools are drawn with replacement, whole tools with all their windows: windows of a tool are near
// copies, but tools are independent.
//
// Source: B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, §13.3
// (percentile intervals), with tools as the units that are drawn.
package bootstrap

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	Draws = 2000
	Seed  = 1 // of the draws
	Few   = 5 // tools; below that an interval says nothing
)

// Interval is where 95 of 100 draws lie; NaN if there is none.
type Interval struct{ Low, High float64 }

// None is what there is instead of an interval where too little is known.
var None = Interval{math.NaN(), math.NaN()}

// Tools returns where each of n figures lies. Figures returns them, given how often each tool was
// drawn, or nil to pass over the draw. All are None of fewer than Few tools.
func Tools(tools []string, n int, figures func(times map[string]float64) []float64) []Interval {
	out := slices.Repeat([]Interval{None}, n)
	if len(tools) < Few {
		return out
	}
	tools = slices.Sorted(slices.Values(tools))      // so that their order does not matter
	rng := rand.New(rand.NewPCG(Seed, 0x746f6f6c73)) // "tools"
	drawn := make([][]float64, n)
	for range Draws {
		times := make(map[string]float64)
		for range tools {
			times[tools[rng.IntN(len(tools))]]++
		}
		for i, v := range figures(times) {
			drawn[i] = append(drawn[i], v)
		}
	}
	for i, x := range drawn {
		out[i] = Percentiles(x)
	}
	return out
}

// Percentiles returns the 2.5 and the 97.5 % quantile of x, which it sorts.
func Percentiles(x []float64) Interval {
	return Interval{Quantile(x, 0.025), Quantile(x, 0.975)}
}

// Quantile returns the p quantile of x, which it sorts; NaN of nothing.
func Quantile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	i := p * float64(len(x)-1)
	low := int(i)
	high := min(low+1, len(x)-1)
	return x[low] + (i-float64(low))*(x[high]-x[low])
}

func (i Interval) String() string {
	if i.Low != i.Low {
		return "–"
	}
	return fmt.Sprintf("%.3f–%.3f", i.Low, i.High)
}

// Signed returns the interval of a difference.
func (i Interval) Signed() string {
	if i.Low != i.Low {
		return "–"
	}
	return Signed(i.Low) + " to " + Signed(i.High)
}

// Signed returns a difference with its sign, a dash if there is none.
func Signed(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return strings.Replace(fmt.Sprintf("%+.3f", v), "-0.000", "+0.000", 1)
}
