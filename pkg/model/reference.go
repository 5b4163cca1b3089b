package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Mode says how features are taken relative to the reference.
type Mode string

// The modes, with x a feature and r its reference. What they are worth on measured
// turning tools is in docs/figures/quality.md, on the simulated drill in docs/reference/features.md.
const (
	ReferenceOff Mode = "off"

	// ReferenceAuto leaves the choice to the trainer. No model has it.
	ReferenceAuto Mode = "auto"

	// ReferenceKind takes each feature by the relation that package signal gives it:
	// sizes by the logarithm of their ratio within ±RatioLimit, values of feature
	// channels by their ratio, the rest by their difference.
	ReferenceKind Mode = "kind"

	// ReferenceLog takes features that are positive in all training windows by the
	// logarithm of their ratio, ln(max(x, LogFloor)/max(r, LogFloor)) within ±LogLimit,
	// and all others by their difference.
	ReferenceLog Mode = "log"

	ReferenceRatio      Mode = "ratio"      // of all features: x/|r| − sign(r) within ±RatioLimit
	ReferenceDifference Mode = "difference" // of all features: x − r
)

// RatioLimit bounds ratios and the logarithms of ReferenceKind: a reference near zero
// would make them very large.
const RatioLimit = 20

// Bounds of ReferenceLog. LogLimit bounds the logarithm. LogFloor is the least value that
// it is taken of: a feature that was positive in training may be zero or negative later.
const (
	LogLimit = 5
	LogFloor = 1e-12
)

// maxReferenceWindows bounds what a tool's state holds while it is learnt: 200
// windows of 196 features are 210 kB of JSON, and a message has room for 1 MB.
const maxReferenceWindows = 200

// ReferenceSpec says how a tool's reference is learnt.
type ReferenceSpec struct {
	Windows int  `yaml:"windows" json:"windows"` // cutting windows after a tool change that are learnt from, at most 200
	Mode    Mode `yaml:"mode" json:"mode"`

	// Positive has a 1 for each feature that was positive in all training windows of
	// cutting and a 0 for each other one, in the order of Judge.FeatureNames. Only models
	// of ReferenceLog have it, and they need it. The trainer finds it out.
	Positive string `yaml:"-" json:"positive,omitempty"`
}

// DefaultReference takes features relative to the tool's first ten cutting windows and
// lets the trainer choose how.
var DefaultReference = ReferenceSpec{Windows: 10, Mode: ReferenceAuto}

// Check reports what is wrong with s as a setting. It does not look at Positive, which
// settings do not have.
func (s ReferenceSpec) Check() error {
	switch s.Mode {
	case ReferenceOff:
		return nil
	case ReferenceAuto, ReferenceKind, ReferenceLog, ReferenceRatio, ReferenceDifference:
		if s.Windows < 1 || s.Windows > maxReferenceWindows {
			return fmt.Errorf("reference: %d windows: learn from 1 to %d, for example 10", s.Windows, maxReferenceWindows)
		}
		return nil
	}
	return fmt.Errorf("reference: mode %q is not one of %q, %q, %q, %q, %q, %q", s.Mode,
		ReferenceAuto, ReferenceKind, ReferenceLog, ReferenceRatio, ReferenceDifference, ReferenceOff)
}

// checkFor reports what is wrong with s in a model of the given number of features.
func (s ReferenceSpec) checkFor(features int) error {
	if err := s.Check(); err != nil {
		return err
	}
	switch {
	case s.Mode == ReferenceAuto:
		return fmt.Errorf("reference: mode %q is the trainer's choice, and the model does not say what it chose, as models of builds before the first release: train it again", s.Mode)
	case s.Mode != ReferenceLog && s.Positive != "":
		return fmt.Errorf("reference: it says which features are positive, which only mode %q has, not %q", ReferenceLog, s.Mode)
	case s.Mode != ReferenceLog:
		return nil
	case len(s.Positive) != features:
		return fmt.Errorf("reference: it says of %d features whether they are positive, the list has %d", len(s.Positive), features)
	}
	if i := strings.IndexFunc(s.Positive, func(c rune) bool { return c != '0' && c != '1' }); i >= 0 {
		return fmt.Errorf("reference: %q at %d of the positive features: must be 0 or 1", s.Positive[i], i)
	}
	return nil
}

// Describe returns the mode of s for people. Of ReferenceLog it says how many features
// are taken by their difference, once that is known.
func (s ReferenceSpec) Describe() string {
	if n := strings.Count(s.Positive, "0"); n > 0 {
		return fmt.Sprintf("%s, %d of %d features by difference", s.Mode, n, len(s.Positive))
	}
	return string(s.Mode)
}

// Reference is what the features of one tool were in its own first cutting
// windows: the median of the values that were there. (A new tool's first seconds hold
// entries into the work and other outliers, which would move a mean.) The zero value is of no tool.
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

// Features returns the number of features of the reference, 0 if it has learnt
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
// the reference. A feature that is NaN or infinite is missing.
// Learn forgets what it learnt of another number of features. It panics
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

// Relate stores in dst the features of a window relative to the tool's reference: what
// Judge.Row gives the classifier. Features are as Judge.Cutting returns them, before the
// reference; center is their medians, see Reference.Center; relations, which only
// ReferenceKind looks at, are from Judge.Relations. All have one
// value for each feature, and dst may be features itself. Only dst is written to. With
// ReferenceOff dst is features, and center is not looked at.
//
// NaN is a feature that is missing; one that the reference has never seen becomes
// missing. Relate panics if the lengths do not agree or s is not of a model, see
// Model.Encode.
//
// Formulas are with the modes. The logarithm of a ratio is the one measure of relative
// change that is symmetric, additive and normed: L. Törnqvist, P. Vartia, Y. O. Vartia, "How
// Should Relative Changes Be Measured?", The American Statistician 39 (1985), 43–46.
func (s ReferenceSpec) Relate(dst, features, center []float32, relations []signal.Relation) {
	if len(dst) != len(features) {
		panic(fmt.Sprintf("model: Relate: room for %d features, got %d", len(dst), len(features)))
	}
	if s.Mode == ReferenceOff {
		copy(dst, features)
		return
	}
	if len(center) != len(features) {
		panic(fmt.Sprintf("model: Relate: reference of %d features, got %d", len(center), len(features)))
	}
	switch s.Mode {
	case ReferenceDifference:
		for i, x := range features {
			dst[i] = difference(float64(x), float64(center[i]))
		}
	case ReferenceRatio:
		for i, x := range features {
			dst[i] = ratio(float64(x), float64(center[i]))
		}
	case ReferenceLog:
		if len(s.Positive) != len(features) {
			panic(fmt.Sprintf("model: Relate: %d features are known to be positive or not, got %d", len(s.Positive), len(features)))
		}
		for i, x := range features {
			if s.Positive[i] == '1' {
				dst[i] = flooredLog(float64(x), float64(center[i]))
			} else {
				dst[i] = difference(float64(x), float64(center[i]))
			}
		}
	case ReferenceKind:
		if len(relations) != len(features) {
			panic(fmt.Sprintf("model: Relate: %d relations of %d features", len(relations), len(features)))
		}
		for i, v := range features {
			switch x, ref := float64(v), float64(center[i]); relations[i] {
			case signal.Difference:
				dst[i] = difference(x, ref)
			case signal.LogRatio:
				dst[i] = logRatio(x, ref)
			default:
				dst[i] = ratio(x, ref)
			}
		}
	default:
		panic(fmt.Sprintf("model: Relate: mode %q", s.Mode))
	}
}

// Logs says of each feature whether Relate makes it the logarithm of its ratio to the reference; nil if none. The
// relations are Relate's.
func (s ReferenceSpec) Logs(relations []signal.Relation) []bool {
	out, some := make([]bool, len(relations)), false
	for i := range out {
		switch s.Mode {
		case ReferenceLog:
			out[i] = s.Positive[i] == '1'
		case ReferenceKind:
			out[i] = relations[i] == signal.LogRatio
		}
		some = some || out[i]
	}
	if !some {
		return nil
	}
	return out
}

// Nepers returns, for each feature relative to the reference, what its unit is in nepers of the amplitude of its sensor: 1 for the
// logarithm of a level's ratio, ½ of a variance's, ln 10 for the difference of a level in decades. It is 0 where a feature is no
// amplitude, such as a frequency, or is not taken in logarithms. Relations and origins are the Judge's.
func (s ReferenceSpec) Nepers(relations []signal.Relation, origins []signal.FeatureOrigin) []float64 {
	out, logs := make([]float64, len(origins)), s.Logs(relations)
	for i, o := range origins {
		byDifference := s.Mode == ReferenceDifference || s.Mode == ReferenceLog && s.Positive[i] == '0' || s.Mode == ReferenceKind && relations[i] == signal.Difference
		switch {
		case o.Gain.Power == 0 || o.Other != "" && o.Other != o.Sensor:
		case o.Gain.Decades && byDifference:
			out[i] = math.Ln10 / float64(o.Gain.Power)
		case !o.Gain.Decades && logs != nil && logs[i]:
			out[i] = 1 / float64(o.Gain.Power)
		}
	}
	return out
}

// undo returns the feature i that Relate makes x of, with the same center and relations,
// where x is not at a limit and the feature was not below LogFloor. It is NaN if the
// reference has never seen the feature.
func (s ReferenceSpec) undo(x float64, i int, center []float32, relations []signal.Relation) float64 {
	if s.Mode == ReferenceOff {
		return x
	}
	ref, relation := float64(center[i]), signal.Ratio
	switch s.Mode {
	case ReferenceKind:
		relation = relations[i]
	case ReferenceDifference:
		relation = signal.Difference
	case ReferenceLog:
		if relation = signal.Difference; s.Positive[i] == '1' {
			relation, ref = signal.LogRatio, max(LogFloor, ref)
		}
	}
	switch relation {
	case signal.Difference:
		return x + ref
	case signal.LogRatio:
		return ref * math.Exp(x)
	default:
		return (x + math.Copysign(1, ref)) * math.Abs(ref)
	}
}

// within returns v, at least −limit and at most limit; NaN stays NaN. Most values are
// within, and comparing them first takes a third of the time of min and max.
func within(v, limit float64) float32 {
	if v >= -limit && v <= limit {
		return float32(v)
	}
	return float32(max(-limit, min(limit, v)))
}

func difference(x, ref float64) float32 { return float32(x - ref) }

// ratio returns x/|ref| − sign(ref) within ±RatioLimit. A reference of
// zero gives no scale: any value but zero is at the limit.
func ratio(x, ref float64) float32 {
	if ref == 0 {
		if x == 0 || x != x {
			return float32(x)
		}
		return float32(math.Copysign(RatioLimit, x))
	}
	v := x/math.Abs(ref) - math.Copysign(1, ref)
	return within(v, RatioLimit)
}

// flooredLog returns ln(x/ref) within ±LogLimit, where both are at least LogFloor. It
// is exact to a float32 and faster than math.Log: with q = 2^k·m and m from
// √½ to √2, ln q = k·ln 2 + 2·artanh(s) and s = (m − 1)/(m + 1), whose series ends where
// a term is below 1e-10 of the sum. (Abramowitz and Stegun, Handbook of Mathematical
// Functions, 1964, 4.1.27.)
func flooredLog(x, ref float64) float32 {
	const (
		sqrtHalf = 0x3fe6a09e667f3bcd // bits of √½
		fraction = 1<<52 - 1
	)
	if x < LogFloor {
		x = LogFloor
	}
	if ref < LogFloor {
		ref = LogFloor
	}
	q := x / ref
	if q != q {
		return float32(q)
	}
	from := int64(math.Float64bits(q)) - sqrtHalf // above an exponent of k
	m := math.Float64frombits(uint64(from&fraction + sqrtHalf))
	s := (m - 1) / (m + 1)
	z := s * s
	return within(float64(from>>52)*math.Ln2+2*s*(1+z*(1./3+z*(1./5+z*(1./7+z*(1./9+z*(1./11)))))), LogLimit)
}

// logRatio returns ln(x/ref) within ±RatioLimit, of sizes: both zero are equal,
// and a negative size is missing.
func logRatio(x, ref float64) float32 {
	switch {
	case x < 0 || ref < 0:
		return float32(math.NaN())
	case x == ref:
		return 0
	}
	return within(math.Log(x/ref), RatioLimit)
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

// sound reports whether a reference can have these values.
func (j *referenceJSON) sound(values []float32) bool {
	switch {
	case j.Windows < 0 || j.Windows > maxReferenceWindows || (j.Windows > 0) != (len(values) > 0),
		slices.ContainsFunc(values, func(v float32) bool { return math.IsInf(float64(v), 0) }):
		return false
	case j.Settled:
		return j.Windows > 0
	}
	return j.Windows == 0 || len(values)%j.Windows == 0
}

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
	read := Reference{Tool: j.Tool, Windows: j.Windows}
	switch {
	case !whole || !j.sound(values):
		return errDamaged
	case j.Settled:
		read.center = values
	case j.Windows > 0:
		read.learnt = values
	}
	*r = read
	return nil
}
