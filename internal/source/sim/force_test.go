package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The forces of fresh tools, worn ones and failed ones, over many tools and
// holes: of the size that comment of dynamometer derives, and rising.
func TestForces(t *testing.T) {
	worn := Tools(1, time.Minute)[5] // 8.05 mm, 16 µm
	forces := func(c cut) (thrust, torque float64) {
		const tools, frames = 400, 10
		c.engaged, c.hardness, c.coolant = 1, 1, true
		for seed := range uint64(tools) {
			rng := rand.New(rand.NewPCG(seed, 9))
			d := newDynamometer(&worn, rng)
			d.startHole(rng)
			for range frames {
				f, m := d.sample(&c, rng)
				thrust += float64(f) / tools / frames
				torque += float64(m) / tools / frames
			}
		}
		return thrust, torque
	}
	freshN, freshNm := forces(cut{state: Healthy})
	for name, tc := range map[string]struct {
		cut   cut
		n, nm float64 // expected
		rise  bool
	}{
		"fresh":         {cut{state: Healthy}, 300 + 15, 1.5, false},
		"at 300 µm":     {cut{state: Worn, vbMax: 300, vbMean: 220}, 410 + 15, 1.7, true},
		"chipped":       {cut{state: Chipped, vbMax: 380, vbMean: 220}, 1.06*410 + 15, 1.08 * 1.7, true},
		"broken":        {cut{state: Broken, vbMax: 600, vbMean: 220}, 1.6*410 + 15, 1.5 * 1.7, true},
		"at the bottom": {cut{state: Healthy, depth: 1}, 1.05*300 + 15, 1.05 * 1.5, true},
	} {
		n, nm := forces(tc.cut)
		within := func(got, want float64) bool { return got > 0.94*want && got < 1.06*want }
		if !within(n, tc.n) || !within(nm, tc.nm) {
			t.Errorf("%s: %.0f N and %.2f N·m, want about %.0f and %.2f", name, n, nm, tc.n, tc.nm)
		}
		if tc.rise && (n <= freshN || nm <= freshNm) {
			t.Errorf("%s: %.0f N and %.2f N·m, not above the fresh tool's %.0f and %.2f", name, n, nm, freshN, freshNm)
		}
	}
}

// Out of the material only coolant, friction of the spindle and the zero are left.
func TestForcesAtRest(t *testing.T) {
	worn := tool(Worn, time.Minute)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		d := newDynamometer(&worn, rng)
		d.startHole(rng)
		f, m := d.sample(&cut{hardness: 1, coolant: true, speed: 20}, rng)
		if f < -40 || f > 70 || m < -0.2 || m > 0.3 {
			t.Errorf("seed %d: %v N and %v N·m", seed, f, m)
		}
	}
}
