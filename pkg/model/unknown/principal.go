package unknown

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
)

// principal returns the q directions in which the rows of z, n×p row-major with means
// near 0, vary most, and the variances along them, largest first. The directions are
// q×p by rows, of length 1 and at right angles. Equal arguments give equal bytes.
//
// Block power iteration from random directions, then the eigenvectors of what z is
// among them. (G. Golub and C. Van Loan, "Matrix Computations", 4th ed., §8.2.4;
// N. Halko, P. Martinsson and J. Tropp, SIAM Review 53(2), 2011, alg. 4.4.)
func principal(z []float32, n, p, q int, seed uint64) (directions []float32, variances []float64) {
	const rounds = 12
	if q == 0 {
		return nil, nil
	}
	rng := rand.New(rand.NewPCG(seed, 0x706361)) // "pca"
	v := make([]float64, q*p)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	v32, next := make([]float32, q*p), make([]float32, q*p)
	along := make([]float32, n*q)
	for range rounds {
		orthonormalise(v, q, p)
		narrow(v32, v)
		kernel.Gemm(kernel.TransB, n, q, p, z, v32, nil, along)
		kernel.Gemm(kernel.TransA, q, p, n, along, z, nil, next)
		for i, x := range next {
			v[i] = float64(x)
		}
	}
	orthonormalise(v, q, p)
	narrow(v32, v)
	kernel.Gemm(kernel.TransB, n, q, p, z, v32, nil, along)
	c := make([]float64, q*q)
	for i := range n {
		row := along[i*q : (i+1)*q]
		for a, x := range row {
			for b, y := range row {
				c[a*q+b] += float64(x) * float64(y) / float64(max(n-1, 1))
			}
		}
	}
	turn := eigen(c, q)
	order := make([]int, q)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c[b*q+b], c[a*q+a]) })
	directions = make([]float32, q*p)
	for to, k := range order {
		variances = append(variances, max(c[k*q+k], 0))
		for j := range p {
			var sum float64
			for a := range q {
				sum += turn[a*q+k] * v[a*p+j]
			}
			directions[to*p+j] = float32(sum)
		}
	}
	return directions, variances
}

func narrow(dst []float32, x []float64) {
	for i, v := range x {
		dst[i] = float32(v)
	}
}

// orthonormalise makes the q rows of v, of length p, orthonormal by Gram-Schmidt,
// twice over for the sake of rounding. A row that the ones before hold already becomes 0.
func orthonormalise(v []float64, q, p int) {
	for a := range q {
		row := v[a*p : (a+1)*p]
		before := math.Sqrt(dot(row, row))
		for range 2 {
			for b := range a {
				other := v[b*p : (b+1)*p]
				s := dot(row, other)
				for j, x := range other {
					row[j] -= s * x
				}
			}
		}
		length := math.Sqrt(dot(row, row))
		for j := range row {
			if length > 1e-6*before {
				row[j] /= length
			} else {
				row[j] = 0
			}
		}
	}
}

func dot(a, b []float64) float64 {
	var sum float64
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// eigen makes the symmetric q×q matrix c diagonal, its eigenvalues on the diagonal,
// and returns the eigenvectors as columns, by cyclic Jacobi rotations. (Golub and
// Van Loan, §8.5.)
func eigen(c []float64, q int) []float64 {
	turn := make([]float64, q*q)
	for k := range q {
		turn[k*q+k] = 1
	}
	for range 30 {
		var off, all float64
		for a := range q {
			for b := range q {
				if x := c[a*q+b] * c[a*q+b]; a != b {
					off, all = off+x, all+x
				} else {
					all += x
				}
			}
		}
		if off <= 1e-24*all {
			break
		}
		for a := range q {
			for b := a + 1; b < q; b++ {
				rotate(c, turn, q, a, b)
			}
		}
	}
	return turn
}

// rotate makes c[a,b] zero.
func rotate(c, turn []float64, q, a, b int) {
	if c[a*q+b] == 0 {
		return
	}
	theta := (c[b*q+b] - c[a*q+a]) / (2 * c[a*q+b])
	t := math.Copysign(1, theta) / (math.Abs(theta) + math.Hypot(theta, 1))
	cos := 1 / math.Hypot(t, 1)
	sin := t * cos
	for k := range q {
		x, y := c[k*q+a], c[k*q+b]
		c[k*q+a], c[k*q+b] = cos*x-sin*y, sin*x+cos*y
	}
	for k := range q {
		x, y := c[a*q+k], c[b*q+k]
		c[a*q+k], c[b*q+k] = cos*x-sin*y, sin*x+cos*y
		x, y = turn[k*q+a], turn[k*q+b]
		turn[k*q+a], turn[k*q+b] = cos*x-sin*y, sin*x+cos*y
	}
}
