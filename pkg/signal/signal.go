// Package signal names what the sensors deliver and computes features from it.
//
// A sample is one reading of one channel. A [Channel] has a name, a kind, a
// unit and a rate. A [Layout] is an ordered list of channels; its fingerprint
// travels in every window and in every model, so that a mismatch is an error
// and never a guess. A [Block] holds consecutive samples of the channels of
// one rate, and a [Context] says which machine, tool and hole they belong to.
// A [Quality] flags what is wrong with the samples of one channel.
//
// Values keep the unit that their Channel names; this package never rescales
// them. A missing sample is NaN.
package signal

import "time"

// Kind says what a channel measures.
type Kind string

// The kinds of channels. A Feature channel carries values that were computed
// before they reached Flank, one per window; its feature is its value.
const (
	Vibration    Kind = "vibration"
	Force        Kind = "force"
	Torque       Kind = "torque"
	Acoustic     Kind = "acoustic"
	Current      Kind = "current"
	Voltage      Kind = "voltage"
	Power        Kind = "power"
	Position     Kind = "position"
	Velocity     Kind = "velocity"     // of an axis
	Acceleration Kind = "acceleration" // of an axis, from its drive; of a sensor it is Vibration
	Inertia      Kind = "inertia"
	Feature      Kind = "feature"
)

var kinds = []Kind{
	Vibration, Force, Torque, Acoustic, Current, Voltage, Power,
	Position, Velocity, Acceleration, Inertia, Feature,
}

// Channel describes one stream of samples.
type Channel struct {
	Name   string  `json:"name"`             // unique in its layout, for example "ch01"
	Kind   Kind    `json:"kind"`             // what it measures
	Unit   string  `json:"unit,omitempty"`   // of its values, for example "m/s²"; empty if not known
	Rate   float64 `json:"rate"`             // samples per second; positive
	Range  float64 `json:"range,omitempty"`  // full scale in Unit: samples at or beyond ±Range are clipped; 0 if not known
	Sensor string  `json:"sensor,omitempty"` // the device it comes from; empty if not known
}

// Context says what the machine was doing while samples were taken. The zero
// value of a field means that it is not known.
type Context struct {
	Machine      string  // ISA-95 path: enterprise/site/area/line/machine
	Tool         string  // identity of the cutting tool, for example "T08"
	Hole         string  // identity of the hole or cut
	SpindleSpeed float64 // in revolutions per minute
	FeedRate     float64 // in millimetres per minute
	Programme    string  // that the machine's control runs, for example "O1234"; at most MaxContextText bytes
	Material     string  // of the workpiece; at most MaxContextText bytes

	// ToolLife tells apart tools that had the same name at different times, such as a
	// drill before and after it was reground: each declaration that the tool is new
	// gives it another one. At most MaxToolLife bytes; empty if the tool was never
	// declared new.
	ToolLife string
}

// MaxToolLife is the most bytes of Context.ToolLife.
const MaxToolLife = 64

// MaxContextText is the most bytes of Context.Programme, and of Context.Material.
const MaxContextText = 256

// Block holds consecutive samples of the channels of one rate.
//
// Samples of every rate are counted from the same instant, the start of the
// session, so sample n of a rate r was taken n/r seconds after it. A source
// starts a new session when its counters start again: a new recording, a
// restart of the sensor, a change of tool. Nothing spans two sessions.
type Block struct {
	Context
	Session int64       // which session the counter belongs to; any value, compared for equality only
	Group   int         // index into Layout.Groups: which rate
	First   int64       // counter of the first sample, from the start of the session
	Time    time.Time   // sensor time of the first sample
	Samples [][]float32 // one slice per channel of the group, in layout order, all of one length
	Quality Quality     // what the source knows to be wrong, see ClockOff; 0 of recordings
}

// Len returns the number of samples of each channel in b.
func (b *Block) Len() int {
	if len(b.Samples) == 0 {
		return 0
	}
	return len(b.Samples[0])
}
