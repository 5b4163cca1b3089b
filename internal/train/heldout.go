package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
)

// validated is what networks decided on tools that were held out.
type validated struct {
	*classify.Validation
	folds  []classify.Fold
	byWear []scorer // by fold: what decides by wear, nil where the classifier decides
}

// scoreByTool scores the settings on tools that were held out. It returns nil, with a
// warning, if the data cannot give scores.
func (j *Job) scoreByTool(ctx context.Context, rows rowTable, r *card.Report, rng *rand.Rand) (*validated, error) {
	if j.Config.Evaluate.ByTool == "off" {
		return nil, nil
	}
	for k, name := range slices.Backward(rows.classes) {
		if tools := rows.unlike(k); len(tools) == 1 {
			j.warn(r, fmt.Sprintf("no score on tools held out: tool %s alone has %s windows, and with it held out there are none to learn from; label another such tool", tools[0], name))
			return nil, nil
		}
	}
	folds := j.folds(rows, rng)
	s := j.settings(rows)
	s.Progress = j.phase("scoring on tools held out")
	v, err := classify.CrossValidateTable(ctx, rows.lessons(j.Config.Reference.Windows), s, folds)
	if errors.Is(err, classify.ErrTooFew) {
		few := "faulty (class 1) or healthy (class 0)"
		if several(rows.classes) {
			few = "of one class of " + numbered(rows.classes)
		}
		j.warn(r, "no score on tools held out, of which too few are "+few+": "+err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	byWear, n, err := j.decideByWear(ctx, rows, v, folds)
	if err != nil {
		return nil, err
	}
	r.SetByTool(v, j.Config.Evaluate.ByTool, len(folds))
	switch itself := rows.byWear(nil); {
	case n > 0 && !itself:
		r.NotOfModel = fmt.Sprintf("%d of the %d folds that hold out tools are decided by estimated wear, as too few of their other tools went on to the end of their life, and the model, which learns from all of them, decides by its classifier", n, len(folds))
	case n < len(folds) && itself:
		r.NotOfModel = fmt.Sprintf("%d of the %d folds that hold out tools are decided by their classifier, as the wear of too few of their other tools was measured, and the model, which learns from all of them, decides by estimated wear", len(folds)-n, len(folds))
	}
	if r.NotOfModel != "" {
		r.Split += "; " + r.NotOfModel
	}
	if j.Config.Evaluate.Transductive && len(rows.bare.group) > 0 {
		r.SetTransductive()
	}
	r.Held = heldOut(rows, v.Posterior, v.Decision, v.Score)
	return &validated{v, folds, byWear}, nil
}

// foldSeed is the stream of the seed that deals tools to folds.
const foldSeed = 0x666f6c6473 // "folds"

// folds returns how tools are held out.
func (j *Job) folds(rows rowTable, rng *rand.Rand) []classify.Fold {
	if j.Config.Evaluate.ByTool == "leave-one-out" {
		return classify.LeaveOneGroupOut(rows.apart())
	}
	return classify.GroupKFold(rows.Class, rows.apart(), 5, rng)
}

// randomFolds is how many folds choose the costs of a random split at most: no other score needs its networks, and the
// figure is shown for comparison only.
const randomFolds = 3

// scoreAtRandom scores them on rows that were held out at random, without regard to their tool. The rows are
// relative to the reference in the way that the model has.
func (j *Job) scoreAtRandom(ctx context.Context, rows rowTable, r *card.Report, rng *rand.Rand) error {
	if !j.Config.Evaluate.RandomSplit {
		return nil
	}
	const k = 5
	counts, words := make([]int, len(rows.classes)), make([]string, len(rows.classes))
	for class, name := range rows.classes {
		counts[class], _ = rows.rowsOf(class)
		words[class] = fmt.Sprintf("%d %s", counts[class], name)
	}
	if slices.Min(counts) < k {
		j.warn(r, fmt.Sprintf("no score on a random split: %s windows cannot be dealt to %d folds", card.Listed(words), k))
		return nil
	}
	s := j.settings(rows)
	s.Progress = j.phase("scoring on a random split")
	s.Costs.Folds = min(cmp.Or(s.Costs.Folds, randomFolds), randomFolds)
	v, err := classify.CrossValidateTable(ctx, rows.lessons(j.Config.Reference.Windows), s, classify.StratifiedKFold(rows.Class, k, rng))
	if err != nil {
		return err
	}
	r.SetRandom(v)
	return nil
}
