package classify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// Report says what a fit saw and did, and what it warns of.
type Report struct {
	Rows        int            `json:"rows"`
	Columns     int            `json:"columns"`
	Inputs      int            `json:"inputs"` // of the network, after encoding
	ClassCounts []int          `json:"class_counts"`
	Groups      int            `json:"groups"`            // 0 if rows have none
	Constant    []int          `json:"constant_columns"`  // with one value or none: they say nothing and are encoded as 0
	Empty       []int          `json:"empty_columns"`     // constant ones without any value
	Imputed     int            `json:"imputed_cells"`     // missing values, encoded as their column's mean
	Members     []memberReport `json:"members,omitempty"` // of a Committee
	Costs       CostReport     `json:"costs"`
	Weights     *Weights       `json:"weights,omitempty"`    // of columns, in the first member; nil if the rows have no groups
	Unlabelled  *Bare          `json:"unlabelled,omitempty"` // rows without a class; nil if there are none
	Guard       *vote.Report   `json:"guard,omitempty"`      // nil if none was asked for
	Between     int            `json:"between,omitempty"`    // rows put where wear jumps over the limit, for fine-tuning

	// Of the Views of a table, if it has any: the one that was kept, and what each
	// gave on rows held out.
	View  string      `json:"view,omitempty"`
	Views []ViewScore `json:"views,omitempty"`
	view  int
	// Posterior, N×K row-major, holds the posteriors that the costs were chosen
	// on.
	Posterior []float64 `json:"-"`
	HeldOut   *HeldOut  `json:"-"` // of FitTable: to choose costs again; nil if they were not chosen on rows held out
	// Held are the scores of the costs kept on the posteriors they were chosen
	// on. They are better than on rows never seen, for which there is
	// CrossValidateTable.
	Held     score.Summary `json:"held"`
	Training score.Summary `json:"training"` // of the classifier on the rows it was fitted to
	History  *dbn.History  `json:"-"`        // of the network, of a Committee's first
	Warnings []string      `json:"warnings"` // in words; empty if all is well
}

// Bare says where rows without a class took part.
type Bare struct {
	Rows    int `json:"rows"`    // the encoder, the weights and pre-training saw them
	Groups  int `json:"groups"`  // that they are of
	Healthy int `json:"healthy"` // of them: first rows of groups without any class, that count as healthy in fine-tuning
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
//     network, see [dbn.Join]; members without a share are left out;
//   - posteriors are first brought to the temperature at which the held-out ones
//     have the least cross-entropy. So are the classifier's posteriors, unless
//     they say hardly anything then, of which the Report warns;
//   - for two classes at the greatest smoothed G-mean, found by a sweep;
//     the Report shows the exact optimum of the plain one and JADE's too;
//   - for more, by JADE on the G-mean with a soft tie-break;
//   - then half-way, in log weight, to the inverse prior, or as far as PriorRows
//     says; of three classes or more only if that is at least as good as JADE's own on
//     rows held out from the choice, see CostReport.Held.
//
// If posteriors are near constant, networks differ from each other more than
// classes do; the costs are then the optimum on the network's own posteriors,
// and the Report warns.
//
// Rows that are not a dbn.Matrix stay where they are, and are read several times:
// see dbn.Train. Encoders are then fitted to encoderRows from all over.
//
// Errors wrap ErrSize, ErrNotFinite, errClasses, ErrTooFew or ErrSettings, an
// error of dbn.Train, of reading x, or the cause of ctx.
func Fit(ctx context.Context, x dbn.Rows, y []int, groups []string, s Settings) (*Classifier, *Report, error) {
	return FitTable(ctx, &Table{X: x, Y: y, Groups: groups}, s)
}

// FitTable is Fit on rows of which more is known. It keeps none of t.
//
// Columns count by how steadily they follow the lives of the tools, see
// [Settings].Stability: each input of a network is multiplied by the weight of its
// column while it is trained, and the weights of the lowest layer by it afterwards,
// so that the classifier takes rows as they are.
//
// Rows without a class fit the encoder and the weights of columns, and networks are
// pre-trained on them too. The first rows of a group without any class, see mostEarly,
// count as healthy in fine-tuning.
//
// Of several Views of the rows, all are tried and one is kept, if LeastViewGroups
// have rows of each class but the first; otherwise the first: see ViewScore. The
// classifier takes rows as Report.View prepares them.
//
// If as few groups have rows of some class but the first as the table few has, posteriors held out
// say too little of groups never seen to calibrate on them, weights decay faster, and
// rows worn beyond mostTunedWear are not fine-tuned on: a single tool that was worn to twice
// the limit would put the boundary between its last healthy and its mean faulty window.
// Report.Costs.Rule says so.
//
// If mostCrossing groups or fewer have rows of the second class, and the Wear of one jumps over the
// limit from one row to the next, networks are fine-tuned on rows between the two as well: see Report.Between.
func FitTable(ctx context.Context, t *Table, s Settings) (*Classifier, *Report, error) {
	s, k, err := s.prepare(t)
	if err != nil {
		return nil, nil, err
	}
	s.keepsHeldOut = true
	c, r, err := fit(ctx, t.whole(), k, s)
	if err != nil {
		return nil, nil, fmt.Errorf("classify: %w", err)
	}
	return c, r, nil
}

// prepare returns s with its defaults and the number K of t's classes.
func (s Settings) prepare(t *Table) (Settings, int, error) {
	s = s.withDefaults()
	s.root = s.Seed
	s.Shared = cmp.Or(s.Shared, NewShared())
	if err := s.check(); err != nil {
		return s, 0, err
	}
	k, err := t.check()
	if err != nil {
		return s, 0, err
	}
	_, cols := t.X.Shape()
	for _, j := range s.Exclude {
		if j < 0 || j >= cols {
			return s, 0, wrong("exclude", "column %d of %d: columns go from 0 to %d", j, cols, cols-1)
		}
	}
	return s, k, s.checkFor(k)
}

// Streams of seeds that follow from Settings.Seed.
const (
	networkSeed = iota
	searchSeed
	splitSeed
	foldSeeds = 1 << 16 // and upwards, one for each inner fold
	outerSeed = 1 << 32 // and upwards, one for each fold of CrossValidateTable
)

// fit is FitTable of K classes to a part of a table, with checked rows and settings.
// Its errors lack the name of the package.
func fit(ctx context.Context, d subset, k int, s Settings) (*Classifier, *Report, error) {
	_, cols := d.of.X.Shape()
	y, groups := d.y(), d.groups()
	r := &Report{Rows: d.rows.rows, Columns: cols, ClassCounts: countClasses(y), Warnings: []string{}}
	if groups != nil {
		_, names := NumberGroups(groups)
		r.Groups = len(names)
	}
	var folds dealt
	r.Costs.Posteriors = string(Training)
	if s.Costs.Posteriors == OutOfFold {
		var err error
		if folds, err = innerFolds(y, d.apart(), s, r); err != nil {
			return nil, nil, err
		}
		r.Costs.Folds = folds.folds
	}
	s = s.settle(y, d.apart(), k, r)

	attempts, err := d.trainAll(ctx, d.views(y, groups, k), folds, k, s)
	if err != nil {
		return nil, nil, err
	}
	kept := d.choose(attempts, y, groups, k, r)
	r.History, r.Weights = kept.trained[0].history, kept.trained[0].weights
	if groups == nil {
		r.Weights = nil
	}
	r.countBare(d)
	if s.crossing {
		r.Between = len(d.crossings())
	}
	c, joint := join(kept.trained, kept.held, y, k, s.Costs.Uncalibrated, r)
	r.describe(kept.trained[0].encoder, c.encoder.inputs)
	all, more := d.view(r.view)
	l := d.lesson(all, more)
	if r.Imputed, err = missing(l.x); err != nil {
		return nil, nil, err
	}

	own := func() (judged, error) {
		p := make([]float64, len(y)*k)
		err := eachPosterior(l.x, c.encoder, c.network, func(i int, row []float64) { copy(p[i*k:], row) })
		return newJudged(k, p, y), err
	}
	s.Costs.JADE.Seed = DeriveSeed(s.Seed, searchSeed)
	toFloat32(joint)
	if s.keepsHeldOut && folds.folds > 0 {
		r.keepHeldOut(joint, folds, d.early())
	}
	if c.costs, err = keepCosts(ctx, own, newJudged(k, joint, y), folds, s.Costs, r); err != nil {
		return nil, nil, err
	}
	if r.Costs.Posteriors == string(Training) {
		r.HeldOut = nil
	}
	if r.Costs.Temperature != 1 {
		c.network = c.network.Temper(r.Costs.Temperature)
	}
	if err := l.guard(ctx, c, kept.trained[0].columns, d.log(r.view), s, r); err != nil {
		return nil, nil, err
	}
	if r.HeldOut != nil {
		r.HeldOut.Temperature = r.Costs.Temperature
	}
	if r.Training, err = c.summary(l.x, y, r.ClassCounts); err != nil {
		return nil, nil, err
	}
	return c, r, nil
}

// summary scores c on rows of classes y, of which counts has the sizes.
func (c *Classifier) summary(x dbn.Rows, y, counts []int) (score.Summary, error) {
	a := score.NewAssessor(counts)
	err := c.eachPosterior(x, func(i int, p []float64) { a.Add(y[i], c.Decide(p), p) })
	return a.Summary(), err
}

// attempt is what was trained on one view of the rows.
type attempt struct {
	trained []member    // on all rows, one for each member of a committee
	held    [][]float64 // N×K, of each member: posteriors of rows held out; nil without folds
}

// trainAll trains the networks to keep and the networks of the folds, for the first so
// many views, the slowest first.
func (d subset) trainAll(ctx context.Context, views int, folds dealt, k int, s Settings) ([]attempt, error) {
	all := s.members()
	attempts := make([]attempt, views)
	for v := range attempts {
		attempts[v] = attempt{make([]member, len(all)), make([][]float64, len(all))}
		for m := range all {
			if folds.folds > 0 {
				attempts[v].held[m] = make([]float64, d.rows.rows*k)
			}
		}
	}
	networks := views * len(all) * (1 + folds.folds)
	progress := newProgress(s.Progress, "train", networks)
	// Workers that are to spare share the batches of a network.
	spare := max(1, s.Workers/networks)
	return attempts, parallel(ctx, networks, s.Workers, func(ctx context.Context, i int) error {
		m, v, fold := i%len(all), i/len(all)%views, i/len(all)/views
		set := all[m]
		set.Network.Workers = spare
		if fold == 0 {
			var err error
			x, more := d.view(v)
			attempts[v].trained[m], err = train(ctx, d.lesson(x, more), true, k, set, d.seed(s, networkSeed), progress.of(i))
			return err
		}
		some := d.without(folds, fold-1, s.Transductive)
		x, more := some.view(v)
		t, err := train(ctx, some.lesson(x, more), false, k, set, some.seed(s, foldSeeds+uint64(fold-1)), progress.of(i))
		if err != nil {
			return fmt.Errorf("fold %d of %d, to choose costs: %w", fold, folds.folds, err)
		}
		test := folds.test(fold - 1)
		held := attempts[v].held[m]
		return eachPosterior(part(x, d.compose(test)), t.encoder, t.network, func(n int, p []float64) { copy(held[test.row(n)*k:], p) })
	})
}

// choose returns the attempt on the best view, and notes in r which it is.
func (d subset) choose(attempts []attempt, y []int, groups []string, k int, r *Report) attempt {
	if len(d.of.Views) == 0 {
		return attempts[0]
	}
	names := make([]string, len(d.of.Views))
	for v := range names {
		names[v] = d.of.Views[v].Name
	}
	r.view = chooseView(attempts, names, y, groups, k, r)
	r.View = names[r.view]
	return attempts[r.view]
}

// countBare notes where rows without a class took part.
func (r *Report) countBare(d subset) {
	if d.more.rows == 0 {
		return
	}
	of := make(map[string]bool)
	d.more.each(func(i int) { of[d.of.Unlabelled.Groups[i]] = true })
	r.Unlabelled = &Bare{Rows: d.more.rows, Groups: len(of), Healthy: d.early().rows}
}

// keepCosts chooses costs on the held-out posteriors d, or on the network's own
// without folds, or where the held-out ones are near constant.
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
		r.Costs.Rule = ""
		s.Unmixed = true // the inverse prior is off by as much as the posteriors' offset
		text := fmt.Sprintf("posteriors are near constant: their log odds vary by %.2g from row to row, so the network has hardly learnt; train longer or at a higher rate", r.Costs.Spread)
		if outOfFold {
			text += "; costs were chosen on training posteriors instead of those out of fold"
			r.Costs.Posteriors = string(Training)
			folds = dealt{}
			var err error
			if d, err = own(); err != nil {
				return nil, err
			}
		}
		r.warn("%s", text)
	}
	costs, err := chooseCosts(ctx, d, folds, s, &r.Costs)
	if err != nil {
		return nil, err
	}
	r.Posterior = d.posterior
	r.Held = scoresOf(costs, d.posterior, d.y)
	if r.Held.GMean == 0 {
		r.warn("no costs separate the classes on the posteriors they are chosen on: check features and labels")
	}
	return costs, nil
}

// scoresOf scores what costs decide on posteriors of rows of classes y.
func scoresOf(costs CostVector, posterior []float64, y []int) score.Summary {
	scored, k := score.NewAssessor(countClasses(y)), len(costs)
	for i, label := range y {
		p := posterior[i*k : (i+1)*k]
		scored.Add(label, costs.Decide(p), p)
	}
	return scored.Summary()
}

// Where posteriors that costs are chosen on come from, as CostReport says it.
const (
	byGroup = "out-of-fold by group"
	byRow   = "out-of-fold by row"
)

// innerFolds returns the folds whose held-out posteriors costs are chosen on:
// by group if every class lives in two groups or more, and by row otherwise.
func innerFolds(y []int, groups []string, s Settings, r *Report) (dealt, error) {
	rng := rand.New(rand.NewPCG(DeriveSeed(s.Seed, splitSeed), 0))
	if groups != nil {
		class, group := loneClass(y, groups)
		if class < 0 {
			r.Costs.Posteriors = byGroup
			return dealByGroup(y, groups, s.Costs.Folds, rng), nil
		}
		r.warn("class %d occurs in group %q only: costs were chosen on folds by row, which flatter; label another group of that class", class, group)
	}
	r.Costs.Posteriors = byRow
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
	groupOf := make(map[int]string)
	several := make(map[int]bool)
	for i, label := range y {
		if g, ok := groupOf[label]; ok && g != groups[i] {
			several[label] = true
		} else {
			groupOf[label] = groups[i]
		}
	}
	for label := range len(groupOf) {
		if !several[label] {
			return label, groupOf[label]
		}
	}
	return -1, ""
}

// train fits an encoder and a network to what l has, and to nothing else. Unless whole, columns of weight 0 are not looked at:
// of a network that only judges what was held out, no one asks which columns are constant.
func train(ctx context.Context, l lesson, whole bool, k int, s Settings, seed uint64, progress func(string, int, int)) (member, error) {
	s.Network.Seed, s.Network.Progress = seed, progress
	var held dbn.Matrix // that say when to stop
	var err error
	if s.EarlyStop {
		if l, held, s.Network.FineTune.Labels, err = l.holdBack(seed, s.Transductive); err != nil {
			return member{}, err
		}
	}
	labelled, err := typical(l.x)
	if err != nil {
		return member{}, err
	}
	unlabelled, err := typical(l.more)
	if err != nil {
		return member{}, err
	}
	seen := labelled.x
	if l.more != nil {
		seen = stack(labelled.x, unlabelled.x).(dbn.Matrix)
	}
	t := member{}
	var weights, count []float64
	weights, t.weights, t.columns = l.weigh(s, labelled, unlabelled)
	if !whole {
		count = weights
	}
	if t.encoder, err = s.Shared.encoder(seen, s.Encoding, s.Bins, count); err != nil {
		return member{}, err
	}
	in := t.encoder.liveInputs(weights)
	if held.Rows > 0 {
		v := in.of(held).(dbn.Matrix)
		s.Network.Pretrain.Validation, s.Network.FineTune.Validation = v, v
	}
	x, y, err := l.tuned(s, k)
	if err != nil {
		return member{}, err
	}
	if l.more != nil || !slices.Equal(y, l.y) {
		s.Network.Pretrain.Rows = in.of(stack(l.x, l.more))
	}
	if s.Balance > 0 {
		s.Network.ClassWeights = balance(y, k, s.Balance)
	}
	t.network, t.history, err = s.Shared.train(ctx, s.Keep, in.of(x), y, k, s.Network)
	if err != nil {
		return member{}, err
	}
	if s.Balance > 0 {
		t.network = t.network.Unweigh(s.Network.ClassWeights)
	}
	t.network = in.whole(unweighAdded(t.network, l.y, y, k))
	return t, nil
}

// unweighAdded returns n, trained on rows of classes learnt, with posteriors as if it had
// been trained on rows of classes y: rows that were added or left out say what classes are
// like and not how common they are.
func unweighAdded(n *dbn.Network, y, learnt []int, k int) *dbn.Network {
	counts, learntCounts := countClasses(y), countClasses(learnt)
	if slices.Equal(counts, learntCounts) {
		return n
	}
	share := slices.Repeat([]float64{1}, k)
	for j, rows := range counts {
		if rows > 0 {
			share[j] = float64(learntCounts[j]) / float64(rows)
		}
	}
	return n.Unweigh(share)
}

// holdBack returns l less the rows that say when to stop, and these with their classes.
// Where none can be spared, it returns l and no rows.
func (l lesson) holdBack(seed uint64, transductive bool) (rest lesson, held dbn.Matrix, classes []int, err error) {
	folds, ok := stopFolds(l.y, l.apart(), seed)
	if !ok {
		return l, held, nil, nil
	}
	some, test := folds.train(0), folds.test(0)
	rest = lesson{subset: l.learnFrom(l.compose(some), l.compose(test), transductive), x: part(l.x, some), y: pick(l.y, some)}
	if rest.subset.more.rows > 0 {
		rest.more = part(l.more, l.subset.more.placesOf(rest.subset.more))
	}
	if _, inMemory := l.x.(dbn.Matrix); !inMemory {
		test = test.thin(encoderRows)
	}
	held, err = dbn.InMemory(part(l.x, test))
	return rest, held, pick(l.y, test), err
}

// tuned returns the rows of l that fine-tuning learns from, with their classes: those
// with a class, with s.boundWear but for the most worn ones, with s.crossing rows between the
// rows where wear jumps over the limit, and the early ones of groups without any class as healthy.
func (l lesson) tuned(s Settings, k int) (x dbn.Rows, y []int, err error) {
	x, y = l.x, l.y
	if s.boundWear {
		bounded := l.boundedWear(k)
		x, y = part(x, bounded), pick(y, bounded)
	}
	if s.crossing {
		crossed, classes, err := l.crossed()
		if err != nil {
			return nil, nil, err
		}
		if len(classes) > 0 {
			x, y = stack(x, crossed), slices.Concat(y, classes)
		}
	}
	early := l.early()
	if early.rows == 0 {
		return x, y, nil
	}
	first, err := dbn.InMemory(part(l.more, l.subset.more.placesOf(early)))
	if err != nil {
		return nil, nil, err
	}
	return stack(x, first), slices.Concat(y, make([]int, early.rows)), nil
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
	rng := rand.New(rand.NewPCG(seed, splitSeed))
	if groups != nil {
		if class, _ := loneClass(y, groups); class < 0 {
			return dealByGroup(y, groups, stopParts, rng), true
		}
	}
	if slices.ContainsFunc(countClasses(y), func(n int) bool { return n == 1 }) || len(y) < stopParts {
		return dealt{}, false
	}
	return dealRows(y, stopParts, rng), true
}

func (r *Report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// describe notes what the encoder saw, which may be any member's, and the inputs of the
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
