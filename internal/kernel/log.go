package kernel

import "math"

// Log stores ln x in dst, in every family and on every processor the bits that
// [math.Log] has on amd64. dst and x are apart, and of one length.
func Log(dst, x []float64) {
	check(len(dst) == len(x), "Log: lengths differ")
	whole := len(x) &^ 7
	active.log(dst[:whole], x[:whole])
	logGo(dst[whole:], x[whole:])
	for i, v := range x {
		if math.Float64bits(v)-1<<52 >= 2046<<52 { // not a positive normal number
			dst[i] = math.Log(v)
		}
	}
}

// The coefficients come from e_log.c of FreeBSD, as in package math.
const (
	logL1    = 6.666666666666735130e-01
	logL2    = 3.999999999940941908e-01
	logL3    = 2.857142874366239149e-01
	logL4    = 2.222219843214978396e-01
	logL5    = 1.818357216161805012e-01
	logL6    = 1.531383769920937332e-01
	logL7    = 1.479819860511658591e-01
	logLn2Hi = 6.93147180369123816490e-01
	logLn2Lo = 1.90821492927058770002e-10
)

// logGo is right for positive normal numbers. It takes the steps of math/log_amd64.s
// in their order; the conversions keep compilers from fusing products with sums.
func logGo(dst, x []float64) {
	for i, v := range x {
		bits := math.Float64bits(v)
		k := float64(int(bits>>52) - 1022)
		f := math.Float64frombits(bits&(1<<52-1) | 1022<<52)
		if f <= math.Sqrt2/2 {
			k--
			f *= 2
		}
		f--
		s := f / (2 + f)
		s2 := float64(s * s)
		s4 := float64(s2 * s2)
		t1 := float64(s2 * (logL1 + float64(s4*(logL3+float64(s4*(logL5+float64(s4*logL7)))))))
		t2 := float64(s4 * (logL2 + float64(s4*(logL4+float64(s4*logL6)))))
		half := float64(float64(0.5*f) * f)
		s = float64(s*(half+(t1+t2))) + float64(k*logLn2Lo)
		dst[i] = float64(k*logLn2Hi) - ((half - s) - f)
	}
}
