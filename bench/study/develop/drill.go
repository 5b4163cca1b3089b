package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/internal/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// drillCandidate is a way to fit the study's network to a simulated gun drill.
type drillCandidate struct {
	name     string
	change   func(*classify.Settings)
	resample imbalance.Resampler // nil: none, and costs on out-of-fold posteriors
}

// with changes how networks are trained, where an argument is not zero.
func with(decay float64, rate float64, hidden ...int) func(*classify.Settings) {
	return func(s *classify.Settings) {
		s.Network.FineTune.Decay, s.Network.FineTune.Rate = decay, rate
		if len(hidden) > 0 {
			s.Network.Hidden = hidden
		}
	}
}

// forEpochs fine-tunes for so many epochs, with a decay that is not zero.
func forEpochs(n int, decay float64) func(*classify.Settings) {
	return func(s *classify.Settings) { s.Network.FineTune.Epochs, s.Network.FineTune.Decay = n, decay }
}

// equalShares leaves the members of the committee alike, with a decay that is not zero.
func equalShares(decay float64) func(*classify.Settings) {
	return func(s *classify.Settings) { s.Costs.Uncalibrated, s.Network.FineTune.Decay = true, decay }
}

func balanced(b float64) func(*classify.Settings) {
	return func(s *classify.Settings) { s.Balance = b }
}

func inBatches(n int) func(*classify.Settings) {
	return func(s *classify.Settings) { s.Network.FineTune.Batch = n }
}

var drillCandidates = []drillCandidate{
	{"one hidden layer of 30", with(0, 0), nil},
	{"without balance", balanced(-1), nil},
	{"classes alike", balanced(1), nil},
	{"early stop", func(s *classify.Settings) { s.EarlyStop = true }, nil},
	{"equal shares", equalShares(0), nil},
	{"equal shares, decay 1e-4", equalShares(1e-4), nil},
	{"equal shares, decay 3e-5", equalShares(3e-5), nil},
	{"equal shares, decay 1e-3", equalShares(1e-3), nil},
	{"10 epochs", forEpochs(10, 0), nil},
	{"10 epochs, decay 5e-3", forEpochs(10, 5e-3), nil},
	{"30 epochs", forEpochs(30, 0), nil},
	{"120 epochs", forEpochs(120, 0), nil},
	{"300 epochs", forEpochs(300, 0), nil},
	{"batches of 16", inBatches(16), nil},
	{"batches of 256", inBatches(256), nil},
	{"rate 0.02", with(0, 0.02), nil},
	{"layer of 100", with(0, 0, 100), nil},
	{"layers of 60, 60", with(0, 0, 60, 60), nil},
	{"layers of 100, 100", with(0, 0, 100, 100), nil},
	{"decay 2e-2", with(2e-2, 0), nil},
	{"decay 5e-3", with(5e-3, 0), nil},
	{"decay 1e-3", with(1e-3, 0), nil},
	{"decay 1e-4, rate 0.01", with(1e-4, 0.01), nil},
	{"decay 1e-4", with(1e-4, 0), nil},
	{"decay 5e-5", with(5e-5, 0), nil},
	{"decay 3e-5", with(3e-5, 0), nil},
	{"decay 2.4e-5", with(2.4e-5, 0), nil},
	{"decay 2.4e-5, layer of 60", with(2.4e-5, 0, 60), nil},
	{"decay 2.4e-5, layers of 60, 30", with(2.4e-5, 0, 60, 30), nil},
	{"decay 2.4e-5, layers of 60, 30, rate 0.01", with(2.4e-5, 0.01, 60, 30), nil},
	{"decay 2.4e-5, layers of 100, 50, rate 0.01", with(2.4e-5, 0.01, 100, 50), nil},
	{"decay 1e-5, layer of 100", with(1e-5, 0, 100), nil},
	{"decay 1e-5, layers of 100, 50, rate 0.01", with(1e-5, 0.01, 100, 50), nil},
	{"SMOTE", with(0, 0), imbalance.SMOTE},
	{"SVM-SMOTE", with(0, 0), imbalance.SVMSMOTE},
	{"SMOTE, decay 2.4e-5", with(2.4e-5, 0), imbalance.SMOTE},
	{"SMOTE, decay 2.4e-5, layers of 60, 30, rate 0.01", with(2.4e-5, 0.01, 60, 30), imbalance.SMOTE},
	{"SMOTE, decay 2.4e-5, layers of 100, 50, rate 0.01", with(2.4e-5, 0.01, 100, 50), imbalance.SMOTE},
}

const drillFolds = 3 // on which costs are chosen

// simulated is what is simulated with each seed.
var simulated = imbalance.Drill{Rows: 200_000}

// drillSeeds are what sets to develop on are simulated with: not the study's.
var drillSeeds = map[string][]uint64{
	"drill-random":          {7, 8},
	"drill-tools":           {7, 8, 9},
	"drill-tools-reference": {7, 8, 9},
}

// runDrill prints, for each candidate named, or all, the mean over the folds of a
// set's seeds, each of which keeps so many of its rows.
func runDrill(ctx context.Context, set, rows string, names []string, out io.Writer) error {
	keep, err := strconv.Atoi(rows)
	if err != nil || keep < 1 {
		return fmt.Errorf("%q rows: give the number of rows to keep of those simulated, for example 30000", rows)
	}
	seeds := drillSeeds[set]
	if seeds == nil {
		return fmt.Errorf("%q is not a set of drills to develop on: there are drill-random, drill-tools and drill-tools-reference", set)
	}
	candidates, err := candidatesOf(names)
	if err != nil {
		return err
	}
	var sets []*imbalance.Set
	for _, seed := range seeds {
		d := simulated
		d.Seed = seed
		all, err := d.Sets(ctx)
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.Name == set {
				s.Every = 0 // all rows that are kept
				sets = append(sets, s.Thin(keep))
			}
		}
	}
	fmt.Fprintf(out, "| %s, %d rows, seeds %v | AUC |", set, keep, seeds)
	for _, w := range ways {
		fmt.Fprintf(out, " %s |", w.name)
	}
	fmt.Fprintf(out, " best cut | G-mean by fold |\n|---|---:|%s---:|---|\n", strings.Repeat("---:|", len(ways)))
	for _, c := range candidates {
		mean := outcome{gmean: make([]float64, len(ways)+1)}
		var each []string
		n := 0
		for _, s := range sets {
			n += len(s.Folds)
		}
		for _, s := range sets {
			for f := range s.Folds {
				o, err := c.judge(ctx, s, f)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				mean.auc += o.auc / float64(n)
				for w, g := range o.gmean {
					mean.gmean[w] += g / float64(n)
				}
				each = append(each, fmt.Sprintf("%.3f", o.gmean[1]))
			}
		}
		fmt.Fprintf(out, "| %s | %.4f |", c.name, mean.auc)
		for _, g := range mean.gmean {
			fmt.Fprintf(out, " %.4f |", g)
		}
		fmt.Fprintf(out, " %s |\n", strings.Join(each, " "))
	}
	return nil
}

// candidatesOf returns the candidates of the given names, all if there are none.
func candidatesOf(names []string) ([]drillCandidate, error) {
	if len(names) == 0 {
		return drillCandidates, nil
	}
	var out []drillCandidate
	for _, name := range names {
		i := slices.IndexFunc(drillCandidates, func(c drillCandidate) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is not a candidate for drills: drillCandidates has them", name)
		}
		out = append(out, drillCandidates[i])
	}
	return out, nil
}

// judge fits the candidate to a fold of a set, with the epochs and batches that the
// study has for many rows, and scores the rows held out. Where rows were resampled,
// all ways cut at equal posteriors.
func (c drillCandidate) judge(ctx context.Context, set *imbalance.Set, f int) (outcome, error) {
	t := set.TaskOf(1, f)
	s := study.DefaultFor(100_000, true)
	s.Seed, s.Workers, s.Costs.Folds = t.Seed, 1, drillFolds
	c.change(&s)
	if c.resample != nil {
		t, s = t.Resampled(c.resample), imbalance.Unbalanced(s)
	}
	fitted, report, err := classify.Fit(ctx, t.X, t.Y, t.Groups, s)
	if err != nil {
		return outcome{}, err
	}
	labels := make([]int, t.Test.Rows)
	for k, i := range set.Folds[f].Test {
		labels[k] = set.Y[i]
	}
	return assess(fitted, report, t.Test, labels, c.resample != nil)
}

// assess returns the AUC of the rows, and their G-mean by way and, last, at the cut
// that suits them best.
func assess(c *classify.Classifier, report *classify.Report, x dbn.Matrix, y []int, resampled bool) (outcome, error) {
	if !slices.Contains(y, 0) || !slices.Contains(y, 1) {
		return outcome{}, errors.New("rows held out are all of one class")
	}
	prior := cutOf(classify.InversePrior(report.ClassCounts))
	optimum := prior
	for _, choice := range report.Costs.Choices {
		if choice.Name == "smoothed" {
			optimum = cutOf(choice.Costs)
		}
	}
	if resampled {
		prior, optimum = 0, 0
	}
	var odds [2][]float64 // by class
	scores, rare := make([]float64, x.Rows), make([]bool, x.Rows)
	scorer := c.NewScorer()
	for i, label := range y {
		p := scorer.Posterior(x.Row(i))
		scores[i], rare[i] = math.Log(max(p[1], 1e-30)/max(p[0], 1e-30)), label == 1
		odds[label] = append(odds[label], scores[i])
	}
	gmean := func(cut float64) float64 { return math.Sqrt((1 - above(odds[0], cut)) * above(odds[1], cut)) }
	o := outcome{auc: score.AUC(scores, rare)}
	for _, w := range ways {
		share := w.share(float64(slices.Min(report.ClassCounts)))
		o.gmean = append(o.gmean, gmean((1-share)*prior+share*optimum))
	}
	slices.Sort(scores)
	const cuts = 200
	best := 0.0
	for q := range cuts {
		best = max(best, gmean(scores[q*len(scores)/cuts]))
	}
	o.gmean = append(o.gmean, best)
	return o, nil
}
