package event

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Offset is where a window lies in the machine's partition of the windows topic.
type Offset struct {
	At       int64
	Features bool // Kafka does not have the window: At is where its features lie in the features topic
}

// packed returns the offset as records have it: one of the features topic is less than -1.
func (o Offset) packed() int64 {
	if o.Features {
		return -2 - o.At
	}
	return o.At
}

func unpacked(n int64) Offset {
	if n < -1 {
		return Offset{-2 - n, true}
	}
	return Offset{At: n}
}

// MarshalJSON returns the offset as one number.
func (o Offset) MarshalJSON() ([]byte, error) { return json.Marshal(o.packed()) }

// UnmarshalJSON restores what MarshalJSON returns.
func (o *Offset) UnmarshalJSON(text []byte) error {
	var n int64
	err := json.Unmarshal(text, &n)
	*o = unpacked(n)
	return err
}

// StateTrace is the last windows of a tool, for alerts and to find them again on Kafka.
type StateTrace []TracePoint

// TracePoint is one window of a trace and where it lies.
type TracePoint struct {
	Point
	Offset Offset
}

// MarshalText packs a trace, which is the larger part of what changes with every
// window: 17 bytes a window, in base64.
func (t StateTrace) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 24*len(t))
	var seq uint64
	var end, offset int64
	for _, p := range t {
		v := slices.Index(Verdicts, p.Verdict)
		if v < 0 {
			return nil, fmt.Errorf("trace: verdict %q", p.Verdict)
		}
		b = append(b, byte(v))
		b = binary.AppendVarint(b, int64(p.Seq-seq))
		b = binary.AppendVarint(b, p.End.UnixNano()-end)
		b = binary.AppendVarint(b, p.Offset.packed()-offset)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.Score))
		seq, end, offset = p.Seq, p.End.UnixNano(), p.Offset.packed()
	}
	return base64.RawStdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalJSON restores a trace and refuses what is not one.
func (t *StateTrace) UnmarshalJSON(text []byte) error {
	var packed string
	if err := json.Unmarshal(text, &packed); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	b, err := base64.RawStdEncoding.DecodeString(packed)
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	*t = nil
	var seq uint64
	var end, offset int64
	for len(b) > 0 {
		v := int(b[0])
		b = b[1:]
		var d [3]int64
		for i := range d {
			var n int
			if d[i], n = binary.Varint(b); n <= 0 {
				return errors.New("trace: cut off")
			}
			b = b[n:]
		}
		if len(b) < 8 || v >= len(Verdicts) || len(*t) == MaxTrace {
			return errors.New("trace: cut off, too long, or of a verdict that this program does not know")
		}
		seq, end, offset = seq+uint64(d[0]), end+d[1], offset+d[2]
		score := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if score-score != 0 {
			return errors.New("trace: a score that is not a number")
		}
		b = b[8:]
		*t = append(*t, TracePoint{Point{Seq: seq, End: time.Unix(0, end).UTC(), Score: score, Verdict: Verdicts[v]}, unpacked(offset)})
	}
	return nil
}

// Points returns the trace as an alert has it.
func (t StateTrace) Points() []Point {
	points := make([]Point, len(t))
	for i, p := range t {
		points[i] = p.Point
	}
	return points
}
