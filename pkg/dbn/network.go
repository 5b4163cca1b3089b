package dbn

import (
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
)

// Network is a trained deep belief network: hidden layers of logistic units
// below a softmax layer. It never changes once trained, so any number of
// goroutines may use it; each needs its own Scorer. The zero value is only good
// for UnmarshalBinary.
type Network struct {
	layers []layer // the softmax layer last; never empty in a network that can be used
}

// layer is one step of the forward pass: values times weights, In×Out, plus bias.
type layer struct {
	weights Matrix
	bias    []float32
}

func newLayer(in, out int) layer {
	return layer{NewMatrix(in, out), make([]float32, out)}
}

// Inputs returns the number of features of a row.
func (n *Network) Inputs() int { return n.layers[0].weights.Rows }

// Classes returns the number K of classes.
func (n *Network) Classes() int { return n.layers[len(n.layers)-1].weights.Cols }

// Layers returns the number of units of every layer: the inputs first, then the
// hidden layers from below, the classes last.
func (n *Network) Layers() []int {
	widths := []int{n.Inputs()}
	for _, l := range n.layers {
		widths = append(widths, l.weights.Cols)
	}
	return widths
}

// Temper returns the network with the posteriors of n at temperature t,
// P_t(y=j|x) proportional to P(y=j|x)^(1/t): the softmax layer's weights and
// biases divided by t. It shares the layers below with n. It panics unless t is
// positive. (C. Guo et al., "On Calibration of Modern Neural Networks", ICML
// 2017, §4.2.)
func (n *Network) Temper(t float64) *Network {
	mustMatch(t > 0 && !math.IsInf(t, 0), "temperature %v", t)
	last := len(n.layers) - 1
	top := newLayer(n.layers[last].weights.Rows, n.Classes())
	for i, w := range n.layers[last].weights.Data {
		top.weights.Data[i] = float32(float64(w) / t)
	}
	for j, b := range n.layers[last].bias {
		top.bias[j] = float32(float64(b) / t)
	}
	return &Network{layers: append(slices.Clone(n.layers[:last]), top)}
}

// ScaleInputs returns the network that says of x what n says of w∘x, whose inputs
// are multiplied by w: the lowest layer's weights are multiplied instead. It shares
// the layers above with n. It panics unless w has one finite number for each input.
func (n *Network) ScaleInputs(w []float64) *Network {
	low := n.layers[0]
	mustMatch(len(w) == low.weights.Rows, "%d scales of %d inputs", len(w), low.weights.Rows)
	scaled := layer{weights: NewMatrix(low.weights.Rows, low.weights.Cols), bias: low.bias}
	for i, s := range w {
		mustMatch(!math.IsNaN(s) && !math.IsInf(s, 0), "scale %v of input %d", s, i)
		row := scaled.weights.Row(i)
		for j, v := range low.weights.Row(i) {
			row[j] = float32(float64(v) * s)
		}
	}
	return &Network{layers: append([]layer{scaled}, n.layers[1:]...)}
}

// WidenInputs returns the network of so many inputs that says of x what n says of the inputs of x at the given places,
// which are n's in their order: the others have weight 0 in the lowest layer. It shares the biases and the layers above with n. It panics
// unless there is a place for each input of n, from 0 to inputs-1.
func (n *Network) WidenInputs(inputs int, places []int) *Network {
	low := n.layers[0]
	mustMatch(len(places) == low.weights.Rows, "%d places of %d inputs", len(places), low.weights.Rows)
	wide := layer{weights: NewMatrix(inputs, low.weights.Cols), bias: low.bias}
	for i, at := range places {
		copy(wide.weights.Row(at), low.weights.Row(i))
	}
	return &Network{layers: append([]layer{wide}, n.layers[1:]...)}
}

// Unweigh returns the network that says what n, trained with the given class
// weights, would say had each row counted alike: its posteriors are n's
// divided by the weights, P'(y=j|x) proportional to P(y=j|x)/w_j, which is ln w_j
// less in the softmax layer's biases. It shares the layers below and the softmax
// layer's weights with n. It panics unless there is a positive weight for each
// class. (M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the Outputs of a
// Classifier to New a Priori Probabilities", Neural Computation 14, 2002, eq. 4.)
func (n *Network) Unweigh(weights []float64) *Network {
	mustMatch(len(weights) == n.Classes(), "%d weights of %d classes", len(weights), n.Classes())
	last := len(n.layers) - 1
	top := layer{weights: n.layers[last].weights, bias: slices.Clone(n.layers[last].bias)}
	for j, w := range weights {
		mustMatch(w > 0 && !math.IsInf(w, 0), "weight %v of class %d", w, j)
		top.bias[j] -= float32(math.Log(w))
	}
	return &Network{layers: append(slices.Clone(n.layers[:last]), top)}
}

// PosteriorTo stores in dst, N×K, the posteriors P(y=j|x) of every row of x,
// N×Inputs. Each row of dst sums to 1 up to rounding and depends on its row of x
// alone; a row with a NaN gives NaN. It panics if the shapes do not agree.
func (n *Network) PosteriorTo(dst, x Matrix) {
	mustMatch(dst.Rows == x.Rows && dst.Cols == n.Classes() && x.Cols == n.Inputs(),
		"posteriors %d×%d of rows %d×%d by a network of %v", dst.Rows, dst.Cols, x.Rows, x.Cols, n.Layers())
	s := n.newScorer(min(x.Rows, chunk))
	for from := 0; from < x.Rows; from += chunk {
		to := min(from+chunk, x.Rows)
		s.forward(x.rows(from, to), dst.rows(from, to))
	}
}

// Scorer computes posteriors row by row without allocating. It is not safe for
// concurrent use; several scorers of one network are.
type Scorer struct {
	network   *Network
	ping      []float32
	pong      []float32
	posterior []float32
}

// NewScorer returns a Scorer with its own scratch memory.
func (n *Network) NewScorer() *Scorer { return n.newScorer(1) }

// newScorer returns a Scorer for up to the given number of rows at a time.
func (n *Network) newScorer(rows int) *Scorer {
	width := 0
	for _, l := range n.layers[:len(n.layers)-1] {
		width = max(width, l.weights.Cols)
	}
	return &Scorer{
		network:   n,
		ping:      make([]float32, rows*width),
		pong:      make([]float32, rows*width),
		posterior: make([]float32, n.Classes()),
	}
}

// Posterior returns P(y=j|row) for each class j, the same bits as PosteriorTo.
// The result is valid until the next call. It panics if row is not as long as
// the network has inputs.
func (s *Scorer) Posterior(row []float32) []float32 {
	if len(row) != s.network.Inputs() { // plain, because mustMatch allocates its arguments even when all is well
		mustMatch(false, "a row of %d features for a network of %d", len(row), s.network.Inputs())
	}
	k := len(s.posterior)
	s.forward(Matrix{1, len(row), row}, Matrix{1, k, s.posterior})
	return s.posterior
}

// forward stores the posteriors of x in dst. x has no more rows than s has room for.
func (s *Scorer) forward(x, dst Matrix) {
	last := len(s.network.layers) - 1
	for i, l := range s.network.layers {
		out := dst
		if i < last {
			out = Matrix{x.Rows, l.weights.Cols, s.ping[:x.Rows*l.weights.Cols]}
			s.ping, s.pong = s.pong, s.ping
		}
		l.forward(out, x)
		if i < last {
			kernel.Sigmoid(out.Data)
		}
		x = out
	}
	for i := range dst.Rows {
		softmax(dst.Row(i))
	}
}

// forward stores in dst the values x times weights plus bias.
func (l layer) forward(dst, x Matrix) {
	w := l.weights
	kernel.Gemm(0, x.Rows, w.Cols, w.Rows, x.Data, w.Data, l.bias, dst.Data)
}

// softmax replaces every z[j] by exp(z[j])/Σexp(z) and returns ln Σexp(z).
func softmax(z []float32) float64 {
	top := z[0]
	for _, v := range z[1:] {
		top = max(top, v)
	}
	var sum float64
	for j, v := range z {
		e := 1.0
		if v != top { // with two classes, one exponential is enough
			e = math.Exp(float64(v) - float64(top))
		}
		z[j] = float32(e)
		sum += e
	}
	for j, e := range z {
		z[j] = float32(float64(e) / sum)
	}
	return float64(top) + math.Log(sum)
}

// Layer returns the weights, In×Out, and biases of a layer, from 0, the lowest:
// what goes into the next one is σ(x·W + b), for the last the softmax of it. They
// are the network's and must not be changed.
func (n *Network) Layer(i int) (weights Matrix, bias []float32) {
	return n.layers[i].weights, n.layers[i].bias
}
