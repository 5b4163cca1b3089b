package classify

import (
	"math"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Taught says what FitTable fine-tunes networks on, for other methods that are to have the same
// chances: where few groups have rows of the second of two classes, some rows are left out and
// others added, see [FitTable].
type Taught struct {
	of       *Table
	settings Settings

	// Few says that as few groups as the table few has have rows of the second class: networks' weights then
	// decay faster, and posteriors are not calibrated.
	Few bool
}

// Taught returns what FitTable fine-tunes on with the rows of t, whose classes are 0 and 1. Views
// and the unlabelled rows' After are not looked at; t is not checked.
func (t *Table) Taught(s CostSettings) *Taught {
	set := Settings{Costs: s}.settle(t.Y, t.Groups, 2, &Report{})
	return &Taught{t, set, set.boundWear}
}

// Rows returns the rows that a network learns from, with their classes, if it is given only some of the
// rows with a class. Shift is what to add to the log odds of the second class that are learnt from
// them: rows that were added or left out say what classes are like and not how common they are.
func (t *Taught) Rows(some []int) (x dbn.Matrix, y []int, shift float64, err error) {
	d := t.of.whole()
	d.rows = setOf(some)
	l := d.lesson(t.of.X, t.of.Unlabelled.X)
	rows, y, err := l.tuned(t.settings, 2)
	if err != nil {
		return x, nil, 0, err
	}
	if x, err = dbn.InMemory(rows); err != nil {
		return x, nil, 0, err
	}
	given, learnt := countClasses(l.y), countClasses(y)
	if len(given) == 2 && len(learnt) == 2 {
		shift = math.Log(float64(given[1])/float64(learnt[1])) - math.Log(float64(given[0])/float64(learnt[0]))
	}
	return x, y, shift, nil
}

// Weigh returns by how much each column counts in a network that FitTable trains on all rows of t, whose
// Views are not looked at; all 1 where columns are not weighed.
func (t *Table) Weigh(s Settings) ([]float64, error) {
	labelled, err := typical(t.X)
	if err != nil {
		return nil, err
	}
	unlabelled, err := typical(t.Unlabelled.X)
	if err != nil {
		return nil, err
	}
	s = s.withDefaults()
	s.Shared = NewShared()
	weights, _, _ := t.whole().weigh(s, labelled, unlabelled)
	return weights, nil
}
