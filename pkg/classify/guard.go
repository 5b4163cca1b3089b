package classify

import (
	"context"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// guard gives c, which has its costs, a guard that learns from l, in which the given columns are logarithms, and lets the guard
// bound the posteriors of rows held out too. The report says what the guard is made of, or why there is none.
func (l lesson) guard(ctx context.Context, c *Classifier, columns *score.Columns, log []bool, s Settings, r *Report) error {
	off := func(why string) error {
		r.Guard = &vote.Report{Off: why}
		return nil
	}
	x, inMemory := l.x.(dbn.Matrix)
	switch {
	case s.Guard == GuardOff:
		return nil
	case !inMemory:
		return off("the rows are not in memory")
	case l.of.Groups == nil || !l.of.Ordered:
		return off("the rows have no order of time within a tool")
	}
	t := vote.Table{X: x, Y: l.y, Groups: l.groups(), Log: log, Sensors: l.of.Sensors}
	t.Whole = l.whole(x)
	if l.of.Wear != nil {
		t.Wear = pick(l.of.Wear, l.rows)
	}
	if columns != nil {
		t.Weights = func(without []string) []float64 {
			rest := columns.Without(without)
			rest.Exclude(s.Exclude)
			return rest.Weight
		}
	}
	g, report, err := vote.Fit(ctx, t, vote.Settings{Steps: s.Guard == GuardVoteAndGains})
	if err != nil {
		return fmt.Errorf("a guard: %w", err)
	}
	if r.Guard = report; g == nil {
		return nil
	}
	c.guard = g
	toFloat32(report.Held)
	c.bound(report.Held, r.Posterior)
	r.Held = scoresOf(c.costs, r.Posterior, l.y)
	if r.HeldOut != nil {
		r.HeldOut.Vote = report.Held
	}
	return nil
}

// whole returns the rows of x, of which l has the classes, with the rows without one between them; nil if there are none.
func (l lesson) whole(x dbn.Matrix) *vote.Whole {
	more, inMemory := l.more.(dbn.Matrix)
	if !inMemory || more.Rows == 0 {
		return nil
	}
	labelled, unlabelled := sample{x, x.Rows}, sample{more, more.Rows}
	return &vote.Whole{Row: rowOf(labelled, unlabelled), Lives: l.lives(labelled, unlabelled)}
}

// Offset returns ln w1 − ln w0 of the weights of two classes: a row of a model with a guard whose
// margin is m has P(1) = σ(m − Offset).
func (c CostVector) Offset() float64 {
	w := c.logWeights()
	return w[1] - w[0]
}

// set stores in posterior, of two classes, what the costs give a score of which the log odds are margin.
func (c CostVector) set(posterior []float64, margin float64) {
	offset := c.Offset()
	posterior[1] = 1 / (1 + math.Exp(offset-margin))
	posterior[0] = 1 / (1 + math.Exp(margin-offset))
}
