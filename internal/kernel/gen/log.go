package main

import "math"

// logConstants are what log needs, half its lanes of float32 wide. Coefficients are the same as in package kernel.
var logConstants = []struct {
	name string
	bits uint64
}{
	{"logMantissa", 1<<52 - 1}, {"logHalf", 1022 << 52}, {"logOne", math.Float64bits(1)}, {"logTwo", math.Float64bits(2)},
	{"logMagic", math.Float64bits(1 << 52)}, {"logBias", math.Float64bits(1<<52 + 1022)}, {"logRoot", math.Float64bits(math.Sqrt2 / 2)},
	{"logL1", math.Float64bits(6.666666666666735130e-01)}, {"logL2", math.Float64bits(3.999999999940941908e-01)},
	{"logL3", math.Float64bits(2.857142874366239149e-01)}, {"logL4", math.Float64bits(2.222219843214978396e-01)},
	{"logL5", math.Float64bits(1.818357216161805012e-01)}, {"logL6", math.Float64bits(1.531383769920937332e-01)},
	{"logL7", math.Float64bits(1.479819860511658591e-01)},
	{"logLn2Hi", math.Float64bits(6.93147180369123816490e-01)}, {"logLn2Lo", math.Float64bits(1.90821492927058770002e-10)},
}

// logarithm writes dst = ln x of a multiple of 8 numbers, see logGo.
func logarithm(w *asm, is isa) {
	w.function("log"+is.name, "(dst, x []float64)", 48)
	w.take("dst_base+0(FP), DI", "x_base+24(FP), SI", "x_len+32(FP), CX")
	f, k, s, s2, s4, t1, t2, half := is.reg(0), is.reg(1), is.reg(2), is.reg(3), is.reg(4), is.reg(5), is.reg(6), is.reg(7)
	op := func(name, b, a, to string) { w.op("%s %s, %s, %s", name, b, a, to) }
	constant := func(name, constant, a, to string) { op(name, memory(constant), a, to) }
	w.op("SHRQ $%d, CX", map[string]int{"AVX2": 2, "AVX512": 3}[is.name])
	eachFrame(w, "", []advance{{"SI", is.size()}, {"DI", is.size()}}, func() {
		w.op("VMOVUPD (SI), %s", f)
		w.op("VPSRLQ $52, %s, %s", f, k)
		constant(is.bitwise("VPOR"), "logMagic", k, k)
		constant("VSUBPD", "logBias", k, k)
		constant(is.bitwise("VPAND"), "logMantissa", f, f)
		constant(is.bitwise("VPOR"), "logHalf", f, f)
		w.op("VMOVUPD %s, %s", memory("logOne"), s) // to s where f ≤ √½
		if is.lanes == 16 {
			w.op("VCMPPD $2, %s, %s, K1", memory("logRoot"), f)
			w.op("VMOVAPD.Z %s, K1, %s", s, s)
		} else {
			w.op("VCMPPD $2, %s, %s, %s", memory("logRoot"), f, s2)
			w.op("VPAND %s, %s, %s", s2, s, s)
		}
		op("VSUBPD", s, k, k)
		constant("VADDPD", "logOne", s, s)
		op("VMULPD", s, f, f)
		constant("VSUBPD", "logOne", f, f)
		constant("VADDPD", "logTwo", f, s)
		op("VDIVPD", s, f, s)
		op("VMULPD", s, s, s2)
		op("VMULPD", s2, s2, s4)
		constant("VMULPD", "logL7", s4, t1)
		for _, c := range []string{"logL5", "logL3", "logL1"} {
			constant("VADDPD", c, t1, t1)
			op("VMULPD", map[bool]string{false: s4, true: s2}[c == "logL1"], t1, t1)
		}
		constant("VMULPD", "logL6", s4, t2)
		for _, c := range []string{"logL4", "logL2"} {
			constant("VADDPD", c, t2, t2)
			op("VMULPD", s4, t2, t2)
		}
		constant("VMULPD", "logHalf", f, half) // as a number, this is ½
		op("VMULPD", f, half, half)
		op("VADDPD", t2, t1, t1)
		op("VADDPD", t1, half, t1)
		op("VMULPD", t1, s, s)
		constant("VMULPD", "logLn2Lo", k, t2)
		op("VADDPD", t2, s, s)
		op("VSUBPD", s, half, half)
		op("VSUBPD", f, half, half)
		constant("VMULPD", "logLn2Hi", k, k)
		op("VSUBPD", half, k, k)
		w.op("VMOVUPD %s, (DI)", k)
	})
	w.end()
}
