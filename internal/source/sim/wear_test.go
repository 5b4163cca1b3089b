package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The table "experimental_conditions" and the text of the paper.
func TestTools(t *testing.T) {
	tools := Tools(1, 100*time.Second)
	ends, geometries, names, machining := map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, tool := range tools {
		ends[tool.End]++
		geometries[tool.Geometry] = true
		names[tool.Name] = true
		machining[tool.holeTime().Round(10*time.Millisecond).String()]++
		if tool.Life < 70*time.Second || tool.Life > 130*time.Second || tool.Life%frame != 0 {
			t.Errorf("%s lives %v of 100 s", tool.Name, tool.Life)
		}
		if err := tool.check(); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
	if len(names) != 20 || len(geometries) != 6 || ends[Worn] != 11 || ends[Chipped] != 6 || ends[Broken] != 3 {
		t.Errorf("%d names, %d geometries, ends %v", len(names), len(geometries), ends)
	}
	if machining["2m5s"] != 2 || machining["3m7.5s"] != 2 || machining["1m53.64s"] != 16 {
		t.Errorf("machining times %v, want 2 of 125.00 s, 2 of 187.50 s, 16 of 113.64 s", machining)
	}
	if other := Tools(2, 100*time.Second); other[0].Life == tools[0].Life || other[0].Seed == tools[0].Seed {
		t.Error("another seed gives the same lives")
	}
}

func TestToolLength(t *testing.T) {
	for geometry, want := range map[string]float64{"1650mm_N8_R9": 1.65, "1219mm_N8_R9": 1.219, "": 1.45, "N8": 1.45, "3mm": 1.45} {
		if got := (&Tool{Geometry: geometry}).lengthM(); got != want {
			t.Errorf("%q: %v m, want %v", geometry, got, want)
		}
	}
}

func TestCurve(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		end := rapid.SampledFrom([]string{Worn, Chipped, Broken}).Draw(r, "end")
		c := newCurve(end, rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)))
		if v, _, _ := c.at(0); v != 0 && math.Abs(v) > 0.1 {
			r.Errorf("a new tool has %v µm", v)
		}
		fails := c.limit // where the state changes
		if end != Worn {
			fails = c.event
		}
		var last float64
		for u := 0.001; u <= 1; u += 0.001 {
			v, mean, state := c.at(u)
			if v < last || mean >= v {
				r.Fatalf("%v µm, mean %v, at %v after %v", v, mean, u, last)
			}
			if (u >= fails) != (state == end) || (v >= LimitUM) != (state != Healthy) {
				r.Fatalf("%q with %v µm at %v of the life, fails at %v", state, v, u, fails)
			}
			last = v
		}
	})
}

// The paper has one faulty sample for ten healthy ones.
func TestImbalance(t *testing.T) {
	for seed := range uint64(5) {
		var healthy, faulty float64
		for _, tool := range Tools(seed, 100*time.Second) {
			r := newRun(tool, &Settings{Seed: seed})
			for u := 0.0005; u < 1; u += 0.001 {
				if v, _, _ := r.curve.at(u); v < LimitUM {
					healthy += tool.Life.Seconds()
				} else {
					faulty += tool.Life.Seconds()
				}
			}
		}
		if ir := healthy / faulty; ir < 8 || ir > 12 {
			t.Errorf("seed %d: imbalance %v, want about 10", seed, ir)
		}
	}
}

func TestSchedule(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ms := func(name string, low, high int) time.Duration {
			return time.Duration(rapid.IntRange(low, high).Draw(r, name)) * time.Millisecond
		}
		life, drill, pause := ms("life", 1000, 100_000), ms("hole", 1000, 20_000), ms("pause", 0, 5000)
		holes := schedule(life, drill, pause)
		next, cut := 0, 0
		for i, h := range holes {
			if h.first != next || h.cut != cut {
				r.Errorf("hole %d starts at frame %d after %d of cutting, want %d, %d", i, h.first, h.cut, next, cut)
			}
			if h.frames()%framesPerBlock != 0 {
				r.Errorf("hole %d takes %d frames, not whole seconds", i, h.frames())
			}
			if rest := h.frames() - h.drilled() - int(pause/frame); rest < 0 || rest >= framesPerBlock {
				r.Errorf("hole %d: %d frames beyond drilling and pause", i, rest)
			}
			if i > 0 && h.drilled() < int(minHole/frame) && drill >= minHole {
				r.Errorf("hole %d is drilled for %d frames", i, h.drilled())
			}
			before := idleBefore
			for f := range h.frames() {
				p, share := h.at(f)
				if p < before || share < 0 || share >= 1 {
					r.Fatalf("hole %d, frame %d: phase %d, %v of it, after phase %d", i, f, p, share, before)
				}
				before = p
			}
			next, cut = next+h.frames(), cut+h.drilled()
		}
		if cut != int(life/frame) {
			r.Errorf("%d frames of cutting in a life of %v", cut, life)
		}
	})
}
