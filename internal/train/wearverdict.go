package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/trend"
)

// leastSpread is the least Spread of a verdict by wear, in √µm: an estimate that was
// right by chance on the tools held out will be less so on the next one.
const leastSpread = 0.1

// byWear reports whether a model that learns from all tools but those held out decides
// by estimated wear: two tools or fewer of all that it learns from, with and without
// labels, went on to the end of their life, two or more have measured wear, and one
// limit of it parts two classes.
func (t *rowTable) byWear(held map[string]bool) bool {
	if several(t.classes) || t.limitUM == 0 || t.wear == nil || slices.Contains(t.wearAt, -1) {
		return false
	}
	ended, lives := t.ended(), 0
	tools := make(map[string]bool)
	for _, g := range slices.Concat(t.group, t.bare.group) {
		if !held[g] && !tools[g] && ended(g) {
			lives++
		}
		tools[g] = true
	}
	first := slices.IndexFunc(t.wear.Tool, func(g string) bool { return !held[g] })
	return lives < score.LeastTools && first >= 0 &&
		slices.ContainsFunc(t.wear.Tool[first:], func(g string) bool { return !held[g] && g != t.wear.Tool[first] }) // two were measured
}

// wearRows returns the rows that wear is learnt from for a model with a reference, or
// without.
func (t *rowTable) wearRows(reference bool) *trend.Rows {
	if reference || t.wear == nil {
		return t.wear
	}
	plain := *t.wear
	plain.Reference = nil
	return &plain
}

// decideByWear lets the estimate of wear decide in those folds whose models would go by
// it, and returns what scores these folds by wear, nil for the others, and how many these are.
// Their posteriors out of fold, which conformal sets are made of, go.
func (j *Job) decideByWear(ctx context.Context, rows rowTable, v *classify.Validation, folds []classify.Fold) (scorers []scorer, n int, err error) {
	scorers = make([]scorer, len(folds))
	for f, fold := range folds {
		held := make(map[string]bool)
		for _, i := range fold.Test {
			held[rows.group[i]] = true
		}
		if !rows.byWear(held) {
			continue
		}
		all := rows.wearRows(j.Config.Reference.Mode != model.ReferenceOff)
		m, choice, err := trend.Fit(ctx, all.Without(held), j.wearSettings(rows))
		if errors.Is(err, trend.ErrTooFew) {
			continue
		} else if err != nil {
			return nil, 0, err
		}
		by := wearVerdict(rows.limitUM, choice)
		scorers[f] = byWear(m, by)
		n++
		v.Reports[f].Posterior = nil
		v.Replace(fold.Test, func(i int) []float64 {
			at := rows.wearAt[i]
			return posteriorByWear(m, by, all.Row(at), all.ReferenceOf(at))
		})
	}
	if n > 0 {
		v.Assess(rows.Class, rows.group)
	}
	return scorers, n, nil
}

func wearVerdict(limitUM float64, choice trend.Choice) *model.WearVerdict {
	return &model.WearVerdict{LimitUM: limitUM, Spread: max(choice.RMS, leastSpread)}
}

// wearSettings returns how wear is learnt.
func (j *Job) wearSettings(rows rowTable) trend.Settings {
	return trend.Settings{Seed: j.Config.Seed, LimitUM: rows.limitUM, Exclude: rows.exclude}
}

// sayByWear says that a model decides by wear, and why.
func sayByWear(v *model.WearVerdict) string {
	return fmt.Sprintf("the verdict comes from the estimated wear, cut at %.4g µm, and not from the classifier: %d tools or fewer went on to the end of their life, and estimates of wear learn from how features change all along; "+
		"record more tools until they are worn, with or without labels", v.LimitUM, score.LeastTools-1)
}
