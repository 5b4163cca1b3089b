package kernel

// Op says how Gemm reads its operands and what it does with C.
type Op uint8

const (
	TransA Op = 1 << iota // A is stored transposed, k×m
	TransB                // B is stored transposed, n×k; not together with TransA
	Add                   // add to what C holds; not together with a bias
)

// Gemm stores in c, m×n, the product
//
//	c[i,j] = bias[j] + Σ_p a[i,p]·b[p,j],
//
// where a is m×k and b is k×n, unless op says that one of them is stored
// transposed. A nil bias counts as zeros; with Add the sum starts from c[i,j]
// instead. c must not overlap a, b or bias. Gemm panics if a slice is not
// exactly as long as its shape.
func Gemm(op Op, m, n, k int, a, b, bias, c []float32) {
	check(m >= 0 && n >= 0 && k >= 0, "Gemm: negative shape")
	check(len(a) == m*k, "Gemm: length of a")
	check(len(b) == k*n, "Gemm: length of b")
	check(len(c) == m*n, "Gemm: length of c")
	check(bias == nil || len(bias) == n && op&Add == 0, "Gemm: bias")
	check(op&(TransA|TransB) != TransA|TransB, "Gemm: both operands transposed")
	if m == 0 || n == 0 {
		return
	}
	active.gemm(op, m, n, k, a, b, bias, c)
}

// gemmGo tiles for registers: two rows of C by four steps of the inner dimension,
// or two by three dot products where B is transposed. For the caches it cuts the
// inner dimension and the rows of C. The slices of an inner loop are cut to one
// length before it, so it checks no bounds.
func gemmGo(op Op, m, n, k int, a, b, bias, c []float32) {
	switch {
	case op&Add != 0:
	case bias == nil:
		clear(c)
	default:
		for i := range m {
			copy(c[i*n:(i+1)*n], bias)
		}
	}
	if op&TransB != 0 {
		gemmDots(m, n, k, a, b, c)
		return
	}
	// Row i of op(A) is a[i*row + p*col].
	row, col := k, 1
	if op&TransA != 0 {
		row, col = 1, m
	}
	const (
		l1 = 1 << 12 // floats of B that are read again while they are in the first cache
		l2 = 1 << 15 // floats of C that are added to again while they are in the second
	)
	block, high := max(l1/n&^3, 4), max(l2/n&^1, 2)
	for i0 := 0; i0 < m; i0 += high {
		i1 := min(i0+high, m)
		for p0 := 0; p0 < k; p0 += block {
			p1 := min(p0+block, k)
			i := i0
			for ; i+2 <= i1; i += 2 {
				cc := c[i*n : (i+2)*n]
				p := p0
				for ; p+4 <= p1; p += 4 {
					x, y := a[i*row+p*col:], a[(i+1)*row+p*col:]
					rank4x2(n, cc, b[p*n:(p+4)*n],
						x[0], x[col], x[2*col], x[3*col],
						y[0], y[col], y[2*col], y[3*col])
				}
				for ; p < p1; p++ {
					rank1(cc[:n], b[p*n:(p+1)*n], a[i*row+p*col])
					rank1(cc[n:], b[p*n:(p+1)*n], a[(i+1)*row+p*col])
				}
			}
			if i == i1 {
				continue
			}
			cc := c[i*n : (i+1)*n]
			p := p0
			for ; p+4 <= p1; p += 4 {
				x := a[i*row+p*col:]
				rank4(cc, b[p*n:(p+4)*n], x[0], x[col], x[2*col], x[3*col])
			}
			for ; p < p1; p++ {
				rank1(cc, b[p*n:(p+1)*n], a[i*row+p*col])
			}
		}
	}
}

// rank4x2 adds to both rows of c, 2×n, four rows of b, 4×n, times x and y.
func rank4x2(n int, c, b []float32, x0, x1, x2, x3, y0, y1, y2, y3 float32) {
	c0 := c[:n]
	c1 := c[n:][:len(c0)]
	b0 := b[:n][:len(c0)]
	b1 := b[n:][:len(c0)]
	b2 := b[2*n:][:len(c0)]
	b3 := b[3*n:][:len(c0)]
	for j := range c0 {
		s, t := c0[j], c1[j]
		v := b0[j]
		s += x0 * v
		t += y0 * v
		v = b1[j]
		s += x1 * v
		t += y1 * v
		v = b2[j]
		s += x2 * v
		t += y2 * v
		v = b3[j]
		c0[j] = s + x3*v
		c1[j] = t + y3*v
	}
}

// rank4 is rank4x2 for one row.
func rank4(c, b []float32, x0, x1, x2, x3 float32) {
	n := len(c)
	b0 := b[:n][:len(c)]
	b1 := b[n:][:len(c)]
	b2 := b[2*n:][:len(c)]
	b3 := b[3*n:][:len(c)]
	for j, s := range c {
		s += x0 * b0[j]
		s += x1 * b1[j]
		s += x2 * b2[j]
		c[j] = s + x3*b3[j]
	}
}

// rank1 adds x·b to c.
func rank1(c, b []float32, x float32) {
	b = b[:len(c)]
	for j, s := range c {
		c[j] = s + x*b[j]
	}
}

// gemmDots adds a·bᵀ to c, where a is m×k and b is n×k.
func gemmDots(m, n, k int, a, b, c []float32) {
	i := 0
	for ; i+2 <= m; i += 2 {
		aa := a[i*k : (i+2)*k]
		c0, c1 := c[i*n:(i+1)*n], c[(i+1)*n:(i+2)*n]
		j := 0
		for ; j+3 <= n; j += 3 {
			dot2x3(k, c0[j:j+3], c1[j:j+3], aa, b[j*k:(j+3)*k])
		}
		for ; j < n; j++ {
			c0[j], c1[j] = dot2(c0[j], c1[j], aa, b[j*k:(j+1)*k])
		}
	}
	if i < m {
		for j := range n {
			s := c[i*n+j]
			x, y := a[i*k:], b[j*k:(j+1)*k]
			x = x[:len(y)]
			for p, v := range y {
				s += x[p] * v
			}
			c[i*n+j] = s
		}
	}
}

// dot2x3 adds to c and d the products of each of the two rows of a, 2×k, with
// the three rows of b, 3×k. With a fourth row the compiler runs out of
// registers, and a sum that goes through memory halves the speed. Two steps of
// the inner dimension in one of the loop gain some percent.
func dot2x3(k int, c, d, a, b []float32) {
	_, _ = c[2], d[2]
	c0, c1, c2 := c[0], c[1], c[2]
	d0, d1, d2 := d[0], d[1], d[2]
	x := a[:k]
	y := a[k:][:len(x)]
	b0 := b[:k][:len(x)]
	b1 := b[k:][:len(x)]
	b2 := b[2*k:][:len(x)]
	p := 0
	for ; p < len(x)-1; p += 2 {
		u, w := x[p], y[p]
		v := b0[p]
		c0 += u * v
		d0 += w * v
		v = b1[p]
		c1 += u * v
		d1 += w * v
		v = b2[p]
		c2 += u * v
		d2 += w * v
		u, w = x[p+1], y[p+1]
		v = b0[p+1]
		c0 += u * v
		d0 += w * v
		v = b1[p+1]
		c1 += u * v
		d1 += w * v
		v = b2[p+1]
		c2 += u * v
		d2 += w * v
	}
	if p < len(x) {
		u, w := x[p], y[p]
		v := b0[p]
		c0 += u * v
		d0 += w * v
		v = b1[p]
		c1 += u * v
		d1 += w * v
		v = b2[p]
		c2 += u * v
		d2 += w * v
	}
	c[0], c[1], c[2] = c0, c1, c2
	d[0], d[1], d[2] = d0, d1, d2
}

// dot2 adds to s and t the products of the two rows of a with b.
func dot2(s, t float32, a, b []float32) (float32, float32) {
	x := a[:len(b)]
	y := a[len(b):][:len(b)]
	for p, v := range b {
		s += x[p] * v
		t += y[p] * v
	}
	return s, t
}
