package signal

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// FeatureVersion is the version of the feature list. A version fixes the
// formula of every family and the default set, so that a model always sees the
// features it was trained on. Other versions are refused.
const FeatureVersion = 2

// FeatureSpec says which features are computed from the samples of a channel in
// one window. It is part of a training configuration and of a model.
//
// Set lists families by name. docs/reference/features.md has them, with formula, unit and
// source, and the default sets that an empty Set means. Spectra need [MinSpectral] samples; channels
// with fewer go without.
//
// A channel of kind [Feature] has exactly one feature for any Set: its
// value, or the mean of its values if a window holds several.
type FeatureSpec struct {
	Version int      `yaml:"version" json:"version"`   // 0 means FeatureVersion
	Set     []string `yaml:"set" json:"set,omitempty"` // families in any order; empty means the default
}

// MinSpectral is the least number of samples that a spectrum is computed from.
const MinSpectral = 64

// manySamples is the number of samples from which on a force, a current or the
// like is fast enough that its spectrum says more than its level.
const manySamples = 1024

// Relation says how a feature is taken relative to a reference: what it was
// before. The version of the feature list fixes it, as it fixes formulas.
type Relation uint8

// The relations of x to a reference r.
const (
	// Difference is x − r, of what may have either sign, lies between bounds or is
	// a logarithm.
	Difference Relation = iota
	// LogRatio is ln(x/r), of a size: positive, with a zero that means nothing.
	LogRatio
	// Ratio is x/|r| − sign(r), of the value of a channel of kind [Feature], of
	// which the meaning is not known.
	Ratio
)

func (r Relation) String() string { return [...]string{"difference", "log ratio", "ratio"}[r] }

// Extractor computes the features of windows of one layout. It owns scratch
// memory: one goroutine at a time may use it.
type Extractor struct {
	spec     FeatureSpec
	also     []FeatureSpec  // what is computed too
	samples  []int          // per channel, as given to NewExtractor
	layout   *Layout        // for the names of channels
	names    []string       // one per feature
	named    map[string]int // features by name, while they are planned
	channels [][]int        // one per feature: indices into the channels
	relate   []Relation
	board    *board
}

// NewExtractor returns an Extractor for windows that hold samples[i] samples of
// channel i of the layout. It computes every feature that spec or one of also lists,
// each once. It reports a spec of another version, an
// unknown or repeated family, a set that leaves nothing to compute, and channel names
// that make two features share a name. It panics if samples has not one
// positive number for each channel.
func NewExtractor(l *Layout, samples []int, spec FeatureSpec, also ...FeatureSpec) (*Extractor, error) {
	if len(samples) != len(l.channels) || slices.Min(samples) < 1 {
		panic(fmt.Sprintf("signal: NewExtractor: sample counts %v for %d channels", samples, len(l.channels)))
	}
	e := &Extractor{samples: slices.Clone(samples), layout: l, named: make(map[string]int)}
	var err error
	if e.spec, err = spec.checked(); err != nil {
		return nil, err
	}
	for _, s := range also {
		if s, err = s.checked(); err != nil {
			return nil, err
		}
		e.also = append(e.also, s)
	}
	if err := e.planBoard(); err != nil {
		return nil, err
	}
	e.named = nil
	if len(e.names) == 0 {
		return nil, errors.New("signal: features: set: nothing can be computed: no channel has the " +
			fmt.Sprint(MinSpectral) + " samples a window that a spectrum needs; add a family such as mean or rms, or take longer windows")
	}
	return e, nil
}

// checked returns a copy of spec with its version filled in. It reports another version, and
// an unknown or repeated family.
func (spec FeatureSpec) checked() (FeatureSpec, error) {
	spec = FeatureSpec{Version: cmp.Or(spec.Version, FeatureVersion), Set: slices.Clone(spec.Set)}
	known := registryNames()
	if spec.Version != FeatureVersion {
		return spec, fmt.Errorf("signal: features: version %d: this program computes version %d: train the model again with this release, or use the release that made it", spec.Version, FeatureVersion)
	}
	for i, name := range spec.Set {
		if !slices.Contains(known, name) {
			return spec, fmt.Errorf("signal: features: set: %q is not one of %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(spec.Set[:i], name) {
			return spec, fmt.Errorf("signal: features: set: %q is listed twice", name)
		}
	}
	return spec, nil
}

// set returns the families that channel i has by the specs.
func (e *Extractor) set(i int) (all []string) {
	c := e.layout.channels[i]
	if c.Kind == Feature {
		return []string{"mean"}
	}
	for _, spec := range append([]FeatureSpec{e.spec}, e.also...) {
		if len(spec.Set) == 0 {
			all = append(all, defaultSet(c.Kind, e.samples[i])...)
		} else {
			all = append(all, spec.Set...)
		}
	}
	return all
}

// planBoard plans the features of each channel.
func (e *Extractor) planBoard() error {
	e.board = newBoard(e.layout, e.samples)
	for i := range e.layout.channels {
		set := e.set(i)
		for j := range registry {
			f := &registry[j]
			if !slices.Contains(set, f.name) || !e.board.add(i, f) {
				continue
			}
			of := []int{i}
			if f.pair {
				of = []int{i, e.board.channels[i].before}
			}
			if err := e.addNames(f.suffixes(&e.board.channels[i].measures), f.relation(), of...); err != nil {
				return err
			}
		}
	}
	e.board.join(e.layout, e.samples)
	return nil
}

// addNames adds features of the channels; the first gives them their name.
func (e *Extractor) addNames(suffixes []string, relation Relation, channels ...int) error {
	c := e.layout.channels[channels[0]]
	if c.Kind == Feature {
		relation = Ratio
	}
	for _, suffix := range suffixes {
		name := c.Name + "." + suffix
		if c.Kind == Feature {
			name = c.Name
		}
		if i, twice := e.named[name]; twice {
			return fmt.Errorf("signal: features: channels %q and %q both give a feature %q: rename one of them",
				e.layout.channels[e.channels[i][0]].Name, c.Name, name)
		}
		e.named[name], e.names = len(e.names), append(e.names, name)
		e.channels = append(e.channels, channels)
		e.relate = append(e.relate, relation)
	}
	return nil
}

// Spec returns the first spec that e computes, its version filled in.
func (e *Extractor) Spec() FeatureSpec {
	return FeatureSpec{Version: e.spec.Version, Set: slices.Clone(e.spec.Set)}
}

// Names returns the names of the features in order: "ch01.rms", "ch01.band03",
// or the name of the channel if its kind is [Feature]. They are ordered by
// channel, then as [FeatureSpec] lists the families, no matter the order of Set.
// The caller must not change them.
func (e *Extractor) Names() []string { return e.names }

// Channels returns the indices of the channels that feature i is computed from;
// the first is the one that it is named after. The caller must not change them.
func (e *Extractor) Channels(i int) []int { return e.channels[i] }

// Relations returns how each feature is best taken relative to a reference. The
// caller must not change them.
func (e *Extractor) Relations() []Relation { return e.relate }

// Extract computes the features of one window and returns them, one for each of
// Names. It stores them in dst if that has room, and allocates nothing then.
// samples holds one slice per channel of the length given to NewExtractor; they
// are read only. The Context has the spindle speed that some features follow.
//
// Missing samples (NaN) are left out. A feature is NaN where its formula has no
// value: every feature of a channel that has no sample at all or an infinite
// one; crest, skewness and kurtosis, band energies and centroid of a channel
// that does not move or is silent; what follows the spindle while its speed is
// not known; a result beyond the range of float32.
func (e *Extractor) Extract(dst []float32, samples [][]float32, c Context) []float32 {
	if len(samples) != len(e.samples) {
		panic(fmt.Sprintf("signal: Extract: %d channels, want %d", len(samples), len(e.samples)))
	}
	for i, x := range samples {
		if len(x) != e.samples[i] {
			panic(fmt.Sprintf("signal: Extract: %d samples of channel %s, want %d", len(x), e.layout.channels[i].Name, e.samples[i]))
		}
	}
	dst = slices.Grow(dst[:0], len(e.names))
	e.board.measure(samples, c.SpindleSpeed/60)
	return e.board.appendTo(dst)
}

// narrow returns v as a float32, NaN if it is beyond the range of one.
func narrow(v float64) float32 {
	if math.Abs(v) > math.MaxFloat32 {
		return float32(math.NaN())
	}
	return float32(v)
}
