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

// For two classes a window without a decision counts as one of the other class, in all
// figures but MCC.
func TestCountingUnknownOfTwoClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, unknown := drawConfusion(t, 2)
		got := m.CountingUnknown(unknown)
		m[0][1] += unknown[0]
		m[1][0] += unknown[1]
		want := m.Summary()
		for name, f := range map[string][2]Figure{
			"accuracy": {got.Accuracy, want.Accuracy}, "recall": {got.Recall, want.Recall}, "specificity": {got.Specificity, want.Specificity},
			"precision": {got.Precision, want.Precision}, "F1": {got.F1, want.F1}, "G-mean": {got.GMean, want.GMean},
			"balanced accuracy": {got.BalancedAccuracy, want.BalancedAccuracy}, "hard AUC": {got.HardAUC, want.HardAUC},
		} {
			if !(math.Abs(float64(f[0]-f[1])) <= 1e-12 || f[0] != f[0] && f[1] != f[1]) {
				t.Fatalf("%s %v, want %v", name, f[0], f[1])
			}
		}
		if got.Rows != want.Rows || got.Positive != want.Positive {
			t.Fatalf("%d of %d rows, want %d of %d", got.Positive, got.Rows, want.Positive, want.Rows)
		}
	})
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
