// Package jade finds the minimum of a function over a box by adaptive
// differential evolution, without derivatives.
//
// A population holds NP vectors, the parents. In every generation each parent x
// meets one trial vector u, made by mutation (a step along differences between
// members of the population) and crossover (some components from the mutant,
// the rest from x); the better of the two stays. The step length F and the
// crossover rate CR of the trials that won move the laws from which the next
// ones are drawn, so that the method tunes itself.
//
// Three variants are on offer. [Published] is JADE as its authors printed it:
//
//	J. Zhang and A. C. Sanderson, "JADE: Adaptive Differential Evolution With
//	Optional External Archive", IEEE Trans. Evolutionary Computation 13(5),
//	2009, pp. 945-958,
//
// with the constants of the authors' own MATLAB code. [Paper] and [Literal] are
// two readings of Algorithm 1 of
//
//	C. Zhang, K. C. Tan, H. Li and G. S. Hong, "A Cost-Sensitive Deep Belief
//	Network for Imbalanced Classification", IEEE TNNLS 2018, arXiv 1804.10801,
//
// which names JADE but prints another method: no p-best, no archive in the
// mutation, an arithmetic instead of a Lehmer mean, c = 0.5. Equation numbers
// in comments refer to Zhang & Sanderson.
package jade

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Problem is a function to be minimised over the box [Lower, Upper].
type Problem struct {
	Lower, Upper []float64 // bounds of each of the D ≥ 1 components; Lower ≤ Upper, a finite distance apart

	// Evaluate stores in f[i] the value of the function at x[i], for the whole
	// generation at once. NaN counts as +Inf, the worst value. Both slices
	// belong to Minimize: they must be neither changed (x) nor kept.
	Evaluate func(f []float64, x [][]float64)
}

// Each makes an Evaluate of a function of one vector.
func Each(objective func(x []float64) float64) func(f []float64, x [][]float64) {
	return func(f []float64, x [][]float64) {
		for i := range x {
			f[i] = objective(x[i])
		}
	}
}

// Variant is a way to make and adapt trial vectors.
type Variant string

// The variants. Paper and Literal share the mutation x + F·(x_r1 − x_r2), the
// arithmetic means and c = 0.5 of Algorithm 1 of the ECS-DBN paper, and take
// what it leaves open (limits of F and CR, bounds, stopping) from Published.
const (
	// Published is JADE: current-to-pbest/1 with archive, Lehmer mean, c = 0.1.
	Published Variant = "jade"
	// Paper crosses component by component and adapts after each generation,
	// as the prose of the ECS-DBN paper says.
	Paper Variant = "paper"
	// Literal takes the mutant whole or not at all, comparing the index of an
	// individual with the index of a component, and adapts after each individual, as
	// its listing says. It evaluates one vector at a time.
	Literal Variant = "literal"
)

// Settings say how to search. The zero value of every field is its default.
type Settings struct {
	Variant     Variant     // default Published
	Population  int         // NP, at least 4; default 30, or 100 if D > 10
	Generations int         // at most so many after the first population; default 200
	Stall       int         // stop after so many generations without a better best; default 30, never if negative
	Adaptation  float64     // c in (0, 1]: weight of the winners in the new means; default 0.1, for Paper and Literal 0.5
	Greediness  float64     // p in (0, 1]: share of the population that counts as p-best; default 0.05; Published only
	NoArchive   bool        // draw x_r2 from the population alone; Published only
	Initial     [][]float64 // vectors put into the first population, within the bounds; the first NP are taken
	Seed        uint64      // of every random draw: equal seeds, equal results
}

// Stop says why a search ended.
type Stop string

// The reasons for which a search ends.
const (
	budget  Stop = "generations" // all generations were used
	Stalled Stop = "stall"       // the best value stayed the same for Settings.Stall generations
	// NoProgress is Stalled on a plateau: every vector that was ever evaluated
	// had the same value, so the search learnt nothing and X is only the
	// first vector of the first population.
	NoProgress Stop = "no progress"
)

// Result is what a search found.
type Result struct {
	X           []float64 // the best vector; of equals, the one found first
	F           float64   // its value
	Generations int       // generations after the first population
	Evaluations int       // vectors evaluated
	History     []float64 // best value so far: of the first population, then after each generation
	Stopped     Stop
}

const (
	meanCR, meanF          = 0.5, 0.5 // of the first generation
	scaleCR, scaleF        = 0.1, 0.1 // standard deviation of CR, scale of F
	leastPBest             = 2        // as in the authors' code
	smallD                 = 10
	leastPopulation        = 4 // the parent, x_r1, x_r2 and one to spare
	seedStream      uint64 = 0x6a616465
)

// Minimize searches the problem's box for its minimum. It reports settings or a
// problem that cannot be used, and the error of ctx, which it looks at once a
// generation; the Result is then empty.
func Minimize(ctx context.Context, p Problem, s Settings) (Result, error) {
	if err := p.checkBox(); err != nil {
		return Result{}, err
	}
	if p.Evaluate == nil {
		panic("jade: Minimize: the problem has no Evaluate")
	}
	s, err := s.withDefaults(p)
	if err != nil {
		return Result{}, err
	}
	e := newEvolution(p, s)
	e.begin()
	idle := 0
	for e.result.Generations < s.Generations {
		if err := ctx.Err(); err != nil {
			return Result{}, fmt.Errorf("jade: stopped after %d generations: %w", e.result.Generations, err)
		}
		before := e.result.F
		if s.Variant == Literal {
			e.advanceOneByOne()
		} else {
			e.advance()
		}
		e.result.Generations++
		e.result.History = append(e.result.History, e.result.F)
		if idle++; e.result.F < before {
			idle = 0
		}
		if s.Stall > 0 && idle >= s.Stall {
			e.result.Stopped = Stalled
			if e.lowest == e.highest {
				e.result.Stopped = NoProgress
			}
			return e.result, nil
		}
	}
	e.result.Stopped = budget
	return e.result, nil
}

// Check reports settings that Minimize could not use for the problem, whose
// Evaluate may be nil.
func (s Settings) Check(p Problem) error {
	if err := p.checkBox(); err != nil {
		return err
	}
	_, err := s.withDefaults(p)
	return err
}

func (p Problem) checkBox() error {
	if len(p.Lower) == 0 || len(p.Lower) != len(p.Upper) {
		return fmt.Errorf("jade: %d lower and %d upper bounds: give one of each per component", len(p.Lower), len(p.Upper))
	}
	for j := range p.Lower {
		lo, hi := p.Lower[j], p.Upper[j]
		if !(lo <= hi) || math.IsInf(hi-lo, 0) {
			return fmt.Errorf("jade: component %d: bounds [%v, %v]: must be ascending and a finite distance apart", j, lo, hi)
		}
	}
	return nil
}

func (s Settings) withDefaults(p Problem) (Settings, error) {
	c, np := 0.1, 30
	s.Variant = cmp.Or(s.Variant, Published)
	if s.Variant != Published {
		c = 0.5
	}
	if len(p.Lower) > smallD {
		np = 100
	}
	s.Population = cmp.Or(s.Population, np)
	s.Generations = cmp.Or(s.Generations, 200)
	s.Stall = cmp.Or(s.Stall, 30)
	s.Adaptation = cmp.Or(s.Adaptation, c)
	s.Greediness = cmp.Or(s.Greediness, 0.05)
	switch {
	case !slices.Contains([]Variant{Published, Paper, Literal}, s.Variant):
		return s, fmt.Errorf("jade: variant %q: must be %q, %q or %q", s.Variant, Published, Paper, Literal)
	case s.Population < leastPopulation:
		return s, fmt.Errorf("jade: population %d: must be at least %d", s.Population, leastPopulation)
	case s.Generations < 0:
		return s, fmt.Errorf("jade: %d generations: must be positive, or 0 for the default", s.Generations)
	case !(s.Adaptation > 0 && s.Adaptation <= 1):
		return s, fmt.Errorf("jade: adaptation c = %v: must be in (0, 1]", s.Adaptation)
	case !(s.Greediness > 0 && s.Greediness <= 1):
		return s, fmt.Errorf("jade: greediness p = %v: must be in (0, 1]", s.Greediness)
	}
	for i, x := range s.Initial {
		if len(x) != len(p.Lower) {
			return s, fmt.Errorf("jade: initial vector %d has %d components: the problem has %d", i, len(x), len(p.Lower))
		}
		for j, v := range x {
			if !(v >= p.Lower[j] && v <= p.Upper[j]) {
				return s, fmt.Errorf("jade: initial vector %d: component %d is %v: must be within [%v, %v]", i, j, v, p.Lower[j], p.Upper[j])
			}
		}
	}
	return s, nil
}

func newEvolution(p Problem, s Settings) *evolution {
	d, np := len(p.Lower), s.Population
	return &evolution{
		problem: p, settings: s,
		rng: rand.New(rand.NewPCG(s.Seed, seedStream)),
		x:   vectors(np, d), f: make([]float64, np),
		u: vectors(np, d), fu: make([]float64, np),
		cr: make([]float64, np), step: make([]float64, np),
		order: make([]int, np), mutant: make([]float64, d),
		muCR: meanCR, muF: meanF,
		lowest: math.Inf(1), highest: math.Inf(-1),
		result: Result{X: make([]float64, d), F: math.Inf(1)},
	}
}

// vectors returns n vectors of d components that share one array.
func vectors(n, d int) [][]float64 {
	all := make([]float64, n*d)
	xs := make([][]float64, n)
	for i := range xs {
		xs[i] = all[i*d : (i+1)*d : (i+1)*d]
	}
	return xs
}
