package unknown

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/classify"
)

// noveltyClip is how many standard deviations from its mean a feature counts at
// most, so that one feature alone does not decide.
const noveltyClip = 5

// Novelty says how unlike the rows it was fitted to a row is. The class of the row does not
// matter. It is the Mahalanobis distance under probabilistic principal component analysis. With
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
	Rate float64 // p-value P up to which a row is novel, in (0, 1)

	center, scale []float64  // by column; a scale of 0 leaves the column out
	precision     float64    // 1/σ²
	basis         []float32  // q×p by rows: √(1/σ² − 1/λ_i)·v_i
	tools         toolShares // of −d² of calibration rows
}

// Columns returns the number of features of a row.
func (n *Novelty) Columns() int { return len(n.center) }

// Counts says of each column whether distances depend on it. The slice is the
// caller's.
func (n *Novelty) Counts() []bool {
	counts := make([]bool, len(n.scale))
	for j, s := range n.scale {
		counts[j] = s > 0
	}
	return counts
}

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
		panic(fmt.Sprintf("unknown: Distance of %d features by a novelty of %d", len(row), len(n.center)))
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
// them, that are as far out as it is, in (0, 1]. All tools weigh the same, however many rows
// they have: with n different distances d_i kept of K tools,
//
//	p(x) = (1 + n·F(x)) / (1 + n),   F(x) = (1/K) Σ_t #{i of tool t: d_i ≥ d(x)} / n_t.
func (s *NoveltyScorer) P(row []float32) float64 { return s.novelty.p(s.Distance(row)) }

func (n *Novelty) p(d float64) float64 {
	return n.tools.tail(-d)
}

// tail returns F(v), kept above 0 by one more number, which is v.
func (s *toolShares) tail(v float64) float64 {
	n := float64(len(s.at))
	return (1 + n*s.upTo(v)) / (1 + n)
}

// Tools returns the number of tools that p-values are calibrated on.
func (n *Novelty) Tools() int { return n.tools.tools }

// Promise returns which share of the rows of a new tool is novel at most, if tools are
// exchangeable, on average over calibrations: with K tools (1 + K·Rate)/(1 + K), because the new
// tool may be unlike all of them. With many tools, or tools that are alike, it comes to
// Rate.
func (n *Novelty) Promise() float64 { return withNewTool(n.Rate, n.tools.tools) }

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

// The binary form of a novelty, all numbers little-endian:
//
//	bytes  content
//	8      "FNOVELTY"
//	4      version, 2
//	8      p-value up to which a row is novel, float64
//	8      1/σ², float64
//	4+8·p  number p of columns and their means, float64
//	4+8·p  p and the standard deviations, float64
//	4      number of tools of calibration
//	4+8·n  number n of different d² of calibration rows and these, float64, descending
//	4+8·n  n and the share F of rows that are as far out, float64
//	4      number q of directions, then q·p float32, by rows
const (
	noveltyMagic   = "FNOVELTY"
	noveltyVersion = 2
)

// AppendBinary appends the binary form to b. It never fails.
func (n *Novelty) AppendBinary(b []byte) ([]byte, error) {
	le := binary.LittleEndian
	b = le.AppendUint32(append(b, noveltyMagic...), noveltyVersion)
	b = le.AppendUint64(b, math.Float64bits(n.Rate))
	b = le.AppendUint64(b, math.Float64bits(n.precision))
	b = kernel.AppendFloats(kernel.AppendFloats(b, n.center), n.scale)
	s := n.tools
	s.at = negated(s.at)
	b = appendToolShares(b, s)
	b = le.AppendUint32(b, uint32(n.Directions()))
	for _, v := range n.basis {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	return b, nil
}

// negated returns −x.
func negated(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = -v
	}
	return out
}

// UnmarshalBinary replaces n by the novelty whose binary form b is. It returns an
// error that wraps classify.ErrCorrupt, and leaves n alone, if b is anything else.
func (n *Novelty) UnmarshalBinary(b []byte) error {
	r := &kernel.Reader{Rest: b}
	if err := readVersion(r, noveltyMagic, noveltyVersion); err != nil {
		return err
	}
	read := Novelty{Rate: r.Float64(), precision: r.Float64(), center: r.Floats(), scale: r.Floats()}
	read.tools = readToolShares(r)
	read.tools.at = negated(read.tools.at)
	q, p := int64(r.Uint32()), int64(len(read.center))
	if r.Short || p == 0 || int64(len(read.scale)) != p || int64(len(r.Rest)) != 4*q*p {
		return fmt.Errorf("unknown: %w: a novelty of %d columns and %d directions in %d bytes", classify.ErrCorrupt, p, q, len(b))
	}
	read.basis = make([]float32, q*p)
	for i := range read.basis {
		read.basis[i] = math.Float32frombits(binary.LittleEndian.Uint32(r.Rest[4*i:]))
	}
	if !read.sound() {
		return fmt.Errorf("unknown: %w: a number of the novelty makes no sense", classify.ErrCorrupt)
	}
	*n = read
	return nil
}

// sound reports whether FitNovelty could have made the numbers of n.
func (n *Novelty) sound() bool {
	if !n.tools.sound(-math.MaxFloat64, 0) || !(n.Rate > 0 && n.Rate < 1) || !(n.precision > 0) || !finite(n.precision) {
		return false
	}
	for j, s := range n.scale {
		if !finite(n.center[j]) || !finite(s) || s < 0 {
			return false
		}
	}
	return !slices.ContainsFunc(n.basis, func(v float32) bool { return !finite(float64(v)) })
}
