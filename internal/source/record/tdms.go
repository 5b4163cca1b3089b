package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	format "github.com/flank-tcm/flank/internal/source/tdms"
	"github.com/flank-tcm/flank/pkg/signal"
)

// tdmsFile is a TDMS 2.0 file in which each hole is a group of channels, with the
// time of their first sample. Each block is a segment, in which one channel follows
// the other. (NI, "TDMS File Format Internal Structure", 2023.)
type tdmsFile struct {
	file  *os.File
	out   *bufio.Writer
	rates []tdmsRate // by group of the layout
	buf   []byte
}

// tdmsRate is the channels of one rate in the hole at hand.
type tdmsRate struct {
	rate     float64
	channels []signal.Channel
	hole     string
	drilled  map[string]bool // holes so far
	line
}

// Parts of the format, as package tdms names them.
const (
	tdmsMeta, tdmsNewList, tdmsRawData = 1 << 1, 1 << 2, 1 << 3

	tdmsInt32, tdmsFloat32, tdmsFloat64, tdmsString, tdmsTime = 3, 9, 10, 0x20, 0x44
	tdmsNoData                                                = 0xffffffff
)

func newTDMS(f *os.File, w *Writer) *tdmsFile {
	t := &tdmsFile{file: f, out: bufio.NewWriterSize(f, 1<<16)}
	for g, group := range w.layout.Groups() {
		t.rates = append(t.rates, tdmsRate{rate: group.Rate, channels: w.channels(g), drilled: make(map[string]bool)})
	}
	return t
}

func (t *tdmsFile) write(b *source.Block) error {
	r := &t.rates[b.Group]
	fresh := !r.begun || b.Hole != r.hole
	if fresh {
		if r.drilled[b.Hole] {
			return fmt.Errorf("record: %s: hole %q comes a second time: names of holes must differ", t.file.Name(), b.Hole)
		}
		r.drilled[b.Hole] = true
		r.hole, r.line = b.Hole, line{}
	}
	missing, err := r.add(b)
	if err != nil {
		return fmt.Errorf("record: %s: %w", t.file.Name(), err)
	}
	for missing > 0 {
		n := min(missing, 1<<14)
		t.begin(r, b, int(n), false)
		for range n * int64(len(r.channels)) {
			t.buf = binary.LittleEndian.AppendUint32(t.buf, missingSample)
		}
		if err := t.end(); err != nil {
			return err
		}
		missing -= n
	}
	t.begin(r, b, b.Len(), fresh)
	for _, x := range b.Samples {
		for _, v := range x {
			t.buf = binary.LittleEndian.AppendUint32(t.buf, math.Float32bits(v))
		}
	}
	return t.end()
}

// begin puts lead-in and metadata of a segment of n samples into the buffer; all
// that is known of the channels if fresh is true.
func (t *tdmsFile) begin(r *tdmsRate, b *source.Block, n int, fresh bool) {
	le := binary.LittleEndian
	m := tdmsMetadata{le.AppendUint32(append(t.buf[:0], "TDSm"...), tdmsMeta|tdmsNewList|tdmsRawData)}
	m.uint32(4713)
	m.uint64(0) // bytes of the segment from here on, and of its metadata: see below
	m.uint64(0)
	const leadIn = 28
	group := "/" + format.Quoted(b.Hole)
	objects := uint32(len(r.channels))
	if fresh {
		m.uint32(objects + 2)
		m.text("/")
		m.uint32(tdmsNoData)
		m.uint32(1)
		m.property("name", b.Tool)
		m.text(group)
		m.uint32(tdmsNoData)
		m.uint32(1)
		m.property("spindle_rpm", b.SpindleSpeed)
	} else {
		m.uint32(objects)
	}
	for _, ch := range r.channels {
		m.text(group + "/" + format.Quoted(ch.Name))
		m.uint32(20)
		m.uint32(tdmsFloat32)
		m.uint32(1)
		m.uint64(uint64(n))
		if !fresh {
			m.uint32(0)
			continue
		}
		properties := []any{"wf_start_time", b.Time, "wf_start_offset", 0.0, "wf_increment", 1 / r.rate, "wf_samples", int32(n), "unit_string", ch.Unit}
		m.uint32(uint32(len(properties) / 2))
		for i := 0; i < len(properties); i += 2 {
			m.property(properties[i].(string), properties[i+1])
		}
	}
	meta := uint64(len(m.b) - leadIn)
	le.PutUint64(m.b[12:], meta+uint64(4*n*len(r.channels)))
	le.PutUint64(m.b[20:], meta)
	t.buf = m.b
}

// end writes the segment.
func (t *tdmsFile) end() error {
	_, err := t.out.Write(t.buf)
	return wrong(err)
}

func (t *tdmsFile) close() error {
	return wrong(errors.Join(t.out.Flush(), t.file.Close()))
}

// tdmsMetadata is the metadata of a segment.
type tdmsMetadata struct{ b []byte }

func (m *tdmsMetadata) uint32(v uint32) { m.b = binary.LittleEndian.AppendUint32(m.b, v) }
func (m *tdmsMetadata) uint64(v uint64) { m.b = binary.LittleEndian.AppendUint64(m.b, v) }

func (m *tdmsMetadata) text(s string) {
	m.uint32(uint32(len(s)))
	m.b = append(m.b, s...)
}

// property appends a property. Times count seconds from 1904 and 2⁻⁶⁴ seconds.
func (m *tdmsMetadata) property(name string, value any) {
	m.text(name)
	switch v := value.(type) {
	case string:
		m.uint32(tdmsString)
		m.text(v)
	case float64:
		m.uint32(tdmsFloat64)
		m.uint64(math.Float64bits(v))
	case int32:
		m.uint32(tdmsInt32)
		m.uint32(uint32(v))
	case time.Time:
		epoch := time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
		fraction, _ := bits.Div64(uint64(v.Nanosecond()), 0, 1e9)
		m.uint32(tdmsTime)
		m.uint64(fraction)
		m.uint64(uint64(v.Unix() - epoch.Unix()))
	default:
		panic(fmt.Sprintf("record: property %s of type %T", name, value))
	}
}
