package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// largeTables is the size of files, all together, from which on tables are not
// held in memory. Tests lower it.
var largeTables int64 = 128 << 20

// garbageOfLarge is how much garbage, in percent of what is in use, may pile up in
// the memory of a run on large tables: less than Go's 100, for some of its time.
const garbageOfLarge = 25

// tables reads tables. A table named twice would make near copies look like windows of
// another tool.
type tables struct {
	machine string // of rows that name none
	scan    bool   // large tables may be left on disk
	ignore  *table.Ignore
	keep    []string // columns that are features
	of      *windows // that the rows are of, as a layout that is named says, or the tables; nil: nothing does
	log     zerolog.Logger

	features []string // names of features of these windows
	inputs   []train.Input
	meta     *train.FeatureMeta // of the first table, if all are of recordings
	changed  *train.FeatureMeta // of the first table, if all were of recordings before one was changed
	bySum    map[string]string  // path by checksum
}

// windows says of what windows rows are.
type windows struct {
	layout   *signal.Layout
	spec     window.Spec
	features signal.FeatureSpec
}

// read reads those that the arguments name, files or patterns.
func (t *tables) read(args []string) error {
	paths, err := matchAll("--table", args)
	if err != nil {
		return err
	}
	var size int64
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("--table: %w", err)
		}
		size += info.Size()
	}
	t.bySum = make(map[string]string)
	if of, err := t.ofRecordings(paths); err != nil || of {
		return err
	}
	if t.of != nil { // who named the layout has chosen
		form, err := window.NewForm(t.of.layout, t.of.spec, t.of.features, nil)
		if err != nil {
			return err
		}
		t.features = form.Names()
	}
	if err := t.leaveOut(paths); err != nil {
		return err
	}
	open := t.inMemory
	if t.scan && size >= largeTables {
		open = t.onDisk
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(garbageOfLarge)
		}
	}
	for _, path := range paths {
		in, err := open(path)
		if err != nil {
			return err
		}
		in.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if err := t.once(in.SHA256, path); err != nil {
			return err
		}
		t.inputs = append(t.inputs, in)
	}
	return nil
}

// leakRows is how many rows say what a column is.
const leakRows = 1 << 20

// errEnough ends a scan before the end of a table.
var errEnough = errors.New("enough rows")

// leaveOut leaves out columns whose name says a label, and columns of which table.Leak says why, in all tables together, and says so.
func (t *tables) leaveOut(paths []string) error {
	var names []string
	columns := make(map[string]*table.Leak)
	tool, rows := "", 0
	for _, path := range paths {
		var leaks []*table.Leak
		err := t.ignore.Scan(path, func(header []string) error {
			for _, name := range header {
				if columns[name] == nil {
					columns[name], names = new(table.Leak), append(names, name)
				}
				leaks = append(leaks, columns[name])
			}
			return nil
		}, func(r table.Row) error {
			changed := rows > 0 && r.Tool != tool
			if changed || rows == 0 {
				tool = strings.Clone(r.Tool)
			}
			for i, v := range r.Features {
				leaks[i].Add(float64(v), changed)
			}
			if rows++; rows >= leakRows {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	for _, name := range t.keep {
		if columns[name] == nil {
			return fmt.Errorf("--keep %s: no column of %s is named so: check the spelling", name, paths[0])
		}
	}
	left := 0
	for _, name := range names {
		why := columns[name].Why()
		if says := source.SaysLabel(name, names); says != "" {
			why = fmt.Sprintf("its name says %s, which is a label and no measurement", says)
		}
		if why != "" && !slices.Contains(t.keep, name) && !slices.Contains(t.features, name) {
			t.ignore.Add(name)
			left++
			t.log.Warn().Str("column", name).Msg("the column is left out: " + why + "; if it is a feature, give --keep with its name")
		}
	}
	if left > 0 && left == len(names) {
		return fmt.Errorf("--table %s: none of its %d columns of numbers seems to be a measurement, see the warnings: name the features among them with --keep", paths[0], left)
	}
	return nil
}

// once reports a table that was named already.
func (t *tables) once(sum, path string) error {
	if other, twice := t.bySum[sum]; twice {
		return fmt.Errorf("--table: %s and %s are the same table: name one of them", other, path)
	}
	t.bySum[sum] = path
	return nil
}

// ofRecordings reads tables if `trainer features` has written all of them and they are as it
// wrote them. They stand for the recordings, which are held in memory as well.
func (t *tables) ofRecordings(paths []string) (bool, error) {
	metas := make([]*train.FeatureMeta, len(paths))
	for i, path := range paths {
		text, err := table.Meta(path)
		if err != nil {
			return false, err
		}
		if metas[i], err = train.ParseFeatureMeta(text); err != nil {
			return false, fmt.Errorf("--table %s: %w", path, err)
		}
		if metas[i] == nil {
			return false, nil
		}
		if how := metas[i].OnlyToLookAt(); how != "" {
			return false, fmt.Errorf("--table %s: it was written with %s, to look at: write the table without it to learn from it", path, how)
		}
		if why := metas[0].Same(metas[i]); why != "" {
			return false, fmt.Errorf("--table: %s and %s are not of the same kind: %s", paths[0], path, why)
		}
	}
	for i, path := range paths {
		in, err := t.inMemory(path)
		if err != nil {
			return false, err
		}
		some, ok := metas[i].Inputs(in.Table, in.SHA256)
		if !ok {
			t.log.Info().Str("table", path).Msg("the table is not as `trainer features` wrote it, so it is taken for a table of numbers: the model does not know the recordings")
			t.inputs, t.bySum = nil, make(map[string]string)
			if t.of == nil {
				l, err := metas[0].ReadLayout()
				if err != nil {
					return false, fmt.Errorf("--table %s: %w", path, err)
				}
				t.changed, t.of = metas[0], &windows{l, metas[0].Spec(), metas[0].Features}
			}
			return false, nil
		}
		for _, in := range some {
			if err := t.once(in.SHA256, path); err != nil {
				return false, err
			}
		}
		t.inputs = append(t.inputs, some...)
	}
	t.meta = metas[0]
	return true, nil
}

// inMemory reads a table.
func (t *tables) inMemory(path string) (train.Input, error) {
	all, err := t.ignore.Load(path)
	if err != nil {
		return train.Input{}, err
	}
	if all.Rows() == 0 {
		return train.Input{}, noRows(path)
	}
	var nameless nameless
	for i, tool := range all.Tool {
		if tool == "" {
			return train.Input{}, noTool(path, i+1)
		}
		nameless.see(tool, i+1)
		all.Machine[i] = cmp.Or(all.Machine[i], t.machine)
	}
	nameless.warn(t.log, path)
	sum := all.SHA256()
	return train.Input{SHA256: hex.EncodeToString(sum[:]), Windows: all.Rows(), Table: all}, nil
}

// onDisk leaves a table where it is. It is known by the bytes of its file.
func (t *tables) onDisk(path string) (train.Input, error) {
	f, err := os.Open(path)
	if err != nil {
		return train.Input{}, fmt.Errorf("--table: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return train.Input{}, fmt.Errorf("--table %s: %w", path, err)
	}
	var told sync.Once // a table is read several times
	scan := func(begin func([]string) error, each func(table.Row) error) error {
		rows := 0
		var nameless nameless
		err := t.ignore.Scan(path, begin, func(r table.Row) error {
			if rows++; r.Tool == "" {
				return noTool(path, rows)
			}
			nameless.see(r.Tool, rows)
			r.Machine = cmp.Or(r.Machine, t.machine)
			return each(r)
		})
		if err == nil && rows == 0 {
			err = noRows(path)
		}
		told.Do(func() { nameless.warn(t.log, path) })
		return err
	}
	return train.Input{SHA256: hex.EncodeToString(h.Sum(nil)), Scan: scan}, nil
}

// nameless counts rows whose tool is a word for a missing name.
type nameless struct {
	rows, first int
	name        string
}

func (n *nameless) see(tool string, row int) {
	if !table.IsMissing(tool) {
		return
	}
	if n.rows++; n.rows == 1 {
		n.first, n.name = row, strings.Clone(tool)
	}
}

func (n *nameless) warn(log zerolog.Logger, path string) {
	if n.rows > 0 {
		log.Warn().Msgf("--table %s: rows whose tool is a word for a missing name: %d, the first is row %d, %q: they count as one tool of that name; name their tools", path, n.rows, n.first, n.name)
	}
}

func noRows(path string) error {
	return fmt.Errorf("--table %s: it has no rows: write the table again", path)
}

func noTool(path string, row int) error {
	return fmt.Errorf("--table %s: row %d names no tool: fill in the column tool, by which rows are held out", path, row)
}

// layoutOfTables finds the layout of tables that are not as `trainer features` wrote them. It is the one that is
// named; the one of the recordings, if the columns are still its features; or one made of the columns.
func (d *dataset) layoutOfTables(t *tables) (err error) {
	columns, err := columnsOf(t.inputs[0])
	if err != nil {
		return err
	}
	for _, in := range t.inputs[1:] {
		others, err := columnsOf(in)
		if err != nil {
			return err
		}
		if more := without(others, columns); len(more) > 0 {
			t.log.Warn().Msgf("columns of %s that %s does not have are left out: %s", in.Name, t.inputs[0].Name, card.Some(more))
		}
	}
	if t.of == nil {
		d.Layout, err = train.TableLayout(t.inputs[0].Name, columns, d.Config.Window.Length)
		return err
	}
	more := without(columns, t.features)
	switch {
	case t.changed == nil && len(more) > 0:
		t.log.Warn().Strs("columns", more).Msgf("columns are left out that are not features of layout %q", d.Layout.Name())
		return nil
	case t.changed == nil:
		return nil
	case len(more) == 0 && len(columns) == len(t.features):
		d.Layout, err = t.changed.Apply(&d.Config, nil, true)
		d.Config.Window.Said = true // by the table
		return err
	}
	t.log.Warn().Strs("more", more).Int("lacking", len(t.features)+len(more)-len(columns)).
		Msgf("the columns are not the features of layout %q, so the table is not taken for one of its windows: for a model that judges machines of this layout, leave out with --ignore what is more, and put back what is lacking", t.changed.Layout.Name)
	d.Layout, err = train.TableLayout(t.inputs[0].Name, columns, d.Config.Window.Length)
	return err
}

// without returns the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(others, n) })
}

// columnsOf returns the names of the features of a table.
func columnsOf(in train.Input) (columns []string, err error) {
	if in.Table != nil {
		return in.Table.Columns, nil
	}
	enough := errors.New("header read")
	if err := in.Scan(func(c []string) error { columns = c; return enough }, nil); !errors.Is(err, enough) {
		return nil, err
	}
	return columns, nil
}
