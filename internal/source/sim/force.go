package sim

import (
	"math"
	"math/rand/v2"
)

// dynamometer makes thrust and torque of one tool, a sample at 100 Hz a frame.
//
// The main cutting force follows Kienzle, F = k·b·h^(1−m), with chip width b =
// d/2, chip thickness h = feed (one edge), and for Inconel 718 k = 2800 N/mm² and
// m = 0.25 (assumed; of the order that tool makers list). Thrust is 0.6·F and
// what the wear land presses, 120 N/mm² on the area b·VB; torque is F on the
// lever d/4, the guide pads' friction, 0.25·F on d/2, and the wear land's, with a
// coefficient of 0.8 on d/4 (all assumed). At 8 mm and 16 µm that is about 300 N
// and 1.5 N·m fresh, 410 N and 1.7 N·m at 300 µm.
//
// Sources: O. Kienzle, "Die Bestimmung von Kräften und Leistungen an spanenden
// Werkzeugen und Werkzeugmaschinen", VDI-Z 94 (1952); that a wear land's forces
// grow with its width: D. W. Smithey, S. G. Kapoor, R. E. DeVor, "A worn tool
// force model for three-dimensional cutting operations", Int. J. Mach. Tools
// Manuf. 40 (2000).
type dynamometer struct {
	thrust, torque float64                          // N, N·m: fresh, of this tool
	landThrust     float64                          // N per mm of flank wear
	landTorque     float64                          // N·m per mm of flank wear
	zeroN, zeroNm  float64                          // what the channels read at rest
	hole           struct{ thrust, torque float64 } // factors of the hole at hand
	thrustDrift    drift
	torqueDrift    drift // chips that pack are felt in the torque first
}

func newDynamometer(t *Tool, rng *rand.Rand) dynamometer {
	width, lever := t.DiameterMM/2, t.DiameterMM/4/1000
	fc := 2800 * width * math.Pow(t.FeedUM/1000, 0.75) * spread(rng, 0.1)
	land := 120 * width * spread(rng, 0.1)
	return dynamometer{
		thrust:      0.6 * fc * spread(rng, 0.08),
		torque:      fc*lever + 0.25*fc*2*lever*spread(rng, 0.15),
		landThrust:  land,
		landTorque:  0.8 * land * lever,
		zeroN:       8 * rng.NormFloat64(),
		zeroNm:      0.03 * rng.NormFloat64(),
		thrustDrift: drift{sigma: 0.03},
		torqueDrift: drift{sigma: 0.05},
	}
}

// startHole draws what differs from hole to hole in addition to the hardness of the
// workpiece: how the edge meets it, and how the guide pads run.
func (d *dynamometer) startHole(rng *rand.Rand) {
	d.hole.thrust = spread(rng, 0.05)
	d.hole.torque = spread(rng, 0.05)
}

// sample returns thrust in N and torque in N·m at the start of a frame.
func (d *dynamometer) sample(c *cut, rng *rand.Rand) (thrust, torque float32) {
	level := c.engaged * c.hardness * (1 + 0.05*c.depth)
	land := c.vbMean / 1000
	f := (d.thrust + d.landThrust*land) * d.hole.thrust * d.thrustDrift.step(rng)
	m := (d.torque + d.landTorque*land) * d.hole.torque * d.torqueDrift.step(rng)
	switch c.state {
	case Chipped: // a rough edge, less of it
		f, m = 1.06*f, 1.08*m
	case Broken: // what is left of the drill is pushed into the hole
		f, m = 1.6*f, 1.5*m
	}
	wobble := 1 + 0.02*math.Cos(c.angle)
	coolant := 0.
	if c.coolant {
		coolant = 15 // N, the jet on the bottom of the hole
	}
	thrust = float32(level*f*wobble + coolant + d.zeroN + 4*rng.NormFloat64())
	torque = float32(level*m*wobble + 0.05*c.speed/30 + d.zeroNm + 0.02*rng.NormFloat64())
	return thrust, torque
}

// drift is a slow random factor on a level, as of chips that pack and clear: the
// logarithm is a first-order autoregression of standard deviation sigma and a
// time constant of 1.5 s.
type drift struct{ sigma, value float64 }

func (d *drift) step(rng *rand.Rand) float64 {
	const keep = 1 - 0.01/1.5 // frame over time constant
	d.value = keep*d.value + d.sigma*math.Sqrt(1-keep*keep)*rng.NormFloat64()
	return math.Exp(d.value)
}
