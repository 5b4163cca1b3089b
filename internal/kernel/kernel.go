// Package kernel holds the few hot loops of training and scoring: products of
// small matrices, the logistic function, Bernoulli sampling, the updates of the
// optimizers and the counting of decisions, all on float32, and logarithms of
// float64. On them stands [Tally], which counts, for many vectors of class weights, the
// rows of each class that are decided right: what a search for costs does
// thousands of times on the same posteriors.
//
// A family is one implementation of all loops. Family "go" is portable and
// is what the others are tested against: "avx2" and "avx512", assembly that gen
// writes. The best that the processor can run is chosen when the program
// starts, unless the environment variable FLANK_KERNEL names another. Programs
// built with the tag noasm, or for other processors, have "go" only.
//
// Matrices are dense and row-major. Lengths that do not agree are a defect of
// the caller and panic. No loop keeps its arguments, starts a goroutine or
// looks at values to skip work, so the time of a call depends on its shape only.
// Assembly cannot be preempted: callers with more than a few thousand rows hand
// them over in parts.
//
// # Bits
//
// Every element of a product is summed over the inner dimension in ascending
// order with one accumulator, or with one for each of 16 lanes where AVX-512 has
// a column or two over. Which of the two depends on Op, the inner dimension and
// the width only. A row of a product therefore does not depend on which other
// rows are in the call. Families may differ in the last bits of a product, because
// of these lanes and because some round once where others round twice; everything
// else in this package returns the same bits in every family.
//
// # Testing
//
// Tests run every family of the processor at hand. Others run in an emulator:
//
//	GOARCH=arm64 go test -exec qemu-aarch64 ./internal/kernel
//	go test -exec 'qemu-x86_64 -cpu Haswell' ./internal/kernel
package kernel

// family is a table of kernels. Lengths were checked by the exported functions.
type family struct {
	name        string
	gemm        func(op Op, m, n, k int, a, b, bias, c []float32)
	sigmoid     func(x []float32)
	sigmoidGrad func(d, y []float32)
	sample      func(s, p []float32, g *Lanes)
	negate      func(x []float32)
	addRows     func(dst, x []float32)
	subRows     func(dst, x []float32)
	squares     func(x, y []float32) float32
	judge       func(p, w []float32, class int) (right int, share float32)
	momentum    func(w, v, g []float32, s *MomentumStep)
	adam        func(w, m, v, g []float32, s *AdamStep)
	log         func(dst, x []float64)
	frames      *frames
}

var portable = family{
	name:        "go",
	gemm:        gemmGo,
	sigmoid:     sigmoidGo,
	sigmoidGrad: sigmoidGradGo,
	sample:      sampleGo,
	negate:      negateGo,
	addRows:     addRowsGo,
	subRows:     subRowsGo,
	squares:     squaresGo,
	judge:       judgeGo,
	momentum:    momentumGo,
	adam:        adamGo,
	log:         logGo,
	frames:      &framesGo,
}

func check(ok bool, what string) {
	if !ok {
		panic("kernel: " + what)
	}
}
