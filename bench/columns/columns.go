// Package columns reads CSV files whose columns are found by name.
package columns

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Number writes a cell: v with so many digits behind the point, nothing for NaN.
func Number(v float64, digits int) string {
	if v != v {
		return ""
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// File is a CSV file with a header.
type File struct {
	Header []string

	name  string
	lines *csv.Reader
	at    map[string]int // of a column
}

// Open reads the file at path, which must have the columns that are needed.
func Open(path string, needed ...string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Read(bytes.NewReader(text), path, needed...)
}

// Read is Open of what in holds. Name names it in errors.
func Read(in io.Reader, name string, needed ...string) (*File, error) {
	f := &File{name: name, lines: csv.NewReader(in), at: make(map[string]int)}
	var err error
	if f.Header, err = f.lines.Read(); err != nil {
		return nil, fmt.Errorf("%s: no header: %w", name, err)
	}
	for i, column := range f.Header {
		f.at[column] = i
	}
	for _, column := range needed {
		if _, ok := f.at[column]; !ok {
			return nil, fmt.Errorf("%s:1: no column %q among %s", name, column, strings.Join(f.Header, ", "))
		}
	}
	return f, nil
}

// Each calls do with every row of the file at path, see [File.Each].
func Each(path string, do func(*Row) error, needed ...string) error {
	f, err := Open(path, needed...)
	if err != nil {
		return err
	}
	return f.Each(do)
}

// Except returns the names of the columns but for some.
func (f *File) Except(some ...string) []string {
	return slices.DeleteFunc(slices.Clone(f.Header), func(name string) bool { return slices.Contains(some, name) })
}

// Each calls do with every row. It ends at the first error of do, or of a cell that do could
// not use. Errors name file and line.
func (f *File) Each(do func(*Row) error) error {
	for {
		cells, err := f.lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		r := &Row{at: f.at, cells: cells}
		if err = do(r); r.err != nil {
			err = r.err
		}
		if err != nil {
			line, _ := f.lines.FieldPos(0)
			return fmt.Errorf("%s:%d: %w", f.name, line, err)
		}
	}
}

// Row is a row of a File. A cell that cannot be used counts as undefined, and ends Each.
type Row struct {
	at    map[string]int
	cells []string
	err   error // of the first cell that could not be used
}

func (r *Row) fail(column, problem string) {
	if r.err == nil {
		r.err = fmt.Errorf("column %q: %q %s", column, r.Text(column), problem)
	}
}

// Text returns the cell of a column, empty if the file has no such column.
func (r *Row) Text(column string) string {
	if i, ok := r.at[column]; ok {
		return r.cells[i]
	}
	return ""
}

// Number returns the finite number in a column.
func (r *Row) Number(column string) float64 {
	v, err := strconv.ParseFloat(r.Text(column), 64)
	if err != nil || math.IsInf(v, 0) {
		r.fail(column, "is not a number")
		return math.NaN()
	}
	return v
}

// Maybe is Number, but that an empty cell is NaN.
func (r *Row) Maybe(column string) float64 {
	if r.Text(column) == "" {
		return math.NaN()
	}
	return r.Number(column)
}

// Numbers returns the cells of columns; an empty one is NaN.
func (r *Row) Numbers(columns []string) []float32 {
	x := make([]float32, len(columns))
	for k, name := range columns {
		x[k] = float32(r.Maybe(name))
	}
	return x
}

// Whole returns the whole number in a column, 0 if the file has no such column.
func (r *Row) Whole(column string, least int) int {
	if _, ok := r.at[column]; !ok {
		return 0
	}
	v, err := strconv.Atoi(r.Text(column))
	if err != nil || v < least {
		r.fail(column, fmt.Sprintf("must be a whole number from %d on", least))
	}
	return v
}

// Table reads the feature table of a data set that `unseen tables` has made, and its facts.
func Table(folder, name string, facts any) (*table.Table, error) {
	text, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: make the tables with `unseen tables`", err)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, facts); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(folder, name+".json"), err)
	}
	f, err := Open(filepath.Join(folder, name+".csv"), "tool", "wear")
	if err != nil {
		return nil, err
	}
	t := table.New(f.Except("tool", "faulty", "wear"))
	return t, f.Each(func(r *Row) error {
		class := r.Whole("faulty", 0)
		if class > 1 {
			return fmt.Errorf("column \"faulty\": %d is neither 0 nor 1", class)
		}
		t.Append(table.Row{Tool: r.Text("tool"), Class: class, VBMaxUM: r.Maybe("wear"), Features: r.Numbers(t.Columns)})
		return nil
	})
}

// Layout returns the channels that the features of a data set are of.
func Layout(name string, features []string) (*signal.Layout, error) {
	if name == "drill" {
		return signal.GunDrill(), nil
	}
	return train.TableLayout(name, features, time.Second)
}

// Lines reads a file with a value as JSON in each line. Errors name file and line.
func Lines[T any](path string) (all []T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// Deal returns the tools whose place is in, and the others.
func Deal(tools []string, in func(k int) bool) (some, others []string) {
	for k, tool := range tools {
		if in(k) {
			some = append(some, tool)
		} else {
			others = append(others, tool)
		}
	}
	return some, others
}
