package cycle

import (
	"fmt"
	"math"
)

const (
	// leap is the probability of a move that is not the next of the cycle: a hole
	// that is broken off, or one after the other without a stop. It takes strong
	// evidence, of 14 nats.
	leap = 1e-6

	rounds    = 30   // of Baum-Welch at most
	enough    = 1e-4 // gain in log likelihood a frame that is worth another round
	leastSD   = 0.03 // of a rise in a part, in standard deviations of all frames
	variety   = 0.25 // least standard deviation of a level in a part: other tools and workpieces differ by a quarter
	agreement = 0.9  // share of frames in which the model and the threshold must agree on cutting
	mostEntry = 0.5  // share of cutting that entry may take
)

// learner is a model at school.
type learner struct {
	*Model
	tracks []*track
	frames float64     // that have an observation
	sums   []*partSums // by part
	moves  [][]float64 // by part: expected number of frames that the next one is of it too, or of the next part
	spare  []float64
}

// partSums is what the frames of one part add up to. Parts whose emissions are
// tied add to the same moments.
type partSums struct {
	weight      float64
	level, rise []*moments // by input
}

type moments struct{ n, sum, squares float64 }

func (m *moments) add(x, weight float64) {
	m.n += weight
	m.sum += weight * x
	m.squares += weight * x * x
}

func (m *moments) normal() Normal {
	mean := m.sum / m.n
	return Normal{mean, math.Sqrt(max(0, m.squares/m.n-mean*mean))}
}

// Learn returns the model that m becomes after it has seen recordings: tracks of
// consecutive measures, by frame and input (see [Follower.Measure]), of one tool
// each. The machine is taken to cut, to begin with, where the first input's
// measure reaches the threshold. Learn returns ErrNoCycle, and says why, for
// recordings that show no cycle. Equal recordings give equal models.
//
// The cycle's order says which part each frame is in at first (begin). Then the
// parameters have the greatest likelihood, by Baum-Welch over all tracks
// (Rabiner 1989, eq. 37, 40, 53 and 54, §V.B for many), with a share of outliers in
// every reading. Variances have a floor, as speech recognisers do (S. Young et al.,
// "The HTK Book", on HCompV). The zeros of the channels are learnt by the filter that follows them later.
func (m *Model) Learn(tracks [][]float32, threshold float64) (*Model, error) {
	learnt := &Model{Frames: m.Frames, Inputs: append([]Input(nil), m.Inputs...)}
	l := &learner{Model: learnt, tracks: newTracks(learnt, tracks)}
	if err := l.begin(threshold); err != nil {
		return nil, err
	}
	l.enrol()
	last := math.Inf(-1)
	for range rounds {
		l.zeros()
		l.outlook()
		l.maximize()
		log := l.expect() / l.frames
		if log-last < enough {
			break
		}
		last = log
	}
	return learnt, l.approve()
}

// enrol makes the parts that the beginning found. Before a hole and after it the
// machine does the same, only the order says which: the distributions of coolant
// and retract are tied, or the likeliest model would spend one of them on something
// else. (On tying: S. J. Young, P. C. Woodland, "State clustering in hidden Markov
// model-based continuous speech recognition", Comput. Speech Lang. 8(4), 1994.)
func (l *learner) enrol() {
	var count, number [ring]int
	for _, t := range l.tracks {
		for _, p := range t.part {
			count[p]++
		}
	}
	for p, n := range count {
		if n == 0 {
			continue
		}
		number[p] = len(l.Parts)
		l.Parts = append(l.Parts, Part{State: ringStates[p], Level: make([]Normal, len(l.Inputs)), Rise: make([]Normal, len(l.Inputs))})
		s := &partSums{}
		for range l.Inputs {
			s.level, s.rise = append(s.level, new(moments)), append(s.rise, new(moments))
		}
		if p == retract && count[coolant] > 0 {
			tied := l.sums[number[coolant]]
			s.level, s.rise = tied.level, tied.rise
		}
		l.sums = append(l.sums, s)
	}
	n := len(l.Parts)
	l.spare = make([]float64, n)
	for p := range l.Parts {
		l.Parts[p].Next = make([]float64, n)
		l.moves = append(l.moves, make([]float64, 2))
	}
	for _, t := range l.tracks {
		for i, p := range t.part {
			t.like, t.emit = append(t.like, make([]float64, n)), append(t.emit, newEmission(n))
			t.like[i][number[p]] = 1
			if i > 0 {
				from, to := number[t.part[i-1]], number[p]
				switch to {
				case from:
					l.moves[from][0]++
				case (from + 1) % n:
					l.moves[from][1]++
				}
			}
		}
	}
}

// zeros lets the zeros follow the frames at rest. Windows before the first of
// them take what it taught. What tools differ by is tripled for those to come: a
// few tools may have one zero by chance, and a zero far off is hard to find.
func (l *learner) zeros() {
	for c := range l.Inputs {
		in := &l.Inputs[c]
		if in.Measure == rms {
			continue
		}
		var all moments
		var settled []*track
		for _, t := range l.tracks {
			zero, variance := t.zero[0][c], 1e6*in.Scale*in.Scale
			first := -1
			for w := range t.zero {
				var sum, n float64
				for i := w * l.Frames; i < min((w+1)*l.Frames, len(t.x)); i++ {
					if x := t.x[i][c]; x == x && l.Parts[0].State == Idle {
						n += t.like[i][0]
						sum += t.like[i][0] * (x - zero)
					}
				}
				variance += wander * wander * in.Scale * in.Scale
				zero, variance = in.update(zero, variance, sum, n)
				t.zero[w][c] = zero
				if first < 0 && variance < in.Scale*in.Scale {
					first = w
				}
			}
			for w := range max(first, 0) {
				t.zero[w][c] = t.zero[first][c]
			}
			if first >= 0 {
				settled = append(settled, t)
			}
		}
		if len(settled) == 0 {
			settled = l.tracks
		}
		for _, t := range settled {
			for w := range t.zero {
				all.add(t.zero[w][c], 1/float64(len(t.zero)))
			}
		}
		n := all.normal()
		in.Zero, in.ZeroSD = n.Mean, 3*max(n.SD, in.Scale)
	}
}

// visit calls level and rise with what there is of frame i.
func (l *learner) visit(t *track, i int, level, rise func(c int, y float64)) {
	zero := t.zero[i/l.Frames]
	for c := range l.Inputs {
		x := t.x[i][c]
		if x != x {
			continue
		}
		y := l.Inputs[c].level(x, zero[c])
		level(c, min(y, l.Inputs[c].Full))
		if i > 0 && t.x[i-1][c] == t.x[i-1][c] {
			rise(c, y-l.Inputs[c].level(t.x[i-1][c], zero[c]))
		}
	}
}

// outlook makes the distributions of outliers.
func (l *learner) outlook() {
	levels, rises := make([]moments, len(l.Inputs)), make([]moments, len(l.Inputs))
	for _, t := range l.tracks {
		for i := range t.x {
			l.visit(t, i, func(c int, y float64) { levels[c].add(y, 1) }, func(c int, y float64) { rises[c].add(y, 1) })
		}
	}
	l.frames = 0
	for c := range l.Inputs {
		in := &l.Inputs[c]
		in.Level, in.Rise = levels[c].normal(), rises[c].normal()
		in.Level.SD, in.Rise.SD = 3*max(in.Level.SD, 1e-6), 3*max(in.Rise.SD, 1e-6)
		l.frames = max(l.frames, levels[c].n)
	}
}

// maximize sets the parameters to what the frames and moves of each part say.
// A reading counts as far as it is not an outlier of the part as it was.
func (l *learner) maximize() {
	const little = 1e-9 // of a frame
	for _, s := range l.sums {
		s.weight = 0
		for c := range l.Inputs {
			*s.level[c], *s.rise[c] = moments{}, moments{}
		}
	}
	var all float64
	for _, t := range l.tracks {
		for i := range t.x {
			for p, w := range t.like[i] {
				if w < little {
					continue
				}
				s, part := l.sums[p], &l.Parts[p]
				s.weight += w
				all += w
				l.visit(t, i,
					func(c int, y float64) { s.level[c].add(y, w*part.Level[c].share(y, &l.Inputs[c].Level)) },
					func(c int, y float64) { s.rise[c].add(y, w*part.Rise[c].share(y, &l.Inputs[c].Rise)) })
			}
		}
	}
	for p, s := range l.sums {
		part := &l.Parts[p]
		part.Share = s.weight / all
		for c := range l.Inputs {
			level, rise := l.Inputs[c].Level, l.Inputs[c].Rise
			part.Level[c] = s.level[c].within(level, variety)
			part.Rise[c] = s.rise[c].within(rise, leastSD*rise.SD/3)
		}
		l.leave(p)
	}
}

// share returns how likely a reading is of n and no outlier; 1 of an n that is not
// known yet.
func (n *Normal) share(x float64, outlier *Normal) float64 {
	if n.SD == 0 {
		return 1
	}
	d := (1 - outliers) * n.density(x, 0)
	return d / (d + outliers*outlier.stray(x))
}

// within returns the normal distribution of a part, or of all frames if too
// little is known.
func (m *moments) within(all Normal, least float64) Normal {
	if m.n < 1 {
		return all
	}
	n := m.normal()
	n.SD = max(n.SD, least)
	return n
}

// leave sets how likely each part follows part p. An edge that is in the material
// does not enter it again before it is out.
func (l *learner) leave(p int) {
	next := l.Parts[p].Next
	for q := range next {
		next[q] = leap
		if l.Parts[p].State == Drilling && l.Parts[q].State == Entry {
			next[q] = 0
		}
	}
	if stay, on := l.moves[p][0], l.moves[p][1]; len(next) > 1 {
		next[(p+1)%len(next)] = max(leap, on/max(stay+on, 1))
	}
	next[p] = 0
	var left float64
	for _, q := range next {
		left += q
	}
	next[p] = max(1-left, 0.1)
	normalize(next)
}

// expect finds how likely each frame is of each part, and the expected number of
// moves, and returns the log likelihood up to a constant.
func (l *learner) expect() (log float64) {
	n := len(l.Parts)
	for p := range l.moves {
		clear(l.moves[p])
	}
	beta, after := make([]float64, n), make([]float64, n)
	nothing, exact := make([]float64, len(l.Inputs)), make([]float64, len(l.Inputs))
	for c := range nothing {
		nothing[c] = math.NaN()
	}
	usual := make([]float64, n)
	for p := range usual {
		usual[p] = l.Parts[p].Share
	}
	for _, t := range l.tracks {
		alpha := t.like // becomes how likely
		before, from := nothing, usual
		for i, x := range t.x {
			l.emit(t.emit[i], x, before, t.zero[i/l.Frames], exact)
			log += math.Log(l.forward(alpha[i], from, t.emit[i]))
			before, from = x, alpha[i]
		}
		for p := range beta {
			beta[p] = 1
		}
		for i := len(t.x) - 1; i >= 0; i-- {
			if i < len(t.x)-1 {
				l.count(alpha[i], after, t.emit[i+1])
				l.backward(beta, after, t.emit[i+1])
				normalize(beta)
			}
			for p := range beta {
				alpha[i][p] *= beta[p]
			}
			normalize(alpha[i])
			beta, after = after, beta
		}
	}
	return log
}

// count adds the moves from one frame to the next, which has emission e (Rabiner
// 1989, eq. 37).
func (l *learner) count(alpha, beta []float64, e emission) {
	var sum float64
	l.backward(l.spare, beta, e)
	for p, b := range l.spare {
		sum += alpha[p] * b
	}
	for p, a := range alpha {
		on := (p + 1) % len(alpha)
		l.moves[p][0] += a * l.Parts[p].Next[p] * e.stay[p] * beta[p] / sum
		if on != p {
			l.moves[p][1] += a * l.Parts[p].Next[on] * e.turn[on] * beta[on] / sum
		}
	}
}

// approve reports a model that has lost its way: on machines that do something
// else than drill, the likeliest parts need not be a cycle.
func (l *learner) approve() error {
	var agree, all, in, cutting float64
	for _, t := range l.tracks {
		for i := range t.x {
			if v := t.x[i][0]; v != v {
				continue
			}
			var cut float64
			for p, w := range t.like[i] {
				switch l.Parts[p].State {
				case Entry:
					in += w
					cut += w
				case Drilling:
					cut += w
				}
			}
			all++
			cutting += cut
			if (cut > 0.5) == t.cut[i] {
				agree++
			}
		}
	}
	switch {
	case agree < agreement*all:
		return fmt.Errorf("%w: its parts and the level of %s agree on cutting in %.0f %% of the time only", ErrNoCycle, l.Inputs[0].Channel, 100*agree/all)
	case in > mostEntry*cutting:
		return fmt.Errorf("%w: the force changes in %.0f %% of the cutting, so that entry cannot be distinguished from it", ErrNoCycle, 100*in/cutting)
	}
	for p, part := range l.Parts {
		for c := range l.Inputs {
			if !part.Level[c].ok() || !part.Rise[c].ok() {
				return fmt.Errorf("%w: part %d (%v) has no distribution of %s", ErrNoCycle, p, part.State, l.Inputs[c].Channel)
			}
		}
	}
	return nil
}
