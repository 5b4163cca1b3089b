package score

import (
	"math"
	"math/rand/v2"
	"slices"
)

// BootstrapDraws is how often tools are drawn: the ends of an interval of 0.95 then
// stand on the 50 lowest and the 50 highest values.
const BootstrapDraws = 2000

// Bootstrap draws as many tools as there are, with replacement, 2,000 times, and
// returns the 2.5 and the 97.5 percentile of each of n figures. Of stores the figures of
// the tools drawn, indices below tools, in the slice that it is given. A draw that leaves
// a figure undefined (NaN), such as a recall where no faulty window was drawn, is left out
// of that figure's percentiles. Draws are the same in every call with as many tools.
//
// Source: B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993, §13.3.
func Bootstrap(tools, n int, of func(drawn []int, figures []float64)) [][2]Figure {
	rng := rand.New(rand.NewPCG(1, 0x746f6f6c73)) // "tools"
	drawn, figures := make([]int, tools), make([]float64, n)
	values := make([][]float64, n)
	for range BootstrapDraws {
		for t := range drawn {
			drawn[t] = rng.IntN(tools)
		}
		of(drawn, figures)
		for i, v := range figures {
			if v == v {
				values[i] = append(values[i], v)
			}
		}
	}
	out := make([][2]Figure, n)
	for i, v := range values {
		out[i] = [2]Figure{Figure(math.NaN()), Figure(math.NaN())}
		if m := len(v); m > 0 {
			slices.Sort(v)
			out[i] = [2]Figure{Figure(v[m/40]), Figure(v[m-1-m/40])}
		}
	}
	return out
}
