package classify

import (
	"slices"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// inputs are what a network learns from: of the inputs that an encoder makes, times the weight of their
// column, those that can say something. One that is constant, or is multiplied by 0, gets no gradient of its own.
// Decay then shrinks its weights without an end, and the averages that an optimiser keeps of its gradients, until they
// are subnormal numbers, with which a processor reckons a hundred times as slowly.
type inputs struct {
	encoder *Encoder
	live    []int     // columns of the encoder that make these inputs, which ascend
	scales  []float64 // by column: what its inputs are multiplied by; nil: all 1
	count   int
}

// liveInputs returns what a network learns from where columns have the given weights, see scaleOf. A network has one
// input or more: where no column says anything it learns from all of them.
func (e *Encoder) liveInputs(weights []float64) inputs {
	in := inputs{encoder: e}
	if slices.Min(weights) < 1 || slices.Max(weights) > 1 {
		unit := scaleOf(weights, e.encoding.visible())
		for _, w := range weights {
			in.scales = append(in.scales, w*unit)
		}
	}
	for j, c := range e.columns {
		if !c.constant() && weights[j] != 0 {
			in.live = append(in.live, j)
			in.count += c.inputs(e.encoding)
		}
	}
	if len(in.live) == 0 {
		in.count = e.inputs
		for j := range e.columns {
			in.live = append(in.live, j)
		}
	}
	return in
}

// of returns the inputs that the rows of x become: of rows in memory at once, of others as they are read.
func (in inputs) of(x dbn.Rows) dbn.Rows {
	m, ok := x.(dbn.Matrix)
	if !ok {
		return encoded{in, x}
	}
	out := dbn.NewMatrix(m.Rows, in.count)
	in.encode(out, m)
	return out
}

// encode stores in dst the inputs that the rows of x become.
func (in inputs) encode(dst, x dbn.Matrix) {
	for i := range x.Rows {
		to, row := dst.Row(i), x.Row(i)
		for _, j := range in.live {
			c := &in.encoder.columns[j]
			n := c.inputs(in.encoder.encoding)
			c.encodeTo(to[:n:n], row[j], in.encoder.encoding)
			if in.scales != nil {
				for b, v := range to[:n] {
					to[b] = float32(float64(v) * in.scales[j])
				}
			}
			to = to[n:]
		}
	}
}

// whole returns the network that takes all inputs of the encoder as they are, and says of them what n, which has learnt from
// in, says of those that it has seen.
func (in inputs) whole(n *dbn.Network) *dbn.Network {
	var places []int
	var scales []float64
	at, next := 0, 0
	for j, c := range in.encoder.columns {
		live := next < len(in.live) && in.live[next] == j
		if live {
			next++
		}
		for range c.inputs(in.encoder.encoding) {
			if live {
				places = append(places, at)
			}
			if in.scales != nil {
				scales = append(scales, in.scales[j])
			}
			at++
		}
	}
	if len(places) < at {
		n = n.WidenInputs(at, places)
	}
	if scales != nil {
		n = n.ScaleInputs(scales)
	}
	return n
}

// encoded is the inputs of rows that are not in memory.
type encoded struct {
	inputs
	rows dbn.Rows
}

func (r encoded) Shape() (rows, cols int) {
	rows, _ = r.rows.Shape()
	return rows, r.count
}

func (r encoded) ReadRows(dst []float32, from int) error {
	in := dbn.Matrix{Rows: len(dst) / r.count, Cols: r.count, Data: dst}
	raw := dbn.NewMatrix(in.Rows, r.encoder.Columns())
	if err := r.rows.ReadRows(raw.Data, from); err != nil {
		return err
	}
	r.encode(in, raw)
	return nil
}
