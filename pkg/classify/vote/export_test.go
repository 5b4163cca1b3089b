package vote

import (
	"math"
	"slices"
)

// ExpertNumbers is what a fit finds of an expert, for tests.
type ExpertNumbers struct {
	Bias    float64
	Weights []float64 // of clipped standardised inputs
}

// Numbers returns what a fit found of each expert.
func (g *Guard) Numbers() []ExpertNumbers {
	var out []ExpertNumbers
	for _, x := range g.experts {
		e := ExpertNumbers{Bias: x.bias}
		for _, in := range x.inputs {
			e.Weights = append(e.Weights, in.weight)
		}
		out = append(out, e)
	}
	return out
}

// Odds returns the experts' clipped log odds of the row that was judged last.
func (s *Scorer) Odds() []float64 { return s.odds }

// Difference returns how far expert e was from experts of other sensors in the row that was
// judged last.
func (s *Scorer) Difference(e int) float64 { return s.difference(e) }

// For tests.
var (
	ScoreOf = scoreOf
	CutOf   = cutOf
	Lasting = lasting
)

// Without returns a copy of a row in which the sensors that have failed are missing.
func (s *Scorer) Without(row []float32, failed []bool) []float32 {
	row = slices.Clone(row)
	for k, of := range s.guard.sensors {
		for _, j := range of.watched {
			if failed[k] {
				row[j] = float32(math.NaN())
			}
		}
	}
	return row
}

// Failed returns which sensors have failed in the next window, of a tool whose reference is settled.
func (g *Guard) Failed(m *Memory, raw []float32) (failed []bool) {
	sensed := make([]Sensed, len(g.sensors))
	g.Watch(m, raw, true, sensed)
	for _, s := range sensed {
		failed = append(failed, s.Failed)
	}
	return failed
}

// Steps returns in what steps of a sensor's gain are looked for, and from which size on.
func (g *Guard) Steps(k int) (sizes []int, natural, least float64) {
	s := g.sensors[k]
	return s.sizes, s.natural, s.least
}
