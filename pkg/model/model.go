// Package model holds what is deployed: everything that turns a window into a
// [Verdict], in one checked file.
//
// A [Model] knows the layout and the windows it was trained on, the features
// to compute, how a tool's own first windows become its [Reference], when the
// machine is drilling (the [cycle.Model], or else a [Gate]), and the classifier. A [Judge] applies it to
// windows; the trainer makes its rows with the same code, so what is trained
// is what is served, and golden vectors inside the file prove it at every load.
package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model/unknown"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
	"github.com/flank-tcm/flank/pkg/window"
)

// Provenance says where a model comes from. It does not hold when it was trained, so that equal
// data and seeds give equal files.
type Provenance struct {
	Program    string          `json:"program"`          // that trained it, with its version
	Parent     string          `json:"parent,omitempty"` // id of the model whose network this is, with other costs; empty: the network is its own
	Data       []DataSet       `json:"data"`
	Labels     string          `json:"labels_sha256,omitempty"` // of tool and class of the windows that it learnt from
	LabelsFrom map[string]int  `json:"labels_from,omitempty"`   // how many labels came from where: file, floor, alarms; nil if all came from files
	Seed       uint64          `json:"seed"`
	Config     json.RawMessage `json:"config,omitempty"` // of the training run

	// LengthKnown says that windows are as long as Model.Window has it: they were cut from
	// recordings, or the configuration said so of the rows of a table.
	LengthKnown bool    `json:"window_length_known,omitempty"`
	Sketch      *Sketch `json:"sketch,omitempty"` // of the training rows
}

// Golden is a row of features that the trainer saw, with the posterior that it
// computed.
type Golden struct {
	Features  []float32 // relative to the reference, as the classifier takes them
	Posterior []float64
}

// GoldenWear is a row of features of cutting that the trainer saw, before the
// reference, with the root of the wear that it computed, in √µm.
type GoldenWear struct {
	Features  []float32
	Reference []float32 // of the tool; nil if the estimate takes none
	Root      float64
}

// Model is everything that turns a window into a verdict. It must not be
// changed once made; then it is safe for concurrent use.
type Model struct {
	Layout     *signal.Layout
	Recording  signal.Recording // how the recordings were read that it was trained on
	Window     window.Spec
	Features   signal.FeatureSpec
	Reference  ReferenceSpec
	Cycle      *cycle.Model     // tells when the machine is drilling; nil: the gate does
	Gate       *Gate            // nil, and no Cycle: every window is judged
	Usual      []signal.Quality // per channel: flags that the training data had often, and that do not count as faults
	Label      LabelRule
	Classifier *classify.Classifier // nil: FirstDay decides
	FirstDay   *FirstDay            // of a model that has seen no worn tool; nil: it has a classifier
	Golden     []Golden
	Conformal  *unknown.Conformal // which decisions are sure enough; nil: all are
	Novelty    *unknown.Novelty   // of features relative to the reference; nil: no window is new
	Distances  []float64          // of Novelty, of the golden rows
	Drift      *Drift             // of references; nil: drift is not looked for
	Wear       *trend.Model       // of features before the reference, and of the reference; nil: wear is not estimated
	GoldenWear []GoldenWear
	ByWear     *WearVerdict // nil: the classifier decides
	Provenance Provenance
	Scores     json.RawMessage // of the evaluation, as the report has them
	HeldOut    []byte          // HeldOut in its binary form, which the trainer alone reads; nil: costs cannot be chosen again

	id string // of the file it was read from or written to
}

// ID identifies the file of the model: "ecs-dbn-", or "first-day-" of a model that has seen no worn tool, and 12 hexadecimal
// digits of its checksum. It is empty before Encode and after a change.
func (m *Model) ID() string { return m.id }

// Gate tells cutting from not cutting by the level of one channel. Models with a
// Cycle have one only for releases of Flank that know no Cycle.
type Gate struct {
	Channel   string  `json:"channel"`
	Threshold float64 `json:"threshold"` // least mean absolute value, in the unit of the channel, while cutting
}

// ErrUnfit is returned where a model cannot be used with the windows at hand.
var ErrUnfit = errors.New("model does not fit")

// Fits reports why windows of the layout and spec cannot be judged by m. The
// error wraps ErrUnfit and names the first difference.
func (m *Model) Fits(layout *signal.Layout, spec window.Spec) error {
	if err := m.Layout.Match(layout); err != nil {
		return fmt.Errorf("%w: trained on layout %q, the windows have %q: %w: use the layout of the model, or train one on this layout",
			ErrUnfit, m.Layout.Name(), layout.Name(), err)
	}
	if m.Window.Length != spec.Length {
		return fmt.Errorf("%w: trained on windows of %v, these have %v: set the window length to %v, or train on %v",
			ErrUnfit, m.Window.Length, spec.Length, m.Window.Length, spec.Length)
	}
	return nil
}

// check reports what is missing in m or contradicts itself.
func (m *Model) check() error {
	x, err := m.extractor()
	if err != nil {
		return err
	}
	features := len(x.Names())
	for _, check := range []func(features int) error{
		m.checkClassifier, m.checkCycle, m.checkWear, m.checkByWear, m.checkUnknown, m.Provenance.Sketch.check, m.checkDrift, m.checkFirstDay, m.Reference.checkFor,
	} {
		if err := check(features); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) checkCycle(int) error {
	if m.Cycle == nil {
		return nil
	}
	return m.Cycle.Check(m.Layout)
}

func (m *Model) checkDrift(features int) error {
	switch {
	case m.Drift == nil:
		return nil
	case m.Reference.Mode == ReferenceOff:
		return errors.New("drift: it is looked for in references, and the model takes none")
	}
	return m.Drift.check(features)
}

// checkClassifier checks the channels, the gate, the classifier and its labels.
func (m *Model) checkClassifier(features int) error {
	n := len(m.Layout.Channels())
	switch {
	case len(m.Usual) != n:
		return fmt.Errorf("usual quality of %d channels, the layout has %d", len(m.Usual), n)
	case m.Classifier == nil && m.FirstDay == nil:
		return errors.New("no classifier")
	case m.Classifier != nil && m.Classifier.Columns() != features:
		return fmt.Errorf("classifier takes %d features, the list has %d", m.Classifier.Columns(), features)
	case m.Gate != nil && m.Layout.Index(m.Gate.Channel) < 0:
		return fmt.Errorf("gate: channel %q is not in the layout", m.Gate.Channel)
	case m.Gate != nil && !(m.Gate.Threshold >= 0):
		return fmt.Errorf("gate: threshold %v: must not be negative", m.Gate.Threshold)
	}
	return m.Label.check(m.Classes())
}

// checkWear checks the estimate of wear.
func (m *Model) checkWear(features int) error {
	if m.Wear == nil {
		if len(m.GoldenWear) > 0 {
			return errors.New("golden vectors of wear, and no model of it")
		}
		return nil
	}
	if err := m.Wear.Check(features); err != nil {
		return err
	}
	if m.Wear.Reference && m.Reference.Mode == ReferenceOff {
		return errors.New("wear: it is estimated with references, and the model takes none")
	}
	return nil
}

// checkUnknown checks what makes a verdict unknown.
func (m *Model) checkUnknown(features int) error {
	switch {
	case m.Conformal != nil && m.Conformal.Classes() != m.Classes():
		return fmt.Errorf("conformal sets of %d classes, the classifier has %d", m.Conformal.Classes(), m.Classes())
	case m.Novelty != nil && m.Novelty.Columns() != features:
		return fmt.Errorf("novelty of %d features, the list has %d", m.Novelty.Columns(), features)
	case m.Novelty == nil && len(m.Distances) > 0, m.Novelty != nil && len(m.Distances) != len(m.Golden):
		return fmt.Errorf("%d golden distances for %d golden vectors", len(m.Distances), len(m.Golden))
	}
	return nil
}

func (m *Model) extractor() (*signal.Extractor, error) {
	return signal.NewExtractor(m.Layout, m.SamplesPerChannel(), m.Features)
}

// SamplesPerChannel returns how many samples of each channel a window holds.
func (m *Model) SamplesPerChannel() []int {
	n := make([]int, len(m.Layout.Channels()))
	for i, c := range m.Layout.Channels() {
		n[i] = m.Window.Samples(c.Rate)
	}
	return n
}

// goldenTolerance is how far a posterior may lie from the golden one: kernel
// families of different CPUs round differently.
const goldenTolerance = 1e-5

// goldenDistance is the same of distances, by their size: sums of hundreds of squares
// in float32.
const goldenDistance = 1e-3

// errGolden is returned when a model does not compute what its trainer did.
var errGolden = errors.New("golden vectors differ")

// verify recomputes the golden vectors.
func (m *Model) verify() error {
	posterior := m.Posteriors()
	for i, g := range m.Golden {
		if len(g.Features) != m.Columns() {
			return fmt.Errorf("%w: vector %d has %d features, expected %d", errGolden, i, len(g.Features), m.Columns())
		}
		got := posterior(g.Features)
		if len(got) != len(g.Posterior) {
			return fmt.Errorf("%w: vector %d has %d classes, expected %d", errGolden, i, len(g.Posterior), len(got))
		}
		for k := range got {
			if !(math.Abs(got[k]-g.Posterior[k]) <= goldenTolerance) {
				return fmt.Errorf("%w: vector %d, class %d: %v, the trainer had %v", errGolden, i, k, got[k], g.Posterior[k])
			}
		}
	}
	if m.Novelty != nil {
		s := m.Novelty.NewScorer()
		for i, want := range m.Distances {
			if got := s.Distance(m.Golden[i].Features); !(math.Abs(got-want) <= goldenDistance*(1+want)) {
				return fmt.Errorf("%w: vector %d: distance %v, the trainer had %v", errGolden, i, got, want)
			}
		}
	}
	return m.verifyWear()
}

// Columns returns how many features a row has.
func (m *Model) Columns() int {
	if m.Classifier != nil {
		return m.Classifier.Columns()
	}
	return len(m.NewJudge().FeatureNames())
}

// Posteriors returns what computes the posterior of a row of Columns features, valid until the next call. Not for models whose
// verdict is by wear, which takes more than the row.
func (m *Model) Posteriors() func(row []float32) []float64 {
	if m.Classifier != nil {
		return m.Classifier.NewScorer().Posterior
	}
	var p [2]float64
	return func(row []float32) []float64 {
		score, _ := m.FirstDay.Score(row)
		p = [2]float64{1 - score, score}
		return p[:]
	}
}

// Classes returns how many classes there are, K.
func (m *Model) Classes() int {
	if m.Classifier != nil {
		return m.Classifier.Classes()
	}
	return 2
}

// verifyWear recomputes the golden vectors of wear.
func (m *Model) verifyWear() error {
	for i, g := range m.GoldenWear {
		want := 0 // features of the reference
		if m.Wear.Reference {
			want = m.Wear.Features()
		}
		if len(g.Features) != m.Wear.Features() || len(g.Reference) != want {
			return fmt.Errorf("%w: vector %d of wear has %d features and %d of the reference, expected %d and %d", errGolden, i,
				len(g.Features), len(g.Reference), m.Wear.Features(), want)
		}
		if got, _ := m.Wear.Root(g.Features, g.Reference); !(math.Abs(got-g.Root) <= goldenTolerance*(1+g.Root)) {
			return fmt.Errorf("%w: vector %d of wear: %v √µm, the trainer had %v", errGolden, i, got, g.Root)
		}
	}
	return nil
}

// Cutting says in words when the machine counts as cutting.
func (m *Model) Cutting() string {
	switch {
	case m.Cycle != nil:
		var states []string
		for _, s := range m.Cycle.States() {
			states = append(states, cmp.Or(map[cycle.State]string{cycle.Drilling: "cutting"}[s], s.String()))
		}
		return fmt.Sprintf("while the tool cuts; %s are told apart by %s", list(states), list(m.Cycle.Channels()))
	case m.Gate != nil:
		return fmt.Sprintf("while the level of %s is at %.4g or more", m.Gate.Channel, m.Gate.Threshold)
	}
	return "all the time: every window is judged"
}

// list joins words as a sentence does.
func list(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// String describes the model on one line.
func (m *Model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d channels, windows of %v, %d features", m.id, len(m.Layout.Channels()), m.Window.Length, m.Columns())
	if m.Reference.Mode != ReferenceOff {
		fmt.Fprintf(&b, ", relative (%s) to a tool's first %d windows", m.Reference.Describe(), m.Reference.Windows)
	}
	if m.ByWear != nil {
		fmt.Fprintf(&b, ", faulty from an estimated wear of %.4g µm on", m.ByWear.LimitUM)
	}
	if f := m.FirstDay; f != nil {
		fmt.Fprintf(&b, ", no worn tool seen yet: different from before where %s differs %.2g-fold from that", f.Sensor, Times(f.Limit))
	}
	return b.String()
}
