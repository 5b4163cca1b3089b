package signal

import (
	"math"
	"strings"
)

// Origin says which sensor a feature comes from, and what the feature becomes if that
// sensor reads more or less than it should.
type FeatureOrigin struct {
	// Sensor is the Sensor of the feature's channel or, where the layout names none, the
	// channel's name. The name of a channel of kind Feature ends with the name of its
	// feature, which is left out: F_c of F_c_RMS.
	Sensor string

	// Group is equal for sensors that measure in one unit: the unit of the channel, its
	// kind if the unit is not known or, of a channel of kind Feature, what its sensor's name
	// begins with: F of F_c, F_f and F_p. It is empty if nothing is known.
	Group string

	Gain    Gain
	Samples bool // Flank computes the feature from samples, whose Quality is known
}

// Gain says what a feature becomes when its sensor reads f times what it should, f > 0.
type Gain struct {
	Power   int  // how many times f counts: 1 in a level, 2 in a variance, 0 in a ratio, a frequency or a count
	Decades bool // the feature is a logarithm to base 10
}

// Scale returns what the feature v becomes at the factor f: v·f^Power, or
// v + Power·log10 f of a logarithm.
func (g Gain) Scale(v, f float64) float64 {
	switch {
	case g.Power == 0:
		return v
	case g.Decades:
		return v + float64(g.Power)*math.Log10(f)
	}
	return v * math.Pow(f, float64(g.Power))
}

// gains has the Gain of each family of the registry, under the names that its features end
// with.
var gains = func() map[string]Gain {
	byUnit := map[string]Gain{"U": {Power: 1}, "U/s": {Power: 1}, "U²": {Power: 2}, "log10 U²": {Power: 2, Decades: true}, "log10 1": {Decades: true}}
	out := make(map[string]Gain)
	for i := range registry {
		e := &registry[i]
		out[e.name] = byUnit[e.unit]
		if e.several != nil {
			out[e.suffix] = byUnit[e.unit]
		}
	}
	return out
}()

// powers has the powers of gains that features computed elsewhere have, by words that their
// names end with. A feature that ends with another word counts as a level.
var powers = map[string]int{
	"var": 2, "variance": 2, "energy": 2,
	"kurt": 0, "kurtosis": 0, "sk": 0, "skew": 0, "skewness": 0, "cf": 0, "crest": 0, "shape": 0, "impulse": 0, "clearance": 0,
	"c": 0, "count": 0, "counts": 0, "zc": 0, "zcr": 0, "crossings": 0, "freq": 0, "frequency": 0, "centroid": 0, "spread": 0, "rolloff": 0,
	"flatness": 0, "entropy": 0, "mobility": 0, "complexity": 0, "coherence": 0,
}

// Origins returns where each feature comes from, in the order of Names.
func (e *Extractor) Origins() []FeatureOrigin {
	out := make([]FeatureOrigin, len(e.names))
	for i, name := range e.names {
		c := e.layout.channels[e.channels[i][0]]
		o := originOf(name)
		if c.Kind != Feature {
			o = FeatureOrigin{Sensor: c.Name, Group: string(c.Kind), Gain: gains[stem(name[len(c.Name)+1:])], Samples: true}
		}
		if c.Sensor != "" {
			o.Sensor = c.Sensor
		}
		if c.Unit != "" {
			o.Group = c.Unit
		}
		out[i] = o
	}
	return out
}

// originOf returns what the name of a feature that was computed elsewhere says of it.
func originOf(name string) FeatureOrigin {
	if at := strings.LastIndexByte(name, '.'); at > 0 { // as Flank names features
		if g, known := gains[stem(name[at+1:])]; known {
			return FeatureOrigin{Sensor: name[:at], Group: beginning(name[:at]), Gain: g}
		}
	}
	sensor, word := parted(name)
	o := FeatureOrigin{Sensor: sensor, Group: beginning(sensor), Gain: Gain{Power: 1}}
	word, _, _ = strings.Cut(word, "_") // without a number
	if p, known := powers[strings.ToLower(word)]; known && word != "" {
		o.Gain.Power = p
	}
	return o
}

// parted parts a name at its last underscore that no digit follows: AE_C_0.1 is feature
// C_0.1 of AE. The word is empty if there is none.
func parted(name string) (before, word string) {
	for at := len(name) - 2; at > 0; at-- {
		if name[at] == '_' && (name[at+1] < '0' || name[at+1] > '9') {
			return name[:at], name[at+1:]
		}
	}
	return name, ""
}

// beginning returns what is before the last underscore of a sensor's name, or nothing.
func beginning(sensor string) string {
	if at := strings.LastIndexByte(sensor, '_'); at > 0 {
		return sensor[:at]
	}
	return ""
}

// stem returns the family, or the suffix of a family of several features, that a feature's
// name ends with.
func stem(word string) string { return strings.TrimRight(word, "0123456789") }
