package imbalance

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/score"
)

// The product's ECS-DBN is the study's: on the same rows, folds and seeds both decide alike.
func TestProductIsTheStudys(t *testing.T) {
	s := twoClouds("a", 1)
	ours, err := study.Run(t.Context(), &study.Set{Name: s.Name, X: s.X, Y: s.Y, Folds: s.Folds}, study.Plan{Methods: []string{study.Control}, Trials: 1})
	if err != nil {
		t.Fatal(err)
	}
	for f, c := range ours {
		answers, err := costFamily().solve(t.Context(), s.TaskOf(0, f))
		if err != nil {
			t.Fatal(err)
		}
		want := newCell(Key{}, pick(s.Y, s.Folds[f].Test), nil, answers[0])
		if c.TP != want.TP || c.FN != want.FN || c.FP != want.FP || c.TN != want.TN || c.AUC != want.AUC {
			t.Errorf("fold %d: %+v, want %+v", f, c, want)
		}
	}
}

// On KEEL's own folds the simple methods do as scikit-learn's, whose figures bench/peers/study/peers.py wrote to
// docs/figures/study/peers.csv. Its forests have 300 trees, and choose thresholds in another way; the product
// clips standardised values at ±5, which moves the line of glass1. AUC is the mean over five folds, G-mean
// also over the sets.
func TestRecordedSimpleMethodsAreScikitLearns(t *testing.T) {
	folder := recorded.Folder(t)
	names := []string{"glass1", "ecoli3", "haberman", "new-thyroid1"}
	if testing.Short() {
		names = names[:2]
	}
	sets, err := LoadKEEL(filepath.Join(folder, "keel"), names)
	if err != nil {
		t.Fatal(err)
	}
	peers, err := LoadCells("../../docs/figures/study/peers.csv")
	if err != nil {
		t.Fatal(err)
	}
	var cells []Cell
	for _, s := range sets {
		ours, err := study.Run(t.Context(), &study.Set{Name: s.Name, X: s.X, Y: s.Y, Folds: s.Folds}, study.Plan{Methods: []string{"logistic", "random-forest", "extra-trees"}, Trials: 1, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range ours {
			cells = append(cells, Cell{Key: Key{Dataset: s.Name, Method: c.Method}, AUC: c.AUC, GMean: score.Confusion{{c.TN, c.FP}, {c.FN, c.TP}}.GMean()})
		}
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
