// Package wear turns measured tool wear into labels of windows.
//
// A [Measurement] is what a person saw under a microscope: the flank wear VB of
// a tool, in µm, as the mean and as the maximum over the cutting edge
// (ISO 3685), the state of the tool as a word, or its class. Measurements are
// kept in a file, wear.csv, which [Load] reads and [Write] writes. They are of a
// whole tool, a whole recording, a hole, a moment or an interval. A [Join]
// carries the few measurements of a tool to its many windows, and a [Rule] makes
// a class of wear: healthy, 0, or faulty, 1, or one of several that it names.
package wear

import (
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Measurement is the measured wear of a tool, or of the tool of a recording.
//
// Time and End are instants, or seconds from the first sample of the recording.
// The latter are counted from 1970-01-01T00:00:00Z, and [signal.HasClock] tells them
// apart.
type Measurement struct {
	Machine   string    // ISA-95 path; empty where there is but one machine
	Tool      string    // identity of the tool; empty if Recording says which windows are meant
	Recording string    // name of the recording, also as a file name; empty if all of the tool's are meant
	Hole      string    // the hole or cut that the tool had just ended; empty if not known
	Time      time.Time // when the tool was that worn, or from when on; zero if not known
	End       time.Time // until when the tool was that worn; zero if it was measured at one moment
	VBMeanUM  float64   // mean flank wear in µm; NaN if not measured
	VBMaxUM   float64   // maximum flank wear in µm; NaN if not measured
	State     string    // a word such as "worn", "chipped" or "broken"; empty if not known
	Class     string    // name or number of a class of the Rule; empty if not known
	Where     string    // file and line that it was read from, or which label it is; empty if neither
	Source    Source    // empty: a file, or the caller
}

// Source says who measured.
type Source string

// The sources of labels on Kafka.
const (
	Floor  Source = "floor"  // people at the machine
	Alarms Source = "alarms" // people's answers to alarms
)

// ofLife is between the name of a tool and its life.
const ofLife = " · life "

// ToolOf names a tool that was declared new, so that it is another one than the tool before it under that name. Measurements of the name alone
// go for each of its lives, but for moments before a life.
func ToolOf(tool, life string) string {
	if life == "" {
		return tool
	}
	return tool + ofLife + life
}

// Known reports whether m says anything of the tool.
func (m Measurement) Known() bool {
	return m.VBMeanUM == m.VBMeanUM || m.VBMaxUM == m.VBMaxUM || m.State != "" || m.Class != ""
}

// OfRecording reports whether m names a recording or counts its seconds. Then it says nothing
// of windows that are of no recording.
func (m Measurement) OfRecording() bool {
	return m.Recording != "" || !m.Time.IsZero() && !signal.HasClock(m.Time)
}

// Window says what a Join has to know of a window.
type Window struct {
	Machine, Tool, Hole string

	Recording string        // name of the file without folder and ending; empty if the window is of none
	Began     time.Time     // the recording's first sample; zero if not known
	Start     time.Time     // the window's first sample; zero if not known
	Length    time.Duration // of the window
	CutOff    bool          // windows from the beginning of its tool are not there, so it was not new at the first of them
}

// States from which a tool does not come back.
const (
	Chipped = "chipped"
	broken  = "broken"
)
