package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// tdmsFile is a TDMS 2.0 file in which each hole is a group of channels, with the
// time of their first sample. Each block is a segment.
//
// As floats, a segment has one channel after the other. As an acquisition logs it
// (DAQmx raw data, format changing scaler), a segment has rows of one count of
// each channel, and two scales make units of counts: a polynomial of volts, which
// is the device's calibration, and a line, which is the sensor's.
//
// Sources: NI, "TDMS File Format Internal Structure" (2023), and, for what it
// leaves out of DAQmx, npTDMS 1.13.
type tdmsFile struct {
	file  *os.File
	out   *bufio.Writer
	raw   bool
	rates []tdmsRate // by group of the layout
	buf   []byte
}

// tdmsRate is the channels of one rate in the hole at hand.
type tdmsRate struct {
	rate     float64
	channels []signal.Channel
	inputs   []input
	hole     string
	drilled  map[string]bool // holes so far
	line
}

// Parts of the format, as package tdms names them.
const (
	tdmsMeta, tdmsNewList, tdmsRawData, tdmsInterleaved, tdmsDAQmx = 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 7

	tdmsInt32, tdmsUint32, tdmsFloat32, tdmsFloat64, tdmsString, tdmsTime = 3, 7, 9, 10, 0x20, 0x44
	tdmsNoData, tdmsRawType, tdmsFormatChanging                           = 0xffffffff, 0xffffffff, 0x1269
)

// input is how an acquisition takes a channel in: ±volts are ±counts, which
// leaves some to spare, and stand for ±full of the channel's unit.
type input struct {
	scaler     uint32 // its type
	size       int    // bytes of a count
	counts     float64
	most, full float64
}

const inputVolts = 5

// inputOf returns 16 bits for the range of c, or 32 bits for ±10,000 where the
// range is not known.
func inputOf(c signal.Channel) input {
	if c.Range > 0 {
		return input{scaler: 3, size: 2, counts: 32_000, most: math.MaxInt16, full: c.Range}
	}
	return input{scaler: 5, size: 4, counts: 2e9, most: math.MaxInt32, full: 10_000}
}

func newTDMS(f *os.File, w *Writer, raw bool) *tdmsFile {
	t := &tdmsFile{file: f, out: bufio.NewWriterSize(f, 1<<16), raw: raw}
	for g, group := range w.layout.Groups() {
		r := tdmsRate{rate: group.Rate, channels: w.channels(g), drilled: make(map[string]bool)}
		for _, c := range r.channels {
			r.inputs = append(r.inputs, inputOf(c))
		}
		t.rates = append(t.rates, r)
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
	if missing > 0 && t.raw {
		return fmt.Errorf("record: %s: %d samples are missing before sample %d, which counts cannot say: choose %s", t.file.Name(), missing, b.First, TDMS)
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
	if t.raw {
		if err := t.counts(r, b); err != nil {
			return err
		}
		return t.end()
	}
	for _, x := range b.Samples {
		for _, v := range x {
			t.buf = binary.LittleEndian.AppendUint32(t.buf, math.Float32bits(v))
		}
	}
	return t.end()
}

// counts appends rows of counts. What the input cannot take saturates it.
func (t *tdmsFile) counts(r *tdmsRate, b *source.Block) error {
	for i := range b.Len() {
		for c, x := range b.Samples {
			in := r.inputs[c]
			n := math.Round(float64(x[i]) / in.full * in.counts)
			if n != n {
				return fmt.Errorf("record: %s: sample %d of channel %q is missing, which counts cannot say: choose %s", t.file.Name(), b.First+int64(i), r.channels[c].Name, TDMS)
			}
			n = max(-in.most-1, min(in.most, n))
			if in.size == 2 {
				t.buf = binary.LittleEndian.AppendUint16(t.buf, uint16(int16(n)))
			} else {
				t.buf = binary.LittleEndian.AppendUint32(t.buf, uint32(int32(n)))
			}
		}
	}
	return nil
}

// begin puts lead-in and metadata of a segment of n samples into the buffer; all
// that is known of the channels if fresh is true.
func (t *tdmsFile) begin(r *tdmsRate, b *source.Block, n int, fresh bool) {
	toc := uint32(tdmsMeta | tdmsNewList | tdmsRawData)
	row := 4 * len(r.channels)
	if t.raw {
		toc |= tdmsInterleaved | tdmsDAQmx
		row = 0
		for _, in := range r.inputs {
			row += in.size
		}
	}
	le := binary.LittleEndian
	m := tdmsMetadata{le.AppendUint32(append(t.buf[:0], "TDSm"...), toc)}
	m.uint32(4713)
	m.uint64(0) // bytes of the segment from here on, and of its metadata: see below
	m.uint64(0)
	const leadIn = 28
	group := "/" + quote(b.Hole)
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
	offset := 0
	for c, ch := range r.channels {
		m.text(group + "/" + quote(ch.Name))
		if t.raw {
			m.rawIndex(r.inputs[c], n, offset, row)
			offset += r.inputs[c].size
		} else {
			m.uint32(20)
			m.uint32(tdmsFloat32)
			m.uint32(1)
			m.uint64(uint64(n))
		}
		if !fresh {
			m.uint32(0)
			continue
		}
		properties := []any{"wf_start_time", b.Time, "wf_start_offset", 0.0, "wf_increment", 1 / r.rate, "wf_samples", int32(n), "unit_string", ch.Unit}
		if t.raw {
			properties = append(properties, r.inputs[c].scales()...)
		}
		m.uint32(uint32(len(properties) / 2))
		for i := 0; i < len(properties); i += 2 {
			m.property(properties[i].(string), properties[i+1])
		}
	}
	meta := uint64(len(m.b) - leadIn)
	le.PutUint64(m.b[12:], meta+uint64(n*row))
	le.PutUint64(m.b[20:], meta)
	t.buf = m.b
}

// rawIndex writes that n counts of an input are at a byte of rows of so many bytes.
func (m *tdmsMetadata) rawIndex(in input, n, offset, row int) {
	m.uint32(tdmsFormatChanging)
	m.uint32(tdmsRawType)
	m.uint32(1)
	m.uint64(uint64(n))
	m.uint32(1) // scaler: its type, buffer, byte of the row, format bitmap and id
	m.uint32(in.scaler)
	m.uint32(0)
	m.uint32(uint32(offset))
	m.uint32(0)
	m.uint32(0)
	m.uint32(1) // buffer: bytes of a row
	m.uint32(uint32(row))
}

// scales returns the properties that make units of counts.
func (in input) scales() []any {
	return []any{
		"NI_Scaling_Status", "unscaled", "NI_Number_Of_Scales", uint32(3), // the counts are scale 0
		"NI_Scale[1]_Scale_Type", "Polynomial", "NI_Scale[1]_Polynomial_Coefficients_Size", uint32(4),
		"NI_Scale[1]_Polynomial_Coefficients[0]", 0.0, "NI_Scale[1]_Polynomial_Coefficients[1]", inputVolts / in.counts,
		"NI_Scale[1]_Polynomial_Coefficients[2]", 0.0, "NI_Scale[1]_Polynomial_Coefficients[3]", 0.0, "NI_Scale[1]_Polynomial_Input_Source", uint32(0),
		"NI_Scale[2]_Scale_Type", "Linear", "NI_Scale[2]_Linear_Slope", in.full / inputVolts, "NI_Scale[2]_Linear_Y_Intercept", 0.0,
		"NI_Scale[2]_Linear_Input_Source", uint32(1),
	}
}

// end writes the segment.
func (t *tdmsFile) end() error {
	if _, err := t.out.Write(t.buf); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

func (t *tdmsFile) close() error {
	if err := errors.Join(t.out.Flush(), t.file.Close()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// quote returns a part of the path of an object.
func quote(name string) string { return "'" + strings.ReplaceAll(name, "'", "''") + "'" }

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
	case uint32:
		m.uint32(tdmsUint32)
		m.uint32(v)
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
