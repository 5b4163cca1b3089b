//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// newOnline makes a task of "online features repetitions trials": the decision
// and the score for one row of features. It fails if that allocates.
func newOnline(words []string) (task, error) {
	var features, repetitions, trials int
	if _, err := fmt.Sscan(strings.Join(words, " "), &features, &repetitions, &trials); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	x, y := dbn.NewMatrix(400, features), make([]int, 400)
	for i := range y {
		y[i] = i % 2
		for j := range features {
			x.Row(i)[j] = float32(rng.NormFloat64() + float64(y[i]))
		}
	}
	s := classify.Settings{}
	s.Network.Pretrain.Epochs, s.Network.FineTune.Epochs = 1, 1
	c, _, err := classify.Fit(context.Background(), x, y, nil, s)
	if err != nil {
		return nil, err
	}
	scorer, row := c.NewScorer(), x.Row(7)
	sum := 0.0
	return func() (seconds, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		t := best(trials, func() {
			for range repetitions {
				p := scorer.Posterior(row)
				sum += float64(c.Decide(p)) + c.Score(p)
			}
		})
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > 100 { // the runtime and the clock allocate as well
			return t, fmt.Errorf("%d allocations in %d decisions", n, repetitions*trials)
		}
		return t, nil
	}, nil
}
