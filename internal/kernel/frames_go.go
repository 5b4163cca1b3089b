package kernel

import "math"

var framesGo = frames{
	interleave: interleaveGo,
	extent:     extentGo,
	center:     centerGo,
	steps:      stepsGo,
	taper:      taperGo,
	power:      powerGo,
	energy:     energyGo,
	wavelet:    waveletGo,
	fft4:       fft4Go,
	fft2:       fft2Go,
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

func taperGo(dst, x []Frame, w []float32) {
	for i, w := range w {
		for c, v := range &x[i] {
			dst[i][c] = w * v
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

// fft4Go is a pass of radix 4 over runs of the given number of complex points.
func fft4Go(x, y []Frame, twiddles []float32, run int) {
	quarter := len(x) / 4
	for p := range len(twiddles) / 6 {
		w := twiddles[6*p:][:6]
		for q := range run {
			from, to := 2*(p*run+q), 2*(4*p*run+q)
			for c := range FrameLanes {
				ar, ai := x[from][c], x[from+1][c]
				br, bi := x[from+quarter][c], x[from+quarter+1][c]
				cr, ci := x[from+2*quarter][c], x[from+2*quarter+1][c]
				dr, di := x[from+3*quarter][c], x[from+3*quarter+1][c]
				acr, aci, bdr, bdi := ar+cr, ai+ci, br+dr, bi+di
				ar, ai, br, bi = ar-cr, ai-ci, br-dr, bi-di
				y[to][c], y[to+1][c] = acr+bdr, aci+bdi
				for r, z := range [3][2]float32{{ar + bi, ai - br}, {acr - bdr, aci - bdi}, {ar - bi, ai + br}} {
					wr, wi := w[2*r], w[2*r+1]
					at := to + 2*(r+1)*run
					y[at][c] = float32(z[0]*wr) - float32(z[1]*wi)
					y[at+1][c] = float32(z[1]*wr) + float32(z[0]*wi)
				}
			}
		}
	}
}

func fft2Go(x, y []Frame) {
	half := len(x) / 2
	for i := range half {
		for c := range FrameLanes {
			a, b := x[i][c], x[i+half][c]
			y[i][c], y[i+half][c] = a+b, a-b
		}
	}
}

// untangleGo makes of the transform z of even and odd samples, as real and
// imaginary parts, twice the result for all samples but for the numbers 0, n/2 and n.
func untangleGo(x, power, z []Frame, twiddles []float32) {
	n := len(z) / 2
	for k := 1; k < n/2; k++ {
		wr, wi := twiddles[2*k], twiddles[2*k+1]
		for c := range FrameLanes {
			zr, zi := z[2*k][c], z[2*k+1][c]
			yr, yi := z[2*(n-k)][c], z[2*(n-k)+1][c]
			er, ei := zr+yr, zi-yi
			or, oi := zi+yi, yr-zr
			tr := float32(or*wr) - float32(oi*wi)
			ti := float32(oi*wr) + float32(or*wi)
			ar, ai, br, bi := er+tr, ei+ti, er-tr, ti-ei
			x[2*k][c], x[2*k+1][c] = ar, ai
			x[2*(n-k)][c], x[2*(n-k)+1][c] = br, bi
			power[k][c] += float32(ar*ar) + float32(ai*ai)
			power[n-k][c] += float32(br*br) + float32(bi*bi)
		}
	}
}
