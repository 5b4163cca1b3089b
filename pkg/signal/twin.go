package signal

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// twin computes measures in float64, as their definitions read. It is what the
// panel is held to, and what takes over where samples are missing.
type twin struct {
	shape    shape
	spectral bool // the channel has samples enough for spectra
	real     *fourier.FFT
	band     *fourier.CmplxFFT
	envelope *fourier.FFT
	rest     []float64 // x − x̄, 0 where a sample is missing
	segment  []float64
	bins     []complex128
	baseband []complex128
	squared  []float64
	modes    []complex128
	nodes    [2][]float64
}

func newTwin(n int) *twin {
	t := &twin{}
	if n < MinSpectral {
		return t
	}
	t.spectral = true
	t.shape = newShape(n)
	size := t.shape.segment
	t.real = fourier.NewFFT(size)
	t.band = fourier.NewCmplxFFT(size / 4)
	t.envelope = fourier.NewFFT(size / 4)
	t.rest = make([]float64, n)
	t.segment = make([]float64, size)
	t.bins = make([]complex128, size/2+1)
	t.baseband = make([]complex128, size/4)
	t.squared = make([]float64, size/4)
	t.modes = make([]complex128, size/8+1)
	for i := range t.nodes {
		t.nodes[i] = make([]float64, n)
	}
	return t
}

// measure sets m to the measures of x, taken at rate Hz. Its lines are set if
// m.spindle is.
func (t *twin) measure(m *measures, x []float32, rate float64) {
	m.moments = measure(x, rate)
	m.measureShape(x)
	if t.spectral {
		t.measureSpectra(m, x)
	}
}

// measureShape sets what goes over x in the order of time.
func (m *measures) measureShape(x []float32) {
	var n, pairs, threes float64
	var abs, roots, crossings float64
	var step, step2, bend, bend2 float64
	middle := float32(m.mean)
	last, lastStep := math.NaN(), math.NaN()
	for _, v := range x {
		w := float64(v)
		s := w - last
		b := s - lastStep
		if s == s {
			pairs++
			step += s
			step2 += s * s
			if (v < middle) != (float32(last) < middle) {
				crossings++
			}
		}
		if b == b {
			threes++
			bend += b
			bend2 += b * b
		}
		last, lastStep = w, s
		if v == v {
			n++
			abs += math.Abs(w)
			roots += math.Sqrt(math.Abs(w))
		}
	}
	m.abs, m.sqrtAbs = abs/n, roots/n
	m.crossings = crossings / pairs
	m.step2 = step2/pairs - step/pairs*step/pairs
	m.bend2 = bend2/threes - bend/threes*bend/threes
	if m.mean != m.mean {
		m.abs, m.sqrtAbs, m.crossings, m.step2, m.bend2 = m.mean, m.mean, m.mean, m.mean, m.mean
	}
}

func (t *twin) measureSpectra(m *measures, x []float32) {
	there := 0
	for i, v := range x {
		t.rest[i] = 0
		if v == v {
			there++
			t.rest[i] = float64(v) - m.mean
		}
	}
	share := float64(there) / float64(len(x))
	clear(m.power)
	clear(m.envelope)
	for s := range t.shape.segments {
		for i, w := range t.shape.taper {
			t.segment[i] = w * t.rest[t.shape.start(s)+i]
		}
		t.real.Coefficients(t.bins, t.segment)
		for k, c := range t.bins {
			m.power[k] += real(c)*real(c) + imag(c)*imag(c)
		}
		for h := range coherenceLines {
			m.lines[s*coherenceLines+h] = t.bins[m.lineBin(h+1)]
		}
		t.measureEnvelope(m)
	}
	for k := range m.power {
		m.power[k] *= 2 * t.shape.gain / share
	}
	m.power[len(m.power)-1] /= 2
	t.measurePackets(m, share)
}

// measureEnvelope adds the envelope spectrum of the segment at hand.
func (t *twin) measureEnvelope(m *measures) {
	first, count := t.shape.band()
	clear(t.baseband)
	copy(t.baseband, t.bins[first:first+count])
	t.band.Sequence(t.baseband, t.baseband)
	for i, z := range t.baseband {
		t.squared[i] = real(z)*real(z) + imag(z)*imag(z)
	}
	t.envelope.Coefficients(t.modes, t.squared)
	for q, c := range t.modes {
		m.envelope[q] += real(c)*real(c) + imag(c)*imag(c)
	}
}

// db4 is the scaling filter of the Daubechies wavelet with four vanishing
// moments.
//
// Source: I. Daubechies, "Ten Lectures on Wavelets", SIAM 1992, table 6.1.
var db4 = [8]float64{
	0.23037781330885523, 0.7148465705525415, 0.6308807679295904, -0.02798376941698385,
	-0.18703481171888114, 0.030841381835986965, 0.032883011666982945, -0.010597401784997278,
}

func (t *twin) measurePackets(m *measures, share float64) {
	n := len(t.rest) / packetCount * packetCount
	from, to := t.nodes[0][:n], t.nodes[1][:n]
	copy(from, t.rest)
	for level := range packetLevels {
		size := n >> level
		for at := 0; at < n; at += size {
			splitPacket(to[at:at+size/2], to[at+size/2:at+size], from[at:at+size])
		}
		from, to = to, from
	}
	size := n / packetCount
	for i := range m.packets {
		var sum float64
		for _, v := range from[node(i)*size:][:size] {
			sum += v * v
		}
		m.packets[i] = sum / float64(n) / share
	}
}

// packetLead is how many samples before its own the filter of a packet begins:
// the alignment of PyWavelets' mode periodization.
const packetLead = 3

// splitPacket splits periodic x by the filters of db4, h:
//
//	low[i] = Σ_t h[t]·x[2i−3+t],  high[i] = Σ_t (−1)^t·h[7−t]·x[2i−3+t].
func splitPacket(low, high, x []float64) {
	for i := range low {
		var lo, hi float64
		for t, c := range db4 {
			v := x[(2*i-packetLead+t+len(x))%len(x)]
			lo += c * v
			hi += float64(1-2*(t%2)) * db4[7-t] * v
		}
		low[i], high[i] = lo, hi
	}
}

// PowerSpectrum returns the power spectrum P of x, taken at rate Hz, that
// docs/reference/features.md defines: P[k] is the mean square of the samples in the bin at
// k·hz, P[0] is 0. It returns nil if x has fewer than [MinSpectral] samples, and
// NaN if a sample is infinite or none is there. It is made for drawing, not for
// every window.
func PowerSpectrum(x []float32, rate float64) (power []float64, hz float64) {
	t := newTwin(len(x))
	if !t.spectral {
		return nil, 0
	}
	m := newMeasures(&t.shape, rate)
	t.measure(&m, x, rate)
	return m.power, m.hz
}
