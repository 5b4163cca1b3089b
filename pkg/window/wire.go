package window

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/flank-tcm/flank/pkg/signal"
)

// wire writes and reads Arrow IPC streams of one schema with one record batch of one row. The
// schema, and where numbers lie in the header of a record batch, are taken from streams that the Arrow library has
// written. It is safe for concurrent use.
type wire struct {
	schema *arrow.Schema
	prefix []byte // the schema message that every stream starts with
	guard  guard
	header []byte // of a record batch message
	length int    // where in header the length of the body is
	places int    // where in header the vector of buffers is
	limit  int    // greatest size of a stream
}

// MaxSize returns the greatest length in bytes that the Value of an Envelope can have.
func (s *wire) MaxSize() int { return s.limit }

// newWire returns a wire of rows with the given fields, whose texts have at most so many bytes.
func newWire(fields []arrow.Field, texts int) (s wire, err error) {
	s.schema = arrow.NewSchema(fields, nil)
	empty, err := writeStream(s.schema, nil)
	if err != nil {
		return s, fmt.Errorf("window: schema: %w", err)
	}
	s.prefix = empty[:len(empty)-len(endOfStream)]
	cells := make([]cell, len(fields))
	for i, f := range fields {
		s.guard.add(f.Type)
		cells[i].numbers = make([]byte, numberBytes(f.Type))
	}
	full, err := writeStream(s.schema, record(s.schema, cells))
	if err != nil {
		return s, fmt.Errorf("window: record batch: %w", err)
	}
	s.limit = len(full) + 4096 + texts
	p := full[len(s.prefix):]
	s.header = p[8 : 8+binary.LittleEndian.Uint32(p[4:])]
	msg := flatbuffers.Table{Bytes: s.header, Pos: flatbuffers.GetUOffsetT(s.header)}
	s.length = int(msg.Pos) + int(msg.Offset(slotBodyLength))
	var batch flatbuffers.Table
	msg.Union(&batch, flatbuffers.UOffsetT(msg.Offset(slotHeader)))
	s.places = int(batch.Vector(flatbuffers.UOffsetT(batch.Offset(slotBuffers))))
	return s, nil
}

// cell is the value of a column: a text, or the bytes of its numbers.
type cell struct {
	text    string
	numbers []byte
}

// numberBytes returns how many bytes the numbers of a value have; 0 for texts.
func numberBytes(t arrow.DataType) int {
	switch t := t.(type) {
	case *arrow.StringType:
		return 0
	case *arrow.FixedSizeListType:
		return int(t.Len()) * numberBytes(t.Elem())
	}
	return t.(arrow.FixedWidthDataType).Bytes()
}

// record returns cells as the row of a record of the Arrow library, which shares their numbers.
func record(schema *arrow.Schema, cells []cell) arrow.Record {
	cols := make([]arrow.Array, len(cells))
	for i, c := range cells {
		cols[i] = c.array(schema.Field(i).Type)
	}
	return array.NewRecord(schema, cols, 1)
}

func (c cell) array(t arrow.DataType) arrow.Array {
	data := func(t arrow.DataType, n int, bufs ...[]byte) *array.Data {
		all := []*memory.Buffer{nil} // no validity bitmap: nothing is missing
		for _, b := range bufs {
			all = append(all, memory.NewBufferBytes(b))
		}
		return array.NewData(t, n, all, nil, 0, 0)
	}
	switch t := t.(type) {
	case *arrow.StringType:
		return array.MakeFromData(data(t, 1, arrow.Int32Traits.CastToBytes([]int32{0, int32(len(c.text))}), []byte(c.text)))
	case *arrow.FixedSizeListType:
		child := data(t.Elem(), int(t.Len()), c.numbers)
		return array.MakeFromData(array.NewData(t, 1, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0))
	}
	return array.MakeFromData(data(t, 1, c.numbers))
}

// writeStream returns a stream of the schema with the record, or with none.
func writeStream(schema *arrow.Schema, rec arrow.Record) ([]byte, error) {
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	if rec != nil {
		if err := w.Write(rec); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// seal returns a stream of the cells, in memory if there is room: the bytes that the Arrow library writes, and behind them as metadata of
// the record batch what the context and the rates of w say. The numbers are copied once.
func (s *wire) seal(memory []byte, cells []cell, w *Window) ([]byte, error) {
	keys, err := contextKeys(&w.Context)
	if err != nil {
		return nil, err
	}
	if w.Rates != nil {
		keys = append(keys, [2]string{keyRates, formatRates(w.Rates)})
	}
	header, size := s.describe(cells)
	if len(keys) > 0 {
		header = messageWith(header, keys)
	}
	value := memory[:0]
	if n := len(s.prefix) + 8 + len(header) + size + len(endOfStream); cap(value) < n {
		value = make([]byte, 0, n)
	}
	value = append(append(value, s.prefix...), 0xff, 0xff, 0xff, 0xff)
	value = append(binary.LittleEndian.AppendUint32(value, uint32(len(header))), header...)
	body := len(value)
	for i, c := range cells {
		if s.guard.kinds[i] == ofText {
			value = binary.LittleEndian.AppendUint32(value, 0)
			value = binary.LittleEndian.AppendUint32(value, uint32(len(c.text)))
			value = append(pad(value, body), c.text...)
		} else {
			value = append(value, c.numbers...)
		}
		value = pad(value, body)
	}
	return append(value, endOfStream...), nil
}

// describe returns the header of a record batch of the cells, and the size of its body.
func (s *wire) describe(cells []cell) (header []byte, size int) {
	header = slices.Clone(s.header)
	places := header[s.places:]
	buffer := func(n int) {
		binary.LittleEndian.PutUint64(places, uint64(size))
		binary.LittleEndian.PutUint64(places[8:], uint64(n))
		places, size = places[16:], size+padded(n)
	}
	for i, c := range cells {
		buffer(0) // validity
		switch s.guard.kinds[i] {
		case ofText:
			buffer(8)
			buffer(len(c.text))
		case ofList:
			buffer(0) // validity of the numbers
			buffer(len(c.numbers))
		default:
			buffer(len(c.numbers))
		}
	}
	binary.LittleEndian.PutUint64(header[s.length:], uint64(size))
	return header, size
}

// padded returns the least multiple of 8 from n on: as the Arrow library pads buffers.
func padded(n int) int { return (n + 7) &^ 7 }

// pad appends zeros until what follows from has a length as padded gives it.
func pad(b []byte, from int) []byte {
	var zeros [8]byte
	return append(b, zeros[:padded(len(b)-from)-(len(b)-from)]...)
}

// factCells returns the facts of w as the first cells of a stream that begins with factFields, with room for others.
// It reports texts that are too long.
func factCells(w *Window, room int) ([]cell, error) {
	if n := len(w.Machine) + len(w.Tool) + len(w.Hole); n > maxText {
		return nil, fmt.Errorf("window: machine, tool and hole are %d bytes long together: at most %d are sent, shorten them", n, maxText)
	}
	if n := len(w.ToolLife); n > signal.MaxToolLife {
		return nil, fmt.Errorf("window: the life of tool %.64q is named by %d bytes: at most %d are sent", w.Tool, n, signal.MaxToolLife)
	}
	numbers := make([]byte, 0, 8*(colQuality-colEpoch)+len(w.Quality))
	cells := append(make([]cell, 0, factColumns+room), cell{text: w.Machine}, cell{text: w.Tool}, cell{text: w.Hole})
	for _, n := range [...]uint64{w.Epoch, w.Seq, uint64(w.Start.UnixNano()), uint64(w.Length), uint64(w.Session), uint64(w.First), math.Float64bits(w.SpindleSpeed)} {
		numbers = binary.LittleEndian.AppendUint64(numbers, n)
		cells = append(cells, cell{numbers: numbers[len(numbers)-8:]})
	}
	for _, q := range w.Quality {
		numbers = append(numbers, byte(q))
	}
	return append(cells, cell{numbers: numbers[len(numbers)-len(w.Quality):]}), nil
}

// columns are the buffers of a record batch of one row.
type columns struct {
	buffers pairs
	body    []byte
}

// buffer returns a buffer. It panics if that is not within the body, or has fewer bytes.
func (c columns) buffer(i int, least int64) []byte {
	at, n := c.buffers.at(i)
	if size := int64(len(c.body)); at < 0 || n < least || n > size || at > size-n {
		panic(fmt.Sprintf("buffer %d is [%d, +%d) of a body of %d", i, at, n, size))
	}
	return c.body[at : at+n]
}

// number returns the value of a column of eight bytes that begins with buffer i.
func (c columns) number(i int) uint64 { return binary.LittleEndian.Uint64(c.buffer(i+1, 8)) }

// text sets to to the value of a column of text that begins with buffer i. A text that is the same stays.
func (c columns) text(i int, to *string) {
	offsets, all := c.buffer(i+1, 8), c.buffer(i+2, 0)
	from, end := binary.LittleEndian.Uint32(offsets), binary.LittleEndian.Uint32(offsets[4:])
	if text := all[from:end]; string(text) != *to {
		*to = string(text)
	}
}

// floats stores in dst, reusing its memory, the n values of a list that begins with buffer i. They may lie at any address.
func (c columns) floats(dst []float32, i, n int) []float32 {
	dst = slices.Grow(dst[:0], n)[:n]
	copy(arrow.Float32Traits.CastToBytes(dst), c.buffer(i+2, 4*int64(n)))
	return dst
}

// anyAddress says that numbers of a value can be used as they lie: the processor has their byte order, and reads them at any address.
const anyAddress = runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"

// view returns what floats does, as a part of the body. It does not use dst, which may be a part of another one.
func (c columns) view(_ []float32, i, n int) []float32 {
	if !anyAddress {
		return c.floats(nil, i, n)
	}
	return arrow.Float32Traits.CastFromBytes(c.buffer(i+2, 4*int64(n))[: 4*n : 4*n])
}

// facts stores in w what every stream says of its window; all but what its message says as metadata.
func (c columns) facts(w *Window) {
	c.text(bufMachine, &w.Machine)
	c.text(bufTool, &w.Tool)
	c.text(bufHole, &w.Hole)
	w.Drift = 0 // is not sent
	w.Epoch, w.Seq = c.number(bufEpoch), c.number(bufSeq)
	w.Start, w.Length = time.Unix(0, int64(c.number(bufStart))).UTC(), time.Duration(c.number(bufLength))
	w.Session, w.First = int64(c.number(bufSession)), int64(c.number(bufFirst))
	w.SpindleSpeed = finiteSpeed(math.Float64frombits(c.number(bufSpeed)))
}

// open returns the buffers of a stream that begins with the prefix, after it has checked every length, and stores in w
// the facts, flags and metadata. It reports facts that are not the envelope's or the spec's. Errors wrap ErrCorrupt, or are
// a *Mismatch.
func (s *wire) open(e Envelope, spec Spec, w *Window) (c columns, err error) {
	p := e.Value[len(s.prefix):]
	if c, err = s.guard.check(p); err == nil {
		err = readContext(p, w)
	}
	if err != nil {
		return c, fmt.Errorf("window: %w: %w", err, ErrCorrupt)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("window: a text: %v: %w", r, ErrCorrupt)
		}
	}()
	if c.facts(w); w.Machine != e.Machine || w.Epoch != e.Epoch || w.Seq != e.Seq {
		return c, fmt.Errorf("window: headers say %.64q %x %d, the value says %.64q %x %d: %w",
			e.Machine, e.Epoch, e.Seq, w.Machine, w.Epoch, w.Seq, ErrCorrupt)
	}
	if w.Length != spec.Length {
		return c, &Mismatch{OtherLength, fmt.Sprintf("windows of %v, expected windows of %v", w.Length, spec.Length)}
	}
	channels := s.schema.Field(colQuality).Type.(*arrow.FixedSizeListType).Len()
	w.Quality = w.Quality[:0]
	for _, q := range c.buffer(bufQuality+2, int64(channels))[:channels] {
		w.Quality = append(w.Quality, signal.Quality(q))
	}
	return c, nil
}
