// Package kernel holds the few hot loops of training and scoring: products of
// small matrices, the logistic function, Bernoulli sampling and the updates of
// the optimizers, all on float32.
//
// A family is one implementation of all of them. Family "go" is portable and
// is what the others are tested against. The family is chosen once, when the
// program starts, from what the processor can do.
//
// Matrices are dense and row-major. Lengths that do not agree are a defect of
// the caller and panic. Nothing here allocates, starts a goroutine or looks at
// values to skip work, so the time of a call depends on its shape only.
//
// # Bits
//
// Every element of a product is summed over the inner dimension in ascending
// order with one accumulator. A row of a product therefore does not depend on
// which other rows are in the call. Families may differ in the last bits of a
// product, because some round once where others round twice; everything else
// in this package returns the same bits in every family.
package kernel

// family is a table of kernels. Lengths were checked by the exported functions.
type family struct {
	name          string
	gemm          func(op Op, m, n, k int, a, b, bias, c []float32)
	sigmoid       func(x []float32)
	sigmoidGrad   func(d, y []float32)
	sample        func(s, p []float32, g *Lanes)
	sigmoidSample func(s, x []float32, g *Lanes)
	sumRows       func(dst, x []float32)
	residual      func(dst, x, y []float32) float32
	momentum      func(w, v, g []float32, s *MomentumStep)
	adam          func(w, m, v, g []float32, s *AdamStep)
}

var portable = family{
	name:          "go",
	gemm:          gemmGo,
	sigmoid:       sigmoidGo,
	sigmoidGrad:   sigmoidGradGo,
	sample:        sampleGo,
	sigmoidSample: sigmoidSampleGo,
	sumRows:       sumRowsGo,
	residual:      residualGo,
	momentum:      momentumGo,
	adam:          adamGo,
}

// active is the family in use.
var active = &portable

// Family returns the name of the family in use.
func Family() string { return active.name }

func check(ok bool, what string) {
	if !ok {
		panic("kernel: " + what)
	}
}
