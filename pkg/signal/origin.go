package signal

import (
	"cmp"
	"math"
	"strings"
)

// FeatureOrigin says which sensor a feature comes from, and what the feature becomes if that
// sensor reads more or less than it should.
type FeatureOrigin struct {
	// Sensor is the Sensor of the feature's channel or, where the layout names none, the
	// channel's name. Where the name of a channel of kind Feature ends with the name of a
	// feature, that is left out: F_c of F_c_RMS.
	Sensor string

	// Group is equal for sensors that measure in one unit: the unit of the channel, its
	// kind if the unit is not known or, of a channel of kind Feature, what its sensor's name
	// begins with: F of F_c, F_f and F_p. It is empty if nothing is known.
	Group string

	// Other is the sensor of the other channel that the feature is computed from too, such as a
	// coherence; empty if there is none.
	Other string

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

// powers has the powers of gains that features computed elsewhere have, by the words that
// their names end with, in lower case. The families of the registry go without saying.
var powers = map[string]int{
	"abs": 1, "amp": 1, "amplitude": 1, "average": 1, "avg": 1, "iqr": 1, "mad": 1, "median": 1, "p2p": 1, "pp": 1, "ptp": 1, "range": 1, "sd": 1,
	"energy": 2, "var": 2,
	"cf": 0, "count": 0, "counts": 0, "crossings": 0, "freq": 0, "frequency": 0, "kurt": 0, "sk": 0, "skew": 0, "zc": 0, "zcr": 0,
	"c_": 0, // with a number: counts of excursions beyond it, as in AE_C_0.1
}

// Origins returns where each feature comes from, in the order of Names.
func (e *Extractor) Origins() []FeatureOrigin {
	out := make([]FeatureOrigin, len(e.names))
	for i, name := range e.names {
		c := e.layout.channels[e.channels[i][0]]
		o := originOf(name)
		if c.Kind != Feature {
			o = FeatureOrigin{Sensor: c.Name, Other: e.other(i), Group: string(c.Kind), Gain: gains[stem(name[len(c.Name)+1:])], Samples: true}
		}
		o.Sensor = cmp.Or(c.Sensor, o.Sensor)
		o.Group = cmp.Or(c.Unit, o.Group)
		out[i] = o
	}
	return out
}

// other returns the sensor of the second channel of feature i, or nothing.
func (e *Extractor) other(i int) string {
	if len(e.channels[i]) < 2 {
		return ""
	}
	c := e.layout.channels[e.channels[i][1]]
	return cmp.Or(c.Sensor, c.Name)
}

// originOf returns what the name of a feature that was computed elsewhere says of it: it ends
// with a dot or an underscore and the name of a feature. Otherwise it is a sensor of its own,
// and a level.
func originOf(name string) FeatureOrigin {
	for at := 1; at < len(name); at++ { // the longest end first
		if name[at] != '_' && name[at] != '.' {
			continue
		}
		if g, known := gainOf(strings.ToLower(name[at+1:])); known {
			return FeatureOrigin{Sensor: name[:at], Group: beginning(name[:at]), Gain: g}
		}
	}
	return FeatureOrigin{Sensor: name, Group: beginning(name), Gain: Gain{Power: 1}}
}

// gainOf returns the Gain of a feature of that name, in lower case. A number may follow it.
func gainOf(word string) (g Gain, known bool) {
	names := []string{word}
	if at := strings.LastIndexByte(word, '_'); at > 0 && strings.Trim(word[at+1:], "0123456789.") == "" {
		names = []string{word[:at+1], word[:at]}
	}
	for _, name := range names {
		if g, known = gains[stem(name)]; known {
			return g, true
		}
		if p, known := powers[name]; known {
			return Gain{Power: p}, true
		}
	}
	return Gain{}, false
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
