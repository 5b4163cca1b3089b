package dbn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawNetwork returns a network with up to two hidden layers, some of whose
// weights are steeper than training makes them, and two rows that it takes.
func drawNetwork(t *rapid.T) (n *Network, x, base []float32) {
	widths := []int{rapid.IntRange(1, 9).Draw(t, "inputs")}
	for range rapid.IntRange(0, 2).Draw(t, "hidden layers") {
		widths = append(widths, rapid.IntRange(1, 6).Draw(t, "units"))
	}
	widths = append(widths, rapid.IntRange(2, 4).Draw(t, "classes"))
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	n = &Network{}
	steep := rapid.Float64Range(0.1, 8).Draw(t, "steep")
	for i, out := range widths[1:] {
		l := newLayer(widths[i], out)
		for _, s := range [][]float32{l.weights.Data, l.bias} {
			for j := range s {
				s[j] = float32(steep * rng.NormFloat64())
			}
		}
		n.layers = append(n.layers, l)
	}
	x, base = make([]float32, widths[0]), make([]float32, widths[0])
	for i := range x {
		x[i], base[i] = float32(2*rng.NormFloat64()), float32(rng.NormFloat64())
	}
	return n, x, base
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

func TestAttributionLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, x, base := drawNetwork(t)
		class, against := rapid.IntRange(0, n.Classes()-1).Draw(t, "class"), 0
		dummy := rapid.IntRange(0, len(x)-1).Draw(t, "dummy")
		idle := rapid.IntRange(0, len(x)-1).Draw(t, "idle")
		x[dummy] = base[dummy]
		clear(n.layers[0].weights.Row(idle))
		got := make([]float64, len(x))
		fx, fbase := n.AttributeTo(got, x, base, class, against)

		if math.Abs(sum(got)-(fx-fbase)) > attributeTolerance*(1+math.Abs(fx-fbase))*1.01 {
			t.Fatalf("completeness: %v add up to %v, f goes from %v to %v", got, sum(got), fbase, fx)
		}
		if got[dummy] != 0 || got[idle] != 0 {
			t.Fatalf("dummy: inputs %d and %d get %v and %v", dummy, idle, got[dummy], got[idle])
		}
		if f := n.LogOdds(x, class, against); f != fx {
			t.Fatalf("f(x) is %v, LogOdds says %v", fx, f)
		}
		// f and the posterior say the same.
		p := n.NewScorer().Posterior(x)
		if pc, pa := float64(p[class]), float64(p[against]); pc > 1e-3 && pa > 1e-3 && math.Abs(math.Log(pc/pa)-fx) > 1e-3 {
			t.Fatalf("f(x) is %v, the posterior says %v", fx, math.Log(pc/pa))
		}
		// Going back takes back.
		back := make([]float64, len(x))
		n.AttributeTo(back, base, x, class, against)
		for i := range back {
			if math.Abs(back[i]+got[i]) > 1e-9*(1+math.Abs(got[i])) {
				t.Fatalf("input %d: %v there, %v back", i, got[i], back[i])
			}
		}
	})
}

func TestAttributionIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, x, base := drawNetwork(t)
		if len(x) < 2 {
			return
		}
		last := len(x) - 1
		copy(n.layers[0].weights.Row(last), n.layers[0].weights.Row(0))
		x[last], base[last] = x[0], base[0]
		got := make([]float64, len(x))
		n.AttributeTo(got, x, base, 1, 0)
		if got[0] != got[last] {
			t.Fatalf("twins get %v and %v", got[0], got[last])
		}
	})
}

// Without hidden layers nothing is approximated.
func TestAttributionOfALinearNetwork(t *testing.T) {
	n := randomNetwork(5, 3)
	x, base := randomRows(2, 5).Row(0), randomRows(2, 5).Row(1)
	got := make([]float64, 5)
	fx, fbase := n.AttributeTo(got, x, base, 2, 0)
	var want float64
	for i := range x {
		w := n.layers[0].weights.Row(i)
		exact := (float64(x[i]) - float64(base[i])) * (float64(w[2]) - float64(w[0]))
		if math.Abs(got[i]-exact) > 1e-15 {
			t.Errorf("input %d: %v, want %v", i, got[i], exact)
		}
		want += exact
	}
	if math.Abs(fx-fbase-want) > 1e-12 || want == 0 {
		t.Errorf("f goes by %v, the shares by %v", fx-fbase, want)
	}
}

// The derivative is what differences say.
func TestSlopeByDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, x, _ := drawNetwork(t)
		p := n.newPath(n.Classes()-1, 0)
		z := p.zeros(0)
		n.layers[0].addTo(z, x)
		slope := append([]float64(nil), p.slopeAt(z)...)
		const h = 1e-5
		for j := range z {
			at := z[j]
			z[j] = at + h
			up := p.logOdds(z)
			z[j] = at - h
			down := p.logOdds(z)
			z[j] = at
			if want := (up - down) / (2 * h); math.Abs(slope[j]-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("unit %d: %v, differences say %v", j, slope[j], want)
			}
		}
	})
}

// More parts are nearer to the truth, which is what the doubling rests on.
func TestPartsConverge(t *testing.T) {
	n := randomNetwork(4, 5, 5, 2)
	for _, l := range n.layers {
		for i := range l.weights.Data {
			l.weights.Data[i] *= 60
		}
	}
	p := n.newPath(1, 0)
	from, to := p.zeros(0), p.zeros(0)
	n.layers[0].addTo(from, []float32{0, 0, 0, 0})
	n.layers[0].addTo(to, []float32{1, -2, 3, 1})
	want := p.logOdds(to) - p.logOdds(from)
	miss := func(parts int) float64 {
		slope := p.zeros(0)
		p.integrate(slope, from, to, parts)
		var got float64
		for j, s := range slope {
			got += s * (to[j] - from[j])
		}
		return math.Abs(got - want)
	}
	if one, many := miss(1), miss(64); !(one > 1e-3) || !(many < 1e-8) {
		t.Errorf("off by %v with one part, by %v with 64", one, many)
	}
}

func TestAttributionRefusesWrongShapes(t *testing.T) {
	n := randomNetwork(3, 2, 2)
	for name, do := range map[string]func(){
		"a short row":  func() { n.AttributeTo(make([]float64, 3), make([]float32, 2), make([]float32, 3), 1, 0) },
		"a short base": func() { n.AttributeTo(make([]float64, 3), make([]float32, 3), make([]float32, 2), 1, 0) },
		"no class":     func() { n.LogOdds(make([]float32, 3), 2, 0) },
	} {
		func() {
			defer func() {
				if s := fmt.Sprint(recover()); len(s) < 5 || s[:5] != "dbn: " {
					t.Errorf("%s: %s", name, s)
				}
			}()
			do()
		}()
	}
}

func BenchmarkAttribute(b *testing.B) {
	n := randomNetwork(671, 50, 30, 2)
	rows := randomRows(2, 671)
	dst := make([]float64, 671)
	for b.Loop() {
		n.AttributeTo(dst, rows.Row(0), rows.Row(1), 1, 0)
	}
}
