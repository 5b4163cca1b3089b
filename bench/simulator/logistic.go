package main

import (
	"context"

	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// logisticDecay is the weight of |w|²/2, of all weights but the intercept, next to
// the mean loss.
const logisticDecay = 0.01

// logisticGMean returns the G-mean on the rows that each fold holds out of logistic regressions with both classes of
// equal weight, the simplest classifier that there is to compare with. Columns are standardised by the
// training rows; a missing value counts as their mean.
func logisticGMean(x dbn.Matrix, y []int, folds []classify.Fold) float64 {
	m := score.NewConfusion(2)
	for _, f := range folds {
		train, classes := classify.Part(x, f.Train).(dbn.Matrix), make([]int, len(f.Train))
		for n, i := range f.Train {
			classes[n] = min(y[i], 1)
		}
		scale := imbalance.FitScale(train)
		fitted, err := dbn.FitLogistic(context.Background(), scale.Apply(train), classes, dbn.LogisticSettings{C: 1 / (logisticDecay * float64(train.Rows)), Balanced: true})
		if err != nil {
			panic("simulator: " + err.Error()) // every fold is trained on both classes
		}
		z := scale.Apply(x)
		for _, i := range f.Test {
			odds, decision := fitted.Bias, 0
			for j, v := range z.Row(i) {
				odds += fitted.Weights[j] * float64(v)
			}
			if odds >= 0 {
				decision = 1
			}
			m.Add(min(y[i], 1), decision)
		}
	}
	return m.GMean()
}
