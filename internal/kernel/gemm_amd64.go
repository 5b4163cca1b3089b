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
	aRow, aCol := k, 1
	if op&TransA != 0 {
		aRow, aCol = 1, m
	}
	// One or two columns over are dot products along the rows of A, if these are
	// long and lie in one piece. Otherwise, if half a vector holds the last columns,
	// they cost half as much. What is done does not depend on m: see Bits.
	tail := n % t.lanes
	dots := t.dots != nil && 0 < tail && tail <= 2 && op&TransA == 0 && k >= long
	main := n
	if dots || t.narrow != nil && 0 < tail && tail <= t.narrow.lanes {
		main -= tail
	}
	vectors := ceil(main, t.lanes)
	columns := ceil(vectors, len(t.tiles)-1)
	// B is read in place unless it lies the wrong way round, or is read so often
	// that rows far apart cost more than packing them. So is A, which every
	// column of tiles reads; transposed, its rows are near enough.
	packB := op&TransB != 0 || m >= 48 && columns > 1
	packA := op&TransA == 0 && m >= 48 && n >= wide
	var packed *scratch
	if packB || packA || dots {
		packed = scratches.Get().(*scratch)
		defer scratches.Put(packed)
	}
	for p := 0; p < k; p += depth {
		kc := min(depth, k-p)
		for i, left := 0, ceil(m, height); left > 0; left-- {
			mc := ceil(m-i, left)
			if packA {
				packRows(packed.rows[:], a[i*k+p:], k, kc, mc)
			}
			for column, j := 0, 0; j < n; column++ {
				// Columns have about the same number of vectors.
				t, width, end := t, 1, n
				over := j == main // the last columns
				if !over {
					width, end = ceil(vectors-j/t.lanes, columns-column), main
				} else if !dots {
					t = t.narrow
				}
				nc := min(width*t.lanes, end-j)
				s := strip{
					tiles: t.tiles[width],
					k:     kc, tail: nc - (width-1)*t.lanes,
					a: unsafe.Pointer(&a[i*aRow+p*aCol]), aRow: aRow * size, aCol: aCol * size,
					c: unsafe.Pointer(&c[i*n+j]), cRow: n * size,
					start: unsafe.Pointer(&zeros),
				}
				if packA && !(over && dots) {
					s.a, s.packed = unsafe.Pointer(&packed.rows), true
				}
				switch {
				case over && dots:
					s.tiles = t.dots
					packDots(packed.panel[:], op, b, j, n, k, p, kc)
					s.b, s.bRow = unsafe.Pointer(&packed.panel), depth*size
				case packB:
					packPanel(packed.panel[:], op, width*t.lanes, b, j, n, k, p, kc, nc)
					s.b, s.bRow = unsafe.Pointer(&packed.panel), width*t.lanes*size
				default:
					s.b, s.bRow = unsafe.Pointer(&b[p*n+j]), n*size
				}
				if p > 0 || op&Add != 0 {
					s.start, s.startRow = s.c, s.cRow
				} else if bias != nil {
					s.start = unsafe.Pointer(&bias[j])
				}
				s.run(mc)
				j += nc
			}
			i += mc
		}
	}
}

// packPanel copies rows p to p+kc of nc columns of B from j on, to rows that are
// width elements apart.
func packPanel(dst []float32, op Op, width int, b []float32, j, n, k, p, kc, nc int) {
	if op&TransB != 0 {
		packTransposed(dst, width, b[j*k+p:], k, kc, nc)
	} else {
		pack(dst, width, b[p*n+j:], n, kc, nc)
	}
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
