package train

import (
	"context"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// StudyCosts returns the study of m on the windows of an evaluation of it, or,
// if e is nil, on those that the costs were chosen on when m was trained.
func StudyCosts(ctx context.Context, m *model.Model, e *card.Evaluation) (*card.CostStudy, error) {
	if err := m.CheckClassifier(); err != nil {
		return nil, err
	}
	s := &card.CostStudy{Model: m.ID(), Classes: m.ClassNames(), Costs: m.Classifier.Costs(), Threshold: score.Figure(math.NaN())}
	if !several(s.Classes) {
		s.Threshold = score.Figure(s.Costs.Threshold())
	}
	if e == nil {
		h := card.HeadlineOf(m)
		if h.Costs == nil || h.Landscape == nil && !several(s.Classes) {
			return nil, fmt.Errorf("train: %s keeps no record of how its costs were chosen: name labelled recordings with --data, or tables, to study them on", m.ID())
		}
		s.Report, s.Landscape = h.Costs, h.Landscape
		s.On = fmt.Sprintf("windows of training (posteriors: %s)", h.Costs.Posteriors)
		if n := len(h.Costs.Choices); n > 0 {
			s.GMean = score.Figure(h.Costs.Choices[n-1].GMean)
		}
		return s, nil
	}
	var err error
	if _, s.Report, err = classify.ChooseCosts(ctx, e.Posterior, e.Class, len(s.Classes), classify.CostSettings{}); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	s.GMean = e.Pooled.GMean
	if several(s.Classes) {
		s.On = fmt.Sprintf("%d labelled windows", e.Pooled.Rows)
		return s, nil
	}
	s.On = fmt.Sprintf("%d labelled windows, %d faulty", e.Pooled.Rows, e.Pooled.Positive)
	s.Landscape = card.NewLandscape(card.FaultyOf(e.Posterior, 2), card.Positives(e.Class))
	return s, nil
}
