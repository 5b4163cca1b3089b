package track

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Strided is a Column of values of one size that begin a fixed number of bytes
// apart in a stream.
type Strided struct {
	Stream *bufio.Reader // at the first value
	Size   int           // bytes of a value, at most 8
	Step   int64         // bytes from a value to the next
	Count  int64         // values
	Decode func(value []byte) float64
	Fail   func(value int64, err error) error // says that a value, counted from 0, could not be read

	read int64
	b    [8]byte
}

// Read reads values until dst is full. The end of the stream before the last
// value is io.ErrUnexpectedEOF, given to Fail.
func (s *Strided) Read(dst Values) (n int, err error) {
	if s.read == s.Count {
		return 0, io.EOF
	}
	for n < len(dst.Numbers) && s.read < s.Count {
		if _, err := io.ReadFull(s.Stream, s.b[:s.Size]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return n, s.Fail(s.read, err)
		}
		dst.Numbers[n] = s.Decode(s.b[:s.Size])
		n++
		s.read++
		if err := Skip(s.Stream, s.Step-int64(s.Size)); err != nil && s.read < s.Count { // nothing need follow the last
			return n, s.Fail(s.read, err)
		}
	}
	return n, nil
}

// Jump goes on at a share of the values.
func (s *Strided) Jump(share float64) (left int64, ok bool, err error) {
	left = int64(share*float64(s.Count)) - s.read
	if left <= 0 || s.read+left >= s.Count {
		return 0, true, nil
	}
	if err := Skip(s.Stream, left*s.Step); err != nil {
		return 0, true, s.Fail(s.read, err)
	}
	s.read += left
	return left, true, nil
}

// Skip passes over n bytes. It returns io.ErrUnexpectedEOF if there are fewer.
func Skip(r *bufio.Reader, n int64) error {
	for n > 0 {
		m, err := r.Discard(int(min(n, 1<<30)))
		n -= int64(m)
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Decoder returns what makes a number of the bytes of a value: a signed ('i'),
// unsigned ('u') or floating-point ('f') number of 1, 2, 4 or 8 bytes. It
// returns nil for anything else.
func Decoder(class byte, size int, order binary.ByteOrder) func([]byte) float64 {
	switch fmt.Sprintf("%c%d", class, size) {
	case "i1":
		return func(b []byte) float64 { return float64(int8(b[0])) }
	case "i2":
		return func(b []byte) float64 { return float64(int16(order.Uint16(b))) }
	case "i4":
		return func(b []byte) float64 { return float64(int32(order.Uint32(b))) }
	case "i8":
		return func(b []byte) float64 { return float64(int64(order.Uint64(b))) }
	case "u1":
		return func(b []byte) float64 { return float64(b[0]) }
	case "u2":
		return func(b []byte) float64 { return float64(order.Uint16(b)) }
	case "u4":
		return func(b []byte) float64 { return float64(order.Uint32(b)) }
	case "u8":
		return func(b []byte) float64 { return float64(order.Uint64(b)) }
	case "f4":
		return func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }
	case "f8":
		return func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }
	}
	return nil
}
