package machine

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// How much of the past a machine remembers.
const (
	KeptTools  = 64 // tools of a machine, those seen last
	keptRaised = 50 // alarms that are over and may still be marked as false
	pastRanges = 32 // intervals of windows in an epoch that another one followed
)

// State is everything that is remembered of one machine. It is plain data; [Machine.Records]
// writes what changed of it, and [Load] reads it back.
type State struct {
	Place
	headState
	slowState

	Tools []*Tool // the one in the spindle last, before it those seen last
}

// headState changes with every window.
type headState struct {
	Machine      string        `json:"machine"`
	Model        string        `json:"model"`                   // id of the model that judged last
	Layout       string        `json:"layout,omitempty"`        // fingerprint of the layout of its last window in order
	Newest       time.Time     `json:"newest,omitzero"`         // end of the last window in order
	Masks        alarm.Masks   `json:"masks,omitzero"`          // of all its alarms
	Notices      []Notice      `json:"notices,omitempty"`       // conditions other than the alarm
	Evidence     []EvidenceJob `json:"evidence,omitempty"`      // that alerts have announced and that is not written yet
	LastWindowAt time.Time     `json:"last_window_at,omitzero"` // when a window came last, by the clock of the monitor that took it
}

// slowState changes with a tool, an alarm or a command.
type slowState struct {
	Drift    map[string]*model.DriftMemory `json:"drift,omitempty"`   // over the tools, by model
	Raised   []PastAlarm                   `json:"raised,omitempty"`  // that were published as raised, the last one last
	Commands Commands                      `json:"commands,omitzero"` // that were carried out or refused
}

// Tool is what is remembered of one life of a tool of a machine. It waits while another tool is
// in the spindle.
type Tool struct {
	Name     string        `json:"tool"`
	Life     string        `json:"life,omitempty"` // of the tool under this name, see signal.Context; empty: never declared new
	Seen     int           `json:"seen"`           // orders the tools of a machine: the greater, the later it was in the spindle
	First    FirstWindow   `json:"first,omitzero"`
	PastGone bool          `json:"past_gone,omitempty"` // its first windows are not in Kafka any more: no build can find them
	Windows  int           `json:"windows"`             // that moved it
	Moved    MovedBy       `json:"moved,omitempty"`     // these; the head has the last epoch of them only
	By       string        `json:"by,omitempty"`        // id of the model whose judging moves the alarm
	Alarm    Alarm         `json:"alarm"`
	Cutting  time.Duration `json:"cutting_ns,omitempty"` // since it came, as far as the monitor saw it
	CutUntil time.Time     `json:"cut_until,omitzero"`   // end of the last window that counted for Cutting
	Epoch    string        `json:"epoch,omitempty"`      // of the windows in Trace
	Trace    Trace         `json:"trace,omitempty"`      // the last windows

	Judgings []*Judging `json:"-"` // By's, the next one's, former ones', shadows'; each has a record of its own
}

// Trace is the last windows of a tool, for alerts and to find them again on Kafka.
type Trace []TracePoint

// TracePoint is one window of a trace and where it lies.
type TracePoint struct {
	event.Point
	Offset int64 // in the machine's partition of the windows topic
}

// MarshalText packs a trace, which is the larger part of what changes with every
// window: 17 bytes a window, in base64.
func (t Trace) MarshalText() ([]byte, error) {
	b := make([]byte, 0, 24*len(t))
	var seq uint64
	var end, offset int64
	for _, p := range t {
		v := slices.Index(event.Verdicts, p.Verdict)
		if v < 0 {
			return nil, fmt.Errorf("trace: verdict %q", p.Verdict)
		}
		b = append(b, byte(v))
		b = binary.AppendVarint(b, int64(p.Seq-seq))
		b = binary.AppendVarint(b, p.End.UnixNano()-end)
		b = binary.AppendVarint(b, p.Offset-offset)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.Score))
		seq, end, offset = p.Seq, p.End.UnixNano(), p.Offset
	}
	return base64.RawStdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalJSON restores a trace and refuses what is not one.
func (t *Trace) UnmarshalJSON(text []byte) error {
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
		if len(b) < 8 || v >= len(event.Verdicts) || len(*t) == event.MaxTrace {
			return errors.New("trace: cut off, too long, or of a verdict that this program does not know")
		}
		seq, end, offset = seq+uint64(d[0]), end+d[1], offset+d[2]
		score := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if score-score != 0 {
			return errors.New("trace: a score that is not a number")
		}
		b = b[8:]
		*t = append(*t, TracePoint{event.Point{Seq: seq, End: time.Unix(0, end).UTC(), Score: score, Verdict: event.Verdicts[v]}, offset})
	}
	return nil
}
