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
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/trend"
)

// How much of the past a machine remembers.
const (
	KeptTools  = 64  // tools of a machine, those seen last
	keptEpochs = 256 // a machine gets a new epoch with every spool, and some sources with every file
	keptRaised = 50  // alarms that are over and may still be marked as false
	pastRanges = 32  // intervals of judged windows in an epoch that another one followed
)

// State is everything that is remembered of one machine. It is plain data; [Records]
// writes what changed of it, and [Load] reads it back.
type State struct {
	Machine      string
	Model        string            // id of the model that judged last
	Epochs       []Epoch           // the current one last
	Layout       string            // fingerprint of its last window's layout
	Newest       time.Time         // end of the last window of the current epoch that was not late
	Tools        []*Tool           // the one in the spindle last, before it those seen last
	Drift        model.DriftMemory // over the tools
	Notices      []Notice          // conditions other than the alarm
	Commands     Commands          // that were carried out or refused
	Raised       []PastAlarm       // that were published as raised, the last one last
	Evidence     []EvidenceJob     // that alerts have announced and that is not written yet
	LastWindowAt time.Time         // when a window came last, by the clock of the monitor that took it
}

// Epoch is what was judged of one epoch: of the windows that one spool of one ingester
// has numbered.
type Epoch struct {
	ID     string `json:"id"` // 16 hexadecimal digits
	Judged ranges `json:"judged"`

	// Of an epoch that sends while another one is the current one.
	Run    int   `json:"run,omitempty"`     // windows of it since the last one of the current epoch
	Rival  bool  `json:"rival,omitempty"`   // the current epoch went on after this one had begun: two ingesters
	Led    bool  `json:"led,omitempty"`     // it was the current one at some time
	LastMS int64 `json:"last_ms,omitempty"` // when Kafka got its last window, in Unix milliseconds
}

// Tool is what is remembered of one tool of a machine. It waits while another tool is
// in the spindle.
type Tool struct {
	Name      string
	Life      string // of the tool under this name, see signal.Context; empty: never declared new
	Features  string // what the reference's values are of, see Model.fingerprint
	Seen      int    // orders the tools of a machine: the greater, the later it was in the spindle
	First     FirstWindow
	Stale     bool  // what is remembered for another model is forgotten, and the tool's past may be replayed
	From      int64 // offset of the first window that the reference was learnt from; -1 if it is not known
	Reference model.Reference
	Rebuild   bool         // the reference is to be learnt again from windows that are still in Kafka
	Drifted   bool         // the machine's drift has taken the reference into account
	Cycle     cycle.Memory // of the machine's working cycle with this tool
	Wear      trend.Tool
	Alarm     alarm.State
	Incident  string        // what people call the alarm that stands
	Cutting   time.Duration // since it came, as far as the monitor saw it
	CutUntil  time.Time     // end of the last window that counted for Cutting
	Unknown   uint64        // bit i: did the model not know the i-th last window that it might have judged?
	Epoch     string        // of the windows in Trace
	Trace     Trace         // the last windows
}

// fast is what changes of a tool with every window.
type fast struct {
	Name     string        `json:"tool"`
	Life     string        `json:"life,omitempty"`
	Cycle    *cycle.Memory `json:"cycle,omitempty"`
	Wear     *trend.Tool   `json:"wear,omitempty"` // without Points, which are in the tool's own record
	Alarm    alarm.State   `json:"alarm"`
	Incident string        `json:"incident,omitempty"`
	Cutting  time.Duration `json:"cutting_ns,omitempty"`
	CutUntil time.Time     `json:"cut_until,omitzero"`
	Unknown  uint64        `json:"unknown,omitempty"`
	Epoch    string        `json:"epoch,omitempty"`
	Trace    Trace         `json:"trace,omitempty"`
}

// toolRecord is the record of a tool: all of it as it was when its slow part changed, or
// when it left the spindle.
type toolRecord struct {
	fast
	Features  string           `json:"features,omitempty"`
	From      int64            `json:"from"`
	Reference *model.Reference `json:"reference,omitempty"`
	Rebuild   bool             `json:"rebuild,omitempty"`
	First     *FirstWindow     `json:"first,omitempty"`
	Stale     bool             `json:"stale,omitempty"`
	Drifted   bool             `json:"drift_seen,omitempty"`
	Seen      int              `json:"seen"`
	Points    []trend.Point    `json:"points,omitempty"`
}

// headRecord changes with every window.
type headRecord struct {
	Version  int           `json:"version"`
	Machine  string        `json:"machine"`
	Model    string        `json:"model"`
	Layout   string        `json:"layout,omitempty"`
	Epoch    *Epoch        `json:"epoch,omitempty"` // the current one
	Newest   time.Time     `json:"newest,omitzero"`
	Tool     *fast         `json:"tool,omitempty"` // in the spindle
	Notices  []Notice      `json:"notices,omitempty"`
	Evidence []EvidenceJob `json:"evidence,omitempty"`
	LastAt   time.Time     `json:"last_window_at,omitzero"`
}

// slowRecord changes with an epoch, a tool, an alarm or a command.
type slowRecord struct {
	Epochs   []Epoch            `json:"epochs,omitempty"` // before the current one
	Drift    *model.DriftMemory `json:"drift,omitempty"`
	Raised   []PastAlarm        `json:"raised,omitempty"`
	Commands *Commands          `json:"commands,omitempty"`

	// Retired says that the machine was retired and this is its only record: a command that
	// comes again must not be carried out again once the machine has begun again.
	Retired bool `json:"retired,omitempty"`
}

// recordVersion is the version of the records that this program writes. Records
// without one are of programs that kept a machine in one record.
const recordVersion = 2

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
