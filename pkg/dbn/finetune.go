package dbn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
)

// fineTune trains all layers of n to minimise the weighted cross-entropy and
// returns the mean loss by epoch. Weights are those of the rows of each class.
// Arguments were checked.
func fineTune(ctx context.Context, n *Network, x Matrix, y []int, weights []float64, s Settings, rng *rand.Rand) ([]float64, error) {
	set := s.FineTune
	b := newBackprop(n, min(set.Batch, x.Rows), weights)
	descend := b.adam
	if set.Method == sgd {
		descend = b.momentum
	}
	order := ordered(x.Rows)
	losses := make([]float64, 0, set.Epochs)
	for epoch := range set.Epochs {
		shuffle(order, rng)
		rate := set.Rate * (1 - 0.9*float64(epoch)/float64(max(set.Epochs-1, 1)))
		var loss float64
		for from := 0; from < x.Rows; from += set.Batch {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			rows := order[from:min(from+set.Batch, x.Rows)]
			loss += b.gradient(x, y, rows)
			descend(len(rows), rate, set)
		}
		loss /= float64(x.Rows)
		if math.IsNaN(loss) || math.IsInf(loss, 0) || !n.finite() {
			return nil, fmt.Errorf("dbn: fine-tuning, epoch %d: %w: lower the rate or scale the features", epoch+1, ErrDiverged)
		}
		losses = append(losses, loss)
		if s.Progress != nil {
			s.Progress("finetune", epoch+1, set.Epochs)
		}
	}
	return losses, nil
}

func (n *Network) finite() bool {
	for _, l := range n.layers {
		if !finite(l.weights.Data) || !finite(l.bias) {
			return false
		}
	}
	return true
}

// classWeights returns the weight of a row of each class, divided by the mean
// weight of the rows: a weight of 2 then does to a step over all rows what a
// second copy of the row would do. Nil weights count as all 1. It reports
// weights that are zero for every row.
func classWeights(weights []float64, y []int, classes int) ([]float64, error) {
	if weights == nil {
		weights = slices.Repeat([]float64{1}, classes)
	}
	var sum float64
	for _, label := range y {
		sum += weights[label]
	}
	if sum == 0 {
		return nil, fmt.Errorf("dbn: every class that has rows has weight zero: nothing would be learnt")
	}
	w := make([]float64, classes)
	for j := range w {
		w[j] = weights[j] * float64(len(y)) / sum
	}
	return w, nil
}

// backprop holds the gradient of the loss of a batch by every weight, and the
// state of the optimizer.
type backprop struct {
	network *Network
	weights []float64   // of a row of each class, mean 1
	values  [][]float32 // values[l] goes into layer l, B×In; the last are the posteriors, B×K
	deltas  [][]float32 // by the inputs of the units of layer l, B×Out
	layers  []descent
	steps   int // of Adam
}

// descent is the gradient of one layer and two running averages of it; the
// first serves as velocity of plain momentum.
type descent struct {
	gradient, first, second layer
}

func newBackprop(n *Network, batch int, weights []float64) *backprop {
	b := &backprop{network: n, weights: weights}
	b.values = append(b.values, make([]float32, batch*n.Inputs()))
	for _, l := range n.layers {
		in, out := l.weights.Rows, l.weights.Cols
		b.values = append(b.values, make([]float32, batch*out))
		b.deltas = append(b.deltas, make([]float32, batch*out))
		b.layers = append(b.layers, descent{newLayer(in, out), newLayer(in, out), newLayer(in, out)})
	}
	return b
}

// gradient stores the gradient of the loss Σ w[y]·(-ln P(y|x)) over the given
// rows and returns that loss.
func (b *backprop) gradient(x Matrix, y []int, rows []int) float64 {
	layers, n := b.network.layers, len(rows)
	last := len(layers) - 1

	x.gather(b.values[0], rows)
	for i, l := range layers {
		in, out := l.weights.Rows, l.weights.Cols
		l.forward(Matrix{n, out, b.values[i+1][:n*out]}, Matrix{n, in, b.values[i][:n*in]})
		if i < last {
			kernel.Sigmoid(b.values[i+1][:n*out])
		}
	}

	// The derivative of -ln softmax(z)[y] by z is softmax(z) - onehot(y).
	var loss float64
	classes := b.network.Classes()
	for i, r := range rows {
		label, p := y[r], b.values[last+1][i*classes:(i+1)*classes]
		z := float64(p[label])
		w := b.weights[label]
		loss += w * (softmax(p) - z)
		delta := b.deltas[last][i*classes : (i+1)*classes]
		for j, v := range p {
			delta[j] = float32(w) * v
		}
		delta[label] = float32(w) * (p[label] - 1)
	}

	for i := last; i >= 0; i-- {
		in, out := layers[i].weights.Rows, layers[i].weights.Cols
		values, delta, g := b.values[i][:n*in], b.deltas[i][:n*out], b.layers[i].gradient
		kernel.Gemm(kernel.TransA, in, out, n, values, delta, nil, g.weights.Data)
		kernel.SumRows(g.bias, delta)
		if i > 0 {
			below := b.deltas[i-1][:n*in]
			kernel.Gemm(kernel.TransB, n, in, out, delta, layers[i].weights.Data, nil, below)
			kernel.SigmoidGrad(below, values)
		}
	}
	return loss
}

// momentum makes one step of stochastic gradient descent with momentum from the
// gradient of the given number of rows.
func (b *backprop) momentum(rows int, rate float64, s FineTuneSettings) {
	step := kernel.MomentumStep{Rate: float32(rate), Momentum: float32(s.Momentum), Scale: 1 / float32(rows)}
	for i, l := range b.network.layers {
		d := &b.layers[i]
		step.Decay = float32(s.Decay)
		kernel.Momentum(l.weights.Data, d.first.weights.Data, d.gradient.weights.Data, &step)
		step.Decay = 0
		kernel.Momentum(l.bias, d.first.bias, d.gradient.bias, &step)
	}
}

// adam makes one step of Adam with the constants that its authors advise.
func (b *backprop) adam(rows int, rate float64, s FineTuneSettings) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	b.steps++
	root := math.Sqrt(1 - math.Pow(beta2, float64(b.steps)))
	step := kernel.AdamStep{
		Rate:    float32(rate * root / (1 - math.Pow(beta1, float64(b.steps)))),
		Epsilon: float32(epsilon * root),
		Beta1:   beta1,
		Beta2:   beta2,
		Scale:   1 / float32(rows),
	}
	for i, l := range b.network.layers {
		d := &b.layers[i]
		step.Decay = float32(s.Decay)
		kernel.Adam(l.weights.Data, d.first.weights.Data, d.second.weights.Data, d.gradient.weights.Data, &step)
		step.Decay = 0
		kernel.Adam(l.bias, d.first.bias, d.second.bias, d.gradient.bias, &step)
	}
}
