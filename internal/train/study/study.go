// Package study says which method to deploy for a person's own data: ECS-DBN, or a simpler
// one, a [Baseline].
//
// A set holds rows of two classes, of which 0 is the frequent and 1 the rare,
// positive one, and folds, each of which parts them into rows to train on and
// rows to test. A method is fitted to the training part, and everything it
// needs, encoders, scalers and searches among settings, is fitted
// there too; then it decides the test part. A trial
// does so for every fold with random draws of its own. A cell is what came of
// one method, trial and fold.
package study

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// Set is what methods are compared on.
type Set struct {
	Name   string
	X      dbn.Matrix // NaN is a missing value
	Y      []int      // 0 or 1 for each row
	Rare   string     // what 1 is called
	Groups []string   // of each row, or nil; methods keep a group's rows together in folds of their own
	Folds  []classify.Fold

	Columns []string // of a table: those learnt from
	Left    []string // of a table: those left out, and why

	// Kind is what a group is, such as "tool"; empty if that is not known.
	Kind string
	// Ordered says that the rows of each group are in the order of time, so that columns
	// have weights by how steadily they follow the lives of groups.
	Ordered bool
	// Wear is how worn the tool was in each row, in limits, for ECS-DBN; nil if that is
	// not known. See classify.Table.
	Wear []float64
	// Settings are how ECS-DBN is fitted to recordings, as `trainer fit` does it; nil stands for DefaultFor.
	Settings *classify.Settings
}

// RareRows returns the number of rows of the rare class.
func (s *Set) RareRows() int {
	n := 0
	for _, label := range s.Y {
		n += label
	}
	return n
}

// foldTask is what a method is asked in a fold: to learn from its training part, and to decide its test part.
type foldTask struct {
	x        dbn.Matrix // of train
	train    classify.Table
	test     dbn.Matrix
	seed     uint64 // of all that is drawn at random
	settings classify.Settings
}

// task returns the task that a fold is in a trial; both count from 0. All methods share its seed.
func (s *Set) task(trial, fold int) foldTask {
	h := fnv.New64a()
	fmt.Fprintln(h, s.Name, trial, fold)
	f := s.Folds[fold]
	x := classify.Part(s.X, f.Train).(dbn.Matrix)
	t := foldTask{
		x: x, train: classify.Table{X: x, Y: classify.Pick(s.Y, f.Train), Groups: classify.Pick(s.Groups, f.Train), Wear: classify.Pick(s.Wear, f.Train), Ordered: s.Ordered},
		test: classify.Part(s.X, f.Test).(dbn.Matrix), seed: h.Sum64(),
	}
	if t.settings = DefaultFor(len(f.Train), s.Groups != nil); s.Settings != nil {
		t.settings = *s.Settings
	}
	return t
}

// Check reports a set that cannot be studied.
func (s *Set) Check() error {
	if s.X.Rows != len(s.Y) || s.Groups != nil && len(s.Groups) != len(s.Y) {
		panic(fmt.Sprintf("study: set %s: %d rows, %d labels, %d groups", s.Name, s.X.Rows, len(s.Y), len(s.Groups)))
	}
	for f, fold := range s.Folds {
		var n [2]int
		for _, i := range fold.Train {
			n[s.Y[i]]++
		}
		if n[0] < 2 || n[1] < 2 {
			held := fmt.Sprintf("fold %d", f+1)
			if s.Groups != nil {
				groups := slices.Compact(slices.Sorted(slices.Values(classify.Pick(s.Groups, fold.Test))))
				held += fmt.Sprintf(", which holds out %s,", strings.Join(groups, ", "))
			}
			return fmt.Errorf("set %s: %s leaves %d rows of the frequent and %d of the rare class to train on: two of each are the least; add rows, or groups, that have the class", s.Name, held, n[0], n[1])
		}
	}
	return nil
}

// Plan says what to compare on a set.
type Plan struct {
	Methods []string // empty: all
	Trials  int      // of each method
	Workers int      // cells made at the same time; never changes a cell but its seconds

	// Progress, if not nil, is called by one goroutine at a time as work goes on.
	Progress func(phase string, done, total int)
}

// Run fits every method to every fold of the set in every trial. The same plan gives the same cells, but for their
// times.
func Run(ctx context.Context, s *Set, p Plan) ([]Cell, error) {
	chosen, err := chosen(p.Methods)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, err
	}
	cells := make([]Cell, p.Trials*len(s.Folds)*len(chosen))
	var mu sync.Mutex
	done := 0
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(1, p.Workers))
	for i := range cells {
		m, fold, trial := chosen[i%len(chosen)], i/len(chosen)%len(s.Folds), i/len(chosen)/len(s.Folds)
		work.Go(func() error {
			began := time.Now()
			a, err := m.solve(ctx, s.task(trial, fold))
			if err != nil {
				return fmt.Errorf("%s, %s, trial %d, fold %d: %w", s.Name, m.Name, trial+1, fold+1, err)
			}
			cells[i] = newCell(m.Name, trial+1, fold+1, classify.Pick(s.Y, s.Folds[fold].Test), a)
			cells[i].Seconds = time.Since(began).Seconds()
			mu.Lock()
			defer mu.Unlock()
			if done++; p.Progress != nil {
				p.Progress("cells", done, len(cells))
			}
			return nil
		})
	}
	return cells, work.Wait()
}

// Cell is what came of one method, trial and fold.
type Cell struct {
	Method         string
	Trial, Fold    int     // from 1
	AUC            float64 // by ranks of scores; NaN if the test part lacks a class
	TP, FN, FP, TN int
	Seconds        float64 // to train and to decide
}

// newCell scores decisions on rows of classes y.
func newCell(method string, trial, fold int, y []int, a foldAnswer) Cell {
	m := score.NewConfusion(2)
	positive := make([]bool, len(y))
	for i, label := range y {
		m.Add(label, a.decision[i])
		positive[i] = label == 1
	}
	return Cell{Method: method, Trial: trial, Fold: fold, AUC: score.AUC(a.score, positive), TP: m[1][1], FN: m[1][0], FP: m[0][1], TN: m[0][0]}
}
