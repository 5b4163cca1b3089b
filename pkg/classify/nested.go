package classify

import (
	"context"
	"fmt"

	"github.com/flank-tcm/flank/pkg/score"
)

// HeldChoice is one way to choose costs and what it gives on rows that the choice did not
// see: the rows of each fold are decided by costs that were chosen on the other folds.
type HeldChoice struct {
	Name    string  `json:"name"`
	Fitness float64 `json:"fitness"` // the metric that costs maximise, plain, of all rows together
}

// nested decides the rows of each fold by costs that choose returns for the rows of the
// other folds, of each way to choose them, and calls visit with the decisions.
func (d judged) nested(folds dealt, choose func(others judged) ([]CostVector, error), visit func(i, way, decision int)) error {
	for f := range folds.folds {
		train := folds.train(f)
		posterior := make([]float64, 0, train.rows*d.k)
		train.each(func(i int) { posterior = append(posterior, d.row(i)...) })
		costs, err := choose(newJudged(d.k, posterior, pick(d.y, train)))
		if err != nil {
			return fmt.Errorf("fold %d of %d, costs chosen without it: %w", f+1, folds.folds, err)
		}
		folds.test(f).each(func(i int) {
			for way, c := range costs {
				visit(i, way, c.Decide(d.row(i)))
			}
		})
	}
	return nil
}

// searchedRule is what few says of two groups, where JADE's own costs are kept.
const searchedRule = "the search's own costs, on posteriors as the network gives them: two groups have rows of the rarest class, too few to calibrate on"

// settleOptimum returns the costs to keep of more than two classes: halfWay from the inverse prior to
// the optimum, or the optimum itself if that gives more on rows held out from the choice.
// On three classes and more the search has K − 1 numbers to find, and where a third class
// lies between two others the inverse prior is a worse guess than for two.
func (d judged) settleOptimum(ctx context.Context, folds dealt, halfWay, optimum CostVector, s CostSettings, r *CostReport) (CostVector, error) {
	names := []string{halfWayChoice, jadeChoice}
	found := make([]score.Confusion, len(names))
	for way := range found {
		found[way] = score.NewConfusion(d.k)
	}
	err := d.nested(folds, func(others judged) ([]CostVector, error) {
		inverse := InversePrior(others.counts)
		optimum, err := others.evolve(ctx, inverse, s, &CostReport{})
		if err != nil {
			return nil, err
		}
		return []CostVector{between(inverse, optimum, s.trust(others.counts)), optimum}, nil
	}, func(i, way, decision int) { found[way].Add(d.y[i], decision) })
	if err != nil {
		return nil, err
	}
	for way, name := range names {
		r.Held = append(r.Held, HeldChoice{name, s.Metric.Of(found[way])})
	}
	if r.Held[1].Fitness > r.Held[0].Fitness {
		if r.Rule != "" {
			r.Rule = searchedRule
		}
		return optimum, nil
	}
	return halfWay, nil
}
