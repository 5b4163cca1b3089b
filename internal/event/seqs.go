package event

import (
	"cmp"
	"slices"
)

// Seqs is a set of numbers of windows as ascending, disjoint ranges [first, last] that do not touch. Windows come in order, so
// it is nearly always one range.
type Seqs [][2]uint64

// Has reports whether a number is in the set.
func (s Seqs) Has(seq uint64) bool {
	i := s.search(seq)
	return i < len(s) && s[i][0] <= seq
}

// search returns the index of the first range that does not end before a number.
func (s Seqs) search(seq uint64) int {
	i, _ := slices.BinarySearchFunc(s, seq, func(r [2]uint64, seq uint64) int { return cmp.Compare(r[1], seq) })
	return i
}

// Add puts a number into the set. It reports false if it is there already. Where that makes more than the given number of ranges, it
// closes the oldest gap: a number that comes so late counts as there.
func (s *Seqs) Add(seq uint64, most int) bool {
	if s.Has(seq) {
		return false
	}
	r := *s
	i := r.search(seq)
	left, right := i > 0 && r[i-1][1]+1 == seq, i < len(r) && r[i][0] == seq+1
	switch {
	case left && right:
		r[i-1][1] = r[i][1]
		r = slices.Delete(r, i, i+1)
	case left:
		r[i-1][1] = seq
	case right:
		r[i][0] = seq
	default:
		r = slices.Insert(r, i, [2]uint64{seq, seq})
	}
	if len(r) > most {
		r[1][0] = r[0][0]
		r = slices.Delete(r, 0, 1)
	}
	*s = r
	return true
}
