package sim

import (
	"math"
	"math/rand/v2"
)

// LimitUM is the maximum flank wear in µm from which on a tool is faulty, as in
// the paper.
const LimitUM = 300

// curve is the flank wear of one tool over its life, a fast run-in, a linear and
// an accelerated stage:
//
//	VB(v) = A·(1 − e^(−v/a)) + L·v + C·(e^((v−1)/c) − e^(−1/c)),  v = u/limit,
//
// with u the share of its life that a tool has been cutting, limit the share at
// which VB reaches 300 µm, and L such that VB(1) = 300 µm. At the event a chipped
// or broken tool jumps.
//
// A = 60 µm, a = 0.15, C = 50 µm and c = 0.3 are the best fit to the median of 19
// measured tools, each in units of its own time to 300 µm: 15 of the NASA/UC
// Berkeley milling set and the 4 side edges of QIT-CEMC titanium milling. The test
// TestMeasuredTools reads them and makes the fit again:
//
//	v       0.1  0.25  0.5  0.75  0.9   1    1.1
//	median   51    97  164   224  260  300   337 µm
//	here     48    99  164   226  270  300   336 µm
//
// A and C spread from tool to tool by half of what the measured curves do, whose
// readings are rounded to 10 µm. They are milling, not gun drilling. That worn
// tools pass 300 µm at 88 to 94 % of their life, and the others fail at 89 to 94 %,
// is assumed: it gives the paper's one faulty sample for ten healthy ones.
type curve struct {
	runIn, knee float64 // A, C
	limit       float64
	event       float64 // share of the life at which the tool chips or breaks; +Inf if it wears
	jump        float64 // µm of maximum flank wear that the event adds
	meanShare   float64 // mean over maximum flank wear
	end         string
}

func newCurve(end string, rng *rand.Rand) curve {
	c := curve{
		runIn:     between(rng, 40, 80),
		knee:      between(rng, 35, 65),
		limit:     between(rng, 0.88, 0.94),
		event:     math.Inf(1),
		meanShare: between(rng, 0.65, 0.8), // assumed
		end:       end,
	}
	if end != Worn {
		c.limit = between(rng, 1, 1.05)
		c.event = between(rng, 0.89, 0.94)
		c.jump = between(rng, 80, 150) // assumed
		if end == Broken {
			c.jump = between(rng, 300, 500)
		}
	}
	return c
}

// at returns the maximum and mean flank wear in µm and the state at the share u
// of the life.
func (c *curve) at(u float64) (vbMax, vbMean float64, state string) {
	vbMax = c.flank(u / c.limit)
	vbMean = c.meanShare * vbMax
	state = Healthy
	if u >= c.event {
		vbMax += c.jump
		state = c.end
	} else if vbMax >= LimitUM {
		state = Worn
	}
	return vbMax, vbMean, state
}

// The shares of the time to LimitUM over which wear runs in and accelerates.
const runInShare, kneeShare = 0.15, 0.3

// flank returns VB at v in µm.
func (c *curve) flank(v float64) float64 {
	stages := func(v float64) float64 {
		return c.runIn*(1-math.Exp(-v/runInShare)) + c.knee*(math.Exp((v-1)/kneeShare)-math.Exp(-1/kneeShare))
	}
	return stages(v) + (LimitUM-stages(1))*v
}

func between(rng *rand.Rand, low, high float64) float64 { return low + (high-low)*rng.Float64() }

// spread returns a factor whose logarithm is Gaussian with mean 0 and standard
// deviation sigma.
func spread(rng *rand.Rand, sigma float64) float64 { return math.Exp(sigma * rng.NormFloat64()) }
