package classify

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// mostKept is how many scores a calibration keeps at most: of more, order
// statistics that never make a p-value smaller.
const mostKept = 9_999

// Conformal says which classes a posterior is compatible with, by class-conditional
// (Mondrian) conformal prediction. The p-value of class k is the share of
// calibration rows of that class that look no more like it than the row does,
//
//	p_k(x) = (1 + #{i: y_i = k, P(k|x_i) ≤ P(k|x)}) / (1 + #{i: y_i = k}).
//
// The set of a row holds the classes with p_k above Rate. If the row and the
// calibration rows of its class are exchangeable, its class is missing from the
// set with a probability of Rate at most, whatever the class and the network.
// It must not be changed once made.
//
// Source: V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random
// World", 2005, §4.5.
type Conformal struct {
	Rate   float64     // error rate, in (0, 1)
	scores [][]float64 // by class: P(k|x_i) of its calibration rows, ascending
}

// NewConformal calibrates on posteriors, N×K row-major, of rows of classes y which the
// networks that gave them were not trained on. It keeps neither. It returns
// ErrTooFew if a class has fewer than 1/rate − 1 rows: it could never be left out of
// a set. It panics if the lengths do not agree.
func NewConformal(posterior []float64, y []int, k int, rate float64) (*Conformal, error) {
	if len(posterior) != len(y)*k {
		panic(fmt.Sprintf("classify: NewConformal of %d posteriors and %d labels of %d classes", len(posterior), len(y), k))
	}
	if !(rate > 0 && rate < 1) {
		return nil, fmt.Errorf("classify: error rate %v: %w: must be between 0 and 1", rate, ErrSettings)
	}
	c := &Conformal{Rate: rate, scores: make([][]float64, k)}
	for i, label := range y {
		c.scores[label] = append(c.scores[label], posterior[i*k+label])
	}
	for j, s := range c.scores {
		if 1/float64(len(s)+1) > rate {
			return nil, fmt.Errorf("classify: class %d has %d rows: %w: an error rate of %v takes %d", j, len(s), ErrTooFew, rate, int(math.Ceil(1/rate))-1)
		}
		slices.Sort(s)
		c.scores[j] = keepScores(s)
	}
	return c, nil
}

// keepScores returns sorted x, or of more than mostKept values so many of them that a rank
// among them is never a smaller share than among all: with m kept of n the j-th is
// number ⌊j·(n+1)/(m+1)⌋.
func keepScores(x []float64) []float64 {
	if len(x) <= mostKept {
		return x
	}
	out := make([]float64, mostKept)
	for j := range out {
		out[j] = x[(j+1)*(len(x)+1)/(mostKept+1)-1]
	}
	return out
}

// Classes returns the number K of classes.
func (c *Conformal) Classes() int { return len(c.scores) }

// P returns the p-value of class k for a row with the given posterior, in (0, 1].
func (c *Conformal) P(k int, posterior []float64) float64 {
	s := c.scores[k]
	return float64(1+atMost(s, posterior[k])) / float64(1+len(s))
}

// In reports whether class k is in the set of a row with the given posterior.
func (c *Conformal) In(k int, posterior []float64) bool { return c.P(k, posterior) > c.Rate }

// atMost returns how many values of ascending x are v or less.
func atMost(x []float64, v float64) int {
	low, high := 0, len(x)
	for low < high {
		if mid := int(uint(low+high) >> 1); x[mid] <= v {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Doubt is why a decision on a row does not stand.
type Doubt int

// The doubts.
const (
	NoDoubt     Doubt = iota
	Ambiguous         // the set does not say what was decided: it holds a class of the other side
	Implausible       // the set is empty: the row is as no class usually is
)

// Check returns whether the set of a row speaks for what was decided of it, the first
// class or any other: with two classes, whether it holds that class and no other. With
// more, all but the first are one side, so that a row which may be of two of them is
// certain enough.
//
// Costs move the decision and not the set. Where the set holds one class and the costs
// decide for the other, the row is Ambiguous: one says that such rows of the class
// are rare, and the other that one of them would be dear.
func (c *Conformal) Check(decision int, posterior []float64) Doubt {
	first := c.In(0, posterior)
	others := false
	for k := 1; k < len(c.scores); k++ {
		others = others || c.In(k, posterior)
	}
	switch {
	case !first && !others:
		return Implausible
	case first == others || first != (decision == 0):
		return Ambiguous
	}
	return NoDoubt
}

// The binary form of a calibration, all numbers little-endian:
//
//	bytes  content
//	8      error rate, float64
//	4      number K of classes
//	       of each class 4+8·n, number of scores and the scores, float64

// AppendBinary appends the binary form to b. It never fails.
func (c *Conformal) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.scores)))
	for _, s := range c.scores {
		b = appendFloats(b, s)
	}
	return b, nil
}

// UnmarshalBinary replaces c by the calibration whose binary form b is. It returns
// an error that wraps ErrCorrupt, and leaves c alone, if b is anything else.
func (c *Conformal) UnmarshalBinary(b []byte) error {
	r := &reader{b: b}
	read := Conformal{Rate: r.float64()}
	n := r.uint32()
	if n < 2 || n > maxClasses || !(read.Rate > 0 && read.Rate < 1) {
		return fmt.Errorf("classify: %w: conformal sets of %d classes at an error rate of %v", ErrCorrupt, n, read.Rate)
	}
	for range n {
		s := r.floats()
		if len(s) == 0 || !slices.IsSorted(s) || !(s[0] >= 0 && s[len(s)-1] <= 1) {
			return fmt.Errorf("classify: %w: the calibration of a class makes no sense", ErrCorrupt)
		}
		read.scores = append(read.scores, s)
	}
	if r.short || len(r.b) > 0 {
		return fmt.Errorf("classify: %w: a calibration of %d bytes", ErrCorrupt, len(b))
	}
	*c = read
	return nil
}
