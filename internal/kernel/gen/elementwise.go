package main

import (
	"fmt"
	"math"
)

// Products and sums are separate instructions throughout: the portable family
// rounds twice, so these do too, and all return the same bits.

// The constants of the logistic function, of sampling and of judging, 16 lanes
// each. Names and values are the same as in package kernel.
var constantNames = []string{"max", "min", "log2e", "magic", "ln2Hi", "ln2Lo", "expP0", "expP1", "expP2", "expP3", "expP4", "expP5", "one", "scale", "sign", "minusOne", "leastSum", "magnitude", "leastStep", "leastSquare"}

func constants(w *asm) {
	values := map[string]float32{
		"max": 80, "min": -80, "log2e": 1.44269504088896341, "magic": 12582912, "ln2Hi": 0.693359375, "ln2Lo": -2.12194440e-4,
		"expP0": 1.9875691500e-4, "expP1": 1.3981999507e-3, "expP2": 8.3334519073e-3,
		"expP3": 4.1665795894e-2, "expP4": 1.6666665459e-1, "expP5": 5.0000001201e-1,
		"one": 1, "scale": 1 << 24, "sign": float32(math.Copysign(0, -1)), "minusOne": -1, "leastSum": 1e-30,
		"magnitude": math.Float32frombits(1<<31 - 1), "leastStep": 1e-17, "leastSquare": 1e-34,
	}
	for _, name := range constantNames {
		w.spread(name, math.Float32bits(values[name]))
	}
	for _, c := range logConstants {
		w.spread64(c.name, c.bits)
	}
}

// memory returns the constant of that name as an operand.
func memory(name string) string { return fmt.Sprintf("%s<>(SB)", name) }

// loop writes a loop over n elements, n in the register AX, in steps of the
// lanes of step vectors. The body gets the masks of the step, nil but for the
// last. Every pointer advances by a step. AX, BX and CX are used up.
func loop(w *asm, is isa, vectors int, pointers []string, masks []*mask, body func(masks []*mask)) {
	step := vectors * is.lanes
	w.op("SUBQ $%d, AX", step)
	w.op("JLT tail")
	w.label("full")
	body(make([]*mask, vectors))
	for _, p := range pointers {
		w.op("ADDQ $%d, %s", 4*step, p)
	}
	w.op("SUBQ $%d, AX", step)
	w.op("JGE full")
	w.label("tail")
	w.op("ADDQ $%d, AX", step)
	w.op("JZ done")
	for i, m := range masks {
		m.set(w, "AX", "BX", i*is.lanes)
	}
	body(masks)
	w.label("done")
}

// masksOf returns the masks of a loop in steps of so many vectors; the highest
// registers of AVX2 hold them.
func masksOf(is isa, vectors int) []*mask {
	if is.lanes == 16 {
		return []*mask{{is, "K1"}}
	}
	if vectors == 2 {
		return []*mask{{is, is.reg(14)}, {is, is.reg(15)}}
	}
	return []*mask{{is, is.reg(15)}}
}

// logistic writes x = 1/(1+e⁻ˣ). See logistic.go in package kernel.
func logistic(w *asm, is isa) {
	w.function("sigmoid"+is.name, "(x []float32)", 24)
	w.take("x_base+0(FP), SI", "x_len+8(FP), AX")
	// With 32 registers all constants have one; with 16, as many as fit.
	held := map[string]string{}
	const first = 4
	for i, name := range []string{"max", "min", "sign", "log2e", "magic", "ln2Hi", "ln2Lo", "one", "expP0", "expP1", "expP2", "expP3", "expP4", "expP5"} {
		if first+i < is.registers-1 {
			held[name] = is.reg(first + i)
			w.op("VMOVUPS %s, %s", memory(name), held[name])
		}
	}
	constant := func(name string) string {
		if r, ok := held[name]; ok {
			return r
		}
		return memory(name)
	}
	x, n, e, p := is.reg(0), is.reg(1), is.reg(2), is.reg(3)
	loop(w, is, 1, []string{"SI"}, masksOf(is, 1), func(masks []*mask) {
		w.load(is, "(SI)", x, masks[0])
		w.op("%s %s, %s, %s", is.bitwise("VPXOR"), constant("sign"), x, x) // y = -x
		w.op("VMINPS %s, %s, %s", x, held["max"], x)                       // in this order NaN stays
		w.op("VMAXPS %s, %s, %s", x, held["min"], x)
		w.op("VMULPS %s, %s, %s", constant("log2e"), x, n)
		w.op("VADDPS %s, %s, %s", constant("magic"), n, n)
		w.op("VPSLLD $23, %s, %s", n, e)
		w.op("VSUBPS %s, %s, %s", constant("magic"), n, n)
		w.op("VMULPS %s, %s, %s", constant("ln2Hi"), n, p)
		w.op("VSUBPS %s, %s, %s", p, x, x)
		w.op("VMULPS %s, %s, %s", constant("ln2Lo"), n, p)
		w.op("VSUBPS %s, %s, %s", p, x, x) // r
		w.op("VMULPS %s, %s, %s", constant("expP0"), x, p)
		for i := 1; i < 5; i++ {
			w.op("VADDPS %s, %s, %s", constant(fmt.Sprintf("expP%d", i)), p, p)
			w.op("VMULPS %s, %s, %s", x, p, p)
		}
		w.op("VADDPS %s, %s, %s", constant("expP5"), p, p)
		w.op("VMULPS %s, %s, %s", x, x, n)
		w.op("VMULPS %s, %s, %s", n, p, p)
		w.op("VADDPS %s, %s, %s", x, p, p)
		w.op("VADDPS %s, %s, %s", constant("one"), p, p)
		w.op("VPADDD %s, %s, %s", e, p, p)
		w.op("VADDPS %s, %s, %s", constant("one"), p, p)
		w.op("VDIVPS %s, %s, %s", p, held["one"], p)
		w.store(is, p, "(SI)", masks[0])
	})
	w.end()
}

// logisticGrad writes d = d·y·(1-y).
func logisticGrad(w *asm, is isa) {
	w.function("sigmoidGrad"+is.name, "(d, y []float32)", 48)
	w.take("d_base+0(FP), SI", "d_len+8(FP), AX", "y_base+24(FP), DI")
	d, y, t, one := is.reg(0), is.reg(1), is.reg(2), is.reg(3)
	w.op("VMOVUPS %s, %s", memory("one"), one)
	loop(w, is, 1, []string{"SI", "DI"}, masksOf(is, 1), func(masks []*mask) {
		w.load(is, "(DI)", y, masks[0])
		w.load(is, "(SI)", d, masks[0])
		w.op("VSUBPS %s, %s, %s", y, one, t)
		w.op("VMULPS %s, %s, %s", t, y, y)
		w.op("VMULPS %s, %s, %s", y, d, d)
		w.store(is, d, "(SI)", masks[0])
	})
	w.end()
}

// sample writes s = 1 where a draw is below p, else 0, and steps the 16
// generators, in one vector of AVX-512 or two of AVX2.
func sample(w *asm, is isa) {
	w.function("sample"+is.name, "(s, p []float32, lanes *Lanes)", 56)
	w.take("s_base+0(FP), DI", "p_base+24(FP), SI", "p_len+32(FP), AX", "lanes+48(FP), DX")
	vectors := 16 / is.lanes
	state := func(word, v int) string { return is.reg(word*vectors + v) }
	u, t := is.reg(4*vectors), is.reg(4*vectors+1)
	each := func(do func(word, v int, at string)) {
		for word := range 4 {
			for v := range vectors {
				do(word, v, fmt.Sprintf("%d(DX)", 64*word+v*is.size()))
			}
		}
	}
	each(func(word, v int, at string) { w.op("VMOVUPS %s, %s", at, state(word, v)) })
	xor := func(a, b string) { w.op("%s %s, %s, %s", is.bitwise("VPXOR"), a, b, b) }
	loop(w, is, vectors, []string{"SI", "DI"}, masksOf(is, vectors), func(masks []*mask) {
		for v, m := range masks {
			s0, s1, s2, s3 := state(0, v), state(1, v), state(2, v), state(3, v)
			w.op("VPADDD %s, %s, %s", s0, s3, u)
			w.op("VPSLLD $9, %s, %s", s1, t)
			xor(s0, s2)
			xor(s1, s3)
			xor(s2, s1)
			xor(s3, s0)
			xor(t, s2)
			if is.lanes == 16 {
				w.op("VPROLD $11, %s, %s", s3, s3)
			} else {
				w.op("VPSLLD $11, %s, %s", s3, t)
				w.op("VPSRLD $21, %s, %s", s3, s3)
				w.op("VPOR %s, %s, %s", t, s3, s3)
			}
			w.op("VPSRLD $8, %s, %s", u, u)
			w.op("VCVTDQ2PS %s, %s", u, u)
			w.load(is, fmt.Sprintf("%d(SI)", v*is.size()), t, m)
			w.op("VMULPS %s, %s, %s", memory("scale"), t, t)
			w.op("VSUBPS %s, %s, %s", t, u, u)
			w.op("VPSRAD $31, %s, %s", u, u)
			w.op("%s %s, %s, %s", is.bitwise("VPAND"), memory("one"), u, u)
			w.store(is, u, fmt.Sprintf("%d(DI)", v*is.size()), m)
		}
	})
	each(func(word, v int, at string) { w.op("VMOVUPS %s, %s", state(word, v), at) })
	w.end()
}

// negate writes x = -x.
func negate(w *asm, is isa) {
	w.function("negate"+is.name, "(x []float32)", 24)
	w.take("x_base+0(FP), SI", "x_len+8(FP), AX")
	x, sign := is.reg(0), is.reg(1)
	w.op("VMOVUPS %s, %s", memory("sign"), sign)
	loop(w, is, 1, []string{"SI"}, masksOf(is, 1), func(masks []*mask) {
		w.load(is, "(SI)", x, masks[0])
		w.op("%s %s, %s, %s", is.bitwise("VPXOR"), sign, x, x)
		w.store(is, x, "(SI)", masks[0])
	})
	w.end()
}

func addRows(w *asm, is isa) { rows(w, is, "addRows", "VADDPS") }
func subRows(w *asm, is isa) { rows(w, is, "subRows", "VSUBPS") }

// rows writes dst = dst ± the rows of x, a vector of columns at a time, rows in
// ascending order; op adds or subtracts.
func rows(w *asm, is isa, name, op string) {
	w.function(name+is.name, "(dst, x []float32)", 48)
	w.take("dst_base+0(FP), DI", "dst_len+8(FP), AX", "x_base+24(FP), SI", "x_len+32(FP), DX")
	w.op("LEAQ (SI)(DX*4), DX") // the end of x
	w.op("MOVQ AX, R8")
	w.op("SHLQ $2, R8") // bytes of a row
	sum, x := is.reg(0), is.reg(1)
	part := 0
	loop(w, is, 1, []string{"SI", "DI"}, masksOf(is, 1), func(masks []*mask) {
		part++
		w.load(is, "(DI)", sum, masks[0])
		w.op("MOVQ SI, R9")
		w.op("JMP more%d", part)
		w.label(fmt.Sprintf("row%d", part))
		w.load(is, "(R9)", x, masks[0])
		w.op("%s %s, %s, %s", op, x, sum, sum)
		w.op("ADDQ R8, R9")
		w.label(fmt.Sprintf("more%d", part))
		w.op("CMPQ R9, DX")
		w.op("JLT row%d", part)
		w.store(is, sum, "(DI)", masks[0])
	})
	w.end()
}

// squares returns the sum of the squares of y-x, taken in 16 lanes that are then
// added by halves.
func squares(w *asm, is isa) {
	w.function("squares"+is.name, "(x, y []float32) float32", 52)
	w.take("x_base+0(FP), SI", "x_len+8(FP), AX", "y_base+24(FP), DX")
	vectors := 16 / is.lanes
	d, t := is.reg(4), is.reg(5)
	for v := range vectors {
		w.op("%s %s, %s, %s", is.bitwise("VPXOR"), is.reg(v), is.reg(v), is.reg(v))
	}
	loop(w, is, vectors, []string{"SI", "DX"}, masksOf(is, vectors), func(masks []*mask) {
		for v, m := range masks {
			at := func(base string) string { return fmt.Sprintf("%d(%s)", v*is.size(), base) }
			w.load(is, at("SI"), t, m)
			w.load(is, at("DX"), d, m)
			w.op("VSUBPS %s, %s, %s", t, d, d)
			w.op("VMULPS %s, %s, %s", d, d, d)
			w.op("VADDPS %s, %s, %s", d, is.reg(v), is.reg(v))
		}
	})
	addLanes(w, is)
	w.op("VMOVSS X0, ret+48(FP)")
	w.end()
}

// addLanes adds 16 lanes by halves: the lanes of Z0, or of Y0 and Y1. The sum is in X0.
func addLanes(w *asm, is isa) {
	if is.lanes == 16 {
		w.op("VEXTRACTF64X4 $1, Z0, Y1")
	}
	w.op("VADDPS Y1, Y0, Y0")
	w.op("VEXTRACTF128 $1, Y0, X1")
	w.op("VADDPS X1, X0, X0")
	w.op("VPERMILPS $0x0E, X0, X1")
	w.op("VADDPS X1, X0, X0")
	w.op("VPERMILPS $0x01, X0, X1")
	w.op("VADDSS X1, X0, X0")
}

// momentum writes v = momentum·v - rate·(scale·g + decay·w) and w = w + v.
func momentum(w *asm, is isa) {
	w.function("momentum"+is.name, "(w, v, g []float32, s *MomentumStep)", 80)
	w.take("w_base+0(FP), SI", "w_len+8(FP), AX", "v_base+24(FP), DI", "g_base+48(FP), DX", "s+72(FP), R8")
	x, v, d, t := is.reg(0), is.reg(1), is.reg(2), is.reg(3)
	rate, keep, scale, decay := is.reg(4), is.reg(5), is.reg(6), is.reg(7)
	w.op("VBROADCASTSS MomentumStep_Rate(R8), %s", rate)
	w.op("VBROADCASTSS MomentumStep_Momentum(R8), %s", keep)
	w.op("VBROADCASTSS MomentumStep_Scale(R8), %s", scale)
	w.op("VBROADCASTSS MomentumStep_Decay(R8), %s", decay)
	loop(w, is, 1, []string{"SI", "DI", "DX"}, masksOf(is, 1), func(masks []*mask) {
		w.load(is, "(SI)", x, masks[0])
		w.load(is, "(DI)", v, masks[0])
		w.load(is, "(DX)", d, masks[0])
		w.op("VMULPS %s, %s, %s", scale, d, d)
		w.op("VMULPS %s, %s, %s", decay, x, t)
		w.op("VADDPS %s, %s, %s", t, d, d)
		w.op("VMULPS %s, %s, %s", rate, d, d)
		w.op("VMULPS %s, %s, %s", keep, v, v)
		w.op("VSUBPS %s, %s, %s", d, v, v)
		w.settle(is, v, t, "leastStep")
		w.op("VADDPS %s, %s, %s", v, x, x)
		w.store(is, v, "(DI)", masks[0])
		w.store(is, x, "(SI)", masks[0])
	})
	w.end()
}

// settle replaces the lanes of x that are closer to 0 than the constant of that name by 0; NaN stays. It needs
// another vector, and K2 for AVX-512.
func (w *asm) settle(is isa, x, scratch, least string) {
	const notLess = "$0x15" // or not ordered
	w.op("%s %s, %s, %s", is.bitwise("VPAND"), memory("magnitude"), x, scratch)
	if is.lanes == 16 {
		w.op("VCMPPS %s, %s, %s, K2", notLess, memory(least), scratch)
		w.op("VMOVAPS.Z %s, K2, %s", x, x)
		return
	}
	w.op("VCMPPS %s, %s, %s, %s", notLess, memory(least), scratch, scratch)
	w.op("VPAND %s, %s, %s", scratch, x, x)
}

// adam writes a step of Adam. See update.go in package kernel.
func adam(w *asm, is isa) {
	w.function("adam"+is.name, "(w, m, v, g []float32, s *AdamStep)", 104)
	w.take("w_base+0(FP), SI", "w_len+8(FP), AX", "m_base+24(FP), DI", "v_base+48(FP), DX", "g_base+72(FP), R9", "s+96(FP), R8")
	x, d, a, b, t := is.reg(0), is.reg(1), is.reg(2), is.reg(3), is.reg(4)
	rate, epsilon, beta1, beta2 := is.reg(5), is.reg(6), is.reg(7), is.reg(8)
	scale, decay, rest1, rest2 := is.reg(9), is.reg(10), is.reg(11), is.reg(12)
	for _, f := range []struct{ field, reg string }{
		{"Rate", rate}, {"Epsilon", epsilon}, {"Beta1", beta1}, {"Beta2", beta2}, {"Scale", scale}, {"Decay", decay},
	} {
		w.op("VBROADCASTSS AdamStep_%s(R8), %s", f.field, f.reg)
	}
	w.op("VMOVUPS %s, %s", memory("one"), t)
	w.op("VSUBPS %s, %s, %s", beta1, t, rest1)
	w.op("VSUBPS %s, %s, %s", beta2, t, rest2)
	loop(w, is, 1, []string{"SI", "DI", "DX", "R9"}, masksOf(is, 1), func(masks []*mask) {
		w.load(is, "(SI)", x, masks[0])
		w.load(is, "(R9)", d, masks[0])
		w.load(is, "(DI)", a, masks[0])
		w.load(is, "(DX)", b, masks[0])
		w.op("VMULPS %s, %s, %s", scale, d, d)
		w.op("VMULPS %s, %s, %s", decay, x, t)
		w.op("VADDPS %s, %s, %s", t, d, d)
		w.settle(is, d, t, "leastStep")
		w.op("VMULPS %s, %s, %s", beta1, a, a)
		w.op("VMULPS %s, %s, %s", rest1, d, t)
		w.op("VADDPS %s, %s, %s", t, a, a)
		w.settle(is, a, t, "leastStep")
		w.op("VMULPS %s, %s, %s", d, d, d)
		w.op("VMULPS %s, %s, %s", rest2, d, d)
		w.op("VMULPS %s, %s, %s", beta2, b, b)
		w.op("VADDPS %s, %s, %s", d, b, b)
		w.settle(is, b, t, "leastSquare")
		w.store(is, a, "(DI)", masks[0])
		w.store(is, b, "(DX)", masks[0])
		w.op("VSQRTPS %s, %s", b, b)
		w.op("VADDPS %s, %s, %s", epsilon, b, b)
		w.op("VMULPS %s, %s, %s", rate, a, a)
		w.op("VDIVPS %s, %s, %s", b, a, a)
		w.op("VSUBPS %s, %s, %s", a, x, x)
		w.store(is, x, "(SI)", masks[0])
	})
	w.end()
}
