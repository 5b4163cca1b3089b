package cycle

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Memory is what is known of one machine from window to window. The zero value
// knows nothing. Its JSON restores it exactly.
type Memory struct {
	Tool     string    `json:"tool,omitempty"`
	Next     time.Time `json:"next,omitzero"`    // when the next window starts, if none is missing
	Belief   numbers   `json:"belief,omitempty"` // by part: how likely the machine is in it just before Next
	Zero     numbers   `json:"zero,omitempty"`   // by input: of the channel, as it is believed to be
	Variance numbers   `json:"zero_variance,omitempty"`
	Last     numbers   `json:"last,omitempty"` // by input: the measure of the frame just before Next; NaN without one
}

// Clone returns a copy that shares nothing with m.
func (m Memory) Clone() Memory {
	m.Belief, m.Zero, m.Variance, m.Last = slices.Clone(m.Belief), slices.Clone(m.Zero), slices.Clone(m.Variance), slices.Clone(m.Last)
	return m
}

// numbers are NaN where null stands in JSON.
type numbers []float64

// numberSize is how long a number is at most in JSON, with its comma.
const numberSize = 25

// MarshalJSON writes numbers so that UnmarshalJSON restores every bit of them.
func (n numbers) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+numberSize*len(n)), '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case v != v:
			b = append(b, "null"...)
		case math.IsInf(v, 0):
			return nil, fmt.Errorf("cycle: %v in a memory", v)
		default:
			b = strconv.AppendFloat(b, v, 'g', -1, 64)
		}
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *numbers) UnmarshalJSON(text []byte) error {
	var read []*float64
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*n = nil
	for _, v := range read {
		if v == nil {
			*n = append(*n, math.NaN())
			continue
		}
		*n = append(*n, *v)
	}
	return nil
}

// Check reports a memory that is not of m.
func (k *Memory) Check(m *Model) error {
	if len(k.Belief) == 0 {
		return nil
	}
	n := len(m.Inputs)
	if len(k.Belief) != len(m.Parts) || len(k.Zero) != n || len(k.Variance) != n || len(k.Last) != n {
		return fmt.Errorf("cycle: memory of %d parts and %d inputs, the model has %d and %d", len(k.Belief), len(k.Zero), len(m.Parts), n)
	}
	var sum float64
	for _, b := range k.Belief {
		if !(b >= 0) {
			return fmt.Errorf("cycle: belief %v", b)
		}
		sum += b
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return fmt.Errorf("cycle: beliefs add up to %v", sum)
	}
	for c := range n {
		if !finite(k.Zero[c]) || !finite(k.Variance[c]) || k.Variance[c] < 0 || math.IsInf(k.Last[c], 0) {
			return fmt.Errorf("cycle: zero %v with variance %v, last %v", k.Zero[c], k.Variance[c], k.Last[c])
		}
	}
	return nil
}

// Follower follows machines through their cycles. It holds nothing of a machine:
// that is in its Memory. It is not safe for concurrent use.
type Follower struct {
	model   *Model
	channel []int // by input: in the layout
	length  time.Duration
	step    time.Duration // from the start of one window to the start of the next
	frames  int           // in a step

	alone       Memory      // of a window that has no memory
	now         [][]float64 // by frame and input: the measures
	alpha       [][]float64 // by frame and part: forward
	like        []emission  // by frame
	unseen      emission    // of a frame of which nothing is known
	beta, other []float64   // by part
	rest        []float64   // by frame: how likely the machine is at rest
	share       [states]float64
}

// NewFollower returns a follower for windows of the layout, of which one starts
// each step. A model that is not learnt yet can measure frames only.
func NewFollower(m *Model, layout *signal.Layout, length, step time.Duration) *Follower {
	f := &Follower{
		model: m, length: length, step: step, rest: make([]float64, m.Frames),
		frames: m.StepFrames(length, step),
		beta:   make([]float64, len(m.Parts)), other: make([]float64, len(m.Parts)),
	}
	for _, in := range m.Inputs {
		f.channel = append(f.channel, layout.Index(in.Channel))
	}
	f.unseen = newEmission(len(m.Parts))
	for p := range m.Parts {
		f.unseen.stay[p], f.unseen.turn[p] = 1, 1
	}
	for range m.Frames {
		f.now = append(f.now, make([]float64, len(m.Inputs)))
		f.alpha = append(f.alpha, make([]float64, len(m.Parts)))
		f.like = append(f.like, newEmission(len(m.Parts)))
	}
	return f
}

// Measure appends to dst the measures of a window's frames, by frame and input:
// all that Follow takes of its samples. A frame without samples measures NaN.
func (f *Follower) Measure(dst []float32, samples [][]float32) []float32 {
	n := f.model.Frames
	for t := range n {
		for c := range f.model.Inputs {
			x := samples[f.channel[c]]
			x = x[t*len(x)/n : (t+1)*len(x)/n]
			dst = append(dst, float32(measure(x, f.model.Inputs[c].Measure)))
		}
	}
	return dst
}

// measure returns the mean of the samples that are there, or their standard
// deviation; NaN without any.
func measure(x []float32, as measureKind) float64 {
	var sum, squares float64
	n := 0
	for _, v := range x {
		if v := float64(v); finite(v) {
			sum += v
			squares += v * v
			n++
		}
	}
	mean := sum / float64(n) // NaN without samples
	if as == Mean {
		return mean
	}
	return math.Sqrt(max(0, squares/float64(n)-mean*mean))
}

const (
	// longestGap is how long a machine is believed to go on as it does while
	// nothing is seen of it. After that it may be anywhere.
	longestGap = time.Minute

	// wander is how far the zero of a channel moves in a window, in noises at rest:
	// piezoelectric dynamometers drift.
	wander = 0.1
)

// Follow returns the state of the machine in its next window: the one that is
// likely to hold most of it, given this window and all before. Frames are from
// Measure, of a window of the tool that started at start; faults are the faults of
// sensors by channel of the layout, and a channel with one counts as missing. The
// state is Unknown if neither thrust nor torque is left. Memory learns from the
// window; it may be nil for a window that stands alone.
//
// The beliefs go forward from frame to frame, and within the window also backward
// (Rabiner 1989, eq. 19, 20, 24, 25 and 27, scaled as in §V.A). The zero of a channel
// is a random walk, seen while the machine is at rest: a Kalman filter that counts
// a frame as much as the machine is believed to be at rest in it.
func (f *Follower) Follow(k *Memory, tool string, start time.Time, frames []float32, faults []signal.Quality) State {
	m := f.model
	n := len(m.Inputs)
	if len(frames) != m.Frames*n {
		panic(fmt.Sprintf("cycle: Follow: %d measures, want %d frames of %d", len(frames), m.Frames, n))
	}
	if k == nil {
		k = &f.alone
		k.Belief = k.Belief[:0]
	}
	f.goOn(k, tool, start)
	seen := false
	for t := range f.now {
		for c := range n {
			v := float64(frames[t*n+c])
			if faults[f.channel[c]] != 0 {
				v = math.NaN()
			}
			f.now[t][c] = v
			seen = seen || v == v && m.Inputs[c].Measure == Mean
		}
	}
	for c := range n {
		if m.Inputs[c].ZeroSD > 0 {
			k.Variance[c] += wander * wander * m.Inputs[c].Scale * m.Inputs[c].Scale
		}
	}
	belief, before := []float64(k.Belief), []float64(k.Last)
	for t, now := range f.now {
		m.emit(f.like[t], now, before, k.Zero, k.Variance)
		m.forward(f.alpha[t], belief, f.like[t])
		belief, before = f.alpha[t], now
	}
	f.look()
	copy(k.Belief, f.alpha[f.frames-1])
	copy(k.Last, f.now[f.frames-1])
	k.Next = start.Add(f.step)
	f.settle(k)
	if !seen {
		return Unknown
	}
	best := Idle
	for s := Idle; s < states; s++ {
		if f.share[s] > f.share[best] {
			best = s
		}
	}
	return best
}

// goOn brings a memory to the start of a window.
func (f *Follower) goOn(k *Memory, tool string, start time.Time) {
	m := f.model
	if len(k.Belief) == 0 {
		*k = Memory{Tool: tool, Belief: k.Belief, Zero: k.Zero[:0], Variance: k.Variance[:0], Last: k.Last[:0]}
		for range m.Parts {
			k.Belief = append(k.Belief, 0)
		}
		for range m.Inputs {
			k.Zero, k.Variance, k.Last = append(k.Zero, 0), append(k.Variance, 0), append(k.Last, 0)
		}
		k.Tool = tool
		f.newZero(k)
	}
	if k.Tool != tool { // it comes with a zero of its own
		k.Tool = tool
		f.newZero(k)
	}
	gap := start.Sub(k.Next)
	if gap.Abs() < f.length/2 && !k.Next.IsZero() {
		return
	}
	for c := range k.Last {
		k.Last[c] = math.NaN()
	}
	if k.Next.IsZero() || gap < 0 || gap > longestGap {
		for p := range m.Parts {
			k.Belief[p] = m.Parts[p].Share
		}
		return
	}
	for range int(gap * time.Duration(m.Frames) / f.length) {
		m.forward(f.other, k.Belief, f.unseen)
		copy(k.Belief, f.other)
	}
}

func (f *Follower) newZero(k *Memory) {
	for c, in := range f.model.Inputs {
		k.Zero[c], k.Variance[c], k.Last[c] = in.Zero, in.ZeroSD*in.ZeroSD, math.NaN()
	}
}

// look goes backward through the window: it stores the share of each state in it,
// and how likely the machine is at rest in each frame.
func (f *Follower) look() {
	m := f.model
	for p := range f.beta {
		f.beta[p] = 1
	}
	clear(f.share[:])
	for t := len(f.alpha) - 1; t >= 0; t-- {
		var sum float64
		for p, a := range f.alpha[t] {
			f.other[p] = a * f.beta[p]
			sum += f.other[p]
		}
		f.rest[t] = 0
		for p, v := range f.other {
			f.share[m.Parts[p].State] += v / sum
			if p == 0 && m.Parts[p].State == Idle {
				f.rest[t] = v / sum
			}
		}
		m.backward(f.other, f.beta, f.like[t])
		f.beta, f.other = f.other, f.beta
		normalize(f.beta)
	}
}

// settle learns the zeros from the frames of a step in which the machine was at
// rest.
func (f *Follower) settle(k *Memory) {
	for c := range f.model.Inputs {
		in := &f.model.Inputs[c]
		if in.ZeroSD == 0 {
			continue
		}
		var sum, n float64
		for t := range f.frames {
			if x := f.now[t][c]; x == x {
				sum += f.rest[t] * (x - k.Zero[c])
				n += f.rest[t]
			}
		}
		k.Zero[c], k.Variance[c] = in.update(k.Zero[c], k.Variance[c], sum, n)
	}
}

// update returns a zero and its variance after n frames at rest in which the
// readings were by sum beyond it, all together.
func (in *Input) update(zero, variance, sum, n float64) (float64, float64) {
	noise := in.Scale * in.Scale
	after := 1 / (1/variance + n/noise)
	return zero + after*sum/noise, after
}
