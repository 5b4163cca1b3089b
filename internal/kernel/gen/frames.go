package main

import (
	"fmt"
	"math"
)

// The kernels on frames: 16 channels side by side, so one register of AVX-512 or
// two of AVX2, which go over the data twice. Products and sums are separate
// instructions, see elementwise.go.

const frameSize = 64 // bytes

// db4 is the scaling filter of package kernel.
var db4 = [8]float32{
	0.23037781330885523, 0.7148465705525415, 0.6308807679295904, -0.02798376941698385,
	-0.18703481171888114, 0.030841381835986965, 0.032883011666982945, -0.010597401784997278,
}

func frameConstants(w *asm) {
	for t, v := range db4 {
		w.spread(fmt.Sprintf("tap%d", t), math.Float32bits(v))
	}
	w.spread("magnitude", 0x7fffffff)
	w.spread("unit", math.Float32bits(1))
}

// lanesOf writes the body of a kernel once for each vector that a frame takes.
// The body's labels need its suffix, its addresses its offset.
func lanesOf(w *asm, is isa, body func(suffix string, offset int)) {
	for half := range 16 / is.lanes {
		body(fmt.Sprint(half), half*is.size())
	}
	w.end()
}

func at(offset int, base string) string { return fmt.Sprintf("%d(%s)", offset, base) }

// loadAll and storeAll move what lies at DX, a frame apart, to and from registers.
func loadAll(w *asm, offset int, registers []string) {
	for i, r := range registers {
		w.op("VMOVUPS %s, %s", at(i*frameSize+offset, "DX"), r)
	}
}

func storeAll(w *asm, offset int, registers []string) {
	for i, r := range registers {
		w.op("VMOVUPS %s, %s", r, at(i*frameSize+offset, "DX"))
	}
}

// advance is how far a pointer advances with each frame.
type advance struct {
	pointer string
	bytes   int
}

// eachFrame writes a loop over CX frames, of which pointers advance.
func eachFrame(w *asm, suffix string, moves []advance, body func()) {
	w.op("TESTQ CX, CX")
	w.op("JZ done%s", suffix)
	w.label("loop" + suffix)
	body()
	for _, p := range moves {
		w.op("ADDQ $%d, %s", p.bytes, p.pointer)
	}
	w.op("DECQ CX")
	w.op("JNZ loop%s", suffix)
	w.label("done" + suffix)
}

// interleave writes blocks of 8 samples of 8 channels as halves of 8 frames.
func interleave(w *asm) {
	w.function("interleaveAVX", "(blocks int, src *[8]*float32, dst *[8]float32)", 24)
	pointers := []string{"SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13"}
	w.op("MOVQ src+8(FP), BX")
	for i, p := range pointers {
		w.op("MOVQ %d(BX), %s", 8*i, p)
	}
	w.take("dst+16(FP), DX", "blocks+0(FP), CX")
	w.op("XORQ AX, AX")
	w.label("loop")
	for i, p := range pointers {
		w.op("VMOVUPS (%s)(AX*1), Y%d", p, i)
	}
	transpose8(w)
	for i := range 8 {
		w.op("VMOVUPS Y%d, %s", i+8, at(i*frameSize, "DX"))
	}
	w.op("ADDQ $32, AX")
	w.op("ADDQ $%d, DX", 8*frameSize)
	w.op("DECQ CX")
	w.op("JNZ loop")
	w.end()
}

func extent(w *asm, is isa) {
	w.function("extent"+is.name, "(x []Frame, e *Extent)", 32)
	sum, low, high, v := is.reg(0), is.reg(1), is.reg(2), is.reg(3)
	lanesOf(w, is, func(suffix string, offset int) {
		w.take("x_base+0(FP), SI", "x_len+8(FP), CX", "e+24(FP), DX")
		loadAll(w, offset, []string{sum, low, high})
		eachFrame(w, suffix, []advance{{"SI", frameSize}}, func() {
			w.op("VMOVUPS %s, %s", at(offset, "SI"), v)
			w.op("VADDPS %s, %s, %s", v, sum, sum)
			w.op("VMINPS %s, %s, %s", low, v, low)
			w.op("VMAXPS %s, %s, %s", high, v, high)
		})
		storeAll(w, offset, []string{sum, low, high})
	})
}

func center(w *asm, is isa) {
	w.function("center"+is.name, "(x []Frame, c *Center)", 32)
	shift, gain, magnitude := is.reg(0), is.reg(1), is.reg(2)
	sums := make([]string, 6) // as in Center
	for i := range sums {
		sums[i] = is.reg(3 + i)
	}
	v, a, d, d2, p := is.reg(9), is.reg(10), is.reg(11), is.reg(12), is.reg(13)
	lanesOf(w, is, func(suffix string, offset int) {
		w.take("x_base+0(FP), SI", "x_len+8(FP), CX", "c+24(FP), DX")
		w.op("VMOVUPS %s, %s", memory("magnitude"), magnitude)
		loadAll(w, offset, append([]string{shift, gain}, sums...))
		eachFrame(w, suffix, []advance{{"SI", frameSize}}, func() {
			w.op("VMOVUPS %s, %s", at(offset, "SI"), v)
			w.op("VMULPS %s, %s, %s", gain, v, a)
			w.op("%s %s, %s, %s", is.bitwise("VPAND"), magnitude, a, a)
			w.op("VADDPS %s, %s, %s", a, sums[4], sums[4])
			w.op("VSQRTPS %s, %s", a, a)
			w.op("VADDPS %s, %s, %s", a, sums[5], sums[5])
			w.op("VSUBPS %s, %s, %s", shift, v, d)
			w.op("VMULPS %s, %s, %s", gain, d, d)
			w.op("VMOVUPS %s, %s", d, at(offset, "SI"))
			w.op("VMULPS %s, %s, %s", d, d, d2)
			w.op("VADDPS %s, %s, %s", d, sums[0], sums[0])
			w.op("VADDPS %s, %s, %s", d2, sums[1], sums[1])
			w.op("VMULPS %s, %s, %s", d, d2, p)
			w.op("VADDPS %s, %s, %s", p, sums[2], sums[2])
			w.op("VMULPS %s, %s, %s", d2, d2, p)
			w.op("VADDPS %s, %s, %s", p, sums[3], sums[3])
		})
		storeAll(w, 2*frameSize+offset, sums)
	})
}

func steps(w *asm, is isa) {
	w.function("steps"+is.name, "(x []Frame, s *Steps)", 32)
	state := make([]string, 7) // as in Steps
	for i := range state {
		state[i] = is.reg(i)
	}
	last, lastStep, crossings, step2, bend2, count, moment := state[0], state[1], state[2], state[3], state[4], state[5], state[6]
	v, step, t, unit := is.reg(7), is.reg(8), is.reg(9), is.reg(10)
	lanesOf(w, is, func(suffix string, offset int) {
		w.take("x_base+0(FP), SI", "x_len+8(FP), CX", "s+24(FP), DX")
		w.op("VMOVUPS %s, %s", memory("unit"), unit)
		loadAll(w, offset, state)
		eachFrame(w, suffix, []advance{{"SI", frameSize}}, func() {
			w.op("VMOVUPS %s, %s", at(offset, "SI"), v)
			w.op("%s %s, %s, %s", is.bitwise("VPXOR"), last, v, t)
			w.op("VPSRLD $31, %s, %s", t, t)
			w.op("VPADDD %s, %s, %s", t, crossings, crossings)
			w.op("VSUBPS %s, %s, %s", last, v, step)
			w.op("VSUBPS %s, %s, %s", lastStep, step, t)
			w.op("VMULPS %s, %s, %s", t, t, t)
			w.op("VADDPS %s, %s, %s", t, bend2, bend2)
			w.op("VMULPS %s, %s, %s", step, step, t)
			w.op("VADDPS %s, %s, %s", t, step2, step2)
			w.op("VMULPS %s, %s, %s", v, count, t)
			w.op("VADDPS %s, %s, %s", t, moment, moment)
			w.op("VADDPS %s, %s, %s", unit, count, count)
			w.op("VMOVAPS %s, %s", v, last)
			w.op("VMOVAPS %s, %s", step, lastStep)
		})
		storeAll(w, offset, state)
	})
}

func power(w *asm, is isa) {
	w.function("power"+is.name, "(dst, z []Frame)", 48)
	re, im := is.reg(0), is.reg(1)
	w.take("dst_base+0(FP), DX", "dst_len+8(FP), CX", "z_base+24(FP), SI")
	eachFrame(w, "", []advance{{"SI", 2 * frameSize}, {"DX", frameSize}}, func() {
		for offset := 0; offset < frameSize; offset += is.size() {
			w.op("VMOVUPS %s, %s", at(offset, "SI"), re)
			w.op("VMOVUPS %s, %s", at(frameSize+offset, "SI"), im)
			square(w, re, im)
			w.op("VMOVUPS %s, %s", re, at(offset, "DX"))
		}
	})
	w.end()
}

// square writes |re + j·im|² to re.
func square(w *asm, re, im string) {
	w.op("VMULPS %s, %s, %s", re, re, re)
	w.op("VMULPS %s, %s, %s", im, im, im)
	w.op("VADDPS %s, %s, %s", im, re, re)
}

func energy(w *asm, is isa) {
	w.function("energy"+is.name, "(x []Frame, sum *Frame)", 32)
	lanesOf(w, is, func(suffix string, offset int) {
		w.take("x_base+0(FP), SI", "x_len+8(FP), CX", "sum+24(FP), DX")
		w.op("VMOVUPS %s, %s", at(offset, "DX"), is.reg(0))
		eachFrame(w, suffix, []advance{{"SI", frameSize}}, func() {
			w.op("VMOVUPS %s, %s", at(offset, "SI"), is.reg(1))
			w.op("VMULPS %s, %s, %s", is.reg(1), is.reg(1), is.reg(1))
			w.op("VADDPS %s, %s, %s", is.reg(1), is.reg(0), is.reg(0))
		})
		w.op("VMOVUPS %s, %s", is.reg(0), at(offset, "DX"))
	})
}

func wavelet(w *asm, is isa) {
	w.function("wavelet"+is.name, "(low, high, x []Frame)", 72)
	low, high, v, p := is.reg(8), is.reg(9), is.reg(10), is.reg(11)
	lanesOf(w, is, func(suffix string, offset int) {
		w.take("low_base+0(FP), DX", "low_len+8(FP), CX", "high_base+24(FP), BX", "x_base+48(FP), SI")
		for t := range db4 {
			w.op("VMOVUPS tap%d<>(SB), %s", t, is.reg(t))
		}
		eachFrame(w, suffix, []advance{{"SI", 2 * frameSize}, {"DX", frameSize}, {"BX", frameSize}}, func() {
			w.op("VMOVUPS %s, %s", at(offset, "SI"), v)
			w.op("VMULPS %s, %s, %s", is.reg(0), v, low)
			w.op("VMULPS %s, %s, %s", is.reg(7), v, high)
			for t := 1; t < len(db4); t++ {
				w.op("VMOVUPS %s, %s", at(t*frameSize+offset, "SI"), v)
				w.op("VMULPS %s, %s, %s", is.reg(t), v, p)
				w.op("VADDPS %s, %s, %s", p, low, low)
				w.op("VMULPS %s, %s, %s", is.reg(7-t), v, p)
				w.op("%s %s, %s, %s", [2]string{"VADDPS", "VSUBPS"}[t%2], p, high, high)
			}
			w.op("VMOVUPS %s, %s", low, at(offset, "DX"))
			w.op("VMOVUPS %s, %s", high, at(offset, "BX"))
		})
	})
}

// turn writes the product of (re, im) and the twiddle (wr, wi) to (re, im).
func turn(w *asm, re, im, wr, wi, s, t string) {
	w.op("VMULPS %s, %s, %s", wi, im, s)
	w.op("VMULPS %s, %s, %s", wi, re, t)
	w.op("VMULPS %s, %s, %s", wr, re, re)
	w.op("VMULPS %s, %s, %s", wr, im, im)
	w.op("VSUBPS %s, %s, %s", s, re, re)
	w.op("VADDPS %s, %s, %s", t, im, im)
}

// place returns the address of number i of several, plus an offset.
type place func(i, offset int) string

// apart returns places that lie a stride of a register from each other, which is there once and three times.
func apart(pointer, one, three string, scale int) place {
	return func(i, offset int) string {
		return at(offset, pointer) + [4]string{"", fmt.Sprintf("(%s*%d)", one, scale), fmt.Sprintf("(%s*%d)", one, 2*scale), fmt.Sprintf("(%s*%d)", three, scale)}[i]
	}
}

// butterfly writes a butterfly of radix 4 of numbers, times weights if there are any. Its results but the first are
// turned by the three twiddles at the pointer.
func butterfly(w *asm, is isa, offset int, from, weights place, twiddles string, to place) {
	r := is.reg
	for i := range 8 {
		if a := from(i/2, i%2*frameSize+offset); weights == nil {
			w.op("VMOVUPS %s, %s", a, r(i))
		} else {
			w.op("VBROADCASTSS %s, %s", weights(i/2, i%2*4), r(i))
			w.op("VMULPS %s, %s, %s", a, r(i), r(i))
		}
	}
	for part := range 2 {
		w.op("VADDPS %s, %s, %s", r(4+part), r(part), r(8+part))    // a + c
		w.op("VSUBPS %s, %s, %s", r(4+part), r(part), r(part))      // a − c
		w.op("VADDPS %s, %s, %s", r(6+part), r(2+part), r(10+part)) // b + d
		w.op("VSUBPS %s, %s, %s", r(6+part), r(2+part), r(2+part))  // b − d
	}
	for part := range 2 {
		w.op("VADDPS %s, %s, %s", r(10+part), r(8+part), r(4+part))
		w.op("VMOVUPS %s, %s", r(4+part), to(0, part*frameSize+offset))
		w.op("VSUBPS %s, %s, %s", r(10+part), r(8+part), r(8+part)) // the second
	}
	w.op("VADDPS %s, %s, %s", r(3), r(0), r(4)) // the first: a − c − j(b − d)
	w.op("VSUBPS %s, %s, %s", r(2), r(1), r(5))
	w.op("VSUBPS %s, %s, %s", r(3), r(0), r(6)) // the third: a − c + j(b − d)
	w.op("VADDPS %s, %s, %s", r(2), r(1), r(7))
	for i, re := range []int{4, 8, 6} {
		w.op("VBROADCASTSS %d(%s), %s", 8*i, twiddles, r(12))
		w.op("VBROADCASTSS %d(%s), %s", 8*i+4, twiddles, r(13))
		turn(w, r(re), r(re+1), r(12), r(13), r(14), r(15))
		w.op("VMOVUPS %s, %s", r(re), to(i+1, offset))
		w.op("VMOVUPS %s, %s", r(re+1), to(i+1, frameSize+offset))
	}
}

// fft4 writes a pass of radix 4 of the FFT, see fft4Go.
func fft4(w *asm, is isa) {
	w.function("fft4"+is.name, "(x, y []Frame, twiddles []float32, run int)", 80)
	w.take("x_base+0(FP), SI", "x_len+8(FP), R10", "y_base+24(FP), DX", "twiddles_base+48(FP), BX", "twiddles_len+56(FP), DI", "run+72(FP), R9")
	w.op("SHLQ $4, R10")        // bytes of a quarter of x
	w.op("LEAQ (BX)(DI*4), DI") // the end of the twiddles
	w.op("SHLQ $7, R9")         // bytes of a run
	w.op("LEAQ (R10)(R10*2), R11")
	w.op("LEAQ (R9)(R9*2), R12")
	w.label("outer")
	w.op("MOVQ run+72(FP), CX")
	eachFrame(w, "", []advance{{"SI", 2 * frameSize}, {"DX", 2 * frameSize}}, func() {
		for offset := 0; offset < frameSize; offset += is.size() {
			butterfly(w, is, offset, apart("SI", "R10", "R11", 1), nil, "BX", apart("DX", "R9", "R12", 1))
		}
	})
	w.op("ADDQ $24, BX")
	w.op("ADDQ R12, DX")
	w.op("CMPQ BX, DI")
	w.op("JNE outer")
	w.end()
}

// fft16 writes two passes of radix 4 at once, see fft16Go. Sixteen numbers between them stay on the stack.
func fft16(w *asm, is isa) {
	w.onStack("fft16"+is.name, "(x, y []Frame, first, second []float32, run int)", "0", 2112, 104)
	begin16(w)
	w.op("MOVQ run+96(FP), R9")
	w.op("LEAQ (DI)(R13*1), R8") // the end of the second twiddles
	w.op("SHLQ $7, R9")          // bytes of a run
	w.op("LEAQ (R9)(R9*2), R12")
	w.label("outer")
	w.op("MOVQ run+96(FP), CX")
	eachFrame(w, "", []advance{{"SI", 2 * frameSize}, {"DX", 2 * frameSize}}, func() {
		for offset := 0; offset < frameSize; offset += is.size() {
			w.op("MOVQ SI, AX")
			w.op("MOVQ BX, R15")
			for i := range 4 {
				butterfly(w, is, offset, apart("AX", "R10", "R11", 4), nil, "R15", frames("R14", i, 4))
				w.op("ADDQ R10, AX")
				w.op("ADDQ R13, R15")
			}
			w.op("MOVQ DX, AX")
			for i := range 4 {
				butterfly(w, is, offset, frames("R14", 4*i, 1), nil, "DI", apart("AX", "R9", "R12", 4))
				w.op("ADDQ R9, AX")
			}
		}
	})
	w.op("ADDQ $24, BX")
	w.op("ADDQ $24, DI")
	w.op("LEAQ (DX)(R12*4), DX")
	w.op("ADDQ R12, DX")
	w.op("CMPQ DI, R8")
	w.op("JNE outer")
	w.end()
}

// begin16 sets SI and DX to x and y, BX and DI to the twiddles, R10 and R11 to the bytes of one and three sixteenths of
// x, R13 to the bytes of a quarter of the first twiddles and R14 to memory between the passes.
func begin16(w *asm) {
	w.take("x_base+0(FP), SI", "x_len+8(FP), R10", "y_base+24(FP), DX", "first_base+48(FP), BX", "second_base+72(FP), DI", "second_len+80(FP), R13")
	w.op("SHLQ $2, R10")
	w.op("LEAQ (R10)(R10*2), R11")
	w.op("SHLQ $2, R13")
	w.op("LEAQ between-2112(SP), R14")
	w.op("ADDQ $63, R14")
	w.op("ANDQ $~63, R14")
}

// frames returns places of complex numbers from the first on, so many apart.
func frames(pointer string, first, step int) place {
	return func(i, offset int) string { return at(2*frameSize*(first+i*step)+offset, pointer) }
}

// taper16 writes the first two passes over w·x, see taper16Go.
func taper16(w *asm, is isa) {
	w.onStack("taper16"+is.name, "(x, y []Frame, first, second, w []float32)", "0", 2112, 120)
	begin16(w)
	w.take("w_base+96(FP), R9", "R10, R12", "R10, CX")
	w.op("SHRQ $4, R12") // bytes of a sixteenth of w; three of them are R13
	w.op("SHRQ $7, CX")
	eachFrame(w, "", []advance{{"SI", 2 * frameSize}, {"DX", 32 * frameSize}, {"BX", 24}, {"DI", 24}, {"R9", 8}}, func() {
		for offset := 0; offset < frameSize; offset += is.size() {
			w.take("SI, AX", "BX, R15", "R9, R8")
			for i := range 4 {
				butterfly(w, is, offset, apart("AX", "R10", "R11", 4), apart("R8", "R12", "R13", 4), "R15", frames("R14", i, 4))
				w.op("ADDQ R10, AX")
				w.op("ADDQ R13, R15")
				w.op("ADDQ R12, R8")
			}
			for i := range 4 {
				butterfly(w, is, offset, frames("R14", 4*i, 1), nil, "DI", frames("DX", i, 4))
			}
		}
	})
	w.end()
}

// fft8 writes the last two passes of radix 4 and 2 at once, see fft8Go. Eight numbers between them stay on the stack.
func fft8(w *asm, is isa) {
	w.onStack("fft8"+is.name, "(x, y []Frame, twiddles []float32)", "0", 1088, 72)
	w.take("x_base+0(FP), SI", "x_len+8(FP), CX", "y_base+24(FP), DX", "twiddles_base+48(FP), BX")
	w.op("MOVQ CX, R9")
	w.op("SHLQ $3, R9") // bytes of an eighth of x
	w.op("SHRQ $4, CX")
	w.op("LEAQ (R9)(R9*2), R12")
	w.op("LEAQ 24(BX), DI")
	w.op("LEAQ between-1088(SP), R14")
	w.op("ADDQ $63, R14")
	w.op("ANDQ $~63, R14")
	eachFrame(w, "", []advance{{"SI", 2 * frameSize}, {"DX", 2 * frameSize}}, func() {
		w.op("LEAQ (SI)(R9*1), AX")
		w.op("LEAQ (DX)(R9*4), R8")
		first, second := apart("DX", "R9", "R12", 1), apart("R8", "R9", "R12", 1)
		for offset := 0; offset < frameSize; offset += is.size() {
			butterfly(w, is, offset, apart("SI", "R9", "R12", 2), nil, "BX", frames("R14", 0, 1))
			butterfly(w, is, offset, apart("AX", "R9", "R12", 2), nil, "DI", frames("R14", 4, 1))
			for i := range 8 {
				a, b, sum, at := is.reg(4*(i%4)), is.reg(4*(i%4)+1), is.reg(4*(i%4)+2), i%2*frameSize+offset
				w.op("VMOVUPS %s, %s", frames("R14", 0, 1)(i/2, at), a)
				w.op("VMOVUPS %s, %s", frames("R14", 4, 1)(i/2, at), b)
				w.op("VADDPS %s, %s, %s", b, a, sum)
				w.op("VSUBPS %s, %s, %s", b, a, a)
				w.op("VMOVUPS %s, %s", sum, first(i/2, at))
				w.op("VMOVUPS %s, %s", a, second(i/2, at))
			}
		}
	})
	w.end()
}

// untangle writes the last step of a real transform, see untangleGo.
func untangle(w *asm, is isa) {
	w.function("untangle"+is.name, "(band, power, z []Frame, twiddles []float32)", 96)
	w.take("band_base+0(FP), DX", "band_len+8(FP), DI", "power_base+24(FP), R11", "z_base+48(FP), R9", "z_len+56(FP), AX", "twiddles_base+72(FP), R8")
	w.take("R11, BX", "R9, SI", "AX, CX")
	w.op("SHLQ $5, AX")
	w.op("ADDQ AX, R11") // power of n
	w.op("SHLQ $1, AX")
	w.op("ADDQ AX, R9") // z of n
	w.op("SHRQ $2, CX")
	w.op("SHRQ $1, DI")
	w.op("SUBQ DI, CX")
	w.op("DECQ CX") // below the band
	moves := []advance{{"SI", 2 * frameSize}, {"BX", frameSize}, {"R8", 8}, {"R9", -2 * frameSize}, {"R11", -frameSize}}
	for _, p := range moves {
		w.op("ADDQ $%d, %s", p.bytes, p.pointer)
	}
	pairs(w, is, "Below", moves, false)
	w.op("MOVQ DI, CX")
	pairs(w, is, "Within", append(moves, advance{"DX", 2 * frameSize}), true)
	w.end()
}

// pairs writes the step for CX bins and what mirrors them, and stores the bins at DX if they are kept.
func pairs(w *asm, is isa, suffix string, moves []advance, kept bool) {
	r := is.reg
	zr, zi, yr, yi, er, ei, or, oi := r(0), r(1), r(2), r(3), r(4), r(5), r(6), r(7)
	eachFrame(w, suffix, moves, func() {
		for offset := 0; offset < frameSize; offset += is.size() {
			for i, base := range []string{"SI", "R9"} {
				w.op("VMOVUPS %s, %s", at(offset, base), r(2*i))
				w.op("VMOVUPS %s, %s", at(frameSize+offset, base), r(2*i+1))
			}
			w.op("VADDPS %s, %s, %s", yr, zr, er)
			w.op("VSUBPS %s, %s, %s", yi, zi, ei)
			w.op("VADDPS %s, %s, %s", yi, zi, or)
			w.op("VSUBPS %s, %s, %s", zr, yr, oi)
			w.op("VBROADCASTSS (R8), %s", r(12))
			w.op("VBROADCASTSS 4(R8), %s", r(13))
			turn(w, or, oi, r(12), r(13), r(14), r(15))
			w.op("VADDPS %s, %s, %s", or, er, r(0))
			w.op("VADDPS %s, %s, %s", oi, ei, r(1))
			w.op("VSUBPS %s, %s, %s", or, er, r(2))
			w.op("VSUBPS %s, %s, %s", ei, oi, r(3))
			if kept {
				w.op("VMOVUPS %s, %s", r(0), at(offset, "DX"))
				w.op("VMOVUPS %s, %s", r(1), at(frameSize+offset, "DX"))
			}
			for i, to := range []string{"BX", "R11"} {
				square(w, r(2*i), r(2*i+1))
				w.op("VADDPS %s, %s, %s", at(offset, to), r(2*i), r(2*i))
				w.op("VMOVUPS %s, %s", r(2*i), at(offset, to))
			}
		}
	})
}
