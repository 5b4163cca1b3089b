package dbn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// clouds returns rows of two classes around centres that are apart in the first two columns.
func clouds(seed uint64, rows, columns int, apart float64) (Matrix, []int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	x, y := NewMatrix(rows, columns), make([]int, rows)
	for i := range y {
		if i%4 == 0 {
			y[i] = 1
		}
		for j := range columns {
			x.Row(i)[j] = float32(rng.NormFloat64())
			if j < 2 {
				x.Row(i)[j] += float32(apart * float64(y[i]))
			}
		}
	}
	return x, y
}

// The gradient is the slope of the loss, and the second derivative the slope of the gradient.
func TestDerivatives(t *testing.T) {
	x, y := clouds(3, 30, 4, 1)
	for levels, l := range map[int]*loss{1: newLoss(x, 1, y, LogisticSettings{C: 2, Balanced: true}), 3: newLoss(x, 3, sides(x), LogisticSettings{C: 2})} {
		t.Run(fmt.Sprintf("%d levels", levels), func(t *testing.T) { l.holds(t) })
	}
}

// sides returns at which of three levels of the first column each row is, or above it.
func sides(x Matrix) (out []int) {
	for i := range x.Rows {
		for _, level := range []float32{0.5, -0.5, 1} {
			side := 0
			if x.Row(i)[0] >= level {
				side = 1
			}
			out = append(out, side)
		}
	}
	return out
}

func (l *loss) holds(t *testing.T) {
	n := 4 + l.levels
	rng := rand.New(rand.NewPCG(1, 2))
	theta, v := make([]float64, n), make([]float64, n)
	for j := range theta {
		theta[j], v[j] = rng.NormFloat64(), rng.NormFloat64()
	}
	p := l.newPlace()
	at := func(step float64) (float64, []float64) {
		moved, gradient := make([]float64, n), make([]float64, n)
		for j := range theta {
			moved[j] = theta[j] + step*v[j]
		}
		l.times(p.margin, moved)
		l.measure(p, moved)
		l.slope(gradient, moved, p)
		return p.loss, gradient
	}
	const h = 1e-5
	after, slopeAfter := at(h)
	before, slopeBefore := at(-h)
	value, gradient := at(0)
	if got, want := dot(gradient, v), (after-before)/(2*h); math.Abs(got-want) > 1e-5*math.Abs(want) {
		t.Errorf("slope %v, differences %v", got, want)
	}
	second := make([]float64, n)
	l.hessian(second, v)
	for j := range second {
		if want := (slopeAfter[j] - slopeBefore[j]) / (2 * h); math.Abs(second[j]-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("second derivative %d: %v, differences %v", j, second[j], want)
		}
	}
	want := dot(theta[:4], theta[:4]) / 2 // by definition
	for at, class := range l.y {
		margin := theta[4+at%l.levels] + dotRow(l.x.Row(at/l.levels), theta[:4])
		want += l.weight[class] * math.Log(1+math.Exp(-float64(2*class-1)*margin))
	}
	if math.Abs(value-want) > 1e-9 {
		t.Errorf("loss %v, want %v", value, want)
	}
}

// At the optimum the gradient vanishes, also where a column, or several, tell the classes
// apart without error, where columns are equal, and where values are far apart.
func TestOptimum(t *testing.T) {
	for name, change := range map[string]func(row []float32, class int){
		"as they are":    func([]float32, int) {},
		"apart":          func(row []float32, class int) { row[0] = float32(10*class - 5) },
		"equal columns":  func(row []float32, _ int) { row[1], row[2] = row[0], row[0] },
		"constant":       func(row []float32, _ int) { clear(row) },
		"large values":   func(row []float32, _ int) { row[0] *= 1000 },
		"nearly the one": func(row []float32, class int) { row[3] = float32(class) + row[3]/1e6 },
	} {
		x, y := clouds(4, 80, 4, 1)
		for i := range x.Rows {
			change(x.Row(i), y[i])
		}
		for _, s := range []LogisticSettings{{}, {C: 100}, {C: 0.001, Balanced: true}} {
			l, err := FitLogistic(t.Context(), x, y, s)
			if err != nil {
				t.Fatal(err)
			}
			gradient := make([]float64, 5)
			loss := newLoss(x, 1, y, s)
			p, theta := loss.newPlace(), append(slices.Clone(l.Weights), l.Bias)
			loss.times(p.margin, theta)
			loss.measure(p, theta)
			loss.slope(gradient, theta, p)
			if n := norm(gradient); n > 1e-4 {
				t.Errorf("%s, %+v: gradient %v", name, s, n)
			}
			s.Start = &Logistic{Bias: 3, Weights: []float64{-1, 2, 0.5, 1}}
			again, err := FitLogistic(t.Context(), x, y, s)
			if err != nil {
				t.Fatal(err)
			}
			for j, w := range again.Weights {
				if math.Abs(w-l.Weights[j]) > 1e-4 {
					t.Errorf("%s, %+v: weight %d is %v from another start, and %v", name, s, j, w, l.Weights[j])
				}
			}
		}
	}
}

// Levels share their weights: where rows of one level tell nothing, other levels do.
func TestFitLevels(t *testing.T) {
	x, _ := clouds(6, 300, 2, 0)
	for i := range x.Rows {
		x.Row(i)[1] = x.Row(i)[0] // the same twice, which penalties share
	}
	all, side := sides(x), []int(nil)
	for i := range x.Rows {
		side = append(side, all[3*i])
	}
	one, err := FitLogistic(t.Context(), x, side, LogisticSettings{C: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	same, err := FitLogisticLevels(t.Context(), x, side, 1, LogisticSettings{C: 0.1})
	if err != nil || same.Bias != one.Bias || !slices.Equal(same.Weights, one.Weights) {
		t.Errorf("of one level %+v, error %v; want %+v", same, err, one)
	}
	three, err := FitLogisticLevels(t.Context(), x, all, 3, LogisticSettings{C: 0.1, Start: one})
	if err != nil {
		t.Fatal(err)
	}
	gradient := make([]float64, 5)
	l := newLoss(x, 3, all, LogisticSettings{C: 0.1})
	p, theta := l.newPlace(), []float64{three.Weights[0], three.Weights[1], three.Bias, 0, 0}
	for range 200 { // the biases of the other levels, each by steps of its own
		l.times(p.margin, theta)
		l.measure(p, theta)
		l.slope(gradient, theta, p)
		for k := 3; k < 5; k++ {
			var curvature float64
			for i := range x.Rows {
				curvature += l.curvature[3*i+k-2]
			}
			theta[k] -= gradient[k] / curvature
		}
	}
	if n := norm(gradient); n > 1e-4 {
		t.Errorf("gradient %v at %+v", n, theta)
	}
	if three.Weights[0] <= one.Weights[0] || math.Abs(three.Weights[0]-three.Weights[1]) > 1e-4 {
		t.Errorf("weights %v of three levels, %v of one", three.Weights, one.Weights)
	}
}

// Without columns the probability is the share of class 1; balanced, a half.
func TestWithoutColumns(t *testing.T) {
	x, y := NewMatrix(10, 0), []int{1, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	for want, s := range map[float64]LogisticSettings{0.2: {}, 0.5: {Balanced: true}} {
		l, err := FitLogistic(t.Context(), x, y, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Probability(nil); math.Abs(got-want) > 1e-4 {
			t.Errorf("%+v: %v, want %v", s, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	x, y := clouds(1, 20, 2, 1)
	bad := Matrix{Rows: 20, Cols: 2, Data: append([]float32{}, x.Data...)}
	bad.Data[7] = float32(math.NaN())
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		x    Matrix
		y    []int
		want error
	}{
		"one class": {t.Context(), x, make([]int, 20), ErrOneClass},
		"NaN":       {t.Context(), bad, y, ErrNotFinite},
		"stopped":   {stopped, x, y, context.Canceled},
	} {
		if _, err := FitLogistic(tc.ctx, tc.x, tc.y, LogisticSettings{}); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkFit(b *testing.B) {
	x, y := clouds(13, 100_000, 700, 0.2)
	for b.Loop() {
		if _, err := FitLogistic(b.Context(), x, y, LogisticSettings{}); err != nil {
			b.Fatal(err)
		}
	}
}
