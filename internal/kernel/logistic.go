package kernel

import "math"

// Sigmoid replaces every x by σ(x) = 1/(1+e⁻ˣ), with an absolute error below
// 2e-7. Arguments are taken as if in [-80, 80], so that no result is
// subnormal; NaN stays NaN.
func Sigmoid(x []float32) { active.sigmoid(x) }

// SigmoidGrad replaces every d by d·y·(1-y), where y are values of σ: the
// derivative of a loss by the arguments of σ from that by its values.
func SigmoidGrad(d, y []float32) {
	check(len(d) == len(y), "SigmoidGrad: lengths differ")
	active.sigmoidGrad(d, y)
}

// e^y is taken as 2^n·e^r with n the integer next to y/ln 2 and |r| ≤ ln(2)/2,
// and e^r as 1 + r + r²·P(r). Coefficients and the two parts of ln 2 are those
// of expf in the Cephes library (S. Moshier, 1989).
const (
	sigmoidMax = 80
	log2e      = 1.44269504088896341
	ln2Hi      = 0.693359375
	ln2Lo      = -2.12194440e-4
	expP0      = 1.9875691500e-4
	expP1      = 1.3981999507e-3
	expP2      = 8.3334519073e-3
	expP3      = 4.1665795894e-2
	expP4      = 1.6666665459e-1
	expP5      = 5.0000001201e-1
	roundMagic = 12582912 // 1.5·2²³: added to a float32, it leaves the nearest integer in the low bits
)

// The conversions of products below keep compilers from fusing them with the
// sum: all families then round alike.

func sigmoid(x float32) float32 {
	y := -x
	if y > sigmoidMax {
		y = sigmoidMax
	}
	if y < -sigmoidMax {
		y = -sigmoidMax
	}
	n := float32(y*log2e) + roundMagic
	exponent := math.Float32bits(n) << 23
	n -= roundMagic
	r := y - float32(n*ln2Hi)
	r -= float32(n * ln2Lo)
	p := float32(expP0)
	p = float32(p*r) + expP1
	p = float32(p*r) + expP2
	p = float32(p*r) + expP3
	p = float32(p*r) + expP4
	p = float32(p*r) + expP5
	e := float32(p*float32(r*r)) + r
	e++
	e = math.Float32frombits(math.Float32bits(e) + exponent)
	return 1 / (1 + e)
}

func sigmoidGo(x []float32) {
	for i, v := range x {
		x[i] = sigmoid(v)
	}
}

func sigmoidGradGo(d, y []float32) {
	y = y[:len(d)]
	for i, v := range y {
		d[i] *= v * (1 - v)
	}
}
