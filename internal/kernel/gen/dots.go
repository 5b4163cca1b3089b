package main

import "fmt"

// dots writes the AVX-512 kernels for one or two columns of C, by rows, and the Go
// table of them:
//
//	C = start + Σ_p A[:,p]·B[p,:].
//
// They take the arguments of a tile, with A as it lies, B transposed, and zeros
// after both of its columns up to a whole vector. Element p is added in lane
// p mod 16, and lanes are then added by halves.
func dots(w *asm) {
	list := "nil"
	for rows := 1; rows <= 8; rows++ {
		name := fmt.Sprintf("dots%s_%d", avx512.name, rows)
		dotRows(w, name, rows)
		list += ", " + name
	}
	fmt.Fprintf(&w.declared, "\nvar dots%s = []tile{%s}\n", avx512.name, list)
}

func dotRows(w *asm, name string, rows int) {
	is := avx512
	w.function(name, tileArguments, 88)
	w.take("k+0(FP), DI", "a+8(FP), SI", "aRow+16(FP), R8", "b+32(FP), BX", "bRow+40(FP), R10")
	w.op("LEAQ (R8)(R8*2), R13")
	bases := []string{"SI", "AX"}[:(rows+3)/4]
	if len(bases) == 2 {
		w.op("LEAQ (SI)(R8*4), AX")
	}
	for i := range 16 {
		w.op("VPXORD %s, %s, %s", is.reg(i), is.reg(i), is.reg(i))
	}
	body := func(m *mask) {
		w.op("VMOVUPS (BX), Z16")
		w.op("VMOVUPS (BX)(R10*1), Z17")
		for i := range rows {
			row := is.reg(18 + i)
			w.load(is, fmt.Sprintf([]string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R13*1)"}[i%4], bases[i/4]), row, m)
			for j := range 2 {
				w.op("VFMADD231PS %s, %s, %s", is.reg(16+j), row, is.reg(2*i+j))
			}
		}
	}
	w.op("SUBQ $16, DI")
	w.op("JLT tail")
	w.label("loop")
	body(nil)
	for _, base := range append(bases, "BX") {
		w.op("ADDQ $64, %s", base)
	}
	w.op("SUBQ $16, DI")
	w.op("JGE loop")
	w.label("tail")
	w.op("ADDQ $16, DI")
	w.op("JZ done")
	m := &mask{is, "K1"}
	m.set(w, "DI", "R9", 0)
	body(m)
	w.label("done")
	addAll(w)
	w.take("tail+80(FP), DI", "start+64(FP), DX", "startRow+72(FP), R12")
	storeDots(w, rows, m)
}

// storeDots adds the sums in Z0, two a row, to start, and stores them.
func storeDots(w *asm, rows int, m *mask) {
	m.set(w, "DI", "R9", 0)
	w.take("c+48(FP), CX", "cRow+56(FP), R11")
	for i := range rows {
		w.load(avx512, "(DX)", "Z1", m)
		w.op("VALIGND $%d, Z0, Z0, Z2", 2*i)
		w.op("VADDPS Z2, Z1, Z1")
		w.store(avx512, "Z1", "(CX)", m)
		if i < rows-1 {
			w.op("ADDQ R12, DX")
			w.op("ADDQ R11, CX")
		}
	}
	w.end()
}

// addAll writes Z0[i] = the sum of the lanes of register i, for i < 16. Within
// each quarter of the registers, then over quarters, it swaps what belongs to
// others and adds.
func addAll(w *asm) {
	const s, t = "Z16", "Z17"
	// merge leaves in register a the sum of both ways to join a and b.
	merge := func(op1, op2 string, a, b int) {
		w.op("%s Z%d, Z%d, %s", op1, b, a, s)
		w.op("%s Z%d, Z%d, %s", op2, b, a, t)
		w.op("VADDPS %s, %s, Z%d", t, s, a)
	}
	for i := 0; i < 16; i += 4 {
		merge("VUNPCKLPS", "VUNPCKHPS", i, i+1)
		merge("VUNPCKLPS", "VUNPCKHPS", i+2, i+3)
		merge("VUNPCKLPD", "VUNPCKHPD", i, i+2)
	}
	merge("VSHUFF32X4 $0x44,", "VSHUFF32X4 $0xEE,", 0, 4)
	merge("VSHUFF32X4 $0x44,", "VSHUFF32X4 $0xEE,", 8, 12)
	merge("VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xDD,", 0, 8)
}
