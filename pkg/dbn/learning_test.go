package dbn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// modelStatistics returns <vhᵀ>, <v> and <h> under the RBM's own law, by summing
// over hidden states: P(h) is proportional to Σ_v exp(-E(v,h)).
func (t *tiny) modelStatistics() (vh [][]float64, v, h []float64) {
	vh, v, h = make([][]float64, len(t.a)), make([]float64, len(t.a)), make([]float64, len(t.b))
	for i := range vh {
		vh[i] = make([]float64, len(t.b))
	}
	var z float64
	for _, s := range states(len(t.b)) {
		logP := 0.0
		for j, y := range s {
			logP += t.b[j] * y
		}
		for i, a := range t.a {
			in := a
			for j, y := range s {
				in += t.w[i][j] * y
			}
			if t.visible == Gaussian {
				logP += (in*in - a*a) / 2
			} else {
				logP += softplus(in)
			}
		}
		p := math.Exp(logP)
		z += p
		mean := t.reconstruct(s)
		for j, y := range s {
			h[j] += p * y
			for i := range mean {
				vh[i][j] += p * y * mean[i]
			}
		}
		for i := range mean {
			v[i] += p * mean[i]
		}
	}
	for i := range v {
		v[i] /= z
		for j := range h {
			vh[i][j] /= z
		}
	}
	for j := range h {
		h[j] /= z
	}
	return vh, v, h
}

// Persistent chains forget where they began: many of them, after many steps,
// give the exact gradient of the log-likelihood, which CD-1 does not.
func TestPersistentChainsReachTheModel(t *testing.T) {
	for _, unit := range []Unit{Bernoulli, Gaussian} {
		tn := newTiny(unit, 4, 3, rand.New(rand.NewPCG(7, 1)))
		for i := range tn.w {
			for j := range tn.w[i] {
				if unit == Gaussian { // whose chains would take long between modes
					tn.w[i][j] = float64(float32(tn.w[i][j] / 2))
				}
			}
		}
		const rows = 1 << 15
		data := []float64{1, 0, 1, 0}
		x := NewMatrix(rows, 4)
		for i := range rows {
			copy(x.Row(i), []float32{1, 0, 1, 0})
		}
		vh, v, h := tn.modelStatistics()
		worst := func(persistent bool) float64 {
			c := newContrast(tn.rbm(), rows, 2, 8)
			defer c.team.close()
			set := PretrainSettings{Steps: 1}
			if persistent {
				c.startChains(rows, rand.New(rand.NewPCG(3, 1)))
				for range 30 { // they go on from call to call
					c.gradient(x, ordered(rows), set)
				}
			}
			g, _ := c.gradient(x, ordered(rows), set)
			var most float64
			on := tn.hidden(data)
			for i := range v {
				most = max(most, math.Abs(float64(g.dVisible[i])/rows-(v[i]-data[i])))
				for j := range h {
					most = max(most, math.Abs(float64(g.dWeights[i*3+j])/rows-(vh[i][j]-data[i]*on[j])))
				}
			}
			for j := range h {
				most = max(most, math.Abs(float64(g.dHidden[j])/rows-(h[j]-on[j])))
			}
			return most
		}
		// The standard error of a mean over 2¹⁵ chains is below 0.01; the seed is
		// fixed, so this never fails by luck.
		if d := worst(true); d > 0.04 {
			t.Errorf("%s: the gradient of persistent chains is off by %v", unit, d)
		}
		if d := worst(false); d < 0.1 {
			t.Errorf("%s: CD-1 is off by %v only: the test cannot tell them apart", unit, d)
		}
	}
}

func TestPersistentRaisesLikelihood(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	data := twoModes(400, rng)
	r := newRBM(matrixOf(data), 4, Bernoulli, rng)
	h, err := trainAlone(r, matrixOf(data), PretrainSettings{Epochs: 300, Batch: 50, Persistent: true, Rate: 0.02, Momentum: -1}, rng)
	if err != nil {
		t.Fatal(err)
	}
	if got := tinyOf(r).logLikelihood(data); got < -2.9 {
		t.Errorf("log-likelihood %v", got)
	}
	// The error reported is of the rows' own reconstructions, not of chains.
	if first, last := h.ReconstructionError[0], h.ReconstructionError[299]; !(last < 0.8*first) {
		t.Errorf("reconstruction error %v in the first epoch, %v in the last", first, last)
	}
}

// penalty is λ·Σ_j (q_j - p)² from its definition.
func (t *tiny) penalty(data [][]float64, target, cost float64) float64 {
	var sum float64
	for j := range t.b {
		var q float64
		for _, v := range data {
			q += t.hidden(v)[j] / float64(len(data))
		}
		sum += cost * (q - target) * (q - target)
	}
	return sum
}

// The slope of the sparsity penalty, held to central differences.
func TestSparsityGradient(t *testing.T) {
	for _, unit := range []Unit{Bernoulli, Gaussian} {
		tn := newTiny(unit, 4, 3, rand.New(rand.NewPCG(12, 1)))
		data := [][]float64{{1, 0, 1, 0}, {0.5, 1, 0.25, 1}, {0, 0, 1, 1}}
		const target, cost = 0.1, 3.0
		gradient := func(set PretrainSettings) *contrastShard {
			c := newContrast(tn.rbm(), len(data), 1, 5) // equal seeds: only the penalty differs
			g, _ := c.gradient(matrixOf(data), ordered(len(data)), set)
			return g
		}
		with, without := gradient(PretrainSettings{Steps: 1, Sparsity: target, SparsityCost: cost}), gradient(PretrainSettings{Steps: 1})
		check := func(what string, got float32, p *float64) {
			const d = 1e-5
			v := *p
			*p = v + d
			up := tn.penalty(data, target, cost)
			*p = v - d
			down := tn.penalty(data, target, cost)
			*p = v
			if want := (up - down) / (2 * d); math.Abs(float64(got)/float64(len(data))-want) > 2e-6 {
				t.Errorf("%s: %s = %v, want %v", unit, what, float64(got)/float64(len(data)), want)
			}
		}
		for j := range tn.b {
			check("db", with.dHidden[j]-without.dHidden[j], &tn.b[j])
			for i := range tn.a {
				check("dW", with.dWeights[i*3+j]-without.dWeights[i*3+j], &tn.w[i][j])
			}
		}
		if !slices.Equal(with.dVisible, without.dVisible) {
			t.Errorf("%s: the penalty moves visible biases", unit)
		}
	}
}

// Units learn to be on as often as asked.
func TestSparsityTarget(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	x := matrixOf(twoModes(300, rng))
	activity := func(s PretrainSettings) float64 {
		s.Epochs = 60
		r := newRBM(x, 8, Bernoulli, rand.New(rand.NewPCG(1, 1)))
		if _, err := trainAlone(r, x, s, rand.New(rand.NewPCG(2, 1))); err != nil {
			t.Fatal(err)
		}
		var sum float64
		for _, p := range r.hidden(x).Data {
			sum += float64(p)
		}
		return sum / float64(8*x.Rows)
	}
	free, sparse := activity(PretrainSettings{}), activity(PretrainSettings{Sparsity: 0.1, SparsityCost: 5})
	if math.Abs(sparse-0.1) > 0.05 || free < 0.3 {
		t.Errorf("mean activity %v, with a target of 0.1 %v", free, sparse)
	}
}

// A step of plain descent is down the slope of mean loss + decay/2·Σw², which
// is held to central differences; biases are not decayed.
func TestDecayGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	widths := []int{3, 4, 2}
	n := &Network{layers: randomLayers(3, widths[1:], rng)}
	data, y := [][]float64{{1, -1, 0.5}, {0, 2, 1}, {-1, 0, 0}}, []int{0, 1, 1}
	const decay, rate = 0.3, 0.5
	var params [][]float64
	for _, l := range n.layers {
		var p []float64
		for _, v := range l.weights.Data {
			p = append(p, float64(v))
		}
		for _, v := range l.bias {
			p = append(p, float64(v))
		}
		params = append(params, p)
	}
	loss := func() float64 {
		sum := crossEntropy(params, widths, data, y, []float64{1, 1}) / float64(len(data))
		for l := range params {
			for _, w := range params[l][:widths[l]*widths[l+1]] {
				sum += decay / 2 * w * w
			}
		}
		return sum
	}
	b := newBackprop(n, len(data), 1, []float64{1, 1})
	g, _ := b.gradient(matrixOf(data), y, ordered(len(data)))
	b.momentum(g, len(data), rate, FineTuneSettings{Decay: decay})
	for l := range params {
		moved := append(slices.Clone(n.layers[l].weights.Data), n.layers[l].bias...)
		for i, p := range params[l] {
			const d = 1e-5
			params[l][i] = p + d
			up := loss()
			params[l][i] = p - d
			down := loss()
			params[l][i] = p
			if got, want := (p-float64(moved[i]))/rate, (up-down)/(2*d); math.Abs(got-want) > 2e-6 {
				t.Errorf("layer %d, weight %d: slope %v, want %v", l, i, got, want)
			}
		}
	}
}

// Training stops when the validation rows have had enough and keeps the best
// network, the one that training for just so long gives.
func TestEarlyStopping(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 1))
	noisy := func(n int) (Matrix, []int) {
		x, y := exclusiveOr(n, rng)
		for i := range y {
			if rng.Float64() < 0.25 {
				y[i] = 1 - y[i]
			}
		}
		return x, y
	}
	x, y := noisy(60)
	v, labels := noisy(200)
	s := Settings{Hidden: []int{20}, Pretrain: PretrainSettings{Epochs: -1}, FineTune: FineTuneSettings{
		Rate: 0.05, Epochs: 400, Decay: -1, Validation: v, Labels: labels, Patience: 15}}
	var last [2]int
	s.Progress = func(_ string, done, total int) { last = [2]int{done, total} }
	n, h, err := Train(context.Background(), x, y, 2, s)
	if err != nil {
		t.Fatal(err)
	}
	if h.Kept < 2 || len(h.Validation) != h.Kept+15 || len(h.Loss) != len(h.Validation) {
		t.Fatalf("kept epoch %d of %d", h.Kept, len(h.Validation))
	}
	if last != [2]int{400, 400} {
		t.Errorf("the last progress is %v", last)
	}
	if got, want := n.loss(v, labels, []float64{1, 1}), slices.Min(h.Validation); got != want || h.Validation[h.Kept-1] != want {
		t.Errorf("loss of the network kept %v, the least was %v", got, want)
	}
	if end := h.Validation[len(h.Validation)-1]; end < 1.02*slices.Min(h.Validation) {
		t.Errorf("validation loss %v at the end: it never rose, so the test shows nothing", end)
	}
	s.FineTune.Validation, s.FineTune.Labels = Matrix{}, nil
	if _, h, err = Train(context.Background(), x, y, 2, s); err != nil || h.Kept != 400 || h.Validation != nil {
		t.Errorf("without validation rows: kept %d, %v, error %v", h.Kept, h.Validation, err)
	}
}

func TestValidationRefused(t *testing.T) {
	x, y := exclusiveOr(20, rand.New(rand.NewPCG(16, 1)))
	for want, f := range map[string]FineTuneSettings{
		"1 labels for 20 validation rows": {Validation: x, Labels: []int{0}},
		"validation row 2: label 7":       {Validation: x, Labels: append([]int{0, 0, 7}, y[3:]...)},
		"validation rows of 3 features":   {Validation: NewMatrix(20, 3), Labels: y},
		"fine_tune.patience: -1":          {Patience: -1},
	} {
		if _, _, err := Train(context.Background(), x, y, 2, Settings{FineTune: f}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, p := range map[string]PretrainSettings{
		"pretrain.sparsity: 1: ":     {Sparsity: 1},
		"pretrain.sparsity_cost: -1": {SparsityCost: -1},
	} {
		if err := (Settings{Pretrain: p}).Check(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := (Settings{}).Check(2); err != nil {
		t.Error(err)
	}
}

// Temper divides what goes into the softmax.
func TestTemper(t *testing.T) {
	x, y := exclusiveOr(60, rand.New(rand.NewPCG(17, 1)))
	n, _, err := Train(context.Background(), x, y, 2, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(n.NewScorer().Posterior(x.Row(0)))
	warm := n.Temper(2).NewScorer()
	for i := range x.Rows {
		p, q := n.NewScorer().Posterior(x.Row(i)), warm.Posterior(x.Row(i))
		a, b := math.Log(float64(p[1])/float64(p[0])), math.Log(float64(q[1])/float64(q[0]))
		if math.Abs(a-2*b) > 1e-4*(1+math.Abs(a)) {
			t.Fatalf("row %d: log odds %v, at temperature 2 %v", i, a, b)
		}
	}
	if !slices.Equal(before, n.NewScorer().Posterior(x.Row(0))) {
		t.Error("the network itself was changed")
	}
}

// Unweigh takes the weights' logarithms from the log posteriors.
func TestUnweigh(t *testing.T) {
	x, y := exclusiveOr(60, rand.New(rand.NewPCG(17, 1)))
	n, _, err := Train(context.Background(), x, y, 2, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(n.NewScorer().Posterior(x.Row(0)))
	plain := n.Unweigh([]float64{0.5, 6}).NewScorer()
	for i := range x.Rows {
		p, q := n.NewScorer().Posterior(x.Row(i)), plain.Posterior(x.Row(i))
		a, b := math.Log(float64(p[1])/float64(p[0])), math.Log(float64(q[1])/float64(q[0]))
		if math.Abs(a-math.Log(12)-b) > 1e-4*(1+math.Abs(a)) {
			t.Fatalf("row %d: log odds %v, unweighed %v", i, a, b)
		}
	}
	if !slices.Equal(before, n.NewScorer().Posterior(x.Row(0))) {
		t.Error("the network itself was changed")
	}
}
