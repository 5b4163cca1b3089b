// Package event holds what Flank tells the world: one [Result] for every
// window, an [Alert] when an alarm changes, and [Evidence] once the waveform that
// belongs to an alert is kept, in the form that schemas/ prescribes. On Kafka they
// travel as CloudEvents 1.0 in binary mode: the attributes in ce_* headers, the
// JSON of the struct as the value.
package event

import (
	"encoding/json"
	"fmt"
	"time"
)

// CloudEvents types, one for each kind of message.
const (
	WindowType   = "io.tcm.window.v1"
	ResultType   = "io.tcm.result.v1"
	AlertType    = "io.tcm.alert.v1"
	EvidenceType = "io.tcm.evidence.v1"
	StateType    = "io.tcm.state.v1"
	DeadType     = "io.tcm.dead.v1"
)

// Verdict is what the monitor says of one window.
type Verdict string

// Every window gets exactly one of these. Scores count the first two only.
const (
	Healthy     Verdict = "healthy"
	Faulty      Verdict = "faulty"
	Unknown     Verdict = "unknown"      // the model does not know such windows
	Learning    Verdict = "learning"     // the tool's reference is not there yet
	NotCutting  Verdict = "not_cutting"  // the machine was not cutting
	SensorFault Verdict = "sensor_fault" // too many channels cannot be trusted
)

// Verdicts lists every verdict in the order in which summaries show them.
var Verdicts = []Verdict{Healthy, Faulty, Unknown, Learning, NotCutting, SensorFault}

// Sensor is the status of one channel that is not good.
type Sensor struct {
	Channel string   `json:"channel"`
	Flags   []string `json:"flags"` // names of signal.Quality
}

// Result is the verdict on one window. ID is the same whenever the same window
// is judged again, so readers drop repeats by it.
type Result struct {
	ID           string    `json:"id"`              // machine/epoch/seq/group
	Group        string    `json:"group,omitempty"` // consumer group of the monitor; releases before it was said leave it out
	Machine      string    `json:"machine"`
	Epoch        string    `json:"epoch"` // 16 hexadecimal digits
	Seq          uint64    `json:"seq"`
	Tool         string    `json:"tool,omitempty"`
	Hole         string    `json:"hole,omitempty"`
	Start        time.Time `json:"start"` // sensor time of the first sample
	End          time.Time `json:"end"`
	Verdict      Verdict   `json:"verdict"`
	Class        string    `json:"class,omitempty"`          // name of the class that the window is of, where that is not the verdict's word: what is faulty
	CuttingState string    `json:"cutting_state,omitempty"`  // what the machine did: idle, start-up, coolant, entry, drilling or retract; empty if not known
	Unknown      string    `json:"unknown_reason,omitempty"` // with verdict unknown: out_of_distribution, ambiguous or implausible
	Novelty      float64   `json:"novelty,omitempty"`        // p-value of nothing being new; 0 if not judged, or if the model cannot tell
	Posterior    []float64 `json:"posterior,omitempty"`      // P(class|window), healthy first; empty if not judged
	Score        float64   `json:"score"`                    // what speaks against healthy in [0,1], cost-weighted: ≥ 0.5 decides for faulty, which stands unless the verdict is unknown; 0 if not judged
	Model        string    `json:"model"`                    // model id
	Alarm        string    `json:"alarm"`                    // state of the machine's alarm after this window
	Incident     string    `json:"incident,omitempty"`       // what people call the alarm, if one stands
	Late         bool      `json:"late,omitempty"`           // came after later windows were judged; never moves the alarm
	Sensors      []Sensor  `json:"sensors,omitempty"`        // channels that are not good
	ReferenceLen int       `json:"reference_len,omitempty"`  // windows the tool's reference has so far, while learning

	WearUnknown bool `json:"wear_unknown,omitempty"` // the model estimates wear, and cannot of this window: see trend.Model.Root
	*Wear            // nil if it is not known
}

// Wear is what the tool's flank wear is after a window, and how long the tool
// lasts. Holes and windows left are nil where they are not known; one of them is
// always.
type Wear struct {
	WearUM          float64  `json:"wear_um"`      // never falls while a tool is in
	WearLowUM       float64  `json:"wear_low_um"`  // of its 80 % interval
	WearHighUM      float64  `json:"wear_high_um"` //
	HolesLeft       *float64 `json:"holes_left,omitempty"`
	HolesLeftLow    *float64 `json:"holes_left_low,omitempty"`
	HolesLeftHigh   *float64 `json:"holes_left_high,omitempty"`
	WindowsLeft     *float64 `json:"windows_left,omitempty"` // of cutting, where windows name no hole
	WindowsLeftLow  *float64 `json:"windows_left_low,omitempty"`
	WindowsLeftHigh *float64 `json:"windows_left_high,omitempty"`
}

// WindowID names a window: the id of its message and of its result.
func WindowID(machine, epoch string, seq uint64) string {
	return fmt.Sprintf("%s/%s/%d", machine, epoch, seq)
}

// Attributes returns the CloudEvents attributes of a message as Kafka headers
// of the binary mode spell them, in fixed order. Source is the machine.
// (CloudEvents Kafka protocol binding 1.0.2, §3.2.)
func Attributes(id, machine, typ string, at time.Time, contentType string) [][2]string {
	return [][2]string{
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
// all of this package means a NaN or an infinity: a defect of the caller.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("event: JSON: " + err.Error())
	}
	return b
}
