//go:build !noasm

package kernel

import (
	"sync"
	"unsafe"
)

// tile is a kernel for a small block of C whose sums stay in registers; see
// gen/gemm.go for its arguments.
type tile func(k int, a unsafe.Pointer, aRow, aCol int, b unsafe.Pointer, bRow int, c unsafe.Pointer, cRow int, start unsafe.Pointer, startRow, tail int)

// tiling cuts a product into tiles.
type tiling struct {
	lanes  int      // float32 in a vector
	tiles  [][]tile // by width in vectors and by rows; tiles[0] and tiles[w][0] are not used
	narrow *tiling  // with vectors of half as many lanes, or nil
	dots   []tile   // for one or two columns, by rows, or nil; see gen/dots.go
}

var (
	gemmAVX2   = &tiling{lanes: 8, tiles: tilesAVX2}
	gemmAVX512 = &tiling{lanes: 16, tiles: tilesAVX512, narrow: gemmAVX2, dots: dotsAVX512}
)

const (
	depth  = 256 // of the inner dimension that is worked on at a time: a panel of B then fits the first cache
	height = 480 // rows of A that are worked on at a time: with depth, they fit the second
	size   = 4   // bytes of an element
	wide   = 256 // columns from which on packing A pays
	tall   = 6   // rows of a tile of packed A: all widths have it
	long   = 128 // inner dimension from which on dot products pay
)

// scratch is room for what is packed. A panel is the part of B beneath one
// column of tiles, 64 wide at most; rows of A have a little more than their
// room, because they are written eight at a time.
type scratch struct {
	panel [depth * 64]float32
	rows  [depth*height + 8]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

var zeros [64]float32 // a bias for a product that has none

// product is Gemm. Its arguments were checked, and C is not empty.
func (t *tiling) product(op Op, m, n, k int, a, b, bias, c []float32) {
	if k == 0 {
		gemmGo(op, m, n, k, a, b, bias, c)
		return
	}
	w := t.plan(op, m, n, k)
	w.a, w.b, w.bias, w.c = a, b, bias, c
	if w.packB || w.packA || w.dots {
		w.packed = scratches.Get().(*scratch)
		defer scratches.Put(w.packed)
	}
	for p := 0; p < k; p += depth {
		kc := min(depth, k-p)
		for i, left := 0, ceil(m, height); left > 0; left-- {
			mc := ceil(m-i, left)
			if w.packA {
				packRows(w.packed.rows[:], a[i*k+p:], k, kc, mc)
			}
			w.block(p, kc, i, mc)
			i += mc
		}
	}
}

// work is one product and how it is cut.
type work struct {
	t             *tiling
	op            Op
	m, n, k       int
	a, b, bias, c []float32
	aRow, aCol    int // strides of A

	main         int  // columns before those that dots or narrow tiles take
	vectors      int  // of main
	columns      int  // of tiles in main
	dots         bool // the columns after main are dot products
	packA, packB bool
	packed       *scratch // nil if nothing is packed
}

// plan says how a product is cut, which does not depend on m (see Bits), and what
// is packed, which does.
func (t *tiling) plan(op Op, m, n, k int) work {
	w := work{t: t, op: op, m: m, n: n, k: k, aRow: k, aCol: 1, main: n}
	if op&TransA != 0 {
		w.aRow, w.aCol = 1, m
	}
	// One or two columns over are dot products along the rows of A, if these are
	// long and lie in one piece. Otherwise, if half a vector holds the last columns,
	// they cost half as much.
	tail := n % t.lanes
	w.dots = t.dots != nil && 0 < tail && tail <= 2 && op&TransA == 0 && k >= long
	if w.dots || t.narrow != nil && 0 < tail && tail <= t.narrow.lanes {
		w.main -= tail
	}
	w.vectors = ceil(w.main, t.lanes)
	w.columns = ceil(w.vectors, len(t.tiles)-1)
	// B is read in place unless it lies the wrong way round, or is read so often
	// that rows far apart cost more than packing them. So is A, which every
	// column of tiles reads; transposed, its rows are near enough.
	w.packB = op&TransB != 0 || m >= 48 && w.columns > 1
	w.packA = op&TransA == 0 && m >= 48 && n >= wide
	return w
}

// block adds the products of kc columns of A from p on, for mc rows from i on.
func (w *work) block(p, kc, i, mc int) {
	for column, j := 0, 0; j < w.n; column++ {
		if j == w.main && w.dots {
			s := w.strip(w.t, 1, p, kc, i, j, w.n-j)
			s.tiles = w.t.dots
			packDots(w.packed.panel[:], w.op, w.b, j, w.n, w.k, p, kc)
			s.b, s.bRow = unsafe.Pointer(&w.packed.panel), depth*size
			s.run(mc)
			return
		}
		// Columns have about the same number of vectors.
		t, width, end := w.t, 1, w.n
		if j == w.main {
			t = t.narrow
		} else {
			width, end = ceil(w.vectors-j/t.lanes, w.columns-column), w.main
		}
		nc := min(width*t.lanes, end-j)
		s := w.strip(t, width, p, kc, i, j, nc)
		if w.packA {
			s.a, s.packed = unsafe.Pointer(&w.packed.rows), true
		}
		w.setB(&s, width*t.lanes, p, kc, j, nc)
		s.run(mc)
		j += nc
	}
}

// setB sets where a strip finds nc columns of B from j on, and packs them if that
// is the plan.
func (w *work) setB(s *strip, width, p, kc, j, nc int) {
	if !w.packB {
		s.b, s.bRow = unsafe.Pointer(&w.b[p*w.n+j]), w.n*size
		return
	}
	if w.op&TransB != 0 {
		packTransposed(w.packed.panel[:], width, w.b[j*w.k+p:], w.k, kc, nc)
	} else {
		pack(w.packed.panel[:], width, w.b[p*w.n+j:], w.n, kc, nc)
	}
	s.b, s.bRow = unsafe.Pointer(&w.packed.panel), width*size
}

// strip returns a column of tiles of t, without B and with A in place.
func (w *work) strip(t *tiling, width, p, kc, i, j, nc int) strip {
	s := strip{
		tiles: t.tiles[width],
		k:     kc, tail: nc - (width-1)*t.lanes,
		a: unsafe.Pointer(&w.a[i*w.aRow+p*w.aCol]), aRow: w.aRow * size, aCol: w.aCol * size,
		c: unsafe.Pointer(&w.c[i*w.n+j]), cRow: w.n * size,
	}
	switch {
	case p > 0 || w.op&Add != 0:
		s.start, s.startRow = s.c, s.cRow
	case w.bias != nil:
		s.start = unsafe.Pointer(&w.bias[j])
	default:
		s.start = unsafe.Pointer(&zeros)
	}
	return s
}

// strip is a column of tiles: the arguments of a tile kernel, moving down.
type strip struct {
	tiles      []tile // by rows
	k, tail    int
	a, b       unsafe.Pointer
	c, start   unsafe.Pointer
	aRow, aCol int  // strides in bytes
	packed     bool // A is, by packRows; strides are then of each tile
	bRow       int
	cRow       int
	startRow   int
}

// run computes the given number of rows, in tiles of about the same height.
func (s *strip) run(rows int) {
	highest := len(s.tiles) - 1
	if s.packed {
		highest = tall
	}
	for left := ceil(rows, highest); left > 0; left-- {
		r := ceil(rows, left)
		down := r * s.aRow
		if s.packed {
			s.aRow, s.aCol = size, r*size
			down = r * s.k * size
		}
		s.tiles[r](s.k, s.a, s.aRow, s.aCol, s.b, s.bRow, s.c, s.cRow, s.start, s.startRow, s.tail)
		if rows -= r; rows > 0 { // a pointer past its slice must not exist
			s.a = unsafe.Add(s.a, down)
			s.c = unsafe.Add(s.c, r*s.cRow)
			s.start = unsafe.Add(s.start, r*s.startRow)
		}
	}
}

// packRows copies n rows of a, k long, to tiles of the heights that run takes,
// each stored column by column. Eight rows at a time are copied to where fewer
// belong: the next column, or the next tile, overwrites the rest.
func packRows(dst, a []float32, aRow, k, n int) {
	for left := ceil(n, tall); left > 0; left-- {
		r := ceil(n, left)
		if n >= 8 {
			packTransposed(dst, r, a, aRow, k, 8)
		} else {
			packTransposed(dst, r, a, aRow, k, r)
		}
		if n -= r; n > 0 {
			dst, a = dst[r*k:], a[r*aRow:]
		}
	}
}

// ceil returns a/b rounded up.
func ceil(a, b int) int { return (a + b - 1) / b }

// pack copies n columns of k rows of b, bRow elements apart, to rows that are
// width elements apart.
func pack(dst []float32, width int, b []float32, bRow, k, n int) {
	if n%8 == 0 {
		copyRowsAVX(k, n/8, unsafe.Pointer(&b[0]), bRow*size, unsafe.Pointer(&dst[0]), width*size)
		return
	}
	for p := range k {
		copy(dst[p*width:], b[p*bRow:][:n])
	}
}

// packDots copies rows p to p+kc of the columns of B from j on, one or two, each
// with zeros up to a whole vector, to places depth apart.
func packDots(dst []float32, op Op, b []float32, j, n, k, p, kc int) {
	first, second := dst[:kc], dst[depth:][:kc]
	switch {
	case op&TransB != 0:
		copy(first, b[j*k+p:])
		if j+1 < n {
			copy(second, b[(j+1)*k+p:])
		}
	case j+1 < n:
		b = b[p*n+j:]
		for i := range first {
			row := b[i*n:][:2]
			first[i], second[i] = row[0], row[1]
		}
	default:
		for i := range first {
			first[i] = b[(p+i)*n+j]
		}
	}
	end := (kc + 15) &^ 15
	clear(dst[kc:end])
	clear(dst[depth+kc : depth+end])
}

// packTransposed does the same where b is stored transposed: n rows of k.
func packTransposed(dst []float32, width int, b []float32, bRow, k, n int) {
	j := 0
	blocks := k / 8
	for ; j+8 <= n; j += 8 {
		if blocks > 0 {
			transposeAVX(blocks, unsafe.Pointer(&b[j*bRow]), bRow*size, unsafe.Pointer(&dst[j]), width*size)
		}
		for p := blocks * 8; p < k; p++ {
			for q := j; q < j+8; q++ {
				dst[p*width+q] = b[q*bRow+p]
			}
		}
	}
	for ; j < n; j++ {
		for p, v := range b[j*bRow:][:k] {
			dst[p*width+j] = v
		}
	}
}

//go:noescape
func transposeAVX(blocks int, src unsafe.Pointer, srcRow int, dst unsafe.Pointer, dstRow int)

//go:noescape
func copyRowsAVX(rows, vectors int, src unsafe.Pointer, srcRow int, dst unsafe.Pointer, dstRow int)
