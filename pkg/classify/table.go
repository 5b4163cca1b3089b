package classify

import (
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Table is what a classifier is fitted to and scored on: rows with a class, and
// what else is known of them and of the tools that they come from.
type Table struct {
	X      dbn.Rows // N×p features of the rows with a class; NaN is missing
	Y      []int    // class of each row, from 0 to K−1
	Groups []string // tool of each row; nil if that is not known

	// Together has the name under which groups are held out that are copies of each other; nil, or a group without a name: it
	// is held out alone.
	Together map[string]string

	// Ordered says that the rows of each group are in the order of time. Otherwise, or
	// without Groups, columns are not weighed, see Settings.Stability.
	Ordered bool

	// Ended says of a group whether its rows go on to the end of the tool's life, or
	// nearly so. Nil stands for groups without any class and those with a row of
	// another class than the first.
	Ended func(group string) bool

	// Wear is how worn the tool was in each row, in units of the wear from which on rows
	// are of the second of two classes; nil if that is not known of all rows. Fine-tuning
	// puts rows where it jumps over 1, and leaves rows out where it is large, if few groups
	// have rows of a class: see FitTable.
	Wear []float64

	Unlabelled Unlabelled

	// Sensors are what columns come from, for a guard, and Log says of each column whether it is the
	// logarithm of a ratio to the tool's reference, see vote.Table; nil if that is not known. With Views, each has its own Log.
	Sensors []vote.Sensor
	Log     []bool

	// Views are ways to prepare the rows, of which Fit keeps the best, see [View]. If
	// there are any, X is only looked at for its shape.
	Views []View
}

// Unlabelled is rows whose class is not known. The encoder, the weights of the
// columns and the pre-training of networks see them too, and the first rows of
// groups that have no class at all count as healthy in fine-tuning, see [Fit].
// They are in no score, no count of classes and no choice of costs.
type Unlabelled struct {
	X      dbn.Rows // M×p features; nil if there are none
	Groups []string // tool of each row
	After  []int    // of each row: how many rows of Table come before it; ascending
}

// View is one way to prepare the rows of a Table, such as relative to a tool's
// reference by difference or by logarithm.
type View struct {
	Name string
	// Rows returns all labelled and all unlabelled rows in this way. What the way
	// needs to learn it may learn from the given rows only, which are indices into
	// either and ascend. Unlabelled is nil if the table has no such rows.
	Rows func(labelled, unlabelled []int) (x, more dbn.Rows)
	// Log returns the Table's Log of the rows that Rows returns; nil: none are logarithms.
	Log func(labelled, unlabelled []int) []bool
}

// check reports a table that cannot be fitted to, and returns the number K of
// classes.
func (t *Table) check() (int, error) {
	k, err := checkData(t.X, t.Y, t.Groups)
	if err != nil {
		return 0, err
	}
	u := &t.Unlabelled
	switch {
	case t.Wear != nil && len(t.Wear) != len(t.Y):
		return 0, fmt.Errorf("classify: the wear of %d rows, of %d: %w: give each row its wear, or none", len(t.Wear), len(t.Y), ErrSize)
	case t.Wear != nil && k > 2:
		return 0, fmt.Errorf("classify: the wear in limits of rows of %d classes: %w: one limit tells only two classes apart", k, errClasses)
	case u.X == nil:
		return k, nil
	case t.Groups == nil:
		return 0, fmt.Errorf("classify: rows without a class and no groups: %w: name the tools, so that what is held out stays so", ErrSize)
	}
	rows, cols := u.X.Shape()
	if _, width := t.X.Shape(); cols != width || len(u.Groups) != rows || len(u.After) != rows || !slices.IsSorted(u.After) {
		return 0, fmt.Errorf("classify: %d rows of %d features without a class, %d groups and %d places: %w: there are %d features, and each row has a group and a place, in ascending order",
			rows, cols, len(u.Groups), len(u.After), ErrSize, width)
	}
	return k, checkValues(u.X)
}

// subset is a part of a table: what may be learnt from.
type subset struct {
	of   *Table
	rows rowSet // with a class
	more rowSet // without
}

// whole returns all of t.
func (t *Table) whole() subset {
	d := subset{of: t, rows: runOf(len(t.Y))}
	if t.Unlabelled.X != nil {
		d.more = runOf(len(t.Unlabelled.Groups))
	}
	return d
}

// without returns d without the rows of fold f, and without the unlabelled rows of the
// groups that these are of: a tool that is held out is held out whole. With transductive
// the unlabelled rows stay.
func (d subset) without(fold dealt, f int, transductive bool) subset {
	test := d.compose(fold.test(f))
	return d.learnFrom(d.compose(fold.train(f)), test, transductive)
}

// learnFrom returns the rows train, and the unlabelled rows of d whose groups
// have no row in test; with transductive all unlabelled rows of d.
func (d subset) learnFrom(train, test rowSet, transductive bool) subset {
	out := subset{of: d.of, rows: train, more: d.more}
	if transductive || d.more.rows == 0 {
		return out
	}
	held := make(map[string]bool)
	test.each(func(i int) { held[Together(d.of.Together, d.of.Groups[i])] = true })
	out.more = rowSet{}
	d.more.each(func(i int) {
		if !held[Together(d.of.Together, d.of.Unlabelled.Groups[i])] {
			out.more.add(i)
		}
	})
	return out
}

// compose returns the rows of the table that a set of rows of d are.
func (d subset) compose(s rowSet) rowSet {
	var out rowSet
	s.each(func(i int) { out.add(d.rows.row(i)) })
	return out
}

// views returns how many ways to prepare the rows are tried.
func (d subset) views(y []int, groups []string, k int) int {
	if len(d.of.Views) < 2 || groups == nil || leastGroups(y, groups, k) < LeastViewGroups {
		return 1
	}
	return len(d.of.Views)
}

// view returns all rows of the table, with a class and without, prepared in way v
// as d teaches it.
func (d subset) view(v int) (x, more dbn.Rows) {
	if len(d.of.Views) == 0 {
		return d.of.X, d.of.Unlabelled.X
	}
	return d.of.Views[v].Rows(d.rows.list(), d.more.list())
}

// log returns which columns of the view v are logarithms.
func (d subset) log(v int) []bool {
	switch {
	case len(d.of.Views) == 0:
		return d.of.Log
	case d.of.Views[v].Log == nil:
		return nil
	}
	return d.of.Views[v].Log(d.rows.list(), d.more.list())
}

// lesson is what one network learns from.
type lesson struct {
	subset
	x    dbn.Rows // of the rows with a class
	more dbn.Rows // of the others; nil if there are none
	y    []int
}

// lesson returns d in the view v of all its rows.
func (d subset) lesson(x, more dbn.Rows) lesson {
	l := lesson{subset: d, x: part(x, d.rows), y: pick(d.of.Y, d.rows)}
	if d.more.rows > 0 {
		l.more = part(more, d.more)
	}
	return l
}

func (d subset) y() []int         { return pick(d.of.Y, d.rows) }
func (d subset) groups() []string { return pick(d.of.Groups, d.rows) }

// apart returns the names under which the groups of rows are held out, nil without groups.
func (d subset) apart() []string { return AllTogether(d.of.Together, d.groups()) }

// Together returns the name under which a group is held out, see Table.Together.
func Together(together map[string]string, group string) string {
	if name, ok := together[group]; ok {
		return name
	}
	return group
}

// AllTogether is Together of the groups of rows.
func AllTogether(together map[string]string, groups []string) []string {
	if len(together) == 0 {
		return groups
	}
	out := make([]string, len(groups))
	for i, g := range groups {
		out[i] = Together(together, g)
	}
	return out
}

// ended returns whether the rows of a group go on to the end of a life.
func (d subset) ended() func(group string) bool {
	if d.of.Ended != nil {
		return d.of.Ended
	}
	worn, healthy := make(map[string]bool), make(map[string]bool)
	d.rows.each(func(i int) {
		if d.of.Y[i] == Healthy {
			healthy[d.of.Groups[i]] = true
		} else {
			worn[d.of.Groups[i]] = true
		}
	})
	return func(g string) bool { return worn[g] || !healthy[g] }
}

// bare returns the unlabelled rows of d whose group has no class anywhere in the table,
// by group, in the order of time.
func (d subset) bare() map[string][]int {
	u := &d.of.Unlabelled
	labelled := make(map[string]bool)
	for i, g := range d.of.Groups {
		if i == 0 || g != d.of.Groups[i-1] {
			labelled[g] = true
		}
	}
	bare := make(map[string][]int)
	d.more.each(func(i int) {
		if g := u.Groups[i]; !labelled[g] {
			bare[g] = append(bare[g], i)
		}
	})
	return bare
}

// boundedWear returns the places in l of the rows that are not worn beyond mostTunedWear. They are
// all rows if some class would have none left.
func (l lesson) boundedWear(k int) rowSet {
	all := runOf(len(l.y))
	if l.of.Wear == nil {
		return all
	}
	var bounded rowSet
	left := make([]bool, k)
	for i, y := range l.y {
		if l.of.Wear[l.rows.row(i)] <= mostTunedWear {
			bounded.add(i)
			left[y] = true
		}
	}
	if slices.Contains(left, false) {
		return all
	}
	return bounded
}

// early returns the first rows of groups without any class, which count as healthy,
// ascending; none if rows have no order.
func (d subset) early() rowSet {
	if !d.of.Ordered || d.more.rows == 0 {
		return rowSet{}
	}
	var rows []int
	for _, of := range d.bare() {
		rows = append(rows, of[:min(mostEarly, len(of)/earlyShare)]...)
	}
	slices.Sort(rows)
	return setOf(rows)
}

// stack returns the rows of a, then the rows of b; either may be nil.
func stack(a, b dbn.Rows) dbn.Rows {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	m, inMemory := a.(dbn.Matrix)
	n, also := b.(dbn.Matrix)
	if inMemory && also {
		return dbn.Matrix{Rows: m.Rows + n.Rows, Cols: m.Cols, Data: slices.Concat(m.Data, n.Data)}
	}
	return stacked{a, b}
}

// stacked is rows of which some are not in memory.
type stacked struct{ first, second dbn.Rows }

func (s stacked) Shape() (rows, cols int) {
	a, cols := s.first.Shape()
	b, _ := s.second.Shape()
	return a + b, cols
}

func (s stacked) ReadRows(dst []float32, from int) error {
	rows, cols := s.first.Shape()
	if n := min(rows-from, len(dst)/cols); n > 0 {
		if err := s.first.ReadRows(dst[:n*cols], from); err != nil {
			return err
		}
		dst, from = dst[n*cols:], rows
	}
	if len(dst) == 0 {
		return nil
	}
	return s.second.ReadRows(dst, from-rows)
}
