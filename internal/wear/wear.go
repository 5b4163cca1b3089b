// Package wear turns measured tool wear into labels of windows.
//
// A [Measurement] is what a person saw under a microscope: the flank wear VB of
// a tool, in µm, as the mean and as the maximum over the cutting edge
// (ISO 3685), and the state of the tool as a word. Measurements are kept in a
// file, wear.csv, which [Read] reads and [Write] writes. A [Join] carries the
// few measurements of a tool to its many windows, and a [Rule] makes a class of
// wear: healthy, 0, or faulty, 1, or one of several that it names.
package wear

import "time"

// Measurement is the measured wear of a tool.
type Measurement struct {
	Machine  string    // ISA-95 path; empty where there is but one machine
	Tool     string    // identity of the tool
	Hole     string    // the hole or cut that the tool had just ended; empty if not known
	Time     time.Time // when the tool was that worn; zero if not known
	VBMeanUM float64   // mean flank wear in µm; NaN if not measured
	VBMaxUM  float64   // maximum flank wear in µm; NaN if not measured
	State    string    // a word such as "worn", "chipped" or "broken"; empty if not known
}

// Known reports whether m says anything of the tool.
func (m Measurement) Known() bool {
	return m.VBMeanUM == m.VBMeanUM || m.VBMaxUM == m.VBMaxUM || m.State != ""
}

// States from which a tool does not come back.
const (
	Chipped = "chipped"
	Broken  = "broken"
)
