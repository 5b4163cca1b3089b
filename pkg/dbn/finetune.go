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
// notes the losses in c. weights has the weight of a row of each class. Arguments
// were checked.
func fineTune(ctx context.Context, n *Network, f *feed, weights []float64, s Settings, random *rand.PCG, c *course) error {
	t := &tuning{
		network: n, feed: f, weights: weights, set: s.FineTune, history: c.history, random: random, rng: rand.New(random),
		least: math.Inf(1), backprop: newBackprop(n, min(s.FineTune.Batch, f.rows), s.Workers, weights),
	}
	defer t.backprop.team.close()
	if err := c.resume(true, t.archive); err != nil {
		return err
	}
	for epoch := len(t.history.Loss); epoch < t.set.Epochs; epoch++ {
		if err := t.descend(ctx, epoch); err != nil {
			return err
		}
		stop := t.validate()
		if s.Progress != nil {
			done := epoch + 1
			if stop {
				done = t.set.Epochs
			}
			s.Progress("finetune", done, t.set.Epochs)
		}
		if stop {
			break
		}
		if epoch+1 < t.set.Epochs {
			if err := c.checkpoint(true, t.archive); err != nil {
				return err
			}
		}
	}
	if t.kept != nil {
		n.layers = t.kept
	}
	return nil
}

// tuning is a fine-tuning under way.
type tuning struct {
	network  *Network
	feed     *feed
	weights  []float64 // of a row of each class
	set      FineTuneSettings
	history  *History
	random   *rand.PCG // behind rng
	rng      *rand.Rand
	backprop *backprop
	least    float64 // loss of the validation rows
	kept     []layer // of the epoch with it
}

// archive is for all that the next epoch depends on.
func (t *tuning) archive(a *archive) {
	h := t.history
	t.backprop.archive(a)
	a.random(t.random)
	a.series(&h.Loss)
	a.series(&h.Validation)
	a.int(&h.Kept)
	a.float(&t.least)
	any := t.kept != nil
	if a.flag(&any); any {
		if t.kept == nil {
			t.kept = cloneLayers(t.network.layers)
		}
		a.layers(t.kept...)
	}
}

// descend trains for an epoch and notes its loss.
func (t *tuning) descend(ctx context.Context, epoch int) error {
	step := t.backprop.adam
	if t.set.Method == sgd {
		step = t.backprop.momentum
	}
	rate := t.set.Rate * (1 - 0.9*float64(epoch)/float64(max(t.set.Epochs-1, 1)))
	var loss float64
	err := t.feed.epoch(ctx, t.rng, func(x Matrix, y, order []int) error {
		for from := 0; from < len(order); from += t.set.Batch {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			rows := order[from:min(from+t.set.Batch, len(order))]
			gradient, more := t.backprop.gradient(x, y, rows)
			loss += more
			step(gradient, len(rows), rate, t.set)
		}
		return nil
	})
	if err != nil {
		return err
	}
	loss /= float64(t.feed.rows)
	if math.IsNaN(loss) || math.IsInf(loss, 0) || !t.network.finite() {
		return fmt.Errorf("dbn: fine-tuning, epoch %d: %w: lower the rate or scale the features", epoch+1, ErrDiverged)
	}
	t.history.Loss = append(t.history.Loss, loss)
	return nil
}

// validate notes the loss of the validation rows, if there are any, and keeps the best
// network. It reports whether training ends early.
func (t *tuning) validate() (stop bool) {
	h := t.history
	h.Kept = len(h.Loss)
	if t.set.Validation.Rows == 0 {
		return false
	}
	v := t.network.loss(t.set.Validation, t.set.Labels, t.weights)
	h.Validation = append(h.Validation, v)
	if v < t.least {
		t.least, t.kept = v, cloneLayers(t.network.layers)
	}
	h.Kept = 1 + slices.Index(h.Validation, t.least)
	return len(h.Loss)-h.Kept >= t.set.Patience
}

// loss returns the mean weighted cross-entropy of rows of classes y.
func (n *Network) loss(x Matrix, y []int, weights []float64) float64 {
	p := NewMatrix(x.Rows, n.Classes())
	n.PosteriorTo(p, x)
	var sum float64
	for i, label := range y {
		sum -= weights[label] * math.Log(max(float64(p.Row(i)[label]), math.SmallestNonzeroFloat32))
	}
	return sum / float64(x.Rows)
}

func cloneLayers(layers []layer) []layer {
	c := make([]layer, len(layers))
	for i, l := range layers {
		c[i] = newLayer(l.weights.Rows, l.weights.Cols)
		copy(c[i].weights.Data, l.weights.Data)
		copy(c[i].bias, l.bias)
	}
	return c
}

func (n *Network) finite() bool {
	return !slices.ContainsFunc(n.layers, func(l layer) bool { return !finite(l.weights.Data) || !finite(l.bias) })
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

// backprop computes the gradient of the loss of a batch by every weight, and
// holds the state of the optimizer.
type backprop struct {
	network *Network
	weights []float64 // of a row of each class, mean 1
	team    *team
	shards  []backpropShard
	learn   func(shard int) // shards[shard].gradient of the batch under way
	x       Matrix
	y       []int
	rows    []int
	layers  []descent
	steps   int // of Adam
}

// backpropShard is what a shard of a batch needs for itself.
type backpropShard struct {
	values   [][]float32 // values[l] goes into layer l, N×In; the last are the posteriors, N×K
	deltas   [][]float32 // by the inputs of the units of layer l, N×Out
	gradient []layer
	labels   []int
	loss     float64
}

// descent is two running averages of the gradient of one layer; the first
// serves as velocity of plain momentum.
type descent struct {
	first, second layer
}

func newBackprop(n *Network, batch, workers int, weights []float64) *backprop {
	b := &backprop{network: n, weights: weights, team: newTeam(workers), shards: make([]backpropShard, shards(batch))}
	b.learn = func(shard int) {
		from, to := part(len(b.rows), shard)
		b.shards[shard].gradientOf(b.network, b.weights, b.x, b.y, b.rows[from:to])
	}
	rows := roomFor(batch)
	for i := range b.shards {
		s := &b.shards[i]
		s.labels = make([]int, rows)
		s.values = append(s.values, make([]float32, rows*n.Inputs()))
		for _, l := range n.layers {
			in, out := l.weights.Rows, l.weights.Cols
			s.values = append(s.values, make([]float32, rows*out))
			s.deltas = append(s.deltas, make([]float32, rows*out))
			s.gradient = append(s.gradient, newLayer(in, out))
		}
	}
	for _, l := range n.layers {
		in, out := l.weights.Rows, l.weights.Cols
		b.layers = append(b.layers, descent{newLayer(in, out), newLayer(in, out)})
	}
	return b
}

// archive is for all that the next step depends on.
func (b *backprop) archive(a *archive) {
	a.layers(b.network.layers...)
	for _, d := range b.layers {
		a.layers(d.first, d.second)
	}
	a.int(&b.steps)
}

// gradient returns the gradient of the loss Σ w[y]·(-ln P(y|x)) over the given
// rows, by layer, and that loss.
func (b *backprop) gradient(x Matrix, y []int, rows []int) (sum []layer, loss float64) {
	b.x, b.y, b.rows = x, y, rows
	n := shards(len(rows))
	b.team.run(n, b.learn)
	sum, loss = b.shards[0].gradient, b.shards[0].loss
	for i := 1; i < n; i++ {
		s := &b.shards[i]
		for l, g := range s.gradient {
			kernel.AddRows(sum[l].weights.Data, g.weights.Data)
			kernel.AddRows(sum[l].bias, g.bias)
		}
		loss += s.loss
	}
	return sum, loss
}

// gradientOf is the gradient of backprop for one shard.
func (s *backpropShard) gradientOf(network *Network, weights []float64, x Matrix, y []int, rows []int) {
	s.loss = 0
	for _, g := range s.gradient {
		clear(g.bias)
	}
	for op := kernel.TransA; len(rows) > 0; op |= kernel.Add {
		n := min(len(rows), chunk)
		s.add(op, network, weights, x, y, rows[:n])
		rows = rows[n:]
	}
}

// add adds the loss and the gradient of a chunk of rows; op says whether there
// is a gradient of weights to add to.
func (s *backpropShard) add(op kernel.Op, network *Network, weights []float64, x Matrix, y []int, rows []int) {
	layers, n := network.layers, len(rows)
	last := len(layers) - 1

	x.gather(s.values[0], rows)
	for i, r := range rows {
		s.labels[i] = y[r]
	}
	for i, l := range layers {
		in, out := l.weights.Rows, l.weights.Cols
		l.forward(Matrix{n, out, s.values[i+1][:n*out]}, Matrix{n, in, s.values[i][:n*in]})
		if i < last {
			kernel.Sigmoid(s.values[i+1][:n*out])
		}
	}

	// The derivative of -ln softmax(z)[y] by z is softmax(z) - onehot(y).
	classes := network.Classes()
	for i, label := range s.labels[:n] {
		p := s.values[last+1][i*classes : (i+1)*classes]
		z := float64(p[label])
		w := weights[label]
		s.loss += w * (softmax(p) - z)
		delta := s.deltas[last][i*classes : (i+1)*classes]
		for j, v := range p {
			delta[j] = float32(w) * v
		}
		delta[label] = float32(w) * (p[label] - 1)
	}

	for i := last; i >= 0; i-- {
		in, out := layers[i].weights.Rows, layers[i].weights.Cols
		values, delta, g := s.values[i][:n*in], s.deltas[i][:n*out], s.gradient[i]
		kernel.Gemm(op, in, out, n, values, delta, nil, g.weights.Data)
		kernel.AddRows(g.bias, delta)
		if i > 0 {
			below := s.deltas[i-1][:n*in]
			kernel.Gemm(kernel.TransB, n, in, out, delta, layers[i].weights.Data, nil, below)
			kernel.SigmoidGrad(below, values)
		}
	}
}

// momentum makes one step of stochastic gradient descent with momentum from the
// gradient of the given number of rows.
func (b *backprop) momentum(gradient []layer, rows int, rate float64, s FineTuneSettings) {
	step := kernel.MomentumStep{Rate: float32(rate), Momentum: float32(s.Momentum), Scale: 1 / float32(rows)}
	for i, l := range b.network.layers {
		d, g := &b.layers[i], gradient[i]
		step.Decay = float32(s.Decay)
		kernel.Momentum(l.weights.Data, d.first.weights.Data, g.weights.Data, &step)
		step.Decay = 0
		kernel.Momentum(l.bias, d.first.bias, g.bias, &step)
	}
}

// adam makes one step of Adam with the constants that its authors advise.
func (b *backprop) adam(gradient []layer, rows int, rate float64, s FineTuneSettings) {
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
		d, g := &b.layers[i], gradient[i]
		step.Decay = float32(s.Decay)
		kernel.Adam(l.weights.Data, d.first.weights.Data, d.second.weights.Data, g.weights.Data, &step)
		step.Decay = 0
		kernel.Adam(l.bias, d.first.bias, d.second.bias, g.bias, &step)
	}
}
