package classify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/score"
)

// judgedTools draws rows of k classes, of tools whose posteriors are off by an offset of
// their own, and deals them to folds by tool.
func judgedTools(seed uint64, k int) (judged, dealt) {
	rng := rand.New(rand.NewPCG(seed, 3))
	var p []float64
	var y []int
	var groups []string
	for tool := range 3 + rng.IntN(4) {
		offset := make([]float64, k)
		for j := range offset {
			offset[j] = rng.NormFloat64()
		}
		for range 10 + rng.IntN(60) {
			label := min(int(float64(k)*rng.Float64()*rng.Float64()*1.3), k-1)
			logs := make([]float64, k)
			for j := range logs {
				logs[j] = offset[j] + rng.NormFloat64()
			}
			logs[label] += 1.5
			norm := logSum(logs)
			for _, v := range logs {
				p = append(p, math.Exp(v-norm))
			}
			y, groups = append(y, label), append(groups, string(rune('A'+tool)))
		}
	}
	return newJudged(k, p, y), dealByGroup(y, groups, 10, rng)
}

// The costs that are kept of three classes and more decide tools that they were not chosen on
// no worse than JADE's own do.
func TestKeptCostsAreNoWorseThanTheSearchsOwn(t *testing.T) {
	s := CostSettings{JADE: jade.Settings{Generations: 30}}
	kept := make(map[string]int)
	for seed := range uint64(24) {
		k := 3 + int(seed%2)
		d, folds := judgedTools(seed, k)
		s.JADE.Seed, s.Metric = seed, score.Metrics[0]
		if seed%3 == 0 {
			s.Metric = score.BalancedAccuracy
		}
		if slices.Contains(d.counts, 0) {
			t.Fatalf("problem %d lacks a class: %v", seed, d.counts)
		}
		var r CostReport
		costs, err := chooseCosts(t.Context(), d, folds, s, &r)
		if err != nil {
			t.Fatal(err)
		}
		choice := make(map[string]Choice)
		for _, c := range r.Choices {
			choice[c.Name] = c
		}
		which := halfWayChoice
		if slices.Equal(costs, choice[jadeChoice].Costs) {
			which = jadeChoice
		} else if want := between(choice[inversePriorChoice].Costs, choice[jadeChoice].Costs, 0.5); !slices.Equal(costs, want) {
			t.Fatalf("problem %d keeps %v, which is neither JADE's own nor %v", seed, costs, want)
		}
		kept[which]++

		// By hand: each tool decided by costs that ChooseCosts makes of the others.
		byHand := map[string]score.Confusion{jadeChoice: score.NewConfusion(k), halfWayChoice: score.NewConfusion(k)}
		for _, f := range folds.lists() {
			var p []float64
			for _, i := range f.Train {
				p = append(p, d.row(i)...)
			}
			half, others, err := ChooseCosts(t.Context(), p, at(d.y, f.Train), k, s)
			if err != nil {
				t.Fatal(err)
			}
			own := others.Choices[slices.IndexFunc(others.Choices, func(c Choice) bool { return c.Name == jadeChoice })].Costs
			for _, i := range f.Test {
				byHand[jadeChoice].Add(d.y[i], own.Decide(d.row(i)))
				byHand[halfWayChoice].Add(d.y[i], half.Decide(d.row(i)))
			}
		}
		if got, own := s.Metric.Of(byHand[which]), s.Metric.Of(byHand[jadeChoice]); got < own {
			t.Errorf("problem %d, %s: %s is kept, with %v on tools held out where JADE's own have %v", seed, s.Metric, which, got, own)
		}
		for _, h := range r.Held {
			if want := s.Metric.Of(byHand[h.Name]); h.Fitness != want {
				t.Errorf("problem %d: the report says %v of %s, by hand %v", seed, h.Fitness, h.Name, want)
			}
		}
	}
	if kept[jadeChoice] == 0 || kept[halfWayChoice] == 0 {
		t.Errorf("only one way was ever kept: %v", kept)
	}
}

// Where no group of the rarest class can be held out, the inverse prior alone is kept, of three
// classes as of two; and nothing is compared without rows held out.
func TestKeptCostsWithoutRowsHeldOut(t *testing.T) {
	d, folds := judgedTools(1, 3)
	for name, tc := range map[string]struct {
		s     CostSettings
		folds dealt
		share float64
	}{
		"one group of a class": {CostSettings{priorAlone: true}, folds, 0},
		"no folds":             {CostSettings{}, dealt{}, 0.5},
		"the optimum itself":   {CostSettings{Unmixed: true}, folds, 1},
	} {
		var r CostReport
		tc.s.JADE.Generations = 20
		costs, err := chooseCosts(t.Context(), d, tc.folds, tc.s, &r)
		if err != nil {
			t.Fatal(err)
		}
		optimum := r.Choices[len(r.Choices)-2]
		want := between(InversePrior(d.counts), optimum.Costs, tc.share)
		if tc.share == 1 {
			want = optimum.Costs
		}
		if optimum.Name != jadeChoice || !slices.Equal(costs, want) || r.Held != nil {
			t.Errorf("%s: kept %v, want %v; compared %v", name, costs, want, r.Held)
		}
	}
}

func at[E any](all []E, rows []int) []E {
	out := make([]E, len(rows))
	for n, i := range rows {
		out[n] = all[i]
	}
	return out
}
