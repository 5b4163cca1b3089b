package main

import "fmt"

// tallest returns the most rows of a tile of the given width in vectors. All
// accumulators stay in registers together with one row of B, one element of A and, for
// AVX2, the mask.
func tallest(is isa, vectors int) int {
	if is.lanes == 16 {
		return []int{0, 12, 12, 8, 6}[vectors]
	}
	return []int{0, 12, 6}[vectors]
}

func widest(is isa) int {
	if is.lanes == 16 {
		return 4
	}
	return 2
}

const tileArguments = "(k int, a unsafe.Pointer, aRow, aCol int, b unsafe.Pointer, bRow int, c unsafe.Pointer, cRow int, start unsafe.Pointer, startRow, tail int)"

// tiles writes the tile kernels of one instruction set and the Go table of them.
func tiles(w *asm, is isa) {
	var rows string
	for vectors := 1; vectors <= widest(is); vectors++ {
		rows += "\t{nil"
		for r := 1; r <= tallest(is, vectors); r++ {
			name := fmt.Sprintf("tile%s_%dx%d", is.name, r, vectors)
			tile(w, is, name, r, vectors)
			rows += ", " + name
		}
		rows += "},\n"
	}
	fmt.Fprintf(&w.declared, "\nvar tiles%s = [][]tile{\n\tnil,\n%s}\n", is.name, rows)
}

// tile writes a kernel for a block of C of the given rows and width in vectors,
// of which the last has tail lanes:
//
//	C = start + Σ_p A[:,p]·B[p,:].
//
// Rows of A, B, C and start lie aRow, bRow, cRow and startRow bytes apart, so A
// may be stored either way round, and start may be one row for all (0), or C.
func tile(w *asm, is isa, name string, rows, vectors int) {
	t := tileAsm{asm: w, is: is, rows: rows, vectors: vectors, last: is.registers - 1}
	m := &mask{is, "K1"}
	if is.lanes == 8 {
		m.reg = is.reg(t.last)
		t.last--
	}
	w.function(name, tileArguments, 88)
	w.op("MOVQ tail+80(FP), AX")
	m.set(w, "AX", "BX", 0)
	w.take("k+0(FP), DI", "a+8(FP), SI", "aRow+16(FP), R8", "aCol+24(FP), R9", "b+32(FP), BX", "bRow+40(FP), R10",
		"c+48(FP), CX", "cRow+56(FP), R11", "start+64(FP), DX", "startRow+72(FP), R12")
	w.op("LEAQ (R8)(R8*2), R13")
	if is.lanes == 8 {
		// Masked loads cost AVX2 a little in the loop, and masked stores cost some
		// processors a lot: a full vector does without.
		w.op("CMPQ AX, $%d", is.lanes)
		w.op("JNE part")
		t.body("", nil)
		w.label("part")
		t.body("Part", m)
		return
	}
	t.body("", m)
}

// tileAsm writes a tile kernel.
type tileAsm struct {
	*asm
	is            isa
	rows, vectors int
	last          int // register of the element of A, in all lanes; the row of B is below it
}

// acc returns the accumulator of vector j of row i.
func (t tileAsm) acc(i, j int) string { return t.is.reg(i*t.vectors + j) }

// row returns the register of vector j of a row of B.
func (t tileAsm) row(j int) string { return t.is.reg(t.last - t.vectors + j) }

// at returns where vector j of a row at base is.
func (t tileAsm) at(base string, j int) string {
	if j == 0 {
		return "(" + base + ")"
	}
	return fmt.Sprintf("%d(%s)", j*t.is.size(), base)
}

// masked returns m for the last vector of a row, nil for the others.
func (t tileAsm) masked(m *mask, j int) *mask {
	if j == t.vectors-1 {
		return m
	}
	return nil
}

// body writes a kernel whose last vectors are masked by m, if it is not nil.
func (t tileAsm) body(suffix string, m *mask) {
	for i := range t.rows {
		for j := range t.vectors {
			t.load(t.is, t.at("DX", j), t.acc(i, j), t.masked(m, j))
		}
		if i < t.rows-1 {
			t.op("ADDQ R12, DX")
		}
	}
	// Four rows of A are reached from each base by multiples of the stride.
	bases := []string{"SI", "AX", "DX"}[:(t.rows+3)/4]
	for i := range bases[1:] {
		t.op("LEAQ (%s)(R8*4), %s", bases[i], bases[i+1])
	}
	t.label("loop" + suffix)
	for j := range t.vectors {
		t.load(t.is, t.at("BX", j), t.row(j), t.masked(m, j))
	}
	t.op("ADDQ R10, BX")
	for i := range t.rows {
		element := t.is.reg(t.last)
		t.op("VBROADCASTSS %s, %s", fmt.Sprintf([]string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R13*1)"}[i%4], bases[i/4]), element)
		for j := range t.vectors {
			t.op("VFMADD231PS %s, %s, %s", t.row(j), element, t.acc(i, j))
		}
	}
	for _, base := range bases {
		t.op("ADDQ R9, %s", base)
	}
	t.op("DECQ DI")
	t.op("JNZ loop%s", suffix)
	for i := range t.rows {
		for j := range t.vectors {
			t.store(t.is, t.acc(i, j), t.at("CX", j), t.masked(m, j))
		}
		if i < t.rows-1 {
			t.op("ADDQ R11, CX")
		}
	}
	t.end()
}

// transpose writes a kernel that stores blocks of 8×8 the other way round:
//
//	dst[p,j] = src[j,p]  for j < 8 and p < 8·blocks.
func transpose(w *asm) {
	w.function("transposeAVX", "(blocks int, src unsafe.Pointer, srcRow int, dst unsafe.Pointer, dstRow int)", 40)
	w.take("blocks+0(FP), DI", "src+8(FP), SI", "srcRow+16(FP), R8", "dst+24(FP), DX", "dstRow+32(FP), R9")
	w.op("LEAQ (R8)(R8*2), R10")
	w.op("LEAQ (SI)(R8*4), R11")
	w.op("LEAQ (R9)(R9*2), R12")
	rows := func(a, b, stride, triple string) []string {
		var at []string
		for _, base := range []string{a, b} {
			at = append(at, "("+base+")", "("+base+")("+stride+"*1)", "("+base+")("+stride+"*2)", "("+base+")("+triple+"*1)")
		}
		return at
	}
	w.label("loop")
	w.op("LEAQ (DX)(R9*4), R13")
	for i, from := range rows("SI", "R11", "R8", "R10") {
		w.op("VMOVUPS %s, Y%d", from, i)
	}
	transpose8(w)
	for i, to := range rows("DX", "R13", "R9", "R12") {
		w.op("VMOVUPS Y%d, %s", i+8, to)
	}
	w.op("ADDQ $32, SI")
	w.op("ADDQ $32, R11")
	w.op("LEAQ (R13)(R9*4), DX")
	w.op("DECQ DI")
	w.op("JNZ loop")
	w.end()
}

// transpose8 writes the transpose of Y0 to Y7 to Y8 to Y15.
func transpose8(w *asm) {
	for i := 0; i < 8; i += 2 { // pairs of rows
		w.op("VUNPCKLPS Y%d, Y%d, Y%d", i+1, i, i+8)
		w.op("VUNPCKHPS Y%d, Y%d, Y%d", i+1, i, i+9)
	}
	for i := 0; i < 8; i += 4 { // fours
		for half := range 2 {
			w.op("VSHUFPS $0x44, Y%d, Y%d, Y%d", i+10+half, i+8+half, i+2*half)
			w.op("VSHUFPS $0xEE, Y%d, Y%d, Y%d", i+10+half, i+8+half, i+2*half+1)
		}
	}
	for i := range 4 { // both halves of the registers
		w.op("VPERM2F128 $0x20, Y%d, Y%d, Y%d", i+4, i, i+8)
		w.op("VPERM2F128 $0x31, Y%d, Y%d, Y%d", i+4, i, i+12)
	}
}

// copyRows writes a kernel that stores rows of so many vectors, which lie srcRow
// bytes apart, dstRow bytes apart.
func copyRows(w *asm) {
	w.function("copyRowsAVX", "(rows, vectors int, src unsafe.Pointer, srcRow int, dst unsafe.Pointer, dstRow int)", 48)
	w.take("rows+0(FP), DI", "vectors+8(FP), R10", "src+16(FP), SI", "srcRow+24(FP), R8", "dst+32(FP), DX", "dstRow+40(FP), R9")
	w.op("SHLQ $5, R10")
	w.label("row")
	w.op("XORQ CX, CX")
	w.label("vector")
	w.op("VMOVUPS (SI)(CX*1), Y0")
	w.op("VMOVUPS Y0, (DX)(CX*1)")
	w.op("ADDQ $32, CX")
	w.op("CMPQ CX, R10")
	w.op("JLT vector")
	w.op("ADDQ R8, SI")
	w.op("ADDQ R9, DX")
	w.op("DECQ DI")
	w.op("JNZ row")
	w.end()
}
