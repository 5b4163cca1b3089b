package dbn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/flank-tcm/flank/internal/kernel"
)

// LayerHistory is what was measured while one RBM was trained, by epoch.
type LayerHistory struct {
	// ReconstructionError is the root mean square difference between the
	// training rows and their reconstructions, taken as they were trained on.
	ReconstructionError []float64
	// FreeEnergyGap is the mean free energy of the validation rows minus the mean
	// of as many training rows, evenly spread. It grows when the RBM overfits.
	// Without validation rows it is empty. (The guide, §6.)
	FreeEnergyGap []float64
}

// train makes the RBM more likely to generate the rows of f by contrastive
// divergence. Settings were checked and have their defaults. It calls begin before
// the first epoch, which may bring back where a training stood, and epochDone after
// every epoch. Errors name the work by name. It returns an error that wraps
// ErrDiverged if weights do not stay finite, and the cause of ctx, between two
// batches, if that is done.
func (r *rbm) train(ctx context.Context, name string, f *feed, s PretrainSettings, workers int, rng *rand.Rand, begin func(*contrast, *LayerHistory) error, epochDone func() error) (*LayerHistory, error) {
	h := &LayerHistory{}
	c := newContrast(r, min(s.Batch, f.rows), workers, rng.Uint64())
	defer c.team.close()
	if s.Persistent {
		c.startChains(min(s.Batch, f.rows), rng)
	}
	if err := begin(c, h); err != nil {
		return nil, err
	}
	for epoch := len(h.ReconstructionError); epoch < s.Epochs; epoch++ {
		var squares float64
		err := f.epoch(ctx, rng, func(x Matrix, _, order []int) error {
			for from := 0; from < len(order); from += s.Batch {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				squares += c.step(x, order[from:min(from+s.Batch, len(order))], s, epoch)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if math.IsNaN(squares) || math.IsInf(squares, 0) || !r.finite() {
			return nil, fmt.Errorf("dbn: %s, epoch %d: %w: lower the rate or scale the features", name, epoch+1, ErrDiverged)
		}
		h.ReconstructionError = append(h.ReconstructionError, math.Sqrt(squares/float64(f.rows)/float64(f.cols)))
		if s.Validation.Rows > 0 {
			sample, err := f.sample(s.Validation.Rows)
			if err != nil {
				return nil, err
			}
			h.FreeEnergyGap = append(h.FreeEnergyGap, r.meanFreeEnergy(s.Validation)-r.meanFreeEnergy(sample))
		}
		if err := epochDone(); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (r *rbm) finite() bool {
	return finite(r.Weights.Data) && finite(r.VisibleBias) && finite(r.HiddenBias)
}

func (r *rbm) meanFreeEnergy(x Matrix) float64 {
	f := make([]float64, x.Rows)
	r.FreeEnergyTo(f, x)
	var sum float64
	for _, v := range f {
		sum += v
	}
	return sum / float64(len(f))
}

// contrast trains an RBM by contrastive divergence, CD-k: hidden units are
// sampled where a later step depends on them, and probabilities are used for
// reconstructions, for the last hidden units and in all statistics. (The guide,
// §3.)
//
// With persistent chains the k steps do not begin at the batch but where the
// last ones left off, so that vₖ comes ever closer to the RBM's own law; visible
// units are then sampled too. (T. Tieleman, "Training Restricted Boltzmann
// Machines using Approximations to the Likelihood Gradient", ICML 2008.)
type contrast struct {
	rbm    *rbm
	team   *team
	shards []contrastShard
	learn  func(shard int) // shards[shard].gradient of the batch under way
	x      Matrix
	rows   []int
	set    PretrainSettings
	chains []float32 // hidden states of the chains, B×H, sampled; nil if they do not persist

	uWeights, uVisible, uHidden []float32 // velocities of descent
}

// contrastShard is what a shard of a batch needs for itself.
type contrastShard struct {
	source  kernel.Lanes
	normal  *rand.Rand // noise of Gaussian visible units in chains, drawn from
	noise   *rand.PCG
	visible []float32 // reconstructions vₖ, below them the rows v₀: 2N×V
	hidden  []float32 // hₖ, below them -h₀: 2N×H
	states  []float32 // N×H, sampled
	squares float64

	// Gradients of what is minimised.
	dWeights, dVisible, dHidden []float32
}

func newContrast(r *rbm, batch, workers int, seed uint64) *contrast {
	v, h := r.Weights.Rows, r.Weights.Cols
	c := &contrast{
		rbm:      r,
		team:     newTeam(workers),
		shards:   make([]contrastShard, shards(batch)),
		uWeights: make([]float32, v*h),
		uVisible: make([]float32, v),
		uHidden:  make([]float32, h),
	}
	c.learn = func(shard int) {
		from, to := part(len(c.rows), shard)
		var chains []float32
		if c.chains != nil {
			chains = c.chains[from*h : to*h]
		}
		c.shards[shard].gradient(c.rbm, c.x, c.rows[from:to], chains, &c.set)
	}
	n := roomFor(batch)
	for i := range c.shards {
		c.shards[i] = contrastShard{
			visible:  make([]float32, 2*n*v),
			hidden:   make([]float32, 2*n*h),
			states:   make([]float32, n*h),
			dWeights: make([]float32, v*h),
			dVisible: make([]float32, v),
			dHidden:  make([]float32, h),
		}
		c.shards[i].source.Seed(seed + uint64(i)<<32)
	}
	return c
}

// step learns from the given rows of x and returns the sum of the squared
// differences between them and their reconstructions.
func (c *contrast) step(x Matrix, rows []int, s PretrainSettings, epoch int) float64 {
	d, squares := c.gradient(x, rows, s)
	rate, momentum := s.Rate, s.Momentum
	if c.rbm.Visible == Gaussian {
		rate /= 10
	}
	if epoch < 5 {
		momentum = min(momentum, 0.5)
	}
	u := kernel.MomentumStep{Rate: float32(rate), Momentum: float32(momentum), Scale: 1 / float32(len(rows))}
	kernel.Momentum(c.rbm.VisibleBias, c.uVisible, d.dVisible, &u)
	kernel.Momentum(c.rbm.HiddenBias, c.uHidden, d.dHidden, &u)
	u.Decay = float32(s.Decay)
	kernel.Momentum(c.rbm.Weights.Data, c.uWeights, d.dWeights, &u)
	return squares
}

// gradient returns, in the first shard, the estimate of the gradient of
// -Σ ln P(v₀), summed over the given rows v₀ of x,
//
//	dW = vₖᵀhₖ - v₀ᵀ(h₀-s),  da = Σ vₖ-v₀,  db = Σ hₖ-h₀+s,
//
// where s is the slope of the penalty of activity, see sparsify, and Σ |v₀-vₖ|²,
// with the reconstruction v₁ for vₖ if chains persist.
func (c *contrast) gradient(x Matrix, rows []int, set PretrainSettings) (sum *contrastShard, squares float64) {
	c.x, c.rows, c.set = x, rows, set
	n := shards(len(rows))
	c.team.run(n, c.learn)
	sum = &c.shards[0]
	squares = sum.squares
	for i := 1; i < n; i++ {
		s := &c.shards[i]
		kernel.AddRows(sum.dWeights, s.dWeights)
		kernel.AddRows(sum.dVisible, s.dVisible)
		kernel.AddRows(sum.dHidden, s.dHidden)
		squares += s.squares
	}
	return sum, squares
}

// gradient computes the gradient of one shard, whose chains are N×H or nil.
func (s *contrastShard) gradient(r *rbm, x Matrix, rows []int, chains []float32, set *PretrainSettings) {
	clear(s.dVisible)
	clear(s.dHidden)
	s.squares = 0
	for op := kernel.TransA; len(rows) > 0; op |= kernel.Add {
		n := min(len(rows), chunk)
		if chains == nil {
			s.add(op, r, x, rows[:n], nil, set)
		} else {
			s.add(op, r, x, rows[:n], chains[:n*r.Weights.Cols], set)
			chains = chains[n*r.Weights.Cols:]
		}
		rows = rows[n:]
	}
}

// add adds the gradient of a chunk of rows; op says whether there is anything to
// add to. One product of the stacked batches gives dW.
func (s *contrastShard) add(op kernel.Op, r *rbm, x Matrix, rows []int, chains []float32, set *PretrainSettings) {
	n, v, h := len(rows), r.Weights.Rows, r.Weights.Cols
	visible, hidden, states := s.visible[:2*n*v], s.hidden[:2*n*h], s.states[:n*h]
	vk, v0 := Matrix{n, v, visible[:n*v]}, Matrix{n, v, visible[n*v:]}
	hk, h0 := Matrix{n, h, hidden[:n*h]}, Matrix{n, h, hidden[n*h:]}

	x.gather(v0.Data, rows)
	r.hiddenInput(h0, v0)
	kernel.SigmoidSample(states, h0.Data, &s.source)
	if chains != nil {
		r.VisibleTo(vk, Matrix{n, h, states})
		s.squares += kernel.SquaredDistance(v0.Data, vk.Data)
		states = chains
	}
	for step := range set.Steps {
		r.VisibleTo(vk, Matrix{n, h, states})
		if chains != nil {
			s.roughen(vk, r.Visible)
		}
		r.hiddenInput(hk, vk)
		if step == set.Steps-1 && chains == nil {
			kernel.Sigmoid(hk.Data)
		} else {
			kernel.SigmoidSample(states, hk.Data, &s.source)
		}
	}

	if chains == nil {
		s.squares += kernel.SquaredDistance(v0.Data, vk.Data)
	}
	kernel.AddRows(s.dVisible, vk.Data)
	kernel.SubRows(s.dVisible, v0.Data)
	sparsify(h0, set.Sparsity, set.SparsityCost)
	kernel.AddRows(s.dHidden, hidden)
	kernel.Gemm(op, v, h, 2*n, visible, hidden, nil, s.dWeights)
}

// sparsify replaces hidden probabilities h by -h + s, where
//
//	s[n,j] = 2λ·(q_j - p)·h[n,j]·(1 - h[n,j]),  q_j = mean_n h[n,j],
//
// is N times the derivative of the penalty λ·Σ_j (q_j - p)² by the input of unit
// j for row n, p the target and λ the cost. Without a target s is 0. (H. Lee, C.
// Ekanadham and A. Ng, "Sparse Deep Belief Net Model for Visual Area V2", NIPS
// 2007, eq. 3.) The mean is over the rows of h: a batch of up to 64, or a part of
// a larger one.
func sparsify(h Matrix, target, cost float64) {
	if target == 0 {
		kernel.Negate(h.Data)
		return
	}
	for j := range h.Cols {
		var q float64
		for i := j; i < len(h.Data); i += h.Cols {
			q += float64(h.Data[i])
		}
		slope := 2 * cost * (q/float64(h.Rows) - target)
		for i := j; i < len(h.Data); i += h.Cols {
			p := float64(h.Data[i])
			h.Data[i] = float32(slope*p*(1-p) - p)
		}
	}
}

// startChains begins n persistent chains with hidden units at random.
func (c *contrast) startChains(n int, rng *rand.Rand) {
	c.chains = make([]float32, n*c.rbm.Weights.Cols)
	for i := range c.chains {
		c.chains[i] = float32(rng.IntN(2))
	}
	for i := range c.shards {
		c.shards[i].noise = rand.NewPCG(rng.Uint64(), uint64(i))
		c.shards[i].normal = rand.New(c.shards[i].noise)
	}
}

// archive is for all that the next step depends on.
func (c *contrast) archive(a *archive) {
	r := c.rbm
	for _, x := range [][]float32{r.Weights.Data, r.VisibleBias, r.HiddenBias, c.uWeights, c.uVisible, c.uHidden, c.chains} {
		a.floats(x)
	}
	for i := range c.shards {
		a.lanes(&c.shards[i].source)
		if c.chains != nil {
			a.random(c.shards[i].noise)
		}
	}
}

// roughen replaces the means of visible units by draws: means would lose what
// keeps a chain moving.
func (s *contrastShard) roughen(v Matrix, unit Unit) {
	if unit == Bernoulli {
		kernel.Sample(v.Data, v.Data, &s.source)
		return
	}
	for i := range v.Data {
		v.Data[i] += float32(s.normal.NormFloat64())
	}
}

// ordered returns 0, 1, …, n-1.
func ordered(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

func shuffle(order []int, rng *rand.Rand) {
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
}
