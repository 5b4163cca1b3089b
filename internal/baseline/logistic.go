package baseline

import (
	"cmp"
	"context"
	"math"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// Logistic is a logistic regression: class 1 has the probability σ(Bias + Weights·x).
type Logistic struct {
	Bias    float64
	Weights []float64
}

// LogisticSettings say how a logistic regression is fitted.
type LogisticSettings struct {
	C        float64 // by how much rows count against the penalty; 0 stands for 1
	Balanced bool    // rows of class k count N/(2·N_k) instead of 1
}

const (
	newtonSteps = 100
	cgSteps     = 250 // for each step of Newton's
	// leastGradient is the norm of the gradient at which the fit is done. The penalty's
	// curvature is 1, so the weights are then at most that far from the optimum.
	leastGradient = 1e-5
)

// FitLogistic returns the logistic regression that minimises
//
//	½·|w|² + C·Σ_i s_i·ln(1 + exp(−(2y_i−1)·(b + w·x_i)))
//
// on the rows of x, which are finite, of classes 0 and 1; s_i is 1 or the class weight. It
// takes the columns as they are, so standardise them first. Newton's steps are solved by
// conjugate gradients, which needs no memory but a few vectors. It returns an error that
// wraps ErrOneClass or ErrNotFinite, or the error of ctx.
//
// Source: C.-J. Lin, R. Weng and S. Keerthi, "Trust Region Newton Method for Large-Scale
// Logistic Regression", JMLR 9, 2008, §2; steps are halved here instead of a trust region.
func FitLogistic(ctx context.Context, x dbn.Matrix, y []int, s LogisticSettings) (*Logistic, error) {
	if err := check(x, y); err != nil {
		return nil, err
	}
	l := newLogisticLoss(x, y, s)
	theta := make([]float64, x.Cols+1) // the bias is last
	gradient, step := make([]float64, len(theta)), make([]float64, len(theta))
	margin, along := make([]float64, x.Rows), make([]float64, x.Rows)
	first := 0.0
	for n := range newtonSteps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		value := l.at(theta, margin, gradient)
		size := norm(gradient)
		if n == 0 {
			first = size
		}
		if size <= leastGradient {
			break
		}
		l.solve(step, gradient, min(0.1, math.Sqrt(size/first))*size)
		l.times(along, step)
		slope := dot(gradient, step)
		t := 1.0
		for ; t > 1e-10 && l.along(theta, step, margin, along, t) > value+1e-4*t*slope; t /= 2 {
		}
		if t <= 1e-10 { // no step is less: this is the optimum, as far as rounding goes
			break
		}
		for j := range theta {
			theta[j] += t * step[j]
		}
	}
	p := x.Cols
	return &Logistic{Bias: theta[p], Weights: theta[:p:p]}, nil
}

// Probability returns the probability of class 1.
func (l *Logistic) Probability(row []float32) float64 {
	return logistic(l.Bias + dotRow(row, l.Weights))
}

// logisticLoss is what is minimised.
type logisticLoss struct {
	x         dbn.Matrix
	sign      []float64 // −1 or 1 by row
	weight    []float64 // C·s_i by row
	curvature []float64 // by row, where at was called last
}

func newLogisticLoss(x dbn.Matrix, y []int, s LogisticSettings) *logisticLoss {
	l := &logisticLoss{x: x, sign: make([]float64, x.Rows), weight: make([]float64, x.Rows), curvature: make([]float64, x.Rows)}
	n := counts(y)
	for i, class := range y {
		l.sign[i], l.weight[i] = float64(2*class-1), cmp.Or(s.C, 1)
		if s.Balanced {
			l.weight[i] *= float64(len(y)) / (2 * float64(n[class]))
		}
	}
	return l
}

// at returns the loss at theta and stores the margins, the gradient and the curvatures.
func (l *logisticLoss) at(theta, margin, gradient []float64) float64 {
	p := l.x.Cols
	copy(gradient, theta[:p])
	gradient[p] = 0
	value := dot(theta[:p], theta[:p]) / 2
	for i := range l.x.Rows {
		row := l.x.Row(i)
		margin[i] = theta[p] + dotRow(row, theta[:p])
		wrong := logistic(-l.sign[i] * margin[i]) // probability of the other class
		value += l.weight[i] * softplus(-l.sign[i]*margin[i])
		l.curvature[i] = l.weight[i] * wrong * (1 - wrong)
		g := -l.sign[i] * l.weight[i] * wrong
		addRow(gradient[:p], row, g)
		gradient[p] += g
	}
	return value
}

// along returns the loss t steps on, given the margins and by how much each changes in a step.
func (l *logisticLoss) along(theta, step, margin, change []float64, t float64) float64 {
	var value float64
	for j := range l.x.Cols {
		v := theta[j] + t*step[j]
		value += v * v / 2
	}
	for i, m := range margin {
		value += l.weight[i] * softplus(-l.sign[i]*(m+t*change[i]))
	}
	return value
}

// times stores in out by how much v changes the margin of each row.
func (l *logisticLoss) times(out, v []float64) {
	p := l.x.Cols
	for i := range out {
		out[i] = v[p] + dotRow(l.x.Row(i), v[:p])
	}
}

// hessian stores the second derivative times v in out.
func (l *logisticLoss) hessian(out, v []float64) {
	p := l.x.Cols
	copy(out, v[:p])
	out[p] = 0
	for i, d := range l.curvature {
		if d == 0 {
			continue
		}
		row := l.x.Row(i)
		z := d * (v[p] + dotRow(row, v[:p]))
		addRow(out[:p], row, z)
		out[p] += z
	}
}

// solve stores in step the solution of Hessian·step = −gradient, up to a residual of the given
// norm, by conjugate gradients.
func (l *logisticLoss) solve(step, gradient []float64, tolerance float64) {
	residual, direction, product := make([]float64, len(step)), make([]float64, len(step)), make([]float64, len(step))
	for j, g := range gradient {
		step[j], residual[j], direction[j] = 0, -g, -g
	}
	square := dot(residual, residual)
	for n := 0; n < cgSteps && math.Sqrt(square) > tolerance; n++ {
		l.hessian(product, direction)
		curvature := dot(direction, product)
		if curvature <= 0 { // flat in the bias alone, where all rows are sure
			if n == 0 {
				copy(step, residual)
			}
			return
		}
		a := square / curvature
		for j := range step {
			step[j] += a * direction[j]
			residual[j] -= a * product[j]
		}
		last := square
		square = dot(residual, residual)
		for j := range direction {
			direction[j] = residual[j] + square/last*direction[j]
		}
	}
}

func logistic(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// softplus returns ln(1 + e^v).
func softplus(v float64) float64 { return max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))) }

func norm(v []float64) float64 { return math.Sqrt(dot(v, v)) }

func dot(a, b []float64) (sum float64) {
	for j, v := range a {
		sum += v * b[j]
	}
	return sum
}

// dotRow returns row·v.
func dotRow(row []float32, v []float64) float64 {
	v = v[:len(row)]
	var a, b, c, d float64
	j := 0
	for ; j+4 <= len(row); j += 4 {
		r, w := row[j:j+4:j+4], v[j:j+4:j+4]
		a += float64(r[0]) * w[0]
		b += float64(r[1]) * w[1]
		c += float64(r[2]) * w[2]
		d += float64(r[3]) * w[3]
	}
	for ; j < len(row); j++ {
		a += float64(row[j]) * v[j]
	}
	return a + b + (c + d)
}

// addRow adds s·row to dst.
func addRow(dst []float64, row []float32, s float64) {
	dst = dst[:len(row)]
	for j, v := range row {
		dst[j] += s * float64(v)
	}
}
