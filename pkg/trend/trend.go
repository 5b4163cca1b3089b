// Package trend estimates the flank wear of a tool, window by window, and how
// long the tool may go on.
//
// A [Model] is the mean of up to three regressions of √wear on the features of a
// window: ridge regression on features as they are; ridge regression on logarithms
// and on logarithms of ratios to the tool's reference, each weighted by how steadily
// the feature follows the lives of tools (package score); and extra trees on the
// features that follow them best. Tools held out decide which of the three count.
// The estimate of one window is rough and may fall; what is published, an
// [Estimate], is the running maximum of the median of the last few, so it never
// falls as long as the tool stays in. The interval around it comes from the errors
// on tools that the regressions had not seen, in which every tool counts alike.
// A [Tool] is what is remembered of the tool between windows.
//
// Wear is in µm. The root of wear, in √µm, is what is regressed and filtered,
// because the scatter of flank wear grows with the wear, and the scatter of its root
// hardly does. Unknown is an answer: for windows before the tool has a reference,
// for windows unlike the training windows, for wear beyond theirs, and for lives that would take looking further ahead than the tool has cut.
package trend

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Coverage is the share of windows, of tools not seen before, that intervals are
// made to hold.
const Coverage = 0.8

// clip is how many standard deviations from its mean a feature counts at most.
const clip = 5

// Part is one of the regressions that an estimate is the mean of.
type Part string

// The parts.
const (
	Ridge    Part = "ridge"          // on features as they are
	Weighted Part = "weighted_ridge" // on Model.Inputs
	Trees    Part = "trees"          // on the first of Model.Inputs
)

// Model estimates wear. It must not be changed once made; then it is safe for
// concurrent use.
//
// For the ridge regression each of p features x gives two inputs, x and
// sign(x)·ln(1+|x|), which are standardised and kept within ±5; a missing one is its
// mean. Center, Scale and Weights have length 2p: p for x, then p for the
// logarithms.
type Model struct {
	Center  []float64 `json:"center"`  // mean of each input
	Scale   []float64 `json:"scale"`   // standard deviation; 1 for an input that never varies
	Weights []float64 `json:"weights"` // √µm per standard deviation
	Bias    float64   `json:"bias"`    // √µm

	Median int     `json:"median"` // windows that the median is of, odd
	Low    float64 `json:"low"`    // √µm from the estimate to the ends of its interval; low is mostly negative
	High   float64 `json:"high"`

	MostUM   float64 `json:"most_um"`  // greatest wear that was learnt from
	Distance float64 `json:"distance"` // mean square of the standardised inputs from which on a window is unlike those that were learnt from
	LimitUM  float64 `json:"limit_um"` // wear at which the life of a tool ends; 0: no such limit

	// What follows is missing in files of releases before it; their estimate is the
	// ridge regression's.
	Parts     []Part  `json:"parts,omitempty"`     // the estimate is their mean; none: Ridge alone
	Reference bool    `json:"reference,omitempty"` // a window without the tool's reference is unknown
	Excluded  []int   `json:"excluded,omitempty"`  // columns of features that are not looked at, ascending
	Inputs    []Input `json:"inputs,omitempty"`    // of the weighted regression, by descending stability weight
	Offset    float64 `json:"offset,omitempty"`    // bias of the weighted regression, √µm
	Forest    []Tree  `json:"forest,omitempty"`    // of the first of Inputs, up to 20
}

// Features returns how many features m takes.
func (m *Model) Features() int { return len(m.Weights) / 2 }

// has reports whether a part counts.
func (m *Model) has(p Part) bool {
	return slices.Contains(m.Parts, p) || p == Ridge && len(m.Parts) == 0
}

// mostMedian bounds the median's windows.
const mostMedian = 63

// Check reports why m cannot be used on that many features.
func (m *Model) Check(features int) error {
	n := 2 * features
	switch {
	case len(m.Weights) != n || len(m.Center) != n || len(m.Scale) != n:
		return fmt.Errorf("trend: %d weights, %d centers and %d scales, expected %d of each for %d features",
			len(m.Weights), len(m.Center), len(m.Scale), n, features)
	case m.Median%2 != 1 || m.Median > mostMedian:
		return fmt.Errorf("trend: median of %d windows: must be odd, from 1 to %d", m.Median, mostMedian)
	case !(m.Low <= m.High):
		return fmt.Errorf("trend: interval from %v to %v: must not end before it begins", m.Low, m.High)
	case !(min(m.MostUM, m.Distance, m.LimitUM) >= 0):
		return errors.New("trend: a bound is negative or not a number")
	case slices.ContainsFunc(m.Scale, func(s float64) bool { return !(s > 0) }):
		return errors.New("trend: a scale is not positive")
	case slices.ContainsFunc(slices.Concat(m.Weights, m.Center, m.Scale, []float64{m.Bias, m.Low, m.High, m.MostUM, m.Distance, m.LimitUM, m.Offset}), endless):
		return errors.New("trend: a number is not finite")
	}
	return cmp.Or(m.checkParts(), m.checkFitted(features))
}

// checkParts reports what is wrong with the parts of a mean.
func (m *Model) checkParts() error {
	for i, p := range m.Parts {
		switch {
		case !slices.Contains([]Part{Ridge, Weighted, Trees}, p):
			return fmt.Errorf("trend: part %q is not one of %q, %q, %q", p, Ridge, Weighted, Trees)
		case slices.Contains(m.Parts[:i], p):
			return fmt.Errorf("trend: part %q comes twice", p)
		case p != Ridge && len(m.Inputs) == 0, p == Trees && len(m.Forest) == 0:
			return fmt.Errorf("trend: part %q lacks its numbers", p)
		}
	}
	return nil
}

// checkFitted reports what is wrong with the columns, the regressions or the trees.
func (m *Model) checkFitted(features int) error {
	last := -1
	for _, c := range m.Excluded {
		if c <= last || c >= features {
			return fmt.Errorf("trend: column %d is excluded: must be ascending and below %d", c, features)
		}
		last = c
	}
	if len(m.Inputs) > 2*features {
		return fmt.Errorf("trend: %d inputs of %d features, expected %d at most", len(m.Inputs), features, 2*features)
	}
	for i := range m.Inputs {
		if err := m.Inputs[i].check(features, m.Reference); err != nil {
			return err
		}
	}
	if len(m.Forest) > mostTrees {
		return fmt.Errorf("trend: %d trees, expected %d at most", len(m.Forest), mostTrees)
	}
	for _, t := range m.Forest {
		if err := t.check(min(len(m.Inputs), forestInputs)); err != nil {
			return err
		}
	}
	return nil
}

// Root returns the root of the wear that m gives one window, in √µm and not below 0.
// X is its features before the reference, reference the tool's own: the median of each
// feature over its first windows of cutting, nil while the tool has none. Known is
// false if m takes a reference and the tool has none, if the window is unlike the
// training windows, or if the wear is beyond theirs. Root panics if x or reference is not of m's
// features.
func (m *Model) Root(x, reference []float32) (root float64, known bool) {
	p := m.Features()
	if len(x) != p {
		panic(fmt.Sprintf("trend: Root: %d features, expected %d", len(x), p))
	}
	if m.Reference && len(reference) != p {
		if reference != nil {
			panic(fmt.Sprintf("trend: Root: reference of %d features, expected %d", len(reference), p))
		}
		return 0, false
	}
	ridge, distance := m.ridge(x)
	if len(m.Parts) == 0 {
		root = ridge
	} else {
		root = m.mean(ridge, x, reference)
	}
	root = max(root, 0)
	return root, distance <= m.Distance*float64(2*(p-len(m.Excluded))) && root*root <= m.MostUM
}

// ridge returns the ridge regression of a window and the sum of the squares of its
// inputs.
func (m *Model) ridge(x []float32) (root, distance float64) {
	p := len(x)
	root = m.Bias
	excluded := m.Excluded
	for i, v := range x {
		if len(excluded) > 0 && excluded[0] == i {
			excluded = excluded[1:]
			continue
		}
		if v != v {
			continue // missing: its mean, which weighs nothing
		}
		a := standard(float64(v), m.Center[i], m.Scale[i])
		b := standard(signedLog(float64(v)), m.Center[p+i], m.Scale[p+i])
		root += a*m.Weights[i] + b*m.Weights[p+i]
		distance += a*a + b*b
	}
	return root, distance
}

// mean returns the mean of m's parts.
func (m *Model) mean(ridge float64, x, reference []float32) float64 {
	var first [forestInputs]float64
	weighted := m.Offset
	needed := len(m.Inputs)
	if !m.has(Weighted) {
		needed = min(needed, forestInputs)
	}
	for i := range needed {
		in := &m.Inputs[i]
		z := in.of(x, reference)
		weighted += in.Weight * z
		if i < forestInputs {
			first[i] = z
		}
	}
	var sum float64
	for _, p := range m.Parts {
		switch p {
		case Ridge:
			sum += ridge
		case Weighted:
			sum += weighted
		case Trees:
			sum += average(m.Forest, first[:])
		}
	}
	return sum / float64(len(m.Parts))
}
func standard(v, center, scale float64) float64 {
	return min(max((v-center)/scale, -clip), clip)
}

func signedLog(v float64) float64 { return math.Copysign(math.Log1p(math.Abs(v)), v) }

// Estimate is the wear and the life left of a tool after a window. NaN is not known.
type Estimate struct {
	UM, LowUM, HighUM float64 // the wear and its interval, none of which ever falls while a tool is in

	// Left is how many holes more the tool lasts, or windows of cutting if they
	// name no holes (Holes is false). It is 0 at the limit. The interval is what
	// the ends of the interval of the wear give; its high end is NaN if the limit is not in sight.
	Left, LowLeft, HighLeft float64
	Holes                   bool
}

// Unknown is the estimate of a window about which nothing is known.
var Unknown = Estimate{UM: math.NaN(), LowUM: math.NaN(), HighUM: math.NaN(), Left: math.NaN(), LowLeft: math.NaN(), HighLeft: math.NaN()}

// Known reports whether there is an estimate of the wear.
func (e Estimate) Known() bool { return e.UM == e.UM }

// interval returns the wear at root and the ends of its interval.
func (m *Model) interval(root float64) (um, low, high float64) {
	square := func(r float64) float64 { r = max(r, 0); return r * r }
	return square(root), square(root + m.Low), square(root + m.High)
}
