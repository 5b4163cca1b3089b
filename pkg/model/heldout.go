package model

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// HeldOut is what the costs of a model were chosen on: posteriors of training windows by networks that had not seen their
// tools, and which windows these were, so that labels that come later can be joined to them.
type HeldOut struct {
	ByTool      bool    // tools were held out, not windows
	Folds       int     // networks that judged them
	Classes     int     // K
	Votes       bool    // the model has a guard
	Temperature float64 // of the model's network
	Tools       []HeldTool
	Rows        []HeldRow // in the order of training
}

// HeldTool is a tool in one recording, or on one machine.
type HeldTool struct {
	Machine, Tool, Recording string
	Group                    string    // name of the tool among all of them
	Apart                    string    // name under which it was held out: of copies one name
	Began                    time.Time // of the recording; zero if not known
	First, Last              time.Time // starts of its first and its last window, judged or not
	CutOff                   bool      // windows from its beginning were not read
}

// HeldRow is a window of cutting.
type HeldRow struct {
	Tool      int // index in Tools
	Hole      string
	Start     time.Time
	Was       int       // class that networks were trained with; -1: it had no label
	Class     int       // class that costs were chosen with last; -1: none
	Fold      int       // that held it out; or Judged, or Taught
	Posterior []float32 // K of them, before temperature and guard
	Vote      float32   // of the guard's experts; NaN: all abstained
}

// What HeldRow.Fold may be, but for the number of a fold.
const (
	Judged = -1 // by the model itself, which was trained without a label of its tool
	Taught = -2 // by no one: the model was trained with it as healthy, without a label of its tool
)

const (
	heldOutMagic   = "FHELDOUT"
	heldOutVersion = 1
)

// nanos returns a time as a number, of the zero time too.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixNano()
}

func timeOf(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Encode returns the binary form: see schemas/model.md.
func (h *HeldOut) Encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(heldOutMagic), heldOutVersion)
	var flags byte
	if h.ByTool {
		flags |= 1
	}
	if h.Votes {
		flags |= 2
	}
	b = binary.AppendUvarint(append(b, flags), uint64(h.Folds))
	b = binary.AppendUvarint(b, uint64(h.Classes))
	b = le.AppendUint64(b, math.Float64bits(h.Temperature))
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	b = binary.AppendUvarint(b, uint64(len(h.Tools)))
	for _, t := range h.Tools {
		for _, s := range []string{t.Machine, t.Tool, t.Recording, t.Group, t.Apart} {
			text(s)
		}
		for _, at := range []time.Time{t.Began, t.First, t.Last} {
			b = binary.AppendVarint(b, nanos(at))
		}
		cut := byte(0)
		if t.CutOff {
			cut = 1
		}
		b = append(b, cut)
	}
	holes, number := []string{""}, map[string]int{"": 0}
	for _, r := range h.Rows {
		if _, known := number[r.Hole]; !known {
			number[r.Hole], holes = len(holes), append(holes, r.Hole)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(holes)))
	for _, s := range holes {
		text(s)
	}
	return h.encodeRows(b, number)
}

// encodeRows appends the rows; number has the numbers of holes.
func (h *HeldOut) encodeRows(b []byte, number map[string]int) []byte {
	b = binary.AppendUvarint(b, uint64(len(h.Rows)))
	last := make([][2]int64, len(h.Tools)) // start of the tool's last row, and the step to it
	for _, r := range h.Rows {
		for _, n := range []int{r.Tool, number[r.Hole], r.Was + 1, r.Class + 1, r.Fold + 2} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		l := &last[r.Tool]
		step := nanos(r.Start) - l[0] // it may overflow, and back
		b = binary.AppendVarint(b, step-l[1])
		*l = [2]int64{l[0] + step, step}
		if b = appended(b, r.Posterior); h.Votes {
			b = appended(b, []float32{r.Vote})
		}
	}
	return b
}

// errHeldOut: a section cannot be read.
var errHeldOut = errors.New("section held-out cannot be read: use the Flank release that made the model")

// heldReader reads numbers until something is wrong.
type heldReader struct {
	b   []byte
	bad bool
}

func (r *heldReader) bytes(n int) []byte {
	if r.bad = r.bad || n > len(r.b); r.bad {
		return make([]byte, min(n, 8))
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// count reads a number that is below the limit.
func (r *heldReader) count(limit int) int {
	v, n := binary.Uvarint(r.b)
	if r.bad = r.bad || n <= 0 || v >= uint64(limit); r.bad {
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *heldReader) signed() int64 {
	v, n := binary.Varint(r.b)
	if r.bad = r.bad || n <= 0; r.bad {
		return 0
	}
	r.b = r.b[n:]
	return v
}

// text reads a text.
func (r *heldReader) text() string { return string(r.bytes(r.count(len(r.b) + 1))) }

func (r *heldReader) float32() float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(r.bytes(4)))
}

// mostFolds and mostHeldClasses bound what is read.
const mostFolds, mostHeldClasses = 1 << 20, 1<<12 + 1

// DecodeHeldOut reads what HeldOut.Encode wrote.
func DecodeHeldOut(b []byte) (*HeldOut, error) {
	r := &heldReader{b: b}
	if string(r.bytes(len(heldOutMagic))) != heldOutMagic || r.bad || binary.LittleEndian.Uint32(r.bytes(4)) != heldOutVersion {
		return nil, errHeldOut
	}
	flags := r.bytes(1)[0]
	h := &HeldOut{ByTool: flags&1 != 0, Votes: flags&2 != 0, Folds: r.count(mostFolds), Classes: r.count(mostHeldClasses)}
	h.Temperature = math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
	h.tools(r)
	var holes []string
	for range r.count(len(r.b)) {
		if holes = append(holes, r.text()); r.bad {
			break
		}
	}
	h.rows(r, holes)
	if r.bad || len(r.b) > 0 || h.Classes < 2 || !(h.Temperature > 0) {
		return nil, errHeldOut
	}
	return h, nil
}

// tools reads the tools.
func (h *HeldOut) tools(r *heldReader) {
	for range r.count(len(r.b)) {
		t := HeldTool{Machine: r.text(), Tool: r.text(), Recording: r.text(), Group: r.text(), Apart: r.text()}
		t.Began, t.First, t.Last = timeOf(r.signed()), timeOf(r.signed()), timeOf(r.signed())
		if t.CutOff = r.bytes(1)[0] == 1; r.bad {
			return
		}
		h.Tools = append(h.Tools, t)
	}
}

// rows reads the rows.
func (h *HeldOut) rows(r *heldReader, holes []string) {
	last := make([][2]int64, len(h.Tools))
	for range r.count(len(r.b) + 1) {
		row := HeldRow{Tool: r.count(len(h.Tools))}
		hole := r.count(len(holes))
		row.Was, row.Class, row.Fold = r.count(h.Classes+1)-1, r.count(h.Classes+1)-1, r.count(h.Folds+2)-2
		bend := r.signed()
		if r.bad {
			return
		}
		row.Hole = holes[hole]
		l := &last[row.Tool]
		l[1] += bend
		l[0] += l[1]
		row.Start = timeOf(l[0])
		row.Posterior = make([]float32, h.Classes)
		for k := range row.Posterior {
			row.Posterior[k] = r.float32()
		}
		if h.Votes {
			row.Vote = r.float32()
		}
		h.Rows = append(h.Rows, row)
	}
}
