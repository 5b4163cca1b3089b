package dbn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

// History is what was measured while a network was trained.
type History struct {
	Pretrain []LayerHistory // one for each hidden layer, the lowest first; empty if there was no pre-training
	Loss     []float64      // by epoch of fine-tuning: the mean weighted cross-entropy of a row, in nats, without the penalty, taken as rows were trained on

	// Validation is the same of the validation rows after each epoch, and Kept
	// the number of epochs after which it was least, whose network Train
	// returned. Without validation rows it is empty and Kept all epochs.
	Validation []float64
	Kept       int
}

// Train trains a network on the rows of x, whose classes are y, in [0, classes).
// It keeps neither. It returns an error
//
//   - if the shapes, a label or a setting cannot be used,
//   - that wraps errNotFinite if x, or what is pre-trained on, holds a NaN or an infinity,
//   - that wraps errOneClass if all rows are of one class,
//   - that wraps ErrDiverged if the weights do not stay finite,
//   - that wraps ErrResume if s.Resume is not a state of this training, or the
//     error that s.Checkpoint returned,
//   - the cause of ctx if that is done; it is looked at between batches.
//
// A class may be absent from y as long as two others are there.
//
// Every epoch takes rows in another random order. Of more than 2²⁰ in memory,
// runs of 1 KiB are shuffled, and then the rows of each MiB of runs: a batch is
// made up of rows from all over, a few of which were neighbours.
//
// Rows that are not a Matrix are read again in every epoch. In memory are 128 MiB
// of them, which are shuffled together: 512 blocks of 128 KiB, evenly spread over
// all of them, and as much that is being read. A batch ends where they do. Visible
// biases are made of 10,000 rows, evenly spread.
func Train(ctx context.Context, x Rows, y []int, classes int, s Settings) (*Network, *History, error) {
	if err := s.Check(classes); err != nil {
		return nil, nil, err
	}
	s = s.withDefaults()
	return train(ctx, newFeed(x, y, s.Visible), classes, s)
}

// train is Train with settings that were checked.
func train(ctx context.Context, f *feed, classes int, s Settings) (*Network, *History, error) {
	if err := f.check("training"); err != nil {
		return nil, nil, err
	}
	if err := checkLabels(f.rows, f.y, classes); err != nil {
		return nil, nil, err
	}
	if v := s.FineTune; v.Validation.Rows > 0 {
		if err := checkValidation(v.Validation, f.cols, s.Visible); err != nil {
			return nil, nil, err
		}
		if len(v.Labels) != v.Validation.Rows {
			return nil, nil, fmt.Errorf("dbn: %d labels for %d validation rows", len(v.Labels), v.Validation.Rows)
		}
		for i, label := range v.Labels {
			if label < 0 || label >= classes {
				return nil, nil, fmt.Errorf("dbn: validation row %d: label %d: must be from 0 to %d", i, label, classes-1)
			}
		}
	}
	weights, err := classWeights(s.ClassWeights, f.y, classes)
	if err != nil {
		return nil, nil, err
	}
	history := &History{}
	c, err := newCourse(f, classes, s, history)
	if err != nil {
		return nil, nil, err
	}
	n := &Network{}
	if s.Pretrain.Epochs < 0 {
		n.layers = randomLayers(f.cols, s.Hidden, rand.New(stream(s.Seed, pretrainStream)))
	} else {
		below := f
		if s.Pretrain.Rows != nil {
			if below, err = newPretrainFeed(s, f.cols); err != nil {
				return nil, nil, err
			}
		}
		if n.layers, err = pretrain(ctx, below, s, c); err != nil {
			return nil, nil, err
		}
	}
	random := stream(s.Seed, fineTuneStream)
	n.layers = append(n.layers, randomLayers(s.Hidden[len(s.Hidden)-1], []int{classes}, rand.New(random))...)
	if err = fineTune(ctx, n, f, weights, s, random, c); err != nil {
		return nil, nil, err
	}
	return n, history, nil
}

// newPretrainFeed returns the feed of the rows that are pre-trained on instead of
// those with classes, which have cols features.
func newPretrainFeed(s Settings, cols int) (*feed, error) {
	f := newFeed(s.Pretrain.Rows, nil, s.Visible)
	if f.cols != cols {
		return nil, fmt.Errorf("dbn: rows of %d features to pre-train on, expected %d as in the others", f.cols, cols)
	}
	return f, f.check("pre-training")
}

func checkLabels(rows int, y []int, classes int) error {
	if classes < 2 || classes > maxWidth {
		return fmt.Errorf("dbn: %d classes: must be from 2 to %d", classes, maxWidth)
	}
	if len(y) != rows {
		return fmt.Errorf("dbn: %d labels for %d rows", len(y), rows)
	}
	several := false
	for i, label := range y {
		if label < 0 || label >= classes {
			return fmt.Errorf("dbn: row %d: label %d: must be from 0 to %d", i, label, classes-1)
		}
		several = several || label != y[0]
	}
	if !several {
		return fmt.Errorf("dbn: all %d rows are of class %d: %w: add rows of another", rows, y[0], errOneClass)
	}
	return nil
}

// Streams of random numbers. Each has its own, so that more epochs in one phase
// do not change what is drawn in another.
const (
	fineTuneStream = iota
	pretrainStream // and upwards, one for each layer
)

func stream(seed, number uint64) *rand.PCG { return rand.NewPCG(seed, number) }

// randomLayers returns a stack of layers with biases 0 and weights from a
// uniform law on ±√(2/(in+out)): the range that scikit-learn's multi-layer
// perceptron takes for logistic units, after X. Glorot and Y. Bengio,
// "Understanding the Difficulty of Training Deep Feedforward Neural Networks",
// AISTATS 2010.
func randomLayers(inputs int, widths []int, rng *rand.Rand) []layer {
	var layers []layer
	for _, width := range widths {
		l := newLayer(inputs, width)
		bound := math.Sqrt(2 / float64(inputs+width))
		for i := range l.weights.Data {
			l.weights.Data[i] = float32(bound * (2*rng.Float64() - 1))
		}
		layers = append(layers, l)
		inputs = width
	}
	return layers
}

// pretrain returns the hidden layers of a network, each trained as an RBM on
// the hidden probabilities of the one below. (Hinton et al. 2006, §5.) Layers and
// their histories are noted in c.
func pretrain(ctx context.Context, f *feed, s Settings, c *course) ([]layer, error) {
	if err := checkValidation(s.Pretrain.Validation, f.cols, s.Visible); err != nil {
		return nil, err
	}
	done, total := 0, len(s.Hidden)*s.Pretrain.Epochs
	inputs, visible, below := f.cols, s.Visible, s.Pretrain
	for l, hidden := range s.Hidden {
		if l < c.finished {
			if err := c.finishedLayer(newLayer(inputs, hidden)); err != nil {
				return nil, err
			}
			done += s.Pretrain.Epochs
			inputs = hidden
			continue
		}
		for f.depth < l {
			r := c.rbm(f.depth)
			f = f.through(r)
			if below.Validation.Rows > 0 {
				below.Validation = r.hidden(below.Validation)
			}
			visible = Bernoulli
		}
		random := stream(s.Seed, pretrainStream+uint64(l))
		rng := rand.New(random)
		typical, err := f.typical()
		if err != nil {
			return nil, err
		}
		r := newRBM(typical, hidden, visible, rng)
		var state func(*archive)
		begin := func(t *contrast, h *LayerHistory) error {
			state = func(a *archive) {
				if f != c.feed { // whose order every state has
					a.permutation(f.order)
				}
				t.archive(a)
				a.history(h)
				a.random(random)
			}
			err := c.resume(false, state)
			done += len(h.ReconstructionError)
			return err
		}
		h, err := r.train(ctx, fmt.Sprintf("pre-training layer %d", l+1), f, below, s.Workers, rng, begin, func() error {
			if done++; s.Progress != nil {
				s.Progress("pretrain", done, total)
			}
			return c.checkpoint(false, state)
		})
		if err != nil {
			return nil, err
		}
		c.layers = append(c.layers, layer{r.Weights, r.HiddenBias})
		c.history.Pretrain = append(c.history.Pretrain, *h)
		inputs = hidden
	}
	return c.layers, nil
}

// hidden returns the hidden probabilities of all rows of x.
func (r *rbm) hidden(x Matrix) Matrix {
	h := NewMatrix(x.Rows, r.Weights.Cols)
	for from := 0; from < x.Rows; from += chunk {
		to := min(from+chunk, x.Rows)
		r.HiddenTo(h.rows(from, to), x.rows(from, to))
	}
	return h
}
