package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
)

// each calls begin with the columns of the table and visit with its rows.
func (in Input) each(begin func(columns []string) error, visit func(table.Row) error) error {
	if in.Scan != nil {
		return in.Scan(begin, visit)
	}
	if in.Table == nil {
		return errors.New("is not a table: learn from recordings or from tables, not from both at once")
	}
	if err := begin(in.Table.Columns); err != nil {
		return err
	}
	for i := range in.Table.Rows() {
		if err := visit(in.Table.Row(i)); err != nil {
			return err
		}
	}
	return nil
}

// rowsOnDisk returns what rows returns, of tables that do not fit in memory: features go to
// a file, row by row. Tables are read twice, because it must be known first which flags are
// usual and when tools were new; and a third time for the reference, which has to know how long
// tools are and which features are positive. They are taken in the order in which they are named.
func (j *Job) rowsOnDisk(ctx context.Context, m *model.Model) (rowTable, card.Tally, error) {
	var counts card.Tally
	join, err := j.join(windowsOf(nil, nil, false))
	if err != nil {
		return rowTable{}, counts, fmt.Errorf("train: %w", err)
	}
	defer closeCut(j.Inputs)
	if err := spill(ctx, j, m); err != nil {
		return rowTable{}, counts, err
	}
	machines, err := j.survey(ctx, m, join, &counts)
	if err != nil {
		return rowTable{}, counts, err
	}
	if err := cuttingOnDisk(j, m); err != nil {
		return rowTable{}, counts, fmt.Errorf("train: %w", err)
	}
	// All ways of taking features relative to the reference are not tried on disk.
	m.Reference.Mode = modesOf(m.NewJudge().Relations(), m.Reference.Mode)[0]
	if m.Reference.Mode != model.ReferenceOff {
		c := newCuttingWindows(m)
		for _, in := range j.Inputs {
			if err := j.observeRows(ctx, m, in, func(o *observed) error { c.observe(o); return nil }); err != nil {
				return rowTable{}, counts, err
			}
		}
		if m.Reference.Mode == model.ReferenceLog {
			m.Reference.Positive = c.positive()
		}
		if counts.ReferenceFit, err = j.fitReference(m, c.windows); err != nil {
			return rowTable{}, counts, fmt.Errorf("train: %w", err)
		}
	}
	if err := j.provenance(m); err != nil {
		return rowTable{}, counts, err
	}
	l := newLabeller(m, j.Config.Label, join, &counts, machines > 1)
	l.presume, l.watch, l.tell = j.presume, j.watch, newTelltales(m.Layout, l.judge.FeatureNames())
	t, err := j.keepRows(ctx, m, l)
	if err == nil {
		err = l.finish(t.Rows())
		t.mismatches = counts.Mismatches
	}
	if err != nil {
		t.close()
	}
	return t, counts, err
}

// spill reads windows that were cut already onto disk.
func spill(ctx context.Context, j *Job, m *model.Model) error {
	for i := range j.Inputs {
		in := &j.Inputs[i]
		if in.Cut == nil {
			continue
		}
		in.cut = newCutRows(j.Scratch, in.Windows)
		if err := in.readCut(ctx, m, m.NewJudge(), in.cut, unended(func(done, total int) { j.Progress(Reading, done, total) }), keepAll); err != nil {
			return fmt.Errorf("train: %s: %w", in.Name, err)
		}
	}
	return nil
}

// cuttingOnDisk learns when the machine is cutting, and how windows follow each other, of a sample of the windows on disk. Rows of
// tables are of cutting.
func cuttingOnDisk(j *Job, m *model.Model) error {
	var found [][]observed
	for _, in := range j.Inputs {
		if in.cut == nil {
			continue
		}
		some, err := in.cut.sample(sampleBytes)
		if err != nil {
			return err
		}
		found = append(found, some...)
	}
	if found == nil {
		m.Gate, m.Cycle = nil, nil
		return nil
	}
	j.Log.Warn().Msg("the windows of the archive stay on disk, as they do not fit in memory: the model has no guard and no estimate of wear, and one mode of the reference is tried; for these, name fewer machines or days")
	j.hop = medianHop(found)
	return j.settleCutting(m, found)
}

// survey reads all tables once, for the flags that are usual, the first window of each tool
// and the provenance. It returns the number of machines.
func (j *Job) survey(ctx context.Context, m *model.Model, join *wear.Join, counts *card.Tally) (machines int, err error) {
	flags := newFlagCount(len(m.Layout.Channels()))
	names := make(map[string]bool)
	for i, in := range j.Inputs {
		data := lineage{length: m.Window.Length}
		if err := j.observeRows(ctx, m, in, func(o *observed) error {
			counts.Windows++
			flags.add(o.Quality)
			data.add(o)
			names[o.machine] = true
			if join != nil {
				join.See(o.window(m.Window.Length))
			}
			return nil
		}); err != nil {
			return 0, err
		}
		m.Provenance.Data = append(m.Provenance.Data, data.dataSet(&in))
		j.Progress(Reading, i+1, 2*len(j.Inputs))
	}
	m.Usual = flags.usual()
	if join != nil {
		if err := join.Check(); err != nil {
			return 0, fmt.Errorf("train: %w", err)
		}
	}
	return len(names), nil
}

// keepRows writes the rows of all tables to files. They are the caller's to close, also with
// an error.
func (j *Job) keepRows(ctx context.Context, m *model.Model, l *labeller) (t rowTable, err error) {
	t.Table, t.classes = table.New(l.judge.FeatureNames()), m.ClassNames()
	t.stats = newColumnStats(len(t.Columns))
	t.Class, t.group = make([]int, 0, l.counts.Windows), make([]string, 0, l.counts.Windows)
	if t.onDisk, err = table.NewRowFile(j.Scratch, len(t.Columns)); err != nil {
		return t, fmt.Errorf("train: %w", err)
	}
	for i, in := range j.Inputs {
		if err := j.observeRows(ctx, m, in, func(o *observed) error {
			row, ok, err := l.row(o)
			if err != nil {
				return err
			}
			if t.kept.see(o, l.group(o)); !ok {
				return nil
			}
			t.kept.add(o, row.class == table.NoClass)
			if row.class == table.NoClass {
				return t.addBare(j.Scratch, row)
			}
			t.stats.add(row.features)
			t.Class = append(t.Class, row.class)
			t.group = append(t.group, row.group)
			return t.onDisk.Append(row.features)
		}); err != nil {
			return t, err
		}
		j.Progress(Reading, len(j.Inputs)+i+1, 2*len(j.Inputs))
	}
	t.Tool = t.group
	l.counts.Missing, l.counts.LeftOut = t.stats.missing, leftOut(j.Inputs)
	t.hop = j.hop
	l.describe(&t)
	for _, f := range []*table.RowFile{t.onDisk, t.bare.onDisk} {
		if f == nil {
			continue
		}
		if err := f.Flush(); err != nil {
			return t, fmt.Errorf("train: %w", err)
		}
	}
	return t, nil
}

// addBare appends a row without a label to a file of its own.
func (t *rowTable) addBare(scratch string, row labelled) (err error) {
	b := &t.bare
	if b.onDisk == nil {
		if b.onDisk, err = table.NewRowFile(scratch, len(t.Columns)); err != nil {
			return err
		}
	}
	b.group, b.after = append(b.group, row.group), append(b.after, len(t.Class))
	return b.onDisk.Append(row.features)
}

// observeRows calls visit with what is observed in each row of a table.
func (j *Job) observeRows(ctx context.Context, m *model.Model, in Input, visit func(*observed) error) error {
	if in.cut != nil {
		return in.cut.each(func(_ int, o *observed) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return visit(o)
		})
	}
	var r *rowReader
	var o observed
	err := in.each(func(columns []string) (err error) {
		r, err = newRowReader(m, m.NewJudge(), in.Name, columns)
		return err
	}, func(row table.Row) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !isCutting(row) {
			return nil
		}
		if err := r.observe(row, &o); err != nil {
			return err
		}
		return visit(&o)
	})
	if err != nil {
		return fmt.Errorf("train: %s: %w", in.Name, err)
	}
	return nil
}
