package study

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Columns have the weights of pkg/score where rows of groups have an order, and only
// with three groups that went on to the end.
func TestWeightsOfATask(t *testing.T) {
	x := dbn.NewMatrix(4*10, 2)
	task := foldTask{train: classify.Table{X: x, Y: make([]int, x.Rows), Ordered: true}}
	for i := range x.Rows {
		x.Row(i)[0], x.Row(i)[1] = float32(i%10), float32((7*i)%10)
		task.train.Groups = append(task.train.Groups, string(rune('a'+i/10)))
		if i%10 > 6 && i < 30 {
			task.train.Y[i] = 1
		}
	}
	if w := task.weights(); w == nil || w[0] < 0.3 || w[1] > w[0]/2 {
		t.Errorf("weights %v", w)
	}
	unordered, off := task, task
	if off.settings.Stability = classify.StabilityOff; off.weights() != nil {
		t.Errorf("switched off: %v", off.weights())
	}
	unordered.train.Ordered = false
	if w := unordered.weights(); w != nil {
		t.Errorf("without order: %v", w)
	}
	for i := 20; i < 30; i++ {
		task.train.Y[i] = 0
	}
	if w := task.weights(); w != nil {
		t.Errorf("two tools to the end: %v", w)
	}
}

// The simple methods of a set that comes from recordings have ecs-dbn's settings for costs.
func TestSimpleMethodOfSettings(t *testing.T) {
	s := madeUp("a", func(x []float32, _ *rand.Rand) bool { return x[0] > 0.5 })
	s.Settings = &classify.Settings{Costs: classify.CostSettings{Folds: 3}}
	task := s.task(0, 0)
	got, err := of("logistic").solve(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	want, err := LogisticRegression.Judge(t.Context(), Task{X: task.x, Y: task.train.Y, Groups: task.train.Groups, Test: task.test, Costs: s.Settings.Costs, Seed: task.seed})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.decision, want.Decide()) {
		t.Errorf("%+v", got)
	}
}

// What a test row holds, and which class the test rows are of, moves no other decision: nothing is fitted to them. Equal
// plans give equal cells, with any number of workers.
func TestNothingLeaks(t *testing.T) {
	made := func() *Set {
		s := madeUp("a", func(x []float32, _ *rand.Rand) bool { return x[0] > 0.5 })
		s.Settings = &classify.Settings{Network: dbn.Settings{Hidden: []int{5}, Pretrain: dbn.PretrainSettings{Epochs: 1}, FineTune: dbn.FineTuneSettings{Epochs: 5}}, Costs: classify.CostSettings{Folds: 3}}
		return s
	}
	marked := made()
	for j := range marked.X.Row(marked.Folds[0].Test[0]) {
		marked.X.Row(marked.Folds[0].Test[0])[j] = 1e6
	}
	for _, i := range marked.Folds[0].Test {
		marked.Y[i] = 1 - marked.Y[i]
	}
	for _, m := range Methods() {
		clean, err := m.solve(t.Context(), made().task(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.solve(t.Context(), marked.task(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(clean.decision[1:], other.decision[1:]) || !slices.Equal(clean.score[1:], other.score[1:]) {
			t.Errorf("%s: a test row moves decisions on others", m.Name)
		}
	}
	run := func(workers int) []Cell {
		cells, err := Run(t.Context(), made(), Plan{Trials: 1, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		for i := range cells {
			cells[i].Seconds = 0
		}
		return cells
	}
	if one := run(1); len(one) != 6*len(Methods()) || !slices.Equal(one, run(3)) {
		t.Error("another number of workers, other cells")
	}
}
