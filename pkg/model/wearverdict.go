package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/pkg/classify"
)

// WearVerdict lets a model decide by the estimated wear of a window instead of by its
// classifier. It is for models of one or two tools that were worn out, of which a
// classifier learns where the features of those tools changed, and an estimate of
// wear how they changed all along. On PHM 2010, with two cutters to learn from, it is
// what keeps its G-mean on the third (docs/figures/unseen.md).
//
// With r̂ the root of the estimated wear of this window alone, in √µm, P(faulty) is
// Φ((r̂ − √LimitUM)/Spread), and the window is faulty from ½ on, which is from LimitUM
// on. (A probit link: C. I. Bliss, "The Method of Probits", Science 79, 1934.)
type WearVerdict struct {
	LimitUM float64 `json:"limit_um"` // wear from which on a tool is faulty, in µm
	Spread  float64 `json:"spread"`   // error of the published root on tools held out, in √µm; the probability of one window alone is rather less sure
}

// checkByWear reports a verdict by wear that cannot be.
func (m *Model) checkByWear(int) error {
	v := m.ByWear
	switch {
	case v == nil:
		return nil
	case m.Wear == nil:
		return errors.New("verdict by wear: the model does not estimate wear")
	case m.Classes() != 2:
		return fmt.Errorf("verdict by wear: there are %d classes, and one limit tells only two apart", m.Classes())
	case !(v.LimitUM > 0) || math.IsInf(v.LimitUM, 0):
		return fmt.Errorf("verdict by wear: a limit of %v µm: must be positive", v.LimitUM)
	case !(v.Spread > 0) || math.IsInf(v.Spread, 0):
		return fmt.Errorf("verdict by wear: a spread of %v √µm: must be positive", v.Spread)
	case m.Conformal != nil:
		return errors.New("verdict by wear: there are conformal sets, which need the classifier's posteriors")
	}
	return nil
}

// Faulty returns P(faulty) of a window whose root of the wear is estimated as root, in
// √µm.
func (v *WearVerdict) Faulty(root float64) float64 {
	return math.Erfc((math.Sqrt(v.LimitUM)-root)/v.Spread/math.Sqrt2) / 2
}

// faultyByWear returns P(faulty) of a window by m's estimate of its wear, of the features
// before the reference and the tool's reference.
func (m *Model) faultyByWear(cutting, center []float32) float64 {
	root, _ := m.Wear.Root(cutting, center)
	return m.ByWear.Faulty(root)
}

// equalCosts decide for the class with the greater posterior, as a verdict by wear does.
var equalCosts = make(classify.CostVector, 2)
