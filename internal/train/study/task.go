package study

import (
	"slices"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// NewTask returns the task to learn from some rows of a table, others taken as rows without a class,
// and to judge the test rows. Rows are in the table's first view, which a network keeps to in doubt, as
// those that are learnt from teach it, and in memory. Columns have the weights that a network would give
// them. The table's own rows without a class are not looked at.
func NewTask(all *classify.Table, labelled, bare, test []int) (Task, error) {
	seen := slices.Concat(labelled, bare)
	slices.Sort(seen)
	x := all.X
	if len(all.Views) > 0 {
		x, _ = all.Views[0].Rows(seen, nil)
	}
	part := func(some []int) dbn.Matrix { return classify.Part(x, some).(dbn.Matrix) }
	t := Task{X: part(labelled), Test: part(test), Ordered: all.Ordered, Seed: 1, Workers: 1}
	t.Y, t.Groups, t.Wear = classify.Pick(all.Y, labelled), classify.Pick(all.Groups, labelled), classify.Pick(all.Wear, labelled)
	if len(bare) > 0 {
		t.Unlabelled = classify.Unlabelled{X: part(bare), Groups: classify.Pick(all.Groups, bare), After: slices.Repeat([]int{len(labelled)}, len(bare))}
	}
	ended := all.Ended
	if ended != nil {
		ended = func(group string) bool { return slices.Contains(t.Unlabelled.Groups, group) || all.Ended(group) }
	}
	var err error
	t.Weights, err = (&classify.Table{X: t.X, Y: t.Y, Groups: t.Groups, Ordered: t.Ordered, Ended: ended, Unlabelled: t.Unlabelled}).Weigh(classify.Settings{})
	return t, err
}
