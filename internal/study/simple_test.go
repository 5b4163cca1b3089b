package study

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/train/baseline"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// KEEL's sets and drills are studied with the methods that their pages have; a user's own data with few
// of all.
func TestMethodsByDefault(t *testing.T) {
	var published, all []string
	for _, m := range Methods() {
		published = append(published, m.Name)
	}
	for _, m := range AllMethods() {
		all = append(all, m.Name)
	}
	if len(published) != 15 || len(all) != 18 || slices.Contains(published, "logistic") {
		t.Errorf("%d methods, %d in all: %v", len(published), len(all), all)
	}
	_, wanted, err := selectMethods(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if wanted[name] != slices.Contains(published, name) {
			t.Errorf("%s: wanted %t", name, wanted[name])
		}
	}
	for _, name := range OwnMethods() {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not a method", name)
		}
	}
	families, _, err := selectMethods([]string{"logistic"})
	if err != nil || len(families) != 1 {
		t.Errorf("%d families for one method: %v", len(families), err)
	}
}

// On KEEL's own folds the simple methods do as scikit-learn's, whose figures bench/peers/study/peers.py wrote to
// docs/figures/study/peers.csv. Its forests have 300 trees, and choose thresholds in another way; the product
// clips standardised values at ±5, which moves the line of glass1. AUC is the mean over five folds, G-mean
// also over the sets.
func TestSimpleMethodsAreScikitLearns(t *testing.T) {
	if os.Getenv("FLANK_DATA") == "" {
		t.Skip("FLANK_DATA is not set")
	}
	names := []string{"glass1", "ecoli3", "haberman", "new-thyroid1"}
	if testing.Short() {
		names = names[:2]
	}
	sets, err := LoadKEEL(filepath.Join(os.Getenv("FLANK_DATA"), "keel"), names)
	if err != nil {
		t.Fatal(err)
	}
	peers, err := LoadCells("../../docs/figures/study/peers.csv")
	if err != nil {
		t.Fatal(err)
	}
	cells, err := Run(t.Context(), Plan{Sets: sets, Methods: []string{"logistic", "random-forest", "extra-trees"}, Trials: 1, Dir: t.TempDir(), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	over := func(cells []Cell, method string, sets ...string) (auc, g float64) {
		var a, b mean
		for _, c := range cells {
			if c.Method == method && slices.Contains(sets, c.Dataset) {
				a.add(c.AUC)
				b.add(c.GMean)
			}
		}
		return a.value(), b.value()
	}
	for _, tc := range []struct {
		ours, theirs string
		auc          float64 // how far it may be off on a set
		tuned        string  // has a threshold for the G-mean
	}{
		{"logistic", "logistic", 0.02, "logistic-balanced"},
		{"random-forest", "rf-tuned", 0.025, "rf-tuned"},
		{"extra-trees", "extratrees-tuned", 0.025, "extratrees-tuned"},
	} {
		for _, set := range names {
			got, _ := over(cells, tc.ours, set)
			want, _ := over(peers, tc.theirs, set)
			t.Logf("%s, %s: AUC %.4f, scikit-learn %.4f", set, tc.ours, got, want)
			if !(math.Abs(got-want) <= tc.auc) {
				t.Errorf("%s, %s: AUC %.4f, scikit-learn %.4f", set, tc.ours, got, want)
			}
		}
		_, got := over(cells, tc.ours, names...)
		_, want := over(peers, tc.tuned, names...)
		t.Logf("%s: G-mean %.3f, scikit-learn %.3f", tc.ours, got, want)
		if !(math.Abs(got-want) <= 0.04) {
			t.Errorf("%s: G-mean %.3f, scikit-learn %.3f", tc.ours, got, want)
		}
	}
}

// Columns have the weights of pkg/classify/stability where rows of groups have an order, and only
// with three groups that went on to the end.
func TestWeightsOfATask(t *testing.T) {
	x := dbn.NewMatrix(4*10, 2)
	task := Task{X: x, Y: make([]int, x.Rows), Ordered: true}
	for i := range x.Rows {
		x.Row(i)[0], x.Row(i)[1] = float32(i%10), float32((7*i)%10)
		task.Groups = append(task.Groups, string(rune('a'+i/10)))
		if i%10 > 6 && i < 30 {
			task.Y[i] = 1
		}
	}
	if w := task.weights(""); w == nil || w[0] < 0.3 || w[1] > w[0]/2 {
		t.Errorf("weights %v", w)
	}
	if w := task.weights(classify.StabilityOff); w != nil {
		t.Errorf("switched off: %v", w)
	}
	unordered := task
	unordered.Ordered = false
	if w := unordered.weights(""); w != nil {
		t.Errorf("without order: %v", w)
	}
	for i := 20; i < 30; i++ {
		task.Y[i] = 0
	}
	if w := task.weights(""); w != nil {
		t.Errorf("two tools to the end: %v", w)
	}
}

// The simple methods of a set that comes from recordings have ecs-dbn's settings for costs.
func TestSimpleMethodOfSettings(t *testing.T) {
	s := twoClouds("a", 1)
	s.Settings = &classify.Settings{Costs: classify.CostSettings{Folds: 3}}
	task := s.Task(0, 1)
	got, err := simpleMethods[0].family().solve(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	want, err := baseline.LogisticRegression.Judge(t.Context(), baseline.Task{X: task.X, Y: task.Y, Groups: task.Groups, Test: task.Test, Costs: s.Settings.Costs, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got[0].Decision, want.Decide()) || !(got[0].Seconds > 0) {
		t.Errorf("%+v", got[0])
	}
}
