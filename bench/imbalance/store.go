package imbalance

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/flank-tcm/flank/internal/config/atomicfile"
)

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
// been made with the same; else mismatch says what to do about it. What is not
// noted, as in older folders, is taken to be the same.
func (s *store) note(file string, columns []string, now map[string]string, of func(Key) string, mismatch func(name, old string) error) error {
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
			return fmt.Errorf("%s: %w", filepath.Join(s.dir, CellsFile), mismatch(name, old))
		}
		noted[name] = now[name]
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(columns)
	for _, name := range slices.Sorted(maps.Keys(noted)) {
		w.Write([]string{name, noted[name]})
	}
	w.Flush()
	return atomicfile.Write(path, []byte(b.String()))
}

// noteSettings writes down the settings of the methods wanted, and reports cells
// that were made with others.
func (s *store) noteSettings(wanted map[string]bool) error {
	now := make(map[string]string)
	for _, m := range Methods() {
		if wanted[m.Name] {
			now[m.Name] = m.Settings
		}
	}
	return s.note(methodsFile, []string{"method", "settings"}, now, func(k Key) string { return k.Method }, func(name, old string) error {
		return fmt.Errorf("the cells of %s were made with other settings (%s, now %s): make them again with --redo %s, or name another folder", name, old, now[name], name)
	})
}

// noteSets writes down what the sets are, by name, and reports cells that were made
// of others of that name.
func (s *store) noteSets(now map[string]string) error {
	return s.note(setsFile, []string{"dataset", "made of"}, now, func(k Key) string { return k.Dataset }, func(name, old string) error {
		return fmt.Errorf("the cells of %s were made of other rows, columns or folds (%s, now %s): name another folder", name, old, now[name])
	})
}
