package classify

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
)

// Fold is one split of rows: those to fit to and those to judge, as ascending
// indices. No row is in both.
type Fold struct {
	Train, Test []int
}

// LeaveOneGroupOut returns one fold for each group, in the order in which groups
// first appear; its Test rows are the rows of the group.
func LeaveOneGroupOut(groups []string) []Fold {
	number, names := NumberGroups(groups)
	return dealt{number, len(names)}.lists()
}

// StratifiedKFold returns k folds of rows drawn at random so that each Test part
// has its share of every class, give or take one row. Rows that resemble their
// neighbours, as consecutive windows of one tool do, leak from Train to Test:
// use GroupKFold for those. A class with fewer than k rows is absent from some
// Test parts. It panics if k < 2 or there are fewer than k rows.
func StratifiedKFold(y []int, k int, rng *rand.Rand) []Fold {
	return dealRows(y, k, rng).lists()
}

func dealRows(y []int, k int, rng *rand.Rand) dealt {
	if k < 2 || len(y) < k {
		panic(fmt.Sprintf("classify: StratifiedKFold of %d rows in %d folds", len(y), k))
	}
	counts := countClasses(y)
	byClass := make([][]int32, len(counts))
	for label, n := range counts {
		byClass[label] = make([]int32, 0, n)
	}
	for i, label := range y {
		byClass[label] = append(byClass[label], int32(i))
	}
	fold := make([]int32, len(y))
	next := 0 // dealing goes on where the last class ended, so sizes differ by one at most
	for _, rows := range byClass {
		rng.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
		for _, i := range rows {
			fold[i] = int32(next % k)
			next++
		}
	}
	return dealt{fold, k}
}

// GroupKFold returns k folds, or as many as there are groups if these are fewer.
// No group is in both parts of a fold, and each Test part has its share of every
// class as well as whole groups allow. A class that lives in two groups or more
// is in the Train part of every fold. Equals are decided by rng. It panics if k
// < 2, there are fewer than two groups, or groups and y differ in length.
//
// Groups are dealt out one after the other, those with the most uneven classes
// first, each to the fold that keeps the shares of classes most even, as
// scikit-learn's StratifiedGroupKFold does.
func GroupKFold(y []int, groups []string, k int, rng *rand.Rand) []Fold {
	return dealByGroup(y, groups, k, rng).lists()
}

func dealByGroup(y []int, groups []string, k int, rng *rand.Rand) dealt {
	number, names := NumberGroups(groups)
	if k < 2 || len(names) < 2 || len(y) != len(groups) {
		panic(fmt.Sprintf("classify: GroupKFold of %d rows in %d groups (of %d rows) in %d folds", len(y), len(names), len(groups), k))
	}
	if k >= len(names) {
		return dealt{number, len(names)}
	}
	totals := countClasses(y)
	counts := make([][]int, len(names)) // rows of each class in each group
	for g := range counts {
		counts[g] = make([]int, len(totals))
	}
	for i, label := range y {
		counts[number[i]][label]++
	}
	foldOf, ok := dealGroups(counts, totals, k, rng)
	if !ok { // one group a fold always works
		return dealt{number, len(names)}
	}
	for i, g := range number {
		number[i] = int32(foldOf[g])
	}
	return dealt{number, k}
}

// dealGroups returns the fold of every group. It fails, which takes very few
// folds and groups, if some class of several groups would end in one fold.
func dealGroups(counts [][]int, totals []int, k int, rng *rand.Rand) ([]int, bool) {
	order := rng.Perm(len(counts))
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(unevenness(counts[b]), unevenness(counts[a]))
	})
	undealt := make([]int, len(totals)) // groups of a class not yet dealt
	for _, c := range counts {
		for j, n := range c {
			if n > 0 {
				undealt[j]++
			}
		}
	}
	const nowhere, several = -1, -2
	only := make([]int, len(totals)) // the one fold a class is in so far
	for j := range only {
		only[j] = nowhere
	}
	inFold := make([][]int, k)
	for f := range inFold {
		inFold[f] = make([]int, len(totals))
	}
	foldOf := make([]int, len(counts))
	for _, g := range order {
		best, least := -1, math.Inf(1)
		for f := range inFold {
			stuck := false
			for j, n := range counts[g] {
				stuck = stuck || n > 0 && undealt[j] == 1 && only[j] == f
			}
			if stuck {
				continue
			}
			if u := imbalance(inFold, f, counts[g], totals); u < least {
				best, least = f, u
			}
		}
		if best < 0 {
			return nil, false
		}
		foldOf[g] = best
		for j, n := range counts[g] {
			inFold[best][j] += n
			if n > 0 {
				undealt[j]--
				switch only[j] {
				case nowhere, best:
					only[j] = best
				default:
					only[j] = several
				}
			}
		}
	}
	return foldOf, true
}

// unevenness is the standard deviation of the sizes of classes in a group.
func unevenness(counts []int) float64 {
	x := make([]float64, len(counts))
	for j, n := range counts {
		x[j] = float64(n)
	}
	_, sd := kernel.MeanSD(x)
	return sd
}

// imbalance is the mean over classes of the standard deviation over folds of
// their shares of the class, after a group with the given counts joins fold f;
// a little more the fuller that fold is, to decide between equals.
func imbalance(inFold [][]int, f int, counts, totals []int) float64 {
	share := make([]float64, len(inFold))
	var sum float64
	for j, total := range totals {
		for g := range inFold {
			n := inFold[g][j]
			if g == f {
				n += counts[j]
			}
			share[g] = float64(n) / float64(max(total, 1))
		}
		_, sd := kernel.MeanSD(share)
		sum += sd / float64(len(totals))
	}
	rows, all := 0, 0
	for j, n := range inFold[f] {
		rows += n
		all += totals[j]
	}
	return sum + 1e-9*float64(rows)/float64(all)
}

// NumberGroups returns the number of each row's group, counted in the order in
// which groups first appear, and their names.
func NumberGroups(groups []string) (number []int32, names []string) {
	seen := make(map[string]int32)
	number = make([]int32, len(groups))
	for i, name := range groups {
		n, ok := seen[name]
		if !ok {
			n = int32(len(names))
			seen[name] = n
			names = append(names, name)
		}
		number[i] = n
	}
	return number, names
}

// checkFolds reports folds that cannot be used to judge rows of classes y, K of
// them: each row is held out once at most, and each Train part has all classes.
func checkFolds(folds []Fold, y []int, k int) error {
	if len(folds) == 0 {
		return fmt.Errorf("classify: no folds: %w: there is nothing to validate", ErrSize)
	}
	held := make([]int, len(y)) // 1 + the fold a row is held out in
	for f, fold := range folds {
		seen := make([]bool, len(y))
		has := make([]bool, k)
		if len(fold.Test) == 0 {
			return fmt.Errorf("classify: fold %d holds out no rows: %w", f, ErrSize)
		}
		for _, i := range fold.Test {
			switch {
			case i < 0 || i >= len(y):
				return fmt.Errorf("classify: fold %d: row %d of %d: %w", f, i, len(y), ErrSize)
			case held[i] != 0:
				return fmt.Errorf("classify: row %d is held out by folds %d and %d: %w", i, held[i]-1, f, ErrSize)
			}
			held[i] = f + 1
			seen[i] = true
		}
		for _, i := range fold.Train {
			switch {
			case i < 0 || i >= len(y):
				return fmt.Errorf("classify: fold %d: row %d of %d: %w", f, i, len(y), ErrSize)
			case seen[i]:
				return fmt.Errorf("classify: fold %d: row %d is given twice: %w: a row to judge must not be trained on", f, i, ErrSize)
			}
			seen[i] = true
			has[y[i]] = true
		}
		for j, ok := range has {
			if !ok {
				return fmt.Errorf("classify: fold %d: no row of class %d is left to train on: %w: use fewer folds, or add groups with rows of that class", f, j, ErrTooFew)
			}
		}
	}
	return nil
}
