package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/flank-tcm/flank/bench/study/stat"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// arm is one setting that is tried.
type arm struct {
	name      string
	reference reference
	change    func(*classify.Settings) // of the defaults; may be nil
	random    bool                     // split at random instead of by tool
	seeds     int                      // at most; 0: so many as asked for
	candidate bool                     // for the choice by nested validation
}

var arms = []arm{
	{name: "**recommended: all defaults but the weights**", reference: medianRatio, candidate: true},
	{name: "no pre-training", reference: medianRatio, change: func(s *classify.Settings) { s.Network.Pretrain.Epochs = -1 }},
	{name: "reference: " + meanRatio.name, reference: meanRatio, candidate: true},
	{name: "reference: " + medianDifference.name, reference: medianDifference, candidate: true},
	{name: "reference: " + noReference.name, reference: noReference, candidate: true},
	{name: "costs from training posteriors, as the paper", reference: medianRatio, change: func(s *classify.Settings) { s.Costs.Posteriors = classify.Training }},
	{name: "costs from 5 folds instead of one for each tool", reference: medianRatio, change: func(s *classify.Settings) { s.Costs.Folds = 5 }},
	{name: "encoding: min-max", reference: medianRatio, change: func(s *classify.Settings) { s.Encoding = classify.MinMax }, candidate: true},
	{name: "encoding: normal scores", reference: medianRatio, change: func(s *classify.Settings) { s.Encoding = classify.NormalScore }, candidate: true},
	{name: "encoding: 8 bins", reference: medianRatio, change: func(s *classify.Settings) { s.Encoding = classify.Bins }, seeds: 1},
	{name: "encoding: committee", reference: medianRatio, change: func(s *classify.Settings) { s.Encoding = classify.Committee }, seeds: 1},
	{name: "balance ½: rare classes count for more in training", reference: medianRatio, change: func(s *classify.Settings) { s.Balance = 0.5 }},
	{name: "one hidden layer of 30", reference: medianRatio, change: func(s *classify.Settings) { s.Network.Hidden = []int{30} }, candidate: true},
	{name: "one hidden layer of 100", reference: medianRatio, change: func(s *classify.Settings) { s.Network.Hidden = []int{100} }, candidate: true},
	{name: "two hidden layers of 100", reference: medianRatio, change: func(s *classify.Settings) { s.Network.Hidden = []int{100, 100} }, candidate: true},
	{name: "random 5-fold split: the leak", reference: medianRatio, random: true},
}

// outcome is what an arm gave with one seed.
type outcome struct {
	scores      score.Summary
	validation  *classify.Validation
	folds       []classify.Fold
	temperature float64 // median over folds
}

type result struct {
	rows     *rows
	arms     [][]outcome // by arm and seed
	seeds    int
	raw      []score.Summary // recommended, with costs chosen without calibration, by seed
	peers    peerFile
	keel     []keelScore
	keelPeer map[string]map[string]float64 // G-mean by set and method
}

func measure(ctx context.Context, rec *recording, keel, peers string, seeds int, log io.Writer) (*result, error) {
	r := &result{rows: rec.relative(medianRatio), seeds: seeds}
	for i, a := range arms {
		n := seeds
		if i > 0 { // what is recommended is measured best
			n = (seeds + 1) / 2
		}
		if a.seeds > 0 {
			n = min(n, a.seeds)
		}
		var all []outcome
		for seed := range n {
			o, err := a.run(ctx, rec.relative(a.reference), uint64(seed+1))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			all = append(all, o)
			fmt.Fprintf(log, "%s, seed %d: G-mean %.4f\n", a.name, seed+1, float64(o.scores.GMean))
		}
		r.arms = append(r.arms, all)
	}
	for _, o := range r.arms[0] {
		s, err := o.uncalibrated(ctx, r.rows.y)
		if err != nil {
			return nil, err
		}
		r.raw = append(r.raw, s)
	}
	if peers != "" {
		text, err := os.ReadFile(peers)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &r.peers); err != nil {
			return nil, fmt.Errorf("%s: %w", peers, err)
		}
	}
	if keel != "" {
		var err error
		if r.keel, r.keelPeer, err = measureKEEL(ctx, keel, log); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (a arm) run(ctx context.Context, t *rows, seed uint64) (outcome, error) {
	s := classify.Settings{Seed: seed}
	if a.change != nil {
		a.change(&s)
	}
	folds, groups := classify.LeaveOneGroupOut(t.groups), t.groups
	if a.random {
		folds, groups = classify.StratifiedKFold(t.y, 5, rand.New(rand.NewPCG(seed, 0))), nil
	}
	v, err := classify.CrossValidateTable(ctx, &classify.Table{X: t.x, Y: t.y, Groups: groups}, s, folds)
	if err != nil {
		return outcome{}, err
	}
	var temperatures []float64
	for _, r := range v.Reports {
		temperatures = append(temperatures, r.Costs.Temperature)
	}
	return outcome{v.Pooled, v, folds, stat.Median(temperatures)}, nil
}

// by returns the scores if every fold had kept the costs of the named choice.
func (o outcome) by(choice string, y []int) score.Summary {
	m := score.NewConfusion(2)
	for f, fold := range o.folds {
		for _, c := range o.validation.Reports[f].Costs.Choices {
			if c.Name != choice {
				continue
			}
			for _, i := range fold.Test {
				m.Add(y[i], c.Costs.Decide(o.validation.Posterior[2*i:2*i+2]))
			}
		}
	}
	return m.Summary()
}

// uncalibrated returns the scores if costs had been chosen on posteriors as the
// networks gave them.
func (o outcome) uncalibrated(ctx context.Context, y []int) (score.Summary, error) {
	m := score.NewConfusion(2)
	for f, fold := range o.folds {
		report := o.validation.Reports[f]
		raw := func(p []float64) []float64 {
			a, b := math.Pow(p[0], report.Costs.Temperature), math.Pow(p[1], report.Costs.Temperature)
			return []float64{a / (a + b), b / (a + b)}
		}
		var posterior []float64
		var labels []int
		for n, i := range fold.Train {
			posterior, labels = append(posterior, raw(report.Posterior[2*n:2*n+2])...), append(labels, y[i])
		}
		costs, _, err := classify.ChooseCosts(ctx, posterior, labels, 2, classify.CostSettings{})
		if err != nil {
			return score.Summary{}, err
		}
		for _, i := range fold.Test {
			m.Add(y[i], costs.Decide(raw(o.validation.Posterior[2*i:2*i+2])))
		}
	}
	return m.Summary(), nil
}

// nestedSeeds returns for how many seeds all candidates were tried.
func (r *result) nestedSeeds() int {
	n := r.seeds
	for a := range arms {
		if arms[a].candidate {
			n = min(n, len(r.arms[a]))
		}
	}
	return n
}

// nested returns the scores if for every tool held out the candidate was taken
// that has the best G-mean out of fold on the other tools, and how often each
// was.
func (r *result) nested(seed int) (score.Summary, map[string]int) {
	m, taken := score.NewConfusion(2), make(map[string]int)
	for f, fold := range r.arms[0][seed].folds {
		best, most := -1, -1.0
		for a := range arms {
			if !arms[a].candidate {
				continue
			}
			if g := float64(r.arms[a][seed].validation.Reports[f].Held.GMean); g > most {
				best, most = a, g
			}
		}
		taken[arms[best].name]++
		for _, i := range fold.Test {
			m.Add(r.rows.y[i], r.arms[best][seed].validation.Decision[i])
		}
	}
	return m.Summary(), taken
}

// majority returns the scores of the majority of each window and the eight
// before it of its tool.
func (o outcome) majority(t *rows) score.Summary {
	const of = 9
	m := score.NewConfusion(2)
	var last []int
	for i, d := range o.validation.Decision {
		if i > 0 && t.groups[i] != t.groups[i-1] {
			last = last[:0]
		}
		if last = append(last, d); len(last) > of {
			last = last[1:]
		}
		faulty := 0
		for _, v := range last {
			faulty += v
		}
		decision := 0
		if 2*faulty > len(last) {
			decision = 1
		}
		m.Add(t.y[i], decision)
	}
	return m.Summary()
}
