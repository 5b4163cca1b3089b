package imbalance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Plan says what to compare.
type Plan struct {
	Sets    []*Set
	Methods []string // empty: all
	Trials  int      // of each method; 0: as many as the set says, or else the method
	Dir     string   // of cells.csv, which is added to by one process at a time; it is made if it is not there
	Redo    []string // methods whose cells, of all sets, are dropped and made again
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

// effort is about how long a job takes compared with others.
func (j *job) effort() float64 {
	return j.family.effort * float64(len(j.set.trained(j.fold))*(1+j.set.Copies)*(8+j.set.X.Cols))
}

// Run makes the cells that are missing and returns all of the study. It makes
// the first trial of every set and method, the small sets first, before the second
// of any, so that a study that is stopped is of use; the next one goes on with
// what is there. The same plan gives the same cells, but for their times.
func Run(ctx context.Context, p Plan) ([]Cell, error) {
	picked, wanted, err := selectMethods(p.Methods)
	if err != nil {
		return nil, err
	}
	if _, _, err := selectMethods(p.Redo); err != nil {
		return nil, fmt.Errorf("to be made again: %w", err)
	}
	for _, name := range p.Redo {
		if !wanted[name] {
			return nil, fmt.Errorf("%s is to be made again, but is not among the methods wanted: name it there too", name)
		}
	}
	sets := make(map[string]string)
	for _, s := range p.Sets {
		if err := s.Check(); err != nil {
			return nil, err
		}
		if sets[s.Name] != "" {
			panic("imbalance: two sets called " + s.Name)
		}
		sets[s.Name] = s.describe()
	}
	settings := make(map[string]string)
	for _, m := range Methods() {
		if wanted[m.Name] {
			settings[m.Name] = m.Settings
		}
	}
	cells, err := addTo(p.Dir, func(k Key) bool { return slices.Contains(p.Redo, k.Method) }, sets, settings, func(s *store) error {
		return p.make(ctx, s, p.jobs(picked, wanted, s.has))
	})
	return slices.DeleteFunc(cells, func(c Cell) bool { return !wanted[c.Method] || sets[c.Dataset] == "" }), err
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
						if want := (Key{s.Name, m.Name, trial + 1, fold + 1}); wanted[m.Name] && trial < cmp.Or(p.Trials, j.set.Trials, m.Trials) && !has[want] {
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

func (p Plan) make(ctx context.Context, cells *store, jobs []*job) error {
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(max(1, p.Workers))
	var mu sync.Mutex
	var total, done float64
	for _, j := range jobs {
		total += j.effort()
	}
	for _, j := range jobs {
		workers.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			made, err := j.do(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				return err
			}
			done += j.effort()
			if p.Progress != nil {
				p.Progress("cells", int(1e6*done/total), 1e6)
			}
			return cells.add(made)
		})
	}
	return workers.Wait()
}

func (j *job) do(ctx context.Context) ([]Cell, error) {
	t := j.set.TaskOf(j.trial, j.fold)
	answers, err := j.family.solve(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%s, %s, trial %d, fold %d: %w", j.set.Name, j.family.methods[0].Name, j.trial+1, j.fold+1, err)
	}
	test := j.set.Folds[j.fold].Test
	y := pick(j.set.Y, test)
	groups := pick(j.set.Groups, test)
	var cells []Cell
	for i, k := range j.keys {
		if k != (Key{}) {
			cells = append(cells, newCell(k, y, groups, answers[i]))
		}
	}
	return cells, nil
}
