// Package export writes the classifier of a model in forms that other programs
// read: ONNX, which runs, and safetensors, which holds the numbers.
//
// Both take features as the classifier does: relative to the tool's reference,
// in the order of the model's list, float32, NaN where a value is missing. What
// comes before, windows, features and reference, is not in them. Both give the
// posteriors of the model to within 1e-6; bytes are equal for equal models.
package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// metadata are the facts that both forms carry, as texts by name.
func metadata(m *model.Model) [][2]string {
	var encodings []string // of a committee: of each member
	for _, part := range m.Classifier.Encoder().Parts() {
		encodings = append(encodings, string(part.Encoding()))
	}
	meta := [][2]string{
		{"flank.model", m.ID()},
		{"flank.layout", m.Layout.Fingerprint()},
		{"flank.features", string(event.JSON(m.NewJudge().FeatureNames()))},
		{"flank.reference", fmt.Sprintf("%s, %d windows", m.Reference.Mode, m.Reference.Windows)},
		{"flank.window", m.Window.Length.String()},
		{"flank.encoding", strings.Join(encodings, ", ")},
		{"flank.classes", strings.Join(m.ClassNames(), ", ")},
	}
	if p := m.Reference.Positive; p != "" { // a 1 for each feature that is
		meta = append(meta, [2]string{"flank.reference.positive", p})
	}
	if v := m.Classifier.Guard(); v != nil {
		meta = append(meta, [2]string{"flank.guard.sensors", string(event.JSON(v.Sensors()))})
	}
	if v := m.ByWear; v != nil {
		meta = append(meta, [2]string{"flank.verdict", fmt.Sprintf("estimated wear from %g µm on, not this classifier", v.LimitUM)})
	}
	return meta
}

// weights returns 1 − cost of each class; all 1 if nothing weighs anything.
func weights(c classify.CostVector) []float64 {
	w := make([]float64, len(c))
	any := false
	for j, v := range c {
		w[j] = 1 - v
		any = any || w[j] != 0
	}
	if !any {
		return slices.Repeat([]float64{1}, len(c))
	}
	return w
}
