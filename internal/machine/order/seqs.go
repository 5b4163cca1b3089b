package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/flank-tcm/flank/internal/event"
)

// Seqs is a set of sequence numbers, see [event.Seqs].
type Seqs event.Seqs

// keptRanges is how many intervals a set may have. Where more gaps stay open,
// which takes as many lost windows, the oldest is closed: a window that came so
// late would be dropped as a repeat, and the state of a machine stays small.
const keptRanges = 1000

// Has reports whether seq is in the set.
func (r Seqs) Has(seq uint64) bool { return event.Seqs(r).Has(seq) }

// Add puts seq into the set.
func (r *Seqs) Add(seq uint64) { (*event.Seqs)(r).Add(seq, keptRanges) }

// close closes the n oldest gaps: a window that comes later than that is taken for a
// repeat.
func (r *Seqs) close(n int) {
	s := *r
	s[n][0] = s[0][0]
	*r = slices.Delete(s, 0, n)
}

// Last returns the greatest number of the set, or false if it is empty.
func (r Seqs) Last() (uint64, bool) {
	if len(r) == 0 {
		return 0, false
	}
	return r[len(r)-1][1], true
}

// Holes returns how many numbers are missing between the least and the greatest.
func (r Seqs) Holes() (n uint64) {
	for i := 1; i < len(r); i++ {
		n += r[i][0] - r[i-1][1] - 1
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
		b = strconv.AppendUint(append(b, '['), v[0], 10)
		b = append(strconv.AppendUint(append(b, ','), v[1], 10), ']')
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
		*r = append(*r, p)
	}
	return nil
}
