package window

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Mismatch is the error of Open for a window that is whole and was sealed for another
// layout or length. errors.Is finds ErrForeign in it.
type Mismatch struct {
	What string // one of the words below
	Text string // what the window is, and what was expected
}

// What of a window does not fit.
const (
	OtherLayout   = "layout"
	OtherLength   = "window length"
	OtherFeatures = "features"
	OtherSchema   = "schema" // neither, so far as one can read it: another release sealed it
)

func (m *Mismatch) Error() string { return "window: " + m.Text }

// Is makes a Mismatch an ErrForeign.
func (m *Mismatch) Is(target error) bool { return target == ErrForeign }

// otherLayout names what differs between the layout of e, whose fingerprint is not ours,
// and the codec's.
func (c *Codec) otherLayout(e Envelope) error {
	text := fmt.Sprintf("windows of layout %.32q, expected layout %s", e.Layout, c.layout.Fingerprint())
	if theirs, ok := wireChannels(e.Value); ok {
		text += ": " + differences(c.layout, theirs)
	}
	return &Mismatch{OtherLayout, text}
}

// otherSchema names what differs in a window of our layout whose schema is not ours.
func (c *Codec) otherSchema(e Envelope) error {
	if length, ok := c.lengthOf(e.Value); ok && length != c.spec.Length {
		return &Mismatch{OtherLength, fmt.Sprintf("windows of %v, expected windows of %v", length, c.spec.Length)}
	}
	return &Mismatch{OtherSchema, "the Arrow schema does not belong to the layout: another release of ingest may have sent it"}
}

// lengthOf returns how long the windows of a schema are, if their channels are ours.
func (c *Codec) lengthOf(value []byte) (time.Duration, bool) {
	theirs, ok := wireChannels(value)
	ours := c.layout.Channels()
	if !ok || len(theirs) != len(ours) {
		return 0, false
	}
	length := time.Duration(math.Round(float64(theirs[0].samples) / ours[0].Rate * 1e9))
	for i, t := range theirs {
		if t.name != beginning(ours[i].Name) || t.samples < 1 || (Spec{Length: length}).Samples(ours[i].Rate) != t.samples {
			return 0, false
		}
	}
	return length, true
}

// mostDifferences is how many differences between two layouts are named.
const mostDifferences = 3

// Compare returns in what a layout of windows differs from the one that is expected.
func Compare(got, expected *signal.Layout) *Mismatch {
	var theirs []wireChannel
	for _, c := range got.Channels() {
		theirs = append(theirs, wireChannel{name: beginning(c.Name), kind: string(c.Kind), unit: beginning(c.Unit), rate: formatFloat(c.Rate)})
	}
	return &Mismatch{OtherLayout, fmt.Sprintf("windows of layout %q, expected layout %s: %s", got.Fingerprint(), expected.Fingerprint(), differences(expected, theirs))}
}

// differences says in what the channels of a schema differ from ours.
func differences(ours *signal.Layout, theirs []wireChannel) string {
	var all []string
	byName := make(map[string]wireChannel, len(theirs))
	for _, t := range theirs {
		byName[t.name] = t
	}
	for _, o := range ours.Channels() {
		t, there := byName[beginning(o.Name)]
		delete(byName, t.name)
		switch {
		case !there:
			all = append(all, fmt.Sprintf("no channel %.40q", o.Name))
		case t.rate != formatFloat(o.Rate):
			all = append(all, fmt.Sprintf("channel %.40q at %.40q Hz, expected %s Hz", o.Name, t.rate, formatFloat(o.Rate)))
		case t.unit != beginning(o.Unit):
			all = append(all, fmt.Sprintf("channel %.40q in %.40q, expected %q", o.Name, t.unit, o.Unit))
		case t.kind != string(o.Kind):
			all = append(all, fmt.Sprintf("channel %.40q of kind %.40q, expected %s", o.Name, t.kind, o.Kind))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, fmt.Sprintf("a channel %.40q that is not expected", name))
	}
	if len(all) == 0 {
		return "the order, a range or a sensor of the channels differs"
	}
	text := strings.Join(all[:min(len(all), mostDifferences)], "; ")
	if n := len(all) - mostDifferences; n > 0 {
		text += "; and " + strconv.Itoa(n) + " more differences"
	}
	return text
}

// LayoutOf returns the layout and the spec, without its hop, that a window was sealed by, as
// the schema in its value says. It does not trust the value. It reports a value that has
// another checksum than the envelope, and a schema that is not of windows or not of the
// envelope's layout; the errors wrap ErrCorrupt.
func LayoutOf(e Envelope) (*signal.Layout, Spec, error) {
	if got := e.sum(); got != e.CRC {
		return nil, Spec{}, fmt.Errorf("window: checksum %08x, header says %08x: %w", got, e.CRC, ErrCorrupt)
	}
	bad := func(why any) error {
		return fmt.Errorf("window: the schema is not one of windows of layout %.32q (%v): %w", e.Layout, why, ErrCorrupt)
	}
	theirs, ok := wireChannels(e.Value)
	if !ok {
		return nil, Spec{}, bad("it has no channels")
	}
	var cs []signal.Channel
	samples := 0
	for _, t := range theirs {
		rate, err := strconv.ParseFloat(t.rate, 64)
		if err != nil {
			return nil, Spec{}, bad(err)
		}
		full, err := strconv.ParseFloat(t.full, 64)
		if err != nil {
			return nil, Spec{}, bad(err)
		}
		cs = append(cs, signal.Channel{Name: t.name, Kind: signal.Kind(t.kind), Unit: t.unit, Rate: rate, Range: full, Sensor: t.sensor})
		if t.samples < 1 || t.samples > len(e.Value)/4-samples {
			return nil, Spec{}, bad("it announces more samples than there are bytes")
		}
		samples += t.samples
	}
	layout, err := signal.NewLayout("", cs)
	if err != nil {
		return nil, Spec{}, bad(err)
	}
	if layout.Fingerprint() != e.Layout {
		return nil, Spec{}, bad("its fingerprint is " + layout.Fingerprint())
	}
	spec := Spec{Length: time.Duration(math.Round(float64(theirs[0].samples) / cs[0].Rate * 1e9))}
	if err := spec.Check(layout); err != nil {
		return nil, Spec{}, bad(err)
	}
	for i, t := range theirs {
		if spec.Samples(cs[i].Rate) != t.samples {
			return nil, Spec{}, bad("its channels are of different spans of time")
		}
	}
	return layout, spec, nil
}

// wireChannel is what the schema of a window says of a channel. Full is its range.
type wireChannel struct {
	name, kind, unit, rate, full, sensor string
	samples                              int
}

// Slots of the tables in Schema.fbs, as flatbuffers count them.
const (
	slotFields         = 6 // of Schema
	slotSchemaMetadata = 8
	slotName           = 4 // of Field
	slotTypeType       = 8
	slotType           = 10
	slotChildren       = 14
	slotMetadata       = 16
	slotListSize       = 4 // of FixedSizeList
	slotKey            = 4 // of KeyValue
	slotValue          = 6

	headerSchema      = 1
	typeFixedSizeList = 16
)

// mostName is how many bytes of a text in a schema are read.
const mostName = 128

// beginning returns the part of a text that is read.
func beginning(text string) string { return text[:min(len(text), mostName)] }

// wireChannels reads the channels of the schema that a value begins with. It does not
// trust the value, and takes no more memory than a layout does.
func wireChannels(p []byte) (cs []wireChannel, ok bool) {
	defer func() { // offsets inside the flatbuffer may be damaged
		if recover() != nil {
			cs, ok = nil, false
		}
	}()
	if len(p) < 16 || binary.LittleEndian.Uint32(p) != 0xffffffff {
		return nil, false
	}
	meta := int64(binary.LittleEndian.Uint32(p[4:]))
	if meta < 8 || meta > int64(len(p)-8) {
		return nil, false
	}
	header := p[8 : 8+meta]
	msg := flatbuffers.Table{Bytes: header, Pos: flatbuffers.GetUOffsetT(header)}
	o := flatbuffers.UOffsetT(msg.Offset(slotHeader))
	if msg.GetByteSlot(slotHeaderType, 0) != headerSchema || o == 0 {
		return nil, false
	}
	var schema flatbuffers.Table
	msg.Union(&schema, o)
	r := schemaReader{left: len(header)}
	fields := r.tables(&schema, slotFields)
	if len(fields) <= factColumns {
		return nil, false
	}
	for _, f := range fields[factColumns:] {
		c := wireChannel{name: r.text(&f, slotName)}
		o := flatbuffers.UOffsetT(f.Offset(slotType))
		if f.GetByteSlot(slotTypeType, 0) != typeFixedSizeList || o == 0 {
			return nil, false
		}
		var list flatbuffers.Table
		f.Union(&list, o)
		c.samples = int(list.GetInt32Slot(slotListSize, 0))
		for _, kv := range r.tables(&f, slotMetadata) {
			switch value := r.text(&kv, slotValue); r.text(&kv, slotKey) {
			case "kind":
				c.kind = value
			case "unit":
				c.unit = value
			case "rate":
				c.rate = value
			case "range":
				c.full = value
			case "sensor":
				c.sensor = value
			}
		}
		cs = append(cs, c)
	}
	return cs, true
}

// schemaReader reads a schema whose offsets may be anything. It panics when it has read
// more than the schema has bytes: then parts of it are used many times over.
type schemaReader struct {
	left int // bytes
}

func (r *schemaReader) spend(bytes int) {
	if r.left -= bytes; r.left < 0 {
		panic("window: schema: more content than bytes")
	}
}

// tables returns the tables of a vector in a slot of t.
func (r *schemaReader) tables(t *flatbuffers.Table, slot flatbuffers.VOffsetT) (all []flatbuffers.Table) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return nil
	}
	at := t.Vector(o)
	for i := range t.VectorLen(o) {
		r.spend(4)
		all = append(all, flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at + flatbuffers.UOffsetT(4*i))})
	}
	return all
}

// text returns the beginning of a text in a slot of t.
func (r *schemaReader) text(t *flatbuffers.Table, slot flatbuffers.VOffsetT) string {
	return r.textOf(t, slot, mostName)
}

// textOf returns the first bytes of a text in a slot of t, at most so many.
func (r *schemaReader) textOf(t *flatbuffers.Table, slot flatbuffers.VOffsetT, most int) string {
	b := text(t, slot)
	b = b[:min(len(b), most)]
	r.spend(len(b))
	return string(b)
}
