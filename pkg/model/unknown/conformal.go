package unknown

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/classify"
)

// Conformal says which classes a posterior is compatible with, by class-conditional
// (Mondrian) conformal prediction by tools. Windows of a tool are near copies and
// tools differ, so the tools of calibration weigh the same, however many windows they
// have. With K_k tools that have rows of class k, n_t of them in tool t,
//
//	F_k(x) = (1/K_k) Σ_t #{i of tool t: y_i = k, P(k|x_i) ≤ P(k|x)} / n_t
//	p_k(x) = (1 + K_k·F_k(x)) / (1 + K_k).
//
// The set of a row holds the classes with F_k above Rate, which is to say with p_k
// above (1 + K_k·Rate)/(1 + K_k). If the tool of the row and the tools of calibration are
// exchangeable, and the rows within each too, its class is in the set with a
// probability of (1 − Rate)·K_k/(1 + K_k) at least, for any network and however much
// tools differ: see Promise. With many tools, or tools that are alike, it comes to
// 1 − Rate. It must not be changed once made.
//
// Sources: V. Vovk, A. Gammerman, G. Shafer, "Algorithmic Learning in a Random
// World", 2005, §4.5 (by class); R. Dunn, L. Wasserman, A. Ramdas, "Distribution-Free
// Prediction Sets for Two-Layer Hierarchical Models", J. Am. Stat. Assoc. 118, 2023
// (the pooled F); Y. Lee, R. F. Barber, R. Willett, "Distribution-free inference with
// hierarchical data", arXiv:2306.06342, 2023 (p, with the new tool as one more).
type Conformal struct {
	Rate  float64      // error rate asked for, in (0, 1)
	tools []toolShares // by class: of P(k|x_i) of its calibration rows
}

// NewConformal calibrates on posteriors, N×K row-major, of rows of classes y and of
// tools groups, which the networks that gave them were not trained on. It keeps none
// of them. It returns classify.ErrTooFew if a class has no row. It panics if the lengths do not
// agree.
func NewConformal(posterior []float64, y []int, groups []string, k int, rate float64) (*Conformal, error) {
	if len(posterior) != len(y)*k || len(groups) != len(y) {
		panic(fmt.Sprintf("unknown: NewConformal of %d posteriors, %d labels of %d classes and %d groups", len(posterior), len(y), k, len(groups)))
	}
	if !(rate > 0 && rate < 1) {
		return nil, fmt.Errorf("unknown: error rate %v: %w: must be between 0 and 1", rate, classify.ErrSettings)
	}
	number, names := classify.NumberGroups(groups)
	c := &Conformal{Rate: rate}
	for class := range k {
		var scores []float64
		var of []int32
		for i, label := range y {
			if label == class {
				scores, of = append(scores, posterior[i*k+class]), append(of, number[i])
			}
		}
		if len(scores) == 0 {
			return nil, fmt.Errorf("unknown: class %d has no rows: %w: label some to calibrate its conformal sets on", class, classify.ErrTooFew)
		}
		c.tools = append(c.tools, newToolShares(scores, of, len(names)))
	}
	return c, nil
}

// Classes returns the number K of classes.
func (c *Conformal) Classes() int { return len(c.tools) }

// Tools returns the number of tools that class k is calibrated on.
func (c *Conformal) Tools(k int) int { return c.tools[k].tools }

// P returns the p-value of class k for a row with the given posterior, in (0, 1].
func (c *Conformal) P(k int, posterior []float64) float64 {
	s := &c.tools[k]
	return withNewTool(s.upTo(posterior[k]), s.tools)
}

// withNewTool returns a share of so many tools, each of which weighs the same, with one
// more tool that has all of it.
func withNewTool(share float64, tools int) float64 {
	return (1 + share*float64(tools)) / float64(1+tools)
}

// In reports whether class k is in the set of a row with the given posterior.
func (c *Conformal) In(k int, posterior []float64) bool { return c.P(k, posterior) > c.bound(k) }

// bound returns the p-value up to which class k is left out.
func (c *Conformal) bound(k int) float64 { return withNewTool(c.Rate, c.tools[k].tools) }

// Promise returns with which probability at least class k is in the set of a row of the
// class, of a new tool, if tools are exchangeable, on average over calibrations: with K
// tools (1 − Rate)·K/(1 + K), because the new tool may be unlike all of them. Sets that ever
// leave the class out cannot promise more than K/(1 + K).
func (c *Conformal) Promise(k int) float64 { return 1 - c.bound(k) }

// Reason is why it is unknown whether a decision on a row is right.
type Reason int

// The reasons.
const (
	certain     Reason = iota
	Ambiguous          // the set does not agree with the decision: it holds a class of the other side
	Implausible        // the set is empty: the row is not as any class usually is
)

// Check returns whether the set of a row speaks for what was decided of it, the first
// class or any other: with two classes, whether it holds that class and no other. With
// more, all but the first are one side, so that a row which may be of two of them is
// certain enough.
//
// Costs move the decision and not the set. Where the set holds one class and the costs
// decide for the other, the row is Ambiguous: the set says that such rows of the other
// class are rare, and the costs say that missing one of them would be expensive.
func (c *Conformal) Check(decision int, posterior []float64) Reason {
	first := c.In(0, posterior)
	others := false
	for k := 1; k < c.Classes(); k++ {
		others = others || c.In(k, posterior)
	}
	switch {
	case !first && !others:
		return Implausible
	case first == others || first != (decision == 0):
		return Ambiguous
	}
	return certain
}

// The binary form of a calibration, all numbers little-endian:
//
//	bytes  content
//	8      "FCONFORM"
//	4      version, 2
//	8      error rate, float64
//	4      number K of classes; then of each class:
//	4        number of tools
//	4+8·n    number of different scores and the scores, float64, ascending
//	4+8·n    n and the share F up to each, float64
const (
	conformalMagic   = "FCONFORM"
	conformalVersion = 2
	maxClasses       = 1 << 12
)

// AppendBinary appends the binary form to b. It never fails.
func (c *Conformal) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(append(b, conformalMagic...), conformalVersion)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Classes()))
	for _, s := range c.tools {
		b = appendToolShares(b, s)
	}
	return b, nil
}

// UnmarshalBinary replaces c by the calibration whose binary form b is. It returns
// an error that wraps classify.ErrCorrupt, and leaves c alone, if b is anything else.
func (c *Conformal) UnmarshalBinary(b []byte) error {
	r := &kernel.Reader{Rest: b}
	if err := readVersion(r, conformalMagic, conformalVersion); err != nil {
		return err
	}
	read := Conformal{Rate: r.Float64()}
	n := r.Uint32()
	if n < 2 || n > maxClasses || !(read.Rate > 0 && read.Rate < 1) {
		return fmt.Errorf("unknown: %w: conformal sets of %d classes at an error rate of %v", classify.ErrCorrupt, n, read.Rate)
	}
	for range n {
		s := readToolShares(r)
		if read.tools = append(read.tools, s); !s.sound(0, 1) {
			return fmt.Errorf("unknown: %w: the calibration of a class makes no sense", classify.ErrCorrupt)
		}
	}
	if r.Short || len(r.Rest) > 0 {
		return fmt.Errorf("unknown: %w: a calibration of %d bytes", classify.ErrCorrupt, len(b))
	}
	*c = read
	return nil
}
