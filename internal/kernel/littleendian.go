package kernel

import (
	"encoding/binary"
	"math"
)

// Reader takes little-endian numbers, of the binary forms of pkg/classify and pkg/model/unknown, off the front of Rest. Once Rest is too short it sets Short
// and gives zeros.
type Reader struct {
	Rest  []byte
	Short bool
}

// Bytes takes n bytes. If there are fewer, it gives min(n, 8) zeros.
func (r *Reader) Bytes(n int) []byte {
	if r.Short = r.Short || len(r.Rest) < n; r.Short {
		return make([]byte, min(n, 8))
	}
	taken := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return taken
}

// Uint8 takes one byte.
func (r *Reader) Uint8() byte { return r.Bytes(1)[0] }

// Uint32 takes four bytes.
func (r *Reader) Uint32() uint32 { return binary.LittleEndian.Uint32(r.Bytes(4)) }

// Float64 takes eight bytes.
func (r *Reader) Float64() float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(r.Bytes(8)))
}

// Floats takes a count and as many numbers, after making sure that they are there.
func (r *Reader) Floats() []float64 {
	n := int64(r.Uint32())
	if r.Short = r.Short || 8*n > int64(len(r.Rest)); r.Short || n == 0 {
		return nil
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = r.Float64()
	}
	return x
}

// AppendFloats appends to b what [Reader.Floats] takes: the length of x and its
// numbers.
func AppendFloats(b []byte, x []float64) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x)))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}
