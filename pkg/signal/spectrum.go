package signal

import (
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"
)

// maxSegment is the greatest length of a segment: at 20 kHz a resolution of
// 19.5 Hz and 20 segments a second.
const maxSegment = 1024

// maxBands is the greatest number of bands.
const maxBands = 10

// spectrum computes the power spectrum of n samples by averaged periodograms:
// the samples, less their mean, are cut into ⌈n/N⌉ segments of N samples that
// are spread evenly over the window and overlap as little as that allows. N is
// the greatest power of two up to n and 1024. With w the periodic Hann window,
// w_i = (1 − cos 2πi/N)/2, and X_s the discrete Fourier transform of segment s
// times w,
//
//	P[k] = c_k/N · Σ_s |X_s[k]|² / Σ_s Σ_i w_i²,   k = 1 … N/2,
//
// is the mean square of the samples in bin k, at the frequency k·rate/N; c_k is
// 2, but 1 for k = N/2. The sum of P is the variance if that does not vary along
// the window (Parseval). A missing sample counts as the mean, and its w_i² is
// left out of the sum below, which keeps P of noise unbiased.
//
// The bands are 2/3 of an octave wide, counted down from half the sample rate;
// the lowest takes what is left above zero. At N = 1024 that is ten bands, from
// rate/128 on nine of them: at 20 kHz up to 156, 248, 394, 625, 992, 1575, 2500,
// 3969, 6300 and 10,000 Hz.
//
// Source: P. D. Welch, "The use of fast Fourier transform for the estimation of
// power spectra", IEEE Trans. Audio Electroacoust. 15 (1967), 70-73.
type spectrum struct {
	fft    *fourier.FFT
	window []float64    // N
	starts []int        // of the segments
	edges  []int        // band j is the bins edges[j] < k ≤ edges[j+1]
	power  []float64    // P, index 0 is not used; all NaN if there is nothing to transform
	tapped []float64    // scratch: a segment times the window
	coeffs []complex128 // scratch: its transform
}

// newSpectrum returns a spectrum of n ≥ MinSpectral samples.
func newSpectrum(n int) *spectrum {
	size := min(maxSegment, 1<<(bits.Len(uint(n))-1))
	s := &spectrum{
		fft:    fourier.NewFFT(size),
		window: make([]float64, size),
		power:  make([]float64, size/2+1),
		tapped: make([]float64, size),
		coeffs: make([]complex128, size/2+1),
		edges:  bandEdges(size / 2),
	}
	for i := range s.window {
		s.window[i] = (1 - math.Cos(2*math.Pi*float64(i)/float64(size))) / 2
	}
	segments := (n + size - 1) / size
	for i := range segments {
		s.starts = append(s.starts, i*(n-size)/max(segments-1, 1))
	}
	return s
}

// bandEdges returns the ascending edges of the bands of bins 1 … top, see
// spectrum. Every band has a bin, the lowest two.
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

// measure computes the power spectrum of x, whose mean is given; a mean of NaN
// says that x cannot be transformed.
func (s *spectrum) measure(x []float32, mean float64) {
	for k := range s.power {
		s.power[k] = 0
	}
	var weight float64
	for _, start := range s.starts {
		segment := x[start:][:len(s.window)]
		for i, v := range segment {
			w := s.window[i]
			if v != v {
				s.tapped[i] = 0
				continue
			}
			s.tapped[i] = w * (float64(v) - mean)
			weight += w * w
		}
		s.fft.Coefficients(s.coeffs, s.tapped)
		for k, c := range s.coeffs {
			s.power[k] += real(c)*real(c) + imag(c)*imag(c)
		}
	}
	scale := 2 / (weight * float64(len(s.window))) // infinite without a sample: 0·∞ is NaN
	for k := range s.power {
		s.power[k] *= scale
	}
	s.power[len(s.power)-1] /= 2
}

func (s *spectrum) bandNames() []string {
	names := make([]string, len(s.edges)-1)
	for i := range names {
		names[i] = fmt.Sprintf("band%02d", i+1)
	}
	return names
}

func (s *spectrum) appendBands(dst []float32, _ float64) []float32 {
	for j, low := range s.edges[:len(s.edges)-1] {
		var p float64
		for _, v := range s.power[low+1 : s.edges[j+1]+1] {
			p += v
		}
		if p == 0 {
			p = math.NaN()
		}
		dst = append(dst, narrow(math.Log10(p)))
	}
	return dst
}

func (s *spectrum) appendCentroid(dst []float32, rate float64) []float32 {
	var p, moment float64
	for k, v := range s.power[1:] {
		p += v
		moment += v * float64(k+1)
	}
	return append(dst, narrow(moment/p*rate/float64(len(s.window))))
}
