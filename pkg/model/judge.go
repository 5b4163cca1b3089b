package model

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// Outcome is what a judge says of a window.
type Outcome string

// The outcomes.
const (
	Healthy     Outcome = "healthy"
	Faulty      Outcome = "faulty"
	Unknown     Outcome = "unknown" // see UnknownReason
	Learning    Outcome = "learning"
	NotCutting  Outcome = "not_cutting"
	SensorFault Outcome = "sensor_fault"
)

// UnknownReason is why a judge does not know what a window is.
type UnknownReason string

// The reasons. A verdict has the first that holds.
const (
	// OutOfDistribution: nothing like the window was in the training data. It holds
	// only of windows that would be called healthy: a worn tool may go beyond what was
	// trained on, and is worn all the same.
	OutOfDistribution UnknownReason = "out_of_distribution"
	// Ambiguous: the conformal set does not agree with the decision: the window may be
	// healthy and may be faulty, or costs and set say different things.
	Ambiguous UnknownReason = "ambiguous"
	// Implausible: the conformal set is empty; the window is not as any class usually is.
	Implausible UnknownReason = "implausible"
)

// Counts reports whether an alarm counts a window with that reason, or with none. It counts an
// ambiguous or implausible one as it was decided: it is cut by a tool between healthy and worn.
func (r UnknownReason) Counts() bool { return r == "" || r == Ambiguous || r == Implausible }

// faultyShare is the share of channels with a sensor fault above which a
// window is not judged. Up to it, the channels are taken out of the vote.
const faultyShare = 0.25

// Verdict is what a judge says of one window.
type Verdict struct {
	Outcome   Outcome
	Reason    UnknownReason    // with outcome Unknown
	Novelty   float64          // p-value of the window being as usual, in (0,1]; 0 if not judged, or by a model without Novelty
	Class     string           // of the model's ClassNames: healthy, or what is faulty; empty if not judged or unknown
	Decided   int              // class that the window was decided to be of, whether or not the verdict is unknown; 0 if not judged
	Posterior []float64        // P(class|window), in the order of ClassNames; nil if not judged; valid until the next window
	Score     float64          // what speaks against healthy in [0,1], see classify.CostVector.Score: at least 0.5 if decided faulty, whether or not the verdict is unknown; 0 if not judged
	Faults    []signal.Quality // per channel: flags that are a fault of the sensor; valid until the next window
	Absent    []bool           // per channel: the tool's reference has no value of any feature of it, so it says nothing of this tool; nil if none is so; valid until the next window
	State     cycle.State      // of the machine; Unknown by a model without Cycle
	Found     []signal.Quality // per channel: flags that the features say of it, next to Faults; nil if not judged, or without a guard; valid until the next window
	Gains     []float64        // per sensor of Judge.Sensors: what it reads of what it read when the tool's reference was settled, which is taken out of the features: 1 but for a step of its gain; nil and valid as Found
	Disagrees int              // index in Judge.Sensors of the sensor that disagrees most with the others; -1: none does, or the window is not judged
	Level     float64          // neper: what the sensor of a model that has seen no worn tool reads above the tool's first windows; 0 by others
	Learnt    int              // windows that the tool's reference has, with outcome learning
}

// Judge applies a model to windows. It is not safe for concurrent use; make
// one for every goroutine.
type Judge struct {
	model     *Model
	extractor *signal.Extractor
	scorer    *classify.Scorer
	watch     *watch                 // nil: the model has no guard
	alone     vote.Memory            // of a window that stands alone
	sensors   [][]int                // by sensor of the guard: its channels
	found     []signal.Quality       // see Verdict.Found
	gains     []float64              // see Verdict.Gains
	novelty   *unknown.NoveltyScorer // nil: nothing is new
	posterior [2]float64             // of the last window, without a classifier
	classes   []string
	follower  *cycle.Follower // nil: the gate tells cutting
	gate      int             // channel of the gate, or -1
	seen      Observation     // of the last window
	row       []float32       // of the last window
	cutting   []float32       // the same before the reference; empty if there is none
	form      *window.Form    // of the features that were taken last
	pick      []int           // by feature of the model: where it is among the form's
	center    []float32       // the tool's reference after the last window; nil: not settled
	absent    []bool          // see Verdict.Absent
	faults    []signal.Quality
}

// NewJudge returns a judge by m.
func (m *Model) NewJudge() *Judge {
	x, err := m.extractor()
	if err != nil {
		panic("model: NewJudge: " + err.Error()) // checked when the model was made
	}
	j := &Judge{model: m, extractor: x, classes: m.ClassNames(), gate: -1, faults: make([]signal.Quality, len(m.Usual))}
	if m.Cycle != nil {
		j.follower = cycle.NewFollower(m.Cycle, m.Layout, m.Window.Length, m.Window.Step())
	}
	if m.Gate != nil {
		j.gate = m.Layout.Index(m.Gate.Channel)
	}
	if m.Classifier != nil {
		j.scorer = m.Classifier.NewScorer()
		if g := m.Classifier.Guard(); g != nil {
			origins := x.Origins()
			j.watch = NewWatch(g, origins)
			j.gains = make([]float64, len(g.Sensors()))
			j.found, j.sensors = make([]signal.Quality, len(m.Usual)), channelsOf(g, origins, x)
		}
	}
	if m.Novelty != nil {
		j.novelty = m.Novelty.NewScorer()
	}
	return j
}

// FeatureNames returns the names of the features, in the order of rows.
func (j *Judge) FeatureNames() []string { return j.extractor.Names() }

// Relations returns how package signal advises to take each feature relative to a
// reference, in the order of FeatureNames, as ReferenceSpec.Relate wants it. The caller
// must not change them.
func (j *Judge) Relations() []signal.Relation { return j.extractor.Relations() }

// Origins returns which sensor each feature comes from, in the order of FeatureNames.
func (j *Judge) Origins() []signal.FeatureOrigin { return j.extractor.Origins() }

// Sensors returns the names of the sensors that the model's guard knows, as Verdict.Disagrees counts them; none without a guard.
func (j *Judge) Sensors() []string {
	if j.watch == nil {
		return nil
	}
	return j.watch.guard.Sensors()
}

// A sensor is to be reported if Verdict.Disagrees names it in NamedIn of any NamedOf windows in a row.
const NamedIn, NamedOf = vote.NamedIn, vote.NamedOf

// SensorChannels returns the channels of the layout that sensor k of Sensors measures, ascending.
func (j *Judge) SensorChannels(k int) []int { return j.sensors[k] }

// Observation is what a judge takes from a window before it knows the tool's
// reference: enough to judge the window later, or again.
type Observation struct {
	Tool     string
	Start    time.Time
	Level    float64          // of the gate's channel
	Frames   []float32        // that the cycle is followed by; empty: the machine is drilling
	Quality  []signal.Quality // per channel
	Features []float32        // in the order of FeatureNames; NaN is missing
}

// Observe stores in o what a judge needs of w, reusing o's memory. The window
// must have the model's layout and length.
func (j *Judge) Observe(w *window.Window, o *Observation) {
	o.Tool, o.Start = w.Tool, w.Start
	o.Level, o.Frames = 0, o.Frames[:0]
	if j.follower != nil {
		o.Frames = j.follower.Measure(o.Frames, w.Samples)
	}
	if j.gate >= 0 {
		o.Level = window.Level(w.Samples[j.gate])
	}
	o.Quality = append(o.Quality[:0], w.Quality...)
	o.Features = j.extractor.Extract(o.Features[:0], w.Samples, w.Context)
}

// Covers reports why the model cannot judge by features of a form: windows of another layout
// or length, or a feature or a measure that it needs and they do not have. The error wraps
// ErrUnfit.
func (m *Model) Covers(form *window.Form) error {
	x, err := m.extractor()
	if err != nil {
		return err
	}
	return m.covers(form, x)
}

// Covers is Model.Covers. It makes no extractor.
func (j *Judge) Covers(form *window.Form) error { return j.model.covers(form, j.extractor) }

func (m *Model) covers(form *window.Form, x *signal.Extractor) error {
	if err := m.Fits(form.Layout(), form.Length()); err != nil {
		return err
	}
	for _, name := range x.Names() {
		if !slices.Contains(form.Names(), name) {
			return fmt.Errorf("%w: it takes feature %q, which is not among these: train a model without a features.set of its own", ErrUnfit, name)
		}
	}
	if !form.Measures(m.measures()) {
		return fmt.Errorf("%w: these features do not have what it tells cutting by: train a model on this layout with this release", ErrUnfit)
	}
	return nil
}

// measures returns what the model tells cutting by.
func (m *Model) measures() window.Cutting {
	c := window.Cutting{Cycle: m.Cycle}
	if m.Gate != nil {
		c.Gate = m.Gate.Channel
	}
	return c
}

// Form returns the form of features that windows of the model are judged by: the default one
// of the layout, unless the model takes a feature or a measure that is not in it. A model of
// which Encode or Load has returned no error has one.
func (m *Model) Form() (*window.Form, error) {
	form, err := window.NewForm(m.Layout, m.Window, signal.FeatureSpec{}, nil)
	if err == nil && m.Covers(form) == nil {
		return form, nil
	}
	c := m.measures()
	return window.NewForm(m.Layout, m.Window, m.Features, &c)
}

// Take stores in o what a judge needs of features, reusing o's memory: what Observe takes from
// the window itself. It returns the error of Model.Covers.
func (j *Judge) Take(f *window.Features, o *Observation) error {
	if f.Form != j.form {
		if err := j.Covers(f.Form); err != nil {
			return err
		}
		j.form, j.pick = f.Form, j.pick[:0]
		at := make(map[string]int, len(f.Form.Names()))
		for i, name := range f.Form.Names() {
			at[name] = i
		}
		for _, name := range j.FeatureNames() {
			j.pick = append(j.pick, at[name])
		}
	}
	o.Tool, o.Start = f.Tool, f.Start
	o.Level, o.Frames = 0, o.Frames[:0]
	if j.follower != nil {
		o.Frames = append(o.Frames, f.Frames...)
	}
	if j.gate >= 0 {
		o.Level = f.Level
	}
	o.Quality = append(o.Quality[:0], f.Quality...)
	o.Features = o.Features[:0]
	for _, i := range j.pick {
		o.Features = append(o.Features, f.Values[i])
	}
	return nil
}

// Row returns the features of o relative to ref, as the classifier takes them,
// and lets ref learn. The machine is followed by its memory k, which learns too. For a
// window that stands alone k may be nil. The row is nil if the window is not for judging;
// the outcome in the verdict says why. The row is valid until the next call. The trainer
// makes its table with Row and Judge judges with it, so what is trained is what is served.
func (j *Judge) Row(o *Observation, ref *Reference, k *Memory) ([]float32, Verdict) {
	ref.ChangeTool(o.Tool)
	j.cutting, j.center = j.cutting[:0], ref.Center()
	v := Verdict{Faults: j.faults, Disagrees: -1}
	bad := 0
	for i, q := range o.Quality {
		j.faults[i] = q &^ j.model.Usual[i] &^ signal.ClockOff // the samples are good all the same
		if j.faults[i] != 0 {
			bad++
		}
	}
	if v.Absent = j.absentFrom(ref.Center()); v.Absent != nil {
		for i, absent := range v.Absent {
			if absent && j.faults[i] == 0 {
				bad++
			}
		}
	}
	blind, cutting := false, true
	switch {
	case j.follower != nil && len(o.Frames) > 0:
		v.State = j.follower.Follow(k.cycle(), o.Tool, o.Start, o.Frames, j.faults)
		blind, cutting = v.State == cycle.Unknown, v.State == cycle.Drilling
	case j.follower == nil && j.gate >= 0:
		blind, cutting = j.faults[j.gate] != 0, o.Level >= j.model.Gate.Threshold
	}
	if blind || float64(bad) > faultyShare*float64(len(j.faults)) {
		v.Outcome = SensorFault
		return nil, v
	}
	if !cutting {
		v.Outcome = NotCutting
		return nil, v
	}
	j.row = append(j.row[:0], o.Features...)
	for i := range j.row {
		for _, c := range j.extractor.Channels(i) {
			if j.faults[c] != 0 {
				j.row[i] = float32(math.NaN()) // out of the vote: the encoder puts in what is usual
			}
		}
	}
	if j.watch != nil {
		j.mend(k, ref.Ready(j.model.Reference))
		v.Found, v.Gains = j.found, j.gains
	}
	j.cutting = append(j.cutting, j.row...)
	if !ref.Ready(j.model.Reference) {
		ref.Learn(j.row, j.model.Reference)
		j.center = ref.Center()
		v.Outcome, v.Learnt = Learning, ref.Windows
		return nil, v
	}
	j.model.Reference.Relate(j.row, j.row, ref.center, j.extractor.Relations())
	return j.row, v
}

// absentFrom returns which channels have no value of any feature of their own in the center of a reference, nil if there is none. They had
// failed when it was learnt.
func (j *Judge) absentFrom(center []float32) []bool {
	if !slices.ContainsFunc(center, func(v float32) bool { return v != v }) {
		return nil
	}
	if j.absent == nil {
		j.absent = make([]bool, len(j.faults))
	}
	clear(j.absent)
	for i, v := range center {
		if c := j.extractor.Channels(i); v != v && len(c) == 1 && j.model.Usual[c[0]]&signal.Dropout == 0 {
			j.absent[c[0]] = true
		}
	}
	for i, v := range center {
		if c := j.extractor.Channels(i); v == v && len(c) == 1 {
			j.absent[c[0]] = false
		}
	}
	if !slices.Contains(j.absent, true) {
		return nil
	}
	return j.absent
}

// mend takes sensors that have failed, and steps of gains, out of the features, and finds which have failed that no channel's flags tell.
func (j *Judge) mend(k *Memory, settled bool) {
	memory := &j.alone
	if k != nil {
		memory = &k.Sensors
	} else {
		clear(j.alone)
	}
	for i, q := range j.watch.Mend(memory, j.row, settled) {
		if slices.ContainsFunc(j.sensors[i], func(c int) bool { return j.faults[c] != 0 }) {
			q = 0
		}
		for _, c := range j.sensors[i] {
			j.found[c] = q
		}
		j.gains[i] = j.watch.sensors[i].Gain
	}
}

// channelsOf returns the channels of each sensor that a guard knows, ascending.
func channelsOf(g *vote.Guard, origins []signal.FeatureOrigin, x *signal.Extractor) (out [][]int) {
	for _, name := range g.Sensors() {
		var channels []int
		for i, o := range origins {
			if c := x.Channels(i)[0]; o.Sensor == name && !slices.Contains(channels, c) {
				channels = append(channels, c)
			}
		}
		slices.Sort(channels)
		out = append(out, channels)
	}
	return out
}

// Cutting returns the features of the window that Row or Judge was asked about
// last, as the wear trend takes them: before the reference, and without channels
// that cannot be trusted. They are empty if the machine was not cutting or too
// few channels can be trusted, and valid until the next call.
func (j *Judge) Cutting() []float32 { return j.cutting }

// Center returns the reference of the tool after the window that Row or Judge was asked
// about last, as Reference.Center does: nil until it is settled, and with a model that
// does without.
func (j *Judge) Center() []float32 { return j.center }

// Wear takes the window that Row or Judge was asked about last for the next one of
// tool in hole, and returns the estimate after it, which is unknown until the tool's
// reference is settled if the model's estimate takes one. Asked is false if the model
// does not estimate wear, or the machine was not cutting.
func (j *Judge) Wear(tool *trend.Tool, hole string) (e trend.Estimate, asked bool) {
	if j.model.Wear == nil || len(j.cutting) == 0 {
		return trend.Unknown, false
	}
	return tool.Observe(j.model.Wear, j.cutting, j.center, hole), true
}

// Drift lets the memory of a machine learn from the reference of its tool, see
// DriftMemory.Observe.
func (j *Judge) Drift(m *DriftMemory, ref *Reference) (changed bool) {
	return m.Observe(j.model.Drift, ref)
}

// Judge returns the verdict on w and lets ref and k learn from it, see Row. The
// window must have the model's layout and length.
func (j *Judge) Judge(w *window.Window, ref *Reference, k *Memory) Verdict {
	j.Observe(w, &j.seen)
	return j.judge(ref, k)
}

// JudgeFeatures does as Judge with the features of a window. It panics if Model.Covers has an
// error for their form.
func (j *Judge) JudgeFeatures(f *window.Features, ref *Reference, k *Memory) Verdict {
	if err := j.Take(f, &j.seen); err != nil {
		panic("model: JudgeFeatures: " + err.Error())
	}
	return j.judge(ref, k)
}

// judge returns the verdict on the window that was seen last.
func (j *Judge) judge(ref *Reference, k *Memory) Verdict {
	row, v := j.Row(&j.seen, ref, k)
	if row == nil {
		return v
	}
	j.decide(&v, row, j.cutting, j.center)
	return v
}

// Decide returns the verdict on a row that Row returned, of a window with the given
// features before the reference, and the given reference of its tool: see Cutting and
// Center. These two only count for models that decide by wear. What the verdict lends is
// valid until the next call.
func (j *Judge) Decide(row, cutting, center []float32) Verdict {
	v := Verdict{Faults: j.faults, Disagrees: -1}
	j.decide(&v, row, cutting, center)
	return v
}

func (j *Judge) decide(v *Verdict, row, cutting, center []float32) {
	m, costs := j.model, equalCosts
	switch {
	case m.FirstDay != nil:
		var score float64
		if score, v.Level = m.FirstDay.Score(row); !(math.Abs(v.Level) <= mostLevel) {
			v.Outcome, v.Level = SensorFault, 0 // the sensor that leads says nothing, or what it cannot have measured
			return
		}
		j.posterior = [2]float64{1 - score, score}
		v.Posterior = j.posterior[:]
	case m.ByWear != nil:
		faulty := m.faultyByWear(cutting, center)
		j.posterior = [2]float64{1 - faulty, faulty}
		v.Posterior = j.posterior[:]
	default:
		v.Posterior, v.Disagrees = j.scorer.Posterior(row), j.scorer.Disagrees()
		costs = m.Classifier.Costs()
	}
	v.Score = costs.Score(v.Posterior)
	v.Decided = costs.Decide(v.Posterior)
	if j.novelty != nil {
		v.Novelty = j.novelty.P(row)
	}
	if v.Reason = m.UnknownReason(v.Decided, v.Posterior, v.Novelty); m.FirstDay != nil && v.Level < -m.FirstDay.Limit {
		v.Reason = OutOfDistribution // as far from the first windows as a different tool, the other way
	}
	if v.Reason != "" {
		v.Outcome = Unknown
		return
	}
	v.Outcome, v.Class = Healthy, j.classes[v.Decided]
	if v.Decided != classify.Healthy {
		v.Outcome = Faulty
	}
}

// UnknownReason returns why the verdict on a window that was decided to be of a class is
// unknown, or nothing. Novelty, a p-value, withdraws healthy decisions only; conformal
// sets withdraw either. It looks at the Conformal and the Novelty of m alone.
func (m *Model) UnknownReason(class int, posterior []float64, novelty float64) UnknownReason {
	if m.Novelty != nil && class == classify.Healthy && novelty <= m.Novelty.Rate {
		return OutOfDistribution
	}
	if m.Conformal != nil {
		switch m.Conformal.Check(class, posterior) {
		case unknown.Ambiguous:
			return Ambiguous
		case unknown.Implausible:
			return Implausible
		}
	}
	return ""
}
