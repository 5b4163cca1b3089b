// Package bootstrap says how far figures depend on which tools there happened to be.
//
// Tools are drawn with replacement, whole tools with all their windows: windows of a tool are near
// copies, but tools are independent. [score.Bootstrap] draws them.
package bootstrap

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/score"
)

// Few tools are too few: an interval of fewer says nothing.
const Few = 5

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
	tools = slices.Sorted(slices.Values(tools)) // so that their order does not matter
	undefined := slices.Repeat([]float64{math.NaN()}, n)
	for i, of := range score.Bootstrap(len(tools), n, func(drawn []int, into []float64) {
		times := make(map[string]float64)
		for _, t := range drawn {
			times[tools[t]]++
		}
		copy(into, undefined)
		copy(into, figures(times))
	}) {
		out[i] = Interval{float64(of[0]), float64(of[1])}
	}
	return out
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
