package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Seqs is a set of sequence numbers as ascending, disjoint, non-adjacent
// closed intervals. Windows come in order, so it is nearly always one interval.
type Seqs []interval

// keptRanges is how many intervals a set may have. Where more gaps stay open,
// which takes as many lost windows, the oldest is closed: a window that came so
// late would be dropped as a repeat, and the state of a machine stays small.
const keptRanges = 1000

type interval struct{ first, last uint64 }

// Has reports whether seq is in the set.
func (r Seqs) Has(seq uint64) bool {
	i := r.search(seq)
	return i < len(r) && r[i].first <= seq
}

// search returns the index of the first interval that does not end before seq.
func (r Seqs) search(seq uint64) int {
	i, _ := slices.BinarySearchFunc(r, seq, func(v interval, seq uint64) int {
		if v.last < seq {
			return -1
		}
		return 1
	})
	return i
}

// Add puts seq into the set.
func (r *Seqs) Add(seq uint64) {
	s := *r
	i := s.search(seq)
	if i < len(s) && s[i].first <= seq {
		return
	}
	touchesLeft := i > 0 && s[i-1].last+1 == seq
	touchesRight := i < len(s) && s[i].first == seq+1
	switch {
	case touchesLeft && touchesRight:
		s[i-1].last = s[i].last
		s = slices.Delete(s, i, i+1)
	case touchesLeft:
		s[i-1].last = seq
	case touchesRight:
		s[i].first = seq
	default:
		s = slices.Insert(s, i, interval{seq, seq})
	}
	*r = s
	if len(s) > keptRanges {
		r.close(1)
	}
}

// close closes the n oldest gaps: a window that comes later than that is taken for a
// repeat.
func (r *Seqs) close(n int) {
	s := *r
	s[n].first = s[0].first
	*r = slices.Delete(s, 0, n)
}

// Last returns the greatest number of the set, or false if it is empty.
func (r Seqs) Last() (uint64, bool) {
	if len(r) == 0 {
		return 0, false
	}
	return r[len(r)-1].last, true
}

// Holes returns how many numbers are missing between the least and the greatest.
func (r Seqs) Holes() (n uint64) {
	for i := 1; i < len(r); i++ {
		n += r[i].first - r[i-1].last - 1
	}
	return n
}

// MarshalJSON returns [[first, last], …].
func (r Seqs) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+24*len(r)), '[')
	for i, v := range r {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, '['), v.first, 10)
		b = append(strconv.AppendUint(append(b, ','), v.last, 10), ']')
	}
	return append(b, ']'), nil
}

// UnmarshalJSON restores a set and refuses what is none.
func (r *Seqs) UnmarshalJSON(text []byte) error {
	var pairs [][2]uint64
	if err := json.Unmarshal(text, &pairs); err != nil {
		return fmt.Errorf("sequence numbers: %w", err)
	}
	*r = nil
	for _, p := range pairs {
		if last, any := r.Last(); p[0] > p[1] || any && p[0] <= last {
			return errors.New("sequence numbers: not ascending")
		}
		*r = append(*r, interval{p[0], p[1]})
	}
	return nil
}
