package classify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The values are those of scikit-learn 1.9: roc_curve(drop_intermediate=False),
// average_precision_score and calibration_curve(n_bins=4).
func TestCurvesAgainstScikitLearn(t *testing.T) {
	score := []float64{0.1, 0.4, 0.35, 0.8, 0.4}
	positive := []bool{false, false, true, true, true}
	want := []OperatingPoint{{math.Inf(1), 0, 0}, {0.8, 1, 0}, {0.4, 2, 1}, {0.35, 3, 1}, {0.1, 3, 2}}
	if got := OperatingPoints(score, positive); !slices.Equal(got, want) {
		t.Errorf("operating points %v, want %v", got, want)
	}
	first := 0
	for range OperatingPointSeq(score, positive) {
		if first++; first == 2 {
			break
		}
	}
	if n := len(OperatingPoints([]float64{math.NaN(), 1, math.NaN()}, []bool{true, false, false})); n < 2 {
		t.Errorf("%d points where scores are NaN", n)
	}
	near(t, "average precision", AveragePrecision(score, positive), 0.8055555555555556)
	bins := Reliability(score, positive, 4)
	if len(bins) != 3 || bins[0].Rows != 1 || bins[1].Rows != 3 || bins[2].Rows != 1 {
		t.Fatalf("bins %v", bins)
	}
	near(t, "predicted", bins[1].Predicted, 0.38333333333333336)
	near(t, "observed", bins[1].Observed, 0.6666666666666666)
	near(t, "calibration error", CalibrationError(bins), (0.1+3*(0.6666666666666666-0.38333333333333336)+0.2)/5)
	if !math.IsNaN(AveragePrecision([]float64{1}, []bool{false})) || !math.IsNaN(CalibrationError(nil)) {
		t.Error("figures without rows are defined")
	}
}

// The area under the points by trapezoids is the rank statistic.
func TestOperatingPointsGiveAUC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "rows")
		score, positive := make([]float64, n), make([]bool, n)
		for i := range score {
			score[i] = float64(rapid.IntRange(0, 9).Draw(t, "score"))
			positive[i] = i == 0 || i > 1 && rapid.Bool().Draw(t, "positive")
		}
		points := OperatingPoints(score, positive)
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
		if want := AUC(score, positive); math.Abs(area-want) > 1e-12 {
			t.Fatalf("area %v, AUC %v", area, want)
		}
	})
}

// ChooseCosts keeps what Fit would keep, and JADE never beats the sweep.
func TestChooseCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var posterior []float64
	var y []int
	for i := range 400 {
		label := 0
		if i%5 == 0 {
			label = 1
		}
		p := 1 / (1 + math.Exp(2-1.5*float64(label)*2-rng.NormFloat64()))
		posterior, y = append(posterior, 1-p, p), append(y, label)
	}
	costs, r, err := ChooseCosts(t.Context(), posterior, y, 2, CostSettings{})
	if err != nil {
		t.Fatal(err)
	}
	by := make(map[string]Choice)
	for _, c := range r.Choices {
		by[c.Name] = c
	}
	if !slices.Equal(by[keptChoice].Costs, costs) || by[jadeChoice].GMean > by[exactChoice].GMean+1e-12 || by[exactChoice].GMean < 0.8 {
		t.Errorf("choices %+v, kept %v", r.Choices, costs)
	}
	near(t, "threshold", costs.Threshold(), float64(r.Kept))
	near(t, "round trip", ThresholdCosts(0.137).Threshold(), 0.137)
	for why, bad := range map[string]func() error{
		"lengths": func() error { _, _, err := ChooseCosts(t.Context(), posterior[1:], y, 2, CostSettings{}); return err },
		"one class": func() error {
			_, _, err := ChooseCosts(t.Context(), posterior, make([]int, len(y)), 2, CostSettings{})
			return err
		},
	} {
		if bad() == nil {
			t.Errorf("%s: no error", why)
		}
	}
}
