// Package cycle finds in which part of its working cycle a machine is, from
// thrust and torque and without a wire to its control.
//
// A [State] is what the machine does during a window: idle, start-up, coolant,
// entry, drilling or retract. A [Model] is a hidden Markov model of the cycle. It
// looks at a window in frames, a tenth of it each; in every frame each of its
// inputs has a level (the mean of thrust or torque, the RMS of a vibration) and a
// rise, the level less the level of the frame before. [Model.Learn] finds its numbers
// in recordings without labels: all it is given is the order of the
// cycle, and from which level on the machine may be cutting. A [Follower] then
// follows one machine after the other, whose [Memory] it takes from window to
// window. Trainer and monitor follow with the same code.
//
// The parts of a cycle stand in a ring and are left forward. How seldom they are
// left in training is how much evidence it takes to leave them: that is the
// hysteresis of the states.
//
// Sources: L. R. Rabiner, "A Tutorial on Hidden Markov Models and Selected
// Applications in Speech Recognition", Proc. IEEE 77(2), 1989; for machines, H. M.
// Ertunc, K. A. Loparo, H. Ocak, "Tool wear condition monitoring in drilling
// operations using hidden Markov models (HMMs)", Int. J. Mach. Tools Manuf. 41(9),
// 2001.
package cycle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// State is what the machine does.
type State int

// The states in the order of a cycle. Unknown is none of them: nothing that can
// be trusted says what the machine does.
const (
	Unknown  State = iota
	Idle           // the spindle stands or runs down, coolant is off
	StartUp        // the spindle runs up
	Coolant        // the spindle turns, coolant flows, nothing is cut
	Entry          // the edge enters the material
	Drilling       // the edge is in the material
	Retract        // the tool is pulled back
	states
)

var stateNames = [states]string{"unknown", "idle", "start-up", "coolant", "entry", "drilling", "retract"}

// String returns the name of the state, for example "start-up".
func (s State) String() string {
	if s < 0 || s >= states {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return stateNames[s]
}

// MarshalText returns the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of a state.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(stateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("cycle: no state %.32q", text)
	}
	*s = State(i)
	return nil
}

// measureKind says what the level of an input is.
type measureKind string

// The measures: the mean of the samples of a frame, or their RMS about the mean.
const (
	Mean measureKind = "mean"
	rms  measureKind = "rms"
)

// Normal is a normal distribution.
type Normal struct {
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"` // positive
}

// Input is a channel that the model looks at. With x the measure of a frame and z
// the zero of the channel, its level is
//
//	y = asinh(sign·(x − z)/scale),
//
// which is linear in the noise of a machine at rest and logarithmic far above it,
// so that tools and workpieces that differ by a factor differ by a constant; it
// makes the variance of a reading with additive and multiplicative errors the same
// everywhere (D. M. Rocke, B. Durbin, "Approximate variance-stabilizing
// transformations for gene-expression microarray data", Bioinformatics 19(8),
// 2003). A level above full counts as full: a tool that is worn or broken is
// pressed harder than any in the recordings, and drills.
type Input struct {
	Channel string      `json:"channel"`
	Measure measureKind `json:"measure"`
	Sign    float64     `json:"sign"`    // 1; −1 if the channel reads less while cutting
	Scale   float64     `json:"scale"`   // noise of the measure at rest, in the unit of the channel; positive
	Zero    float64     `json:"zero"`    // what the channel reads at rest, the mean of all tools; 0 for RMS
	ZeroSD  float64     `json:"zero_sd"` // by how much tools differ in it; 0: it is the same for all

	Full float64 `json:"full"` // y while drilling, the median

	// Level and Rise are distributions of outliers, with three times the standard
	// deviation of all frames, no matter what the machine did in them.
	Level Normal `json:"level"`
	Rise  Normal `json:"rise"`
}

// Part is one part of the cycle. Several parts may be of one state: the spindle
// that stands and the one that runs down are both idle.
type Part struct {
	State State     `json:"state"`
	Share float64   `json:"share"` // of all frames
	Next  []float64 `json:"next"`  // by part: the probability that the next frame is of it
	Level []Normal  `json:"level"` // by input
	Rise  []Normal  `json:"rise"`  // by input
}

// Model is a hidden Markov model of a machine's cycle. It must not be changed
// once learnt; then it is safe for concurrent use.
type Model struct {
	Frames int     `json:"frames"` // in a window
	Inputs []Input `json:"inputs"`
	Parts  []Part  `json:"parts"` // in the order of the cycle; empty: not learnt yet
}

const (
	wantedFrames = 10 // in a window
	rmsSamples   = 16 // that an RMS should rest on

	// outliers is the share of readings that are taken for outliers: what no part
	// explains shall not decide between parts. (J. D. Banfield, A. E. Raftery,
	// "Model-based Gaussian and non-Gaussian clustering", Biometrics 49, 1993, §3.3.)
	outliers = 1e-3
)

// New returns a model, still to be learnt, that looks at windows of the layout:
// at the first channel of force, of torque and of vibration. Samples says how many
// samples of each channel a window holds. It returns nil for a layout with
// neither force nor torque: nothing else separates drilling from the rest.
func New(layout *signal.Layout, samples []int) *Model {
	m := &Model{Frames: wantedFrames}
	for _, kind := range []signal.Kind{signal.Force, signal.Torque, signal.Vibration} {
		i := slices.IndexFunc(layout.Channels(), func(c signal.Channel) bool { return c.Kind == kind })
		if i < 0 {
			continue
		}
		in := Input{Channel: layout.Channels()[i].Name, Measure: Mean}
		least := 1
		if kind == signal.Vibration {
			if len(m.Inputs) == 0 {
				return nil
			}
			in.Measure, least = rms, rmsSamples
		}
		if samples[i] < least {
			continue
		}
		m.Frames = min(m.Frames, samples[i]/least)
		m.Inputs = append(m.Inputs, in)
	}
	if len(m.Inputs) == 0 {
		return nil
	}
	return m
}

// StepFrames returns how many frames of a window lie before the start of the next,
// which follows it by step.
func (m *Model) StepFrames(length, step time.Duration) int {
	return max(1, int(math.Round(float64(m.Frames)*float64(step)/float64(length))))
}

// States returns the states that the model knows, in the order of the cycle.
func (m *Model) States() []State {
	var known []State
	for _, p := range m.Parts {
		if !slices.Contains(known, p.State) {
			known = append(known, p.State)
		}
	}
	return known
}

// Channels returns the names of the channels that the model looks at.
func (m *Model) Channels() []string {
	names := make([]string, len(m.Inputs))
	for i, in := range m.Inputs {
		names[i] = in.Channel
	}
	return names
}

// Check reports what is wrong with a model that was learnt for windows of the
// layout.
func (m *Model) Check(layout *signal.Layout) error {
	const most = 1000 // frames of a window
	if m.Frames < 1 || m.Frames > most || len(m.Inputs) == 0 || len(m.Parts) == 0 {
		return fmt.Errorf("cycle: %d frames, %d inputs, %d parts: all must be there, and at most %d frames", m.Frames, len(m.Inputs), len(m.Parts), most)
	}
	for _, in := range m.Inputs {
		if err := in.check(layout); err != nil {
			return err
		}
	}
	for i := range m.Parts {
		if err := m.checkPart(i); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.State == Drilling }) {
		return errors.New("cycle: no part is drilling")
	}
	return nil
}

// check reports what is wrong with an input for windows of the layout.
func (in Input) check(layout *signal.Layout) error {
	switch {
	case layout.Index(in.Channel) < 0:
		return fmt.Errorf("cycle: channel %q is not in the layout", in.Channel)
	case in.Measure != Mean && in.Measure != rms:
		return fmt.Errorf("cycle: channel %q: measure %q is not %s or %s", in.Channel, in.Measure, Mean, rms)
	case !in.ok():
		return fmt.Errorf("cycle: channel %q: %+v is not an input", in.Channel, in)
	}
	return nil
}

// ok reports whether the numbers of an input can be used.
func (in *Input) ok() bool {
	for _, v := range []float64{in.Zero, in.ZeroSD, in.Full} {
		if !finite(v) {
			return false
		}
	}
	return (in.Sign == 1 || in.Sign == -1) && positive(in.Scale) && in.ZeroSD >= 0 && in.Level.ok() && in.Rise.ok()
}

// checkPart reports what is wrong with part i.
func (m *Model) checkPart(i int) error {
	p := &m.Parts[i]
	if p.State <= Unknown || p.State >= states || !(p.Share >= 0 && p.Share <= 1) {
		return fmt.Errorf("cycle: part %d: state %v with a share of %v", i, p.State, p.Share)
	}
	if len(p.Next) != len(m.Parts) || len(p.Level) != len(m.Inputs) || len(p.Rise) != len(m.Inputs) {
		return fmt.Errorf("cycle: part %d (%v) has numbers for %d parts and %d inputs, want %d and %d", i, p.State, len(p.Next), len(p.Level), len(m.Parts), len(m.Inputs))
	}
	var sum float64
	for _, q := range p.Next {
		if !(q >= 0) {
			return fmt.Errorf("cycle: part %d (%v): probability %v", i, p.State, q)
		}
		sum += q
	}
	if !(math.Abs(sum-1) < 1e-9) || !(p.Next[i] > 0) {
		return fmt.Errorf("cycle: part %d (%v): probabilities %v do not add up to 1, or it is left at once", i, p.State, p.Next)
	}
	for c := range m.Inputs {
		if !p.Level[c].ok() || !p.Rise[c].ok() {
			return fmt.Errorf("cycle: part %d (%v): %+v, %+v: these are not normal distributions", i, p.State, p.Level[c], p.Rise[c])
		}
	}
	return nil
}

func finite(x float64) bool   { return math.Abs(x) <= math.MaxFloat64 }
func positive(x float64) bool { return x > 0 && finite(x) }
func (n Normal) ok() bool     { return finite(n.Mean) && positive(n.SD) }

// level returns y of a reading x at zero z.
func (in *Input) level(x, z float64) float64 { return math.Asinh(in.Sign * (x - z) / in.Scale) }

// blur returns the variance that a zero with the given variance adds to levels
// around y: by the first derivative, dy/dz = −sign/(scale·cosh y).
func (in *Input) blur(y, variance float64) float64 {
	if variance == 0 {
		return 0
	}
	slope := in.Scale * math.Cosh(y)
	return variance / (slope * slope)
}

// density returns the density of n at x, up to the factor 1/√(2π). The variance of
// n is larger by extra.
func (n *Normal) density(x, extra float64) float64 {
	d := x - n.Mean
	if extra == 0 {
		return math.Exp(-d*d/(2*n.SD*n.SD)) / n.SD
	}
	variance := n.SD*n.SD + extra
	return math.Exp(-d*d/(2*variance)) / math.Sqrt(variance)
}

// farthest bounds how far out an outlier lies, in standard deviations, so that a
// product of densities stays a number.
const farthest = 8

// stray returns the density at x of outliers, up to the same factor.
func (n *Normal) stray(x float64) float64 {
	z := min(math.Abs(x-n.Mean)/n.SD, farthest)
	return math.Exp(-z*z/2) / n.SD
}

// emission is how likely a frame is in each part, up to a factor that is the same
// for all: if the frame before was of the same part, and if it was of another. A
// rise across a change of parts is of neither, so anything is likely.
type emission struct{ stay, turn []float64 }

func newEmission(parts int) emission {
	return emission{make([]float64, parts), make([]float64, parts)}
}

// emit stores in dst how likely a frame is in each part. now and before are the
// readings of the frame and of the one before it, NaN where there is none; zero and
// variance belong to the inputs' zeros.
func (m *Model) emit(dst emission, now, before, zero, variance []float64) {
	for p := range m.Parts {
		dst.stay[p], dst.turn[p] = 1, 1
	}
	for c := range m.Inputs {
		in := &m.Inputs[c]
		x, b := now[c], before[c]
		if x != x {
			continue
		}
		y := in.level(x, zero[c])
		rise := y - in.level(b, zero[c])
		y = min(y, in.Full)
		stray, any := outliers*in.Level.stray(y), 0.
		if rise == rise {
			any = in.Rise.stray(rise)
		}
		for p := range m.Parts {
			part := &m.Parts[p]
			level := (1-outliers)*part.Level[c].density(y, in.blur(part.Level[c].Mean, variance[c])) + stray
			dst.stay[p] *= level
			dst.turn[p] *= level
			if rise == rise {
				dst.stay[p] *= (1-outliers)*part.Rise[c].density(rise, 0) + outliers*any
				dst.turn[p] *= any
			}
		}
	}
}

// forward stores in dst how likely each part is in a frame with emission e, given
// how likely each was in the frame before, and returns how likely the frame is
// (Rabiner 1989, eq. 20, scaled as in §V.A, but that what is seen also depends on
// the part before).
func (m *Model) forward(dst, from []float64, e emission) float64 {
	clear(dst)
	for p, v := range from {
		for q, a := range m.Parts[p].Next {
			if q == p {
				dst[q] += v * a * e.stay[q]
			} else {
				dst[q] += v * a * e.turn[q]
			}
		}
	}
	return normalize(dst)
}

// backward stores in dst, up to a factor, how likely what follows is after each
// part: a frame with emission e, and then what beta says (eq. 25).
func (m *Model) backward(dst, beta []float64, e emission) {
	for p := range m.Parts {
		next := m.Parts[p].Next
		dst[p] = next[p] * e.stay[p] * beta[p]
		for q, a := range next {
			if q != p {
				dst[p] += a * e.turn[q] * beta[q]
			}
		}
	}
}

// normalize divides b by its sum, which it returns.
func normalize(b []float64) float64 {
	var sum float64
	for _, v := range b {
		sum += v
	}
	for p := range b {
		b[p] /= sum
	}
	return sum
}
