package kernel

import "math"

var framesGo = frames{
	interleave: interleaveGo,
	extent:     extentGo,
	center:     centerGo,
	steps:      stepsGo,
	power:      powerGo,
	energy:     energyGo,
	wavelet:    waveletGo,
	fft4:       fft4Go,
	fft16:      fft16Go,
	taper16:    taper16Go,
	fft8:       fft8Go,
	untangle:   untangleGo,
}

// Products are converted so that no compiler fuses them with a sum: every
// family rounds twice.

func interleaveGo(dst []Frame, src [][]float32) { interleaveFrom(dst, src, 0) }

// interleaveFrom makes the frames from the given one on.
func interleaveFrom(dst []Frame, src [][]float32, from int) {
	for lane := range FrameLanes {
		x := src[min(lane, len(src)-1)]
		for i := from; i < len(dst); i++ {
			dst[i][lane] = x[i]
		}
	}
}

func extentGo(x []Frame, e *Extent) {
	for i := range x {
		for c, v := range &x[i] {
			e.Sum[c] += v
			if v < e.Min[c] {
				e.Min[c] = v
			}
			if v > e.Max[c] {
				e.Max[c] = v
			}
		}
	}
}

func centerGo(x []Frame, s *Center) {
	for i := range x {
		for c, v := range &x[i] {
			a := float32(math.Abs(float64(float32(v * s.Gain[c]))))
			s.Abs[c] += a
			s.SqrtOfAbs[c] += float32(math.Sqrt(float64(a)))
			d := float32((v - s.Offset[c]) * s.Gain[c])
			x[i][c] = d
			d2 := float32(d * d)
			s.D[c] += d
			s.D2[c] += d2
			s.D3[c] += float32(d2 * d)
			s.D4[c] += float32(d2 * d2)
		}
	}
}

func stepsGo(x []Frame, s *Steps) {
	for i := range x {
		for c, v := range &x[i] {
			step := v - s.Last[c]
			bend := step - s.LastStep[c]
			s.Crossings[c] += int32((math.Float32bits(v) ^ math.Float32bits(s.Last[c])) >> 31)
			s.Step2[c] += float32(step * step)
			s.Bend2[c] += float32(bend * bend)
			s.Moment[c] += float32(s.Count[c] * v)
			s.Count[c]++
			s.Last[c], s.LastStep[c] = v, step
		}
	}
}

func powerGo(dst, z []Frame) {
	for i := range dst {
		for c := range FrameLanes {
			re, im := z[2*i][c], z[2*i+1][c]
			dst[i][c] = float32(re*re) + float32(im*im)
		}
	}
}

func energyGo(x []Frame, sum *Frame) {
	for i := range x {
		for c, v := range &x[i] {
			sum[c] += float32(v * v)
		}
	}
}

func waveletGo(low, high, x []Frame) {
	for i := range low {
		v := (*[WaveletTaps]Frame)(x[2*i:])
		for c := range FrameLanes {
			lo, hi := float32(db4[0]*v[0][c]), float32(db4[7]*v[0][c])
			for t := 1; t < WaveletTaps; t++ {
				lo += float32(db4[t] * v[t][c])
				if t%2 == 0 {
					hi += float32(db4[7-t] * v[t][c])
				} else {
					hi -= float32(db4[7-t] * v[t][c])
				}
			}
			low[i][c], high[i][c] = lo, hi
		}
	}
}

// butterfly is one of radix 4, of numbers that lie some distance apart, whose results but the first are turned.
func butterfly(x []Frame, from int, y []Frame, to int, w []float32) {
	at := func(x []Frame, i int) *[2]Frame { return (*[2]Frame)(x[2*i:]) }
	a, b, c, d := at(x, 0), at(x, from), at(x, 2*from), at(x, 3*from)
	y0, y1, y2, y3 := at(y, 0), at(y, to), at(y, 2*to), at(y, 3*to)
	w = w[:6]
	for l := range FrameLanes {
		ar, ai, br, bi, cr, ci, dr, di := a[0][l], a[1][l], b[0][l], b[1][l], c[0][l], c[1][l], d[0][l], d[1][l]
		acr, aci, bdr, bdi := ar+cr, ai+ci, br+dr, bi+di
		ar, ai, br, bi = ar-cr, ai-ci, br-dr, bi-di
		y0[0][l], y0[1][l] = acr+bdr, aci+bdi
		y1[0][l], y1[1][l] = turn(ar+bi, ai-br, w[0], w[1])
		y2[0][l], y2[1][l] = turn(acr-bdr, aci-bdi, w[2], w[3])
		y3[0][l], y3[1][l] = turn(ar-bi, ai+br, w[4], w[5])
	}
}

func turn(re, im, wr, wi float32) (float32, float32) {
	return float32(re*wr) - float32(im*wi), float32(im*wr) + float32(re*wi)
}

// fft4Go is a pass of radix 4 over runs of the given number of complex points.
func fft4Go(x, y []Frame, twiddles []float32, run int) {
	for p := range len(twiddles) / 6 {
		for q := range run {
			butterfly(x[2*(p*run+q):], len(x)/8, y[2*(4*p*run+q):], run, twiddles[6*p:])
		}
	}
}

// fft16Go is two such passes at once, with the twiddles of each.
func fft16Go(x, y []Frame, first, second []float32, run int) {
	for p := range len(second) / 6 {
		for q := range run {
			butterfly16(x[2*(p*run+q):], len(x)/32, y[2*(16*p*run+q):], run, first[6*p:], len(second), second[6*p:])
		}
	}
}

// butterfly16 is the butterflies of two passes; twiddles of the first lie apart.
func butterfly16(x []Frame, from int, y []Frame, to int, first []float32, apart int, second []float32) {
	var between [32]Frame
	for i := range 4 {
		butterfly(x[2*i*from:], 4*from, between[2*i:], 4, first[i*apart:])
	}
	for i := range 4 {
		butterfly(between[8*i:], 1, y[2*i*to:], 4*to, second)
	}
}

// taper16Go is the first two passes at once, over w·x.
func taper16Go(x, y []Frame, first, second, w []float32) {
	var tapered [32]Frame
	for p := range len(second) / 6 {
		for i := range tapered {
			at := 2*p + i/2*len(x)/16 + i%2
			for c, v := range &x[at] {
				tapered[i][c] = w[at] * v
			}
		}
		butterfly16(tapered[:], 1, y[32*p:], 1, first[6*p:], len(second), second[6*p:])
	}
}

// fft8Go is the last two passes at once, of radix 4 and 2.
func fft8Go(x, y []Frame, twiddles []float32) {
	var between [16]Frame
	eighth := len(x) / 8
	for q := 0; q < eighth; q += 2 {
		butterfly(x[q:], eighth, between[:], 1, twiddles)
		butterfly(x[q+eighth:], eighth, between[8:], 1, twiddles[6:])
		for i := range 8 {
			to := q + i/2*eighth + i%2
			for c, a := range &between[i] {
				b := between[8+i][c]
				y[to][c], y[to+4*eighth][c] = a+b, a-b
			}
		}
	}
}

// untangleGo makes of the transform z of even and odd samples, as real and imaginary parts, twice the result for all
// samples: its power but for the numbers 0, n/2 and n, and the numbers before n/2 that band has room for.
func untangleGo(band, power, z []Frame, twiddles []float32) {
	n := len(z) / 2
	for k := 1; k < n/2; k++ {
		for c := range FrameLanes {
			ar, ai, br, bi := untangled(z, twiddles, k, c)
			if i := 2*k - n + len(band); i >= 0 {
				band[i][c], band[i+1][c] = ar, ai
			}
			power[k][c] += float32(ar*ar) + float32(ai*ai)
			power[n-k][c] += float32(br*br) + float32(bi*bi)
		}
	}
}

// untangled returns the numbers k and n − k of lane c.
func untangled(z []Frame, twiddles []float32, k, c int) (ar, ai, br, bi float32) {
	zr, zi := z[2*k][c], z[2*k+1][c]
	yr, yi := z[len(z)-2*k][c], z[len(z)-2*k+1][c]
	er, ei := zr+yr, zi-yi
	tr, ti := turn(zi+yi, yr-zr, twiddles[2*k], twiddles[2*k+1])
	return er + tr, ei + ti, er - tr, ti - ei
}
