package classify

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// checkPartition: every row is held out exactly once, and in Train otherwise.
func checkPartition(t interface{ Fatalf(string, ...any) }, folds []Fold, n int) {
	held := make([]int, n)
	for _, f := range folds {
		if len(f.Test) == 0 || len(f.Train)+len(f.Test) != n {
			t.Fatalf("fold of %d and %d rows of %d", len(f.Train), len(f.Test), n)
		}
		if !slices.IsSorted(f.Train) || !slices.IsSorted(f.Test) {
			t.Fatalf("rows are not in ascending order: %v", f)
		}
		for _, i := range f.Test {
			held[i]++
			if _, both := slices.BinarySearch(f.Train, i); both {
				t.Fatalf("row %d is in both parts", i)
			}
		}
	}
	for i, times := range held {
		if times != 1 {
			t.Fatalf("row %d is held out %d times", i, times)
		}
	}
}

func TestStratifiedKFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 6).Draw(t, "folds")
		y := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 1, 2}), k, 80).Draw(t, "y")
		seed := rapid.Uint64().Draw(t, "seed")
		folds := StratifiedKFold(y, k, rand.New(rand.NewPCG(seed, 0)))
		checkPartition(t, folds, len(y))
		totals := countClasses(y)
		for _, f := range folds {
			if s := len(f.Test); s < len(y)/k || s > len(y)/k+1 {
				t.Fatalf("%d of %d rows held out by one of %d folds", s, len(y), k)
			}
			counts := make([]int, len(totals))
			for _, i := range f.Test {
				counts[y[i]]++
			}
			for j, n := range counts {
				if n < totals[j]/k || n > totals[j]/k+1 {
					t.Fatalf("%d of %d rows of class %d held out by one of %d folds", n, totals[j], j, k)
				}
			}
		}
		if !reflect.DeepEqual(folds, StratifiedKFold(y, k, rand.New(rand.NewPCG(seed, 0)))) {
			t.Fatalf("equal seeds give other folds")
		}
	})
}

func TestGroupKFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 6).Draw(t, "folds")
		names := rapid.IntRange(2, 12).Draw(t, "groups")
		n := rapid.IntRange(2, 90).Draw(t, "N")
		y, groups := make([]int, n), make([]string, n)
		for i := range n {
			g := rapid.IntRange(0, names-1).Draw(t, "group")
			groups[i] = fmt.Sprint(g)
			if g%3 == 0 {
				y[i] = rapid.IntRange(0, 2).Draw(t, "label")
			}
		}
		groups[0], groups[1] = "0", "1"
		_, seen := NumberGroups(groups)
		folds := GroupKFold(y, groups, k, rand.New(rand.NewPCG(1, 0)))
		checkPartition(t, folds, n)
		if len(folds) > len(seen) || len(folds) < min(k, len(seen)) {
			t.Fatalf("%d folds of %d groups, want %d", len(folds), len(seen), k)
		}
		groupsOf := make(map[int]map[string]bool)
		for i, label := range y {
			if groupsOf[label] == nil {
				groupsOf[label] = make(map[string]bool)
			}
			groupsOf[label][groups[i]] = true
		}
		for _, f := range folds {
			classes, train := make(map[int]bool), make(map[string]bool)
			for _, i := range f.Train {
				classes[y[i]], train[groups[i]] = true, true
			}
			for _, i := range f.Test {
				if train[groups[i]] {
					t.Fatalf("group %s is in both parts", groups[i])
				}
			}
			for label, h := range groupsOf {
				if len(h) > 1 && !classes[label] {
					t.Fatalf("class %d lives in %d groups, but a fold trains without it", label, len(h))
				}
			}
		}
	})
}

// Ten groups of equal make are dealt two to each of five folds, the five worn
// ones one each.
func TestGroupKFoldIsStratified(t *testing.T) {
	var y []int
	var groups []string
	for g := range 10 {
		for i := range 20 {
			label := 0
			if g < 5 && i >= 15 {
				label = 1
			}
			y, groups = append(y, label), append(groups, fmt.Sprint("T", g))
		}
	}
	for seed := range uint64(20) {
		for f, fold := range GroupKFold(y, groups, 5, rand.New(rand.NewPCG(seed, 0))) {
			faulty := 0
			for _, i := range fold.Test {
				faulty += y[i]
			}
			if len(fold.Test) != 40 || faulty != 5 {
				t.Errorf("fold %d holds out %d rows, %d of them faulty: want 40 and 5", f, len(fold.Test), faulty)
			}
		}
	}
}

func TestLeaveOneGroupOut(t *testing.T) {
	folds := LeaveOneGroupOut([]string{"b", "a", "b", "c"})
	want := []Fold{{[]int{1, 3}, []int{0, 2}}, {[]int{0, 2, 3}, []int{1}}, {[]int{0, 1, 2}, []int{3}}}
	if !reflect.DeepEqual(folds, want) {
		t.Errorf("folds %v, want %v", folds, want)
	}
}

func TestCheckFolds(t *testing.T) {
	y := []int{0, 0, 1, 1}
	for name, tc := range map[string]struct {
		folds []Fold
		want  error
		says  string
	}{
		"good":                    {[]Fold{{[]int{0, 2}, []int{1, 3}}, {[]int{1, 3}, []int{0}}}, nil, ""},
		"none":                    {nil, ErrSize, "no folds"},
		"nothing held out":        {[]Fold{{Train: []int{0, 2}}}, ErrSize, "fold 0"},
		"no such row":             {[]Fold{{[]int{0, 2}, []int{4}}}, ErrSize, "row 4 of 4"},
		"no such row to train on": {[]Fold{{[]int{0, -1}, []int{2}}}, ErrSize, "row -1"},
		"held out twice":          {[]Fold{{[]int{0, 2}, []int{1}}, {[]int{0, 2}, []int{1}}}, ErrSize, "folds 0 and 1"},
		"a marker row leaks":      {[]Fold{{[]int{0, 1, 2}, []int{1, 3}}}, ErrSize, "row 1 is given twice"},
		"a class is missing":      {[]Fold{{[]int{0, 1}, []int{2, 3}}}, ErrTooFew, "class 1"},
	} {
		err := checkFolds(tc.folds, y, 2)
		if !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: error %v, want %v that says %q", name, err, tc.want, tc.says)
		}
	}
}
