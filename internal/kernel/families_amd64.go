//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

//go:generate go run ./gen

// families returns the families that this processor can run, the best first.
func families() []*family {
	all := []*family{&portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append([]*family{&familyAVX2}, all...)
		if cpu.X86.HasAVX512F {
			all = append([]*family{&familyAVX512}, all...)
		}
	}
	return all
}

var familyAVX2 = family{
	name:        "avx2",
	gemm:        func(op Op, m, n, k int, a, b, bias, c []float32) { gemmAVX2.product(op, m, n, k, a, b, bias, c) },
	sigmoid:     sigmoidAVX2,
	sigmoidGrad: sigmoidGradAVX2,
	sample:      sampleAVX2,
	negate:      negateAVX2,
	addRows:     addRowsAVX2,
	subRows:     subRowsAVX2,
	squares:     squaresAVX2,
	judge:       judgeAVX2,
	momentum:    momentumAVX2,
	adam:        adamAVX2,
	log:         logAVX2,
	frames:      &framesAVX2,
}

var familyAVX512 = family{
	name:        "avx512",
	gemm:        func(op Op, m, n, k int, a, b, bias, c []float32) { gemmAVX512.product(op, m, n, k, a, b, bias, c) },
	sigmoid:     sigmoidAVX512,
	sigmoidGrad: sigmoidGradAVX512,
	sample:      sampleAVX512,
	negate:      negateAVX512,
	addRows:     addRowsAVX512,
	subRows:     subRowsAVX512,
	squares:     squaresAVX512,
	judge:       judgeAVX512,
	momentum:    momentumAVX512,
	adam:        adamAVX512,
	log:         logAVX512,
	frames:      &framesAVX512,
}

// The functions below are generated assembly.

//go:noescape
func sigmoidAVX2(x []float32)

//go:noescape
func sigmoidAVX512(x []float32)

//go:noescape
func sigmoidGradAVX2(d, y []float32)

//go:noescape
func sigmoidGradAVX512(d, y []float32)

//go:noescape
func sampleAVX2(s, p []float32, lanes *Lanes)

//go:noescape
func sampleAVX512(s, p []float32, lanes *Lanes)

//go:noescape
func negateAVX2(x []float32)

//go:noescape
func addRowsAVX2(dst, x []float32)

//go:noescape
func subRowsAVX2(dst, x []float32)

//go:noescape
func negateAVX512(x []float32)

//go:noescape
func addRowsAVX512(dst, x []float32)

//go:noescape
func subRowsAVX512(dst, x []float32)

//go:noescape
func squaresAVX2(x, y []float32) float32

//go:noescape
func squaresAVX512(x, y []float32) float32

//go:noescape
func judgeAVX2(p, w []float32, class int) (right int, share float32)

//go:noescape
func momentumAVX2(w, v, g []float32, s *MomentumStep)

//go:noescape
func judgeAVX512(p, w []float32, class int) (right int, share float32)

//go:noescape
func momentumAVX512(w, v, g []float32, s *MomentumStep)

//go:noescape
func adamAVX2(w, m, v, g []float32, s *AdamStep)

//go:noescape
func adamAVX512(w, m, v, g []float32, s *AdamStep)

//go:noescape
func logAVX2(dst, x []float64)

//go:noescape
func logAVX512(dst, x []float64)
