package study

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/flank-tcm/flank/internal/atomicfile"
)

// Files of a study.
const (
	CellsFile   = "cells.csv"
	MethodsFile = "methods.csv" // the settings that the cells of each method were made with
)

// Plan says what to compare.
type Plan struct {
	Sets    []*Set
	Methods []string // empty: all
	Trials  int      // of each method; 0: as many as it says itself
	Dir     string   // of cells.csv, which is added to; it is made if it is not there
	Redo    []string // methods whose cells are made anew
	Workers int      // cells made at the same time; never changes a cell but its seconds

	// Progress, if not nil, is called by one goroutine at a time as work goes on.
	Progress func(phase string, done, total int)
}

// job is one call of a family's solve.
type job struct {
	set         *Set
	family      *family
	trial, fold int
	keys        []Key // of the family's methods; those that are not wanted are empty
}

// effort is about how long a job takes beside others.
func (j *job) effort() float64 {
	return j.family.effort * float64(len(j.set.Folds[j.fold].Train)*(8+j.set.X.Cols))
}

// Run makes the cells that are missing and returns all of the study. It makes
// the first trial of every set and method, the small sets first, before the second
// of any, so that a study that is stopped is of use; the next one goes on with
// what is there. The same plan gives the same cells, but for their seconds.
func Run(ctx context.Context, p Plan) ([]Cell, error) {
	picked, wanted, err := selectMethods(p.Methods)
	if err != nil {
		return nil, err
	}
	if _, _, err := selectMethods(p.Redo); err != nil {
		return nil, fmt.Errorf("to be made anew: %w", err)
	}
	for _, s := range p.Sets {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(p.Dir, CellsFile)
	cells, err := openStore(path, func(k Key) bool { return slices.Contains(p.Redo, k.Method) })
	if err != nil {
		return nil, err
	}
	err = noteSettings(p.Dir, wanted, cells)
	if err == nil {
		err = p.make(ctx, cells, p.jobs(picked, wanted, cells.has))
	}
	if err := errors.Join(err, cells.close()); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(cells.cells, func(c Cell) bool {
		return !wanted[c.Method] || !slices.ContainsFunc(p.Sets, func(s *Set) bool { return s.Name == c.Dataset })
	}), nil
}

// noteSettings writes down the settings of the methods wanted, and reports cells
// that were made with others.
func noteSettings(dir string, wanted map[string]bool, cells *store) error {
	path := filepath.Join(dir, MethodsFile)
	noted := make(map[string]string)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, line := range lines[min(1, len(lines)):] {
		noted[line[0]] = line[len(line)-1]
	}
	made := make(map[string]bool)
	for k := range cells.has {
		made[k.Method] = true
	}
	for _, m := range Methods() {
		if !wanted[m.Name] {
			continue
		}
		if old, ok := noted[m.Name]; ok && made[m.Name] && old != m.Settings {
			return fmt.Errorf("%s: the cells of %s were made with other settings (%s, now %s): make them anew with --redo %s, or name another folder",
				filepath.Join(dir, CellsFile), m.Name, old, m.Settings, m.Name)
		}
		noted[m.Name] = m.Settings
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{"method", "settings"})
	for _, name := range slices.Sorted(maps.Keys(noted)) {
		w.Write([]string{name, noted[name]})
	}
	w.Flush()
	return atomicfile.Write(path, []byte(b.String()))
}

// maxTrials is at least what any method says.
const maxTrials = 10

// jobs returns those that give a cell which is not there, in order.
func (p Plan) jobs(picked []family, wanted map[string]bool, has map[Key]bool) []*job {
	var jobs []*job
	for f := range picked {
		for _, s := range p.Sets {
			for fold := range s.Folds {
				for trial := range max(p.Trials, maxTrials) {
					j := &job{set: s, family: &picked[f], trial: trial, fold: fold}
					missing := false
					for _, m := range picked[f].methods {
						var k Key
						if want := (Key{s.Name, m.Name, trial + 1, fold + 1}); wanted[m.Name] && trial < cmp.Or(p.Trials, m.Trials) && !has[want] {
							k, missing = want, true
						}
						j.keys = append(j.keys, k)
					}
					if missing {
						jobs = append(jobs, j)
					}
				}
			}
		}
	}
	size := func(s *Set) int { return s.X.Rows * (8 + s.X.Cols) }
	slices.SortStableFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.trial, b.trial), cmp.Compare(size(a.set), size(b.set)))
	})
	return jobs
}

// make does the jobs and stores their cells.
func (p Plan) make(ctx context.Context, cells *store, jobs []*job) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var total, done float64
	for _, j := range jobs {
		total += j.effort()
	}
	report := func() {
		if p.Progress != nil && len(jobs) > 0 {
			p.Progress("cells", int(1e6*done/total), 1e6)
		}
	}
	queue := make(chan *job)
	var wg sync.WaitGroup
	for range max(1, p.Workers) {
		wg.Go(func() {
			for j := range queue {
				made, err := j.do(ctx)
				mu.Lock()
				if err == nil {
					err = cells.add(made)
				}
				if err != nil {
					stop(err)
				}
				done += j.effort()
				report()
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		select {
		case queue <- j:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wg.Wait()
	return context.Cause(ctx)
}

// do returns the job's cells that are wanted.
func (j *job) do(ctx context.Context) ([]Cell, error) {
	// Families share a seed, so that networks begin alike whatever the rows are.
	t := j.set.Task(j.fold, seedOf(j.set.Name, j.trial, j.fold))
	answers, err := j.family.solve(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%s, %s, trial %d, fold %d: %w", j.set.Name, j.family.methods[0].Name, j.trial+1, j.fold+1, err)
	}
	y := pick(j.set.Y, j.set.Folds[j.fold].Test)
	var cells []Cell
	for i, k := range j.keys {
		if k != (Key{}) {
			cells = append(cells, NewCell(k, y, answers[i]))
		}
	}
	return cells, nil
}
