package table

import (
	"encoding/binary"
	"errors"
)

// Types of Thrift's compact protocol, in which Parquet writes footers and heads of pages.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI64    = 6 // 4 and 5 are shorter ones
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftStruct = 12
)

const maxThriftDepth = 16

var (
	errThrift      = errors.New("a length in it lies beyond its end")
	errThriftCount = errors.New("it announces more than its size explains")
)

// thriftCheck reads over a structure before the library decodes it: the library allocates what a
// list announces.
type thriftCheck struct {
	b      []byte
	memory int64 // that the lists may still take
}

// elementSize is about how many bytes an element of a list takes in memory, by the depth of the list
// in a footer: groups of rows, their columns, facts about a column.
var elementSize = [...]int64{256, 1024, 64}

// structure passes over one structure. b is then what follows it.
func (t *thriftCheck) structure(depth int) error {
	for {
		if len(t.b) == 0 {
			return errThrift
		}
		head := t.b[0]
		t.b = t.b[1:]
		if head == 0 {
			return nil
		}
		if head>>4 == 0 { // the number of the field follows
			if _, err := t.varint(); err != nil {
				return err
			}
		}
		if typ := head & 15; typ != thriftTrue && typ != thriftFalse {
			if err := t.value(typ, depth); err != nil {
				return err
			}
		}
	}
}

func (t *thriftCheck) value(typ byte, depth int) error {
	if depth > maxThriftDepth {
		return errThriftCount
	}
	switch typ {
	case thriftTrue, thriftFalse, thriftByte:
		return t.skip(1)
	case 4, 5, thriftI64:
		_, err := t.varint()
		return err
	case thriftDouble:
		return t.skip(8)
	case thriftBinary:
		n, err := t.varint()
		if err != nil {
			return err
		}
		return t.skip(n)
	case thriftList, thriftSet:
		return t.list(depth)
	case thriftStruct:
		return t.structure(depth + 1)
	}
	return errThrift // Parquet has no maps
}

func (t *thriftCheck) list(depth int) error {
	if len(t.b) == 0 {
		return errThrift
	}
	head := t.b[0]
	t.b = t.b[1:]
	n := uint64(head >> 4)
	if n == 15 {
		var err error
		if n, err = t.varint(); err != nil {
			return err
		}
	}
	size := elementSize[min(depth/2, len(elementSize)-1)]
	if n > uint64(len(t.b)) || int64(n) > t.memory/size {
		return errThriftCount
	}
	t.memory -= int64(n) * size
	for range n {
		if err := t.value(head&15, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (t *thriftCheck) skip(n uint64) error {
	if n > uint64(len(t.b)) {
		return errThrift
	}
	t.b = t.b[n:]
	return nil
}

func (t *thriftCheck) varint() (uint64, error) {
	v, n := binary.Uvarint(t.b)
	if n <= 0 {
		return 0, errThrift
	}
	t.b = t.b[n:]
	return v, nil
}
