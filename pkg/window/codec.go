package window

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

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
	CRC      uint32    // CRC-32C of Value, as its producer says
	Sum      uint32    // CRC-32C of Value as it has arrived, if Summed: then it is not computed again
	Summed   bool
	Value    []byte // one Arrow IPC stream: schema, one record batch, end

	// ToolLife comes from the window's Context. It is not in Value, whose schema is
	// the same for all windows of a layout.
	ToolLife string
}

// sum returns the CRC-32C of Value.
func (e *Envelope) sum() uint32 {
	if e.Summed {
		return e.Sum
	}
	return crc32.Checksum(e.Value, castagnoli)
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
	wire
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
	for i, ch := range cs {
		c.samples[i] = spec.Samples(ch.Rate)
		fields = append(fields, arrow.Field{
			Name: ch.Name,
			Type: arrow.FixedSizeListOfNonNullable(int32(c.samples[i]), arrow.PrimitiveTypes.Float32),
			Metadata: arrow.NewMetadata(
				[]string{"kind", "unit", "rate", "range", "sensor"},
				[]string{string(ch.Kind), ch.Unit, formatFloat(ch.Rate), formatFloat(ch.Range), ch.Sensor}),
		})
	}
	var err error
	if c.wire, err = newWire(fields, maxText); err != nil {
		return nil, err
	}
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

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Seal returns w in an envelope of its own memory. It panics if w does not
// have the shape of the codec's layout and spec, and reports texts that are too
// long.
func (c *Codec) Seal(w *Window) (Envelope, error) { return c.SealIn(nil, w) }

// SealIn is Seal with a value that begins where memory begins, if memory has room for it.
func (c *Codec) SealIn(memory []byte, w *Window) (Envelope, error) {
	cells, err := c.cells(w)
	if err != nil {
		return Envelope{}, err
	}
	value, err := c.seal(memory, cells, w)
	if err != nil {
		return Envelope{}, fmt.Errorf("window: seal seq %d: %w", w.Seq, err)
	}
	return Envelope{
		Machine: w.Machine, ToolLife: w.ToolLife, Epoch: w.Epoch, Seq: w.Seq, Time: w.End(),
		Layout: c.layout.Fingerprint(), CRC: crc32.Checksum(value, castagnoli), Value: value,
	}, nil
}

// cells returns the row of w, which shares its samples.
func (c *Codec) cells(w *Window) ([]cell, error) {
	if len(w.Samples) != len(c.samples) || len(w.Quality) != len(c.samples) {
		panic(fmt.Sprintf("window: Seal: %d channels with %d flags, the layout has %d", len(w.Samples), len(w.Quality), len(c.samples)))
	}
	cells, err := factCells(w, len(c.samples))
	if err != nil {
		return nil, err
	}
	for i, x := range w.Samples {
		if len(x) != c.samples[i] {
			panic(fmt.Sprintf("window: Seal: channel %d has %d samples, expected %d", i, len(x), c.samples[i]))
		}
		cells = append(cells, cell{numbers: arrow.Float32Traits.CastToBytes(x)})
	}
	return cells, nil
}

// Open checks e and stores the window in w, reusing w's memory. Nothing
// is read before size, checksum, schema bytes and every length
// are checked. Errors wrap ErrCorrupt, or are a *Mismatch; w is then undefined.
func (c *Codec) Open(e Envelope, w *Window) error { return c.read(e, w, columns.floats) }

// View is Open without a copy of the samples: the samples of w are parts of e.Value where the processor can use them as they lie. W is
// valid as long as the value is, and only View may use it again: Open would write into the value.
func (c *Codec) View(e Envelope, w *Window) error { return c.read(e, w, columns.view) }

// read opens e with one of the methods of columns that return samples.
func (c *Codec) read(e Envelope, w *Window, samples func(columns, []float32, int, int) []float32) error {
	if e.Layout != c.layout.Fingerprint() {
		return c.otherLayout(e)
	}
	if ours := bytes.HasPrefix(e.Value, c.prefix); ours && len(e.Value) > c.limit {
		return fmt.Errorf("window: %d bytes, a window of this layout has at most %d: %w", len(e.Value), c.limit, ErrCorrupt)
	}
	if got := e.sum(); got != e.CRC {
		return fmt.Errorf("window: checksum %08x, header says %08x: %w", got, e.CRC, ErrCorrupt)
	}
	if len(e.ToolLife) > signal.MaxToolLife {
		return fmt.Errorf("window: the life of the tool is named by %d bytes, at most %d may be: %w", len(e.ToolLife), signal.MaxToolLife, ErrCorrupt)
	}
	if !bytes.HasPrefix(e.Value, c.prefix) {
		return c.otherSchema(e)
	}
	cols, err := c.open(e, c.spec, w)
	if err != nil {
		return err
	}
	w.ToolLife = e.ToolLife
	if len(w.Samples) != len(c.samples) {
		w.Samples = make([][]float32, len(c.samples))
	}
	for i, n := range c.samples {
		w.Samples[i] = samples(cols, w.Samples[i], bufBehind+3*i, n)
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
