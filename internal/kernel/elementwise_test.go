package kernel

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSigmoidIsAccurate(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		var x []float32
		for v := -90.0; v <= 90; v += 1.0 / 512 {
			x = append(x, float32(v))
		}
		y := slices.Clone(x)
		Sigmoid(y)
		for i, v := range x {
			want := 1 / (1 + math.Exp(-float64(v)))
			if math.Abs(float64(y[i])-want) > 2e-7 {
				t.Fatalf("σ(%v) = %v, want %v", v, y[i], want)
			}
			if i > 0 && y[i] < y[i-1]-2e-7 {
				t.Fatalf("σ falls at %v", v)
			}
		}
	})
}

func TestSigmoidOfExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	eachFamily(t, func(t *testing.T) {
		x := []float32{0, inf, -inf, math.MaxFloat32, -math.MaxFloat32, float32(math.NaN())}
		Sigmoid(x)
		if x[0] != 0.5 || x[1] != 1 || x[3] != 1 {
			t.Errorf("σ of 0, ∞, max = %v, %v, %v, want 0.5, 1, 1", x[0], x[1], x[3])
		}
		if tiny := x[2]; !(tiny > 0x1p-126) || tiny > 1e-34 || x[4] != tiny {
			t.Errorf("σ of -∞, -max = %v, %v, want e⁻⁸⁰", x[2], x[4])
		}
		if x[5] == x[5] {
			t.Errorf("σ(NaN) = %v: must stay NaN", x[5])
		}
	})
}

// The stream of every lane is xoshiro128+ as its authors publish it: for the
// state 1, 2, 3, 4 the first outputs follow by hand from the definition.
func TestLanesAreXoshiro128Plus(t *testing.T) {
	var g Lanes
	for lane := range lanes {
		g[0][lane], g[1][lane], g[2][lane], g[3][lane] = 1, 2, 3, 4
	}
	s := [4]uint32{1, 2, 3, 4}
	for step := range 100 {
		want := s[0] + s[3]
		shifted := s[1] << 9
		s[2] ^= s[0]
		s[3] ^= s[1]
		s[1] ^= s[2]
		s[0] ^= s[3]
		s[2] ^= shifted
		s[3] = bits.RotateLeft32(s[3], 11)
		for lane := range lanes {
			if got := g.next(lane); got != want {
				t.Fatalf("step %d, lane %d: %d, want %d", step, lane, got, want)
			}
		}
		if step == 0 && want != 5 {
			t.Fatalf("first output %d, want 1+4", want)
		}
	}
}

// splitmix64 from seed 1234567 gives 6457827717110365317 first, as Rosetta
// Code's reference list has it; lane 0 keeps its upper half.
func TestSeedIsSplitmix(t *testing.T) {
	var g Lanes
	g.Seed(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if g[0][i] != uint32(want>>32) {
			t.Errorf("word %d = %d, want %d", i, g[0][i], uint32(want>>32))
		}
	}
}

func TestSampleFollowsTheProbability(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		var g Lanes
		g.Seed(7)
		const n = 1 << 16
		s, p := make([]float32, n), make([]float32, n)
		for _, want := range []float32{0, 1e-3, 0.25, 0.5, 0.9, 1} {
			for i := range p {
				p[i] = want
			}
			Sample(s, p, &g)
			var ones float64
			for _, v := range s {
				if v != 0 && v != 1 {
					t.Fatalf("drew %v", v)
				}
				ones += float64(v)
			}
			// Five standard deviations: with a fixed seed this never fails by luck.
			if d := math.Abs(ones/n - float64(want)); d > 5*math.Sqrt(float64(want*(1-want))/n) {
				t.Errorf("share of ones for p = %v: %v", want, ones/n)
			}
		}
	})
}

// Lanes that added all terms in float32 would be off by more than 1e-4 here.
func TestSquaredDistanceOfManyTerms(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		x, y := make([]float32, 1<<20), make([]float32, 1<<20)
		for i := range y {
			y[i] = 0.1
		}
		want := float64(float32(0.1)) * float64(float32(0.1)) * (1 << 20)
		if got := SquaredDistance(x, y); math.Abs(got/want-1) > 2e-6 {
			t.Errorf("sum of squares %v, want %v", got, want)
		}
	})
}

func TestUpdates(t *testing.T) {
	eachFamily(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 6))
		const n = 37
		w, v, m, g := randoms(rng, n), randoms(rng, n), randoms(rng, n), randoms(rng, n)
		near := func(what string, i int, got float32, want float64) {
			t.Helper()
			if math.Abs(float64(got)-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("%s[%d] = %v, want %v", what, i, got, want)
			}
		}

		w1, v1 := slices.Clone(w), slices.Clone(v)
		Momentum(w1, v1, g, &MomentumStep{Rate: 0.1, Momentum: 0.9, Scale: 0.25, Decay: 0.01})
		for i := range w {
			u := 0.9*float64(v[i]) - 0.1*(0.25*float64(g[i])+0.01*float64(w[i]))
			near("v", i, v1[i], u)
			near("w", i, w1[i], float64(w[i])+u)
		}

		for i := range v {
			v[i] *= v[i]
		}
		w1, v1, m1 := slices.Clone(w), slices.Clone(v), slices.Clone(m)
		Adam(w1, m1, v1, g, &AdamStep{Rate: 0.1, Epsilon: 1e-3, Beta1: 0.9, Beta2: 0.99, Scale: 0.25, Decay: 0.01})
		for i := range w {
			d := 0.25*float64(g[i]) + 0.01*float64(w[i])
			a := 0.9*float64(m[i]) + 0.1*d
			b := 0.99*float64(v[i]) + 0.01*d*d
			near("m", i, m1[i], a)
			near("v", i, v1[i], b)
			near("w", i, w1[i], float64(w[i])-0.1*a/(math.Sqrt(b)+1e-3))
		}

		x := randoms(rng, 3*n)
		sum, less := slices.Clone(w), slices.Clone(w)
		AddRows(sum, x)
		SubRows(less, x)
		for i := range sum {
			all := float64(x[i]) + float64(x[i+n]) + float64(x[i+2*n])
			near("sum", i, sum[i], float64(w[i])+all)
			near("difference", i, less[i], float64(w[i])-all)
		}

		var want float64
		for i := range v {
			want += (float64(g[i]) - float64(v[i])) * (float64(g[i]) - float64(v[i]))
		}
		near("squares", 0, float32(SquaredDistance(v, g)), want)

		dst := slices.Clone(w)
		Negate(dst)
		for i := range dst {
			near("negative", i, dst[i], -float64(w[i]))
		}

		dst = slices.Clone(w)
		SigmoidGrad(dst, v)
		for i := range dst {
			near("d", i, dst[i], float64(w[i])*float64(v[i])*(1-float64(v[i])))
		}
	})
}

// TestNoStepLeavesSubnormals shrinks weights by decay alone, and with gradients that die out, for as many steps as a long
// training has, and holds weights and averages to numbers that are reckoned with at full speed.
func TestNoStepLeavesSubnormals(t *testing.T) {
	const n, steps = 67, 120_000
	for _, method := range []string{"adam", "momentum"} {
		for _, fading := range []float32{0, 0.99, 0.999} {
			rng := rand.New(rand.NewPCG(7, 8))
			w, m, v, g := randoms(rng, n), make([]float32, n), make([]float32, n), randoms(rng, n)
			for range steps {
				for i := range g {
					g[i] *= fading
				}
				if method == "adam" {
					Adam(w, m, v, g, &AdamStep{Rate: 0.005, Epsilon: 1e-8, Beta1: 0.9, Beta2: 0.999, Scale: 1, Decay: 3e-4})
				} else {
					Momentum(w, m, g, &MomentumStep{Rate: 0.1, Momentum: 0.9, Scale: 1, Decay: 3e-3})
				}
			}
			for name, x := range map[string][]float32{"weight": w, "average": m, "average of squares": v} {
				for i, value := range x {
					if size := math.Abs(float64(value)); size != 0 && size < 0x1p-126 {
						t.Errorf("%s, gradients that fade by %v: %s %d is %v", method, fading, name, i, value)
					}
				}
			}
			if size := math.Abs(float64(w[0])); size > 1e-10 {
				t.Errorf("%s, gradients that fade by %v: decay leaves a weight of %v", method, fading, w[0])
			}
		}
	}
}

func BenchmarkElementwise(b *testing.B) {
	const n = 5000 // 100 rows of 50 hidden units
	rng := rand.New(rand.NewPCG(1, 2))
	x, y, z, v := randoms(rng, n), randoms(rng, n), randoms(rng, n), make([]float32, n)
	var g Lanes
	g.Seed(1)
	for _, c := range []struct {
		name string
		call func()
	}{
		{"sigmoid", func() { Sigmoid(x) }},
		{"sample", func() { Sample(y, x, &g) }},
		{"sigmoid+sample", func() { SigmoidSample(y, x, &g) }},
		{"sigmoid-grad", func() { SigmoidGrad(y, x) }},
		{"negate", func() { Negate(y) }},
		{"add-rows", func() { AddRows(y[:50], x) }},
		{"squares", func() { SquaredDistance(x, z) }},
		{"momentum", func() { Momentum(x, y, z, &MomentumStep{Rate: 1e-9, Scale: 1}) }},
		{"adam", func() { Adam(x, y, v, z, &AdamStep{Rate: 1e-9, Epsilon: 1, Scale: 1}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			eachFamilyBench(b, func(b *testing.B) {
				for b.Loop() {
					c.call()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
			})
		})
	}
}
