package classify

import (
	"cmp"
	"slices"
)

// rowSet is some of the rows of a table, in ascending order, as runs of rows
// that follow each other. Tools come one after the other in a table, so whole
// tools are few runs, however many rows they have.
type rowSet struct {
	runs []run
	rows int
}

// run is the rows from up to but not including to; before is how many rows of
// the set come before them.
type run struct{ from, to, before int }

// add adds a row after all others.
func (s *rowSet) add(row int) {
	if n := len(s.runs); n > 0 && s.runs[n-1].to == row {
		s.runs[n-1].to++
	} else {
		s.runs = append(s.runs, run{row, row + 1, s.rows})
	}
	s.rows++
}

// setOf returns the set of rows, which ascend.
func setOf(rows []int) rowSet {
	var s rowSet
	for _, i := range rows {
		s.add(i)
	}
	return s
}

// runOf returns the set of the rows below n.
func runOf(n int) rowSet {
	if n == 0 {
		return rowSet{}
	}
	return rowSet{[]run{{0, n, 0}}, n}
}

// list returns the rows of the set.
func (s rowSet) list() []int {
	out := make([]int, 0, s.rows)
	s.each(func(i int) { out = append(out, i) })
	return out
}

// row returns the i-th row of the set.
func (s rowSet) row(i int) int {
	r := s.runs[s.find(i)]
	return r.from + i - r.before
}

// find returns the index of the run that the i-th row of the set is in.
func (s rowSet) find(i int) int {
	at, found := slices.BinarySearchFunc(s.runs, i, func(r run, i int) int { return cmp.Compare(r.before, i) })
	if !found {
		at--
	}
	return at
}

// each calls visit with every row of the set.
func (s rowSet) each(visit func(row int)) {
	for _, r := range s.runs {
		for i := r.from; i < r.to; i++ {
			visit(i)
		}
	}
}

// placesOf returns the places that the rows of some, all of them in s, have in s.
func (s rowSet) placesOf(some rowSet) rowSet {
	var out rowSet
	at := 0
	some.each(func(row int) {
		for row >= s.runs[at].to {
			at++
		}
		out.add(s.runs[at].before + row - s.runs[at].from)
	})
	return out
}

// thin returns at most n rows of the set, the middles of n equal shares.
func (s rowSet) thin(n int) rowSet {
	if s.rows <= n {
		return s
	}
	var t rowSet
	for i := range n {
		t.add(s.row((2*i + 1) * s.rows / (2 * n)))
	}
	return t
}

// pick returns what the rows of the set have in x, or nil if that is nil. It may be the memory of x, which must not be changed then.
func pick[E any](x []E, s rowSet) []E {
	if x == nil {
		return nil
	}
	if len(s.runs) == 1 {
		return x[s.runs[0].from:s.runs[0].to:s.runs[0].to]
	}
	picked := make([]E, 0, s.rows)
	for _, r := range s.runs {
		picked = append(picked, x[r.from:r.to]...)
	}
	return picked
}

// dealt says of every row which of so many folds holds it out.
type dealt struct {
	fold  []int32
	folds int
}

// test returns the rows that fold f holds out, and train all others.
func (d dealt) test(f int) rowSet  { return d.where(func(fold int32) bool { return int(fold) == f }) }
func (d dealt) train(f int) rowSet { return d.where(func(fold int32) bool { return int(fold) != f }) }

func (d dealt) where(in func(fold int32) bool) rowSet {
	var s rowSet
	for i, fold := range d.fold {
		if in(fold) {
			s.add(i)
		}
	}
	return s
}

// lists returns the folds as lists of rows.
func (d dealt) lists() []Fold {
	folds := make([]Fold, d.folds)
	for i, held := range d.fold {
		for f := range folds {
			if f == int(held) {
				folds[f].Test = append(folds[f].Test, i)
			} else {
				folds[f].Train = append(folds[f].Train, i)
			}
		}
	}
	return folds
}
