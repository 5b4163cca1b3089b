package window

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/flank-tcm/flank/pkg/signal"
)

// ContentType is the media type of an Envelope's Value.
const ContentType = "application/vnd.apache.arrow.stream"

// Envelope is a sealed window: what a reader has to know before it opens Value.
type Envelope struct {
	Machine  string
	Epoch    uint64
	Seq      uint64
	Time     time.Time // end of the window
	Layout   string    // fingerprint of the layout
	Features string    // of features: the fingerprint of their form; empty of windows
	CRC      uint32    // CRC-32C of Value
	Value    []byte    // one Arrow IPC stream: schema, one record batch, end

	// ToolLife comes from the window's Context. It is not in Value, whose schema is
	// the same for all windows of a layout.
	ToolLife string
}

// The facts of a window that are columns, in this order, before the channels.
const (
	colMachine = iota
	colTool
	colHole
	colEpoch
	colSeq
	colStart
	colLength
	colSession
	colFirst
	colSpeed
	colQuality
	factColumns
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Codec seals and opens the windows of one layout and one length. The schema
// is part of the contract (schemas/window.arrow.md), so its bytes are the same
// in every message. A Codec is safe for concurrent use.
type Codec struct {
	layout  *signal.Layout
	spec    Spec
	samples []int // per channel
	schema  *arrow.Schema
	prefix  []byte // the schema message that every value starts with
	guard   guard
	limit   int // greatest size of a value
}

// maxText is the greatest length in bytes of machine, tool and hole together.
const maxText = 4096

// NewCodec returns a Codec for windows of the given layout and spec. It
// reports a spec that cannot be used.
func NewCodec(layout *signal.Layout, spec Spec) (*Codec, error) {
	if err := spec.Check(layout); err != nil {
		return nil, err
	}
	cs := layout.Channels()
	c := &Codec{layout: layout, spec: spec, samples: make([]int, len(cs))}
	fields := factFields(len(cs))
	body := len(cs)
	for i, ch := range cs {
		c.samples[i] = spec.Samples(ch.Rate)
		body += 4*c.samples[i] + 64 // and its padding
		fields = append(fields, arrow.Field{
			Name: ch.Name,
			Type: arrow.FixedSizeListOfNonNullable(int32(c.samples[i]), arrow.PrimitiveTypes.Float32),
			Metadata: arrow.NewMetadata(
				[]string{"kind", "unit", "rate", "range", "sensor"},
				[]string{string(ch.Kind), ch.Unit, formatFloat(ch.Rate), formatFloat(ch.Range), ch.Sensor}),
		})
	}
	c.schema = arrow.NewSchema(fields, nil)
	empty, err := writeStream(c.schema, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("window: codec: schema: %w", err)
	}
	c.prefix = empty[:len(empty)-len(endOfStream)]
	c.guard = newGuard(len(cs), c.samples)
	c.limit = len(c.prefix) + 4096 + 160*len(fields) + maxText + body
	return c, nil
}

// factFields returns the fields of the facts of a window of so many channels.
func factFields(channels int) []arrow.Field {
	return []arrow.Field{
		{Name: "machine", Type: arrow.BinaryTypes.String},
		{Name: "tool", Type: arrow.BinaryTypes.String},
		{Name: "hole", Type: arrow.BinaryTypes.String},
		{Name: "epoch", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "seq", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "start", Type: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}},
		{Name: "length", Type: arrow.PrimitiveTypes.Int64},
		{Name: "session", Type: arrow.PrimitiveTypes.Int64},
		{Name: "first", Type: arrow.PrimitiveTypes.Int64},
		{Name: "spindle_speed", Type: arrow.PrimitiveTypes.Float64},
		{Name: "quality", Type: arrow.FixedSizeListOfNonNullable(int32(channels), arrow.PrimitiveTypes.Uint8)},
	}
}

// Layout returns the layout of the codec's windows.
func (c *Codec) Layout() *signal.Layout { return c.layout }

// Spec returns the spec of the codec's windows.
func (c *Codec) Spec() Spec { return c.spec }

// Sealed reports whether e was sealed by a codec of the same layout and length: the value
// begins with the same schema.
func (c *Codec) Sealed(e Envelope) bool {
	return e.Layout == c.layout.Fingerprint() && bytes.HasPrefix(e.Value, c.prefix)
}

// MaxSize returns the greatest length in bytes that the Value of an Envelope
// can have.
func (c *Codec) MaxSize() int { return c.limit }

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// writeStream returns a stream of the schema with the record, or with none, of at most some
// size.
func writeStream(schema *arrow.Schema, rec arrow.Record, most int) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(most)
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

// Seal returns w in an envelope of its own memory. It panics if w does not
// have the shape of the codec's layout and spec, and reports texts that are too
// long. The samples are not copied before they are written, so w must not
// change meanwhile.
func (c *Codec) Seal(w *Window) (Envelope, error) {
	rec, err := c.record(w)
	if err != nil {
		return Envelope{}, err
	}
	value, err := writeStream(c.schema, rec, c.limit)
	if err == nil {
		value, err = addContext(value, len(c.prefix), w)
	}
	if err != nil {
		return Envelope{}, fmt.Errorf("window: seal seq %d: %w", w.Seq, err)
	}
	return Envelope{
		Machine: w.Machine, ToolLife: w.ToolLife, Epoch: w.Epoch, Seq: w.Seq, Time: w.End(),
		Layout: c.layout.Fingerprint(), CRC: crc32.Checksum(value, castagnoli), Value: value,
	}, nil
}

// record returns w as the one row of a record, which shares its samples.
func (c *Codec) record(w *Window) (arrow.Record, error) {
	if len(w.Samples) != len(c.samples) || len(w.Quality) != len(c.samples) {
		panic(fmt.Sprintf("window: Seal: %d channels with %d flags, the layout has %d", len(w.Samples), len(w.Quality), len(c.samples)))
	}
	cols, err := factColumnsOf(w, c.schema)
	if err != nil {
		return nil, err
	}
	for i, x := range w.Samples {
		if len(x) != c.samples[i] {
			panic(fmt.Sprintf("window: Seal: channel %d has %d samples, expected %d", i, len(x), c.samples[i]))
		}
		cols = append(cols, list(c.schema.Field(factColumns+i).Type, len(x), arrow.Float32Traits.CastToBytes(x)))
	}
	return array.NewRecord(c.schema, cols, 1), nil
}

// factColumnsOf returns the facts of w as columns of a schema that begins with factFields.
// It reports texts that are too long.
func factColumnsOf(w *Window, schema *arrow.Schema) ([]arrow.Array, error) {
	if n := len(w.Machine) + len(w.Tool) + len(w.Hole); n > maxText {
		return nil, fmt.Errorf("window: machine, tool and hole are %d bytes long together: at most %d are sent, shorten them", n, maxText)
	}
	if n := len(w.ToolLife); n > signal.MaxToolLife {
		return nil, fmt.Errorf("window: the life of tool %.64q is named by %d bytes: at most %d are sent", w.Tool, n, signal.MaxToolLife)
	}
	quality := make([]byte, len(w.Quality))
	for i, q := range w.Quality {
		quality[i] = byte(q)
	}
	cols := make([]arrow.Array, factColumns, len(schema.Fields()))
	cols[colMachine] = text(w.Machine)
	cols[colTool] = text(w.Tool)
	cols[colHole] = text(w.Hole)
	cols[colEpoch] = scalar(schema.Field(colEpoch).Type, arrow.Uint64Traits.CastToBytes([]uint64{w.Epoch}))
	cols[colSeq] = scalar(schema.Field(colSeq).Type, arrow.Uint64Traits.CastToBytes([]uint64{w.Seq}))
	cols[colStart] = scalar(schema.Field(colStart).Type, arrow.Int64Traits.CastToBytes([]int64{w.Start.UnixNano()}))
	cols[colLength] = scalar(schema.Field(colLength).Type, arrow.Int64Traits.CastToBytes([]int64{int64(w.Length)}))
	cols[colSession] = scalar(schema.Field(colSession).Type, arrow.Int64Traits.CastToBytes([]int64{w.Session}))
	cols[colFirst] = scalar(schema.Field(colFirst).Type, arrow.Int64Traits.CastToBytes([]int64{w.First}))
	cols[colSpeed] = scalar(schema.Field(colSpeed).Type, arrow.Float64Traits.CastToBytes([]float64{w.SpindleSpeed}))
	cols[colQuality] = list(schema.Field(colQuality).Type, len(quality), quality)
	return cols, nil
}

func text(s string) arrow.Array {
	offsets := arrow.Int32Traits.CastToBytes([]int32{0, int32(len(s))})
	return array.MakeFromData(array.NewData(arrow.BinaryTypes.String, 1,
		[]*memory.Buffer{nil, memory.NewBufferBytes(offsets), memory.NewBufferBytes([]byte(s))}, nil, 0, 0))
}

func scalar(t arrow.DataType, value []byte) arrow.Array {
	return array.MakeFromData(array.NewData(t, 1, []*memory.Buffer{nil, memory.NewBufferBytes(value)}, nil, 0, 0))
}

// list wraps n values as the only row of a fixed-size list, without a copy.
func list(t arrow.DataType, n int, values []byte) arrow.Array {
	elem := t.(*arrow.FixedSizeListType).Elem()
	child := array.NewData(elem, n, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0)
	return array.MakeFromData(array.NewData(t, 1, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0))
}

// Open checks e and stores the window in w, reusing w's memory. Nothing
// reaches the Arrow reader before size, checksum, schema bytes and every length
// are checked: a flipped length would make it ask for terabytes, which no
// recover can catch. Errors wrap ErrCorrupt, or are a *Mismatch; w is then undefined.
func (c *Codec) Open(e Envelope, w *Window) (err error) {
	if e.Layout != c.layout.Fingerprint() {
		return c.otherLayout(e)
	}
	if ours := bytes.HasPrefix(e.Value, c.prefix); ours && len(e.Value) > c.limit {
		return fmt.Errorf("window: %d bytes, a window of this layout has at most %d: %w", len(e.Value), c.limit, ErrCorrupt)
	}
	if got := crc32.Checksum(e.Value, castagnoli); got != e.CRC {
		return fmt.Errorf("window: checksum %08x, header says %08x: %w", got, e.CRC, ErrCorrupt)
	}
	if len(e.ToolLife) > signal.MaxToolLife {
		return fmt.Errorf("window: the life of the tool is named by %d bytes, at most %d may be: %w", len(e.ToolLife), signal.MaxToolLife, ErrCorrupt)
	}
	if !bytes.HasPrefix(e.Value, c.prefix) {
		return c.otherSchema(e)
	}
	if err := c.guard.check(e.Value[len(c.prefix):]); err != nil {
		return fmt.Errorf("window: %w: %w", err, ErrCorrupt)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("window: Arrow reader: %v: %w", r, ErrCorrupt)
		}
	}()
	return c.read(e, w)
}

func (c *Codec) read(e Envelope, w *Window) error {
	r, err := ipc.NewReader(bytes.NewReader(e.Value))
	if err != nil {
		return fmt.Errorf("window: %w: %w", err, ErrCorrupt)
	}
	defer r.Release()
	if !r.Next() {
		return fmt.Errorf("window: no record batch (%v): %w", r.Err(), ErrCorrupt)
	}
	rec := r.Record()
	w.ToolLife = e.ToolLife
	if err := readFacts(rec, e, len(c.prefix), c.spec, w); err != nil {
		return err
	}
	n := len(c.samples)
	if len(w.Samples) != n {
		w.Samples = make([][]float32, n)
	}
	for i := range w.Samples {
		x := rec.Column(factColumns + i).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()
		w.Samples[i] = append(w.Samples[i][:0], x...)
	}
	return nil
}

// finiteSpeed returns a spindle speed, or 0, which is not known, for one that is not a number.
func finiteSpeed(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// readFacts stores the facts of a record in w, and reports those that are not the
// envelope's or the spec's. The schema has so many bytes.
func readFacts(rec arrow.Record, e Envelope, schema int, spec Spec, w *Window) error {
	if err := readContext(e.Value[schema:], w); err != nil {
		return fmt.Errorf("window: %w: %w", err, ErrCorrupt)
	}
	str := func(i int) string { return strings.Clone(rec.Column(i).(*array.String).Value(0)) }
	w.Machine, w.Tool, w.Hole = str(colMachine), str(colTool), str(colHole)
	w.Epoch = rec.Column(colEpoch).(*array.Uint64).Value(0)
	w.Seq = rec.Column(colSeq).(*array.Uint64).Value(0)
	w.Start = time.Unix(0, int64(rec.Column(colStart).(*array.Timestamp).Value(0))).UTC()
	w.Length = time.Duration(rec.Column(colLength).(*array.Int64).Value(0))
	w.Session = rec.Column(colSession).(*array.Int64).Value(0)
	w.First = rec.Column(colFirst).(*array.Int64).Value(0)
	w.SpindleSpeed = rec.Column(colSpeed).(*array.Float64).Value(0)
	if w.Machine != e.Machine || w.Epoch != e.Epoch || w.Seq != e.Seq {
		return fmt.Errorf("window: headers say %.64q %x %d, the value says %.64q %x %d: %w",
			e.Machine, e.Epoch, e.Seq, w.Machine, w.Epoch, w.Seq, ErrCorrupt)
	}
	if w.Length != spec.Length {
		return &Mismatch{OtherLength, fmt.Sprintf("windows of %v, expected windows of %v", w.Length, spec.Length)}
	}
	w.SpindleSpeed = finiteSpeed(w.SpindleSpeed)
	flags := rec.Column(colQuality).(*array.FixedSizeList).ListValues().(*array.Uint8).Uint8Values()
	w.Quality = w.Quality[:0]
	for _, q := range flags {
		w.Quality = append(w.Quality, signal.Quality(q))
	}
	return nil
}
