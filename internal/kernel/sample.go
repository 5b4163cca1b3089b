package kernel

import (
	"math"
	"math/bits"
)

// lanes is the number of generators in Lanes: as many as a vector has elements
// in the widest family.
const lanes = 16

// Lanes is a random source of 16 independent xoshiro128+ generators, laid out
// so that one step of all of them is a few vector instructions. Element i of a
// call draws from generator i mod 16, and a call that ends within a step of
// the 16 uses the step up. The zero value is not a source: call Seed.
//
// Source: D. Blackman and S. Vigna, "Scrambled Linear Pseudorandom Number
// Generators", ACM TOMS 47(4), 2021.
type Lanes [4][lanes]uint32

// Seed starts the source again. Equal seeds give equal streams. The states come
// from splitmix64, as the authors of xoshiro advise.
func (g *Lanes) Seed(seed uint64) {
	for w := range g {
		for lane := range g[w] {
			seed += 0x9e3779b97f4a7c15
			z := seed
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			g[w][lane] = uint32((z ^ z>>31) >> 32)
		}
	}
}

// Sample stores in every element of s a draw from a Bernoulli law: 1 with
// probability p, else 0. A draw compares p with a multiple of 2⁻²⁴ in [0, 1).
func Sample(s, p []float32, g *Lanes) {
	check(len(s) == len(p), "Sample: lengths differ")
	active.sample(s, p, g)
}

// SigmoidSample replaces x by σ(x), as Sigmoid does, and stores in s draws with
// those probabilities, as Sample does.
func SigmoidSample(s, x []float32, g *Lanes) {
	check(len(s) == len(x), "SigmoidSample: lengths differ")
	active.sigmoid(x)
	active.sample(s, x, g)
}

func sampleGo(s, p []float32, g *Lanes) {
	s = s[:len(p)]
	for len(p) >= lanes {
		for lane := range lanes {
			s[lane] = bernoulli(g.next(lane), p[lane])
		}
		s, p = s[lanes:], p[lanes:]
	}
	if len(p) == 0 {
		return
	}
	for lane := range lanes {
		if u := g.next(lane); lane < len(p) {
			s[lane] = bernoulli(u, p[lane])
		}
	}
}

// next steps one generator and returns 32 random bits, the upper ones best.
func (g *Lanes) next(lane int) uint32 {
	s0, s1, s2, s3 := g[0][lane], g[1][lane], g[2][lane], g[3][lane]
	u := s0 + s3
	t := s1 << 9
	s2 ^= s0
	s3 ^= s1
	s1 ^= s2
	s0 ^= s3
	s2 ^= t
	g[0][lane], g[1][lane], g[2][lane], g[3][lane] = s0, s1, s2, bits.RotateLeft32(s3, 11)
	return u
}

// bernoulli returns 1 if the upper 24 bits of u, as a fraction, are below p. A
// branch on a coin toss is mispredicted half the time, so the sign of the
// difference, which is exact near zero, selects the result.
func bernoulli(u uint32, p float32) float32 {
	d := float32(u>>8) - float32(p*(1<<24))
	return math.Float32frombits(uint32(int32(math.Float32bits(d))>>31) & 0x3f800000)
}
