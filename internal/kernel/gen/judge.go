package main

// judge writes the count of rows that are decided right. See judge.go in package
// kernel. Rows are taken 64 at a time, or 16 with AVX2.
func judge(w *asm, is isa) {
	const rowBytes = 4 * 256 // of the posteriors of one class
	vectors := 4
	if is.lanes == 8 {
		vectors = 2
	}
	w.function("judge"+is.name, "(p, w []float32, class int) (right int, share float32)", 68)
	for _, arg := range []string{"p_base+0(FP), SI", "w_base+24(FP), DI", "w_len+32(FP), R8", "class+48(FP), R9"} {
		w.op("MOVQ %s", arg)
	}
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
	shares := []string{is.reg(0)}
	if is.lanes == 8 {
		shares = append(shares, is.reg(1))
	}
	own, before, after, all := group(2), group(2+vectors), group(2+2*vectors), group(2+3*vectors)
	weight, t := is.reg(2+4*vectors), is.reg(3+4*vectors)
	for _, s := range shares {
		w.op("%s %s, %s, %s", is.bitwise("VPXOR"), s, s, s)
	}
	w.label("rows")
	w.op("VBROADCASTSS (DI)(R9*4), %s", weight)
	for v := range vectors {
		w.op("VMULPS %d(SI)(R10*1), %s, %s", v*is.size(), weight, own[v])
		w.op("VMOVUPS %s, %s", memory("minusOne"), before[v])
		w.op("%s %s, %s, %s", is.bitwise("VPXOR"), after[v], after[v], after[v])
		w.op("VMOVUPS %s, %s", own[v], all[v])
	}
	// The classes from CX up to DX, whose posteriors begin at BX.
	classes := func(name string, top []string) {
		w.op("JMP more%s", name)
		w.label("class" + name)
		w.op("VBROADCASTSS (DI)(CX*4), %s", weight)
		for v := range vectors {
			w.op("VMULPS %d(BX), %s, %s", v*is.size(), weight, t)
			w.op("VMAXPS %s, %s, %s", top[v], t, top[v])
			w.op("VADDPS %s, %s, %s", t, all[v], all[v])
		}
		w.op("ADDQ $%d, BX", rowBytes)
		w.op("INCQ CX")
		w.label("more" + name)
		w.op("CMPQ CX, DX")
		w.op("JLT class%s", name)
	}
	w.op("XORQ CX, CX")
	w.op("MOVQ R9, DX")
	w.op("MOVQ SI, BX")
	classes("Before", before)
	w.op("LEAQ 1(R9), CX")
	w.op("MOVQ R8, DX")
	w.op("LEAQ %d(SI)(R10*1), BX", rowBytes)
	classes("After", after)
	for v := range vectors {
		if is.lanes == 16 {
			w.op("VCMPPS $1, %s, %s, K1", own[v], before[v]) // before < own
			w.op("VCMPPS $2, %s, %s, K2", own[v], after[v])  // after ≤ own
			w.op("KANDW K1, K2, K1")
			w.op("KMOVW K1, AX")
		} else {
			w.op("VCMPPS $1, %s, %s, %s", own[v], before[v], before[v])
			w.op("VCMPPS $2, %s, %s, %s", own[v], after[v], after[v])
			w.op("VANDPS %s, %s, %s", before[v], after[v], after[v])
			w.op("VMOVMSKPS %s, AX", after[v])
		}
		w.op("POPCNTL AX, AX")
		w.op("ADDQ AX, R12")
		w.op("VMAXPS %s, %s, %s", memory("leastSum"), all[v], all[v])
		w.op("VDIVPS %s, %s, %s", all[v], own[v], own[v])
		w.op("VADDPS %s, %s, %s", own[v], shares[v%len(shares)], shares[v%len(shares)])
	}
	w.op("ADDQ $%d, SI", vectors*is.size())
	w.op("DECQ R13")
	w.op("JNZ rows")
	w.op("MOVQ R12, right+56(FP)")
	addLanes(w, is)
	w.op("VMOVSS X0, share+64(FP)")
	w.op("VZEROUPPER")
	w.op("RET")
}
