package event

import "time"

// AdvisoryType is the CloudEvents type of an advisory.
const AdvisoryType = "io.tcm.advisory.v1"

// AdvisoryKind is what an advisory is about.
type AdvisoryKind string

// The kinds.
const (
	SensorAdvisory  AdvisoryKind = "sensor"          // a channel, or the clock of several, cannot be trusted
	SilenceAdvisory AdvisoryKind = "silence"         // no windows of the machine come
	UnknownAdvisory AdvisoryKind = "unknown"         // the model has not recognised the machine's windows for long, so the tool is not watched
	RivalAdvisory   AdvisoryKind = "two_ingesters"   // a second ingester sends windows of the machine
	LossAdvisory    AdvisoryKind = "samples_lost"    // too many samples of the machine's source are in no window
	RefusedAdvisory AdvisoryKind = "windows_refused" // the monitor refuses the machine's windows, so the machine is not watched
	ModelAdvisory   AdvisoryKind = "model_changed"   // the tool's reference is rebuilt for a model of other features
	StoppedAdvisory AdvisoryKind = "machine_stopped" // a defect of the program: nothing of the machine is judged
	DriftAdvisory   AdvisoryKind = "drift"           // features are not distributed as when the model was trained
)

// AdvisoryKinds lists every kind, in the order of schemas/advisory.schema.json.
var AdvisoryKinds = []AdvisoryKind{SensorAdvisory, SilenceAdvisory, UnknownAdvisory, DriftAdvisory, RivalAdvisory, LossAdvisory, ModelAdvisory, RefusedAdvisory, StoppedAdvisory}

// Advisory says that a condition other than a worn tool has begun (State is Raised) or
// ended (Cleared). The two alternate for each machine, kind and subject. Advisories share
// the topic of alerts, never move an alarm, and need no acknowledgement. ID is stable: a
// restart sends the same advisory under the same id.
type Advisory struct {
	ID       string       `json:"id"`    // machine/epoch/seq/kind[/subject]/state, or machine/silence/time/raised
	Group    string       `json:"group"` // consumer group of the monitor
	Machine  string       `json:"machine"`
	Tool     string       `json:"tool,omitempty"`
	Kind     AdvisoryKind `json:"kind"`
	Subject  string       `json:"subject,omitempty"`  // sensor: the channel, or the rate or the sensor of Channels; empty: the machine, or for a sensor advisory its clock
	Channels []string     `json:"channels,omitempty"` // sensor: the channels, if all sensors of one rate are concerned, or a sensor has several
	State    AlertState   `json:"state"`              // Raised or Cleared
	Status   string       `json:"status,omitempty"`   // sensor: its status by NAMUR NE 107, one of package signal's words
	Flags    []string     `json:"flags,omitempty"`    // sensor: what was wrong, names of signal.Quality, "disagrees", "gain" or "no_reference"
	Severity string       `json:"severity"`           // "warning" if someone should act, else "info"
	Since    time.Time    `json:"since"`              // start of the first window that led to it; silence: when the last window came, by the monitor's clock; refused windows and lost samples: when Kafka got the first one, or the first ledger
	At       time.Time    `json:"at"`                 // end of the window that decided; silence: by the monitor's clock; refused windows and lost samples: when Kafka got the window or the ledger that decided
	Epoch    string       `json:"epoch"`
	Seq      uint64       `json:"seq"` // of the window that decided, or the last one before
	Model    string       `json:"model"`
	Text     string       `json:"text"` // one line for a person
}

// Origin returns which machine the advisory is about, and which group published it.
func (a Advisory) Origin() (machine, group string) { return a.Machine, a.Group }
