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
	// FreeEnergyGap is the mean free energy of the validation rows minus that of
	// as many training rows, evenly spread. It grows when the RBM overfits. It
	// is empty if there are no validation rows. (The guide, §6.)
	FreeEnergyGap []float64
}

// Train makes the RBM more likely to generate the rows of x, N×V, by
// contrastive divergence. Zero fields of s take their defaults; epochs of -1
// leave the RBM as it is. It returns an error if s or x cannot be used, an
// error that wraps ErrDiverged if weights do not stay finite, and the cause of
// ctx, between two batches, if that is done.
func (r *RBM) Train(ctx context.Context, x Matrix, s PretrainSettings, rng *rand.Rand) (*LayerHistory, error) {
	s = s.withDefaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	f := newFeed(x, nil, r.Visible)
	if err := f.check("training"); err != nil {
		return nil, err
	}
	if x.Cols != r.Weights.Rows {
		return nil, fmt.Errorf("dbn: rows of %d features for %d visible units", x.Cols, r.Weights.Rows)
	}
	if err := checkValidation(s.Validation, x.Cols, r.Visible); err != nil {
		return nil, err
	}
	return r.train(ctx, "pre-training", f, s, 1, rng, func() {})
}

// train is Train after all checks. It calls epochDone after every epoch; name is
// that of the work for errors.
func (r *RBM) train(ctx context.Context, name string, f *feed, s PretrainSettings, workers int, rng *rand.Rand, epochDone func()) (*LayerHistory, error) {
	h := &LayerHistory{}
	c := newContrast(r, min(s.Batch, f.rows), workers, rng.Uint64())
	defer c.team.close()
	for epoch := range max(s.Epochs, 0) {
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
		epochDone()
	}
	return h, nil
}

func (r *RBM) finite() bool {
	return finite(r.Weights.Data) && finite(r.VisibleBias) && finite(r.HiddenBias)
}

func (r *RBM) meanFreeEnergy(x Matrix) float64 {
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
type contrast struct {
	rbm    *RBM
	team   *team
	shards []contrastShard
	learn  func(shard int) // shards[shard].gradient of the batch under way
	x      Matrix
	rows   []int
	steps  int

	uWeights, uVisible, uHidden []float32 // velocities of descent
}

// contrastShard is what a shard of a batch needs for itself.
type contrastShard struct {
	source  kernel.Lanes
	visible []float32 // reconstructions vₖ, below them the rows v₀: 2N×V
	hidden  []float32 // hₖ, below them -h₀: 2N×H
	states  []float32 // N×H, sampled
	squares float64

	// Gradients of what is minimised.
	dWeights, dVisible, dHidden []float32
}

func newContrast(r *RBM, batch, workers int, seed uint64) *contrast {
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
		c.shards[shard].gradient(c.rbm, c.x, c.rows[from:to], c.steps)
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
	d, squares := c.gradient(x, rows, s.Steps)
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
//	dW = vₖᵀhₖ - v₀ᵀh₀,  da = Σ vₖ-v₀,  db = Σ hₖ-h₀,
//
// and Σ |v₀-vₖ|².
func (c *contrast) gradient(x Matrix, rows []int, steps int) (sum *contrastShard, squares float64) {
	c.x, c.rows, c.steps = x, rows, steps
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

// gradient is that of contrast for one shard.
func (s *contrastShard) gradient(r *RBM, x Matrix, rows []int, steps int) {
	clear(s.dVisible)
	clear(s.dHidden)
	s.squares = 0
	for op := kernel.TransA; len(rows) > 0; op |= kernel.Add {
		n := min(len(rows), chunk)
		s.add(op, r, x, rows[:n], steps)
		rows = rows[n:]
	}
}

// add adds the gradient of a chunk of rows; op says whether there is anything to
// add to. One product of the stacked batches gives dW.
func (s *contrastShard) add(op kernel.Op, r *RBM, x Matrix, rows []int, steps int) {
	n, v, h := len(rows), r.Weights.Rows, r.Weights.Cols
	visible, hidden, states := s.visible[:2*n*v], s.hidden[:2*n*h], s.states[:n*h]
	vk, v0 := Matrix{n, v, visible[:n*v]}, Matrix{n, v, visible[n*v:]}
	hk, h0 := Matrix{n, h, hidden[:n*h]}, Matrix{n, h, hidden[n*h:]}

	x.gather(v0.Data, rows)
	r.hiddenInput(h0, v0)
	kernel.SigmoidSample(states, h0.Data, &s.source)
	for step := range steps {
		r.VisibleTo(vk, Matrix{n, h, states})
		r.hiddenInput(hk, vk)
		if step == steps-1 {
			kernel.Sigmoid(hk.Data)
		} else {
			kernel.SigmoidSample(states, hk.Data, &s.source)
		}
	}

	s.squares += kernel.SquaredDistance(v0.Data, vk.Data)
	kernel.AddRows(s.dVisible, vk.Data)
	kernel.SubRows(s.dVisible, v0.Data)
	kernel.Negate(h0.Data)
	kernel.AddRows(s.dHidden, hidden)
	kernel.Gemm(op, v, h, 2*n, visible, hidden, nil, s.dWeights)
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
