package dbn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Logistic regressions are of two classes, 0 and 1, with a penalty of the squared weights and a free bias.

// Errors that callers test for.
var (
	// ErrOneClass: rows are of one class only.
	ErrOneClass = errors.New("rows of one class only")
	// ErrNotFinite: a value is NaN or infinite.
	ErrNotFinite = errors.New("a value is not finite")
)

// CheckLogistic reports rows that no method for two classes can be fitted to, by an error that
// wraps ErrOneClass or ErrNotFinite. It panics if x and y differ in length, or if a class
// is neither 0 nor 1.
func CheckLogistic(x Matrix, y []int) error {
	if x.Rows != len(y) || len(x.Data) != x.Rows*x.Cols {
		panic(fmt.Sprintf("logistic: %d values, %d rows of %d columns, %d classes", len(x.Data), x.Rows, x.Cols, len(y)))
	}
	for i, class := range y {
		if class < 0 || class > 1 {
			panic(fmt.Sprintf("logistic: row %d: class %d is neither 0 nor 1", i, class))
		}
	}
	if n := counts(y); n[0] == 0 || n[1] == 0 {
		return fmt.Errorf("%d rows of class 0 and %d of class 1: %w", n[0], n[1], ErrOneClass)
	}
	if i := slices.IndexFunc(x.Data, func(v float32) bool { return v != v || math.IsInf(float64(v), 0) }); i >= 0 {
		return fmt.Errorf("row %d, column %d: %v: %w", i/x.Cols, i%x.Cols, x.Data[i], ErrNotFinite)
	}
	return nil
}

func counts(y []int) (n [2]int) {
	for _, class := range y {
		n[class]++
	}
	return n
}

// Logistic is a logistic regression: class 1 has the probability σ(Bias + Weights·x).
type Logistic struct {
	Bias    float64
	Weights []float64
	Levels  []float64 // of FitLogisticLevels, the bias of each level, Bias first
}

// LogisticSettings say how a logistic regression is fitted.
type LogisticSettings struct {
	C        float64   // by how much rows count against the penalty; 0 stands for 1
	Balanced bool      // rows of class k count N/(2·N_k) instead of 1
	Start    *Logistic // near the optimum, if known: fewer steps; nil: no weight and no bias. As many weights as columns
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
func FitLogistic(ctx context.Context, x Matrix, y []int, s LogisticSettings) (*Logistic, error) {
	if err := CheckLogistic(x, y); err != nil {
		return nil, fmt.Errorf("logistic: %w", err)
	}
	return newLoss(x, 1, y, s).least(ctx, s.Start)
}

// FitLogisticLevels returns the logistic regression of the first of some levels of what grows with the rows, as FitLogistic does, with weights that serve
// all of them: each level k has a bias b_k of its own, and what is minimised is
//
//	½·|w|² + C·Σ_i Σ_k ln(1 + exp(−(2y_ik−1)·(b_k + w·x_i))),
//
// with y_ik, at side[i·levels+k], 1 where row i is at level k or above it, otherwise 0. At each level there are rows of both, and
// values are finite; it does not check either. It returns the error of ctx.
//
// Source: J. Rennie and N. Srebro, "Loss Functions for Preference Levels", IJCAI workshop on preference handling, 2005, §4.2 (all
// thresholds).
func FitLogisticLevels(ctx context.Context, x Matrix, side []int, levels int, s LogisticSettings) (*Logistic, error) {
	return newLoss(x, levels, side, s).least(ctx, s.Start)
}

// least returns the regression of the least loss, whose bias is the first level's.
func (l *loss) least(ctx context.Context, start *Logistic) (*Logistic, error) {
	p := l.x.Cols
	theta := make([]float64, p+l.levels) // the biases are last
	now, next := l.newPlace(), l.newPlace()
	if start != nil {
		copy(theta, start.Weights)
		for k := range l.levels {
			theta[p+k] = start.Bias
		}
		if len(start.Levels) == l.levels {
			copy(theta[p:], start.Levels)
		}
		l.times(now.margin, theta)
	}
	l.measure(now, theta)
	gradient, step, there := make([]float64, len(theta)), make([]float64, len(theta)), make([]float64, len(theta))
	along := l.newPlace().margin
	first := 0.0
	for n := range newtonSteps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.slope(gradient, theta, now)
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
		for ; t > 1e-10; t /= 2 {
			for j := range theta {
				there[j] = theta[j] + t*step[j]
			}
			for i, m := range now.margin {
				next.margin[i] = m + t*along[i]
			}
			if l.measure(next, there); next.loss <= now.loss+1e-4*t*slope {
				break
			}
		}
		if t <= 1e-10 { // no step is less: this is the optimum, as far as rounding goes
			break
		}
		theta, there, now, next = there, theta, next, now
	}
	return &Logistic{Bias: theta[p], Weights: theta[:p:p], Levels: theta[p:]}, nil
}

// Probability returns the probability of class 1.
func (m *Logistic) Probability(row []float32) float64 {
	return sigmoid(m.Bias + dotRow(row, m.Weights))
}

// loss is what is minimised.
type loss struct {
	x         Matrix
	levels    int
	y         []int      // by row and level, row by row
	weight    [2]float64 // C·s by class
	curvature []float64  // by row and level, where slope was called last
}

// place is a choice of biases and weights.
type place struct {
	loss   float64
	margin []float64 // by row and level: b + w·x
	small  []float64 // by row and level: e^(−|margin|)
}

func newLoss(x Matrix, levels int, y []int, s LogisticSettings) *loss {
	l := &loss{x: x, levels: levels, y: y, curvature: make([]float64, len(y))}
	n := counts(y)
	for class := range l.weight {
		l.weight[class] = cmp.Or(s.C, 1)
		if s.Balanced {
			l.weight[class] *= float64(len(y)) / (2 * float64(n[class]))
		}
	}
	return l
}

func (l *loss) newPlace() *place {
	return &place{margin: make([]float64, len(l.y)), small: make([]float64, len(l.y))}
}

// measure fills in what follows from the margins of p, where bias and weights are theta. A row has the loss
// ln(1 + e^v) = max(v, 0) + ln(1 + e^(−|v|)); the last logarithms of many rows are taken at once, of a product.
func (l *loss) measure(p *place, theta []float64) {
	var sums [2]float64
	products := [2]float64{1, 1}
	for i, m := range p.margin {
		class := l.y[i]
		e := math.Exp(-math.Abs(m))
		p.small[i] = e
		sums[class] += max(m*float64(1-2*class), 0)
		if products[class] *= 1 + e; products[class] > 1e300 {
			sums[class] += math.Log(products[class])
			products[class] = 1
		}
	}
	w := theta[:l.x.Cols]
	p.loss = dot(w, w) / 2
	for class, sum := range sums {
		p.loss += l.weight[class] * (sum + math.Log(products[class]))
	}
}

// slope stores the gradient at p, where biases and weights are theta, and the curvatures of the rows.
func (l *loss) slope(gradient, theta []float64, p *place) {
	cols := l.x.Cols
	copy(gradient, theta[:cols])
	clear(gradient[cols:])
	for i := range l.x.Rows {
		var row float64
		for k := range l.levels {
			g := l.slopeAt(p, i*l.levels+k)
			gradient[cols+k] += g
			row += g
		}
		addRow(gradient[:cols], l.x.Row(i), row)
	}
}

// slopeAt returns the derivative by the margin of a row at a level, and stores its curvature.
func (l *loss) slopeAt(p *place, at int) float64 {
	class, e := l.y[at], p.small[at]
	sign := float64(2*class - 1)
	wrong := e / (1 + e) // probability of the class that is less likely
	if sign*p.margin[at] < 0 {
		wrong = 1 / (1 + e)
	}
	l.curvature[at] = l.weight[class] * e / ((1 + e) * (1 + e))
	return -sign * l.weight[class] * wrong
}

// times stores in out by how much v changes the margins of each row.
func (l *loss) times(out, v []float64) {
	p := l.x.Cols
	for i := range l.x.Rows {
		d := dotRow(l.x.Row(i), v[:p])
		for k, b := range v[p:] {
			out[i*l.levels+k] = b + d
		}
	}
}

// hessian stores the second derivative times v in out.
func (l *loss) hessian(out, v []float64) {
	p := l.x.Cols
	copy(out, v[:p])
	clear(out[p:])
	for i := range l.x.Rows {
		curvature := l.curvature[i*l.levels : (i+1)*l.levels]
		if flat(curvature) {
			continue
		}
		row := l.x.Row(i)
		along, sum := dotRow(row, v[:p]), 0.0
		for k, d := range curvature {
			z := d * (v[p+k] + along)
			out[p+k] += z
			sum += z
		}
		addRow(out[:p], row, sum)
	}
}

func flat(curvature []float64) bool {
	for _, d := range curvature {
		if d != 0 {
			return false
		}
	}
	return true
}

// solve stores in step the solution of Hessian·step = −gradient, up to a residual of the given
// norm, by conjugate gradients.
func (l *loss) solve(step, gradient []float64, tolerance float64) {
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

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

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
