package classify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/score"
)

// Names of the ways to choose costs, as reports spell them.
const (
	argmaxChoice       = "argmax"        // equal costs: the plain network
	inversePriorChoice = "inverse_prior" // weights 1/n_j
	exactChoice        = "exact"         // the optimum, K = 2 only
	smoothedChoice     = "smoothed"      // the optimum of the smoothed fitness, K = 2 only
	jadeChoice         = "jade"          // what JADE found
	halfWayChoice      = "half_way"      // half-way from the inverse prior to the optimum, or as far as PriorRows says
	keptChoice         = "kept"          // what the classifier decides with
)

// Choice is one way to choose costs and what it gives on the posteriors that
// all were chosen on.
type Choice struct {
	Name     string     `json:"name"`
	Costs    CostVector `json:"costs"`
	Fitness  float64    `json:"fitness"` // the metric that costs maximise, plain
	GMean    float64    `json:"gmean"`
	Accuracy float64    `json:"accuracy"`
}

// CostReport says how the costs were chosen and what else there was.
type CostReport struct {
	Posteriors   string       `json:"posteriors"`     // what costs were chosen on: "out-of-fold by group", "out-of-fold by row" or "training"
	Folds        int          `json:"folds"`          // networks that gave out-of-fold posteriors
	Rule         string       `json:"rule,omitempty"` // how costs follow where few groups have rows of a class, in words; empty: half-way from the optimum to the inverse prior
	Metric       score.Metric `json:"metric"`         // what costs maximise
	Choices      []Choice     `json:"choices"`        // all on the same posteriors, the one kept last
	Held         []HeldChoice `json:"held,omitempty"` // of three classes or more: what was compared on rows held out from the choice
	Spread       float64      `json:"spread"`         // of posteriors: standard deviation of log odds between rows of one network
	NearConstant bool         `json:"near_constant"`

	// Temperature is what the log posteriors of the network were divided by,
	// see [Temperature]; 1 if costs were not chosen on calibrated posteriors.
	Temperature float64 `json:"temperature"`

	// Plateau is the interval of thresholds on the posterior of the second of
	// two classes on which the plain G-mean is greatest, the widest if there are
	// several; every threshold in it decides alike. Kept is the threshold kept.
	// All are undefined for more than two classes.
	Plateau [2]score.Figure `json:"plateau"`
	Kept    score.Figure    `json:"kept_threshold"`

	Search SearchReport `json:"search"`
}

// SearchReport says how the search by JADE went.
type SearchReport struct {
	Variant     jade.Variant `json:"variant"`
	Generations int          `json:"generations"`
	Evaluations int          `json:"evaluations"`
	Stopped     jade.Stop    `json:"stopped"`
	Sampled     int          `json:"sampled"` // rows that were searched on where all were too many; 0 if all were
}

// ChooseCosts returns the costs that Fit would choose for rows of the given
// posteriors, N×K row-major, and classes. The report has the other choices too: for
// two classes the exact optimum by sweep and what JADE found. Settings.Posteriors
// and Folds have no meaning here, so of three classes or more the costs are always
// half-way to the inverse prior, of which Fit looks whether they are better than JADE's own. It returns an error that wraps ErrSize,
// errClasses or ErrSettings, or the error of ctx.
func ChooseCosts(ctx context.Context, posterior []float64, y []int, k int, s CostSettings) (CostVector, *CostReport, error) {
	if len(posterior) != len(y)*k {
		return nil, nil, fmt.Errorf("classify: %d posteriors for %d rows of %d classes: %w", len(posterior), len(y), k, ErrSize)
	}
	if n := countClasses(y); k < 2 || len(n) != k || slices.Contains(n, 0) {
		return nil, nil, fmt.Errorf("classify: choosing costs of %d classes on rows of %d: %w: each needs some", k, len(n), errClasses)
	}
	if err := s.checkSearch(k); err != nil {
		return nil, nil, err
	}
	d := newJudged(k, posterior, y)
	r := &CostReport{Posteriors: "as given", Spread: d.spread(d.all()), Temperature: 1}
	if r.NearConstant = r.Spread < leastSpread; r.NearConstant {
		s.Unmixed = true
	}
	costs, err := chooseCosts(ctx, d, dealt{}, s, r)
	if err != nil {
		return nil, nil, fmt.Errorf("classify: %w", err)
	}
	return costs, r, nil
}

// chooseCosts returns the costs to decide with, chosen on d, and fills in r. Folds are how the
// rows were held out from networks; none if they were not.
func chooseCosts(ctx context.Context, d judged, folds dealt, s CostSettings, r *CostReport) (CostVector, error) {
	s.Metric = cmp.Or(s.Metric, score.GMean)
	r.Metric = s.Metric
	inverse := InversePrior(d.counts)
	add := func(name string, c CostVector) {
		m := d.confusion(c)
		r.Choices = append(r.Choices, Choice{Name: name, Costs: c, Fitness: s.Metric.Of(m), GMean: m.GMean(), Accuracy: m.Accuracy()})
	}
	add(argmaxChoice, make(CostVector, d.k))
	add(inversePriorChoice, inverse)

	if d.k == 2 {
		d.pair = d.order()
	}
	evolved, err := d.evolve(ctx, inverse, s, r)
	if err != nil {
		return nil, err
	}
	optimum := evolved
	if d.k == 2 {
		p := d.sweep(s.Metric)
		r.Plateau = [2]score.Figure{score.Figure(threshold(p.low)), score.Figure(threshold(p.high))}
		exact, smooth := cut((p.low+p.high)/2), cut(d.smoothed(s.Metric))
		add(exactChoice, exact)
		add(smoothedChoice, smooth)
		if optimum = smooth; s.Fitness == Raw {
			optimum = exact
		}
		if p.fitness == 0 {
			optimum = inverse // nothing to go by
		}
	}
	add(jadeChoice, evolved)
	kept := optimum
	// The inverse prior is the best guess before a row is seen for metrics to
	// which classes count alike, and no guess for the others.
	switch {
	case s.Unmixed || s.Metric.PairOnly():
	case d.k > 2 && folds.folds > 1 && !s.priorAlone && len(d.y) <= searchedWhole:
		halfWay := between(inverse, optimum, s.trust(d.counts))
		add(halfWayChoice, halfWay)
		if kept, err = d.settleOptimum(ctx, folds, halfWay, optimum, s, r); err != nil {
			return nil, err
		}
	default:
		kept = between(inverse, optimum, s.trust(d.counts))
	}
	add(keptChoice, kept)
	if d.k == 2 {
		r.Kept = score.Figure(threshold(kept.cutOf()))
	} else {
		undefined := score.Figure(math.NaN())
		r.Kept, r.Plateau = undefined, [2]score.Figure{undefined, undefined}
	}
	return kept, nil
}

// trust returns how far from the inverse prior to the optimum the costs kept are,
// with the given number of rows of each class.
func (s CostSettings) trust(counts []int) float64 {
	if s.priorAlone {
		return 0
	}
	if s.PriorRows == 0 {
		return 0.5
	}
	n := float64(slices.Min(counts))
	return n / (n + float64(s.PriorRows))
}

// threshold returns the posterior of the second of two classes whose log odds
// are t.
func threshold(t float64) float64 { return 1 / (1 + math.Exp(-t)) }

// costBox is the problem of finding K costs, without its function.
func costBox(k int) jade.Problem {
	return jade.Problem{Lower: make([]float64, k), Upper: slices.Repeat([]float64{1}, k)}
}

// check reports the first setting that cannot be used for K classes. Defaults of
// Posteriors and Folds are in place.
func (s CostSettings) check(k int) error {
	switch {
	case s.Posteriors != OutOfFold && s.Posteriors != Training:
		return wrong("costs.posteriors", "%q: must be %q or %q", s.Posteriors, OutOfFold, Training)
	case s.Folds < 2:
		return wrong("costs.folds", "%d: must be 2 or more", s.Folds)
	}
	return s.checkSearch(k)
}

// checkSearch reports what check does, but for Posteriors and Folds.
func (s CostSettings) checkSearch(k int) error {
	switch {
	case s.Metric != "" && !slices.Contains(score.Metrics, s.Metric):
		return wrong("costs.metric", "%q: must be one of %v", s.Metric, score.Metrics)
	case s.Fitness != "" && s.Fitness != Smoothed && s.Fitness != Raw:
		return wrong("costs.fitness", "%q: must be %q or %q", s.Fitness, Smoothed, Raw)
	case s.PriorRows < 0:
		return wrong("costs.prior_rows", "%d: must not be negative", s.PriorRows)
	case k > 2 && s.Metric.PairOnly():
		return wrong("costs.metric", "%s is a figure of two classes, and there are %d: choose %s or %s", s.Metric, k, score.GMean, score.BalancedAccuracy)
	}
	if err := s.search().Check(costBox(k)); err != nil {
		return wrong("costs.search", "%w", err)
	}
	return nil
}

// search returns the settings of JADE.
func (s CostSettings) search() jade.Settings {
	s.JADE.Variant = s.Search
	return s.JADE
}

// evolve searches the costs with the greatest metric on d by JADE.
func (d judged) evolve(ctx context.Context, inverse CostVector, s CostSettings, r *CostReport) (CostVector, error) {
	smooth := s.Fitness != Raw
	search := s.search()
	if smooth {
		search.Initial = append(slices.Clone(search.Initial), d.seeds(inverse)...)
	}
	all := d.recalls(0)
	searched := all
	if d.k > 2 && len(d.y) > searchedWhole {
		searched = d.recalls(searchedOfClass)
		for _, n := range searched.counts {
			r.Search.Sampled += n
		}
	}
	problem := costBox(d.k)
	problem.Evaluate = func(f []float64, costs [][]float64) {
		searched.fitness(f, costs, s.Metric, smooth)
		for i := range f {
			f[i] = -f[i]
		}
	}
	found, err := jade.Minimize(ctx, problem, search)
	if err != nil {
		return nil, fmt.Errorf("choosing costs: %w", err)
	}
	if r.Search.Sampled > 0 {
		// Whether the find is worth more than a first guess, all rows decide.
		candidates := append([][]float64{found.X}, search.Initial...)
		f := make([]float64, len(candidates))
		all.fitness(f, candidates, s.Metric, smooth)
		for i, v := range f {
			if v > f[0] {
				f[0], found.X = v, candidates[i]
			}
		}
	}
	r.Search = SearchReport{
		Variant:     cmp.Or(search.Variant, jade.Published),
		Generations: found.Generations,
		Evaluations: found.Evaluations,
		Stopped:     found.Stopped,
		Sampled:     r.Search.Sampled,
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
	return [][]float64{make([]float64, d.k), inverse, weighted(posterior), weighted(level)}
}

// settle adapts settings to how many groups have rows of a class, where those are
// few. What the caller has set stays.
func (s Settings) settle(y []int, groups []string, k int, r *Report) Settings {
	if groups == nil || s.Costs.Posteriors == Training {
		return s
	}
	n := leastGroups(y, groups, k)
	s.crossing = n <= mostCrossing
	if n >= len(few) {
		return s
	}
	s.Costs.Uncalibrated, s.boundWear = true, true
	if n == 1 && !s.Costs.Unmixed && !s.Costs.Metric.PairOnly() {
		s.Costs.priorAlone = true
	}
	if s.Costs.priorAlone || n > 1 {
		r.Costs.Rule = few[n].rule
	}
	if s.ownDecay && s.Encoding != Bins && s.Encoding != Committee {
		s.Network.FineTune.Decay = few[n].decay
	}
	return s
}

// leastGroups returns how many groups have rows of a class, at least, among the
// classes but the first.
func leastGroups(y []int, groups []string, k int) int {
	number, _ := NumberGroups(groups)
	of := make([]map[int32]bool, k)
	for class := range of {
		of[class] = make(map[int32]bool)
	}
	for i, class := range y {
		of[class][number[i]] = true
	}
	least := len(of[1])
	for _, in := range of[2:] {
		least = min(least, len(in))
	}
	return least
}
