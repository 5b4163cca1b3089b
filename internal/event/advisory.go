package event

import "time"

// AdvisoryType is the CloudEvents type of an advisory.
const AdvisoryType = "io.tcm.advisory.v1"

// AdvisoryKind is what an advisory is about.
type AdvisoryKind string

// The kinds.
const (
	SensorAdvisory  AdvisoryKind = "sensor"        // a channel, or the clock of several, cannot be trusted
	SilenceAdvisory AdvisoryKind = "silence"       // no windows of the machine come
	UnknownAdvisory AdvisoryKind = "unknown"       // the model has not known for long what it sees, so nobody watches the tool
	RivalAdvisory   AdvisoryKind = "two_ingesters" // a second ingester sends windows of the machine
	ModelAdvisory   AdvisoryKind = "model_changed" // the tool's reference is rebuilt for a model of other features
	DriftAdvisory   AdvisoryKind = "drift"         // features are not what they were when the model was trained
)

// Advisory says that something is the matter that is no alarm of the tool, or that
// it is over: State is Raised or Cleared, and they alternate for each machine, kind
// and subject. It travels beside alerts, never moves an alarm, and needs no
// acknowledgement. ID is stable: a restart sends the same advisory under the same id.
type Advisory struct {
	ID       string       `json:"id"`              // machine/epoch/seq/kind[/subject]/state, or machine/silence/time/raised
	Group    string       `json:"group,omitempty"` // consumer group of the monitor; releases before it was said leave it out
	Machine  string       `json:"machine"`
	Tool     string       `json:"tool,omitempty"`
	Kind     AdvisoryKind `json:"kind"`
	Subject  string       `json:"subject,omitempty"`  // of a sensor the channel, or the rate of Channels; empty: the machine, of a sensor its clock
	Channels []string     `json:"channels,omitempty"` // of all sensors of one rate: their channels
	State    AlertState   `json:"state"`              // Raised or Cleared
	Status   string       `json:"status,omitempty"`   // of a sensor that is not good, by NAMUR NE 107: one of package signal
	Flags    []string     `json:"flags,omitempty"`    // of a sensor: what was wrong, names of signal.Quality
	Severity string       `json:"severity"`           // "warning" if somebody should act, else "info"
	Since    time.Time    `json:"since"`              // start of the first window that led to it; of silence when the last window came, by the monitor's clock
	At       time.Time    `json:"at"`                 // end of the window that decided; of silence the monitor's clock
	Epoch    string       `json:"epoch"`
	Seq      uint64       `json:"seq"` // of the window that decided, or the last before
	Model    string       `json:"model"`
	Text     string       `json:"text"` // one line for a person
}
