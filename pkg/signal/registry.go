package signal

import (
	"fmt"
	"math"
)

// entry is a family of the registry: a formula that gives one feature of a
// channel, or several. docs/reference/features.md is made from these.
type entry struct {
	name      string
	words     string   // what people call it, before the number of one of several; empty if frequencies name it
	byDefault channels // whose default set it is in; a family that comes later is in none, or models would change
	unit      string   // U stands for the unit of the channel
	formula   string
	source    string
	needs     needs
	several   func(m *measures) int            // how many features; nil: one, with the name of the family
	suffix    string                           // name of one of several, before its number from 01
	value     func(m *measures, i int) float64 // of feature i
	pair      bool                             // taken from the channel and the one before it
	size      bool                             // it is positive, or zero where there is nothing: its ratios mean something
}

// channels are the kinds of channels with a default set of their own.
type channels uint8

const (
	waves channels = 1 << iota // vibration, acoustic
	fast                       // others with manySamples or more
	slow                       // others
)

// relation returns how the features of e are taken relative to a reference.
func (e *entry) relation() Relation {
	if e.size {
		return LogRatio
	}
	return Difference
}

// spectral reports whether e needs MinSpectral samples.
func (e *entry) spectral() bool { return e.needs != needs{} }

// one makes the value of an entry with a single feature.
func one(f func(m *measures) float64) func(*measures, int) float64 {
	return func(m *measures, _ int) float64 { return f(m) }
}

// log10 is NaN unless the power is positive.
func log10(power float64) float64 {
	if !(power > 0) {
		return math.NaN()
	}
	return math.Log10(power)
}

func count(n int) func(*measures) int { return func(*measures) int { return n } }

// leastModulation is added to the modulation of the envelope, so that silence
// between lines is the same silence in float32 as in float64.
const leastModulation = 1e-6

// band sums of E beyond the window's bins, relative to E[0].
func (m *measures) modulation() float64 {
	var sum float64
	for _, v := range m.envelope[minEnvelope:] {
		sum += v
	}
	return sum
}

const (
	crcTables  = "D. Zwillinger, S. Kokoska, CRC Standard Probability and Statistics Tables and Formulae, 2000, §2.2.24"
	leiReview  = "Y. Lei et al., Machinery health prognostics, Mech. Syst. Signal Process. 104 (2018), table 3"
	hjorth1970 = "B. Hjorth, EEG analysis based on time domain properties, Electroenceph. Clin. Neurophysiol. 29 (1970)"
	peeters    = "G. Peeters, A large set of audio features, IRCAM 2004, §6.1"
	welch1967  = "P. D. Welch, IEEE Trans. Audio Electroacoust. 15 (1967)"
	randall    = "R. B. Randall, J. Antoni, Mech. Syst. Signal Process. 25 (2011), §4"
)

// registry is the feature list, version 2, in the order of the features.
var registry = []entry{
	{name: "mean", words: "mean", byDefault: fast | slow, unit: "U", formula: "x̄ = Σx/n", source: crcTables, value: one(func(m *measures) float64 { return m.mean })},
	{name: "variance", words: "variance", size: true, unit: "U²", formula: "m₂ = Σ(x − x̄)²/n; Hjorth's activity", source: crcTables, value: one(func(m *measures) float64 { return m.m2 })},
	{name: "std", words: "standard deviation", byDefault: fast | slow, size: true, unit: "U", formula: "√m₂", source: crcTables, value: one(func(m *measures) float64 { return math.Sqrt(m.m2) })},
	{name: "rms", words: "rms", byDefault: waves | fast | slow, size: true, unit: "U", formula: "√(Σx²/n)", source: leiReview, value: one(func(m *measures) float64 { return m.rms() })},
	{name: "min", words: "minimum", unit: "U", formula: "least sample", source: leiReview, value: one(func(m *measures) float64 { return m.min })},
	{name: "max", words: "maximum", unit: "U", formula: "greatest sample", source: leiReview, value: one(func(m *measures) float64 { return m.max })},
	{name: "peak", words: "peak", byDefault: waves, size: true, unit: "U", formula: "max |x|", source: leiReview, value: one(func(m *measures) float64 { return m.peak() })},
	{name: "peak_to_peak", words: "peak to peak", byDefault: fast | slow, size: true, unit: "U", formula: "max − min", source: leiReview, value: one(func(m *measures) float64 { return m.max - m.min })},
	{name: "slope", words: "slope", byDefault: fast | slow, unit: "U/s", formula: "least-squares slope of x over time: the trend within the window", source: crcTables,
		value: one(func(m *measures) float64 { return m.slope })},
	{name: "residual", words: "residual about the trend", byDefault: fast | slow, size: true, unit: "U", formula: "√(m₂ − slope²·var(t)): what the trend leaves", source: crcTables,
		value: one(func(m *measures) float64 { return math.Sqrt(max(0, m.m2-m.slope*m.slope*m.times)) })},
	{name: "crest", words: "crest factor", byDefault: waves, size: true, unit: "1", formula: "peak/rms", source: "ISO 18431-1", value: one(func(m *measures) float64 { return m.peak() / m.rms() })},
	{name: "shape", words: "shape factor", byDefault: waves, size: true, unit: "1", formula: "rms/(Σ|x|/n)", source: leiReview, value: one(func(m *measures) float64 { return m.rms() / m.abs })},
	{name: "impulse", words: "impulse factor", byDefault: waves, size: true, unit: "1", formula: "peak/(Σ|x|/n)", source: leiReview, value: one(func(m *measures) float64 { return m.peak() / m.abs })},
	{name: "clearance", words: "clearance factor", byDefault: waves, size: true, unit: "1", formula: "peak/(Σ√|x|/n)²", source: leiReview,
		value: one(func(m *measures) float64 { return m.peak() / (m.sqrtAbs * m.sqrtAbs) })},
	{name: "skewness", words: "skewness", byDefault: waves, unit: "1", formula: "m₃/m₂^1.5", source: crcTables,
		value: one(func(m *measures) float64 { return m.m3 / (m.m2 * math.Sqrt(m.m2)) })},
	{name: "kurtosis", words: "kurtosis", byDefault: waves, size: true, unit: "1", formula: "m₄/m₂², 3 for Gaussian noise", source: crcTables,
		value: one(func(m *measures) float64 { return m.m4 / (m.m2 * m.m2) })},
	{name: "zero_crossings", words: "zero crossings", byDefault: waves, size: true, unit: "1/s", formula: "changes of the sign of x − x̄ a second; x̄ rounded to float32, zero counts as positive",
		source: "S. O. Rice, Mathematical analysis of random noise, Bell Syst. Tech. J. 24 (1945), §3.3",
		value:  one(func(m *measures) float64 { return m.crossings * m.rate })},
	{name: "mobility", words: "mobility", byDefault: waves, size: true, unit: "1/s", formula: "√(var(Δx)/m₂)·rate, Δx the differences of neighbours", source: hjorth1970,
		value: one(func(m *measures) float64 { return math.Sqrt(m.step2/m.m2) * m.rate })},
	{name: "complexity", words: "complexity", byDefault: waves, size: true, unit: "1", formula: "√(var(ΔΔx)·m₂)/var(Δx): mobility of the differences over mobility", source: hjorth1970,
		value: one(func(m *measures) float64 { return math.Sqrt(m.bend2*m.m2) / m.step2 })},

	{name: "bands", byDefault: waves | fast, unit: "log10 U²", formula: "log10 Σ P over a band of ⅔ octave; band01 the lowest, which takes what is left above zero, the last one up to half the rate",
		source: welch1967, needs: needs{spectrum: true},
		several: func(m *measures) int { return len(m.edges) - 1 }, suffix: "band",
		value: func(m *measures, i int) float64 {
			var sum float64
			for _, p := range m.power[m.edges[i]+1 : m.edges[i+1]+1] {
				sum += p
			}
			return log10(sum)
		}},
	{name: "centroid", words: "spectral centroid", byDefault: waves | fast, size: true, unit: "Hz", formula: "μ = Σ f·P/Σ P", source: peeters, needs: needs{spectrum: true},
		value: one(func(m *measures) float64 { return m.summary.mean })},
	{name: "spread", words: "spectral spread", byDefault: waves | fast, size: true, unit: "Hz", formula: "√(Σ (f − μ)²·P/Σ P)", source: peeters, needs: needs{spectrum: true},
		value: one(func(m *measures) float64 { return m.summary.spread })},
	{name: "rolloff", words: "spectral roll-off", byDefault: waves | fast, size: true, unit: "Hz", formula: "frequency below which 85 % of Σ P lie; P of bin k spread evenly between k − 1 and k", source: peeters, needs: needs{spectrum: true},
		value: one(func(m *measures) float64 { return m.summary.rolloff })},
	{name: "flatness", words: "spectral flatness", byDefault: waves | fast, size: true, unit: "1", formula: "geometric over arithmetic mean of P, 1 for white noise", source: peeters, needs: needs{spectrum: true},
		value: one(func(m *measures) float64 { return m.summary.flatness })},
	{name: "entropy", words: "spectral entropy", byDefault: waves | fast, unit: "1", formula: "−Σ p·ln p/ln(N/2), p = P/Σ P", source: "T. Inouye et al., Quantification of EEG irregularity, Electroenceph. Clin. Neurophysiol. 79 (1991)",
		needs: needs{spectrum: true}, value: one(func(m *measures) float64 { return m.summary.entropy })},
	{name: "harmonics", words: "spindle harmonic", byDefault: waves | fast, unit: "log10 U²", formula: "log10 of P[k−1] + P[k] + P[k+1], k the bin nearest to harmonic h of the spindle",
		source: randall, needs: needs{spectrum: true}, several: count(6), suffix: "harmonic",
		value: func(m *measures, i int) float64 { return log10(around(m.power, float64(i+1)*m.spindle, m.hz, 1)) }},

	{name: "envelope_depth", words: "envelope depth", byDefault: waves, unit: "log10 1", formula: "log10(10⁻⁶ + Σ_{q≥3} E/E[0]): how much the resonance band is modulated", source: randall, needs: needs{envelope: true},
		value: one(func(m *measures) float64 { return log10(leastModulation + m.modulation()/m.envelope[0]) })},
	{name: "envelope_centroid", words: "envelope centroid", byDefault: waves, size: true, unit: "Hz", formula: "Σ_{q≥3} f·E/Σ_{q≥3} E", source: randall, needs: needs{envelope: true},
		value: one(func(m *measures) float64 {
			var first float64
			for q, v := range m.envelope[minEnvelope:] {
				first += float64(q+minEnvelope) * v
			}
			return first / m.modulation() * m.hz
		})},
	{name: "envelope_harmonics", words: "envelope, spindle harmonic", byDefault: waves, unit: "log10 1", formula: "log10(10⁻⁶ + (E[q−1] + E[q] + E[q+1])/E[0]), q the bin nearest to harmonic h of the spindle; missing below 4 bins",
		source: randall, needs: needs{envelope: true}, several: count(4), suffix: "envelope",
		value: func(m *measures, i int) float64 {
			return log10(leastModulation + around(m.envelope, float64(i+1)*m.spindle, m.hz, minEnvelope)/m.envelope[0])
		}},
	{name: "packets", byDefault: waves | fast, unit: "log10 U²", formula: "log10 of the mean square of x − x̄ in a wavelet packet of level 4, packet01 the lowest in frequency, each rate/32 wide",
		source: "M. V. Wickerhauser, Adapted Wavelet Analysis, AK Peters 1994, ch. 7", needs: needs{packets: true}, several: count(packetCount), suffix: "packet",
		value: func(m *measures, i int) float64 { return log10(m.packets[i]) }},
	{name: "coherence", words: "coherence with the channel before", byDefault: waves, unit: "1", formula: "mean over harmonics h = 1 … 4 of the spindle of |Σ_s X_s·Y_s*|²/(Σ_s |X_s|²·Σ_s |Y_s|²), Y the channel before of the same rate. The first channel of a rate has none",
		source: "J. S. Bendat, A. G. Piersol, Random Data, Wiley 2010, §5.2.4", needs: needs{lines: true}, pair: true,
		value: one(func(m *measures) float64 { return m.coherence })},
}

func registryNames() []string {
	var names []string
	for i := range registry {
		names = append(names, registry[i].name)
	}
	return names
}

// suffixes returns what the features of e are called after the channel's name.
func (e *entry) suffixes(m *measures) []string {
	if e.several == nil {
		return []string{e.name}
	}
	names := make([]string, e.several(m))
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", e.suffix, i+1)
	}
	return names
}

// union returns what a or b need.
func (a needs) union(b needs) needs {
	return needs{a.spectrum || b.spectrum, a.envelope || b.envelope, a.packets || b.packets, a.lines || b.lines}
}

// defaultSet is the set for a channel if none is given.
func defaultSet(k Kind, samples int) []string {
	of := slow
	switch {
	case samples == 1:
		return []string{"mean"}
	case samples < MinSpectral:
		return []string{"mean", "std", "rms", "min", "max", "slope"}
	case k == Vibration || k == Acoustic:
		of = waves
	case samples >= manySamples:
		of = fast
	}
	var names []string
	for i := range registry {
		if registry[i].byDefault&of != 0 {
			names = append(names, registry[i].name)
		}
	}
	return names
}
