// Package imbalance compares ways to tell a rare class from a frequent one.
//
// A set holds rows of two classes, of which 0 is the frequent and 1 the rare,
// positive one, and folds, each of which parts them into rows to train on and
// rows to test. A method is fitted to the training part, and everything it
// needs, encoders, scalers, resamplers and searches among settings, is fitted
// there too; then it decides the test part, which is never resampled. A trial
// does so for every fold with random draws of its own. A cell is what came of
// one set, method, trial and fold.
//
// Methods that differ in what they do with one and the same network share its
// training; the seconds of each are those it would take alone.
package imbalance

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/bench/keel"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Set is what methods are compared on.
type Set struct {
	Name   string
	X      dbn.Matrix // NaN is a missing value
	Y      []int      // 0 or 1 for each row
	Groups []string   // of each row, or nil; methods keep a group's rows together in folds of their own
	Folds  []classify.Fold

	// Every is of how many rows of a group in the training part of a fold one, the first, is
	// trained on; 0: all are.
	Every int
	// Copies is how many copies of the rows to train on, of groups with other gains, are trained
	// on too; see addCopies.
	Copies int
	// AsMany says that networks are trained as on so many rows at least, see DefaultFor.
	AsMany int
	// Trials is how many there are of each method; 0: as many as the method says.
	Trials int
}

// Task is what a method is asked: to learn from labelled rows, and to decide
// others.
type Task struct {
	X      dbn.Matrix
	Y      []int
	Groups []string // or nil
	Test   dbn.Matrix
	Seed   uint64 // of all that is drawn at random

	AsMany int // see Set
}

// methodAnswer is what a method makes of the test rows.
type methodAnswer struct {
	Decision []int     // by row: the class
	Score    []float64 // by row: larger where the rare class is more likely
	Seconds  float64   // that training took
	Judging  float64   // seconds that judging all test rows took, from their values to decisions
}

// Method is one way to tell the classes apart.
type Method struct {
	Name     string
	Trials   int    // how many the study makes of it
	Settings string // what a person would need to do the same; cells of other settings are not mixed
}

// family is one or more methods that share their training.
type family struct {
	methods []Method
	// effort is about how long the family takes compared with the others, for a
	// set of the same size; for telling the time left.
	effort float64
	// solve returns the answers of all methods.
	solve func(context.Context, Task) ([]methodAnswer, error)
}

// Methods returns all methods, in the order in which tables show them.
func Methods() []Method {
	var all []Method
	for _, f := range families() {
		all = append(all, f.methods...)
	}
	return all
}

func families() []family {
	all := []family{costFamily(), paperFamily()}
	for _, r := range resamplers {
		all = append(all, resampledFamily(r.name, r.resample))
	}
	return append(all, welmFamily(), ecoFamily())
}

// Task returns the task that fold f of the set is for methods drawing from seed.
func (s *Set) Task(f int, seed uint64) Task {
	train := s.trained(f)
	t := Task{X: rowsOf(s.X, train), Y: pick(s.Y, train), Groups: pick(s.Groups, train), Test: rowsOf(s.X, s.Folds[f].Test), Seed: seed, AsMany: s.AsMany}
	if s.Copies > 0 {
		t.addCopies(s.Copies, newRand(seedOf("gains", seed)))
	}
	return t
}

// trained returns the rows that fold f trains on.
func (s *Set) trained(f int) []int {
	if s.Every == 0 {
		return s.Folds[f].Train
	}
	seen := make(map[string]int) // rows of a group
	return slices.DeleteFunc(slices.Clone(s.Folds[f].Train), func(i int) bool {
		n := seen[s.Groups[i]]
		seen[s.Groups[i]]++
		return n%s.Every != 0
	})
}

// TaskOf returns the task that fold f of the set is in the given trial; both count
// from 0. All methods share its seed, so that networks begin alike with any rows.
func (s *Set) TaskOf(trial, f int) Task { return s.Task(f, seedOf(s.Name, trial, f)) }

// Check reports a set that cannot be studied.
func (s *Set) Check() error {
	of := study.Set{Name: s.Name, X: s.X, Y: s.Y, Groups: s.Groups}
	for f, fold := range s.Folds {
		of.Folds = append(of.Folds, classify.Fold{Train: s.trained(f), Test: fold.Test})
	}
	return of.Check()
}

// describe tells the set from others of its name: what it is in numbers, and a
// checksum of its rows, labels, groups and folds.
func (s *Set) describe() string {
	h := fnv.New64a()
	var b []byte
	for _, v := range s.X.Data {
		b = binary.LittleEndian.AppendUint32(b[:0], math.Float32bits(v))
		h.Write(b)
	}
	fmt.Fprintln(h, s.Y, s.Groups, s.Folds)
	by := "row"
	if s.Groups != nil {
		by = "group"
	}
	if s.Every > 0 || s.Copies > 0 || s.AsMany > 0 {
		fmt.Fprintf(h, "every %d, %d copies, as %d", s.Every, s.Copies, s.AsMany)
	}
	return fmt.Sprintf("%d rows of %d columns, folds by %s: %d, checksum %016x", s.X.Rows, s.X.Cols, by, len(s.Folds), h.Sum64())
}

// rowsOf returns the given rows of x, which ascend.
func rowsOf(x dbn.Matrix, rows []int) dbn.Matrix { return classify.Part(x, rows).(dbn.Matrix) }

// seedOf returns the seed of what the words and numbers name.
func seedOf(names ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, names...)
	return h.Sum64()
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// split deals the rows of a task into at most k folds, each with both classes in
// its training part: by group if that is possible, else by row. It returns nil if
// a class has a single row.
func (t *Task) split(k int, rng *rand.Rand) []classify.Fold {
	var n [2]int
	homes := [2]map[string]bool{{}, {}}
	for i, y := range t.Y {
		n[y]++
		if t.Groups != nil {
			homes[y][t.Groups[i]] = true
		}
	}
	if len(homes[0]) > 1 && len(homes[1]) > 1 {
		return classify.GroupKFold(t.Y, t.Groups, k, rng)
	}
	if k = min(k, n[0], n[1]); k < 2 {
		return nil
	}
	return classify.StratifiedKFold(t.Y, k, rng)
}

// selectMethods returns the families that have a method named, or all if none is,
// and which methods are wanted.
func selectMethods(names []string) ([]family, map[string]bool, error) {
	all := families()
	wanted := make(map[string]bool)
	var known []string
	for _, m := range Methods() {
		known = append(known, m.Name)
		wanted[m.Name] = len(names) == 0
	}
	for _, name := range names {
		if wanted[name] = true; !slices.Contains(known, name) {
			return nil, nil, fmt.Errorf("%q is not a method: there are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(f family) bool {
		return !slices.ContainsFunc(f.methods, func(m Method) bool { return wanted[m.Name] })
	}), wanted, nil
}

// LoadKEEL reads sets of the KEEL repository in dir, all if names is empty.
func LoadKEEL(dir string, names []string) ([]*Set, error) {
	all, err := keel.Names(dir)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = all
	}
	var sets []*Set
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%s holds no set %q: there are %s", dir, name, strings.Join(all, ", "))
		}
		s, err := keel.Load(dir, name)
		if err != nil {
			return nil, err
		}
		if len(s.Classes) != 2 {
			return nil, fmt.Errorf("%s has %d classes: the study is of two", name, len(s.Classes))
		}
		sets = append(sets, &Set{Name: s.Name, X: s.X, Y: s.Y, Folds: s.Folds})
	}
	return sets, nil
}
