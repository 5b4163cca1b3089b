package sim

import (
	"math"
	"math/rand/v2"
)

// LimitUM is the maximum flank wear in µm from which on a tool is faulty, as in
// the paper.
const LimitUM = 300

// curve is the flank wear of one tool over its life:
//
//	VB(u) = A·(1 − e^(−v/0.07)) + (300 − A − C)·v + C·e^((v−1)/0.12),  v = u/limit,
//
// with u the share of its life that a tool has been cutting and limit the share
// at which VB reaches 300 µm: a fast run-in, a linear and an accelerated stage.
// At the event a chipped or broken tool jumps.
//
// A ≈ 70 and C ≈ 30 µm follow the median of the measured curves of the NASA/UC
// Berkeley milling set (15 tools) and of QIT-CEMC titanium milling (4 edges),
// each in units of its own time to 300 µm:
//
//	v       0.25  0.5  0.75  0.9   1    1.1
//	median    97  164   230  268  300   343 µm
//	here     119  170   223  263  300   359 µm
//
// They are milling, not gun drilling. That worn tools pass 300 µm at 85 to 92 %
// of their life, and the others fail at 92 to 97 %, is assumed: it gives the
// paper's one faulty sample for ten healthy ones.
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
		runIn:     between(rng, 60, 80),
		knee:      between(rng, 25, 35),
		limit:     between(rng, 0.85, 0.92),
		event:     math.Inf(1),
		meanShare: between(rng, 0.65, 0.8), // assumed
		end:       end,
	}
	if end != Worn {
		c.limit = between(rng, 1, 1.05)
		c.event = between(rng, 0.92, 0.97)
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
	v := u / c.limit
	vbMax = c.runIn*(1-math.Exp(-v/0.07)) + (LimitUM-c.runIn-c.knee)*v + c.knee*math.Exp((v-1)/0.12)
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

func between(rng *rand.Rand, low, high float64) float64 { return low + (high-low)*rng.Float64() }

// spread returns a factor whose logarithm is Gaussian with mean 0 and standard
// deviation sigma.
func spread(rng *rand.Rand, sigma float64) float64 { return math.Exp(sigma * rng.NormFloat64()) }
