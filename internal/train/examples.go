package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// examples are the windows that a job would learn from, for a comparison of methods.
type examples struct {
	Columns []string // names of features, without those that the configuration excludes
	X       dbn.Matrix
	Y       []int     // 0 healthy, 1 any other class
	Groups  []string  // tool of each row
	Ordered bool      // the rows of each tool are in the order of time
	Wear    []float64 // of each row, in limits of the label; nil if it is not known of all rows

	Reference string // mode by which rows are relative to their tool's reference
	Faulty    string // what class 1 is called
	Label     string // the rule for it, in words
	Settings  classify.Settings
	Balance   string   // rows by class and tool, in words
	Warnings  []string // what to know about the rows
}

// ExamplesOf observes the recordings of a job and returns the windows that have a label, relative
// to the reference. Of several modes it takes the first: the one that Run keeps in doubt.
func ExamplesOf(ctx context.Context, job Job) (*examples, error) {
	job.prepare()
	if err := job.Config.Check(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	rows, m, counts, err := job.rows(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.close()
	if err := rows.check(job.Config.Label); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if rows.onDisk != nil {
		return nil, fmt.Errorf("train: %w: %d windows do not fit in memory: name a part of the tables, such as the tools of one month", errData, rows.Rows())
	}
	e := &examples{
		Y: make([]int, rows.Rows()), Groups: slices.Clone(rows.group), Ordered: rows.ordered, Wear: rows.wearInLimits(), Label: job.Config.Label.String(), Settings: job.settings(rows),
		Balance: rows.balance(), Warnings: slices.Concat(rows.warnings(), rows.columnWarnings(), rows.copyWarnings(), counts.Warnings()),
	}
	if e.Faulty = "class " + rows.classes[1]; several(rows.classes) {
		e.Faulty = "any class but " + rows.classes[0]
	}
	if rows.rel != nil {
		m.Reference = rows.settle(rows.rel.modes[0], m.Reference.Windows)
	}
	e.Reference = string(m.Reference.Mode)
	for i, class := range rows.Class {
		e.Y[i] = min(class, 1)
	}
	e.X, e.Columns = withoutColumns(rows.inMemory(), rows.Columns, rows.exclude)
	e.Settings.Exclude = nil
	return e, nil
}

// Words says in a sentence what rows there are.
func (e *examples) Words() string {
	features := fmt.Sprintf("%d features", e.X.Cols)
	if e.Reference != "off" {
		features += fmt.Sprintf(", relative to the tool's reference by mode %s", e.Reference)
	}
	return fmt.Sprintf("%s; %s; %s", e.Balance, e.Label, features)
}

// withoutColumns returns a copy of x without some columns, which ascend, and the names of the others.
func withoutColumns(x dbn.Matrix, names []string, without []int) (dbn.Matrix, []string) {
	var kept []int
	var left []string
	for j, name := range names {
		if _, out := slices.BinarySearch(without, j); !out {
			kept, left = append(kept, j), append(left, name)
		}
	}
	out := dbn.NewMatrix(x.Rows, len(kept))
	for i := range x.Rows {
		for k, j := range kept {
			out.Row(i)[k] = x.Row(i)[j]
		}
	}
	return out, left
}
