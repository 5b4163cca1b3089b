package bus

import "encoding/binary"

// decoder takes values off the front of left. After a failure all values are zero.
type decoder struct {
	left   []byte
	failed bool
}

func (d *decoder) fail() { d.left, d.failed = nil, true }

func (d *decoder) bytes(n int64) []byte {
	if n < 0 || n > int64(len(d.left)) {
		d.fail()
		return nil
	}
	v := d.left[:n:n]
	d.left = d.left[n:]
	return v
}

// number takes a number of n bytes, the most significant one first.
func (d *decoder) number(n int64) (v uint64) {
	for _, b := range d.bytes(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (d *decoder) int16() int16 { return int16(d.number(2)) }
func (d *decoder) int32() int32 { return int32(d.number(4)) }
func (d *decoder) int64() int64 { return int64(d.number(8)) }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.left)
	return varintOf(d, v, n)
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.left)
	return varintOf(d, v, n)
}

// varintOf takes the n bytes of a value off the front, unless there are none.
func varintOf[T int64 | uint64](d *decoder, v T, n int) T {
	if n <= 0 {
		d.fail()
		return 0
	}
	d.left = d.left[n:]
	return v
}

// length is uvarint for a number of bytes or values; -1 if it is longer than anything.
func (d *decoder) length() int64 {
	if n := d.uvarint(); n <= 1<<32 {
		return int64(n)
	}
	d.fail()
	return -1
}

// nilBytes takes bytes after their length plus one; 0 stands for nil.
func (d *decoder) nilBytes() []byte {
	if n := d.length(); n > 0 {
		return d.bytes(n - 1)
	}
	return nil
}

// nullable takes bytes after their length as a varint; -1 stands for nil.
func (d *decoder) nullable() []byte {
	if n := d.varint(); n != -1 {
		return d.bytes(n)
	}
	return nil
}

// count takes the length of an array whose elements have at least one byte each.
func (d *decoder) count() int {
	n := max(d.int32(), 0)
	if int(n) > len(d.left) {
		d.fail()
		return 0
	}
	return int(n)
}
