package main

// rowBytes is the posteriors of one class.
const rowBytes = 4 * 256

// judgeAsm writes the count of rows that are decided right. Its registers hold as
// many vectors each.
type judgeAsm struct {
	*asm
	is                      isa
	own, before, after, all []string
	shares                  []string
	weight, t               string
}

// judge writes the count of rows that are decided right. See judge.go in package
// kernel. Rows are taken 64 at a time, or 16 with AVX2.
func judge(w *asm, is isa) {
	vectors := 4
	if is.lanes == 8 {
		vectors = 2
	}
	w.function("judge"+is.name, "(p, w []float32, class int) (right int, share float32)", 68)
	w.take("p_base+0(FP), SI", "w_base+24(FP), DI", "w_len+32(FP), R8", "class+48(FP), R9")
	w.op("MOVQ R9, R10")
	w.op("IMULQ $%d, R10", rowBytes) // from the first class to this one
	w.op("XORQ R12, R12")            // rows that are right
	w.op("MOVQ $%d, R13", 256/(vectors*is.lanes))
	group := func(first int) []string {
		var regs []string
		for v := range vectors {
			regs = append(regs, is.reg(first+v))
		}
		return regs
	}
	j := judgeAsm{
		asm: w, is: is, shares: []string{is.reg(0)},
		own: group(2), before: group(2 + vectors), after: group(2 + 2*vectors), all: group(2 + 3*vectors),
		weight: is.reg(2 + 4*vectors), t: is.reg(3 + 4*vectors),
	}
	if is.lanes == 8 {
		j.shares = append(j.shares, is.reg(1))
	}
	for _, s := range j.shares {
		w.op("%s %s, %s, %s", is.bitwise("VPXOR"), s, s, s)
	}
	j.rows()
	w.op("MOVQ R12, right+56(FP)")
	addLanes(w, is)
	w.op("VMOVSS X0, share+64(FP)")
	w.end()
}

// rows writes the loop over the rows.
func (w judgeAsm) rows() {
	is := w.is
	w.label("rows")
	w.op("VBROADCASTSS (DI)(R9*4), %s", w.weight)
	for v := range w.own {
		w.op("VMULPS %d(SI)(R10*1), %s, %s", v*is.size(), w.weight, w.own[v])
		w.op("VMOVUPS %s, %s", memory("minusOne"), w.before[v])
		w.op("%s %s, %s, %s", is.bitwise("VPXOR"), w.after[v], w.after[v], w.after[v])
		w.op("VMOVUPS %s, %s", w.own[v], w.all[v])
	}
	w.op("XORQ CX, CX")
	w.op("MOVQ R9, DX")
	w.op("MOVQ SI, BX")
	w.classes("Before", w.before)
	w.op("LEAQ 1(R9), CX")
	w.op("MOVQ R8, DX")
	w.op("LEAQ %d(SI)(R10*1), BX", rowBytes)
	w.classes("After", w.after)
	for v := range w.own {
		w.decide(v)
		w.op("POPCNTL AX, AX")
		w.op("ADDQ AX, R12")
		w.op("VMAXPS %s, %s, %s", memory("leastSum"), w.all[v], w.all[v])
		w.op("VDIVPS %s, %s, %s", w.all[v], w.own[v], w.own[v])
		share := w.shares[v%len(w.shares)]
		w.op("VADDPS %s, %s, %s", w.own[v], share, share)
	}
	w.op("ADDQ $%d, SI", len(w.own)*is.size())
	w.op("DECQ R13")
	w.op("JNZ rows")
}

// classes writes the loop over the classes from CX up to DX, whose posteriors begin
// at BX.
func (w judgeAsm) classes(name string, top []string) {
	w.op("JMP more%s", name)
	w.label("class" + name)
	w.op("VBROADCASTSS (DI)(CX*4), %s", w.weight)
	for v := range top {
		w.op("VMULPS %d(BX), %s, %s", v*w.is.size(), w.weight, w.t)
		w.op("VMAXPS %s, %s, %s", top[v], w.t, top[v])
		w.op("VADDPS %s, %s, %s", w.t, w.all[v], w.all[v])
	}
	w.op("ADDQ $%d, BX", rowBytes)
	w.op("INCQ CX")
	w.label("more" + name)
	w.op("CMPQ CX, DX")
	w.op("JLT class%s", name)
}

// decide sets the bits of AX for the rows of vector v that are decided right.
func (w judgeAsm) decide(v int) {
	if w.is.lanes == 16 {
		w.op("VCMPPS $1, %s, %s, K1", w.own[v], w.before[v]) // before < own
		w.op("VCMPPS $2, %s, %s, K2", w.own[v], w.after[v])  // after ≤ own
		w.op("KANDW K1, K2, K1")
		w.op("KMOVW K1, AX")
		return
	}
	w.op("VCMPPS $1, %s, %s, %s", w.own[v], w.before[v], w.before[v])
	w.op("VCMPPS $2, %s, %s, %s", w.own[v], w.after[v], w.after[v])
	w.op("VANDPS %s, %s, %s", w.before[v], w.after[v], w.after[v])
	w.op("VMOVMSKPS %s, AX", w.after[v])
}
