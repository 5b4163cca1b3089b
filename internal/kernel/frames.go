package kernel

import (
	"fmt"
	"math"
)

// FrameLanes is the number of channels in a frame.
const FrameLanes = 16

// Frame is one sample of up to 16 channels side by side, as in audio. Work on
// channels side by side needs no shuffles, for any work along time. Two
// frames in a row are one complex number of every channel: real parts, then
// imaginary parts. A lane never mixes with another.
type Frame [FrameLanes]float32

// frames is the table of kernels on frames. Every family returns the same bits.
type frames struct {
	interleave func(dst []Frame, src [][]float32)
	extent     func(x []Frame, e *Extent)
	center     func(x []Frame, c *Center)
	steps      func(x []Frame, s *Steps)
	power      func(dst, z []Frame)
	energy     func(x []Frame, sum *Frame)
	wavelet    func(low, high, x []Frame)
	fft4       func(x, y []Frame, twiddles []float32, run int)
	fft16      func(x, y []Frame, first, second []float32, run int)
	taper16    func(x, y []Frame, first, second, w []float32)
	fft8       func(x, y []Frame, twiddles []float32)
	untangle   func(band, power, z []Frame, twiddles []float32)
}

// Interleave makes frames of 1 to 16 channels, each as long as dst: lane c of
// dst[i] is src[c][i], and the last channel again in lanes without one.
func Interleave(dst []Frame, src [][]float32) {
	check(0 < len(src) && len(src) <= FrameLanes, "Interleave: 1 to 16 channels")
	for _, x := range src {
		check(len(x) == len(dst), "Interleave: channels differ in length")
	}
	active.frames.interleave(dst, src)
}

// Extent is what a pass over frames finds: sums, least and greatest samples.
type Extent struct{ Sum, Min, Max Frame }

// Add adds x to e. In a lane with a NaN, Sum is NaN and the rest is undefined.
func (e *Extent) Add(x []Frame) { active.frames.extent(x, e) }

// Center is the centre and the scale of every lane, and the sums of powers of
// the samples d = (x − Offset)·Gain about it and of a = |x·Gain|.
type Center struct {
	Offset, Gain   Frame
	D, D2, D3, D4  Frame // Σd, Σd², Σd³, Σd⁴
	Abs, SqrtOfAbs Frame // Σa, Σ√a
}

// Apply replaces x by d and adds its powers to c.
func (c *Center) Apply(x []Frame) { active.frames.center(x, c) }

// Steps is what a pass over the differences between frames finds. Last and
// LastStep are the frame before the first, and the difference that led to it.
type Steps struct {
	Last, LastStep Frame
	Crossings      [FrameLanes]int32 // how often the sign changed; zero counts as positive
	Step2, Bend2   Frame             // sums of squares of first and second differences
	Count, Moment  Frame             // frames so far, and Σ Count·x
}

// Add adds x to s.
func (s *Steps) Add(x []Frame) { active.frames.steps(x, s) }

// Power stores |z|² in dst; z is complex, so twice as long.
func Power(dst, z []Frame) {
	check(2*len(dst) == len(z), "Power: lengths differ")
	active.frames.power(dst, z)
}

// AddEnergy adds the sum of squares of x to sum.
func AddEnergy(x []Frame, sum *Frame) { active.frames.energy(x, sum) }

// WaveletTaps is how many samples a wavelet filter spans.
const WaveletTaps = 8

// db4 is the scaling filter of the Daubechies wavelet with four vanishing
// moments.
//
// Source: I. Daubechies, "Ten Lectures on Wavelets", SIAM 1992, table 6.1.
var db4 = [WaveletTaps]float32{
	0.23037781330885523, 0.7148465705525415, 0.6308807679295904, -0.02798376941698385,
	-0.18703481171888114, 0.030841381835986965, 0.032883011666982945, -0.010597401784997278,
}

// SplitWavelet splits x by the filters of db4, h:
//
//	low[i]  = Σ_t h[t]·x[2i+t]
//	high[i] = Σ_t (−1)^t·h[7−t]·x[2i+t],   0 ≤ t < 8.
//
// x has 6 frames more than low and high together have.
func SplitWavelet(low, high, x []Frame) {
	check(len(low) == len(high) && len(x) == 2*len(low)+WaveletTaps-2, "SplitWavelet: lengths differ")
	active.frames.wavelet(low, high, x)
}

// FFT is the discrete Fourier transform of frames, X[k] = Σ x[i]·e^(−2πi·ik/n).
// It may be used by several goroutines.
type FFT struct {
	n        int // complex points
	passes   [][]float32
	untangle []float32
}

// NewFFT returns a transform of n complex points, a power of two from 4 on, or
// of 2n real ones.
func NewFFT(n int) *FFT {
	check(n >= 4 && n&(n-1) == 0, fmt.Sprintf("NewFFT: %d points", n))
	f := &FFT{n: n}
	turn := func(to []float32, k, n int) []float32 {
		s, c := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
		return append(to, float32(c), float32(s))
	}
	for m := n; m >= 4; m /= 4 {
		var t []float32
		for k := range m / 4 {
			for r := 1; r <= 3; r++ {
				t = turn(t, k*r, m)
			}
		}
		f.passes = append(f.passes, t)
	}
	for k := range n / 2 {
		f.untangle = turn(f.untangle, k, 2*n)
	}
	return f
}

// Complex transforms the n complex points in x, which it keeps, and returns them in a or b; both are overwritten. It is
// Stockham's algorithm in radix 4.
func (f *FFT) Complex(x, a, b []Frame) []Frame { return f.transform(x, nil, a, b) }

func (f *FFT) transform(x []Frame, w []float32, a, b []Frame) []Frame {
	check(len(x) == 2*f.n && len(a) == 2*f.n && len(b) == 2*f.n, "FFT: lengths differ")
	kernels, run, passes := active.frames, 1, f.passes
	if w != nil {
		check(f.n >= 64 && len(w) == len(x), "FFT: weights of another length, or of less than 64 points")
		kernels.taper16(x, a, passes[0], passes[1], w)
		x, a, b, run, passes = a, b, a, 16, passes[2:]
	}
	for ; len(passes) > 0; x, a, b = a, b, a {
		left := f.n / run
		if run > 1 && left <= 16 {
			a = x // what is last reads and writes the same places
		}
		switch {
		case left == 8:
			kernels.fft8(x, a, passes[0])
			passes = nil
		case left == 4 || left == 32:
			kernels.fft4(x, a, passes[0], run)
			run, passes = 4*run, passes[1:]
		default:
			kernels.fft16(x, a, passes[0], passes[1], run)
			run, passes = 16*run, passes[2:]
		}
	}
	return x
}

// Real transforms the 2n real points in x, times weights w unless that is nil, and adds the squared absolute values of
// twice their transform to power, n+1 frames. It stores twice the complex numbers before n/2 in band, as many as that
// holds. [FFT.Bin] finds others in what it returns, which is a or b; both are overwritten.
func (f *FFT) Real(band, power, x []Frame, w []float32, a, b []Frame) []Frame {
	check(len(band) < f.n && len(band)%2 == 0 && len(power) == f.n+1, "FFT: lengths differ")
	z := f.transform(x, w, a, b)
	active.frames.untangle(band, power, z, f.untangle)
	for c := range FrameLanes {
		for _, k := range [3]int{0, f.n / 2, f.n} {
			re, im := f.Bin(z, k, c)
			power[k][c] += float32(re*re) + float32(im*im)
		}
	}
	return z
}

// Bin returns twice the number k of lane c, 0 to n, from what Real returned.
func (f *FFT) Bin(z []Frame, k, c int) (re, im float32) {
	switch n := f.n; {
	case k == 0:
		return 2 * (z[0][c] + z[1][c]), 0
	case k < n/2:
		re, im, _, _ = untangled(z, f.untangle, k, c)
	case k == n/2:
		return 2 * z[n][c], -2 * z[n+1][c]
	case k < n:
		_, _, re, im = untangled(z, f.untangle, n-k, c)
	default:
		return 2 * (z[0][c] - z[1][c]), 0
	}
	return re, im
}
