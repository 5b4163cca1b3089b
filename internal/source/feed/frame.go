package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// maxFrame is the most bytes that a frame may have.
const maxFrame = 16 << 20

// maxValues is the most values of all columns that a frame may have.
const maxValues = 8 << 20

// facts is what a frame says besides its samples: the metadata of its Arrow
// schema, or the keys of its JSON object.
type facts struct {
	session, first, timeNS int64
	rate, speed            float64
	machine, tool, hole    string
}

// column is a column of a frame. Store writes gain·value + offset of every row to
// dst.
type column interface {
	Len() int
	Store(dst []float32, gain, offset float64)
}

// decoder makes blocks of frames. It is safe for concurrent use.
type decoder struct {
	machine string
	layout  *signal.Layout
	origins []signal.Origin      // by channel
	missing func(v float64) bool // nil: no number stands for a missing value
}

func newDecoder(cfg Config) *decoder {
	d := &decoder{machine: cfg.Machine, layout: cfg.Layout, missing: source.IsMissing(cfg.Columns.Missing)}
	for _, c := range cfg.Layout.Channels() {
		d.origins = append(d.origins, cfg.Columns.Origin(c.Name))
	}
	return d
}

// nameError is what is wrong with the name of a tool or hole. A person wrote it, and the frame is as the sender means it.
type nameError struct{ error }

// decode returns the block of a frame, in memory of its own. For any
// bytes, it allocates at most a few times their number.
func (d *decoder) decode(frame []byte) (*source.Block, error) {
	if len(frame) > maxFrame {
		return nil, fmt.Errorf("feed: a frame of %d bytes: at most %d are taken, send fewer samples at a time", len(frame), maxFrame)
	}
	parse := parseArrow
	if bytes.HasPrefix(bytes.TrimLeft(frame, " \t\r\n"), []byte("{")) {
		parse = parseJSON
	}
	f, cols, err := parse(frame)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	b, err := d.block(f, cols)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return b, nil
}

// block checks facts and columns against the layout.
func (d *decoder) block(f facts, cols map[string]column) (*source.Block, error) {
	g, err := d.group(cols)
	if err != nil {
		return nil, err
	}
	group := d.layout.Groups()[g]
	channels := d.layout.Channels()
	rows := cols[d.origins[group.Channels[0]].From].Len()
	switch {
	case rows == 0:
		return nil, errors.New("the frame holds no samples: send none instead")
	case f.machine != "" && f.machine != d.machine:
		return nil, fmt.Errorf("the frame is of machine %.200q, this feed is of %q: correct the address or the sender", f.machine, d.machine)
	case f.rate != 0 && !(math.Abs(f.rate/group.Rate-1) < 1e-3):
		return nil, fmt.Errorf("the frame says %v Hz, channel %s of the layout has %v Hz: correct one of them", f.rate, channels[group.Channels[0]].Name, group.Rate)
	case f.first < 0 || float64(f.first)/group.Rate > century.Seconds():
		return nil, fmt.Errorf("first: %d: must count samples from the start of the session, from 0 to a century", f.first)
	case f.timeNS <= 0:
		return nil, fmt.Errorf("time_ns: %d: must be nanoseconds since 1970, UTC", f.timeNS)
	}
	if err := checkSpeed(f.speed); err != nil {
		return nil, err
	}
	if f.tool, err = ToolName(f.tool); err != nil {
		return nil, fmt.Errorf("tool: %w", nameError{err})
	}
	if err := checkText(f.hole); err != nil {
		return nil, fmt.Errorf("hole: %w", nameError{err})
	}
	b := &source.Block{Block: signal.Block{
		Context: signal.Context{Tool: f.tool, Hole: f.hole, SpindleSpeed: f.speed},
		Session: f.session, Group: g, First: f.first, Time: time.Unix(0, f.timeNS).UTC(),
		Samples: make([][]float32, len(group.Channels)),
	}}
	all := make([]float32, rows*len(group.Channels))
	for i, c := range group.Channels {
		o := d.origins[c]
		col := cols[o.From]
		if col.Len() != rows {
			return nil, fmt.Errorf("columns %q and %q have %d and %d samples: send as many of each", d.origins[group.Channels[0]].From, o.From, rows, col.Len())
		}
		b.Samples[i], all = all[:rows:rows], all[rows:]
		var gone []int // what the sender writes where a value is missing
		if d.missing != nil {
			col.Store(b.Samples[i], 1, 0)
			for k, v := range b.Samples[i] {
				if d.missing(float64(v)) {
					gone = append(gone, k)
				}
			}
		}
		col.Store(b.Samples[i], o.Gain, o.Offset)
		for _, k := range gone {
			b.Samples[i][k] = float32(math.NaN())
		}
	}
	return b, nil
}

const century = 100 * 365 * 24 * time.Hour

// group returns which rate the columns are of: all its channels must be there,
// and none of another rate. Columns that the layout does not name do not count.
func (d *decoder) group(cols map[string]column) (int, error) {
	found, missing := -1, ""
	for g, group := range d.layout.Groups() {
		present := 0
		for _, c := range group.Channels {
			if cols[d.origins[c].From] != nil {
				present++
			} else {
				missing = d.origins[c].From
			}
		}
		switch {
		case present == 0:
			continue
		case present < len(group.Channels):
			return 0, fmt.Errorf("no column %q, while others of %v Hz are there: a frame holds all channels of a rate", missing, group.Rate)
		case found >= 0:
			return 0, fmt.Errorf("columns of %v Hz and of %v Hz: send a frame for each rate", d.layout.Groups()[found].Rate, group.Rate)
		}
		found = g
	}
	if found < 0 {
		return 0, fmt.Errorf("no column is a channel of layout %q: name columns after channels, or set `from` in the layout", d.layout.Name())
	}
	return found, nil
}

// set takes a known fact of the metadata.
func (f *facts) set(key, text string) (err error) {
	switch key {
	case "machine":
		f.machine = text
	case "tool":
		f.tool = text
	case "hole":
		f.hole = text
	case "session":
		f.session, err = strconv.ParseInt(text, 10, 64)
	case "first":
		f.first, err = strconv.ParseInt(text, 10, 64)
	case "time_ns":
		f.timeNS, err = strconv.ParseInt(text, 10, 64)
	case "rate":
		f.rate, err = strconv.ParseFloat(text, 64)
	case "spindle_speed":
		f.speed, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		return fmt.Errorf("%s: %.40q is not a number", key, text)
	}
	return nil
}

// known are the facts that a frame may have, and needed those that every frame has.
var (
	known  = []string{"session", "first", "time_ns", "rate", "machine", "tool", "hole", "spindle_speed"}
	needed = known[:3]
)

// jsonFrame is a frame as JSON.
type jsonFrame struct {
	Session  *int64               `json:"session"`
	First    *int64               `json:"first"`
	TimeNS   *int64               `json:"time_ns"`
	Rate     float64              `json:"rate"`
	Machine  string               `json:"machine"`
	Tool     string               `json:"tool"`
	Hole     string               `json:"hole"`
	Speed    float64              `json:"spindle_speed"`
	Channels map[string][]*number `json:"channels"` // null is a missing sample
}

// number is a value that a sample may have.
type number float64

func parseJSON(text []byte) (facts, map[string]column, error) {
	var j jsonFrame
	if err := json.Unmarshal(text, &j); err != nil {
		return facts{}, nil, fmt.Errorf("the frame is not JSON as schemas/frame.md has it: %w", err)
	}
	for i, v := range []*int64{j.Session, j.First, j.TimeNS} {
		if v == nil {
			return facts{}, nil, fmt.Errorf("%q is missing: every frame says it", needed[i])
		}
	}
	f := facts{
		session: *j.Session, first: *j.First, timeNS: *j.TimeNS, rate: j.Rate, speed: j.Speed,
		machine: j.Machine, tool: j.Tool, hole: j.Hole,
	}
	cols := make(map[string]column, len(j.Channels))
	for name, x := range j.Channels {
		cols[name] = jsonColumn(x)
	}
	return f, cols, nil
}

type jsonColumn []*number

func (c jsonColumn) Len() int { return len(c) }

func (c jsonColumn) Store(dst []float32, gain, offset float64) {
	for i, v := range c {
		if v == nil {
			dst[i] = float32(math.NaN())
			continue
		}
		dst[i] = float32(gain*float64(*v) + offset)
	}
}
