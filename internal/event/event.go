// Package event holds the messages that Flank publishes: one [Result] for every
// window, an [Alert] when an alarm changes, and [Evidence] once the waveform around
// an alert is kept, in the form that schemas/ prescribes. On Kafka they
// travel as CloudEvents 1.0 in binary mode: the attributes in ce_* headers, the
// JSON of the struct as the value.
//
// It also has the form of what is remembered of a machine: a [StateRecord] of the topic tcm.state.v1, its [StateKey], and how
// records go to another name ([RenamedState]) or another partition ([MovedState]). It judges nothing.
package event

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CloudEvents types, one for each kind of message.
const (
	WindowType   = "io.tcm.window.v1"
	FeaturesType = "io.tcm.features.v1"
	ResultType   = "io.tcm.result.v1"
	AlertType    = "io.tcm.alert.v1"
	EvidenceType = "io.tcm.evidence.v1"
	StateType    = "io.tcm.state.v1"
)

// Verdict is the monitor's judgement of one window.
type Verdict string

// Every window gets exactly one of these. Scores count the first two only.
const (
	Healthy     Verdict = "healthy"
	Faulty      Verdict = "faulty"
	Unknown     Verdict = "unknown"      // the model has not been trained for such windows
	Learning    Verdict = "learning"     // the tool's reference is not complete yet
	NotCutting  Verdict = "not_cutting"  // the machine was not cutting
	SensorFault Verdict = "sensor_fault" // too many channels cannot be trusted
)

// Different is the class of a window by a model that has seen no worn tool, see model.Different.
const Different = "different"

// Verdicts lists every verdict in the order in which summaries show them.
var Verdicts = []Verdict{Healthy, Faulty, Unknown, Learning, NotCutting, SensorFault}

// Sensor is a channel that cannot be trusted, and why.
type Sensor struct {
	Channel string   `json:"channel"`
	Flags   []string `json:"flags"` // names of signal.Quality
}

// Range is between which values the samples of a channel were in a window, in its unit: from the
// least to the greatest, or about that where the features do not say it.
type Range struct {
	Channel string  `json:"channel"`
	Low     float32 `json:"low"`
	High    float32 `json:"high"`
}

// NoTool is why a window is unknown that names no tool between windows that do.
const NoTool = "no_tool"

// Between reports whether the window may lie between windows of a tool, and names none: alarm and incident are of the tool in the spindle,
// and not of a tool without a name.
func (r *Result) Between() bool {
	return r.Tool == "" && (r.Unknown == NoTool || r.Verdict == NotCutting || r.Verdict == SensorFault)
}

// shadowSeparator is between the group and the model in the group of a shadow.
const shadowSeparator = "~"

// ShadowGroup returns the group in whose name a shadow of a monitor's group publishes.
func ShadowGroup(group, id string) string { return group + shadowSeparator + id }

// Result is the verdict on one window. ID is the same whenever the same window
// is judged again, so readers drop repeats by it.
type Result struct {
	ID           string    `json:"id"`    // machine/epoch/seq/group
	Group        string    `json:"group"` // consumer group of the monitor
	Machine      string    `json:"machine"`
	Epoch        string    `json:"epoch"` // 16 hexadecimal digits
	Seq          uint64    `json:"seq"`
	Tool         string    `json:"tool,omitempty"`
	ToolLife     string    `json:"tool_life,omitempty"` // tells apart tools that had the same name, see signal.Context: the one that windows name, or the command that declared it new; empty if it was never declared new, or the window is not of the one that is known
	Hole         string    `json:"hole,omitempty"`
	FeedRate     float64   `json:"feed_rate,omitempty"` // mm/min
	Programme    string    `json:"programme,omitempty"` // of the machine's control
	Material     string    `json:"material,omitempty"`
	Start        time.Time `json:"start"` // sensor time of the first sample
	End          time.Time `json:"end"`
	Verdict      Verdict   `json:"verdict"`
	Class        string    `json:"class,omitempty"`          // name of the window's class, if that differs from the verdict: what is faulty
	CuttingState string    `json:"cutting_state,omitempty"`  // idle, start-up, coolant, entry, drilling or retract; empty if not known
	Unknown      string    `json:"unknown_reason,omitempty"` // with verdict unknown: out_of_distribution, ambiguous, implausible, model_changed or no_tool
	Novelty      float64   `json:"novelty,omitempty"`        // p-value of the hypothesis that nothing is new; 0 if not judged, or if the model does not compute it
	Posterior    []float64 `json:"posterior,omitempty"`      // P(class|window), healthy first; empty if not judged
	Score        float64   `json:"score"`                    // cost-weighted evidence against healthy in [0,1]: from 0.5 on the verdict is faulty, unless it is unknown; 0 if not judged
	Threshold    float64   `json:"threshold,omitempty"`      // score from which on a window counts as faulty for the machine's alarm; 0 if not known
	Level        float64   `json:"level,omitempty"`          // of a model that has seen no worn tool: by what factor its sensor differs from the tool's first windows; 0 if not judged, and by other models
	Model        string    `json:"model"`                    // model id
	Alarm        string    `json:"alarm"`                    // state of the machine's alarm after this window
	Incident     string    `json:"incident,omitempty"`       // short name of the open alarm, if there is one
	Late         bool      `json:"late,omitempty"`           // came after later windows were judged; never moves the alarm
	Sensors      []Sensor  `json:"sensors,omitempty"`        // channels that cannot be trusted
	ReferenceLen int       `json:"reference_len,omitempty"`  // windows the tool's reference has so far, while learning
	Ranges       []Range   `json:"ranges,omitempty"`         // of channels, if the tool's reference is made of the window

	WearUnknown bool `json:"wear_unknown,omitempty"` // the model estimates wear, but not for this window: see trend.Model.Root
	*Wear            // nil if not known

	Ledger *Ledger `json:"ledger,omitempty"` // of the machine's source, if a gateway has sent one since the result before

	Champion *Champion `json:"champion,omitempty"` // what the champion made of the window; only in results of shadows
}

// Published is an event of a machine that a group of monitors has published.
type Published interface {
	Origin() (machine, group string)
}

// Origin returns which machine the result is about, and which group published it.
func (r Result) Origin() (machine, group string) { return r.Machine, r.Group }

// Champion is what the model that counts made of a window which a shadow has judged too.
type Champion struct {
	Model    string  `json:"model"`
	Verdict  Verdict `json:"verdict"`
	Incident string  `json:"incident,omitempty"` // short name of its open alarm, if there is one
}

// Wear is the tool's estimated flank wear after a window, and how long the tool
// will last. Holes left and windows left are nil where they are not known; at least one
// of the two is nil.
type Wear struct {
	WearUM          float64  `json:"wear_um"`      // never falls while the tool is in the spindle
	WearLowUM       float64  `json:"wear_low_um"`  // of its 80 % interval
	WearHighUM      float64  `json:"wear_high_um"` //
	HolesLeft       *float64 `json:"holes_left,omitempty"`
	HolesLeftLow    *float64 `json:"holes_left_low,omitempty"`
	HolesLeftHigh   *float64 `json:"holes_left_high,omitempty"`
	WindowsLeft     *float64 `json:"windows_left,omitempty"` // of cutting, if windows do not name holes
	WindowsLeftLow  *float64 `json:"windows_left_low,omitempty"`
	WindowsLeftHigh *float64 `json:"windows_left_high,omitempty"`
}

// ShortName returns the last part of a machine's ISA-95 path.
func ShortName(machine string) string { return machine[strings.LastIndexByte(machine, '/')+1:] }

// WindowID returns the id of a window's message. A result's id is it with the group appended.
func WindowID(machine, epoch string, seq uint64) string {
	var id [256]byte
	return string(appendWindowID(id[:0], machine, epoch, seq))
}

func appendWindowID(b []byte, machine, epoch string, seq uint64) []byte {
	b = append(append(append(append(b, machine...), '/'), epoch...), '/')
	return strconv.AppendUint(b, seq, 10)
}

// Attributes returns the CloudEvents attributes of a message as Kafka headers
// of the binary mode spell them, in fixed order. Source is the machine.
// (CloudEvents Kafka protocol binding 1.0.2, §3.2.)
func Attributes(id, machine, typ string, at time.Time, contentType string) [7][2]string {
	return [7][2]string{
		{"ce_specversion", "1.0"},
		{"ce_id", id},
		{"ce_source", "/" + machine},
		{"ce_type", typ},
		{"ce_time", at.UTC().Format(time.RFC3339Nano)},
		{"ce_partitionkey", machine},
		{"content-type", contentType},
	}
}

// JSON returns v as one line of JSON. It panics if v cannot be one, which for
// the types of this package means a NaN or an infinity: a defect of the caller.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("event: JSON: " + err.Error())
	}
	return b
}

// Unnamed is the machine of recordings that name none, as trainer's --machine has it by default.
const Unnamed = "local/site/area/line/machine"

// MachineRune reports whether a level of a machine's path may have r.
func MachineRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// CheckMachine reports a machine that is not an ISA-95 path. The path is the key of
// messages and a part of every id.
func CheckMachine(path string) error {
	parts := strings.Split(path, "/")
	bad := func(r rune) bool { return !MachineRune(r) }
	for _, p := range parts {
		if p == "" || strings.ContainsFunc(p, bad) || len(parts) != 5 {
			return fmt.Errorf("%.200q: write enterprise/site/area/line/machine in a-z, 0-9, - and _, for example acme/spore/bay2/line1/usk25", path)
		}
	}
	return nil
}
