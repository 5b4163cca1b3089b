package trend

import (
	"fmt"
	"math"
)

// form says what an [Input] is of a feature x of a window and the tool's reference r
// of it.
type form string

// The forms. Logarithms are of features that were positive in all rows learnt from;
// x and r count as 10⁻¹² at least.
const (
	raw        form = "raw"        // x
	log        form = "log"        // ln x
	LogRatio   form = "log_ratio"  // ln(x/r), within ±5
	difference form = "difference" // x − r
)

const floor = 1e-12 // of what a logarithm is taken

// Input is one number that the weighted regression and the trees take of a window:
// a feature in one form, standardised and kept within ±5.
type Input struct {
	Column int     `json:"column"` // of the feature
	Form   form    `json:"form"`
	Center float64 `json:"center"` // mean of the form
	Scale  float64 `json:"scale"`  // its standard deviation; 1 where it never varies
	Weight float64 `json:"weight"` // in the weighted regression, √µm per standard deviation
}

// relative reports whether the form takes a reference.
func (f form) relative() bool { return f == LogRatio || f == difference }

// of returns the form of a feature; NaN if it or the reference of it is missing.
func (f form) of(x, r float32) float64 {
	switch v := float64(x); f {
	case log:
		return math.Log(max(v, floor))
	case LogRatio:
		return min(max(math.Log(max(v, floor)/max(float64(r), floor)), -clip), clip)
	case difference:
		return v - float64(r)
	default:
		return v
	}
}

// of returns the input of a window whose reference is r, which may be nil if the form
// takes none. What is missing is its mean, 0. It is rounded, so that the trees meet
// what they were grown on.
func (in *Input) of(x, r []float32) float64 {
	var ref float32
	if in.Form.relative() {
		ref = r[in.Column]
	}
	v := in.Form.of(x[in.Column], ref)
	if v != v {
		return 0
	}
	return float64(float32(standard(v, in.Center, in.Scale)))
}

func (in *Input) check(features int, reference bool) error {
	switch in.Form {
	case raw, log:
	case LogRatio, difference:
		if !reference {
			return fmt.Errorf("trend: input of form %q in a model without references", in.Form)
		}
	default:
		return fmt.Errorf("trend: input of form %q", in.Form)
	}
	switch {
	case in.Column < 0 || in.Column >= features:
		return fmt.Errorf("trend: input of feature %d of %d", in.Column, features)
	case !finite(in.Center) || !finite(in.Scale) || !finite(in.Weight) || !(in.Scale > 0):
		return fmt.Errorf("trend: input of feature %d: a number is not finite, or the scale not positive", in.Column)
	}
	return nil
}

func endless(v float64) bool { return !finite(v) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
