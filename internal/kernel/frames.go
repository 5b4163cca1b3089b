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
	taper      func(dst, x []Frame, w []float32)
	power      func(dst, z []Frame)
	energy     func(x []Frame, sum *Frame)
	wavelet    func(low, high, x []Frame)
	fft4       func(x, y []Frame, twiddles []float32, run int)
	fft16      func(x, y []Frame, first, second []float32, run int)
	fft2       func(x, y []Frame)
	untangle   func(x, power, z []Frame, twiddles []float32)
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

// Taper stores w·x in dst, which may be x; all are of one length.
func Taper(dst, x []Frame, w []float32) {
	check(len(dst) == len(x) && len(x) == len(w), "Taper: lengths differ")
	active.frames.taper(dst, x, w)
}

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

// Complex transforms the n complex points in a and returns them, which is
// either a or b; the other is overwritten. It is Stockham's algorithm in radix 4.
func (f *FFT) Complex(a, b []Frame) []Frame {
	check(len(a) == 2*f.n && len(b) == 2*f.n, "FFT: lengths differ")
	run, left := 1, f.n
	for p := f.passes; len(p) > 0; a, b = b, a {
		if len(p) == 1 {
			active.frames.fft4(a, b, p[0], run)
			p, run, left = p[1:], 4*run, left/4
		} else {
			active.frames.fft16(a, b, p[0], p[1], run)
			p, run, left = p[2:], 16*run, left/16
		}
	}
	if left == 2 {
		active.frames.fft2(a, b)
		return b
	}
	return a
}

// Real transforms the 2n real points in a, stores twice their transform in x,
// complex numbers 0 to n, and adds its squared absolute values to power, n+1
// frames. It overwrites a and b, which are 2n frames each.
func (f *FFT) Real(x, power, a, b []Frame) {
	n := f.n
	check(len(x) == 2*n+2 && len(power) == n+1, "FFT: lengths differ")
	z := f.Complex(a, b)
	active.frames.untangle(x, power, z, f.untangle)
	for c := range FrameLanes {
		re, im := z[0][c], z[1][c]
		x[0][c], x[1][c] = 2*(re+im), 0
		x[2*n][c], x[2*n+1][c] = 2*(re-im), 0
		x[n][c], x[n+1][c] = 2*z[n][c], -2*z[n+1][c]
		for _, k := range [3]int{0, n / 2, n} {
			power[k][c] += float32(x[2*k][c]*x[2*k][c]) + float32(x[2*k+1][c]*x[2*k+1][c])
		}
	}
}
