package kernel

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
)

func randomFrames(rng *rand.Rand, n int) []Frame {
	x := make([]Frame, n)
	for i := range x {
		for c := range x[i] {
			x[i][c] = float32(rng.NormFloat64())
		}
	}
	return x
}

// onFrames calls every kernel on frames, of n frames each, and returns all that
// they write.
func onFrames(t *testing.T, f *frames, rng *rand.Rand, n int) map[string][]Frame {
	var channels [][]float32
	for range 1 + rng.IntN(FrameLanes) {
		x := make([]float32, n)
		for i := range x {
			x[i] = rng.Float32()
		}
		channels = append(channels, x)
	}
	out := map[string][]Frame{}
	x := randomFrames(rng, n)
	out["interleave"] = make([]Frame, n)
	f.interleave(out["interleave"], channels)

	e := Extent{Sum: randomFrames(rng, 1)[0]}
	f.extent(x, &e)
	out["extent"] = []Frame{e.Sum, e.Min, e.Max}

	c := Center{Offset: randomFrames(rng, 1)[0], Gain: randomFrames(rng, 1)[0], D: randomFrames(rng, 1)[0]}
	centered := append([]Frame(nil), x...)
	f.center(centered, &c)
	out["center"] = append(centered, c.D, c.D2, c.D3, c.D4, c.Abs, c.SqrtOfAbs)

	s := Steps{Last: randomFrames(rng, 1)[0], LastStep: randomFrames(rng, 1)[0], Count: randomFrames(rng, 1)[0]}
	s.Crossings[3] = 7
	f.steps(x, &s)
	var crossings Frame
	for i, v := range s.Crossings {
		crossings[i] = float32(v)
	}
	out["steps"] = []Frame{s.Last, s.LastStep, crossings, s.Step2, s.Bend2, s.Count, s.Moment}

	out["power"] = make([]Frame, n/2+1)
	f.power(out["power"][:n/2], x[:n/2*2])

	sum := randomFrames(rng, 1)
	f.energy(x, &sum[0])
	out["energy"] = sum

	out["wavelet"] = make([]Frame, 2*n+1)
	f.wavelet(out["wavelet"][:n], out["wavelet"][n:2*n], randomFrames(rng, 2*n+WaveletTaps-2))

	onTransforms(t, f, rng, out)
	return out
}

// onTransforms calls the kernels of transforms, and holds two passes at once to the same passes one by one.
func onTransforms(t *testing.T, f *frames, rng *rand.Rand, out map[string][]Frame) {
	points := 8 << rng.IntN(5)
	plan := NewFFT(points)
	z := randomFrames(rng, 2*points)
	w := make([]float32, 2*points)
	tapered := slices.Clone(z)
	for i := range w {
		w[i] = rng.Float32()
		for c := range FrameLanes {
			tapered[i][c] *= w[i]
		}
	}
	twoPasses := func(pass, run int, x []Frame, at func(y []Frame)) {
		var once, twice, both = make([]Frame, 2*points), make([]Frame, 2*points), make([]Frame, 2*points+1)
		f.fft4(x, once, plan.passes[pass], run)
		f.fft4(once, twice, plan.passes[pass+1], 4*run)
		if at(both[:2*points]); !slices.Equal(both[:2*points], twice) || both[2*points] != (Frame{}) {
			t.Fatalf("two passes at once of %d points from pass %d on are not two passes one by one", points, pass)
		}
	}
	for pass, run := 0, 1; pass < len(plan.passes); pass, run = pass+1, 4*run {
		y := make([]Frame, 2*points+1)
		f.fft4(z, y[:2*points], plan.passes[pass], run)
		out[fmt.Sprint("fft4 pass ", pass)] = y
		if pass+1 < len(plan.passes) {
			twoPasses(pass, run, z, func(y []Frame) { f.fft16(z, y, plan.passes[pass], plan.passes[pass+1], run) })
		}
	}
	if len(plan.passes) > 1 {
		twoPasses(0, 1, tapered, func(y []Frame) { f.taper16(z, y, plan.passes[0], plan.passes[1], w) })
	}
	out["fft8"] = make([]Frame, 2*points+1)
	f.fft8(z, out["fft8"][:2*points], NewFFT(8).passes[0])
	band, power := make([]Frame, 2*rng.IntN(points/2)+1), randomFrames(rng, points+2)
	f.untangle(band[:len(band)-1], power[:points+1], z, plan.untangle)
	out["untangle"] = append(band, power...)
}

// Every family returns the same bits and writes nothing outside its frames, of
// which there may be none.
func TestFramesAgreeToTheBit(t *testing.T) {
	for seed := range uint64(60) {
		n := int(seed) % 41
		want := onFrames(t, portable.frames, rand.New(rand.NewPCG(seed, 1)), n)
		for _, f := range families() {
			got := onFrames(t, f.frames, rand.New(rand.NewPCG(seed, 1)), n)
			for name, frames := range want {
				for i := range frames {
					for c, v := range frames[i] {
						if math.Float32bits(got[name][i][c]) != math.Float32bits(v) {
							t.Fatalf("%s, %s, %d frames: frame %d, lane %d is %v, want %v", f.name, name, n, i, c, got[name][i][c], v)
						}
					}
				}
			}
		}
	}
}

func TestFFT(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	eachFamily(t, func(t *testing.T) {
		for n := 4; n <= 2048; n *= 2 {
			f := NewFFT(n)
			in := randomFrames(rng, 2*n)
			a, b := make([]Frame, 2*n), make([]Frame, 2*n)
			out := slices.Clone(f.Complex(in, a, b))
			band, power := make([]Frame, n-2), make([]Frame, n+1)
			power[1][5] = 1000
			x := f.Real(band, power, in, nil, a, b)
			for c := range FrameLanes {
				z, r := make([]complex128, n), make([]float64, 2*n)
				for i := range z {
					z[i] = complex(float64(in[2*i][c]), float64(in[2*i+1][c]))
				}
				for i := range r {
					r[i] = float64(in[i][c])
				}
				tolerance := 3e-7 * math.Sqrt(float64(n)) * math.Log2(float64(4*n))
				for k, want := range fourier.NewCmplxFFT(n).Coefficients(nil, z) {
					if got := complex(float64(out[2*k][c]), float64(out[2*k+1][c])); cmplx.Abs(got-want) > tolerance {
						t.Fatalf("%d points, lane %d: Z[%d] = %v, want %v", n, c, k, got, want)
					}
				}
				for k, want := range fourier.NewFFT(2*n).Coefficients(nil, r) {
					re, im := f.Bin(x, k, c)
					if at := 2*k - n + len(band); at >= 0 && at < len(band) && (band[at][c] != re || band[at+1][c] != im) {
						t.Fatalf("%d real points, lane %d: the band has %v + %vi for X[%d], and Bin %v + %vi", 2*n, c, band[at][c], band[at+1][c], k, re, im)
					}
					got := complex(float64(re), float64(im))
					if cmplx.Abs(got-2*want) > 4*tolerance {
						t.Fatalf("%d real points, lane %d: X[%d] = %v, want twice %v", 2*n, c, k, got, want)
					}
					p := real(got)*real(got) + imag(got)*imag(got)
					if k == 1 && c == 5 {
						p += 1000
					}
					if math.Abs(float64(power[k][c])-p) > 1e-6*p+1e-6 {
						t.Fatalf("%d real points, lane %d: power %d is %v, want %v", 2*n, c, k, power[k][c], p)
					}
				}
			}
		}
	})
}

// Weights of one half take all values to a half, without rounding.
func TestTaperedFFT(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	eachFamily(t, func(t *testing.T) {
		for n := 64; n <= 2048; n *= 2 {
			f, in := NewFFT(n), randomFrames(rng, 2*n)
			of := func(w []float32) []Frame {
				return f.Real(nil, make([]Frame, n+1), in, w, make([]Frame, 2*n), make([]Frame, 2*n))
			}
			want, got := of(nil), of(slices.Repeat([]float32{0.5}, 2*n))
			for i := range want {
				for c, v := range want[i] {
					if got[i][c] != v/2 {
						t.Fatalf("%d real points, half of them: frame %d, lane %d is %v, want %v", 2*n, i, c, got[i][c], v/2)
					}
				}
			}
		}
	})
}

// The filters are orthonormal: they keep the energy of what is periodic, and the
// high pass has four vanishing moments.
func TestWaveletIsOrthonormal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n = 512
	x := randomFrames(rng, n)
	low, high := make([]Frame, n/2), make([]Frame, n/2)
	SplitWavelet(low, high, append(x, x[:WaveletTaps-2]...))
	var before, after Frame
	AddEnergy(x, &before)
	AddEnergy(low, &after)
	AddEnergy(high, &after)
	for c := range before {
		if math.Abs(float64(before[c]-after[c])) > 1e-5*float64(before[c]) {
			t.Errorf("lane %d: energy %v becomes %v", c, before[c], after[c])
		}
	}
	cubic := make([]Frame, 2+WaveletTaps-2)
	for i := range cubic {
		u := float32(i) / 4
		cubic[i][0] = 1 + u - 2*u*u + u*u*u
	}
	SplitWavelet(low[:1], high[:1], cubic)
	if math.Abs(float64(high[0][0])) > 1e-6 {
		t.Errorf("a cubic leaves %v in the high pass", high[0][0])
	}
}

// A second of the gun drill's twelve accelerations.
func BenchmarkFrames(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 20_000
	var channels [][]float32
	for range 12 {
		x := make([]float32, n)
		for i := range x {
			x[i] = rng.Float32()
		}
		channels = append(channels, x)
	}
	x, y := make([]Frame, n), make([]Frame, n)
	f := NewFFT(2048)
	bins, power := make([]Frame, 1024), make([]Frame, 2049)
	z := make([]Frame, 4096)
	var e Extent
	var c Center
	var s Steps
	w := make([]float32, 4096)
	for name, call := range map[string]func(){
		"interleave": func() { Interleave(x, channels) },
		"extent":     func() { e.Add(x) },
		"center":     func() { c = Center{Gain: x[0]}; c.Apply(y) },
		"steps":      func() { s.Add(x) },
		"wavelet":    func() { SplitWavelet(y[:9990], y[9990:19980], x[:19986]) },
		"fft 4096":   func() { f.Real(bins, power, x[:4096], w, y[:4096], z) },
	} {
		b.Run(name, func(b *testing.B) {
			eachFamilyBench(b, func(b *testing.B) {
				for b.Loop() {
					call()
				}
			})
		})
	}
}
