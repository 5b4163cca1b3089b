package jade

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// evolution is a search under way. Slices with one entry per individual have
// length NP.
type evolution struct {
	problem  Problem
	settings Settings
	rng      *rand.Rand

	x, u     [][]float64 // parents and trials
	f, fu    []float64   // their values, never NaN
	cr, step []float64   // CR and F of each trial
	order    []int       // parents from best to worst
	mutant   []float64   // scratch
	archive  [][]float64 // parents that lost, at most NP between generations

	muCR, muF       float64
	wonCR, wonF     []float64 // S_CR and S_F of this generation
	lowest, highest float64   // values seen since the beginning
	result          Result
}

// begin draws the first population uniformly from the box and evaluates it.
func (e *evolution) begin() {
	lo, hi := e.problem.Lower, e.problem.Upper
	for i, x := range e.x {
		for j := range x {
			x[j] = min(lo[j]+e.rng.Float64()*(hi[j]-lo[j]), hi[j])
		}
		if i < len(e.settings.Initial) {
			copy(x, e.settings.Initial[i])
		}
	}
	copy(e.result.X, e.x[0])
	e.evaluate(e.f, e.x)
	e.result.History = append(e.result.History, e.result.F)
}

// evaluate stores the values of x in f, counts them and keeps the best.
func (e *evolution) evaluate(f []float64, x [][]float64) {
	e.problem.Evaluate(f, x)
	e.result.Evaluations += len(x)
	for i := range f {
		if math.IsNaN(f[i]) {
			f[i] = math.Inf(1)
		}
		if f[i] < e.result.F {
			e.result.F = f[i]
			copy(e.result.X, x[i])
		}
		e.lowest, e.highest = min(e.lowest, f[i]), max(e.highest, f[i])
	}
}

// advance makes one generation: every trial comes from the population as it was
// at the start, then the whole generation is evaluated, selected and learnt from.
func (e *evolution) advance() {
	e.rank()
	for i := range e.x {
		e.drawParameters(i)
		if e.settings.Variant == Published {
			e.mutateTowardsBest(i)
		} else {
			e.mutate(i)
		}
		e.intoBox(i)
		crossTo(e.u[i], e.x[i], e.mutant, e.cr[i], e.rng)
	}
	e.evaluate(e.fu, e.u)
	for i := range e.x {
		e.note(i)
	}
	e.replace()
	e.adapt()
	e.wonCR, e.wonF = e.wonCR[:0], e.wonF[:0]
	e.trimArchive()
}

// advanceOneByOne makes one generation of Literal: the means move after every
// individual, so the next one cannot be drawn before this one is evaluated.
func (e *evolution) advanceOneByOne() {
	for i := range e.x {
		e.drawParameters(i)
		e.mutate(i)
		e.intoBox(i)
		// "if i = i_rand or rand(0,1) < Cr_i" with i_rand = randint(1, D): the
		// whole mutant or a copy of the parent.
		always := e.rng.IntN(len(e.mutant))
		if i == always || e.rng.Float64() < e.cr[i] {
			copy(e.u[i], e.mutant)
		} else {
			copy(e.u[i], e.x[i])
		}
		e.evaluate(e.fu[i:i+1], e.u[i:i+1])
		e.note(i)
		e.adapt()
	}
	e.replace()
	e.wonCR, e.wonF = e.wonCR[:0], e.wonF[:0]
}

// rank sorts the parents from best to worst; equals keep their order.
func (e *evolution) rank() {
	for i := range e.order {
		e.order[i] = i
	}
	slices.SortStableFunc(e.order, func(a, b int) int { return cmp.Compare(e.f[a], e.f[b]) })
}

// drawParameters draws
//
//	CR_i ~ N(μ_CR, 0.1), truncated to [0, 1]             (eq. 8)
//	F_i  ~ Cauchy(μ_F, 0.1), drawn again while F_i ≤ 0,
//	       1 if F_i > 1                                   (eq. 10)
func (e *evolution) drawParameters(i int) {
	e.cr[i] = min(max(e.muCR+scaleCR*e.rng.NormFloat64(), 0), 1)
	for {
		if f := e.muF + scaleF*math.Tan(math.Pi*(e.rng.Float64()-0.5)); f > 0 {
			e.step[i] = min(f, 1)
			return
		}
	}
}

// mutateTowardsBest makes the mutant of parent i by DE/current-to-pbest/1,
//
//	v_i = x_i + F_i·(x_pbest − x_i) + F_i·(x_r1 − x̃_r2),   (eq. 6 and 7)
//
// where x_pbest is one of the best 100p % of the population, x_r1 another
// parent, and x̃_r2 a third vector, of the population or the archive.
func (e *evolution) mutateTowardsBest(i int) {
	np := len(e.x)
	best := max(leastPBest, int(math.Round(e.settings.Greediness*float64(np))))
	pbest := e.x[e.order[e.rng.IntN(best)]]
	r1 := e.other(np, i, i)
	r2 := e.other(np+len(e.archive), i, r1)
	x, a := e.x[i], e.x[r1]
	b := e.member(r2)
	for j := range e.mutant {
		e.mutant[j] = x[j] + e.step[i]*(pbest[j]-x[j]) + e.step[i]*(a[j]-b[j])
	}
}

// mutate makes the mutant of parent i as Algorithm 1 of the ECS-DBN paper, step
// 2.1, prints it: v_i = x_i + F_i·(x_j − x_k), with i, j, k taken to differ.
func (e *evolution) mutate(i int) {
	j := e.other(len(e.x), i, i)
	k := e.other(len(e.x), i, j)
	for d := range e.mutant {
		e.mutant[d] = e.x[i][d] + e.step[i]*(e.x[j][d]-e.x[k][d])
	}
}

// other draws an index below n that is neither a nor b.
func (e *evolution) other(n, a, b int) int {
	for {
		if r := e.rng.IntN(n); r != a && r != b {
			return r
		}
	}
}

// member returns vector r of the union of population and archive.
func (e *evolution) member(r int) []float64 {
	if r < len(e.x) {
		return e.x[r]
	}
	return e.archive[r-len(e.x)]
}

// intoBox sets a component of the mutant that left the box to the middle
// between the bound and the parent.
func (e *evolution) intoBox(i int) {
	for j, v := range e.mutant {
		if lo := e.problem.Lower[j]; v < lo {
			e.mutant[j] = lo + (e.x[i][j]-lo)/2
		} else if hi := e.problem.Upper[j]; v > hi {
			e.mutant[j] = hi - (hi-e.x[i][j])/2
		}
	}
}

// crossTo writes the trial vector u. Component j comes from the mutant v with
// probability cr, and always for one index drawn at random; the rest come from
// the parent x. (eq. 4)
func crossTo(u, x, v []float64, cr float64, rng *rand.Rand) {
	always := rng.IntN(len(u))
	for j := range u {
		if u[j] = x[j]; rng.Float64() < cr || j == always {
			u[j] = v[j]
		}
	}
}

// note records the parameters of trial i if it won. On equal values the parent
// stays. (eq. 5)
func (e *evolution) note(i int) {
	if e.fu[i] < e.f[i] {
		e.wonCR = append(e.wonCR, e.cr[i])
		e.wonF = append(e.wonF, e.step[i])
	}
}

// replace puts the trials that won in their parents' places; the parents go to
// the archive.
func (e *evolution) replace() {
	archive := e.settings.Variant == Published && !e.settings.NoArchive
	for i := range e.x {
		if e.fu[i] < e.f[i] {
			if archive {
				e.archive = append(e.archive, slices.Clone(e.x[i]))
			}
			copy(e.x[i], e.u[i])
			e.f[i] = e.fu[i]
		}
	}
}

// adapt moves the means towards what won,
//
//	μ_CR = (1−c)·μ_CR + c·mean_A(S_CR)                      (eq. 9)
//	μ_F  = (1−c)·μ_F  + c·mean_L(S_F)                       (eq. 11)
//	mean_L(S) = Σ F² / Σ F, the Lehmer mean                 (eq. 12)
//
// and leaves them alone if nothing did. Paper and Literal take the arithmetic
// mean of S_F too.
func (e *evolution) adapt() {
	if len(e.wonF) == 0 {
		return
	}
	var sumCR, sumF, sumF2 float64
	for i, f := range e.wonF {
		sumCR += e.wonCR[i]
		sumF += f
		sumF2 += f * f
	}
	n, c := float64(len(e.wonF)), e.settings.Adaptation
	mean := sumF / n
	if e.settings.Variant == Published {
		mean = sumF2 / sumF
	}
	e.muCR = (1-c)*e.muCR + c*sumCR/n
	e.muF = (1-c)*e.muF + c*mean
}

// trimArchive removes vectors at random until at most NP are left.
func (e *evolution) trimArchive() {
	for len(e.archive) > len(e.x) {
		last := len(e.archive) - 1
		e.archive[e.rng.IntN(len(e.archive))] = e.archive[last]
		e.archive[last] = nil
		e.archive = e.archive[:last]
	}
}
