package window

import (
	"encoding/binary"
	"errors"
	"fmt"

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
	nodes   []int64 // rows of every field, depth first
	buffers []int64 // least length of every buffer; 0 for a validity bitmap
}

func newGuard(channels int, samples []int) guard {
	g := factGuard(channels)
	for _, n := range samples {
		g.addList(n, 4)
	}
	return g
}

// factGuard returns the guard of the facts of a window of so many channels.
func factGuard(channels int) guard {
	var g guard
	for range 3 { // machine, tool, hole
		g.addText()
	}
	for range colQuality - colEpoch {
		g.addScalar()
	}
	g.addList(channels, 1)
	return g
}

// addText adds a string: validity, offsets, bytes.
func (g *guard) addText() {
	g.nodes = append(g.nodes, 1)
	g.buffers = append(g.buffers, 0, 8, 0)
}

// addScalar adds a number of eight bytes.
func (g *guard) addScalar() {
	g.nodes = append(g.nodes, 1)
	g.buffers = append(g.buffers, 0, 8)
}

func (g *guard) addList(n int, size int64) {
	g.nodes = append(g.nodes, 1, int64(n))
	g.buffers = append(g.buffers, 0, 0, int64(n)*size)
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

// check reports why the message that follows the schema cannot be the record
// batch of one window. After it, no length in the message exceeds the message.
func (g *guard) check(p []byte) (err error) {
	defer func() { // offsets inside the flatbuffer may be damaged too
		if r := recover(); r != nil {
			err = fmt.Errorf("metadata: %v", r)
		}
	}()
	var batch flatbuffers.Table
	size, err := recordBatch(p, &batch)
	if err != nil {
		return err
	}
	nodes, err := structs(&batch, slotNodes, len(g.nodes))
	if err != nil {
		return fmt.Errorf("fields: %w", err)
	}
	for i, want := range g.nodes {
		if rows, nulls := nodes.at(i); rows != want || nulls != 0 {
			return fmt.Errorf("field %d has %d values and %d nulls, expected %d and none", i, rows, nulls, want)
		}
	}
	buffers, err := structs(&batch, slotBuffers, len(g.buffers))
	if err != nil {
		return fmt.Errorf("buffers: %w", err)
	}
	for i, least := range g.buffers {
		if at, n := buffers.at(i); at < 0 || n < least || n > size || at > size-n {
			return fmt.Errorf("buffer %d is [%d, +%d) of a body of %d, expected %d bytes", i, at, n, size, least)
		}
	}
	return nil
}

// recordBatch sets batch to the header of a record batch of one row, and returns
// the size of its body.
func recordBatch(p []byte, batch *flatbuffers.Table) (size int64, err error) {
	if len(p) < 16 || binary.LittleEndian.Uint32(p) != 0xffffffff {
		return 0, errors.New("no record batch")
	}
	meta := int64(binary.LittleEndian.Uint32(p[4:]))
	if meta < 8 || meta > int64(len(p)-8) {
		return 0, fmt.Errorf("metadata of %d bytes in a message of %d", meta, len(p))
	}
	header, body := p[8:8+meta], p[8+meta:]
	msg := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	if t := msg.GetByteSlot(slotHeaderType, 0); t != headerRecordBatch {
		return 0, fmt.Errorf("message type %d, expected a record batch", t)
	}
	size = msg.GetInt64Slot(slotBodyLength, 0)
	if size < 0 || size != int64(len(body)-len(endOfStream)) {
		return 0, fmt.Errorf("body of %d bytes announced, %d there", size, len(body)-len(endOfStream))
	}
	if string(body[size:]) != string(endOfStream) {
		return 0, errors.New("no end of stream after the record batch")
	}
	o := flatbuffers.UOffsetT(msg.Offset(slotHeader))
	if o == 0 {
		return 0, errors.New("record batch without header")
	}
	msg.Union(batch, o)
	if rows := batch.GetInt64Slot(slotBatchLength, 0); rows != 1 {
		return 0, fmt.Errorf("%d rows, expected 1", rows)
	}
	if batch.Offset(slotCompression) != 0 {
		return 0, errors.New("compressed body")
	}
	return size, nil
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
