package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/model/unknown"
)

// How the costs were chosen, as Fit says it.
const (
	posteriorsByTool = "out-of-fold by group"
	posteriorsByRow  = "out-of-fold by row"
)

// lone names the tool that alone has windows of a class, and the class.
func (t rowTable) lone() string {
	for k, name := range slices.Backward(t.classes) {
		if _, tools := t.rowsOf(k); len(tools) == 1 {
			return fmt.Sprintf("tool %s alone has %s windows", tools[0], name)
		}
	}
	return "tools are not known"
}

// fitUnknown gives the model its third verdict, calibrated on the posteriors that the costs
// were chosen on, and measures it on tools held out of all of that.
func (j *Job) fitUnknown(ctx context.Context, rows rowTable, posterior []float64, m *model.Model, r *card.Report, v *validated) error {
	u := j.Config.Unknown
	d := &card.UnknownReport{}
	r.Unknown = d
	var err error
	switch {
	case u.ErrorRate == 0:
	case m.ByWear != nil:
		d.Without = append(d.Without, "no conformal sets: they are of a classifier's posteriors, and the verdict comes from the estimated wear")
	case r.Fit.Costs.Posteriors == posteriorsByRow:
		d.Without = append(d.Without, "no conformal sets: costs were chosen on folds by row, because "+rows.lone()+"; windows of one tool are near copies, so sets calibrated on them hold less of another tool than they promise; label a second such tool")
	case r.Fit.Costs.Posteriors != posteriorsByTool:
		d.Without = append(d.Without, "no conformal sets: posteriors of windows held out are needed, and these are "+r.Fit.Costs.Posteriors)
	default:
		m.Conformal, err = unknown.NewConformal(posterior, rows.Class, rows.group, len(rows.classes), u.ErrorRate)
		if err != nil {
			return err
		}
	}
	var held unknown.HeldNovelty
	if u.Novelty > 0 {
		m.Novelty, held, err = unknown.FitNovelty(ctx, rows.x(), rows.group, counted(r.Fit.Weights, len(rows.Columns), rows.exclude), u.Novelty, j.Config.Seed, j.Workers)
		if errors.Is(err, classify.ErrTooFew) {
			d.Without = append(d.Without, fmt.Sprintf("nothing is out of distribution: %v", err))
		} else if err != nil {
			return err
		}
	}
	d.SetPromises(m, rows.classes)
	if m.Novelty != nil {
		s := m.Novelty.NewScorer()
		for _, g := range m.Golden {
			m.Distances = append(m.Distances, s.Distance(g.Features))
		}
	}
	for _, why := range slices.Concat(d.Without, d.TooFew()) {
		j.Log.Info().Msg("unknown: " + why)
	}
	if v == nil || m.Novelty == nil && m.Conformal == nil {
		return nil
	}
	r.Held.Unknown, err = measureUnknown(rows, m, d, v, held)
	return err
}

// measureUnknown judges the windows of tools held out. Conformal sets of a fold are
// calibrated on the posteriors out of fold of the tools that are left, so that nothing has
// seen the tool, which is one tool fewer than the model has; p-values of novelty are by the
// distances of other tools. It returns why windows are unknown, nil if that could not be
// measured.
func measureUnknown(rows rowTable, m *model.Model, d *card.UnknownReport, v *validated, held unknown.HeldNovelty) ([]model.UnknownReason, error) {
	k := len(rows.classes)
	d.Split = fmt.Sprintf("tools held out, %d folds", len(v.folds))
	parts, err := ofFolds(rows, m, v.Validation, v.folds)
	if errors.Is(err, classify.ErrTooFew) {
		d.Split = "" // with one of the tools left out, a single one of a class is left, or a fold is decided by wear
		if d.Unmeasured = "too few tools are left where some are held out"; errors.Is(err, errByWear) {
			d.Unmeasured = "folds that are decided by estimated wear have no conformal sets"
		}
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	out := make([]model.UnknownReason, len(rows.Class))
	b := card.NewUnknownCounter(d, rows.classes)
	judge := func(i int, novelty float64) {
		if f := v.Fold[i]; f >= 0 {
			out[i] = b.Add(parts[f], rows.group[i], rows.Class[i], v.Decision[i], v.Posterior[i*k:(i+1)*k], novelty)
		}
	}
	if m.Novelty == nil {
		for i := range rows.Class {
			judge(i, 1)
		}
	}
	for n, i := range held.Rows {
		judge(i, held.P[n])
	}
	b.Finish()
	return out, nil
}

// errByWear: a fold has no conformal sets.
var errByWear = errors.New("it is decided by wear, which makes no sets")

// ofFolds returns what doubts the decisions of each fold: the sets that m has, if it has
// any, calibrated without the fold's tools. The error wraps classify.ErrTooFew if the tools
// of a fold that are left do not make conformal sets.
func ofFolds(rows rowTable, m *model.Model, v *classify.Validation, folds []classify.Fold) ([]*model.Model, error) {
	parts := make([]*model.Model, len(folds))
	for f, fold := range folds {
		parts[f] = &model.Model{Novelty: m.Novelty}
		if m.Conformal == nil {
			continue
		}
		if how := v.Reports[f].Costs.Posteriors; how != posteriorsByTool {
			return nil, fmt.Errorf("posteriors of fold %d are %s: %w", f, how, classify.ErrTooFew)
		}
		y, group := classify.Pick(rows.Class, fold.Train), classify.Pick(rows.group, fold.Train)
		p := v.Reports[f].Posterior
		if p == nil {
			return nil, fmt.Errorf("fold %d: %w: %w", f, errByWear, classify.ErrTooFew)
		}
		v.Reports[f].Posterior = nil
		var err error
		if parts[f].Conformal, err = unknown.NewConformal(p, y, group, len(rows.classes), m.Conformal.Rate); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// unknown returns why decisions of a validation do not stand at the rates of m, each
// by what has not seen its tool. The features that count for novelty are those that count
// for m's. Where that cannot be, with too few tools of a class
// once one is left out, they all stand.
func (j *Job) unknown(ctx context.Context, rows rowTable, m *model.Model, v *classify.Validation, folds []classify.Fold) ([]model.UnknownReason, error) {
	k := len(rows.classes)
	out, novelty := make([]model.UnknownReason, len(v.Fold)), slices.Repeat([]float64{1}, len(v.Fold))
	sets := &model.Model{Conformal: m.Conformal}
	if m.Novelty != nil {
		fitted, held, err := unknown.FitNovelty(ctx, rows.x(), rows.group, m.Novelty.Counts(), m.Novelty.Rate, j.Config.Seed, j.Workers)
		if err != nil && !errors.Is(err, classify.ErrTooFew) {
			return nil, err
		}
		sets.Novelty = fitted
		for n, i := range held.Rows {
			novelty[i] = held.P[n]
		}
	}
	parts, err := ofFolds(rows, sets, v, folds)
	if errors.Is(err, classify.ErrTooFew) {
		return out, nil
	} else if err != nil {
		return nil, err
	}
	for i, f := range v.Fold {
		if f >= 0 {
			out[i] = parts[f].UnknownReason(v.Decision[i], v.Posterior[i*k:(i+1)*k], novelty[i])
		}
	}
	return out, nil
}

// counted says of each of so many features whether it counts: whether it has a weight
// or, where all features count alike, whether it is not excluded. It is nil if all count.
func counted(w *classify.Weights, features int, exclude []int) []bool {
	if w == nil || w.Off != "" {
		if len(exclude) == 0 {
			return nil
		}
		counts := slices.Repeat([]bool{true}, features)
		for _, j := range exclude {
			counts[j] = false
		}
		return counts
	}
	counts := make([]bool, features)
	for _, c := range w.Columns {
		counts[c.Column] = true
	}
	return counts
}
