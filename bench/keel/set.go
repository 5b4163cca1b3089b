package keel

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Folds is the number of parts that KEEL cuts a set into.
const Folds = 5

// Set is a data set with KEEL's own folds.
//
// A number is a column of X, a nominal attribute of two values a column of 0 and
// 1, and one of more a column for each of its values, 1 where a row has it. NaN
// is a missing value.
type Set struct {
	Name    string
	Columns []string        // names of the columns of X
	Classes []string        // names of the classes, the most frequent first
	X       dbn.Matrix      // the test rows of the first fold, then of the second, …
	Y       []int           // by row: the index of the class
	Folds   []classify.Fold // which hold out every row once
}

// Load reads a set from its folder in dir: the files name/name-5-1tra.dat,
// name/name-5-1tst.dat and so on. It reports folds that do not partition the
// rows, by which a test row would be trained on.
func Load(dir, name string) (*Set, error) {
	var all []*file // the test parts, then the training parts
	for i := range 2 * Folds {
		path := path(dir, name, i%Folds, []string{"tst", "tra"}[i/Folds])
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := read(bytes.NewReader(text), path)
		if err != nil {
			return nil, err
		}
		if all = append(all, f); !f.declaresAs(all[0]) {
			return nil, fmt.Errorf("%s: its attributes differ from the first test file's: all files of a set declare the same", path)
		}
	}
	merge(all)
	tests, trains := all[:Folds], all[Folds:]
	for f := range Folds {
		others := slices.Concat(tests[:f], tests[f+1:])
		if row, ok := same(trains[f:f+1], others); !ok {
			return nil, fmt.Errorf("%s: its rows differ from the rows of the other four test files, for example %v: folds that overlap flatter every method; get the set again",
				path(dir, name, f, "tra"), row)
		}
	}
	return assemble(name, tests), nil
}

// Names returns the names of the sets in dir, in alphabetical order.
func Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		_, err := os.Stat(path(dir, e.Name(), 0, "tst"))
		switch {
		case err == nil:
			names = append(names, e.Name())
		case !errors.Is(err, fs.ErrNotExist) && e.IsDir():
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: holds no folder NAME with a file NAME-5-1tst.dat: name the folder of KEEL's sets", dir)
	}
	return names, nil
}

func path(dir, name string, fold int, part string) string {
	return filepath.Join(dir, name, fmt.Sprintf("%s-%d-%d%s.dat", name, Folds, fold+1, part))
}

func (f *file) declaresAs(g *file) bool {
	same := func(a, b attribute) bool { return a.Name == b.Name && a.nominal() == b.nominal() }
	return slices.EqualFunc(f.Inputs, g.Inputs, same) && same(f.Output, g.Output)
}

// merge gives nominal attributes the same values in the same order in all files.
func merge(files []*file) {
	// unite returns, by file, the new index of each value of an attribute.
	unite := func(of func(*file) *attribute) (to [][]int) {
		var values []string
		for _, f := range files {
			to = append(to, nil)
			for _, v := range of(f).Values {
				at := slices.Index(values, v)
				if at < 0 {
					at, values = len(values), append(values, v)
				}
				to[len(to)-1] = append(to[len(to)-1], at)
			}
		}
		for _, f := range files {
			of(f).Values = values
		}
		return to
	}
	for k, to := range unite(func(f *file) *attribute { return &f.Output }) {
		for i, c := range files[k].Class {
			files[k].Class[i] = to[c]
		}
	}
	for j, a := range files[0].Inputs {
		if !a.nominal() {
			continue
		}
		for k, to := range unite(func(f *file) *attribute { return &f.Inputs[j] }) {
			for i := j; i < len(files[k].Data); i += len(files[k].Inputs) {
				if v := files[k].Data[i]; !math.IsNaN(v) {
					files[k].Data[i] = float64(to[int(v)])
				}
			}
		}
	}
}

// same reports whether files a and b hold the same rows as often, and else one of
// which one of them holds more.
func same(a, b []*file) (row string, ok bool) {
	count := make(map[string]int)
	add := func(files []*file, by int) {
		for _, f := range files {
			for i, class := range f.Class {
				row := fmt.Sprintf("%v %s", f.Data[i*len(f.Inputs):(i+1)*len(f.Inputs)], f.Output.Values[class])
				count[row] += by
			}
		}
	}
	add(a, 1)
	add(b, -1)
	for r, n := range count {
		if n != 0 && (row == "" || r < row) {
			row = r
		}
	}
	return row, row == ""
}

func assemble(name string, tests []*file) *Set {
	s := &Set{Name: name}
	rows := 0
	output := tests[0].Output.Values
	counts := make([]int, len(output))
	for _, f := range tests {
		rows += len(f.Class)
		for _, c := range f.Class {
			counts[c]++
		}
	}

	// Declared classes that never occur are none.
	var order []int
	for c, n := range counts {
		if n > 0 {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	label := make([]int, len(output))
	for y, c := range order {
		label[c] = y
		s.Classes = append(s.Classes, output[c])
	}

	inputs := tests[0].Inputs
	for _, a := range inputs {
		if len(a.Values) <= 2 {
			s.Columns = append(s.Columns, a.Name)
			continue
		}
		for _, v := range a.Values {
			s.Columns = append(s.Columns, a.Name+"="+v)
		}
	}
	s.X = dbn.NewMatrix(rows, len(s.Columns))
	s.Folds = make([]classify.Fold, len(tests))
	for held, f := range tests {
		for i, class := range f.Class {
			encode(s.X.Row(len(s.Y)), f.Data[i*len(inputs):(i+1)*len(inputs)], inputs)
			for g := range s.Folds {
				if g == held {
					s.Folds[g].Test = append(s.Folds[g].Test, len(s.Y))
				} else {
					s.Folds[g].Train = append(s.Folds[g].Train, len(s.Y))
				}
			}
			s.Y = append(s.Y, label[class])
		}
	}
	return s
}

func encode(dst []float32, values []float64, inputs []attribute) {
	for j, v := range values {
		n := len(inputs[j].Values)
		switch {
		case n <= 2:
			n, dst[0] = 1, float32(v)
		case math.IsNaN(v):
			for i := range n {
				dst[i] = float32(v)
			}
		default:
			dst[int(v)] = 1
		}
		dst = dst[n:]
	}
}
