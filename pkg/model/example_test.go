package model_test

import (
	"context"
	"fmt"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// A model of one feature, the power relative to the tool's first two windows. Trainer and
// monitor judge windows with it in the same way.
func ExampleJudge() {
	x, y := dbn.NewMatrix(60, 1), make([]int, 60)
	for i := range y {
		if i%3 == 2 {
			y[i] = classify.Faulty
		}
		x.Row(i)[0] = float32(y[i]) + 0.01*float32(i%7) // a faulty tool takes twice the power
	}
	classifier, _, err := classify.Fit(context.Background(), x, y, nil, classify.Settings{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, _ := signal.NewLayout("lathe", []signal.Channel{{Name: "power", Kind: signal.Feature, Unit: "W", Rate: 1}})
	m := &model.Model{
		Layout: layout, Window: window.DefaultSpec, Usual: make([]signal.Quality, 1), Classifier: classifier,
		Reference: model.ReferenceSpec{Windows: 2, Mode: model.ReferenceRatio},
	}
	judge := m.NewJudge()
	var reference model.Reference
	for _, power := range []float32{1000, 1020, 1010, 2000} {
		w := &window.Window{Context: signal.Context{Tool: "T1"}, Samples: [][]float32{{power}}, Quality: make([]signal.Quality, 1)}
		verdict := judge.Judge(w, &reference, nil)
		fmt.Println(power, verdict.Outcome)
	}
	// Output:
	// 1000 learning
	// 1020 learning
	// 1010 healthy
	// 2000 faulty
}
