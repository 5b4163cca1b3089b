package imbalance

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/score"
)

// Key says which cell it is. Trials and folds count from 1.
type Key struct {
	Dataset, Method string
	Trial, Fold     int
}

// Cell is what came of one set, method, trial and fold. Figures are in [0, 1] but
// MCC; one that asks about a class that the test part lacks is NaN, and an empty
// field in a file.
type Cell struct {
	Key
	Accuracy, GMean, AUC  float64 // AUC by ranks of scores
	Precision, Recall, F1 float64 // of the rare class; 0 where they divide 0 by 0
	Seconds               float64 // of a processor, for training
	MCC, BalancedAccuracy float64
	TP, FN, FP, TN        int
	// Micros is µs of a processor to judge one test row; NaN in cells that were
	// made before it was measured.
	Micros float64
	// Groups counts the decisions on the rows of each group, in the order in which groups
	// begin in the test part; nil of rows without groups, and in cells that were made before
	// it was counted.
	Groups []score.Confusion
}

var cellColumns = []string{"dataset", "method", "trial", "fold", "accuracy", "gmean", "auc", "precision", "recall", "f1", "seconds",
	"mcc", "balanced_accuracy", "tp", "fn", "fp", "tn", "us_per_row", "by_group"}

// firstOptional is the index of the first column that a file of cells may lack.
const firstOptional = 11

// newCell scores decisions on rows of classes y, and of groups unless these are nil.
func newCell(k Key, y []int, groups []string, a methodAnswer) Cell {
	m := score.NewConfusion(2)
	positive := make([]bool, len(y))
	place := make(map[string]int) // of a group in byGroup
	var byGroup []score.Confusion
	for i, label := range y {
		m.Add(label, a.Decision[i])
		positive[i] = label == 1
		if groups == nil {
			continue
		}
		g, seen := place[groups[i]]
		if !seen {
			g = len(byGroup)
			place[groups[i]], byGroup = g, append(byGroup, score.NewConfusion(2))
		}
		byGroup[g].Add(label, a.Decision[i])
	}
	s := m.Summary()
	return Cell{
		Key: k, Accuracy: float64(s.Accuracy), GMean: float64(s.GMean), AUC: score.AUC(a.Score, positive),
		Precision: float64(s.Precision), Recall: float64(s.Recall), F1: float64(s.F1), Seconds: a.Seconds,
		MCC: float64(s.MCC), BalancedAccuracy: float64(s.BalancedAccuracy),
		TP: m[1][1], FN: m[1][0], FP: m[0][1], TN: m[0][0],
		Micros: 1e6 * a.Judging / float64(len(y)),
		Groups: byGroup,
	}
}

// Figures returns the cell's figures, in the order of a file's columns.
func (c *Cell) Figures() []*float64 {
	return []*float64{&c.Accuracy, &c.GMean, &c.AUC, &c.Precision, &c.Recall, &c.F1, &c.Seconds, &c.MCC, &c.BalancedAccuracy, &c.Micros}
}

func (c Cell) line() string {
	var figures, byGroup []string
	for k, v := range c.Figures() {
		figures = append(figures, columns.Number(*v, []int{6, 6, 6, 6, 6, 6, 4, 6, 6, 3}[k]))
	}
	for _, m := range c.Groups {
		byGroup = append(byGroup, fmt.Sprintf("%d/%d/%d/%d", m[1][1], m[1][0], m[0][1], m[0][0])) // tp/fn/fp/tn
	}
	return fmt.Sprintf("%s,%s,%d,%d,%s,%d,%d,%d,%d,%s,%s\n", c.Dataset, c.Method, c.Trial, c.Fold,
		strings.Join(figures[:9], ","), c.TP, c.FN, c.FP, c.TN, figures[9], strings.Join(byGroup, " "))
}

// readCells reads the cells of a file. MCC and the columns behind it may be missing, as in the files of the peers, and are NaN and 0 then.
func readCells(in io.Reader, name string) (cells []Cell, err error) {
	f, err := columns.Read(in, name, cellColumns[:firstOptional]...)
	if err != nil {
		return nil, err
	}
	err = f.Each(func(r *columns.Row) error {
		c, err := cellOf(r)
		cells = append(cells, c)
		return err
	})
	return cells, err
}

func cellOf(r *columns.Row) (c Cell, err error) {
	c = Cell{
		Key: Key{r.Text("dataset"), r.Text("method"), r.Whole("trial", 1), r.Whole("fold", 1)},
		TP:  r.Whole("tp", 0), FN: r.Whole("fn", 0), FP: r.Whole("fp", 0), TN: r.Whole("tn", 0),
	}
	for k, v := range c.Figures() {
		*v = r.Maybe(slices.Concat(cellColumns[4:13], cellColumns[17:])[k])
	}
	sum := [4]int{}
	for _, text := range strings.Fields(r.Text("by_group")) {
		var n [4]int
		if _, err := fmt.Sscanf(text, "%d/%d/%d/%d", &n[0], &n[1], &n[2], &n[3]); err != nil || slices.Min(n[:]) < 0 {
			return c, fmt.Errorf("by_group %q must be tp/fn/fp/tn, whole numbers from 0 on", text)
		}
		for i := range sum {
			sum[i] += n[i]
		}
		c.Groups = append(c.Groups, score.Confusion{{n[3], n[2]}, {n[1], n[0]}})
	}
	if total := [4]int{c.TP, c.FN, c.FP, c.TN}; c.Groups != nil && sum != total {
		return c, fmt.Errorf("by_group sums to %v, but tp, fn, fp and tn are %v", sum, total)
	}
	return c, nil
}

// LoadCells reads the file of cells at path.
func LoadCells(path string) ([]Cell, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return readCells(bytes.NewReader(text), path)
}

func sortCells(cells []Cell) {
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Or(strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Method, b.Method), cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Fold, b.Fold))
	})
}

// writeCells replaces the file at path by the cells in order.
func writeCells(path string, cells []Cell) error {
	sortCells(cells)
	var b bytes.Buffer
	b.WriteString(strings.Join(cellColumns, ",") + "\n")
	for _, c := range cells {
		b.WriteString(c.line())
	}
	return config.WriteFile(path, b.Bytes())
}

// Exact rounds a mean to nine digits, more than cells have: what is equal is a tie
// then, however many trials there were. (Ten times a tenth is not 1 in a float64.)
func Exact(v float64) float64 { return math.Round(v*1e9) / 1e9 }

// Files of a study.
const (
	CellsFile   = "cells.csv"
	methodsFile = "methods.csv" // the settings that the cells of each method were made with
	setsFile    = "sets.csv"    // the rows and folds that the cells of each set were made of
	lockFile    = ".lock"       // held by the process that adds to the cells
)

// store is a folder of cells to which more are added. A process that dies leaves
// whole lines behind, but for the last perhaps, which the next one drops.
type store struct {
	dir   string
	lock  *flock.Flock
	cells []Cell
	has   map[Key]bool
	file  *os.File // nil before begin
}

// openStore takes the folder, which it makes if need be, for this process, and
// reads its cells but those that drop names. Nothing is written before begin.
func openStore(dir string, drop func(Key) bool) (*store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &store{dir: dir, lock: flock.New(filepath.Join(dir, lockFile)), has: make(map[Key]bool)}
	if locked, err := s.lock.TryLock(); err != nil {
		return nil, err
	} else if !locked {
		return nil, fmt.Errorf("%s: another study is adding to its cells: wait for it, or name another folder", dir)
	}
	if err := s.read(drop); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

func (s *store) read(drop func(Key) bool) error {
	path := filepath.Join(s.dir, CellsFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if end := bytes.LastIndexByte(text, '\n'); end >= 0 {
		if s.cells, err = readCells(bytes.NewReader(text[:end+1]), path); err != nil {
			return err
		}
	}
	s.cells = slices.DeleteFunc(s.cells, func(c Cell) bool { return drop(c.Key) })
	for _, c := range s.cells {
		if s.has[c.Key] {
			return fmt.Errorf("%s: the cell of %s, %s, trial %d, fold %d is there twice: remove one line", path, c.Dataset, c.Method, c.Trial, c.Fold)
		}
		s.has[c.Key] = true
	}
	return nil
}

// begin writes the cells in order, so that more can be added.
func (s *store) begin() error {
	path := filepath.Join(s.dir, CellsFile)
	if err := writeCells(path, s.cells); err != nil {
		return err
	}
	var err error
	s.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o644)
	return err
}

// add writes cells in one go.
func (s *store) add(cells []Cell) error {
	var b bytes.Buffer
	for _, c := range cells {
		b.WriteString(c.line())
		s.has[c.Key] = true
	}
	s.cells = append(s.cells, cells...)
	_, err := s.file.Write(b.Bytes())
	return err
}

// close puts the file in order, if it was written to, and lets the folder go.
func (s *store) close() error {
	var err error
	if s.file != nil {
		err = errors.Join(s.file.Close(), writeCells(filepath.Join(s.dir, CellsFile), s.cells))
	}
	return errors.Join(err, s.lock.Close())
}

// note writes down, in a file of two columns, what the cells of each name are made
// with now. Names that have cells, by the key's field, as of returns it, must have
// been made with the same; else mismatch says what to do about it, of the name, what was noted, and what is now. What is not
// noted, as in older folders, is taken to be the same.
func (s *store) note(file string, columns []string, now map[string]string, of func(Key) string, mismatch string) error {
	path := filepath.Join(s.dir, file)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	noted := make(map[string]string)
	for _, line := range lines[min(1, len(lines)):] {
		noted[line[0]] = line[len(line)-1]
	}
	made := make(map[string]bool)
	for k := range s.has {
		made[of(k)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if old, ok := noted[name]; ok && made[name] && old != now[name] {
			return fmt.Errorf("%s: "+mismatch, filepath.Join(s.dir, CellsFile), name, old, now[name])
		}
		noted[name] = now[name]
	}
	return config.WriteFileTo(path, func(out io.Writer) error {
		lines := [][]string{columns}
		for _, name := range slices.Sorted(maps.Keys(noted)) {
			lines = append(lines, []string{name, noted[name]})
		}
		return csv.NewWriter(out).WriteAll(lines)
	})
}

// addTo takes a folder, drops cells of it, and lets do add others. Sets and settings say what the cells of each set and method are made of and
// with now; it is an error if cells that stay were made otherwise. It returns all cells.
func addTo(dir string, drop func(Key) bool, sets, settings map[string]string, do func(*store) error) ([]Cell, error) {
	s, err := openStore(dir, drop)
	if err != nil {
		return nil, err
	}
	err = s.note(setsFile, []string{"dataset", "made of"}, sets, func(k Key) string { return k.Dataset },
		"the cells of %s were made of other rows, columns or folds (%s, now %s): name another folder")
	if err == nil && settings != nil {
		err = s.note(methodsFile, []string{"method", "settings"}, settings, func(k Key) string { return k.Method },
			"the cells of %[2]s were made with other settings (%[3]s, now %[4]s): make them again with --redo %[2]s, or name another folder")
	}
	if err == nil {
		err = s.begin()
	}
	if err == nil {
		err = do(s)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return nil, err
	}
	return s.cells, nil
}
