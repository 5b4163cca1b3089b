package imbalance

import (
	"math"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// scaling standardises columns by the rows that it was fitted to, for methods that
// measure distances. A missing value becomes the mean, 0; a constant column is 0.
type scaling struct {
	mean, sd []float64
}

// FitScale returns the means and deviations of the columns of x.
func FitScale(x dbn.Matrix) scaling {
	s := scaling{make([]float64, x.Cols), make([]float64, x.Cols)}
	for j := range x.Cols {
		var n float64
		low, high := math.Inf(1), math.Inf(-1)
		for i := range x.Rows {
			if v := float64(x.Row(i)[j]); v == v {
				s.mean[j] += v
				low, high = min(low, v), max(high, v)
				n++
			}
		}
		if !(low < high) {
			continue
		}
		s.mean[j] /= n
		for i := range x.Rows {
			if v := float64(x.Row(i)[j]); v == v {
				s.sd[j] += (v - s.mean[j]) * (v - s.mean[j]) / n
			}
		}
		s.sd[j] = math.Sqrt(s.sd[j])
	}
	return s
}

// Apply returns x standardised.
func (s scaling) Apply(x dbn.Matrix) dbn.Matrix {
	z := dbn.NewMatrix(x.Rows, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v && s.sd[j] > 0 {
				z.Row(i)[j] = float32((float64(v) - s.mean[j]) / s.sd[j])
			}
		}
	}
	return z
}
