package classify

import (
	"context"
	"fmt"

	"github.com/flank-tcm/flank/pkg/score"
)

// Validation says how classifiers decide rows that they were not fitted to.
// Slices by row have N entries.
type Validation struct {
	Classes   int
	Fold      []int         // by row: the fold that held it out, -1 if none did
	Decision  []int         // by row: the class decided, -1 if no fold held it out
	Posterior []float64     // N×K: the posterior; 0 if no fold held the row out
	Score     []float64     // by row: how much speaks against the first class, see CostVector.Score; 0 if no fold held it out
	Pooled    score.Summary // of all rows held out, each counted once
	Groups    []GroupScores
	Reports   []*Report // by fold: of the fit to its Train rows

	// Classifiers are what was fitted, by fold: of rows in the view that the fold's Report
	// names.
	Classifiers []*Classifier
}

// GroupScores are the scores of the rows of one group.
type GroupScores struct {
	Group string `json:"group"`
	score.Summary
}

// CrossValidateTable fits a classifier to the Train rows of every fold, see FitTable,
// and lets it decide the Test rows. Everything that is fitted, encoder, network and
// costs, sees Train rows only. Scores by group, in the order in which groups first
// appear, are there if groups are.
//
// Folds are of the rows with a class. Each row may be held out by one fold at most, and
// each Train part must have rows of every class; ErrSize and ErrTooFew report folds that
// do not. FitTable returns the other errors. Rows without a class are learnt from in
// every fold that holds out no row of their group, or in all with Settings.Transductive.
func CrossValidateTable(ctx context.Context, t *Table, s Settings, folds []Fold) (*Validation, error) {
	s, k, err := s.prepare(t)
	if err != nil {
		return nil, err
	}
	if err := checkFolds(folds, t.Y, k); err != nil {
		return nil, err
	}
	rows := len(t.Y)
	v := &Validation{
		Classes:   k,
		Fold:      make([]int, rows),
		Decision:  make([]int, rows),
		Posterior: make([]float64, rows*k),
		Score:     make([]float64, rows),
		Reports:   make([]*Report, len(folds)),

		Classifiers: make([]*Classifier, len(folds)),
	}
	for i := range v.Fold {
		v.Fold[i], v.Decision[i] = -1, -1
	}
	progress := newProgress(s.Progress, "train", len(folds))
	inner := s
	inner.Workers = max(1, s.Workers/len(folds))
	whole := t.whole()
	err = parallel(ctx, len(folds), s.Workers, func(ctx context.Context, f int) error {
		s := inner
		s.Seed = DeriveSeed(s.Seed, outerSeed+uint64(f))
		s.Progress = progress.whole(f)
		test := setOf(folds[f].Test)
		d := whole.learnFrom(setOf(folds[f].Train), test, s.Transductive)
		c, report, err := fit(ctx, d, k, s)
		if err != nil {
			return fmt.Errorf("classify: fold %d of %d: %w", f+1, len(folds), err)
		}
		v.Reports[f], v.Classifiers[f] = report, c
		x, _ := d.view(report.view)
		err = c.eachPosterior(part(x, test), func(i int, p []float64) {
			i = test.row(i)
			copy(v.Posterior[i*k:], p)
			v.Fold[i], v.Decision[i], v.Score[i] = f, c.Decide(p), c.Score(p)
		})
		if err != nil {
			return fmt.Errorf("classify: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.Assess(t.Y, t.Groups)
	return v, nil
}

// Replace replaces the posteriors of rows that were held out by others, on which
// decisions are made at equal costs. Scores are as they were until Assess.
func (v *Validation) Replace(rows []int, posterior func(i int) []float64) {
	costs := make(CostVector, v.Classes)
	for _, i := range rows {
		p := posterior(i)
		copy(v.Posterior[i*v.Classes:(i+1)*v.Classes], p)
		v.Decision[i], v.Score[i] = costs.Decide(p), costs.Score(p)
	}
}

// Assess fills in Pooled and Groups, of rows of classes y whose groups are groups or
// nil.
func (v *Validation) Assess(y []int, groups []string) {
	var all []int
	for i, f := range v.Fold {
		if f >= 0 {
			all = append(all, i)
		}
	}
	v.Pooled, v.Groups = v.scores(y, all), nil
	if groups == nil {
		return
	}
	number, names := NumberGroups(groups)
	byGroup := make([][]int, len(names))
	for _, i := range all {
		byGroup[number[i]] = append(byGroup[number[i]], i)
	}
	for g, name := range names {
		v.Groups = append(v.Groups, GroupScores{name, v.scores(y, byGroup[g])})
	}
}

// scores returns the scores of the given rows.
func (v *Validation) scores(y []int, rows []int) score.Summary {
	truth, decisions := make([]int, len(rows)), make([]int, len(rows))
	var posterior []float64
	for n, i := range rows {
		truth[n], decisions[n] = y[i], v.Decision[i]
		posterior = append(posterior, v.Posterior[i*v.Classes:(i+1)*v.Classes]...)
	}
	return score.Assess(truth, decisions, posterior, v.Classes)
}
