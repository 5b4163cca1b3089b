package classify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/jade"
)

// Names of the ways to choose costs, as reports spell them.
const (
	argmaxChoice       = "argmax"        // equal costs: the plain network
	inversePriorChoice = "inverse_prior" // weights 1/n_j
	exactChoice        = "exact"         // the optimum, K = 2 only
	smoothedChoice     = "smoothed"      // the optimum of the smoothed fitness, K = 2 only
	jadeChoice         = "jade"          // what JADE found
	keptChoice         = "kept"          // what the classifier decides with
)

// Choice is one way to choose costs and what it gives on the posteriors that
// all were chosen on.
type Choice struct {
	Name     string     `json:"name"`
	Costs    CostVector `json:"costs"`
	GMean    float64    `json:"gmean"`
	Accuracy float64    `json:"accuracy"`
}

// CostReport says how the costs were chosen and what else there was.
type CostReport struct {
	Posteriors   string   `json:"posteriors"` // what costs were chosen on: "out-of-fold by group", "out-of-fold by row" or "training"
	Folds        int      `json:"folds"`      // networks that gave out-of-fold posteriors
	Choices      []Choice `json:"choices"`    // all on the same posteriors, the one kept last
	Spread       float64  `json:"spread"`     // of posteriors: standard deviation of log odds between rows of one network
	NearConstant bool     `json:"near_constant"`

	// Plateau is the interval of thresholds on the posterior of the second of
	// two classes on which the plain G-mean is greatest, the widest if there are
	// several; every threshold in it decides alike. Kept is the threshold kept.
	// All are undefined for more than two classes.
	Plateau [2]Figure `json:"plateau"`
	Kept    Figure    `json:"kept_threshold"`

	Search SearchReport `json:"search"`
}

// SearchReport says how the search by JADE went.
type SearchReport struct {
	Variant     jade.Variant `json:"variant"`
	Generations int          `json:"generations"`
	Evaluations int          `json:"evaluations"`
	Stopped     jade.Stop    `json:"stopped"`
}

const (
	// leastSpread is what log odds must vary by from row to row for out-of-fold
	// costs to make sense. Networks trained at the paper's rate of 0.01, which
	// collapse to the larger class, show 0.01 to 0.3 and differ as much from one
	// to the next; trained well, 0.8 on the hardest of KEEL's problems and 2 to
	// 10 on most.
	leastSpread = 0.25
	// softShare is the share of the soft G-mean in the smoothed fitness of JADE:
	// enough to show the way on a plateau, too little to buy a wrong decision
	// with among fewer than 10,000 rows.
	softShare = 1e-4
)

// chooseCosts returns the costs to decide with, chosen on d, and fills in r.
func chooseCosts(ctx context.Context, d judged, s CostSettings, r *CostReport) (CostVector, error) {
	inverse := InversePrior(d.counts)
	add := func(name string, c CostVector) {
		m := d.confusion(c)
		r.Choices = append(r.Choices, Choice{Name: name, Costs: c, GMean: m.GMean(), Accuracy: m.Accuracy()})
	}
	add(argmaxChoice, make(CostVector, d.k))
	add(inversePriorChoice, inverse)

	evolved, err := d.evolve(ctx, inverse, s, r)
	if err != nil {
		return nil, err
	}
	optimum := evolved
	if d.k == 2 {
		p := d.sweep()
		r.Plateau = [2]Figure{Figure(threshold(p.low)), Figure(threshold(p.high))}
		exact, smooth := cut((p.low+p.high)/2), cut(d.smoothed())
		add(exactChoice, exact)
		add(smoothedChoice, smooth)
		if optimum = smooth; s.Raw {
			optimum = exact
		}
		if p.gmean == 0 {
			optimum = inverse // nothing to go by
		}
	}
	add(jadeChoice, evolved)
	kept := optimum
	if !s.Unmixed {
		kept = halfway(optimum, inverse)
	}
	add(keptChoice, kept)
	if d.k == 2 {
		r.Kept = Figure(threshold(kept.cutOf()))
	} else {
		undefined := Figure(math.NaN())
		r.Kept, r.Plateau = undefined, [2]Figure{undefined, undefined}
	}
	return kept, nil
}

// threshold returns the posterior of the second of two classes whose log odds
// are t.
func threshold(t float64) float64 { return 1 / (1 + math.Exp(-t)) }

// costBox is the problem of finding K costs, without its function.
func costBox(k int) jade.Problem {
	return jade.Problem{Lower: make([]float64, k), Upper: slices.Repeat([]float64{1}, k)}
}

// check reports settings of the search that cannot be used for K classes, before
// hours are spent on training.
func (s CostSettings) check(k int) error {
	if err := s.Search.Check(costBox(k)); err != nil {
		return fmt.Errorf("classify: choosing costs: %w: %w", ErrSettings, err)
	}
	return nil
}

// evolve searches the costs with the greatest G-mean on d by JADE.
func (d judged) evolve(ctx context.Context, inverse CostVector, s CostSettings, r *CostReport) (CostVector, error) {
	search := s.Search
	if !s.Raw {
		search.Initial = append(slices.Clone(search.Initial), d.seeds(inverse)...)
	}
	classes := d.byClass()
	problem := costBox(d.k)
	problem.Evaluate = func(f []float64, costs [][]float64) {
		classes.fitness(f, costs, !s.Raw)
		for i := range f {
			f[i] = -f[i]
		}
	}
	found, err := jade.Minimize(ctx, problem, search)
	if err != nil {
		return nil, fmt.Errorf("choosing costs: %w", err)
	}
	r.Search = SearchReport{
		Variant:     cmp.Or(search.Variant, jade.Published),
		Generations: found.Generations,
		Evaluations: found.Evaluations,
		Stopped:     found.Stopped,
	}
	return CostVector(found.X), nil
}

// seeds returns costs worth trying first: equal; inverse prior; inverse mean
// posterior, w_j = 1/mean_i P_ij; and for each class the weights that put the
// mean log posteriors of its rows and of all others level, on average.
func (d judged) seeds(inverse CostVector) [][]float64 {
	meanOf := func(j int) []float64 { // mean log posteriors of the rows of class j
		mean := make([]float64, d.k)
		for i, label := range d.y {
			if label != j {
				continue
			}
			for c, p := range d.row(i) {
				mean[c] += max(math.Log(p), -largestLog) / float64(max(d.counts[j], 1))
			}
		}
		return mean
	}
	posterior, level := make([]float64, d.k), make([]float64, d.k)
	for i := range d.y {
		for c, p := range d.row(i) {
			posterior[c] += p
		}
	}
	for c := range posterior {
		posterior[c] = 1 / max(posterior[c], math.SmallestNonzeroFloat32)
	}
	for j := range d.k {
		for c, v := range meanOf(j) {
			level[c] -= v / float64(d.k)
		}
	}
	top := slices.Max(level)
	for c := range level {
		level[c] = math.Exp(level[c] - top)
	}
	return [][]float64{make([]float64, d.k), inverse, Weighted(posterior), Weighted(level)}
}

// classRows holds the posteriors of the rows of each class, N_j×K.
type classRows struct {
	k    int
	rows [][]float64
}

func (d judged) byClass() classRows {
	c := classRows{d.k, make([][]float64, d.k)}
	for i, label := range d.y {
		c.rows[label] = append(c.rows[label], d.row(i)...)
	}
	return c
}

// block is how many rows are scored for the whole generation while they are in
// the cache.
const block = 256

// fitness stores in f[i] the G-mean that the costs costs[i] give, over classes
// that have rows. If soft, it adds softShare of the soft G-mean, the geometric
// mean over classes k of
//
//	mean_{i: y_i=k} w_k·P_ik / Σ_j w_j·P_ij,
//
// which is never flat where posteriors are not.
func (c classRows) fitness(f []float64, costs [][]float64, soft bool) {
	weights := make([]float64, len(costs)*c.k)
	for i, x := range costs {
		w := weights[i*c.k : (i+1)*c.k]
		weightless := CostVector(x).weightless()
		for j := range w {
			if w[j] = 1 - x[j]; weightless {
				w[j] = 1
			}
		}
	}
	hard := make([]float64, len(costs)) // product of recalls
	easy := make([]float64, len(costs)) // product of mean shares
	for i := range f {
		hard[i], easy[i] = 1, 1
	}
	present := 0
	hits := make([]int, len(costs))
	shares := make([]float64, len(costs))
	for class, rows := range c.rows {
		n := len(rows) / c.k
		if n == 0 {
			continue
		}
		present++
		clear(hits)
		clear(shares)
		for from := 0; from < n; from += block {
			part := rows[from*c.k : min(from+block, n)*c.k]
			for i := range costs {
				h, s := score(part, weights[i*c.k:(i+1)*c.k], class, soft)
				hits[i] += h
				shares[i] += s
			}
		}
		for i := range f {
			hard[i] *= float64(hits[i]) / float64(n)
			easy[i] *= shares[i] / float64(n)
		}
	}
	root := 1 / float64(max(present, 1))
	for i := range f {
		if f[i] = math.Pow(hard[i], root); soft {
			f[i] += softShare * math.Pow(easy[i], root)
		}
	}
}

// score returns how many of the rows, all of one class, are decided right with
// weights w, and, if soft, the sum of the weighted shares of their class.
func score(rows, w []float64, class int, soft bool) (hits int, shares float64) {
	k := len(w)
	for len(rows) > 0 {
		p := rows[:k:k]
		rows = rows[k:]
		best, most, sum := 0, 0.0, 0.0
		for j, v := range p {
			v *= w[j]
			sum += v
			if v > most {
				best, most = j, v
			}
		}
		if best == class {
			hits++
		}
		if soft && sum > 0 {
			shares += p[class] * w[class] / sum
		}
	}
	return hits, shares
}
