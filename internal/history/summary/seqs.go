package summary

import "slices"

// seqs is the set of the windows of an epoch that were folded, as ascending, disjoint ranges
// [first, last] that do not touch. Windows come in order, so it is nearly always one range.
type seqs [][2]uint64

// maxRanges is how many ranges a set has at most. Where more gaps are open, the oldest one is
// closed: a window that comes so late counts as a repeat.
const maxRanges = 200

// add puts a number into the set. It reports false if it is there already.
func (s *seqs) add(seq uint64) bool {
	r := *s
	i, _ := slices.BinarySearchFunc(r, seq, func(v [2]uint64, seq uint64) int {
		if v[1] < seq {
			return -1
		}
		return 1
	})
	if i < len(r) && r[i][0] <= seq {
		return false
	}
	left := i > 0 && r[i-1][1]+1 == seq
	right := i < len(r) && r[i][0] == seq+1
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
	if len(r) > maxRanges {
		r[1][0] = r[0][0]
		r = slices.Delete(r, 0, 1)
	}
	*s = r
	return true
}
