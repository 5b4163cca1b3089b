package web

import (
	"time"

	"github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Deployed is the answer of /api/models.
type Deployed struct {
	Models      []ModelFacts `json:"models"`      // on tcm.models.v1 and of the file, the newest first
	Deployments []Deployment `json:"deployments"` // the most specific first
}

// ModelFacts are what a list shows of a model.
type ModelFacts struct {
	ID      string     `json:"id"`
	Title   string     `json:"title"`            // in a line, for people
	Layout  string     `json:"layout,omitempty"` // its name
	LimitUM *float64   `json:"limit_um,omitempty"`
	File    bool       `json:"file"`         // the program loaded it from a file
	At      *time.Time `json:"at,omitempty"` // when it was published
	By      string     `json:"by,omitempty"`
	Note    string     `json:"note,omitempty"`
	Key     string     `json:"key,omitempty"` // that signed it
}

// Deployment says what judges the machines that a glob names.
type Deployment struct {
	For      string     `json:"for"` // glob of machines
	Layout   string     `json:"layout"`
	Champion string     `json:"champion"`
	Shadows  []Shadow   `json:"shadows"`
	Alarm    *AlarmRule `json:"alarm,omitempty"`
	Unsigned bool       `json:"unsigned"`
	At       *time.Time `json:"at,omitempty"` // when it was changed last
	By       string     `json:"by,omitempty"`
	Note     string     `json:"note,omitempty"`
}

// Shadow is a model that judges without effect on alarms.
type Shadow struct {
	Model string     `json:"model"`
	Until *time.Time `json:"until,omitempty"`
}

// AlarmRule says when an alarm is raised.
type AlarmRule struct {
	K         int     `json:"k"`
	N         int     `json:"n"`
	Threshold float64 `json:"threshold"`
}

// ModelDetail is the answer of /api/models/{id}. The hub fills in Machines and what comes from the history.
type ModelDetail struct {
	ModelFacts
	Features    int          `json:"features"` // that it judges by
	Channels    []string     `json:"channels"`
	Deployments []Deployment `json:"deployments"` // in which it judges or is a shadow
	Machines    []string     `json:"machines"`    // whose last result is of this model
	Card        *ModelCard   `json:"card,omitempty"`

	DefaultAlarm *AlarmRule   `json:"default_alarm,omitempty"` // of machines whose deployment has none
	Curve        *alarm.Curve `json:"curve,omitempty"`
	CurveCommand string       `json:"curve_command,omitempty"` // that makes a curve; empty if there is one

	// unknownRate is the share of windows that the model did not know, of those that it judged,
	// by hour, of all machines, in the last four weeks.
	UnknownRate unknownRate         `json:"unknown_rate"`
	Trials      []summary.Trial     `json:"trials"` // as shadow or champion, in that time
	Drift       []summary.DriftSpan `json:"drift"`  // advisories of machines that it judged in that time
}

// unknownRate has an element for each hour with windows, the oldest first.
type unknownRate struct {
	T       []int64   `json:"t"` // Unix seconds
	Share   []float64 `json:"share"`
	Windows []int     `json:"windows"` // that it judged
}

// ModelCard has what the model's file says of its training.
type ModelCard struct {
	Verdict string       `json:"verdict,omitempty"` // not_yet, shadow or switch_on
	Reasons []CardReason `json:"reasons"`           // what the verdict rests on, the worst first
	Unknown []string     `json:"not_known"`         // what the training data could not show, in words

	HeldOut     bool          `json:"held_out"`         // the scores are of tools that had no part in the training
	Split       string        `json:"split,omitempty"`  // how tools were held out, in words
	Tools       int           `json:"tools"`            // that the intervals are over; 0 if there are none
	Windows     int           `json:"windows"`          // that the scores are of
	Faulty      int           `json:"faulty"`           // of them
	GMean       *CardInterval `json:"gmean,omitempty"`  // nil if not known
	Recall      *CardInterval `json:"recall,omitempty"` // likewise
	Specificity *CardInterval `json:"specificity,omitempty"`

	Data        []CardData `json:"data"`                    // recordings that it was trained on; at most 50
	DataCount   int        `json:"data_count"`              // of them all
	DataWindows int        `json:"data_windows"`            // likewise
	Labels      string     `json:"labels_sha256,omitempty"` // of tool and class of the windows that it learnt from

	Classes        []string `json:"classes"`
	Label          string   `json:"label"`               // what made a training window faulty, in words
	WindowSeconds  float64  `json:"window_s"`            //
	FeatureVersion int      `json:"feature_version"`     //
	Reference      string   `json:"reference,omitempty"` // how a tool's first windows count, in words; empty: they do not
	Threshold      *float64 `json:"threshold,omitempty"` // posterior from which on a window is faulty, of two classes
	FirstDay       string   `json:"first_day,omitempty"` // of a model that has seen no worn tool: what it goes by, in words
	Program        string   `json:"program"`             // that trained it
	Seed           uint64   `json:"seed"`
}

// CardReason is one of the things that a verdict rests on.
type CardReason struct {
	About   string `json:"about"`
	Level   string `json:"level"` // the best verdict that it allows
	Because string `json:"because"`
	Do      string `json:"do,omitempty"` // empty if all is well
}

// CardInterval is a score with its interval of 95 % over tools.
type CardInterval struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"` // nil if not known
	High  *float64 `json:"high,omitempty"`
}

// CardData says what a model was trained on: a recording, a table, or windows on Kafka.
type CardData struct {
	Name      string        `json:"name"`
	Windows   int           `json:"windows"`
	SHA256    string        `json:"sha256,omitempty"`
	Machines  []CardMachine `json:"machines"`       // empty if not known
	MoreTools int           `json:"more_tools"`     // that Machines does not name
	From      *time.Time    `json:"from,omitempty"` // start of the first window; nil if the windows have no clock
	To        *time.Time    `json:"to,omitempty"`   // end of the last one
	Offsets   []CardOffsets `json:"offsets"`        // of windows on Kafka, by partition
}

// CardMachine has the tools of one machine that windows are of.
type CardMachine struct {
	Machine string   `json:"machine"` // empty if not known
	Tools   []string `json:"tools"`
}

// CardOffsets says where windows are in a partition of Kafka: from the first one's offset to below To.
type CardOffsets struct {
	Topic     string `json:"topic,omitempty"`
	Partition int    `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Windows   int    `json:"windows"` // that were taken from there; 0 of models of older releases, which do not say it
}
