package baseline

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// The gradient is the slope of the loss, and the second derivative the slope of the gradient.
func TestLogisticDerivatives(t *testing.T) {
	x, y := clouds(3, 30, 4, 1)
	l := newLogisticLoss(x, y, LogisticSettings{C: 2, Balanced: true})
	rng := rand.New(rand.NewPCG(1, 2))
	theta, v := make([]float64, 5), make([]float64, 5)
	for j := range theta {
		theta[j], v[j] = rng.NormFloat64(), rng.NormFloat64()
	}
	margin := make([]float64, 30)
	at := func(step float64) (float64, []float64) {
		moved, gradient := make([]float64, 5), make([]float64, 5)
		for j := range theta {
			moved[j] = theta[j] + step*v[j]
		}
		return l.at(moved, margin, gradient), gradient
	}
	const h = 1e-5
	after, slopeAfter := at(h)
	before, slopeBefore := at(-h)
	value, gradient := at(0)
	if got, want := dot(gradient, v), (after-before)/(2*h); math.Abs(got-want) > 1e-5*math.Abs(want) {
		t.Errorf("slope %v, differences %v", got, want)
	}
	second := make([]float64, 5)
	l.hessian(second, v)
	for j := range second {
		if want := (slopeAfter[j] - slopeBefore[j]) / (2 * h); math.Abs(second[j]-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("second derivative %d: %v, differences %v", j, second[j], want)
		}
	}
	change := make([]float64, 30)
	l.times(change, v)
	if math.Abs(l.along(theta, v, margin, change, 0)-value) > 1e-9 {
		t.Error("the loss along a step does not begin at the loss")
	}
	want, _ := at(0.5)
	at(0)
	if got := l.along(theta, v, margin, change, 0.5); math.Abs(got-want) > 1e-9 {
		t.Errorf("half a step on the loss is %v, want %v", got, want)
	}
}

// At the optimum the gradient vanishes, also where a column, or several, tell the classes
// apart without error, where columns are equal, and where values are far apart.
func TestLogisticOptimum(t *testing.T) {
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
			newLogisticLoss(x, y, s).at(append(append([]float64{}, l.Weights...), l.Bias), make([]float64, 80), gradient)
			if n := norm(gradient); n > 1e-4 {
				t.Errorf("%s, %+v: gradient %v", name, s, n)
			}
		}
	}
}

// Without columns the probability is the share of class 1; balanced, a half.
func TestLogisticWithoutColumns(t *testing.T) {
	x, y := dbn.NewMatrix(10, 0), []int{1, 1, 0, 0, 0, 0, 0, 0, 0, 0}
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
