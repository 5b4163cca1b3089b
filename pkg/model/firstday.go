package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// FirstDay lets a model that has seen no worn tool decide by how much a tool differs from its own first windows. It has no
// classifier. Its second class is [Different]: the tool differs by more than healthy tools did, and no one knows whether it is
// worn (docs/algorithm/first-day.md).
//
// With the level and the limit in nepers, the score is 1/(1 + exp(limit − level)): its odds are the amplitude over the amplitude
// at the limit. It is not a probability.
type FirstDay struct {
	score.Level
	Limit   float64   `json:"limit"`   // neper; a tool is different from there on
	Reached []float64 `json:"reached"` // what each healthy life reached, in nepers; its length says how many taught
}

// Different is the class of a window that differs from a tool's first ones by more than healthy tools did, by a model that has
// seen no worn tool.
const Different = "different"

// different is the class of Different.
const different = 1

// NoWornTool says what [Different] means, as LabelRule.Findings has it.
const NoWornTool = "no worn tool was seen yet, so no one knows whether it is worn"

// Score returns what speaks against healthy in a row relative to the tool's reference, in [0, 1], and the level in nepers. Both
// are NaN if the sensor has no value.
func (f *FirstDay) Score(row []float32) (score, level float64) {
	level = f.Of(row)
	return 1 / (1 + math.Exp(f.Limit-level)), level
}

// mostLevel is a level in nepers, 20-fold, beyond which a sensor has failed, or had failed when the tool's reference was learnt: wear
// does not change an amplitude so much.
const mostLevel = 3

// Times returns by what factor a tool differs from its first windows, of a level in nepers: below 1 the other way than healthy tools.
func Times(level float64) float64 { return math.Exp(level) }

// Decides reports whether m can judge windows: it has a classifier, or has seen healthy tools.
func (m *Model) Decides() bool { return m.Classifier != nil || m.FirstDay != nil }

// CheckClassifier reports a model without a classifier, and so without a network and costs.
func (m *Model) CheckClassifier() error {
	if m.Classifier == nil {
		return fmt.Errorf("%s has seen no worn tool, so it has no classifier and no costs: train a model with labels of worn tools, `trainer fit --wear FILE`", m.id)
	}
	return nil
}

// checkFirstDay reports what cannot be of a model without a classifier.
func (m *Model) checkFirstDay(features int) error {
	f := m.FirstDay
	switch {
	case f == nil:
		return nil
	case m.Classifier != nil:
		return errors.New("first day: there is a classifier, too, and one of them decides")
	case m.ByWear != nil || m.Wear != nil || m.Conformal != nil || m.Novelty != nil || m.HeldOut != nil:
		return errors.New("first day: estimates of wear, unknown windows and held-out posteriors come from worn tools, which the model has not seen")
	case m.Reference.Mode == ReferenceOff:
		return errors.New("first day: a tool is compared with its own first windows, and the model takes no reference")
	case len(f.Columns) == 0 || len(f.Columns) != len(f.Weights):
		return fmt.Errorf("first day: %d columns with %d weights", len(f.Columns), len(f.Weights))
	case !(f.Limit > 0) || math.IsInf(f.Limit, 0):
		return fmt.Errorf("first day: a limit of %v neper: must be positive", f.Limit)
	case len(f.Reached) == 0:
		return errors.New("first day: no healthy life taught it")
	}
	for k, j := range f.Columns {
		if j < 0 || j >= features {
			return fmt.Errorf("first day: column %d, the list has %d features", j, features)
		}
		if w := f.Weights[k]; w == 0 || math.IsNaN(w) || math.IsInf(w, 0) {
			return fmt.Errorf("first day: column %d has the weight %v", j, w)
		}
	}
	return nil
}

// explainFirstDay is Explain of a model without a classifier: the log odds are level − limit, which are a sum over columns.
func (j *Judge) explainFirstDay() classify.Explanation {
	f := j.model.FirstDay
	e := classify.Explanation{Class: different, Base: -f.Limit, Parts: f.Parts(j.row)}
	e.Total = e.Base
	for _, part := range e.Parts {
		e.Total += part
	}
	return e
}
