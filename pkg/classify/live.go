package classify

import "github.com/flank-tcm/flank/pkg/dbn"

// inputs are what a network learns from: of the inputs that an encoder makes, times the weight of their
// column, those that can say something. One that is constant, or is multiplied by 0, gets no gradient of its own.
// Decay then shrinks its weights without an end, and the averages that an optimiser keeps of its gradients, until they
// are subnormal numbers, with which a processor reckons a hundred times as slowly.
type inputs struct {
	encoder *Encoder
	scales  []float64 // by input of the encoder; nil: all 1
	live    []int     // which ascend; nil: all
}

// liveInputs returns what a network learns from where columns have the given weights.
func (e *Encoder) liveInputs(weights []float64) inputs {
	in := inputs{encoder: e, scales: e.scales(weights)}
	at := 0
	for _, c := range e.columns {
		for range c.inputs(e.encoding) {
			if !c.constant() && (in.scales == nil || in.scales[at] != 0) {
				in.live = append(in.live, at)
			}
			at++
		}
	}
	if len(in.live) == 0 || len(in.live) == at { // a network has one input or more
		in.live = nil
	}
	return in
}

// of returns the inputs that the rows of x become: of rows in memory at once, of others as they are read.
func (in inputs) of(x dbn.Rows) dbn.Rows {
	rows, cols := x.Shape()
	if m, ok := x.(dbn.Matrix); ok {
		out := dbn.NewMatrix(rows, in.count())
		in.encode(out, m)
		return out
	}
	return encoded{in, x, cols}
}

// count returns how many inputs the network has.
func (in inputs) count() int {
	if in.live == nil {
		return in.encoder.inputs
	}
	return len(in.live)
}

// encode stores in dst the inputs that the rows of x become.
func (in inputs) encode(dst, x dbn.Matrix) {
	all := make([]float32, in.encoder.inputs)
	for i := range x.Rows {
		in.encoder.EncodeTo(all, x.Row(i))
		row := dst.Row(i)
		for n := range row {
			j := n
			if in.live != nil {
				j = in.live[n]
			}
			if row[n] = all[j]; in.scales != nil {
				row[n] = float32(float64(all[j]) * in.scales[j])
			}
		}
	}
}

// whole returns the network that takes all inputs of the encoder as they are, and says of them what n, which has learnt from
// in, says of those that it has seen.
func (in inputs) whole(n *dbn.Network) *dbn.Network {
	if in.live != nil {
		n = n.WidenInputs(in.encoder.inputs, in.live)
	}
	if in.scales != nil {
		n = n.ScaleInputs(in.scales)
	}
	return n
}

// encoded is the inputs of rows that are not in memory.
type encoded struct {
	inputs
	rows dbn.Rows
	cols int
}

func (r encoded) Shape() (rows, cols int) {
	rows, _ = r.rows.Shape()
	return rows, r.count()
}

func (r encoded) ReadRows(dst []float32, from int) error {
	in := dbn.Matrix{Rows: len(dst) / r.count(), Cols: r.count(), Data: dst}
	raw := dbn.NewMatrix(in.Rows, r.cols)
	if err := r.rows.ReadRows(raw.Data, from); err != nil {
		return err
	}
	r.encode(in, raw)
	return nil
}
