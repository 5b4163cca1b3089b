package kernel

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// eachFamily runs a test once for every family that this processor has, in use
// while it runs.
func eachFamily(t *testing.T, test func(t *testing.T)) {
	defer func(f *family) { active = f }(active)
	for _, f := range families() {
		active = f
		t.Run(f.name, test)
	}
}

func eachFamilyBench(b *testing.B, bench func(b *testing.B)) {
	defer func(f *family) { active = f }(active)
	for _, f := range families() {
		active = f
		b.Run(f.name, bench)
	}
}

// elementwise has every kernel but the product, called on four vectors of one
// length. What a kernel returns, if anything, is returned.
var elementwise = map[string]func(f *family, x [4][]float32, g *Lanes) []float32{
	"sigmoid":     func(f *family, x [4][]float32, g *Lanes) []float32 { f.sigmoid(x[0]); return nil },
	"sigmoidGrad": func(f *family, x [4][]float32, g *Lanes) []float32 { f.sigmoidGrad(x[0], x[1]); return nil },
	"sample":      func(f *family, x [4][]float32, g *Lanes) []float32 { f.sample(x[0], x[1], g); return nil },
	"squares": func(f *family, x [4][]float32, g *Lanes) []float32 {
		return []float32{f.squares(x[0], x[1])}
	},
	"negate": func(f *family, x [4][]float32, g *Lanes) []float32 { f.negate(x[0]); return nil },
	"momentum": func(f *family, x [4][]float32, g *Lanes) []float32 {
		f.momentum(x[0], x[1], x[2], &MomentumStep{Rate: 0.05, Momentum: 0.9, Scale: 0.01, Decay: 2e-4})
		return nil
	},
	"adam": func(f *family, x [4][]float32, g *Lanes) []float32 {
		f.adam(x[0], x[1], x[2], x[3], &AdamStep{Rate: 0.01, Epsilon: 1e-8, Beta1: 0.9, Beta2: 0.999, Scale: 0.1, Decay: 3e-4})
		return nil
	},
	"addRows": func(f *family, x [4][]float32, g *Lanes) []float32 {
		f.addRows(x[0], slices.Concat(x[1], x[2], x[3]))
		return nil
	},
	"subRows": func(f *family, x [4][]float32, g *Lanes) []float32 {
		f.subRows(x[0], slices.Concat(x[1], x[2], x[3]))
		return nil
	},
}

// TestFamiliesAgreeToTheBit holds every vector family to the portable one on
// the same values, of every length up to a few vectors and of some beyond, amid
// canaries.
func TestFamiliesAgreeToTheBit(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 80, -80, 81, -81, 1e-40, -1e-40, 0.5,
		math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	const canary = 12345
	for name, call := range elementwise {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(1, 70), rapid.IntRange(200, 300)).Draw(t, "n")
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				scale := rapid.SampledFrom([]float64{1e-18, 1e-3, 1, 40}).Draw(t, "scale")
				strange := rapid.Bool().Draw(t, "strange")
				var in [4][]float32
				for i := range in {
					in[i] = make([]float32, n)
					for j := range in[i] {
						v := float32(scale * rng.NormFloat64())
						switch {
						case name == "sample":
							v = []float32{0, 1, 0.5, rng.Float32()}[rng.IntN(4)]
						case strange && rng.IntN(8) == 0:
							v = special[rng.IntN(len(special))]
						}
						in[i][j] = v
					}
				}
				var want []float32
				var source Lanes
				for at, f := range append([]*family{&portable}, families()...) {
					var x, all [4][]float32
					for i := range x {
						all[i] = slices.Concat([]float32{canary}, in[i], []float32{canary})
						x[i] = all[i][1 : n+1 : n+1]
					}
					var g Lanes
					g.Seed(9)
					got := call(f, x, &g)
					for _, v := range all {
						if v[0] != canary || v[n+1] != canary {
							t.Fatalf("%s: wrote outside a vector of %d", f.name, n)
						}
						got = append(got, v...)
					}
					if at == 0 {
						want, source = got, g
						continue
					}
					for i, w := range want {
						bothNaN := w != w && got[i] != got[i]
						if !bothNaN && math.Float32bits(got[i]) != math.Float32bits(w) {
							t.Fatalf("%s: value %d of vectors of %d is %v, want %v", f.name, i, n, got[i], w)
						}
					}
					if g != source {
						t.Fatalf("%s: generators went elsewhere", f.name)
					}
				}
			})
		})
	}
}

func TestSelectFamily(t *testing.T) {
	best := &family{name: "best"}
	all := []*family{best, &portable}
	for _, tc := range []struct {
		name string
		want *family
		text string // of the error
	}{
		{"", best, ""},
		{"best", best, ""},
		{"go", &portable, ""},
		{"sse2", best, `FLANK_KERNEL="sse2": this program on this processor has best, go`},
		{"GO", best, `FLANK_KERNEL="GO"`},
	} {
		got, err := selectFamily(tc.name, all)
		if got != tc.want {
			t.Errorf("%q selects %s", tc.name, got.name)
		}
		if (err == nil) != (tc.text == "") || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%q: error %v", tc.name, err)
		}
	}
}

// Set FLANK_KERNEL for a run of the tests, and this one checks that it was
// followed.
func TestFamilyFromEnvironment(t *testing.T) {
	all := families()
	forced := os.Getenv("FLANK_KERNEL")
	known := forced == "" || slices.ContainsFunc(all, func(f *family) bool { return f.name == forced })
	switch {
	case forced == "" || !known:
		if Family() != all[0].name {
			t.Errorf("family %s, want the best, %s", Family(), all[0].name)
		}
	case Family() != forced:
		t.Errorf("family %s, want %s", Family(), forced)
	}
	if known != (Err() == nil) {
		t.Errorf("FLANK_KERNEL=%q: error %v", forced, Err())
	}
}
