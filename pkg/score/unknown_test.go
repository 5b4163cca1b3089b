package score

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawConfusion(t *rapid.T, k int) (m Confusion, unknown []int) {
	m = NewConfusion(k)
	for i := range m {
		for j := range m[i] {
			m[i][j] = rapid.IntRange(0, 5).Draw(t, "n")
		}
		unknown = append(unknown, rapid.IntRange(0, 5).Draw(t, "unknown"))
	}
	return m, unknown
}

// A healthy window without a decision counts as a false alarm, a faulty one as missed, in
// all figures. The confusion is of the decisions that were made.
func TestCountingUnknown(t *testing.T) {
	m := Confusion{{18, 0}, {0, 20}}
	s := m.CountingUnknown([]int{2, 10})
	want := Confusion{{18, 2}, {10, 20}}.Summary()
	if s.Rows != 50 || s.Positive != 30 || s.Accuracy != 0.76 || s.Specificity != 0.9 || s.Recall != Figure(2./3) || s.MCC != want.MCC || s.F1 != want.F1 || s.Confusion[1][0] != 0 || s.Unknown[1] != 10 {
		t.Errorf("%+v", s)
	}
	if s := m.CountingUnknown([]int{0, 0}); s.Unknown != nil || s.GMean != 1 {
		t.Errorf("none unknown: %+v", s)
	}
	three := Confusion{{5, 0, 0}, {0, 5, 0}, {0, 0, 5}}
	if s := three.CountingUnknown([]int{0, 5, 0}); s.Recalls[1] != 0.5 || s.Recalls[0] != 1 || s.Recalls[2] != 1 || math.Abs(float64(s.GMean)-math.Cbrt(0.5)) > 1e-12 {
		t.Errorf("of three classes: %+v", s)
	}
}

// One more window without a decision never improves accuracy, recalls, specificity or the
// G-mean, for any number of classes.
func TestUnknownNeverHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(2, 4).Draw(t, "classes")
		m, unknown := drawConfusion(t, k)
		for i := range m {
			m[i][i]++ // every class is there, or a figure would not be defined before
		}
		before := m.CountingUnknown(unknown)
		unknown[rapid.IntRange(0, k-1).Draw(t, "class")]++
		after := m.CountingUnknown(unknown)
		for name, f := range map[string][2]Figure{
			"accuracy": {after.Accuracy, before.Accuracy}, "recall": {after.Recall, before.Recall}, "specificity": {after.Specificity, before.Specificity},
			"precision": {after.Precision, before.Precision}, "F1": {after.F1, before.F1}, "G-mean": {after.GMean, before.GMean},
			"balanced accuracy": {after.BalancedAccuracy, before.BalancedAccuracy},
		} {
			if !(f[0] <= f[1]+1e-12) {
				t.Fatalf("%s rises from %v to %v", name, f[1], f[0])
			}
		}
		for i := range after.Recalls {
			if !(after.Recalls[i] <= before.Recalls[i]) {
				t.Fatalf("recall of class %d rises", i)
			}
		}
	})
}
