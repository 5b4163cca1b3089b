package train

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/flank-tcm/flank/pkg/model"
)

const (
	leastDriftTools = 4
	driftRaise      = 0.001 // false alarms for each new tool of a machine
	driftClear      = 0.05
)

// fitDrift returns what the references of the training tools are, for drift to be judged
// by; nil if there are fewer than four. Degrees of freedom follow from tr Σ² as
// Z. Bai and H. Saranadasa estimate it ("Effect of High Dimension", Statistica Sinica
// 6, 1996): of few tools and many features the plain one is far too large. Of the
// features those count for which counts is true, all if it is nil; the others have a
// Scale of 0. It returns nil, too, if fewer than two of them vary.
func fitDrift(starts [][]float32, counts []bool) *model.Drift {
	tools := len(starts)
	if tools < leastDriftTools {
		return nil
	}
	p := len(starts[0])
	d := &model.Drift{Tools: tools, Center: make([]float64, p), Scale: make([]float64, p)}
	used := 0
	for j := range p {
		if counts != nil && !counts[j] {
			continue
		}
		var sum, squares float64
		n := 0
		for _, s := range starts {
			if v := float64(s[j]); v == v {
				sum, n = sum+v, n+1
			}
		}
		if n < leastDriftTools {
			continue
		}
		mean := sum / float64(n)
		for _, s := range starts {
			if v := float64(s[j]); v == v {
				squares += (v - mean) * (v - mean)
			}
		}
		if sd := math.Sqrt(squares / float64(n-1)); sd > 1e-6*math.Abs(mean) && !math.IsInf(sd, 0) {
			d.Center[j], d.Scale[j] = mean, sd
			used++
		}
	}
	if used < 2 {
		return nil
	}
	z := make([][]float32, tools)
	for t, s := range starts {
		z[t] = make([]float32, p)
		d.Standardise(z[t], s)
	}
	nu := float64(tools - 1)
	d.Degrees = min(degrees(z, nu, used), float64(used))
	f := distuv.F{D1: d.Degrees, D2: d.Degrees * nu}
	d.Raise, d.Clear = f.Quantile(1-driftRaise), f.Quantile(1-driftClear)
	return d
}

// degrees returns the degrees of freedom of standardised references, which have nu of their
// own, by the estimate of fitDrift; used if it gives none.
func degrees(z [][]float32, nu float64, used int) float64 {
	var trace, square float64 // tr S, tr S²
	for a := range z {
		for b := range z {
			var dot float64
			for j, v := range z[a] {
				dot += float64(v) * float64(z[b][j])
			}
			square += dot * dot / (nu * nu)
			if a == b {
				trace += dot / nu
			}
		}
	}
	square = nu * nu / ((nu + 2) * (nu - 1)) * (square - trace*trace/nu)
	if square > 0 {
		return max(trace*trace/square, 1)
	}
	return float64(used)
}
