package score_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-12 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func confusionOf(k int, y, decisions []int) score.Confusion {
	m := score.NewConfusion(k)
	for i := range y {
		m.Add(y[i], decisions[i])
	}
	return m
}

// Reference values come from scikit-learn 1.9.1 (matthews_corrcoef,
// balanced_accuracy_score, precision_recall_fscore_support) and imbalanced-learn
// 0.14 (geometric_mean_score).
func TestConfusionAgainstScikitLearn(t *testing.T) {
	two := confusionOf(2,
		[]int{0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1},
		[]int{0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1})
	near(t, "accuracy", two.Accuracy(), 0.75)
	near(t, "recall", two.Recall(), 0.75)
	near(t, "specificity", two.Specificity(), 0.75)
	near(t, "precision", two.Precision(), 0.6)
	near(t, "F1", two.F1(), 0.6666666666666666)
	near(t, "G-mean", two.GMean(), 0.75)
	near(t, "balanced accuracy", two.BalancedAccuracy(), 0.75)
	near(t, "hard AUC", two.HardAUC(), 0.75)
	near(t, "MCC", two.MCC(), 0.47809144373375745)

	three := confusionOf(3,
		[]int{0, 1, 2, 2, 1, 0, 0, 2, 2, 0, 1, 2, 0, 0, 1},
		[]int{0, 1, 2, 1, 1, 0, 2, 2, 0, 0, 2, 2, 0, 1, 1})
	near(t, "accuracy of 3", three.Accuracy(), 0.6666666666666666)
	near(t, "recall of class 2", three.Recall(), 0.6)
	near(t, "precision of class 2", three.Precision(), 0.6)
	near(t, "F1 of class 2", three.F1(), 0.6)
	near(t, "specificity of class 2", three.Specificity(), 0.8) // 8 of the 10 others, by hand
	near(t, "recall of class 1", three.RecallOf(1), 0.75)
	near(t, "G-mean of 3", three.GMean(), 0.6694329500821695)
	near(t, "balanced accuracy of 3", three.BalancedAccuracy(), 0.6722222222222222)
	near(t, "MCC of 3", three.MCC(), 0.5033670414105182)

	// The example of scikit-learn's matthews_corrcoef.
	near(t, "MCC of 4 rows", confusionOf(2, []int{1, 1, 1, 0}, []int{1, 0, 1, 1}).MCC(), -1.0/3)
}

func TestNothingByNothingIsZero(t *testing.T) {
	for name, m := range map[string]score.Confusion{
		"no rows":                    score.NewConfusion(2),
		"one class, decided right":   confusionOf(2, []int{0, 0}, []int{0, 0}),
		"one class, decided wrong":   confusionOf(2, []int{0, 0}, []int{1, 1}),
		"everything decided class 0": confusionOf(2, []int{0, 1}, []int{0, 0}),
	} {
		near(t, name+": recall", m.Recall(), 0)
		near(t, name+": F1", m.F1(), 0)
		near(t, name+": F1 as a metric", score.F1.Of(m), 0)
		near(t, name+": MCC as a metric", score.MCC.Of(m), 0)
		near(t, name+": precision", m.Precision(), 0)
		near(t, name+": MCC", m.MCC(), 0)
	}
	near(t, "G-mean over classes present", confusionOf(3, []int{0, 0, 2, 2}, []int{0, 1, 2, 2}).GMean(), math.Sqrt(0.5))
	near(t, "G-mean of one class", confusionOf(2, []int{0, 0, 0, 0}, []int{0, 1, 0, 0}).GMean(), 0.75)
}

func TestAUC(t *testing.T) {
	bools := func(y ...int) []bool {
		b := make([]bool, len(y))
		for i, v := range y {
			b[i] = v == 1
		}
		return b
	}
	// The example of scikit-learn's roc_auc_score, and one with ties (1.9.1).
	near(t, "AUC", score.AUC([]float64{0.1, 0.4, 0.35, 0.8}, bools(0, 0, 1, 1)), 0.75)
	near(t, "AUC with ties", score.AUC([]float64{.1, .4, .35, .8, .4, .4, .2, .35}, bools(0, 0, 1, 1, 1, 0, 0, 1)), 0.6875)
	near(t, "AUC of equal scores", score.AUC([]float64{1, 1, 1}, bools(0, 1, 0)), 0.5)
	near(t, "AUC of one class", score.AUC([]float64{1, 2}, bools(1, 1)), math.NaN())
	if got := score.AUC([]float64{math.NaN(), 1, 2}, bools(0, 0, 1)); got != 1 {
		t.Errorf("AUC with a NaN among the lowest = %v, want 1", got)
	}
}

// Reference values from scikit-learn 1.9.1: brier_score_loss.
func TestBrier(t *testing.T) {
	near(t, "Brier of 2", score.Brier([]float64{.9, .1, .1, .9, .2, .8, .7, .3}, []int{0, 1, 1, 0}, 2), 0.0375)
	near(t, "Brier of 3", score.Brier([]float64{.6, .3, .1, .2, .5, .3, .1, .1, .8, .3, .4, .3, .2, .7, .1}, []int{0, 1, 2, 2, 1}, 3), 0.316)
}

// A tool that never wore out has no recall. Null says so; 0 would say that every
// fault was missed.
func TestScoresOfAGroupWithoutFaultyRows(t *testing.T) {
	s := score.Assess([]int{0, 0, 0, 0}, []int{0, 0, 1, 0}, []float64{1, 0, 1, 0, 0, 1, 1, 0}, 2)
	b, err := json.Marshal(classify.GroupScores{Group: "T05", Summary: s})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"group":"T05","rows":4,"positive":0,"accuracy":0.75,"recall":null,"specificity":0.75,"precision":null,"f1":null,"gmean":null,` +
		`"balanced_accuracy":null,"mcc":null,"auc":null,"auc_hard_labels":null,"brier":0.25,"confusion":[[3,1],[0,0]]}`
	if string(b) != want {
		t.Errorf("JSON\n%s, want\n%s", b, want)
	}
	var back classify.GroupScores
	if err := json.Unmarshal(b, &back); err != nil || !math.IsNaN(float64(back.Recall)) || back.Specificity != 0.75 {
		t.Errorf("read back as %+v, error %v", back, err)
	}
	worn := score.Assess([]int{1, 1}, []int{1, 0}, nil, 2)
	if worn.Recall != 0.5 || !math.IsNaN(float64(worn.Specificity)) || !math.IsNaN(float64(worn.AUC)) {
		t.Errorf("faulty rows only: %+v", worn)
	}
	if none := score.Assess(nil, nil, nil, 2); !math.IsNaN(float64(none.Accuracy)) || strings.Contains(mustJSON(t, none), "NaN") {
		t.Errorf("no rows: %+v", none)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Laws that hold for every confusion, among them the bounds by which
// impossible pairs of accuracy and G-mean in published tables are found: with
// minority share p, G ≥ 1 − (1−accuracy)/p, and G ≤ √((accuracy−p)/(1−p)) if
// accuracy > 2p.
func TestMetricLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 4).Draw(t, "K")
		n := rapid.IntRange(1, 60).Draw(t, "N")
		y := rapid.SliceOfN(rapid.IntRange(0, k-1), n, n).Draw(t, "y")
		d := rapid.SliceOfN(rapid.IntRange(0, k-1), n, n).Draw(t, "decisions")
		m := confusionOf(k, y, d)
		if m.Rows() != n {
			t.Fatalf("%d rows, want %d", m.Rows(), n)
		}
		g, acc := m.GMean(), m.Accuracy()
		if ba := m.BalancedAccuracy(); g > ba+1e-12 {
			t.Fatalf("G-mean %v above the arithmetic mean %v of recalls", g, ba)
		}
		if mcc := m.MCC(); !(mcc >= -1-1e-12 && mcc <= 1+1e-12) {
			t.Fatalf("MCC = %v", mcc)
		}
		if f1, lo, hi := m.F1(), min(m.Precision(), m.Recall()), max(m.Precision(), m.Recall()); f1 < lo-1e-12 || f1 > hi+1e-12 {
			t.Fatalf("F1 = %v is not between precision and recall, %v and %v", f1, lo, hi)
		}
		if n0, n1 := m.RowsOf(0), m.RowsOf(1); k == 2 && n0 > 0 && n1 > 0 {
			p := float64(min(n0, n1)) / float64(n)
			if g < 1-(1-acc)/p-1e-9 || acc > 2*p && g > math.Sqrt((acc-p)/(1-p))+1e-9 {
				t.Fatalf("accuracy %v and G-mean %v cannot be with minority share %v", acc, g, p)
			}
			if g > m.HardAUC()+1e-12 {
				t.Fatalf("G-mean %v above hard AUC %v", g, m.HardAUC())
			}
		}
		// The order of rows, and of classes where no class is special, is nothing.
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		rows, names := rng.Perm(n), rng.Perm(k)
		py, pd := make([]int, n), make([]int, n)
		for i, from := range rows {
			py[i], pd[i] = names[y[from]], names[d[from]]
		}
		r := confusionOf(k, py, pd)
		for what, pair := range map[string][2]float64{
			"accuracy": {acc, r.Accuracy()}, "G-mean": {g, r.GMean()}, "MCC": {m.MCC(), r.MCC()}, "balanced accuracy": {m.BalancedAccuracy(), r.BalancedAccuracy()},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-12 {
				t.Fatalf("%s %v becomes %v when rows are shuffled and classes renamed", what, pair[0], pair[1])
			}
		}
		if k == 2 {
			return
		}
		// The figures of each class go with it.
		posterior, renamed := make([]float64, n*k), make([]float64, n*k)
		for i := range posterior {
			posterior[i] = math.Round(4 * rng.Float64()) // with ties
		}
		for i, from := range rows {
			for j := range k {
				renamed[i*k+names[j]] = posterior[from*k+j]
			}
		}
		a, b := score.Assess(y, d, posterior, k), score.Assess(py, pd, renamed, k)
		for j := range k {
			for what, pair := range map[string][2]score.Figure{"recall": {a.Recalls[j], b.Recalls[names[j]]}, "AUC": {a.AUCs[j], b.AUCs[names[j]]}} {
				x, y := float64(pair[0]), float64(pair[1])
				if math.IsNaN(x) != math.IsNaN(y) || math.Abs(x-y) > 1e-12 {
					t.Fatalf("%s of class %d, %v, becomes %v when it is renamed", what, j, x, y)
				}
			}
		}
	})
}

func TestRateInterval(t *testing.T) {
	for _, tc := range []struct {
		n                int
		hours, low, high float64
	}{
		// Table of exact 95 % limits for a Poisson count: K. Ulm, Am. J. Epidemiology
		// 131, 1990; for none, the rule of three.
		{0, 1, 0, 2.9957}, {1, 1, 0.0253, 5.5716}, {2, 1, 0.2422, 7.2247}, {5, 1, 1.6235, 11.6683}, {10, 1, 4.7954, 18.3904},
		{1, 8, 0.0253 / 8, 5.5716 / 8}, {3, 0, 0, math.Inf(1)},
	} {
		low, high := score.RateInterval(tc.n, tc.hours)
		if math.Abs(low-tc.low) > 1e-4 || high != tc.high && math.Abs(high-tc.high) > 1e-4 {
			t.Errorf("%d in %v h: %v to %v, want %v to %v", tc.n, tc.hours, low, high, tc.low, tc.high)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // the definition: as few, or as many, are seen with 2.5 %
		n := rapid.IntRange(1, 300).Draw(t, "n")
		low, high := score.RateInterval(n, 1)
		few, many := distuv.Poisson{Lambda: high}.CDF(float64(n)), 1-distuv.Poisson{Lambda: low}.CDF(float64(n-1))
		if math.Abs(few-0.025) > 1e-6 || math.Abs(many-0.025) > 1e-6 {
			t.Fatalf("%d: %v at %v, %v at %v", n, few, high, many, low)
		}
	})
}
