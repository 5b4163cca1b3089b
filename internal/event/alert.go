package event

import "time"

// AlertState is what happened to an alarm.
type AlertState string

// The changes of pkg/alarm. Raised and Cleared alternate; the others come between them.
const (
	Raised       AlertState = "raised"
	Cleared      AlertState = "cleared"
	returned     AlertState = "returned"
	Reactivated  AlertState = "reactivated"
	Acknowledged AlertState = "acknowledged"
	Shelved      AlertState = "shelved"
	Unshelved    AlertState = "unshelved"
	Suppressed   AlertState = "suppressed"
	Unsuppressed AlertState = "unsuppressed"

	TakenOutOfService AlertState = "out_of_service"
	BackInService     AlertState = "in_service"

	// A person marked an alarm, which may have ended. The open alarm does not change.
	MarkedFalse   AlertState = "marked_false"   // nothing was wrong with the tool
	UnmarkedFalse AlertState = "unmarked_false" // the mark was withdrawn
)

// What people do to a machine or a tool, rather than to an alarm.
const (
	ToolIsNew AlertState = "tool_is_new" // a tool was declared new under its name
	Renamed   AlertState = "renamed"     // the machine goes on under another name
	Retired   AlertState = "retired"     // the machine was taken off: nothing is remembered of it
	Refused   AlertState = "refused"     // a command was not carried out; Text says why
)

// AlertStates lists every state of an alert, in the order of schemas/alert.schema.json.
// The first two are the states of advisories too.
var AlertStates = []AlertState{
	Raised, Cleared, returned, Reactivated, Acknowledged, Shelved, Unshelved, Suppressed, Unsuppressed, TakenOutOfService, BackInService,
	Refused, MarkedFalse, UnmarkedFalse, ToolIsNew, Retired, Renamed,
}

// Marks reports whether alerts of this state only mark an alarm, which may have
// ended.
func (s AlertState) Marks() bool { return s == MarkedFalse || s == UnmarkedFalse }

// Alert says that the alarm of a machine's tool changed. ID is stable: a
// restart sends the same alert under the same id.
type Alert struct {
	ID       string     `json:"id"`    // machine/epoch/seq/state, machine/command/id/state or machine/shelf/time/state
	Group    string     `json:"group"` // consumer group of the monitor
	Machine  string     `json:"machine"`
	Tool     string     `json:"tool,omitempty"`
	ToolLife string     `json:"tool_life,omitempty"` // of the tool whose alarm it is, as in a result
	Magazine bool       `json:"magazine,omitempty"`  // the tool is not in the spindle: Alarm is how its own alarm is, and the machine's has not changed
	Hole     string     `json:"hole,omitempty"`
	State    AlertState `json:"state"`
	Alarm    string     `json:"alarm,omitempty"`    // state of the alarm after the change, in the words of a result
	Incident string     `json:"incident,omitempty"` // short name of the open alarm, the same from raised to cleared; MarkedFalse and UnmarkedFalse: of the marked alarm
	Severity string     `json:"severity"`           // "warning" if someone must act now, else "info"
	Since    time.Time  `json:"since"`              // start of the first faulty window that led to it; At if no alarm is open
	At       time.Time  `json:"at"`                 // end of the window that decided, or when a person acted or a shelf ended
	Epoch    string     `json:"epoch"`
	Seq      uint64     `json:"seq"`               // of the window that decided, or the last one before
	Faulty   int        `json:"faulty"`            // faulty windows among the last Of
	Of       int        `json:"of"`                // judged windows looked at
	Unknown  int        `json:"unknown,omitempty"` // of them those whose verdict is unknown: ambiguous and implausible ones, which count as they were decided
	K        int        `json:"k"`
	N        int        `json:"n"`
	Score    float64    `json:"score"`           // of the window that decided
	Level    float64    `json:"level,omitempty"` // likewise, as in its result
	Model    string     `json:"model"`
	Reason   string     `json:"reason,omitempty"`  // why it was cleared or unshelved: "tool_change", "recovered", "acknowledged", "expired"
	By       string     `json:"by,omitempty"`      // who did it
	Note     string     `json:"note,omitempty"`    // why, in their words
	Until    time.Time  `json:"until,omitzero"`    // end of the shelf
	Command  string     `json:"command,omitempty"` // id of the command that did it
	Was      string     `json:"was,omitempty"`     // renamed: the machine's old name
	Class    string     `json:"class,omitempty"`   // of an open alarm: class of the window that raised it, as in its result; "different": the model has seen no worn tool
	Finding  string     `json:"finding,omitempty"` // of an open alarm: what is to be looked at, in the words of the model's labels; empty if the tool is to be changed
	Text     string     `json:"text"`              // one line for a person

	FalseAlarm bool `json:"false_alarm,omitempty"` // acknowledged: the person says that nothing was wrong with the tool

	CuttingState   string        `json:"cutting_state,omitempty"`   // of the window that decided, as in its result
	CuttingSeconds float64       `json:"cutting_seconds,omitempty"` // how long the tool has cut since it was put in, as far as the monitor saw it
	Wear           *Wear         `json:"wear,omitempty"`            // after the window that decided; nil if it is not known
	Reasons        *Reasons      `json:"reasons,omitempty"`         // raised and reactivated, if a window decided
	Threshold      float64       `json:"threshold,omitempty"`       // score from which on a window counts as faulty for the alarm
	Trace          []Point       `json:"trace,omitempty"`           // likewise: the tool's last windows, oldest first, ending with the one that decided; at most MaxTrace
	Evidence       *EvidenceLink `json:"evidence,omitempty"`        // likewise: where the waveform will be
}

// Origin returns which machine the alert is about, and which group published it.
func (a Alert) Origin() (machine, group string) { return a.Machine, a.Group }

// Aside reports whether an alert does not say how the alarm of the tool in the spindle
// stands: it is of a tool in the magazine, it marks an alarm, or declares a tool new, which may lie in the magazine. The
// alarm of a tool in the spindle that is declared new is cleared by an alert of its own before.
func (a *Alert) Aside() bool { return a.Magazine || a.State.Marks() || a.State == ToolIsNew }

// MaxTrace is how many windows the trace of an alert has at most.
const MaxTrace = 60

// Reasons says which channels and features made the deciding window faulty.
//
// Of names the quantity that is explained: the log-odds of the decided class
// against healthy, each weighted by its cost, so that a positive number is faulty.
// Base is its value for usual features, Total for the window. Method says how the
// difference was divided among the features. A share is a feature's part, in [0, 1],
// of everything that spoke for faulty; what spoke against is left out. The shares of
// all channels add up to 1, and so do the shares of all features. The strongest of
// each are listed.
type Reasons struct {
	Method   string          `json:"method"` // "integrated_gradients"
	Of       string          `json:"of"`     // "log_odds"
	Base     float64         `json:"base"`
	Total    float64         `json:"total"`
	Channels []ChannelReason `json:"channels"`          // the strongest first, at most MaxChannels
	Features []FeatureReason `json:"features"`          // the strongest first, at most MaxFeatures
	Doubted  []string        `json:"doubted,omitempty"` // channels and sensors of which an advisory stands
}

// How many channels and features Reasons name at most.
const (
	MaxChannels = 3
	MaxFeatures = 5
)

// ChannelReason is the share of all features that are named after a channel.
type ChannelReason struct {
	Channel string  `json:"channel"`
	Words   string  `json:"words,omitempty"` // its strongest feature in words; empty if it has none
	Share   float64 `json:"share"`
}

// FeatureReason is the share of one feature. Value and Usual are in the feature's
// own unit. Usual is the tool's reference. They are nil where they have no value.
type FeatureReason struct {
	Feature string   `json:"feature"` // its name, see docs/reference/features.md
	Channel string   `json:"channel"` // the channel in its name
	Words   string   `json:"words,omitempty"`
	Unit    string   `json:"unit,omitempty"`
	Value   *float64 `json:"value,omitempty"`
	Usual   *float64 `json:"usual,omitempty"`
	Share   float64  `json:"share"`
}

// Point is one window of a trace.
type Point struct {
	Seq     uint64    `json:"seq"`
	End     time.Time `json:"end"`
	Score   float64   `json:"score"` // as in its result: 0 if it was not judged
	Verdict Verdict   `json:"verdict"`
}

// EvidenceLink says where the waveform around an alert will be, and which span of
// sensor time it covers. The file exists once the alert's Evidence has been sent.
type EvidenceLink struct {
	URL  string    `json:"url"` // relative to the monitor's page, unless evidence.url is configured
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Evidence says that the waveform around an alert was kept, or why it was not. ID is
// stable: a restart sends it again under the same id.
type Evidence struct {
	ID       string    `json:"id"`    // the alert's id and "/evidence"
	Group    string    `json:"group"` // as in the alert
	Alert    string    `json:"alert"` // id of the alert
	Machine  string    `json:"machine"`
	Incident string    `json:"incident,omitempty"`
	URL      string    `json:"url"` // as in the alert
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Windows  int       `json:"windows"`          // in the file
	Bytes    int64     `json:"bytes"`            // of the file; 0 if there is none
	SHA256   string    `json:"sha256,omitempty"` // of the file, hexadecimal
	Complete bool      `json:"complete"`         // the windows cover the span without a gap
	Text     string    `json:"text"`             // one line for a person: what is there, or what is missing and why
}

// Origin returns which machine the evidence is about, and which group published it.
func (e Evidence) Origin() (machine, group string) { return e.Machine, e.Group }
