//go:build !noasm

package kernel

var framesAVX2 = frames{
	interleave: interleaveAVX2,
	extent:     extentAVX2,
	center:     centerAVX2,
	steps:      stepsAVX2,
	power:      powerAVX2,
	energy:     energyAVX2,
	wavelet:    waveletAVX2,
	fft4:       fft4AVX2,
	fft16:      fft16AVX2,
	taper16:    taper16AVX2,
	fft2:       fft2AVX2,
	untangle:   untangleAVX2,
}

var framesAVX512 = frames{
	interleave: interleaveAVX2,
	extent:     extentAVX512,
	center:     centerAVX512,
	steps:      stepsAVX512,
	power:      powerAVX512,
	energy:     energyAVX512,
	wavelet:    waveletAVX512,
	fft4:       fft4AVX512,
	fft16:      fft16AVX512,
	taper16:    taper16AVX512,
	fft2:       fft2AVX512,
	untangle:   untangleAVX512,
}

// interleaveBlock is how many samples of eight channels the assembly takes at a
// time.
const interleaveBlock = 8

func interleaveAVX2(dst []Frame, src [][]float32) {
	whole := len(dst) &^ (interleaveBlock - 1)
	for half := 0; half < 2 && whole > 0; half++ {
		var first [8]*float32
		for i := range first {
			first[i] = &src[min(8*half+i, len(src)-1)][0]
		}
		interleaveAVX(whole/interleaveBlock, &first, (*[8]float32)(dst[0][8*half:]))
	}
	interleaveFrom(dst, src, whole)
}

// The functions below are generated assembly.

//go:noescape
func interleaveAVX(blocks int, src *[8]*float32, dst *[8]float32)

//go:noescape
func extentAVX2(x []Frame, e *Extent)

//go:noescape
func extentAVX512(x []Frame, e *Extent)

//go:noescape
func centerAVX2(x []Frame, c *Center)

//go:noescape
func centerAVX512(x []Frame, c *Center)

//go:noescape
func stepsAVX2(x []Frame, s *Steps)

//go:noescape
func stepsAVX512(x []Frame, s *Steps)

//go:noescape
func powerAVX2(dst, z []Frame)

//go:noescape
func powerAVX512(dst, z []Frame)

//go:noescape
func energyAVX2(x []Frame, sum *Frame)

//go:noescape
func energyAVX512(x []Frame, sum *Frame)

//go:noescape
func waveletAVX2(low, high, x []Frame)

//go:noescape
func waveletAVX512(low, high, x []Frame)

//go:noescape
func fft4AVX2(x, y []Frame, twiddles []float32, run int)

//go:noescape
func fft4AVX512(x, y []Frame, twiddles []float32, run int)

//go:noescape
func fft16AVX2(x, y []Frame, first, second []float32, run int)

//go:noescape
func taper16AVX2(x, y []Frame, first, second, w []float32)

//go:noescape
func fft2AVX2(x, y []Frame)

//go:noescape
func fft16AVX512(x, y []Frame, first, second []float32, run int)

//go:noescape
func taper16AVX512(x, y []Frame, first, second, w []float32)

//go:noescape
func fft2AVX512(x, y []Frame)

//go:noescape
func untangleAVX2(band, power, z []Frame, twiddles []float32)

//go:noescape
func untangleAVX512(band, power, z []Frame, twiddles []float32)
