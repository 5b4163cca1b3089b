package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func randoms(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// product is Gemm by its formula in float64, and the sum of the magnitudes
// of the terms of every element: what rounding errors are relative to.
func product(op Op, m, n, k int, a, b, bias, c []float32) (want, scale []float64) {
	want, scale = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			var sum, size float64
			add := func(v float64) {
				sum += v
				size += math.Abs(v)
			}
			switch {
			case op&Add != 0:
				add(float64(c[i*n+j]))
			case bias != nil:
				add(float64(bias[j]))
			}
			for p := range k {
				ai, bi := i*k+p, p*n+j
				if op&TransA != 0 {
					ai = p*m + i
				}
				if op&TransB != 0 {
					bi = j*k + p
				}
				add(float64(a[ai]) * float64(b[bi]))
			}
			want[i*n+j], scale[i*n+j] = sum, size
		}
	}
	return want, scale
}

var ops = []Op{0, TransA, TransB}

// TestGemm holds the product to its formula. The bound is 1e-5 of the magnitude
// of the terms, which the first-order bound k·2⁻²⁴ of recursive summation stays
// under for k up to 160 and the usual √k·2⁻²⁴ for any k here.
func TestGemm(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			op := rapid.SampledFrom(ops).Draw(t, "op")
			size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(60, 140))
			m, n := size.Draw(t, "m"), size.Draw(t, "n")
			k := rapid.OneOf(size, rapid.IntRange(250, 600)).Draw(t, "k")
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			a, b, c := randoms(rng, m*k), randoms(rng, k*n), randoms(rng, m*n)
			var bias []float32
			switch rapid.SampledFrom([]string{"zero", "bias", "add"}).Draw(t, "start") {
			case "bias":
				bias = randoms(rng, n)
			case "add":
				op |= Add
			}
			want, scale := product(op, m, n, k, a, b, bias, c)
			Gemm(op, m, n, k, a, b, bias, c)
			for i, w := range want {
				if got := float64(c[i]); !(math.Abs(got-w) <= 1e-5*scale[i]) {
					t.Fatalf("c[%d,%d] = %v, want %v", i/n, i%n, got, w)
				}
			}
		})
	})
}

// Wide layers take packed operands, in blocks of rows and of the inner dimension.
func TestGemmOfWideLayers(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, s := range []struct{ m, n, k int }{{48, 256, 3}, {61, 258, 260}, {485, 257, 20}, {50, 270, 513}} {
			for _, op := range []Op{0, TransA, TransB, Add} {
				a, b, c := randoms(rng, s.m*s.k), randoms(rng, s.k*s.n), randoms(rng, s.m*s.n)
				want, scale := product(op, s.m, s.n, s.k, a, b, nil, c)
				Gemm(op, s.m, s.n, s.k, a, b, nil, c)
				for i, w := range want {
					if got := float64(c[i]); !(math.Abs(got-w) <= 1e-5*scale[i]) {
						t.Fatalf("op %d, %v: c[%d,%d] = %v, want %v", op, s, i/s.n, i%s.n, got, w)
					}
				}
			}
		}
	})
}

// TestGemmGuards places the operands between canaries: an edge tile must not
// read or write past a matrix. NaN around an operand would spread into C.
func TestGemmGuards(t *testing.T) {
	nan := float32(math.NaN())
	const pad = 64
	guarded := func(x []float32) (all, window []float32) {
		all = make([]float32, len(x)+2*pad)
		for i := range all {
			all[i] = nan
		}
		copy(all[pad:], x)
		return all, all[pad : pad+len(x) : pad+len(x)]
	}
	eachFamily(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for m := 1; m <= 20; m++ {
			for _, n := range []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 66} {
				for i, op := range append(ops, ops...) {
					k := []int{5, 131}[i/len(ops)] // with a column or two over, long rows are dot products
					if k > 5 && m%4 != 1 {
						continue // enough
					}
					_, a := guarded(randoms(rng, m*k))
					_, b := guarded(randoms(rng, k*n))
					_, bias := guarded(randoms(rng, n))
					all, c := guarded(make([]float32, m*n))
					Gemm(op, m, n, k, a, b, bias, c)
					want, scale := product(op, m, n, k, a, b, bias, nil)
					for i, w := range want {
						if got := float64(c[i]); !(math.Abs(got-w) <= 1e-5*scale[i]) {
							t.Fatalf("op %d, %d×%d: c[%d] = %v, want %v", op, m, n, i, got, w)
						}
					}
					for i, v := range all {
						if inside := i >= pad && i < pad+m*n; !inside && v == v {
							t.Fatalf("op %d, %d×%d: wrote %v at %d, outside", op, m, n, v, i-pad)
						}
					}
				}
			}
		}
	})
}

// TestGemmRowsAreIndependent is what lets a scorer judge one row and a report
// a thousand with the same result.
func TestGemmRowsAreIndependent(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		for _, op := range []Op{0, TransB} {
			for _, n := range []int{1, 2, 30, 50, 70, 257, 260} {
				const m, k = 490, 300
				a, b, bias := randoms(rng, m*k), randoms(rng, k*n), randoms(rng, n)
				all, one := make([]float32, m*n), make([]float32, n)
				Gemm(op, m, n, k, a, b, bias, all)
				for i := range m {
					Gemm(op, 1, n, k, a[i*k:(i+1)*k], b, bias, one)
					if at := firstDifference(one, all[i*n:(i+1)*n]); at >= 0 {
						t.Fatalf("op %d, width %d, row %d, column %d: %v alone, %v among others", op, n, i, at, one[at], all[i*n+at])
					}
				}
			}
		}
	})
}

func TestGemmRefusesWrongShapes(t *testing.T) {
	x := make([]float32, 6)
	for name, call := range map[string]func(){
		"short a":       func() { Gemm(0, 2, 2, 3, x[:5], x, nil, x[:4]) },
		"long b":        func() { Gemm(0, 2, 1, 3, x, x, nil, x[:2]) },
		"short c":       func() { Gemm(0, 2, 2, 3, x, x, nil, x[:3]) },
		"long bias":     func() { Gemm(0, 2, 2, 3, x, x, x[:3], x[:4]) },
		"bias and add":  func() { Gemm(Add, 2, 2, 3, x, x, x[:2], x[:4]) },
		"both flipped":  func() { Gemm(TransA|TransB, 2, 2, 3, x, x, nil, x[:4]) },
		"negative size": func() { Gemm(0, -2, 2, -3, x, x, nil, x[:4]) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

func firstDifference(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

func BenchmarkGemm(b *testing.B) {
	for _, s := range []struct {
		name    string
		op      Op
		m, n, k int
	}{
		{"forward", 0, 100, 50, 196},
		{"backward", TransB, 100, 196, 50},
		{"gradient", TransA, 196, 50, 200},
		{"finetune", 0, 16, 30, 112},
		{"wide", 0, 128, 500, 500},
		{"head", 0, 16, 2, 30},
		{"row", 0, 1, 30, 112},
	} {
		b.Run(fmt.Sprintf("%s-%dx%dx%d", s.name, s.m, s.k, s.n), func(b *testing.B) {
			eachFamilyBench(b, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				x, y, c := randoms(rng, s.m*s.k), randoms(rng, s.k*s.n), make([]float32, s.m*s.n)
				for b.Loop() {
					Gemm(s.op, s.m, s.n, s.k, x, y, nil, c)
				}
				b.ReportMetric(2*float64(s.m*s.n*s.k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		})
	}
}
