//go:build !noasm

package kernel

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
