package trend

import (
	"errors"
	"math"
	"reflect"
	"testing"
)

// small returns twelve rows of two features.
func small() *Rows {
	r := &Rows{Columns: 2}
	for i := range 12 {
		r.X = append(r.X, float32(i*7%12)-3, float32(i*i%5)*2.5)
		r.WearUM = append(r.WearUM, float64((2+i)*(2+i)+5*(i%3)))
		r.Tool = append(r.Tool, string(rune('A'+i/4)))
	}
	return r
}

// What scikit-learn 1.9.1 gives on the same rows: StandardScaler, then
// Ridge(alpha, solver="cholesky") of √wear, and its prediction for (2, 5).
func TestRidgeIsScikitLearns(t *testing.T) {
	rows := small()
	r := newRegression(rows, rows.byTool(), nil)
	for _, tc := range []struct {
		alpha   float64
		weights []float64
		at25    float64
	}{
		{1, []float64{0.1077703625, -0.5617238577, 0.8368121925, 0.6556035808}, 8.29572839},
		{30, []float64{0.184656745, -0.03412476633, 0.2374645251, 0.03894802685}, 7.90138663},
	} {
		m := r.solve(r.gram, r.cross, r.sum, r.y, r.n, []float64{tc.alpha})[0]
		byRows := r.solveRows(nil, []float64{tc.alpha})[0]
		if math.Abs(byRows.Bias-m.Bias) > 1e-9 {
			t.Errorf("α = %v: bias %v among rows, %v among inputs", tc.alpha, byRows.Bias, m.Bias)
		}
		for c, want := range tc.weights {
			if math.Abs(byRows.Weights[c]-want) > 1e-9 {
				t.Errorf("α = %v: weight %d is %.10g among rows, want %.10g", tc.alpha, c, byRows.Weights[c], want)
			}
			if math.Abs(m.Weights[c]-want) > 1e-9 {
				t.Errorf("α = %v: weight %d is %.10g, want %.10g", tc.alpha, c, m.Weights[c], want)
			}
		}
		if math.Abs(m.Bias-7.85602480323823) > 1e-9 {
			t.Errorf("α = %v: bias %v", tc.alpha, m.Bias)
		}
		if got, _ := m.Root([]float32{2, 5}, nil); math.Abs(got-tc.at25) > 1e-8 {
			t.Errorf("α = %v: root %v, want %v", tc.alpha, got, tc.at25)
		}
	}
}

// Subtracting the sums of a tool again leaves the sums of the others.
func TestWithoutATool(t *testing.T) {
	rows := small()
	tools := rows.byTool()
	r := newRegression(rows, tools, nil)
	rest := &regression{rows: rows, center: r.center, scale: r.scale, chosen: r.chosen, gram: r.gram, cross: make([]float64, 4), sum: make([]float64, 4)}
	rest.gram.Data = make([]float64, 16)
	for _, k := range []int{0, 2} {
		rest.n += rest.add(1, k, rest.gram, rest.cross, rest.sum, &rest.y)
	}
	want := rest.solve(rest.gram, rest.cross, rest.sum, rest.y, rest.n, penalties)
	for a, m := range r.without([]int{1}, penalties) {
		for c := range m.Weights {
			if math.Abs(m.Weights[c]-want[a].Weights[c]) > 1e-9 {
				t.Errorf("α = %v, weight %d: %v, want %v", penalties[a], c, m.Weights[c], want[a].Weights[c])
			}
		}
	}
}

// lives returns tools whose one informative feature is their wear.
func lives(tools, windows int) *Rows {
	r := &Rows{Columns: 3}
	for k := range tools {
		for i := range windows {
			um := float64(i+1) * 4 * (1 + 0.1*float64(k%3))
			jitter := float64((i*37+k*11)%17)/17 - 0.5
			r.X = append(r.X, float32(math.Sqrt(um)+jitter), float32((i*29+k)%13), float32(math.NaN()))
			r.WearUM, r.Tool = append(r.WearUM, um), append(r.Tool, string(rune('A'+k)))
		}
	}
	return r
}

func TestFit(t *testing.T) {
	rows := lives(5, 90)
	s, err := CrossValidate(t.Context(), rows, Settings{LimitUM: 300}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if s.MAEUM > 12 || s.Known < s.Rows*8/10 {
		t.Errorf("MAE %.1f µm of %d of %d rows: the feature is the root of the wear within 0.5 √µm", s.MAEUM, s.Known, s.Rows)
	}
	if s.LifeKnown < s.Life/3 || s.LifeMAE > 12 {
		t.Errorf("%d of %d lives known, error %.1f windows: wear grows evenly", s.LifeKnown, s.Life, s.LifeMAE)
	}
	again, err := CrossValidate(t.Context(), rows, Settings{LimitUM: 300}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.Estimates, again.Estimates = nil, nil // NaN is not equal to itself
	if !reflect.DeepEqual(s, again) {
		t.Errorf("one worker: %+v\ntwo: %+v", again, s)
	}
	m, choice, err := Fit(t.Context(), rows, Settings{LimitUM: 300})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(3); err != nil {
		t.Error(err)
	}
	if m.Median != choice.Median || m.Low >= 0 || m.High <= 0 {
		t.Errorf("median %d, chosen %d; interval %v to %v", m.Median, choice.Median, m.Low, m.High)
	}
}

func TestTooFewTools(t *testing.T) {
	rows := lives(1, 20)
	if _, _, err := Fit(t.Context(), rows, Settings{LimitUM: 300}); !errors.Is(err, ErrTooFew) {
		t.Errorf("Fit: %v", err)
	}
	if _, err := CrossValidate(t.Context(), lives(2, 20), Settings{LimitUM: 300}, 1); !errors.Is(err, ErrTooFew) {
		t.Errorf("CrossValidate: %v", err)
	}
}
