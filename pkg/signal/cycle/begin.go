package cycle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/flank-tcm/flank/pkg/signal"
)

// ErrNoCycle is returned where recordings do not show the cycle of a machine.
var ErrNoCycle = errors.New("no cycle to be learnt")

// The parts of a full cycle. What a machine never does is left out of its model.
const (
	idle = iota // the spindle stands
	startUp
	coolant
	entry
	drilling
	exit // the force falls: retract already
	retract
	runDown // the spindle runs down: idle, but it sounds like start-up
	ring
)

var ringStates = [ring]State{Idle, StartUp, Coolant, Entry, Drilling, Retract, Retract, Idle}

const (
	fewestCuts = 3       // that a cycle can be learnt from
	fewest     = 10      // of the frames outside the cuts, one in as many must be of the fewer kind
	mostFrames = 200_000 // that are learnt from: 5 hours and 40 minutes of windows of a second
	kinds      = 3       // that two kinds of frames must be apart, see twoKinds

	// engaged is the share of a cut's median level from which on the edge is taken
	// to be in the material, to begin with.
	engaged = 0.9
)

// track is consecutive frames of one tool.
type track struct {
	x    [][]float64 // by frame and input: the measures
	cuts []span      // in which the machine is cutting, to begin with
	cut  []bool      // by frame: it is in one of them
	zero [][]float64 // by window and input
	like [][]float64 // by frame and part: how likely the frame is of the part, see learner.expect
	emit []emission  // by frame
	part []int       // by frame: to begin with
}

type span struct{ from, to int }

// newTracks takes the measures apart: of many recordings the beginning of each.
func newTracks(m *Model, measures [][]float32) []*track {
	var ts []*track
	for _, ms := range measures {
		t := &track{}
		for n := len(m.Inputs); len(ms) >= n && len(t.x) < mostFrames/len(measures); ms = ms[n:] {
			x := make([]float64, n)
			for c := range x {
				x[c] = float64(ms[c])
			}
			t.x = append(t.x, x)
		}
		for range (len(t.x) + m.Frames - 1) / m.Frames {
			t.zero = append(t.zero, make([]float64, len(m.Inputs)))
		}
		if len(t.x) > 0 {
			ts = append(ts, t)
		}
	}
	return ts
}

// begin finds cuts by the level of the first input, with hysteresis, and splits
// what lies between them by the order of a cycle; Baum-Welch then moves the
// bounds. It sets signs, scales and zeros, and the part of each frame.
func (l *learner) begin(threshold float64) error {
	count := 0
	for _, t := range l.tracks {
		t.cuts, t.cut = cuts(t.x, threshold), make([]bool, len(t.x))
		for _, s := range t.cuts {
			for i := s.from; i < s.to; i++ {
				t.cut[i] = true
			}
		}
		count += len(t.cuts)
	}
	if count < fewestCuts {
		return fmt.Errorf("%w: %d cuts in the recordings, at least %d are needed", ErrNoCycle, count, fewestCuts)
	}
	for c := range l.Inputs {
		if err := l.scale(c); err != nil {
			return err
		}
	}
	rests, ok := l.resting()
	for i, t := range l.tracks {
		l.split(t, rests[i], ok)
	}
	for c := range l.Inputs {
		in := &l.Inputs[c]
		var full []float64
		for _, t := range l.tracks {
			for i, x := range t.x {
				if t.part[i] == drilling {
					full = appendNumber(full, in.level(x[c], t.zero[0][c]))
				}
			}
		}
		in.Full = quantile(full, 0.5)
	}
	return nil
}

// cuts returns the spans of frames around those whose first measure is at the
// threshold or beyond, as far as it stays above a quarter of it: that is half-way
// between cutting and not. Single frames are not a cut.
func cuts(x [][]float64, threshold float64) []span {
	var out []span
	from, deep := -1, false
	for t := range len(x) + 1 {
		level := 0.
		if t < len(x) {
			level = math.Abs(x[t][0])
		}
		if level >= threshold/4 { // nor NaN
			if from < 0 {
				from = t
			}
			deep = deep || level >= threshold
			continue
		}
		if deep && t-from > 1 {
			out = append(out, span{from, t})
		}
		from, deep = -1, false
	}
	return out
}

// between calls visit with each frame of t that is outside the cuts.
func (t *track) between(visit func(i int)) {
	for i, cut := range t.cut {
		if !cut {
			visit(i)
		}
	}
}

// scale finds sign, zero and scale of input c from the frames outside the cuts:
// the zero of a track is their lower quartile, since the machine rests in many of
// them; the scale is the noise from frame to frame, by the median of its
// magnitude, and of an RMS the quartile itself.
func (l *learner) scale(c int) error {
	in := &l.Inputs[c]
	var cutting, rest, noise []float64
	for _, t := range l.tracks {
		for _, s := range t.cuts {
			for i := s.from; i < s.to; i++ {
				cutting = appendNumber(cutting, t.x[i][c])
			}
		}
		t.between(func(i int) {
			rest = appendNumber(rest, t.x[i][c])
			if i > 0 {
				noise = appendNumber(noise, math.Abs(t.x[i][c]-t.x[i-1][c]))
			}
		})
	}
	if len(cutting) == 0 || len(noise) == 0 {
		return fmt.Errorf("%w: channel %s has no samples, or the machine never stops cutting", ErrNoCycle, in.Channel)
	}
	swing := quantile(cutting, 0.5) - quantile(rest, 0.5)
	in.Sign = 1
	if swing < 0 && in.Measure == Mean {
		in.Sign = -1
	}
	const normal = 0.6745 * math.Sqrt2 // median magnitude of a difference of two of N(0, 1)
	in.Scale = quantile(noise, 0.5) / normal
	if in.Measure == rms {
		in.Scale = quantile(rest, 0.25)
	}
	in.Scale = max(in.Scale, 1e-4*math.Abs(swing))
	if !positive(in.Scale) {
		return fmt.Errorf("%w: channel %s reads the same while cutting and not", ErrNoCycle, in.Channel)
	}
	if in.Measure == rms {
		return nil
	}
	for _, t := range l.tracks {
		var own []float64
		t.between(func(i int) { own = appendNumber(own, in.Sign*t.x[i][c]) })
		if len(own) == 0 {
			own = append(own, in.Sign*quantile(rest, 0.5))
		}
		zero := in.Sign * quantile(own, 0.25)
		for w := range t.zero {
			t.zero[w][c] = zero
		}
	}
	return nil
}

// resting finds by track in which frames outside the cuts the machine rests:
// in which every input whose levels there fall into two kinds is of the lower one,
// the spindle by its vibration, coolant by the thrust of its jet. It reports false
// if no input has two kinds, with many frames of either: then the machine never
// rests.
func (l *learner) resting() (rests [][]bool, ok bool) {
	for _, t := range l.tracks {
		rests = append(rests, slices.Repeat([]bool{true}, len(t.x)))
	}
	for c := range l.Inputs {
		in := &l.Inputs[c]
		var all []float64
		for _, t := range l.tracks {
			t.between(func(i int) { all = appendNumber(all, in.level(t.x[i][c], t.zero[0][c])) })
		}
		threshold, apart := twoKinds(all)
		if low := sort.SearchFloat64s(all, threshold); apart < kinds || min(low, len(all)-low) < len(all)/fewest {
			continue
		}
		ok = true
		for n, t := range l.tracks {
			t.between(func(i int) {
				rests[n][i] = rests[n][i] && !(in.level(t.x[i][c], t.zero[0][c]) >= threshold)
			})
		}
	}
	return rests, ok
}

// split gives every frame a part. Before a cut the spindle runs up for a third of
// the frames in which it turns, after it the tool is pulled back for two thirds;
// a machine that never stands is in retract after a cut and in coolant before.
func (l *learner) split(t *track, rests []bool, stands bool) {
	t.part = make([]int, len(t.x))
	at := 0
	for n := range len(t.cuts) + 1 {
		if n == len(t.cuts) {
			l.splitPause(t, rests, stands, n, at, len(t.x))
			return
		}
		l.splitPause(t, rests, stands, n, at, t.cuts[n].from)
		l.splitCut(t, t.cuts[n])
		at = t.cuts[n].to
	}
}

// fill gives frames a part.
func (t *track) fill(from, to, part int) {
	for i := from; i < to; i++ {
		t.part[i] = part
	}
}

// splitPause gives a part to the frames from at to end, in which nothing is cut:
// those before cut n, or behind the last.
func (l *learner) splitPause(t *track, rests []bool, stands bool, n, at, end int) {
	stop, start := end, at // where the spindle stands first and last
	for i := at; stands && i < end; i++ {
		if rests[i] {
			stop, start = min(stop, i), i+1
		}
	}
	switch {
	case stop < start: // it stands between them
	case n == 0:
		stop, start = at, at
	case n == len(t.cuts):
		stop, start = end, end
	default:
		stop = (at + end) / 2
		start = stop
	}
	if n == 0 {
		t.fill(at, start, idle) // what it did before is not known
	} else {
		back := stop
		if stands && stop < end {
			back = l.change(t, at, stop)
		}
		out := min(at+1, back) // in which vibrations die away
		t.fill(at, out, exit)
		t.fill(out, back, retract)
		t.fill(back, stop, runDown)
		t.fill(stop, start, idle)
	}
	if n == len(t.cuts) {
		t.fill(start, end, idle)
		return
	}
	up := start
	if stands && start > at {
		up = l.change(t, start, end)
	}
	t.fill(start, up, startUp)
	t.fill(up, end, coolant)
}

// splitCut gives a part to the frames of a cut.
func (l *learner) splitCut(t *track, cut span) {
	first := &l.Inputs[0]
	level := func(i int) float64 { return first.Sign * (t.x[i][0] - t.zero[0][0]) }
	var levels []float64
	for i := cut.from; i < cut.to; i++ {
		levels = appendNumber(levels, level(i))
	}
	in, full := cut.from+1, engaged*quantile(levels, 0.5)
	for in < (cut.from+cut.to)/2 && level(in) < full {
		in++
	}
	out := cut.to
	for out > in+1 && level(out-1) < full {
		out--
	}
	t.fill(cut.from, in, entry)
	t.fill(in, out, drilling)
	t.fill(out, cut.to, exit)
}

// change returns where between two frames the levels change most, all inputs taken
// together: the split after which they vary least about two means, by the sum of
// squares.
//
// Source: D. V. Hinkley, "Inference about the change-point in a sequence of random
// variables", Biometrika 57(1), 1970, §2.
func (l *learner) change(t *track, from, to int) int {
	best, at := math.Inf(-1), from
	for i := from; i <= to; i++ {
		var gain float64
		for c := range l.Inputs {
			var a, b moments
			for j := from; j < to; j++ {
				x := t.x[j][c]
				if x != x {
					continue
				}
				y := l.Inputs[c].level(x, t.zero[0][c])
				if j < i {
					a.add(y, 1)
				} else {
					b.add(y, 1)
				}
			}
			for _, m := range []moments{a, b} {
				if m.n > 0 {
					gain += m.sum * m.sum / m.n
				}
			}
		}
		if gain > best {
			best, at = gain, i
		}
	}
	return at
}

func appendNumber(x []float64, v float64) []float64 {
	if v == v {
		return append(x, v)
	}
	return x
}

// quantile returns the q-quantile of x, which it sorts: the lower of two.
func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	return x[int(q*float64(len(x)-1))]
}

// twoKinds sorts x and returns the number that best separates x into two kinds
// (see [signal.Otsu]), and how far apart the kinds are: the distance of their
// medians over the root mean square of their spreads, which is Ashman's D with
// medians. The halves of a uniform distribution are 2.7 apart, the halves of a
// normal distribution 2.3. (K. M. Ashman, C. M. Bird, S. E. Zepf, "Detecting
// bimodality in astronomical datasets", Astron. J. 108, 1994.)
func twoKinds(x []float64) (threshold, apart float64) {
	slices.Sort(x)
	split := signal.Otsu(x)
	if split.At == 0 {
		return 0, 0
	}
	lowMedian, low := spread(x[:split.At])
	highMedian, high := spread(x[split.At:])
	return split.Threshold, (highMedian - lowMedian) / math.Sqrt((low*low+high*high)/2)
}

// spread returns the median of x and the standard deviation that a normal
// distribution with its median magnitude of deviations has.
func spread(x []float64) (median, sd float64) {
	median = quantile(slices.Clone(x), 0.5)
	var away []float64
	for _, v := range x {
		away = append(away, math.Abs(v-median))
	}
	return median, quantile(away, 0.5) / 0.6745
}
