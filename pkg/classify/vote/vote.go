// Package vote guards the score of a network against a sensor that fails or changes its
// gain. It knows two classes, healthy 0 and worn 1, and rows of features relative to the
// reference of their tool, the same rows that the network sees.
//
// A network may decide by a contrast, for example of two forces, which a change of 10 % in
// one of them turns over. The median of several small models, each of a sensor or two,
// moves little if one of them does.
//
// A [Sensor] is the columns that one transducer gives. An expert is a logistic regression
// on the columns of one sensor, or on the differences of two sensors' levels; where wear is
// known it is ordinal, and decides at the limit. The vote is
// the median of the experts' log odds; an expert abstains while its sensor has failed. The
// vote's margin is the vote less its cut, the network's margin the log odds of its score,
// and the guarded margin is the network's within ± a bound c of the vote's:
//
//	m = m_vote + clip(m_network − m_vote, ±c).
//
// [Fit] chooses sensors and experts by how much columns count (pkg/score). A [Guard]
// judges rows by a [Scorer], and [Guard.Watch] finds sensors that have failed.
//
// The median of classifiers' outputs is one of the fixed rules of J. Kittler, M. Hatef,
// R. Duin and J. Matas, "On Combining Classifiers", IEEE TPAMI 20, 1998, §3. TestRecordedTurning
// prints what the guard is worth on recorded tools.
package vote

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Errors that callers test for. Those returned wrap them and say where.
var (
	// ErrSize: rows, labels, groups, sensors or weights do not agree in number.
	ErrSize = errors.New("sizes do not agree")
	// ErrSensors: a sensor names a column that there is not, or that another one has.
	ErrSensors = errors.New("unusable sensors")
	// ErrNotFinite: a value is infinite. (NaN is a missing value, no error.)
	ErrNotFinite = errors.New("value is not finite")
	// ErrCorrupt: bytes are not a guard, or a memory, that AppendBinary wrote.
	ErrCorrupt = errors.New("not a guard")
)

// Kind says what a column is of its sensor's signal.
type Kind uint8

// The kinds. All but Other are sizes, which grow with the gain of the sensor.
const (
	Other Kind = iota
	RMS        // root mean square
	Mean
	Max
)

// Sensor is the columns of one transducer.
type Sensor struct {
	Name    string
	Unit    string // of its signal; sensors of one unit are compared with each other; empty: with none
	Columns []int  // indices of columns, which no other sensor has
	Kinds   []Kind // of each of Columns
}

// Guard bounds a network's score by the vote of experts. It never changes once fitted, so
// any number of goroutines may use it; each needs its own Scorer. The zero value is only
// good for UnmarshalBinary.
type Guard struct {
	columns int // of a row
	sensors []sensor
	experts []expert
	cut     float64 // of the vote, in log odds
	bound   float64 // c
}

// sensor is a sensor that is kept.
type sensor struct {
	name    string
	watched []int // columns by which it is known that it has failed
	repeats bool  // its values are the same for windows on end without that: it may be of coarse steps

	levels []int   // columns that all stay where they are if it is stuck
	still  float64 // by what share of themselves they may move so; 0: not at all

	sizes          []int   // columns that are logarithms of its level, in which steps of its gain are looked for; none: they are not
	natural, least float64 // logarithms: the largest step of a tool in training, and from which on one is of the gain
}

// expert is a logistic regression on a few columns.
type expert struct {
	sensors []int // indices of the guard's sensors, the one that it names first
	pair    bool  // of two sensors' differences: abstains if either has failed; otherwise it does if all have
	inputs  []input
	bias    float64
	levels  []float64 // while it is fitted: biases of all levels of wear
	// threshold is how far its log odds must be from the median of the others to name
	// its sensor; 0 if it never does, as a pair, which cannot tell which of its sensors it is.
	threshold float64
}

// input is the column a, or a less b, standardised, and its weight.
type input struct {
	a, b     int // b: -1 for none
	sensor   int // index in expert.sensors of the sensor that a belongs to
	mean, sd float64
	weight   float64 // of the clipped (x − mean)/sd
}

// Columns returns the number of columns of a row.
func (g *Guard) Columns() int { return g.columns }

// Sensors returns the names of the sensors that the guard knows, by which the flags of Watch and
// Judgement.Sensor are numbered, in a slice of the caller's.
func (g *Guard) Sensors() []string {
	names := make([]string, len(g.sensors))
	for i, s := range g.sensors {
		names[i] = s.name
	}
	return names
}

// LooksForSteps reports whether steps of the gain of some sensor are taken out.
func (g *Guard) LooksForSteps() bool {
	return slices.ContainsFunc(g.sensors, func(s sensor) bool { return len(s.sizes) > 0 })
}

// Cut returns the log odds from which on the vote is for worn.
func (g *Guard) Cut() float64 { return g.cut }

// Bound returns c, how far the guarded margin may be from the vote's.
func (g *Guard) Bound() float64 { return g.bound }

// Judgement is what a guard makes of a row.
type Judgement struct {
	Vote   float64 // median log odds of the experts, within ±6; 0 if all abstain
	Margin float64 // guarded, in log odds; worn from 0 on
	Score  float64 // σ(Margin), at least 0.5 exactly if worn

	// Voting is how many experts did not abstain. If none is left, Margin is the cut's
	// negative and says nothing of the tool: where worn rows were rare it is worn.
	Voting int

	// Sensor is the index in [Guard.Sensors] of a sensor whose expert is farther from the median of the
	// experts of other sensors than it was for long while its tools were held out, see
	// NamedIn; -1 if none is. Of sensors that share an expert it is the one that counts most.
	Sensor int
}

// Scorer judges row by row without allocating. It is not safe for concurrent use; several
// scorers of one guard are.
type Scorer struct {
	guard  *Guard
	failed []bool    // by sensor
	odds   []float64 // by expert, NaN of one that abstains
	sorted []float64 // some of odds
}

// NewScorer returns a Scorer with its own scratch memory.
func (g *Guard) NewScorer() *Scorer {
	return &Scorer{guard: g, failed: make([]bool, len(g.sensors)), odds: make([]float64, len(g.experts)), sorted: make([]float64, 0, len(g.experts))}
}

// Judge returns the guard's judgement of a row, given the network's score of it, which is at least 0.5
// exactly if the network decides for worn. NaN in row is a missing value. A sensor has failed
// if all that [Guard.Watch] watches of it is missing: its experts abstain, and the vote alone decides, as it
// does if score is NaN. An expert all of whose columns are missing abstains too. Row is
// not kept. Judge panics if row is of another length than the guard's.
func (s *Scorer) Judge(row []float32, score float64) Judgement {
	g := s.guard
	if len(row) != g.columns {
		panic(fmt.Sprintf("vote: a row of %d columns, want %d", len(row), g.columns))
	}
	j := Judgement{Vote: s.vote(row), Voting: len(s.sorted)}
	j.Sensor = s.disagreeing()
	if slices.Contains(s.failed, true) {
		score = math.NaN()
	}
	j.Margin = g.Bounded(j.Vote, score)
	j.Score = scoreOf(j.Margin)
	return j
}

// missing reports whether all that is watched of the sensor is missing in a row.
func (s *sensor) missing(row []float32) bool {
	return !slices.ContainsFunc(s.watched, func(j int) bool { return row[j] == row[j] })
}

// Bounded returns the guarded margin of a vote and of a network's score, in log odds; of a score that is NaN the vote's.
func (g *Guard) Bounded(vote, score float64) float64 {
	margin := vote - g.cut
	if network := math.Log(score) - math.Log1p(-score); network == network {
		margin += min(max(network-margin, -g.bound), g.bound)
	}
	return margin
}

// scoreOf returns σ(margin), below 0.5 for any margin below 0.
func scoreOf(margin float64) float64 {
	score := 1 / (1 + math.Exp(-margin))
	if margin < 0 { // rounding must not decide
		return min(score, math.Nextafter(0.5, 0))
	}
	return score
}

// vote returns the median of the experts' clipped log odds, which it leaves in s.odds, and
// for the experts that do not abstain also in s.sorted, ascending.
func (s *Scorer) vote(row []float32) float64 {
	for k := range s.failed {
		s.failed[k] = s.guard.sensors[k].missing(row)
	}
	s.sorted = s.sorted[:0]
	for e := range s.guard.experts {
		v := s.guard.experts[e].logOdds(row, s.failed)
		s.odds[e] = v
		if v == v {
			s.insert(v)
		}
	}
	if len(s.sorted) == 0 {
		return 0
	}
	return median(s.sorted)
}

// median returns the median of ascending x, which has a value.
func median(x []float64) float64 { return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }

// disagreeing returns the sensor whose expert is farthest from the median of the others in
// units of its threshold, if it is beyond that; otherwise -1.
func (s *Scorer) disagreeing() int {
	found, most := -1, 1.0
	for e := range s.guard.experts {
		x := &s.guard.experts[e]
		if x.threshold == 0 || s.odds[e] != s.odds[e] {
			continue
		}
		if d := s.difference(e) / x.threshold; d > most {
			found, most = x.sensors[0], d
		}
	}
	return found
}

// difference returns how far the log odds of expert e, which does not abstain, are from
// the median of the experts that share no sensor with it; 0 if there are fewer than three.
func (s *Scorer) difference(e int) float64 {
	s.sorted = s.sorted[:0]
	of := s.guard.experts[e].sensors
	for k, v := range s.odds {
		if v == v && !share(of, s.guard.experts[k].sensors) {
			s.insert(v)
		}
	}
	if len(s.sorted) < leastOthers {
		return 0
	}
	return math.Abs(s.odds[e] - median(s.sorted))
}

func share(a, b []int) bool {
	for _, v := range a {
		for _, w := range b {
			if v == w {
				return true
			}
		}
	}
	return false
}

// insert adds v to s.sorted, which has room for it.
func (s *Scorer) insert(v float64) {
	at := len(s.sorted)
	s.sorted = append(s.sorted, v)
	for ; at > 0 && s.sorted[at-1] > v; at-- {
		s.sorted[at] = s.sorted[at-1]
	}
	s.sorted[at] = v
}

// logOdds returns the expert's clipped log odds of worn, or NaN if it abstains, as no input is left. That is so of a pair if one
// of its sensors has failed: it takes sizes, and these are watched.
func (x *expert) logOdds(row []float32, failed []bool) float64 {
	sum, there := x.bias, false
	for i := range x.inputs {
		in := &x.inputs[i]
		v := in.of(row)
		if v != v || failed[x.sensors[in.sensor]] {
			continue
		}
		there = true
		sum += in.weight * min(max((v-in.mean)/in.sd, -ClipInput), ClipInput)
	}
	if !there {
		return math.NaN()
	}
	return min(max(sum, -ClipOdds), ClipOdds)
}

// of returns the input's value in a row, NaN if it is missing.
func (in *input) of(row []float32) float64 {
	v := float64(row[in.a])
	if in.b >= 0 {
		v -= float64(row[in.b])
	}
	return v
}
