package main

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// logistic is an L2-regularised logistic regression with both classes of equal
// weight, the simplest classifier that there is to compare with. It standardises
// columns by its training rows; a missing value counts as their mean.
type logistic struct {
	mean, scale []float64 // by column
	weights     []float64 // by column, the intercept last
}

// logisticDecay is the weight of |w|²/2, of all weights but the intercept, next to
// the mean loss.
const logisticDecay = 0.01

// fitLogistic fits a regression of the classes y, healthy or not, to the given
// rows of x, by Newton's method (T. Hastie, R. Tibshirani, J. Friedman, "The
// Elements of Statistical Learning", 2nd ed., §4.4.1). Both classes must be among
// them.
func fitLogistic(x dbn.Matrix, y, rows []int) *logistic {
	d := x.Cols
	l := &logistic{mean: make([]float64, d), scale: make([]float64, d), weights: make([]float64, d+1)}
	l.fitScale(x, rows)
	var of [2]float64
	for _, i := range rows {
		of[min(y[i], 1)]++
	}
	z := make([]float64, d+1)
	hessian, gradient := mat.NewSymDense(d+1, nil), make([]float64, d+1)
	var chol mat.Cholesky
	step := mat.NewVecDense(d+1, nil)
	for range 25 {
		hessian.Zero()
		for j, w := range l.weights {
			gradient[j] = logisticDecay * w
			hessian.SetSym(j, j, logisticDecay)
		}
		gradient[d] = 0
		hessian.SetSym(d, d, 1e-9)
		for _, i := range rows {
			l.standardise(z, x.Row(i))
			class := min(y[i], 1)
			p, weight := l.probability(z), 0.5/of[class]
			for j, v := range z {
				gradient[j] += weight * (p - float64(class)) * v
			}
			hessian.SymRankOne(hessian, weight*p*(1-p), mat.NewVecDense(d+1, z))
		}
		if !chol.Factorize(hessian) {
			panic("simulator: logistic regression: the Hessian is not positive definite")
		}
		if err := chol.SolveVecTo(step, mat.NewVecDense(d+1, gradient)); err != nil && math.IsNaN(mat.Norm(step, 2)) {
			panic("simulator: logistic regression: " + err.Error())
		}
		size := mat.Norm(step, 2)
		for j := range l.weights {
			l.weights[j] -= step.AtVec(j)
		}
		if size < 1e-8 {
			break
		}
	}
	return l
}

// fitScale learns the mean and the scale of each column.
func (l *logistic) fitScale(x dbn.Matrix, rows []int) {
	count := make([]float64, x.Cols)
	for _, i := range rows {
		for j, v := range x.Row(i) {
			if v == v {
				l.mean[j] += float64(v)
				count[j]++
			}
		}
	}
	for j := range l.mean {
		l.mean[j] /= max(count[j], 1)
	}
	for _, i := range rows {
		for j, v := range x.Row(i) {
			if v == v {
				e := float64(v) - l.mean[j]
				l.scale[j] += e * e
			}
		}
	}
	for j, s := range l.scale {
		if l.scale[j] = 0; s > 0 {
			l.scale[j] = math.Sqrt(count[j] / s)
		}
	}
}

func (l *logistic) standardise(z []float64, row []float32) {
	for j, v := range row {
		if z[j] = 0; v == v {
			z[j] = (float64(v) - l.mean[j]) * l.scale[j]
		}
	}
	z[len(row)] = 1
}

func (l *logistic) probability(z []float64) float64 {
	s := 0.
	for j, v := range z {
		s += l.weights[j] * v
	}
	return 1 / (1 + math.Exp(-s))
}

// logisticGMean returns the G-mean of regressions on the rows that each fold holds out.
func logisticGMean(x dbn.Matrix, y []int, folds []classify.Fold) float64 {
	var truth, decisions []int
	z := make([]float64, x.Cols+1)
	for _, f := range folds {
		l := fitLogistic(x, y, f.Train)
		for _, i := range f.Test {
			l.standardise(z, x.Row(i))
			truth = append(truth, y[i])
			decision := classify.Healthy
			if l.probability(z) >= 0.5 {
				decision = 1
			}
			decisions = append(decisions, decision)
		}
	}
	return float64(score.Assess(truth, decisions, nil, 2).GMean)
}
