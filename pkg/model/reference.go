package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Mode says how features are taken relative to the reference.
type Mode string

// The modes. Auto takes each feature by the relation that package signal gives it:
// sizes by the logarithm of their ratio, values of feature channels by their ratio,
// the rest by their difference. The others take all features alike: ratio is
// x/|r| − sign(r), difference is x − r. What they are worth on measured turning
// tools is in docs/quality.md, on the simulated drill in docs/features.md.
const (
	ReferenceOff        Mode = "off"
	ReferenceAuto       Mode = "auto"
	ReferenceRatio      Mode = "ratio"
	ReferenceDifference Mode = "difference"
)

// RatioLimit bounds ratios and their logarithms: a reference near zero would make
// them as large as it likes.
const RatioLimit = 20

// maxReferenceWindows bounds what a tool's state holds while it is learnt: 200
// windows of 196 features are 210 kB of JSON, and a message has room for 1 MB.
const maxReferenceWindows = 200

// ReferenceSpec says how a tool's reference is learnt.
type ReferenceSpec struct {
	Windows int  `yaml:"windows" json:"windows"` // cutting windows after a tool change that are learnt from, at most 200
	Mode    Mode `yaml:"mode" json:"mode"`
}

// DefaultReference takes each feature relative to the tool's first ten cutting
// windows in its own way.
var DefaultReference = ReferenceSpec{Windows: 10, Mode: ReferenceAuto}

// Check reports what is wrong with s.
func (s ReferenceSpec) Check() error {
	switch s.Mode {
	case ReferenceOff:
		return nil
	case ReferenceAuto, ReferenceRatio, ReferenceDifference:
		if s.Windows < 1 || s.Windows > maxReferenceWindows {
			return fmt.Errorf("reference: %d windows: learn from 1 to %d, for example 10", s.Windows, maxReferenceWindows)
		}
		return nil
	}
	return fmt.Errorf("reference: mode %q is not one of %q, %q, %q, %q", s.Mode, ReferenceAuto, ReferenceRatio, ReferenceDifference, ReferenceOff)
}

// Reference is what the features of one tool were in its own first cutting
// windows: the median of those that were there. (A new tool's first seconds hold
// entries into the work and other outliers, which would move a mean.) The zero value knows no tool.
type Reference struct {
	Tool    string    // that it was learnt from
	Windows int       // learnt from so far
	learnt  []float32 // Windows×features, by rows, until the reference is settled
	center  []float32 // per feature: the median, NaN without a value; nil until settled
}

// Ready reports whether features can be taken relative to r under s.
func (r *Reference) Ready(s ReferenceSpec) bool {
	return s.Mode == ReferenceOff || r.center != nil
}

// Features returns of how many features the reference is, 0 if it has learnt
// nothing.
func (r *Reference) Features() int {
	if r.center != nil || r.Windows == 0 {
		return len(r.center)
	}
	return len(r.learnt) / r.Windows
}

// Center returns the median of each feature, NaN where there was no value; nil until
// the reference is settled. It is r's and must not be changed.
func (r *Reference) Center() []float32 { return r.center }

// ChangeTool forgets the reference if tool is another one.
func (r *Reference) ChangeTool(tool string) {
	if tool != r.Tool {
		*r = Reference{Tool: tool}
	}
}

// Learn adds the features of one cutting window; the last of s.Windows settles
// the reference. NaN is a feature that is missing, and an infinity is none
// either. What was learnt of another number of features is forgotten. It panics
// if the reference is settled.
func (r *Reference) Learn(features []float32, s ReferenceSpec) {
	if r.center != nil {
		panic("model: Learn: the reference is settled")
	}
	if r.Features() != len(features) {
		r.Windows, r.learnt = 0, nil
	}
	for _, v := range features {
		if math.IsInf(float64(v), 0) {
			v = float32(math.NaN())
		}
		r.learnt = append(r.learnt, v)
	}
	if r.Windows++; r.Windows >= s.Windows {
		r.settle(len(features))
	}
}

// settle takes the medians of n features.
func (r *Reference) settle(n int) {
	r.center = make([]float32, n)
	column := make([]float32, 0, r.Windows)
	for j := range r.center {
		column = column[:0]
		for i := j; i < len(r.learnt); i += n {
			if v := r.learnt[i]; v == v {
				column = append(column, v)
			}
		}
		r.center[j] = median(column)
	}
	r.learnt = nil
}

// median returns the middle of x, which it sorts, or the mean of the two middle
// ones; NaN if there are none.
func median(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.NaN())
	}
	slices.Sort(x)
	low, high := x[(len(x)-1)/2], x[len(x)/2]
	return float32((float64(low) + float64(high)) / 2)
}

// Apply makes features relative to the reference, in place; in mode auto by their
// relations, which no other mode looks at. A feature that the reference has never
// seen becomes missing. It panics if the reference is not settled or was learnt
// from another number of features.
func (r *Reference) Apply(features []float32, mode Mode, relations []signal.Relation) {
	if mode == ReferenceOff {
		return
	}
	if r.center == nil || len(r.center) != len(features) {
		panic(fmt.Sprintf("model: Apply: reference of %d features after %d windows, got %d", r.Features(), r.Windows, len(features)))
	}
	if mode == ReferenceAuto && len(relations) != len(features) {
		panic(fmt.Sprintf("model: Apply: %d relations of %d features", len(relations), len(features)))
	}
	for i, v := range features {
		switch x, ref := float64(v), float64(r.center[i]); mode.relation(relations, i) {
		case signal.Difference:
			features[i] = float32(x - ref)
		case signal.LogRatio:
			features[i] = logRatio(x, ref)
		default:
			features[i] = ratio(x, ref)
		}
	}
}

// relation returns how feature i is taken relative to a reference in a mode that
// has one.
func (m Mode) relation(relations []signal.Relation, i int) signal.Relation {
	switch m {
	case ReferenceAuto:
		return relations[i]
	case ReferenceDifference:
		return signal.Difference
	}
	return signal.Ratio
}

// undo returns the feature that Apply makes x of, where no limit was reached. It
// is NaN if the reference has never seen feature i.
func (r *Reference) undo(x float64, i int, mode Mode, relations []signal.Relation) float64 {
	if mode == ReferenceOff {
		return x
	}
	switch ref := float64(r.center[i]); mode.relation(relations, i) {
	case signal.Difference:
		return x + ref
	case signal.LogRatio:
		return ref * math.Exp(x)
	default:
		return (x + math.Copysign(1, ref)) * math.Abs(ref)
	}
}

// ratio returns x/|ref| − sign(ref) within ±RatioLimit. With a reference of
// zero there is no scale: any value but zero is at the limit.
func ratio(x, ref float64) float32 {
	if ref == 0 {
		if x == 0 || x != x {
			return float32(x)
		}
		return float32(math.Copysign(RatioLimit, x))
	}
	v := x/math.Abs(ref) - math.Copysign(1, ref)
	return float32(max(-RatioLimit, min(RatioLimit, v))) // NaN stays NaN
}

// logRatio returns ln(x/ref) within ±RatioLimit, of sizes: both zero are equal,
// and what is negative is none and missing.
func logRatio(x, ref float64) float32 {
	switch {
	case x < 0 || ref < 0:
		return float32(math.NaN())
	case x == ref:
		return 0
	}
	return float32(max(-RatioLimit, min(RatioLimit, math.Log(x/ref)))) // NaN stays NaN
}

// referenceJSON is a reference as the state topic keeps it: bit for bit, so that
// a restart changes no verdict.
type referenceJSON struct {
	Tool    string `json:"tool,omitempty"`
	Windows int    `json:"windows"`
	Settled bool   `json:"settled,omitempty"`
	Data    string `json:"data,omitempty"` // base64 of float32, little-endian: the medians if settled, else windows×features
}

// MarshalJSON returns the reference in a form that UnmarshalJSON restores
// exactly.
func (r *Reference) MarshalJSON() ([]byte, error) {
	j := referenceJSON{Tool: r.Tool, Windows: r.Windows, Settled: r.center != nil}
	values := r.learnt
	if j.Settled {
		values = r.center
	}
	j.Data = packFloats(values)
	return json.Marshal(j)
}

var errDamaged = errors.New("model: reference: damaged")

// UnmarshalJSON restores a reference.
func (r *Reference) UnmarshalJSON(text []byte) error {
	var j referenceJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("model: reference: %w", err)
	}
	values, whole, err := unpackFloats(j.Data)
	if err != nil {
		return fmt.Errorf("model: reference: %w", err)
	}
	for _, v := range values {
		if math.IsInf(float64(v), 0) {
			return errDamaged
		}
	}
	read := Reference{Tool: j.Tool, Windows: j.Windows}
	switch {
	case !whole || j.Windows < 0 || j.Windows > maxReferenceWindows,
		(j.Windows > 0) != (len(values) > 0), j.Windows == 0 && j.Settled:
		return errDamaged
	case j.Settled:
		read.center = values
	case j.Windows > 0:
		if len(values)%j.Windows != 0 {
			return errDamaged
		}
		read.learnt = values
	}
	*r = read
	return nil
}
