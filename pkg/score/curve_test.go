package score_test

import (
	"math"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/score"
	"pgregory.net/rapid"
)

// The values are from scikit-learn 1.9: roc_curve(drop_intermediate=False),
// average_precision_score and calibration_curve(n_bins=4).
func TestCurvesAgainstScikitLearn(t *testing.T) {
	scores := []float64{0.1, 0.4, 0.35, 0.8, 0.4}
	positive := []bool{false, false, true, true, true}
	want := []score.OperatingPoint{{math.Inf(1), 0, 0}, {0.8, 1, 0}, {0.4, 2, 1}, {0.35, 3, 1}, {0.1, 3, 2}}
	if got := score.OperatingPoints(scores, positive); !slices.Equal(got, want) {
		t.Errorf("operating points %v, want %v", got, want)
	}
	first := 0
	for range score.OperatingPointSeq(scores, positive) {
		if first++; first == 2 {
			break
		}
	}
	if n := len(score.OperatingPoints([]float64{math.NaN(), 1, math.NaN()}, []bool{true, false, false})); n < 2 {
		t.Errorf("%d points where scores are NaN", n)
	}
	near(t, "average precision", score.AveragePrecision(scores, positive), 0.8055555555555556)
	bins := score.Reliability(scores, positive, 4)
	if len(bins) != 3 || bins[0].Rows != 1 || bins[1].Rows != 3 || bins[2].Rows != 1 {
		t.Fatalf("bins %v", bins)
	}
	near(t, "predicted", bins[1].Predicted, 0.38333333333333336)
	near(t, "observed", bins[1].Observed, 0.6666666666666666)
	near(t, "calibration error", score.CalibrationError(bins), (0.1+3*(0.6666666666666666-0.38333333333333336)+0.2)/5)
	if !math.IsNaN(score.AveragePrecision([]float64{1}, []bool{false})) || !math.IsNaN(score.CalibrationError(nil)) {
		t.Error("figures without rows are defined")
	}
}

// The area under the points by trapezoids is the rank statistic.
func TestOperatingPointsGiveAUC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "rows")
		scores, positive := make([]float64, n), make([]bool, n)
		for i := range scores {
			scores[i] = float64(rapid.IntRange(0, 9).Draw(t, "score"))
			positive[i] = i == 0 || i > 1 && rapid.Bool().Draw(t, "positive")
		}
		points := score.OperatingPoints(scores, positive)
		end := points[len(points)-1]
		if end.TP+end.FP != n {
			t.Fatalf("the last point decides %d of %d rows positive", end.TP+end.FP, n)
		}
		var area float64
		for i := 1; i < len(points); i++ {
			a, b := points[i-1], points[i]
			area += float64(b.FP-a.FP) * float64(a.TP+b.TP) / 2
		}
		area /= float64(end.TP) * float64(end.FP)
		if want := score.AUC(scores, positive); math.Abs(area-want) > 1e-12 {
			t.Fatalf("area %v, AUC %v", area, want)
		}
	})
}
