package classify

import (
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// The classifier of a fold scores the rows held out as the validation does, and weighs the
// columns that counted in its fit and no others.
func TestClassifiersOfFolds(t *testing.T) {
	tb := wearing(1, 30, []string{"A", "B", "C", "D"}, nil)
	folds := LeaveOneGroupOut(tb.Groups)
	for _, encoding := range encodings {
		s := quick()
		s.Encoding = encoding
		v, err := CrossValidateTable(t.Context(), tb, s, folds)
		if err != nil {
			t.Fatal(err)
		}
		for f, fold := range folds {
			got := make([]float64, len(fold.Test)/2)
			half := fold.Test[:len(got)] // scores do not depend on the rows next to them
			v.Classifiers[f].ScoreTo(got, Part(tb.X, half).(dbn.Matrix))
			for n, i := range half {
				if got[n] != v.Score[i] {
					t.Fatalf("%s: fold %d scores row %d %v, validated as %v", encoding, f, i, got[n], v.Score[i])
				}
			}
			for j, w := range v.Classifiers[f].ColumnWeights() {
				if counts := slices.ContainsFunc(v.Reports[f].Weights.Columns, func(c ColumnWeight) bool { return c.Column == j }); counts != (w > 0) {
					t.Errorf("%s: column %d weighs %v in fold %d", encoding, j, w, f)
				}
			}
		}
	}
}
