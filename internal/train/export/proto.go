package export

import "encoding/binary"

// message is a protocol buffer being written, of which ONNX needs only
// this. (https://protobuf.dev/programming-guides/encoding)
type message []byte

func (m *message) tag(field, wire int) { *m = binary.AppendUvarint(*m, uint64(field<<3|wire)) }

func (m *message) int(field int, v int64) {
	m.tag(field, 0)
	*m = binary.AppendUvarint(*m, uint64(v))
}

func (m *message) bytes(field int, b []byte) {
	m.tag(field, 2)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *message) string(field int, s string) { m.bytes(field, []byte(s)) }

// Element types of ONNX tensors.
const (
	onnxFloat  = 1
	onnxInt64  = 7
	onnxBool   = 9
	onnxDouble = 11
)

// onnxTensor returns a TensorProto.
func onnxTensor(name string, kind int64, data []byte, dims ...int) message {
	var t message
	for _, d := range dims {
		t.int(1, int64(d))
	}
	t.int(2, kind)
	t.string(8, name)
	t.bytes(9, data)
	return t
}

// raw returns the bytes of numbers, little-endian.
func raw[E float32 | float64 | int64](numbers []E) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic("export: " + err.Error()) // all of one size
	}
	return b
}

// onnxValue returns a ValueInfoProto of a tensor of rows, "N" of them, with the
// given further dimensions.
func onnxValue(name string, kind int64, dims ...int) message {
	var shape message
	var rows message
	rows.string(2, "N")
	shape.bytes(1, rows)
	for _, d := range dims {
		var dim message
		dim.int(1, int64(d))
		shape.bytes(1, dim)
	}
	var tensor, kindOf, value message
	tensor.int(1, kind)
	tensor.bytes(2, shape)
	kindOf.bytes(1, tensor)
	value.string(1, name)
	value.bytes(2, kindOf)
	return value
}
