package classify

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Report says what a fit saw, did and doubts.
type Report struct {
	Rows        int        `json:"rows"`
	Columns     int        `json:"columns"`
	Inputs      int        `json:"inputs"` // of the network, after encoding
	ClassCounts []int      `json:"class_counts"`
	Groups      int        `json:"groups"`            // 0 if rows have none
	Constant    []int      `json:"constant_columns"`  // with one value or none: they say nothing and are encoded as 0
	Empty       []int      `json:"empty_columns"`     // those of them without any value
	Imputed     int        `json:"imputed_cells"`     // missing values, encoded as their column's mean
	Members     []Member   `json:"members,omitempty"` // of a Committee
	Costs       CostReport `json:"costs"`
	// Posterior, N×K row-major, holds the posteriors that the costs were chosen
	// on.
	Posterior []float64 `json:"-"`
	// Held are the scores of the costs kept on the posteriors they were chosen
	// on. They are better than on rows never seen, for which there is
	// CrossValidate.
	Held     Scores       `json:"held"`
	Training Scores       `json:"training"` // of the classifier on the rows it was fitted to
	History  *dbn.History `json:"-"`        // of the network, of a Committee's first
	Warnings []string     `json:"warnings"` // in words; empty if all is well
}

// Fit trains a classifier on the rows of x, whose classes are y and whose groups
// are groups, or nil. It keeps none of them. NaN in x is a missing value; a
// column's training mean stands for it, and the Report counts it.
//
// One network is trained on all rows, of a Committee one for each member. Unless costs come from Training
// posteriors, as many more as Costs.Folds says are trained on parts of the
// groups and judge the rest, and the costs are chosen on what they say:
//
//   - the members of a Committee are given the shares with which their joint
//     posteriors held out have the least cross-entropy, and are joined to one
//     network, see [dbn.Join]; those without a share are left out;
//   - posteriors are first brought to the temperature at which those held out
//     have the least cross-entropy, and so are those of the classifier, unless
//     these say hardly anything then, of which the Report warns;
//   - for two classes at the greatest smoothed G-mean, found by a sweep, beside
//     which the Report shows the exact optimum of the plain one and JADE's;
//   - for more, by JADE on the G-mean with a soft tie-break;
//   - then half-way, in log weight, to the inverse prior, or as far as PriorRows
//     says.
//
// If posteriors are near constant, networks differ from each other more than
// classes do; the costs are then the optimum on the network's own posteriors,
// and the Report warns.
//
// Rows that are no dbn.Matrix stay where they are, and are read again and again:
// see dbn.Train. Encoders are then fitted to 100,000 rows from all over.
//
// Errors wrap ErrSize, ErrNotFinite, ErrClasses, ErrTooFew or ErrSettings, an
// error of dbn.Train, of reading x, or the cause of ctx.
func Fit(ctx context.Context, x dbn.Rows, y []int, groups []string, s Settings) (*Classifier, *Report, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	k, err := checkData(x, y, groups)
	if err != nil {
		return nil, nil, err
	}
	if err := s.Costs.check(k); err != nil {
		return nil, nil, err
	}
	c, r, err := fit(ctx, x, y, groups, k, s)
	if err != nil {
		return nil, nil, fmt.Errorf("classify: %w", err)
	}
	return c, r, nil
}

// Streams of seeds that follow from Settings.Seed.
const (
	networkSeed = iota
	searchSeed
	splitSeed
	foldSeeds = 1 << 16 // and upwards, one for each inner fold
	outerSeed = 1 << 32 // and upwards, one for each fold of CrossValidate
)

// fit is Fit of K classes with checked rows and settings. Its errors lack the
// name of the package.
func fit(ctx context.Context, x dbn.Rows, y []int, groups []string, k int, s Settings) (*Classifier, *Report, error) {
	rows, cols := x.Shape()
	r := &Report{Rows: rows, Columns: cols, ClassCounts: countClasses(y), Warnings: []string{}}
	if groups != nil {
		_, names := numberGroups(groups)
		r.Groups = len(names)
	}
	var folds dealt
	r.Costs.Posteriors = string(Training)
	if s.Costs.Posteriors == OutOfFold {
		var err error
		if folds, err = innerFolds(y, groups, s, r); err != nil {
			return nil, nil, err
		}
		r.Costs.Folds = folds.folds
	}

	// The networks to keep and those of the folds, the slowest first.
	all := s.members()
	trained := make([]member, len(all))
	held := make([][]float64, len(all))
	for m := range held {
		if folds.folds > 0 {
			held[m] = make([]float64, rows*k)
		}
	}
	networks := len(all) * (1 + folds.folds)
	progress := newProgress(s.Progress, "train", networks)
	// Workers that are to spare share the batches of a network.
	spare := max(1, s.Workers/networks)
	err := parallel(ctx, networks, s.Workers, func(ctx context.Context, i int) error {
		m, fold := i%len(all), i/len(all)
		set := all[m]
		set.Network.Workers = spare
		if fold == 0 {
			var err error
			t := &trained[m]
			t.encoder, t.network, t.history, err = train(ctx, x, y, groups, k, set, derive(s.Seed, networkSeed), progress.of(i))
			return err
		}
		some, test := folds.train(fold-1), folds.test(fold-1)
		var tools []string
		if s.EarlyStop {
			tools = pick(groups, some)
		}
		encoder, network, _, err := train(ctx, part(x, some), pick(y, some), tools, k, set, derive(s.Seed, foldSeeds+uint64(fold-1)), progress.of(i))
		if err != nil {
			return fmt.Errorf("fold %d of %d, to choose costs: %w", fold, folds.folds, err)
		}
		return eachPosterior(part(x, test), encoder, network, func(n int, p []float64) { copy(held[m][test.row(n)*k:], p) })
	})
	if err != nil {
		return nil, nil, err
	}
	r.History = trained[0].history
	c, joint := join(trained, held, y, k, s.Costs.Uncalibrated, r)
	r.describe(trained[0].encoder, c.encoder.inputs)
	if r.Imputed, err = missing(x); err != nil {
		return nil, nil, err
	}

	own := func() (judged, error) {
		p := make([]float64, rows*k)
		err := eachPosterior(x, c.encoder, c.network, func(i int, row []float64) { copy(p[i*k:], row) })
		return newJudged(k, p, y), err
	}
	s.Costs.Search.Seed = derive(s.Seed, searchSeed)
	if c.costs, err = keepCosts(ctx, own, newJudged(k, joint, y), folds, s.Costs, r); err != nil {
		return nil, nil, err
	}
	if r.Costs.Temperature != 1 {
		c.network = c.network.Temper(r.Costs.Temperature)
	}
	training := newAssessor(c.costs, r.ClassCounts)
	if err := eachPosterior(x, c.encoder, c.network, func(i int, p []float64) { training.add(y[i], p) }); err != nil {
		return nil, nil, err
	}
	r.Training = training.scores()
	return c, r, nil
}

// keepCosts chooses costs on the held-out posteriors d, or on the network's own
// if there are no folds or the others are near constant.
func keepCosts(ctx context.Context, own func() (judged, error), d judged, folds dealt, s CostSettings, r *Report) (CostVector, error) {
	outOfFold := folds.folds > 0
	if outOfFold {
		for f := range folds.folds {
			test := folds.test(f)
			r.Costs.Spread += d.spread(test) * float64(test.rows) / float64(len(d.y))
		}
	} else {
		var err error
		if d, err = own(); err != nil {
			return nil, err
		}
		r.Costs.Spread = d.spread(d.all())
	}
	r.Costs.Temperature = 1
	r.Costs.NearConstant = r.Costs.Spread < leastSpread
	switch {
	case !r.Costs.NearConstant && outOfFold && !s.Uncalibrated:
		t := Temperature(d.posterior, d.y, d.k)
		if spread := r.Costs.Spread / t; spread < leastSpread {
			r.warn("posteriors say hardly anything of rows that the network was not trained on: at the temperature that suits these, log odds vary by %.2g from row to row; labels may belong to groups and not to what the features show. Posteriors are not calibrated", spread)
			break
		}
		r.Costs.Temperature = t
		temper(d.posterior, d.k, t)
	case r.Costs.NearConstant:
		s.Unmixed = true // the inverse prior is off by as much as the posteriors' offset
		text := fmt.Sprintf("posteriors are near constant: their log odds vary by %.2g from row to row, so the network has hardly learnt; train longer or at a higher rate", r.Costs.Spread)
		if outOfFold {
			text += "; costs were chosen on training posteriors instead of those out of fold"
			r.Costs.Posteriors = string(Training)
			var err error
			if d, err = own(); err != nil {
				return nil, err
			}
		}
		r.warn("%s", text)
	}
	costs, err := chooseCosts(ctx, d, s, &r.Costs)
	if err != nil {
		return nil, err
	}
	r.Posterior = d.posterior
	scored := newAssessor(costs, d.counts)
	for i, label := range d.y {
		scored.add(label, d.row(i))
	}
	r.Held = scored.scores()
	if r.Held.GMean == 0 {
		r.warn("no costs separate the classes on the posteriors they are chosen on: check features and labels")
	}
	return costs, nil
}

// innerFolds returns the folds whose held-out posteriors costs are chosen on:
// by group if every class lives in two groups or more, and by row otherwise.
func innerFolds(y []int, groups []string, s Settings, r *Report) (dealt, error) {
	rng := rand.New(rand.NewPCG(derive(s.Seed, splitSeed), 0))
	if groups != nil {
		class, group := loneClass(y, groups)
		if class < 0 {
			r.Costs.Posteriors = "out-of-fold by group"
			return dealByGroup(y, groups, s.Costs.Folds, rng), nil
		}
		r.warn("class %d occurs in group %q only: costs were chosen on folds by row, which flatter; label another group of that class", class, group)
	}
	r.Costs.Posteriors = "out-of-fold by row"
	class := 0
	for j, n := range r.ClassCounts {
		if n < r.ClassCounts[class] {
			class = j
		}
	}
	switch least := r.ClassCounts[class]; {
	case least < 2:
		return dealt{}, fmt.Errorf("class %d has a single row: %w: costs cannot be chosen on rows held out; add rows, or set posteriors to %q", class, ErrTooFew, Training)
	case least < s.Costs.Folds:
		r.warn("class %d has %d rows, fewer than the %d folds asked for: costs were chosen on %d folds", class, least, s.Costs.Folds, least)
		return dealRows(y, least, rng), nil
	}
	return dealRows(y, s.Costs.Folds, rng), nil
}

// loneClass returns the first class whose rows are all of one group, and that
// group, or -1.
func loneClass(y []int, groups []string) (class int, group string) {
	home := make(map[int]string)
	several := make(map[int]bool)
	for i, label := range y {
		if h, ok := home[label]; ok && h != groups[i] {
			several[label] = true
		} else {
			home[label] = groups[i]
		}
	}
	for label := range len(home) {
		if !several[label] {
			return label, home[label]
		}
	}
	return -1, ""
}

// train fits an encoder and a network to the rows of x, and to nothing else.
func train(ctx context.Context, x dbn.Rows, y []int, groups []string, k int, s Settings, seed uint64, progress func(string, int, int)) (*Encoder, *dbn.Network, *dbn.History, error) {
	some, err := typical(x)
	if err != nil {
		return nil, nil, nil, err
	}
	encoder, err := FitEncoder(some, s.Encoding, s.Bins)
	if err != nil {
		return nil, nil, nil, err
	}
	s.Network.Seed, s.Network.Progress = seed, progress
	if s.EarlyStop {
		if folds, ok := stopFolds(y, groups, seed); ok {
			some, test := folds.train(0), folds.test(0)
			if _, near := x.(dbn.Matrix); !near {
				test = test.thin(encoderRows)
			}
			held, err := inMemory(part(x, test))
			if err != nil {
				return nil, nil, nil, err
			}
			s.Network.FineTune.Labels = pick(y, test)
			x, y = part(x, some), pick(y, some)
			rows, err := typical(x)
			if err != nil {
				return nil, nil, nil, err
			}
			if encoder, err = FitEncoder(rows, s.Encoding, s.Bins); err != nil {
				return nil, nil, nil, err
			}
			v := encoder.encodeAll(held)
			s.Network.Pretrain.Validation, s.Network.FineTune.Validation = v, v
		}
	}
	if s.Balance > 0 {
		s.Network.ClassWeights = balance(y, k, s.Balance)
	}
	network, history, err := trainOrLoad(ctx, s.Keep, encoder.encode(x), y, k, s.Network)
	if err != nil {
		return nil, nil, nil, err
	}
	if s.Balance > 0 {
		network = network.Unweigh(s.Network.ClassWeights)
	}
	return encoder, network, history, nil
}

// balance returns the weight of a row of each of k classes that Settings.Balance
// asks for, where rows are of classes y.
func balance(y []int, k int, power float64) []float64 {
	weights := slices.Repeat([]float64{1}, k)
	for j, n := range countClasses(y) {
		if n > 0 {
			weights[j] = math.Pow(float64(len(y))/float64(n), power)
		}
	}
	return weights
}

// stopFolds returns folds of which the first holds out the rows that say when to
// stop: by group if every class lives in two groups or more, else by row. There
// are none if a class has a single row.
func stopFolds(y []int, groups []string, seed uint64) (dealt, bool) {
	const parts = 5
	rng := rand.New(rand.NewPCG(seed, splitSeed))
	if groups != nil {
		if class, _ := loneClass(y, groups); class < 0 {
			return dealByGroup(y, groups, parts, rng), true
		}
	}
	if slices.ContainsFunc(countClasses(y), func(n int) bool { return n == 1 }) || len(y) < parts {
		return dealt{}, false
	}
	return dealRows(y, parts, rng), true
}

func (r *Report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// describe notes what the encoder, that of any member, saw, and the inputs of the
// network.
func (r *Report) describe(e *Encoder, inputs int) {
	r.Inputs = inputs
	r.Constant, r.Empty = []int{}, []int{} // lists in JSON, never null
	for j, c := range e.columns {
		if c.constant() {
			r.Constant = append(r.Constant, j)
		}
		if c.empty {
			r.Empty = append(r.Empty, j)
		}
	}
	if len(r.Constant) == r.Columns {
		r.warn("every feature has one value in all rows: nothing tells them apart")
	}
}

// progress adds up how far several networks are, in thousandths of each.
type progress struct {
	mu     sync.Mutex
	report func(phase string, done, total int)
	phase  string
	done   []int
}

func newProgress(report func(string, int, int), phase string, networks int) *progress {
	return &progress{report: report, phase: phase, done: make([]int, networks)}
}

const (
	perNetwork  = 1000
	perPretrain = 300 // of them; what is left is for fine-tuning
)

// of returns the Progress of network i.
func (p *progress) of(i int) func(phase string, done, total int) {
	if p.report == nil {
		return nil
	}
	return func(phase string, done, total int) {
		part := perPretrain * done / total
		if phase == "finetune" {
			part = perPretrain + (perNetwork-perPretrain)*done/total
		}
		p.set(i, part)
	}
}

// whole returns the Progress of a fit that counts as network i.
func (p *progress) whole(i int) func(phase string, done, total int) {
	if p.report == nil {
		return nil
	}
	return func(_ string, done, total int) { p.set(i, perNetwork*done/total) }
}

func (p *progress) set(i, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i] = done
	sum := 0
	for _, d := range p.done {
		sum += d
	}
	p.report(p.phase, sum, perNetwork*len(p.done))
}
