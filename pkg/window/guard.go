package window

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	flatbuffers "github.com/google/flatbuffers/go"
)

// endOfStream closes an Arrow IPC stream: a continuation mark and no metadata.
var endOfStream = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// guard holds the lengths that the record batch message of a window must have.
//
// An Arrow IPC message is a continuation mark, the length of its metadata, the
// metadata, which is a flatbuffer, and a body. The metadata says how long the
// body is and where in it each buffer lies. (Arrow columnar format 1.4,
// "Encapsulated message format" and Message.fbs.)
type guard struct {
	kinds   []kind  // of every column
	nodes   []int64 // rows of every field, depth first
	buffers []int64 // least length of every buffer; 0 for a validity bitmap
}

// kind is how a column lies in a record batch.
type kind byte

const (
	ofNumber kind = iota // validity, and the number
	ofText               // validity, offsets, bytes
	ofList               // validity of the list and of its numbers, and these
)

// add adds a column.
func (g *guard) add(t arrow.DataType) {
	n := int64(numberBytes(t))
	switch t := t.(type) {
	case *arrow.StringType:
		g.kinds, g.nodes, g.buffers = append(g.kinds, ofText), append(g.nodes, 1), append(g.buffers, 0, 8, 0)
	case *arrow.FixedSizeListType:
		g.kinds, g.nodes, g.buffers = append(g.kinds, ofList), append(g.nodes, 1, int64(t.Len())), append(g.buffers, 0, 0, n)
	default:
		g.kinds, g.nodes, g.buffers = append(g.kinds, ofNumber), append(g.nodes, 1), append(g.buffers, 0, n)
	}
}

// Slots of the tables in Message.fbs, as flatbuffers count them.
const (
	slotHeaderType  = 6
	slotHeader      = 8
	slotBodyLength  = 10
	slotBatchLength = 4
	slotNodes       = 6
	slotBuffers     = 8
	slotCompression = 10

	headerRecordBatch = 3
)

// check returns the buffers of the record batch message that follows the schema, or reports why it cannot hold
// one window. After it, no length in the message exceeds the message.
func (g *guard) check(p []byte) (c columns, err error) {
	defer func() { // offsets inside the flatbuffer may be damaged too
		if r := recover(); r != nil {
			err = fmt.Errorf("metadata: %v", r)
		}
	}()
	var batch flatbuffers.Table
	body, err := recordBatch(p, &batch)
	if err != nil {
		return c, err
	}
	nodes, err := structs(&batch, slotNodes, len(g.nodes))
	if err != nil {
		return c, fmt.Errorf("fields: %w", err)
	}
	for i, want := range g.nodes {
		if rows, nulls := nodes.at(i); rows != want || nulls != 0 {
			return c, fmt.Errorf("field %d has %d values and %d nulls, expected %d and none", i, rows, nulls, want)
		}
	}
	buffers, err := structs(&batch, slotBuffers, len(g.buffers))
	if err != nil {
		return c, fmt.Errorf("buffers: %w", err)
	}
	size := int64(len(body))
	for i, least := range g.buffers {
		if at, n := buffers.at(i); at < 0 || n < least || n > size || at > size-n {
			return c, fmt.Errorf("buffer %d is [%d, +%d) of a body of %d, expected %d bytes", i, at, n, size, least)
		}
	}
	return columns{buffers, body}, nil
}

// recordBatch sets batch to the header of a record batch of one row, and returns
// its body.
func recordBatch(p []byte, batch *flatbuffers.Table) (body []byte, err error) {
	if len(p) < 16 || binary.LittleEndian.Uint32(p) != 0xffffffff {
		return nil, errors.New("no record batch")
	}
	meta := int64(binary.LittleEndian.Uint32(p[4:]))
	if meta < 8 || meta > int64(len(p)-8) {
		return nil, fmt.Errorf("metadata of %d bytes in a message of %d", meta, len(p))
	}
	header, rest := p[8:8+meta], p[8+meta:]
	msg := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	if t := msg.GetByteSlot(slotHeaderType, 0); t != headerRecordBatch {
		return nil, fmt.Errorf("message type %d, expected a record batch", t)
	}
	size := msg.GetInt64Slot(slotBodyLength, 0)
	if size < 0 || size != int64(len(rest)-len(endOfStream)) {
		return nil, fmt.Errorf("body of %d bytes announced, %d there", size, len(rest)-len(endOfStream))
	}
	if string(rest[size:]) != string(endOfStream) {
		return nil, errors.New("no end of stream after the record batch")
	}
	o := flatbuffers.UOffsetT(msg.Offset(slotHeader))
	if o == 0 {
		return nil, errors.New("record batch without header")
	}
	msg.Union(batch, o)
	if rows := batch.GetInt64Slot(slotBatchLength, 0); rows != 1 {
		return nil, fmt.Errorf("%d rows, expected 1", rows)
	}
	if batch.Offset(slotCompression) != 0 {
		return nil, errors.New("compressed body")
	}
	return rest[:size], nil
}

// pairs is a vector of structs of two int64, as FieldNode and Buffer are.
type pairs []byte

func structs(t *flatbuffers.Table, slot flatbuffers.VOffsetT, want int) (pairs, error) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil, errors.New("none")
	}
	if n := t.VectorLen(o); n != want {
		return nil, fmt.Errorf("%d, expected %d", n, want)
	}
	at := t.Vector(o)
	return pairs(t.Bytes[at : at+flatbuffers.UOffsetT(want)*16]), nil
}

func (p pairs) at(i int) (first, second int64) {
	return int64(binary.LittleEndian.Uint64(p[16*i:])), int64(binary.LittleEndian.Uint64(p[16*i+8:]))
}
