package sim

import (
	"math"
	"math/rand/v2"
)

// The origins of vibration. The first nine are resonances, which ring at their own
// frequency no matter what drives them.
const (
	whirl     = iota // bending of the drill tube between its guides
	torsion1         // first torsional mode of the tube
	torsion2         // second
	axial            // first longitudinal mode of the tube
	workpiece        // workpiece and fixture
	insert1          // drill head and insert
	insert2          // the same, higher
	squeal1          // drill head, driven by the wear land alone
	squeal2          // the same, higher
	friction         // broadband: the wear land and the pads rub
	runoutCos        // once per revolution and harmonics
	runoutSin        // the same, a quarter turn later
	origins
)

const (
	modes      = friction
	fastRate   = 20_000 // Hz
	perFrame   = 200    // fast samples a frame
	maxDelay   = 3      // samples
	sensors    = 4
	axes       = 3
	channels   = sensors * axes
	fullScaleG = 50
)

// origin describes one origin of vibration of a fresh tool in steady drilling.
// All values are assumed; what the tube does depends on its length.
var origin = [origins]struct {
	hz, damping float64       // of the mode; hz 0: see newVibration
	cutting     float64       // g RMS near the tool, excited by chip formation
	rubbing     float64       // g RMS, excited by flank friction
	squeal      float64       // g RMS, of a wear land 100 µm beyond the critical one
	impulse     float64       // g per unit impulse at the edge
	growth      float64       // by how much the part from chip formation grows up to LimitUM
	holes       float64       // standard deviation of the logarithm of its level from hole to hole
	axis        [axes]float64 // how it shows along x, y and z, the axis of the drill
}{
	whirl:     {damping: 0.05, cutting: 0.9, growth: 0.05, holes: 0.3, axis: [...]float64{0.8, 0.8, 0.2}},
	torsion1:  {damping: 0.02, cutting: 0.7, growth: 0.2, holes: 0.22, axis: [...]float64{0.6, 0.6, 0.5}},
	torsion2:  {damping: 0.02, cutting: 0.5, growth: 0.2, holes: 0.22, axis: [...]float64{0.5, 0.5, 0.45}},
	axial:     {damping: 0.03, cutting: 0.6, growth: 0.2, holes: 0.25, axis: [...]float64{0.2, 0.2, 1}},
	workpiece: {hz: 2900, damping: 0.03, cutting: 0.35, rubbing: 0.03, impulse: 0.5, growth: 0.2, holes: 0.12, axis: [...]float64{0.5, 0.7, 0.6}},
	insert1:   {hz: 5100, damping: 0.03, cutting: 0.04, rubbing: 0.05, impulse: 1, growth: 0.3, holes: 0.03, axis: [...]float64{0.5, 0.5, 0.8}},
	insert2:   {hz: 8100, damping: 0.04, cutting: 0.02, rubbing: 0.035, impulse: 0.8, growth: 0.3, holes: 0.03, axis: [...]float64{0.4, 0.5, 0.9}},
	squeal1:   {hz: 6900, damping: 0.012, squeal: 0.45, impulse: 0.3, holes: 0.05, axis: [...]float64{0.5, 0.6, 0.5}},
	squeal2:   {hz: 9200, damping: 0.012, squeal: 0.4, impulse: 0.3, holes: 0.05, axis: [...]float64{0.6, 0.4, 0.5}},
	friction:  {cutting: 0.04, rubbing: 0.03, impulse: 0.3, growth: 0.2, holes: 0.03, axis: [...]float64{0.6, 0.6, 0.7}},
	runoutCos: {cutting: 0.3, holes: 0.2, axis: [...]float64{1, 0.2, 0.1}},
	runoutSin: {cutting: 0.3, holes: 0.2, axis: [...]float64{0.2, 1, 0.1}},
}

// The transfer paths to the four sensors along the workpiece: the farther, the
// weaker, the later and the duller. Assumed; at 5 km/s a delay of one sample is
// 25 cm of steel, so the delays also stand for the phase of the path.
var path = [sensors]struct {
	gain     float64
	delay    int     // samples
	cornerHz float64 // of a first-order low pass
}{{1, 0, 9000}, {0.8, 1, 7500}, {0.65, 2, 6500}, {0.5, 3, 5500}}

// vibration makes the twelve accelerations of one tool, a frame at a time.
//
// A gun drill cuts with one edge, so force and friction are white noise that one
// revolution modulates, and runout adds harmonics of the spindle. Noise and
// impulses drive resonators. The tube is taken as clamped at the spindle and free
// at the head: torsion rings at (2k−1)·c/(4L) with c = √(G/ρ) = 3200 m/s for
// steel, 552 and 1655 Hz at 1450 mm, and so do longitudinal waves with c = √(E/ρ)
// = 5100 m/s, 879 Hz (S. S. Rao, "Mechanical Vibrations", §8.3 and 8.4); bending
// goes with 1/L² (§8.5), from an assumed 95 Hz at 1450 mm.
//
// That friction is what grows most with the wear land, and is heard best in the
// high modes, is common in the literature on tool wear (reviewed by D. E. Dimla,
// Int. J. Mach. Tools Manuf. 40 (2000)); the law of its amplitude, 1 + 4·(VB/300
// µm)³, is assumed. That rubbing contact, beyond a critical load, excites itself
// and squeals in modes of its own, with an amplitude that grows like the square
// root of the excess, is known of friction in general (R. A. Ibrahim, "Friction-
// induced vibration, chatter, squeal, and chaos", Appl. Mech. Rev. 47 (1994)). That
// a drill head does so near the 300 µm at which tools are taken for worn is
// assumed: a tool needs something by which its last stage differs from its linear one.
//
// Every spread from tool to tool and from hole to hole is assumed as well:
// together they move a channel's RMS by more than wear does.
type vibration struct {
	resonator  [modes]resonator
	gain       [origins]float64           // of this tool
	growth     float64                    // of friction with wear, 4 on average
	critical   float64                    // flank wear in µm from which the drill head squeals
	mount      [channels][origins]float64 // how each channel sees each origin in this set-up
	level      [origins]float64           // of the hole at hand
	mix        [channels][origins]float32 // of the hole at hand
	drift      [modes + 1]drift
	lowpass    [sensors]float32
	held       [channels]float32                     // state of the low passes
	wave       [origins][maxDelay + perFrame]float32 // the origins, a few samples of the past first
	drive, rub [perFrame]float64                     // noise of chip formation and of friction
	push       [perFrame]float64                     // what drives one of them
}

func newVibration(t *Tool, rng *rand.Rand) *vibration {
	v := &vibration{growth: 4 * spread(rng, 0.05), critical: 292 * spread(rng, 0.012)}
	length := t.lengthM()
	for k := range origins {
		hz := origin[k].hz
		switch k {
		case whirl:
			hz = 95 * (1.45 / length) * (1.45 / length)
		case axial:
			hz = 5100 / (4 * length)
		case torsion1, torsion2:
			hz = float64(2*(k-torsion1)+1) * 3200 / (4 * length)
		}
		if k < modes {
			v.resonator[k] = newResonator(hz*spread(rng, 0.02), origin[k].damping*spread(rng, 0.15))
		}
		v.gain[k] = spread(rng, 0.3)
	}
	for k := range v.drift {
		v.drift[k].sigma = 0.05
	}
	set := spread(rng, 0.2) // of the set-up: clamping, workpiece
	for ch := range channels {
		p := path[ch/axes]
		for k := range origins {
			v.mount[ch][k] = set * p.gain * origin[k].axis[ch%axes] * spread(rng, 0.35)
		}
	}
	for s := range sensors {
		v.lowpass[s] = float32(1 - math.Exp(-2*math.Pi*path[s].cornerHz/fastRate))
	}
	return v
}

// startHole draws what differs from hole to hole: the levels of the origins and
// the paths, since each hole is at another place of the workpiece.
func (v *vibration) startHole(rng *rand.Rand) {
	for k := range origins {
		v.level[k] = spread(rng, origin[k].holes)
	}
	for s := range sensors {
		near := spread(rng, 0.12)
		for ch := s * axes; ch < (s+1)*axes; ch++ {
			for k := range origins {
				v.mix[ch][k] = float32(v.mount[ch][k] * near * spread(rng, 0.06))
			}
		}
	}
}

// frame stores the next perFrame samples of each channel at dst[channel][at:].
func (v *vibration) frame(dst [][]float32, at int, c *cut, rng *rand.Rand) {
	for k := range origins {
		copy(v.wave[k][:maxDelay], v.wave[k][perFrame:])
	}
	v.turn(c, rng)
	v.ring(c, rng)
	for ch := range channels {
		v.listen(dst[ch][at:][:perFrame], ch, c, rng)
	}
}

// turn makes what goes by the angle of the spindle: the noise of the edge, which
// one revolution modulates, and the runout.
func (v *vibration) turn(c *cut, rng *rand.Rand) {
	sin, cos := math.Sincos(c.angle)
	stepSin, stepCos := math.Sincos(2 * math.Pi * c.speed / fastRate)
	runout := c.speed / 27.5 * (0.3 + 0.7*c.engaged) // 1 at 1650 rev/min
	gainCos := runout * origin[runoutCos].cutting * v.gain[runoutCos] * v.level[runoutCos]
	gainSin := runout * origin[runoutSin].cutting * v.gain[runoutSin] * v.level[runoutSin]
	for i := range perFrame {
		v.drive[i] = rng.NormFloat64() * (1 + 0.35*cos)
		v.rub[i] = rng.NormFloat64() * (1 + 0.2*cos)
		cos2, sin2 := 2*cos*cos-1, 2*sin*cos // of twice the angle
		v.wave[runoutCos][maxDelay+i] = float32(gainCos * (cos + 0.5*cos2 + 0.3*(cos2*cos-sin2*sin)))
		v.wave[runoutSin][maxDelay+i] = float32(gainSin * (sin + 0.5*sin2 + 0.3*(sin2*cos+cos2*sin)))
		sin, cos = sin*stepCos+cos*stepSin, cos*stepCos-sin*stepSin
	}
}

// ring drives the modes and the broadband friction.
func (v *vibration) ring(c *cut, rng *rand.Rand) {
	wear := min(c.vbMax, 1.7*LimitUM) / LimitUM
	rubbing := 1 + v.growth*wear*wear*wear
	if c.state == Broken {
		rubbing *= 1.5
	}
	squeal := v.squeal(c)
	hit, size := impulse(c, rng)
	for k := range modes + 1 {
		o := &origin[k]
		level := v.gain[k] * v.level[k] * v.drift[k].step(rng)
		cutting := level * o.cutting * (1 + o.growth*wear) * c.hardness * c.engaged
		rub := level*o.rubbing*rubbing*c.engaged + level*o.squeal*squeal
		if k == whirl {
			cutting *= (1.15 - 0.3*c.depth) * (1 + 1.5*c.entry) // the hole guides the drill once it is in
			if c.state == Broken {
				cutting *= 2
			}
		}
		cutting += 0.02*o.cutting*min(c.speed, 1) + 0.001 // a machine that runs, or only hums
		for i, d := range v.drive {
			v.push[i] = cutting*d + rub*v.rub[i]
		}
		if hit >= 0 {
			v.push[hit] += size * o.impulse * v.gain[k]
		}
		out := v.wave[k][maxDelay:]
		if k < modes {
			v.resonator[k].run(out, v.push[:])
			continue
		}
		for i, p := range v.push {
			out[i] = float32(p)
		}
	}
}

// squeal returns the amplitude of the self-excited vibration of the drill head, 1
// at 100 µm beyond the critical flank wear.
func (v *vibration) squeal(c *cut) float64 {
	const blur = 4 // µm over which it sets in
	beyond := blur * math.Log1p(math.Exp(min((c.vbMax-v.critical)/blur, 100)))
	return c.engaged * math.Sqrt(min(beyond, 200)/100)
}

// listen stores in x what channel ch hears of all of it.
func (v *vibration) listen(x []float32, ch int, c *cut, rng *rand.Rand) {
	const quiet = 0.005 // g RMS: sensor and amplifier (assumed)
	clear(x)
	heard := func(k int) []float32 { return v.wave[k][maxDelay-path[ch/axes].delay:][:len(x)] }
	for k := 0; k < origins; k += 4 { // four at a time: x is read and written less often
		g0, g1, g2, g3 := v.mix[ch][k], v.mix[ch][k+1], v.mix[ch][k+2], v.mix[ch][k+3]
		w0, w1, w2, w3 := heard(k), heard(k+1), heard(k+2), heard(k+3)
		for i := range x {
			x[i] = x[i] + g0*w0[i] + g1*w1[i] + g2*w2[i] + g3*w3[i]
		}
	}
	a, y, noise := v.lowpass[ch/axes], v.held[ch], float32(quiet+0.02*c.engaged)
	for i, w := range x {
		y += a * (w - y)
		x[i] = min(max(y+noise*float32(rng.NormFloat64()), -fullScaleG), fullScaleG)
	}
	v.held[ch] = y
}

// impulse returns at which sample of the frame something strikes the edge, or
// -1, and how hard. Chips that jam strike any tool now and then; a damaged edge
// strikes once per revolution. Rates and sizes are assumed.
func impulse(c *cut, rng *rand.Rand) (at int, size float64) {
	const jamsPerSecond = 0.5
	jam, where, hard := rng.Float64(), rng.IntN(perFrame), rng.ExpFloat64()
	if c.engaged == 0 {
		return -1, 0
	}
	if c.state == Chipped || c.state == Broken {
		size = 8
		if c.state == Broken {
			size = 20
		}
		if _, over := c.turn(); over {
			share := (2*math.Pi - c.angle) / (2 * math.Pi * c.speed * frame.Seconds())
			return min(int(share*perFrame), perFrame-1), size * (0.5 + 0.5*hard)
		}
	}
	if jam < jamsPerSecond*frame.Seconds() {
		return where, 4 * hard
	}
	return -1, 0
}

// resonator is a mode with two poles, y_i = b·x_i + a1·y_(i−1) + a2·y_(i−2), with
// b such that white noise of variance 1 comes out with variance 1.
//
// Source: G. E. P. Box, G. M. Jenkins, "Time Series Analysis", §3.2.4: a second-
// order autoregression and its variance.
type resonator struct {
	a1, a2, b float64
	y1, y2    float64
}

func newResonator(hz, damping float64) resonator {
	w := 2 * math.Pi * hz / fastRate
	r := math.Exp(-damping * w)
	a1, a2 := 2*r*math.Cos(w*math.Sqrt(1-damping*damping)), -r*r
	return resonator{a1: a1, a2: a2, b: math.Sqrt((1 + a2) * ((1-a2)*(1-a2) - a1*a1) / (1 - a2))}
}

// run stores the answer to x in dst.
func (r *resonator) run(dst []float32, x []float64) {
	y1, y2 := r.y1, r.y2
	for i, v := range x {
		y := r.b*v + r.a1*y1 + r.a2*y2
		y1, y2 = y, y1
		dst[i] = float32(y)
	}
	r.y1, r.y2 = y1, y2
}
