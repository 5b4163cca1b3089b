package feed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/flank-tcm/flank/internal/source/track"
)

// Slots of the tables in Message.fbs and Schema.fbs, as flatbuffers count them,
// and the numbers of their enumerations. (Arrow columnar format 1.4.)
const (
	slotHeaderType = 6 // of a message
	slotHeader     = 8
	slotBodyLength = 10

	slotEndianness     = 4 // of a schema
	slotFields         = 6
	slotSchemaMetadata = 8

	slotName       = 4 // of a field
	slotTypeNumber = 8
	slotType       = 10
	slotDictionary = 12

	slotBitWidth  = 4 // of Int
	slotSigned    = 6
	slotPrecision = 4 // of FloatingPoint

	slotKey   = 4 // of a KeyValue
	slotValue = 6

	slotRows        = 4 // of a record batch
	slotNodes       = 6
	slotBuffers     = 8
	slotCompression = 10

	headerSchema      = 1
	headerRecordBatch = 3

	typeInt   = 2
	typeFloat = 3

	maxColumns = 4096
)

// parseArrow reads an Arrow IPC stream of a schema of numbers and one record
// batch, in place. The columns share the memory of p.
//
// The library's reader allocates what a length in the stream says, and running
// out of memory cannot be caught; here a length that is wrong ends at the end of p.
func parseArrow(p []byte) (f facts, cols map[string]column, err error) {
	defer func() { // offsets inside a flatbuffer are not to be trusted
		if r := recover(); r != nil {
			f, cols, err = facts{}, nil, fmt.Errorf("the frame is not an Arrow IPC stream, or is damaged: %v", r)
		}
	}()
	schema, body, rest, err := message(p, headerSchema)
	if err != nil {
		return f, nil, fmt.Errorf("the frame is not an Arrow IPC stream: schema: %w", err)
	}
	if len(body) != 0 {
		return f, nil, errors.New("the frame is not an Arrow IPC stream: its schema has a body")
	}
	fields, err := parseSchema(schema, &f)
	if err != nil {
		return f, nil, err
	}
	batch, body, rest, err := message(rest, headerRecordBatch)
	if err != nil {
		return f, nil, fmt.Errorf("record batch: %w", err)
	}
	if end := string(rest); end != "" && end != "\xff\xff\xff\xff\x00\x00\x00\x00" {
		return f, nil, fmt.Errorf("%d bytes behind the record batch: a frame holds one, and the end mark", len(rest))
	}
	cols, err = parseBatch(batch, body, fields)
	return f, cols, err
}

// message takes the first message off p, which must have the given header.
func message(p []byte, want byte) (header flatbuffers.Table, body, rest []byte, err error) {
	if len(p) < 8 || binary.LittleEndian.Uint32(p) != math.MaxUint32 {
		return header, nil, nil, errors.New("does not begin with a message as Arrow 0.15 and later write it")
	}
	n := int64(binary.LittleEndian.Uint32(p[4:]))
	if p = p[8:]; n < 8 || n > int64(len(p)) {
		return header, nil, nil, fmt.Errorf("metadata of %d bytes, %d are there", n, len(p))
	}
	meta, p := p[:n:n], p[n:]
	msg := flatbuffers.Table{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}
	if t := msg.GetByteSlot(slotHeaderType, 0); t != want {
		return header, nil, nil, fmt.Errorf("message of type %d, expected %d", t, want)
	}
	size := msg.GetInt64Slot(slotBodyLength, 0)
	if size < 0 || size > int64(len(p)) {
		return header, nil, nil, fmt.Errorf("body of %d bytes, %d are there", size, len(p))
	}
	o := flatbuffers.UOffsetT(msg.Offset(slotHeader))
	if o == 0 {
		return header, nil, nil, errors.New("message without a header")
	}
	header.Bytes = meta
	msg.Union(&header, o)
	return header, p[:size:size], p[size:], nil
}

// field is a column of the schema.
type field struct {
	name   string
	class  byte                 // of numbers, see track.Decoder
	bytes  int                  // of a value
	number func([]byte) float64 // makes one of them
}

func parseSchema(schema flatbuffers.Table, f *facts) ([]field, error) {
	if schema.GetInt16Slot(slotEndianness, 0) != 0 {
		return nil, errors.New("the frame is big-endian: write it little-endian")
	}
	if err := parseFacts(&schema, f); err != nil {
		return nil, err
	}
	var fields []field
	err := each(&schema, slotFields, maxColumns, func(t flatbuffers.Table) error {
		name := bytesOf(&t, slotName)
		if len(name) > maxText {
			return fmt.Errorf("column %.64q…: its name has more than %d bytes", name, maxText)
		}
		c := field{name: string(name)}
		if t.Offset(slotDictionary) != 0 {
			return fmt.Errorf("column %.64q is encoded by a dictionary: send numbers", c.name)
		}
		o := flatbuffers.UOffsetT(t.Offset(slotType))
		if o == 0 {
			return fmt.Errorf("column %.64q has no type", c.name)
		}
		var of flatbuffers.Table
		t.Union(&of, o)
		switch t.GetByteSlot(slotTypeNumber, 0) {
		case typeInt:
			c.class, c.bytes = 'u', int(of.GetInt32Slot(slotBitWidth, 0))/8
			if of.GetBoolSlot(slotSigned, false) {
				c.class = 'i'
			}
		case typeFloat:
			c.class, c.bytes = 'f', 2<<of.GetInt16Slot(slotPrecision, 0)
		}
		if c.number = track.Decoder(c.class, c.bytes, binary.LittleEndian); c.number == nil {
			return fmt.Errorf("column %.64q: send integers, or floating point of 32 or 64 bits", c.name)
		}
		fields = append(fields, c)
		return nil
	})
	return fields, err
}

// parseFacts reads the metadata of the schema.
func parseFacts(schema *flatbuffers.Table, f *facts) error {
	said := make(map[string]bool)
	err := each(schema, slotSchemaMetadata, maxColumns, func(t flatbuffers.Table) error {
		key, value := bytesOf(&t, slotKey), bytesOf(&t, slotValue)
		if !slices.Contains(known, string(key)) {
			return nil // pandas has its own
		}
		if len(value) > maxText {
			return fmt.Errorf("%s: has more than %d bytes", key, maxText)
		}
		said[string(key)] = true
		return f.set(string(key), string(value))
	})
	if err != nil {
		return err
	}
	for _, key := range needed {
		if !said[key] {
			return fmt.Errorf("%q is missing in the metadata of the schema: every frame says it", key)
		}
	}
	return nil
}

// each calls fn for every table of a vector.
func each(t *flatbuffers.Table, slot flatbuffers.VOffsetT, most int, fn func(flatbuffers.Table) error) error {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	n := t.VectorLen(o)
	if n > most {
		return fmt.Errorf("the frame is damaged: a list of %d entries", n)
	}
	for i := range n {
		at := t.Vector(o) + flatbuffers.UOffsetT(4*i)
		if err := fn(flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}); err != nil {
			return err
		}
	}
	return nil
}

// bytesOf returns a string in place: any number of entries may share one.
func bytesOf(t *flatbuffers.Table, slot flatbuffers.VOffsetT) []byte {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	return t.ByteVector(o + t.Pos)
}

func parseBatch(batch flatbuffers.Table, body []byte, fields []field) (map[string]column, error) {
	if batch.Offset(slotCompression) != 0 {
		return nil, errors.New("the record batch is compressed: it saves nothing on samples, send it as it is")
	}
	rows := batch.GetInt64Slot(slotRows, 0)
	if rows < 0 || rows > maxValues/int64(max(1, len(fields))) {
		return nil, fmt.Errorf("%d rows of %d columns: send at most %d values at a time", rows, len(fields), maxValues)
	}
	nodes, err := pairs(&batch, slotNodes, len(fields))
	if err != nil {
		return nil, fmt.Errorf("record batch: columns: %w", err)
	}
	buffers, err := pairs(&batch, slotBuffers, 2*len(fields))
	if err != nil {
		return nil, fmt.Errorf("record batch: buffers: %w", err)
	}
	buffer := func(i int, least int64) ([]byte, error) {
		at, n := pair(buffers, i)
		if at < 0 || n < least || at > int64(len(body)) || n > int64(len(body))-at {
			return nil, fmt.Errorf("record batch: column %.64q: the buffer [%d, +%d) of a body of %d bytes should hold %d", fields[i/2].name, at, n, len(body), least)
		}
		return body[at : at+n], nil
	}
	cols := make(map[string]column, len(fields))
	for i, c := range fields {
		length, nulls := pair(nodes, i)
		if length != rows {
			return nil, fmt.Errorf("record batch: column %.64q has %d of %d rows", c.name, length, rows)
		}
		a := &arrowColumn{field: c, rows: int(rows)}
		if nulls != 0 {
			if a.valid, err = buffer(2*i, (rows+7)/8); err != nil {
				return nil, err
			}
		}
		if a.data, err = buffer(2*i+1, rows*int64(c.bytes)); err != nil {
			return nil, err
		}
		if cols[c.name] != nil {
			return nil, fmt.Errorf("two columns are named %.64q: rename or remove one", c.name)
		}
		cols[c.name] = a
	}
	return cols, nil
}

// pairs returns a vector of want structs of two int64.
func pairs(t *flatbuffers.Table, slot flatbuffers.VOffsetT, want int) ([]byte, error) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil, errors.New("none")
	}
	if n := t.VectorLen(o); n != want {
		return nil, fmt.Errorf("%d, expected %d", n, want)
	}
	at := int(t.Vector(o))
	return t.Bytes[at : at+16*want], nil
}

func pair(p []byte, i int) (first, second int64) {
	return int64(binary.LittleEndian.Uint64(p[16*i:])), int64(binary.LittleEndian.Uint64(p[16*i+8:]))
}

// arrowColumn is a column of a record batch. valid is nil where no value is null.
type arrowColumn struct {
	field
	rows        int
	data, valid []byte
}

func (a *arrowColumn) Len() int { return a.rows }

func (a *arrowColumn) Store(dst []float32, gain, offset float64) {
	if a.class == 'f' && a.bytes == 4 && gain == 1 && offset == 0 {
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.data[4*i:]))
		}
	} else {
		for i := range dst {
			dst[i] = float32(gain*a.number(a.data[i*a.bytes:]) + offset)
		}
	}
	if a.valid != nil {
		for i := range dst {
			if a.valid[i/8]>>(i%8)&1 == 0 {
				dst[i] = float32(math.NaN())
			}
		}
	}
}
