package classify

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/score"
	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		costs     CostVector
		posterior []float64
		want      int
	}{
		"equal costs: the likelier":              {CostVector{0.3, 0.3}, []float64{0.4, 0.6}, 1},
		"a tie goes to the lower class":          {CostVector{0, 0}, []float64{0.5, 0.5}, 0},
		"a cheap class is decided sooner":        {CostVector{0.9, 0}, []float64{0.8, 0.2}, 1},
		"weights 1 and 4 meet at 0.8 and 0.2":    {CostVector{0.75, 0}, []float64{0.8, 0.2}, 0},
		"a class of cost 1 is never decided":     {CostVector{0.5, 1}, []float64{0, 1}, 0},
		"all costs 1: as if there were none":     {CostVector{1, 1, 1}, []float64{0.2, 0.3, 0.5}, 2},
		"three classes, the middle one weighted": {CostVector{0.6, 0, 0.6}, []float64{0.4, 0.2, 0.4}, 1},
	} {
		if got := tc.costs.Decide(tc.posterior); got != tc.want {
			t.Errorf("%s: Decide = %d, want %d", name, got, tc.want)
		}
	}
}

func TestWeighted(t *testing.T) {
	if c := weighted([]float64{1, 4}); !slices.Equal(c, CostVector{0.75, 0}) {
		t.Errorf("weights 1 and 4 are costs %v, want 0.75 and 0", c)
	}
	if c := InversePrior([]int{90, 10}); math.Abs(c[0]-(1-10.0/90)) > 1e-15 || c[1] != 0 {
		t.Errorf("inverse prior of 90 and 10 rows: %v", c)
	}
	if c := InversePrior([]int{5, 0}); c.Decide([]float64{0.9, 0.1}) != 0 {
		t.Errorf("a class without rows weighs %v", c)
	}
	if c := weighted([]float64{0, 1}); c[0] >= 1 {
		t.Errorf("weight 0 became cost %v: a weight of nothing cannot be mixed", c[0])
	}
}

// drawPosteriors draws N×K posteriors, half of the time on a coarse grid so
// that ties are common, and classes that follow from them.
func drawPosteriors(rng *rand.Rand, n, k int) judged {
	coarse, flat := rng.IntN(2) == 0, 0.02+2*rng.Float64()
	p, y := make([]float64, 0, n*k), make([]int, n)
	row := make([]float64, k)
	for i := range n {
		y[i] = i % k // every class is there
		if rng.Float64() < 0.7 {
			y[i] = 0
		}
		var sum float64
		for j := range row {
			z := rng.NormFloat64() * flat
			if j == y[i] {
				z += flat
			}
			if row[j] = math.Exp(z); coarse {
				row[j] = math.Ceil(4 * row[j])
			}
			sum += row[j]
		}
		for j := range row {
			p = append(p, float64(float32(row[j]/sum)))
		}
	}
	for j := range k { // also if no row of the class was drawn
		y[j] = j
	}
	return newJudged(k, p, y)
}

func TestScoreAgreesWithDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.75, 1, 1e-13}))
		k := rapid.IntRange(2, 4).Draw(t, "K")
		c := CostVector(rapid.SliceOfN(unit, k, k).Draw(t, "costs"))
		p := rapid.SliceOfN(unit, k, k).Draw(t, "posterior")
		s, other := c.Score(p), c.Decide(p) != Healthy
		switch {
		case !(s >= 0 && s <= 1):
			t.Fatalf("score %v", s)
		case (s >= 0.5) != other:
			t.Fatalf("score %v, but Decide = %d", s, c.Decide(p))
		}
		// The names of the classes but the first do not count.
		slices.Reverse(c[1:])
		slices.Reverse(p[1:])
		if again := c.Score(p); again != s {
			t.Fatalf("score %v, with the other classes in another order %v", s, again)
		}
	})
	tie := CostVector{0.5, 0.5}
	if s := tie.Score([]float64{0.5, 0.5}); s >= 0.5 || s < 0.4999 {
		t.Errorf("a tie scores %v: want just below a half, as it goes to class 0", s)
	}
}

// c and 1 − s·(1 − c) decide alike: powers of two scale weights exactly.
func TestScaleOfWeightsIsNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		k := 2 + rng.IntN(3)
		d := drawPosteriors(rng, 40, k)
		c, scaled := make(CostVector, k), make(CostVector, k)
		for j := range c {
			c[j] = float64(rng.IntN(1<<20)) / (1 << 20)
			scaled[j] = 1 - (1-c[j])/8
		}
		for i := range d.y {
			if a, b := c.Decide(d.row(i)), scaled.Decide(d.row(i)); a != b {
				t.Fatalf("costs %v decide %d, scaled %v decide %d", c, a, scaled, b)
			}
		}
		for j, v := range c.logWeights() {
			if math.Abs(v-scaled.logWeights()[j]) > 1e-9 {
				t.Fatalf("log weights %v and %v", c.logWeights(), scaled.logWeights())
			}
		}
	}
}

func TestCutRoundTrip(t *testing.T) {
	for _, cutAt := range []float64{-29, -3, -0.1, 0, 0.1, 3, 29} {
		if got := cut(cutAt).cutOf(); math.Abs(got-cutAt) > 2e-3 || math.Abs(cutAt) < 20 && math.Abs(got-cutAt) > 1e-6 {
			t.Errorf("cut at log odds %v comes back as %v", cutAt, got)
		}
	}
	if got := between(cut(1), cut(-4), 0.5).cutOf(); math.Abs(got+1.5) > 1e-12 {
		t.Errorf("half-way between cuts at 1 and -4 is %v, want -1.5", got)
	}
	a, b := weighted([]float64{1, 2, 8}), weighted([]float64{4, 2, 2})
	w := between(a, b, 0.5)
	if got := (1 - w[2]) / (1 - w[0]); math.Abs(got-2) > 1e-12 {
		t.Errorf("half-way between ratios 8 and 1/2 is %v, want 2", got)
	}
}

// bruteForce tries a cut in every gap between log odds.
func bruteForce(d judged) float64 {
	z := []float64{-largestLog, largestLog}
	for i := range d.y {
		p := d.row(i)
		z = append(z, min(max(math.Log(p[1]/p[0]), -largestLog), largestLog))
	}
	slices.Sort(z)
	var best float64
	for i := range z[1:] {
		best = max(best, d.confusion(cut((z[i]+z[i+1])/2)).GMean())
	}
	return best
}

func TestSweepIsTheOptimum(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := drawPosteriors(rng, 5+rng.IntN(60), 2)
		p := d.sweep(score.GMean)
		if want := bruteForce(d); math.Abs(p.fitness-want) > 1e-12 {
			t.Fatalf("problem %d: sweep finds %v, brute force %v", seed, p.fitness, want)
		}
		for _, at := range []float64{0.01, 0.5, 0.99} {
			c := cut(p.low + at*(p.high-p.low))
			if got := d.confusion(c).GMean(); math.Abs(got-p.fitness) > 1e-12 {
				t.Fatalf("problem %d: G-mean %v at %v of the plateau [%v, %v], want %v", seed, got, at, p.low, p.high, p.fitness)
			}
		}
	}
}

// Every metric's sweep finds what trying a cut in every gap finds, all over its
// plateau, and its value is the metric of the confusion.
func TestSweepOfEveryMetric(t *testing.T) {
	figure := map[score.Metric]func(score.Confusion) float64{
		score.GMean: score.Confusion.GMean, score.BalancedAccuracy: score.Confusion.BalancedAccuracy,
		score.F1: score.Confusion.F1, score.MCC: score.Confusion.MCC,
	}
	for _, m := range score.Metrics {
		for seed := range uint64(200) {
			rng := rand.New(rand.NewPCG(seed, 11))
			d := drawPosteriors(rng, 5+rng.IntN(60), 2)
			z := []float64{-largestLog, largestLog}
			for i := range d.y {
				p := d.row(i)
				z = append(z, min(max(math.Log(p[1]/p[0]), -largestLog), largestLog))
			}
			slices.Sort(z)
			best := math.Inf(-1)
			for i := range z[1:] {
				best = max(best, figure[m](d.confusion(cut((z[i]+z[i+1])/2))))
			}
			p := d.sweep(m)
			for _, at := range []float64{0.01, 0.5, 0.99} {
				got := figure[m](d.confusion(cut(p.low + at*(p.high-p.low))))
				if math.Abs(got-best) > 1e-12 || math.Abs(p.fitness-best) > 1e-12 {
					t.Fatalf("%s, problem %d: the sweep says %v and gives %v at %v of its plateau, brute force %v", m, seed, p.fitness, got, at, best)
				}
			}
		}
	}
}

// What is asked for is what comes out best, on the posteriors asked about; and
// false alarms are dear where there are many healthy rows for F1, not for the
// G-mean.
func TestCostsMaximiseTheirMetric(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	var p []float64
	var y []int
	for i := range 4000 {
		label := 0
		if i%40 == 0 {
			label = 1
		}
		p1 := 1 / (1 + math.Exp(-(rng.NormFloat64() + 2*float64(label) - 3.5)))
		p, y = append(p, 1-p1, p1), append(y, label)
	}
	confusion := map[score.Metric]score.Confusion{}
	for _, m := range score.Metrics {
		costs, r, err := ChooseCosts(context.Background(), p, y, 2, CostSettings{Metric: m, Fitness: Raw, Unmixed: true, JADE: jade.Settings{Generations: 40}})
		if err != nil {
			t.Fatal(err)
		}
		kept := r.Choices[len(r.Choices)-1]
		for _, c := range r.Choices {
			if c.Fitness > kept.Fitness+1e-12 {
				t.Errorf("%s: %s has %v, what is kept %v", r.Metric, c.Name, c.Fitness, kept.Fitness)
			}
		}
		confusion[m] = newJudged(2, p, y).confusion(costs)
		smooth, _, err := ChooseCosts(context.Background(), p, y, 2, CostSettings{Metric: m, Unmixed: true, JADE: jade.Settings{Generations: 40}})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Of(newJudged(2, p, y).confusion(smooth)); got < kept.Fitness-0.06 {
			t.Errorf("%s: the smoothed one gives %v of %v", m, got, kept.Fitness)
		}
	}
	if f, g := confusion[score.F1], confusion[score.GMean]; f.Precision() < 2*g.Precision() || f.Recall() > g.Recall() {
		t.Errorf("costs for F1 give precision %v and recall %v, for the G-mean %v and %v", f.Precision(), f.Recall(), g.Precision(), g.Recall())
	}
	for _, m := range []score.Metric{score.F1, score.MCC, "accuracy"} {
		if err := (Settings{Costs: CostSettings{Metric: m}}).Check(3); !errors.Is(err, ErrSettings) {
			t.Errorf("%s of three classes: %v", m, err)
		}
	}
}

func TestSweepWithNothingToGoBy(t *testing.T) {
	for name, p := range map[string][]float64{
		"equal posteriors":           {.9, .1, .9, .1, .9, .1},
		"the wrong way round, all":   {.1, .9, .2, .8, .9, .1},
		"posteriors of exactly 0, 1": {0, 1, 0, 1, 1, 0},
	} {
		d := newJudged(2, p, []int{0, 0, 1})
		if got := d.sweep(score.GMean); got.fitness != 0 || got.low != -largestLog || got.high != largestLog {
			t.Errorf("%s: plateau %+v, want a G-mean of 0 everywhere", name, got)
		}
	}
	sure := newJudged(2, []float64{1, 0, 1, 0, 0, 1}, []int{0, 0, 1})
	if got := sure.sweep(score.GMean); got.fitness != 1 || got.low != -got.high {
		t.Errorf("posteriors of exactly 0 and 1: plateau %+v, want 1 around 0", got)
	}
}

func TestJADEAgainstSweep(t *testing.T) {
	var gap float64
	problems := 1000
	if testing.Short() {
		problems = 100
	}
	for seed := range uint64(problems) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d := drawPosteriors(rng, 20+rng.IntN(100), 2)
		s := CostSettings{JADE: jade.Settings{Seed: seed, Generations: 60}}
		if seed%2 == 0 {
			s.Fitness = Raw
		}
		found, err := d.evolve(context.Background(), InversePrior(d.counts), s, &CostReport{})
		if err != nil {
			t.Fatal(err)
		}
		best, got := d.sweep(score.GMean).fitness, d.confusion(found).GMean()
		if got > best+1e-12 {
			t.Fatalf("problem %d: JADE finds %v, above the optimum %v", seed, got, best)
		}
		gap += (best - got) / float64(problems)
	}
	if gap > 0.005 {
		t.Errorf("JADE stays %v below the optimum on average", gap)
	}
}

// ascend is coordinate ascent with an exact line search: along one weight, the
// decisions change only where it makes a row's class level with the best other.
func ascend(d judged, w []float64) float64 {
	best := d.confusion(weighted(w)).GMean()
	for range 10 {
		before := best
		for j := range w {
			var levels []float64
			for i := range d.y {
				p := d.row(i)
				other := 0.0
				for l := range w {
					if l != j {
						other = max(other, w[l]*p[l])
					}
				}
				levels = append(levels, other/p[j])
			}
			slices.Sort(levels)
			for i := range levels[1:] {
				try := slices.Clone(w)
				try[j] = math.Sqrt(levels[i] * levels[i+1])
				if g := d.confusion(weighted(try)).GMean(); g > best {
					best = g
					copy(w, try)
				}
			}
		}
		if best == before {
			break
		}
	}
	return best
}

func TestJADEAgainstCoordinateAscent(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 3))
		k := 3 + int(seed%2)
		d := drawPosteriors(rng, 90, k)
		found, err := d.evolve(context.Background(), InversePrior(d.counts), CostSettings{JADE: jade.Settings{Seed: seed}}, &CostReport{})
		if err != nil {
			t.Fatal(err)
		}
		want := ascend(d, []float64{1, 1, 1, 1}[:k])
		if got := d.confusion(found).GMean(); got < want-0.02 {
			t.Errorf("problem %d, K = %d: JADE reaches %v, coordinate ascent %v", seed, k, got, want)
		}
	}
}

// With posteriors that hardly vary the useful costs are a sliver of the box.
// Seeds and the soft tie-break find it; the plain search sees a plateau.
func TestFlatPosteriors(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	var p []float64
	var y []int
	for i := range 300 {
		label := 0
		if i%15 == 0 {
			label = 1
		}
		z := -2.7 + 0.0005*rng.NormFloat64() + 0.001*float64(label)
		p1 := 1 / (1 + math.Exp(-z))
		p, y = append(p, 1-p1, p1), append(y, label)
	}
	d := newJudged(2, p, y)
	best := d.sweep(score.GMean).fitness
	var r CostReport
	found, err := d.evolve(context.Background(), InversePrior(d.counts), CostSettings{}, &r)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.confusion(found).GMean(); got < best-0.01 {
		t.Errorf("seeded and soft, JADE reaches %v of %v", got, best)
	}
	stalls := 0
	for seed := range uint64(10) {
		var r CostReport
		s := CostSettings{Fitness: Raw, Search: jade.Paper, JADE: jade.Settings{Seed: seed}}
		if _, err := d.evolve(context.Background(), InversePrior(d.counts), s, &r); err != nil {
			t.Fatal(err)
		}
		if r.Search.Stopped == jade.NoProgress {
			stalls++
		}
	}
	if stalls == 0 {
		t.Error("the plain search never met the plateau that it is known for")
	}
}

func TestFitnessIsTheGMeanOfDecisions(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		k := 2 + rng.IntN(4)
		d := drawPosteriors(rng, 10+rng.IntN(600), k)
		costs := [][]float64{make([]float64, k), slices.Repeat([]float64{1}, k)}
		for range 8 {
			c := make([]float64, k)
			for j := range c {
				c[j] = rng.Float64()
			}
			costs = append(costs, c)
		}
		hard, soft := make([]float64, len(costs)), make([]float64, len(costs))
		d.recalls(0).fitness(hard, costs, score.GMean, false)
		d.recalls(0).fitness(soft, costs, score.GMean, true)
		for i, c := range costs {
			want := d.confusion(CostVector(c)).GMean()
			if math.Abs(hard[i]-want) > 1e-12 {
				t.Fatalf("problem %d: fitness %v, decisions give %v", seed, hard[i], want)
			}
			if extra := soft[i] - hard[i]; !(extra > 0 && extra <= softShare) {
				t.Fatalf("problem %d: the soft part is %v, want it in (0, %v]", seed, extra, softShare)
			}
		}
	}
}

// Renaming classes renames costs and changes nothing else.
func TestRenamingClasses(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 0))
	d := drawPosteriors(rng, 80, 3)
	names := []int{2, 0, 1}
	p, y := make([]float64, len(d.posterior)), make([]int, len(d.y))
	for i := range d.y {
		y[i] = names[d.y[i]]
		for j, v := range d.row(i) {
			p[i*3+names[j]] = v
		}
	}
	r := newJudged(3, p, y)
	c, rc := [][]float64{{0.11, 0.52, 0.73}}, [][]float64{make([]float64, 3)}
	for j, v := range c[0] {
		rc[0][names[j]] = v
	}
	f, rf := make([]float64, 1), make([]float64, 1)
	d.recalls(0).fitness(f, c, score.GMean, true)
	r.recalls(0).fitness(rf, rc, score.GMean, true)
	if math.Abs(f[0]-rf[0]) > 1e-12 {
		t.Errorf("fitness %v, %v with classes renamed", f[0], rf[0])
	}
	for i, s := range d.seeds(InversePrior(d.counts)) {
		other := r.seeds(InversePrior(r.counts))[i]
		for j, v := range s {
			if math.Abs(other[names[j]]-v) > 1e-9 {
				t.Errorf("seed %d is %v, %v with classes renamed", i, s, other)
			}
		}
	}
}

func TestSmoothedCut(t *testing.T) {
	logOdds := func(healthy, faulty []float64) judged {
		var p []float64
		var y []int
		for label, zs := range [][]float64{healthy, faulty} {
			for _, z := range zs {
				p1 := 1 / (1 + math.Exp(-z))
				p, y = append(p, 1-p1, p1), append(y, label)
			}
		}
		return newJudged(2, p, y)
	}
	rng := rand.New(rand.NewPCG(11, 0))
	normal := func(n int, mean, sd float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = mean + sd*rng.NormFloat64()
		}
		return x
	}
	// Equal normal laws: √(Φ(t+2)·Φ(2−t)) is greatest half-way between them.
	if got := logOdds(normal(20000, -2, 1), normal(5000, 2, 1)).smoothed(score.GMean); math.Abs(got) > 0.1 {
		t.Errorf("cut between normal laws at ±2: %v, want 0", got)
	}
	// Far apart everything in between is as good; the middle is taken.
	if got := logOdds(normal(100, -9, 0.1), normal(50, 7, 0.1)).smoothed(score.GMean); math.Abs(got+1) > 1 {
		t.Errorf("cut between classes at -9 and 7: %v, want about -1", got)
	}
	// One row does not draw the cut to itself, as it does the exact one.
	d := logOdds(append(normal(200, -4, 0.5), 6), append(normal(10, 4, 0.5), -3.9))
	if got := d.smoothed(score.GMean); math.Abs(got) > 2 {
		t.Errorf("cut with two outliers: %v, want about 0", got)
	}
	if got := logOdds([]float64{-1, -1}, []float64{-1}).smoothed(score.GMean); math.IsNaN(got) || math.IsInf(got, 0) {
		t.Errorf("cut of equal posteriors: %v", got)
	}
}

func TestSpread(t *testing.T) {
	// Log odds ±1 have standard deviation 1.
	p := 1 / (1 + math.Exp(-1))
	d := newJudged(2, []float64{p, 1 - p, 1 - p, p, p, 1 - p}, []int{0, 1, 1})
	near(t, "spread", d.spread(setOf([]int{0, 1})), 1)
	near(t, "spread of other rows", d.spread(setOf([]int{0, 2})), 0)
	near(t, "spread of no rows", d.spread(rowSet{}), 0)
	near(t, "spread of constant posteriors", newJudged(2, []float64{.9, .1, .9, .1}, []int{0, 1}).spread(setOf([]int{0, 1})), 0)
}

// The order of rows is nothing to the costs chosen on them.
func TestOrderOfRowsIsNothing(t *testing.T) {
	for _, k := range []int{2, 3} {
		rng := rand.New(rand.NewPCG(11, uint64(k)))
		d := drawPosteriors(rng, 90, k)
		other := newJudged(k, slices.Clone(d.posterior), slices.Clone(d.y))
		rng.Shuffle(len(d.y), func(a, b int) {
			other.y[a], other.y[b] = other.y[b], other.y[a]
			for j := range k {
				p := other.posterior
				p[a*k+j], p[b*k+j] = p[b*k+j], p[a*k+j]
			}
		})
		want, _, err := ChooseCosts(t.Context(), d.posterior, d.y, k, CostSettings{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := ChooseCosts(t.Context(), other.posterior, other.y, k, CostSettings{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.y {
			if a, b := want.Decide(d.row(i)), got.Decide(d.row(i)); a != b {
				t.Fatalf("K=%d: row %d is decided %d or %d, with costs %v or %v", k, i, a, b, want, got)
			}
		}
	}
}

// ChooseCosts keeps what Fit would keep, and JADE never beats the sweep.
func TestChooseCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var posterior []float64
	var y []int
	for i := range 400 {
		label := 0
		if i%5 == 0 {
			label = 1
		}
		p := 1 / (1 + math.Exp(2-1.5*float64(label)*2-rng.NormFloat64()))
		posterior, y = append(posterior, 1-p, p), append(y, label)
	}
	costs, r, err := ChooseCosts(t.Context(), posterior, y, 2, CostSettings{})
	if err != nil {
		t.Fatal(err)
	}
	by := make(map[string]Choice)
	for _, c := range r.Choices {
		by[c.Name] = c
	}
	if !slices.Equal(by[keptChoice].Costs, costs) || by[jadeChoice].GMean > by[exactChoice].GMean+1e-12 || by[exactChoice].GMean < 0.8 {
		t.Errorf("choices %+v, kept %v", r.Choices, costs)
	}
	near(t, "threshold", costs.Threshold(), float64(r.Kept))
	near(t, "round trip", cut(math.Log(0.137/0.863)).Threshold(), 0.137)
	for why, bad := range map[string]func() error{
		"lengths": func() error { _, _, err := ChooseCosts(t.Context(), posterior[1:], y, 2, CostSettings{}); return err },
		"one class": func() error {
			_, _, err := ChooseCosts(t.Context(), posterior, make([]int, len(y)), 2, CostSettings{})
			return err
		},
	} {
		if bad() == nil {
			t.Errorf("%s: no error", why)
		}
	}
}

// Costs move decisions, not the order of rows: rank AUC cannot show what they
// gain (for two classes).
func TestRankAUCIgnoresCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	n := 200
	plain, weighted, positive := make([]float64, n), make([]float64, n), make([]bool, n)
	c := CostVector{0.97, 0.1}
	for i := range n {
		p := float64(rng.IntN(50)) / 50
		plain[i], weighted[i], positive[i] = p, c.Score([]float64{1 - p, p}), rng.Float64() < p
	}
	if a, b := score.AUC(plain, positive), score.AUC(weighted, positive); math.Abs(a-b) > 0.003 {
		t.Errorf("AUC %v of posteriors, %v of scores", a, b)
	}
}
