package signal

import (
	"math"
	"math/bits"

	"github.com/flank-tcm/flank/internal/kernel"
)

// measures is what the features are made of: all that is taken from
// the samples of one channel in one window. The twin computes it in float64, the
// panel for many channels at once in float32; formulas are the same for both.
type measures struct {
	moments
	abs, sqrtAbs float64      // means of |x| and √|x|
	crossings    float64      // changes of the sign of x − x̄ per pair of neighbours; x̄ rounded to float32, zero is positive
	step2, bend2 float64      // variances of first and second differences
	logs         []float64    // of power, while it is summarized
	power        []float64    // mean square of x − x̄ in bin k at k·hz; index 0 is not used
	hz           float64      // width of a bin of power and of envelope
	envelope     []float64    // spectrum of the squared envelope, see shape; any scale
	packets      []float64    // mean square of x − x̄ in each wavelet packet, by frequency
	lines        []complex128 // of each segment, its transform at the first harmonics of the spindle; any scale
	summary      summary      // of power
	coherence    float64      // with the channel before
	spindle      float64      // revolutions per second; 0 if not known
	rate         float64      // samples per second
	edges        []int        // band j is the bins edges[j] < k ≤ edges[j+1] of power
}

// shape is how the samples of a channel are cut up for its spectra and packets.
//
// The power spectrum is Welch's: segments of N samples, each half over the next,
// less the mean of the window, times the periodic Hann window w_i = (1 − cos
// 2πi/N)/2. N is the greatest power of two up to n/4, but 64 at least and 4096 at
// most: at 20 kHz bins of 4.9 Hz. With X_s the transform of segment s of S,
//
//	P[k] = c_k/(S·N·Σw²) · Σ_s |X_s[k]|²,   k = 1 … N/2,
//
// is the mean square of the samples in bin k; c_k is 2, but 1 for k = N/2.
//
// The envelope is of the resonance band, the octave from rate/8 to rate/4,
// 2.5 to 5 kHz at 20 kHz, where tool and sensor ring: of each segment the bins of
// the band alone are transformed back, as one-sided spectrum shifted to zero, to
// M = N/4 points z. |z|² is the squared envelope, and
//
//	E[q] = Σ_s |Σ_m |z_s[m]|²·e^(−2πi·mq/M)|²,   q = 0 … M/2,
//
// its spectrum, with bins as wide as the bins of P. Below q = 3 it is the Hann
// window's.
//
// The packets are the 16 nodes of four levels of the wavelet packet transform of
// x − x̄ by the Daubechies wavelet with four vanishing moments, periodic, over the
// first 16·⌊n/16⌋ samples.
//
// In all of these a missing sample counts as the mean, and power is divided by
// the share of samples that are there.
//
// Sources: P. D. Welch, "The use of fast Fourier transform for the estimation of
// power spectra", IEEE Trans. Audio Electroacoust. 15 (1967); R. B. Randall, J.
// Antoni, "Rolling element bearing diagnostics - A tutorial", Mech. Syst. Signal
// Process. 25 (2011), §3 and 4 (squared envelope spectrum); M. V. Wickerhauser,
// "Adapted Wavelet Analysis", AK Peters 1994, ch. 7.
type shape struct {
	n        int // samples
	segment  int // N
	segments int // S
	taper    []float64
	gain     float64 // 1/(S·N·Σw²)
}

const (
	maxWelch     = 4096 // samples of a segment
	packetLevels = 4
	packetCount  = 1 << packetLevels
	minEnvelope  = 3 // first bin of E that is not the window's
)

func newShape(n int) shape {
	s := shape{n: n, segment: min(max(MinSpectral, 1<<(bits.Len(uint(n/4))-1)), maxWelch)}
	s.segments = (n-s.segment)/(s.segment/2) + 1
	s.taper = make([]float64, s.segment)
	var energy float64
	for i := range s.taper {
		s.taper[i] = (1 - math.Cos(2*math.Pi*float64(i)/float64(s.segment))) / 2
		energy += s.taper[i] * s.taper[i]
	}
	s.gain = 1 / (float64(s.segments) * float64(s.segment) * energy)
	return s
}

func (s *shape) start(i int) int { return i * s.segment / 2 }

// band returns the first bin of the resonance band and how many there are.
func (s *shape) band() (first, count int) { return s.segment / 8, s.segment / 8 }

// newMeasures returns measures with the memory that spectra of the shape take.
func newMeasures(s *shape, rate float64) measures {
	return measures{
		hz:       rate / float64(s.segment),
		edges:    bandEdges(s.segment / 2),
		logs:     make([]float64, s.segment/2),
		power:    make([]float64, s.segment/2+1),
		envelope: make([]float64, s.segment/8+1),
		packets:  make([]float64, packetCount),
		lines:    make([]complex128, s.segments*coherenceLines),
	}
}

// node returns the place in the tree, low branch first at every level, of the
// packet that is i-th in frequency: a high pass turns the spectrum around.
func node(i int) int { return i ^ i>>1 }

// summary describes the shape of the power spectrum.
type summary struct {
	total, mean, spread float64 // Σ P; Hz; Hz
	rolloff             float64 // Hz
	flatness, entropy   float64
}

// rolloffShare is the share of the power that lies below the roll-off.
const rolloffShare = 0.85

// summarize computes the summary of the spectrum.
func (m *measures) summarize() {
	var total, first, second, logs, plogs float64
	empty := false
	kernel.Log(m.logs, m.power[1:])
	for k, p := range m.power[1:] {
		f := float64(k + 1)
		total += p
		first += f * p
		second += f * f * p
		if p <= 0 {
			empty = true
			continue
		}
		l := m.logs[k]
		logs += l
		plogs += p * l
	}
	n := float64(len(m.power) - 1)
	mean := first / total
	s := &m.summary
	s.total = total
	s.mean = mean * m.hz
	s.spread = math.Sqrt(max(0, second/total-mean*mean)) * m.hz
	s.flatness = math.Exp(logs/n) / (total / n)
	if empty {
		s.flatness = 0 / total
	}
	s.entropy = (math.Log(total) - plogs/total) / math.Log(n)
	s.rolloff = m.quantile(rolloffShare*total) * m.hz
}

// quantile returns the bin up to which the spectrum holds the given power, with
// the power of bin k spread from k−1 to k. It is NaN without any.
func (m *measures) quantile(power float64) float64 {
	var below float64
	for k, p := range m.power[1:] {
		if below+p >= power && p > 0 {
			return float64(k) + (power-below)/p
		}
		below += p
	}
	return math.NaN()
}

// around returns the sum of the three bins of a spectrum nearest to f Hz, and
// NaN if f is not known or one of the bins is below least or above the last.
func around(spectrum []float64, f, hz float64, least int) float64 {
	k := int(math.Round(min(f/hz, float64(len(spectrum))))) // a speed may be any number
	if !(f > 0) || k-1 < least || k+1 >= len(spectrum) {
		return math.NaN()
	}
	return spectrum[k-1] + spectrum[k] + spectrum[k+1]
}

// coherenceLines is how many harmonics of the spindle coherence is taken at.
const coherenceLines = 4

// minCoherence is the least number of segments in which coherence differs from chance.
const minCoherence = 4

// lineBin returns the bin nearest to harmonic h of the spindle, 0 if it is not
// known or not among the bins of the spectrum.
func (m *measures) lineBin(h int) int {
	if k := math.Round(float64(h) * m.spindle / m.hz); k >= 1 && k < float64(len(m.power)) {
		return int(k)
	}
	return 0
}

// cohere sets m.coherence from the lines of m and of another channel.
func (m *measures) cohere(o *measures) {
	var sum float64
	for h := range coherenceLines {
		var xx, yy float64
		var xy complex128
		for at := h; at < len(m.lines); at += coherenceLines {
			x, y := m.lines[at], o.lines[at]
			xx += real(x)*real(x) + imag(x)*imag(x)
			yy += real(y)*real(y) + imag(y)*imag(y)
			xy += x * complex(real(y), -imag(y))
		}
		sum += (real(xy)*real(xy) + imag(xy)*imag(xy)) / (xx * yy)
	}
	m.coherence = sum / coherenceLines
	if m.lineBin(coherenceLines) == 0 {
		m.coherence = math.NaN()
	}
}

// maxBands is the greatest number of bands.
const maxBands = 10

// bandEdges returns the ascending edges of the bands of bins 1 … top. They are 2/3 of an octave
// wide, counted down from half the sample rate; the lowest takes what is left above zero. Every
// band has a bin, the lowest two.
func bandEdges(top int) []int {
	edges := []int{top}
	for len(edges) < maxBands {
		e := int(float64(top) * math.Exp2(-2*float64(len(edges))/3))
		if e < 2 || e == edges[0] {
			break
		}
		edges = append([]int{e}, edges...)
	}
	return append([]int{0}, edges...)
}
