package model

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Mode says how features are taken relative to the reference.
type Mode string

// The modes. Ratio is x/|r| − sign(r), clipped to ±RatioLimit; difference is
// x − r. On measured turning tools either is worth more than any choice of
// classifier.
const (
	ReferenceOff        Mode = "off"
	ReferenceRatio      Mode = "ratio"
	ReferenceDifference Mode = "difference"
)

// RatioLimit bounds a feature in mode ratio: a reference near zero would make
// it as large as it likes.
const RatioLimit = 20

// ReferenceSpec says how a tool's reference is learnt.
type ReferenceSpec struct {
	Windows int  `yaml:"windows" json:"windows"` // cutting windows after a tool change that are learnt from
	Mode    Mode `yaml:"mode" json:"mode"`
}

// DefaultReference is the ratio to the tool's first ten cutting windows.
var DefaultReference = ReferenceSpec{Windows: 10, Mode: ReferenceRatio}

// Check reports what is wrong with s.
func (s ReferenceSpec) Check() error {
	switch s.Mode {
	case ReferenceOff:
		return nil
	case ReferenceRatio, ReferenceDifference:
		if s.Windows < 1 || s.Windows > 10_000 {
			return fmt.Errorf("reference: %d windows: learn from 1 to 10000, for example 10", s.Windows)
		}
		return nil
	}
	return fmt.Errorf("reference: mode %q is not one of %q, %q, %q", s.Mode, ReferenceRatio, ReferenceDifference, ReferenceOff)
}

// Reference is what the features of one tool were in its own first cutting
// windows: the mean of those that were there. The zero value knows no tool.
type Reference struct {
	Tool    string    // that it was learnt from
	Windows int       // learnt from so far
	sum     []float64 // per feature
	count   []int32   // per feature: windows in which it was not missing
}

// Ready reports whether the reference is complete under s.
func (r *Reference) Ready(s ReferenceSpec) bool {
	return s.Mode == ReferenceOff || r.Windows >= s.Windows
}

// ChangeTool forgets the reference if tool is another one.
func (r *Reference) ChangeTool(tool string) {
	if tool != r.Tool {
		*r = Reference{Tool: tool}
	}
}

// Learn adds the features of one cutting window. NaN is a feature that is
// missing.
func (r *Reference) Learn(features []float32) {
	if len(r.sum) != len(features) {
		r.Windows, r.sum, r.count = 0, make([]float64, len(features)), make([]int32, len(features))
	}
	for i, v := range features {
		if v == v {
			r.sum[i] += float64(v)
			r.count[i]++
		}
	}
	r.Windows++
}

// Apply makes features relative to the reference, in place. A feature that the
// reference has never seen becomes missing. It panics if the reference was
// learnt from another number of features.
func (r *Reference) Apply(features []float32, mode Mode) {
	if mode == ReferenceOff {
		return
	}
	if len(r.sum) != len(features) {
		panic(fmt.Sprintf("model: Apply: reference of %d features, got %d", len(r.sum), len(features)))
	}
	for i, v := range features {
		if r.count[i] == 0 {
			features[i] = float32(math.NaN())
			continue
		}
		ref := r.sum[i] / float64(r.count[i])
		if mode == ReferenceDifference {
			features[i] = float32(float64(v) - ref)
			continue
		}
		features[i] = ratio(float64(v), ref)
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

// referenceJSON is a reference as the state topic keeps it: the sums bit for
// bit, so that a restart changes no verdict.
type referenceJSON struct {
	Tool    string `json:"tool,omitempty"`
	Windows int    `json:"windows"`
	Data    string `json:"data,omitempty"` // base64 of (sum float64, count int32) little endian
}

// MarshalJSON returns the reference in a form that UnmarshalJSON restores
// exactly.
func (r *Reference) MarshalJSON() ([]byte, error) {
	var b []byte
	for i := range r.sum {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.sum[i]))
		b = binary.LittleEndian.AppendUint32(b, uint32(r.count[i]))
	}
	return json.Marshal(referenceJSON{r.Tool, r.Windows, base64.StdEncoding.EncodeToString(b)})
}

// UnmarshalJSON restores a reference.
func (r *Reference) UnmarshalJSON(text []byte) error {
	var j referenceJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("model: reference: %w", err)
	}
	b, err := base64.StdEncoding.DecodeString(j.Data)
	if err != nil {
		return fmt.Errorf("model: reference: %w", err)
	}
	if len(b)%12 != 0 || j.Windows < 0 {
		return errors.New("model: reference: damaged")
	}
	*r = Reference{Tool: j.Tool, Windows: j.Windows}
	for ; len(b) > 0; b = b[12:] {
		sum, count := math.Float64frombits(binary.LittleEndian.Uint64(b)), int32(binary.LittleEndian.Uint32(b[8:]))
		if math.IsNaN(sum) || math.IsInf(sum, 0) || count < 0 || int(count) > j.Windows {
			return errors.New("model: reference: damaged")
		}
		r.sum, r.count = append(r.sum, sum), append(r.count, count)
	}
	return nil
}
