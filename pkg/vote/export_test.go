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
