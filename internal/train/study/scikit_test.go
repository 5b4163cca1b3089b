package study

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// line is a logistic regression of scikit-learn.
type line struct {
	Bias    float64
	Weights []float64
}

// forestScores are figures of forests of scikit-learn on test rows, over seeds.
type forestScores struct {
	Accuracy   float64
	AccuracySD float64 `json:"accuracy_sd"`
	AUC        float64
	AUCSD      float64 `json:"auc_sd"`
}

type reference struct {
	Name               string
	Columns            int
	X, Test            []float32
	Y, Truth           []int
	Logistic, Balanced line
	Weak               line
	RandomForest       forestScores `json:"random_forest"`
	ExtraTrees         forestScores `json:"extra_trees"`
}

func references(t *testing.T) []reference {
	text, err := os.ReadFile("testdata/scikit-learn.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []reference }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 4 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	return file.Cases
}

// Coefficients are scikit-learn's, to 1e-4.
func TestLogisticIsScikitLearns(t *testing.T) {
	for _, c := range references(t) {
		x := dbn.Matrix{Rows: len(c.Y), Cols: c.Columns, Data: c.X}
		e, err := classify.FitEncoder(x, classify.Standard, 0)
		if err != nil {
			t.Fatal(err)
		}
		columns, scales := LogisticRegression.columns(nil, x.Cols)
		z := prepare(e, x, columns, scales)
		for name, tc := range map[string]struct {
			settings dbn.LogisticSettings
			want     line
		}{
			"C = 1": {dbn.LogisticSettings{}, c.Logistic}, "balanced": {dbn.LogisticSettings{Balanced: true}, c.Balanced}, "C = 0.01": {dbn.LogisticSettings{C: 0.01}, c.Weak},
		} {
			l, err := dbn.FitLogistic(t.Context(), z, c.Y, tc.settings)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(l.Bias-tc.want.Bias) > 1e-4 {
				t.Errorf("%s, %s: bias %v, scikit-learn %v", c.Name, name, l.Bias, tc.want.Bias)
			}
			for j, w := range l.Weights {
				if math.Abs(w-tc.want.Weights[j]) > 1e-4 {
					t.Errorf("%s, %s: weight %d is %v, scikit-learn %v", c.Name, name, j, w, tc.want.Weights[j])
				}
			}
		}
	}
}

// Accuracy and AUC of forests are scikit-learn's: the means over seeds, ten of scikit-learn, are within
// four standard errors of their difference, and 0.002.
func TestForestsAreScikitLearns(t *testing.T) {
	const seeds = 4
	for _, c := range references(t) {
		x := dbn.Matrix{Rows: len(c.Y), Cols: c.Columns, Data: c.X}
		test := dbn.Matrix{Rows: len(c.Truth), Cols: c.Columns, Data: c.Test}
		positive := make([]bool, len(c.Truth))
		for i, class := range c.Truth {
			positive[i] = class == 1
		}
		for _, extra := range []bool{false, true} {
			want := c.RandomForest
			if extra {
				want = c.ExtraTrees
			}
			var accuracy, auc float64
			for seed := range uint64(seeds) {
				p := probabilities(forest(t, x, c.Y, forestSettings{Extra: extra, Seed: seed}), test)
				auc += score.AUC(p, positive) / seeds
				for i, v := range p {
					if (v > 0.5) == positive[i] {
						accuracy += 1 / float64(len(p)) / seeds
					}
				}
			}
			for _, f := range []struct {
				name          string
				got, want, sd float64
			}{{"accuracy", accuracy, want.Accuracy, want.AccuracySD}, {"AUC", auc, want.AUC, want.AUCSD}} {
				if d := math.Abs(f.got - f.want); d > 0.002+4*f.sd*math.Sqrt(1./seeds+1./10) {
					t.Errorf("%s, extra %t: %s %.4f, scikit-learn %.4f ± %.4f", c.Name, extra, f.name, f.got, f.want, f.sd)
				}
				t.Logf("%s, extra %t: %s %.4f, scikit-learn %.4f ± %.4f", c.Name, extra, f.name, f.got, f.want, f.sd)
			}
		}
	}
}
