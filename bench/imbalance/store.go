package imbalance

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

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
	return atomicfile.WriteTo(path, func(out io.Writer) error {
		w := csv.NewWriter(out)
		w.Write(columns)
		for _, name := range slices.Sorted(maps.Keys(noted)) {
			w.Write([]string{name, noted[name]})
		}
		w.Flush()
		return w.Error()
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
