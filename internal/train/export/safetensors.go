package export

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/model"
)

// Safetensors returns the numbers of the model's classifier as a safetensors
// file: of each layer l, from 0, "layers.l.weight" (in×out) and "layers.l.bias";
// the encoding, for which see classify.Encoder.Column, as "encoder.fill",
// "encoder.knots" and "encoder.values", columns one after the other, with
// "encoder.knot_count" and "encoder.value_count" of each; "costs"; and the golden
// vectors, "golden.features" and "golden.posterior", to check a reader by.
//
// A model with a guard has its numbers too, see vote.Expert: "guard.watched" and "guard.expert.sensors", lists one after the
// other, with "_count" of each; "guard.expert.ratio" and ".bias"; of each input "guard.input.a", ".b", ".sensor",
// ".expert", ".mean", ".sd" and ".weight"; and "guard.cut_and_bound".
//
// The form: the length of a header as 64 bits, little-endian; the header, JSON
// that gives type, shape and place of each tensor; then the tensors.
// (https://github.com/huggingface/safetensors#format)
func Safetensors(m *model.Model) []byte {
	var f safetensors
	network := m.Classifier.Network()
	for l := range len(network.Layers()) - 1 {
		w, b := network.Layer(l)
		f.float32s(fmt.Sprintf("layers.%d.weight", l), w.Data, w.Rows, w.Cols)
		f.float32s(fmt.Sprintf("layers.%d.bias", l), b, len(b))
	}
	e := m.Classifier.Encoder()
	var fill, knots, values []float64
	var knotCount, valueCount []int64
	for _, part := range e.Parts() {
		for j := range part.Columns() {
			f, k, v := part.Column(j)
			fill, knots, values = append(fill, f), append(knots, k...), append(values, v...)
			knotCount, valueCount = append(knotCount, int64(len(k))), append(valueCount, int64(len(v)))
		}
	}
	f.float64s("encoder.fill", fill, len(fill))
	f.float64s("encoder.knots", knots, len(knots))
	f.float64s("encoder.values", values, len(values))
	f.int64s("encoder.knot_count", knotCount)
	f.int64s("encoder.value_count", valueCount)
	costs := m.Classifier.Costs()
	f.float64s("costs", costs, len(costs))
	if v := m.Classifier.Guard(); v != nil {
		f.guard(v)
	}
	var features []float32
	var posteriors []float64
	for _, g := range m.Golden {
		features, posteriors = append(features, g.Features...), append(posteriors, g.Posterior...)
	}
	f.float32s("golden.features", features, len(m.Golden), e.Columns())
	f.float64s("golden.posterior", posteriors, len(m.Golden), len(costs))
	return f.bytes(metadata(m))
}

// safetensors is a file being made.
type safetensors struct {
	tensors []tensor
	data    []byte
}

type tensor struct {
	name    string
	Dtype   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// add adds a tensor, given the bytes of its numbers and what type they are of.
func (f *safetensors) add(name, dtype string, data []byte, shape ...int) {
	from := len(f.data)
	f.data = append(f.data, data...)
	f.tensors = append(f.tensors, tensor{name, dtype, shape, [2]int{from, len(f.data)}})
}

func (f *safetensors) float32s(name string, x []float32, shape ...int) {
	f.add(name, "F32", raw(x), shape...)
}
func (f *safetensors) float64s(name string, x []float64, shape ...int) {
	f.add(name, "F64", raw(x), shape...)
}
func (f *safetensors) int64s(name string, x []int64) { f.add(name, "I64", raw(x), len(x)) }

// bytes returns the file: tensors in the order in which they were added, the
// header padded with blanks to a multiple of eight bytes.
func (f *safetensors) bytes(meta [][2]string) []byte {
	facts := make(map[string]string, len(meta))
	for _, kv := range meta {
		facts[kv[0]] = kv[1]
	}
	header := fmt.Appendf(nil, `{"__metadata__":%s`, event.JSON(facts))
	for _, t := range f.tensors {
		header = fmt.Appendf(header, ",%s:%s", event.JSON(t.name), event.JSON(t))
	}
	header = append(header, '}')
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header, f.data)
}
