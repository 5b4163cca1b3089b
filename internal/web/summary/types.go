// Package summary keeps what monitors have published, small enough to keep for a year: the
// minutes and hours of each machine, its tools, and its alarms. Pages draw their history from
// it.
//
// The words: a row sums up the windows of a machine that end in one minute or one hour. A life
// is the time of a tool from its first window until the machine cuts with another tool of that
// name. An alarm has the short name of its incident. A fold puts one message of a topic into
// the store; the store remembers how far it has folded each partition.
package summary

import (
	"math"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// How long the store keeps what, and how much it returns at a time.
const (
	keepMinutes = 15 * 24 * time.Hour
	keepHours   = 400 * 24 * time.Hour // also holes and lives of tools
	keepAlarms  = 400 * 24 * time.Hour

	maxHoles  = 20_000 // of a machine
	MaxPoints = 2000   // of a History
	MaxStrip  = 60     // verdicts of a Machine
	maxCurve  = 200    // points of the curve of a tool
	MaxAlarms = 500    // that Alarms returns
	MaxTools  = 200    // that Tools returns
)

// Numbers are values of which some may not be known: those are NaN, and null in JSON.
type Numbers []float64

// MarshalJSON writes a list with at most six significant digits a number.
func (n Numbers) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+8*len(n)), '[')
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendFloat(b, v, 'g', 6, 64)
	}
	return append(b, ']'), nil
}

// History is what the store holds of a machine between two times. The caller owns its slices.
type History struct {
	Machine    string         `json:"machine"`
	From       time.Time      `json:"from"` // as asked for, moved to the beginning of a step
	To         time.Time      `json:"to"`
	Step       int            `json:"step"`          // seconds of a point, a multiple of 60; 0 of a history by hole
	Each       int            `json:"each,omitzero"` // holes of a point; 0 of a history by time
	Holes      int            `json:"holes"`         // that began in this time
	Points     Points         `json:"points"`
	Tools      []ToolSpan     `json:"tools"`
	Alarms     []Alarm        `json:"alarms"`         // that were open at some time of it, the oldest first
	Advisories []AdvisorySpan `json:"advisories"`     // likewise
	Since      time.Time      `json:"since,omitzero"` // the oldest row that the store holds of the machine; zero if none
	Memory     bool           `json:"memory"`         // the store has no folder: it holds one day, and forgets it when the program ends
}

// Points are the points of a History, the oldest first: element i of each list belongs to the
// step, or to the hole, that begins at T[i]. Steps without a window are left out. There are at
// most [MaxPoints].
type Points struct {
	T           []int64  `json:"t"`              // Unix seconds
	End         []int64  `json:"end,omitempty"`  // Unix seconds, rounded up; only of a history by hole
	Hole        []string `json:"hole,omitempty"` // name of the hole, or of the first of several; likewise
	Windows     []int    `json:"windows"`
	Cutting     []int    `json:"cutting"` // healthy, faulty, unknown and learning ones
	Healthy     []int    `json:"healthy"`
	Faulty      []int    `json:"faulty"`
	Unknown     []int    `json:"unknown"`
	Learning    []int    `json:"learning"`
	NotCutting  []int    `json:"not_cutting"`
	SensorFault []int    `json:"sensor_fault"`
	Late        []int    `json:"late"`

	ScoreMean Numbers `json:"score_mean"` // of the windows that have a score
	ScoreMax  Numbers `json:"score_max"`
	Threshold Numbers `json:"threshold"` // score from which on a window counts for the alarm; the highest in force
	Wear      Numbers `json:"wear"`      // µm, after the last window with an estimate
	WearLow   Numbers `json:"wear_low"`  // of its 80 % interval
	WearHigh  Numbers `json:"wear_high"`
}

// ToolSpan is a stretch of a History with one tool in the spindle.
type ToolSpan struct {
	Tool           string    `json:"tool"` // empty: a tool without a name
	From           time.Time `json:"from"`
	To             time.Time `json:"to"`
	CuttingSeconds float64   `json:"cutting_seconds"`   // of the tool's whole life until now
	WearUM         *float64  `json:"wear_um,omitempty"` // at the end of the life, or now; nil if not known
}

// Life is what the store holds of a tool from its first window on.
type Life struct {
	Tool           string    `json:"tool"`
	From           time.Time `json:"from"` // start of its first window
	To             time.Time `json:"to"`   // end of its last window
	CuttingSeconds float64   `json:"cutting_seconds"`
	WearUM         *float64  `json:"wear_um,omitempty"` // after the last window with an estimate
	Windows        int       `json:"windows"`
	Curve          Curve     `json:"curve"`
}

// Curve is how a tool wore: element i of each list belongs to the cutting time up to
// Cutting[i]. There are at most [maxCurve].
type Curve struct {
	Cutting Numbers `json:"cutting"` // seconds
	Wear    Numbers `json:"wear"`    // µm
	Score   Numbers `json:"score"`   // mean
}

// Alarm is one alarm from its beginning to its end.
type Alarm struct {
	Incident   string    `json:"incident"`
	Machine    string    `json:"machine"`
	Tool       string    `json:"tool,omitempty"`
	Since      time.Time `json:"since,omitzero"`     // start of the first faulty window that led to it
	Raised     time.Time `json:"raised,omitzero"`    // when it was raised; the first that is known of it if that is gone
	Cleared    time.Time `json:"cleared,omitzero"`   // when it ended, or its tool left the spindle last; zero before
	State      string    `json:"state"`              // in the words of a result; normal once it has ended
	Magazine   bool      `json:"magazine,omitempty"` // it is open, and its tool is not in the spindle
	Faulty     int       `json:"faulty"`             // when it was raised: faulty windows among the last Of
	Of         int       `json:"of"`                 //
	FalseAlarm bool      `json:"false_alarm"`        // a person says that nothing was wrong with the tool
	WearUM     *float64  `json:"wear_um,omitempty"`  // when it was raised; nil if not known
	Changes    []Change  `json:"changes"`            // what happened to it, the oldest first; at most 32
	Severity   string    `json:"severity,omitempty"`
}

// Change is one change of an alarm.
type Change struct {
	At    time.Time        `json:"at"`
	State event.AlertState `json:"state"`
	By    string           `json:"by,omitempty"`
}

// AlarmFilter says which alarms Alarms returns. The zero filter is all.
type AlarmFilter struct {
	Machine  string    // empty: all
	From, To time.Time // raised at From or later, and before To; zero: no bound
	Limit    int       // 0, or more than MaxAlarms: MaxAlarms
}

// AlarmDetail is everything that the store holds of an alarm.
type AlarmDetail struct {
	Machine  string           `json:"machine"`
	Alarm    Alarm            `json:"alarm"`
	Alerts   []event.Alert    `json:"alerts"` // in the order in which they were sent
	Evidence []event.Evidence `json:"evidence"`
	Previous string           `json:"previous,omitempty"` // incident of the machine's alarm before this one
	Next     string           `json:"next,omitempty"`
}

// AdvisorySpan is the time for which an advisory was open.
type AdvisorySpan struct {
	Kind    event.AdvisoryKind `json:"kind"`
	Subject string             `json:"subject,omitempty"`
	From    time.Time          `json:"from"`
	To      time.Time          `json:"to,omitzero"` // zero while it is open
}

// Machine is what a page needs to show a machine before new messages of it come.
type Machine struct {
	Name       string
	Strip      string           // the last MaxStrip verdicts, oldest first, a letter each: see StripLetter
	Last       event.Result     // the newest one that did not come late; its Posterior, Sensors and Ranges are left out
	LastAt     time.Time        // when Kafka got it
	Alert      *event.Alert     // the last one that says in which state the alarm is; nil if none is kept
	Advisories []event.Advisory // open ones, the oldest first
	Alarms     ToolAlarms
}

// StripLetter returns the letter of a verdict in a strip: h, f, u, l, n, s, or ? for one of a
// later release.
func StripLetter(v event.Verdict) byte {
	switch v {
	case event.Healthy, event.Faulty, event.Unknown, event.Learning, event.NotCutting, event.SensorFault:
		return v[0]
	}
	return '?'
}
