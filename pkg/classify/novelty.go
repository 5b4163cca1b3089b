package classify

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/internal/kernel"
)

// noveltyClip is how many standard deviations from its mean a feature counts at
// most, so that one feature alone does not decide.
const noveltyClip = 5

// Novelty says how unlike the rows it was fitted to a row is, whatever its class:
// the Mahalanobis distance under probabilistic principal component analysis. With
// a the features less their means over their standard deviations, within ±5 and 0
// where missing, v_i the principal directions, λ_i the variances along them and σ²
// the mean variance of all other directions,
//
//	d²(x) = |a|²/σ² − Σ_i (1/σ² − 1/λ_i)·(v_i·a)².
//
// It does not look at the encoder of a classifier, whose bins and ranks are the same
// for all that lies beyond the training rows. It must not be changed once fitted;
// then it is safe for concurrent use.
//
// Source: M. Tipping and C. Bishop, "Probabilistic Principal Component Analysis",
// J. R. Statist. Soc. B 61, 1999, eq. 7 (the covariance whose inverse this is).
type Novelty struct {
	Rate float64 // p-value up to which a row is novel, in (0, 1)

	center, scale []float64 // by column; a scale of 0 leaves the column out
	precision     float64   // 1/σ²
	basis         []float32 // q×p by rows: √(1/σ² − 1/λ_i)·v_i
	distances     []float64 // d² of calibration rows, ascending
}

// Columns returns the number of features of a row.
func (n *Novelty) Columns() int { return len(n.center) }

// Directions returns the number q of principal directions.
func (n *Novelty) Directions() int { return len(n.basis) / max(1, len(n.center)) }

// NoveltyScorer computes distances row by row without allocating. It is not safe for
// concurrent use; several scorers of one Novelty are.
type NoveltyScorer struct {
	novelty *Novelty
	z, w    []float32
}

// NewScorer returns a NoveltyScorer with its own scratch memory.
func (n *Novelty) NewScorer() *NoveltyScorer {
	return &NoveltyScorer{novelty: n, z: make([]float32, n.Columns()), w: make([]float32, n.Directions())}
}

// Distance returns d² of a row, in which NaN is a missing value and an infinity as
// far out as anything. It panics if row is not as long as there are columns.
func (s *NoveltyScorer) Distance(row []float32) float64 {
	n := s.novelty
	if len(row) != len(n.center) {
		panic(fmt.Sprintf("classify: Distance of %d features by a novelty of %d", len(row), len(n.center)))
	}
	n.standardise(s.z, row)
	d := n.precision * norm2(s.z)
	if len(s.w) > 0 {
		kernel.Gemm(kernel.TransB, 1, len(s.w), len(s.z), s.z, n.basis, nil, s.w)
		d -= norm2(s.w)
	}
	return max(d, 0)
}

// P returns the p-value of a row: the share of calibration rows, with the row among
// them, that are as far out as it is.
func (s *NoveltyScorer) P(row []float32) float64 {
	d, c := s.Distance(row), s.novelty.distances
	return float64(1+len(c)-below(c, d)) / float64(1+len(c))
}

func (n *Novelty) standardise(dst, row []float32) {
	for j, v := range row {
		dst[j] = 0
		if v == v && n.scale[j] > 0 {
			dst[j] = float32(min(max((float64(v)-n.center[j])/n.scale[j], -noveltyClip), noveltyClip))
		}
	}
}

// norm2 returns Σx².
func norm2(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// below returns how many values of ascending x are less than v.
func below(x []float64, v float64) int {
	low, high := 0, len(x)
	for low < high {
		if mid := int(uint(low+high) >> 1); x[mid] < v {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// The binary form of a novelty, all numbers little-endian:
//
//	bytes  content
//	8      p-value up to which a row is novel, float64
//	8      1/σ², float64
//	4+8·p  number p of columns and their means, float64
//	4+8·p  p and the standard deviations, float64
//	4+8·n  number n of calibration rows and their d², float64, ascending
//	4      number q of directions, then q·p float32, by rows

// AppendBinary appends the binary form to b. It never fails.
func (n *Novelty) AppendBinary(b []byte) ([]byte, error) {
	le := binary.LittleEndian
	b = le.AppendUint64(b, math.Float64bits(n.Rate))
	b = le.AppendUint64(b, math.Float64bits(n.precision))
	for _, x := range [][]float64{n.center, n.scale, n.distances} {
		b = appendFloats(b, x)
	}
	b = le.AppendUint32(b, uint32(n.Directions()))
	for _, v := range n.basis {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	return b, nil
}

// UnmarshalBinary replaces n by the novelty whose binary form b is. It returns an
// error that wraps ErrCorrupt, and leaves n alone, if b is anything else.
func (n *Novelty) UnmarshalBinary(b []byte) error {
	r := &reader{b: b}
	read := Novelty{Rate: r.float64(), precision: r.float64(), center: r.floats(), scale: r.floats(), distances: r.floats()}
	q, p := int64(r.uint32()), int64(len(read.center))
	if r.short || p == 0 || int64(len(read.scale)) != p || len(read.distances) == 0 || int64(len(r.b)) != 4*q*p {
		return fmt.Errorf("classify: %w: a novelty of %d columns and %d directions in %d bytes", ErrCorrupt, p, q, len(b))
	}
	sound := read.Rate > 0 && read.Rate < 1 && read.precision > 0 && finite(read.precision)
	for j := range read.center {
		sound = sound && finite(read.center[j]) && finite(read.scale[j]) && read.scale[j] >= 0
	}
	for i, d := range read.distances {
		sound = sound && finite(d) && d >= 0 && (i == 0 || d >= read.distances[i-1])
	}
	read.basis = make([]float32, q*p)
	for i := range read.basis {
		read.basis[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.b[4*i:]))
		sound = sound && finite(float64(read.basis[i]))
	}
	if !sound {
		return fmt.Errorf("classify: %w: a number of the novelty makes no sense", ErrCorrupt)
	}
	*n = read
	return nil
}
