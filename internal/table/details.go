package table

import (
	"math"
	"slices"
)

// Details is what a table knows of a row beyond its label, where `trainer features` has
// written it. Text that is not known is empty, a number that is not known is NaN.
type Details struct {
	VBMeanUM float64 // mean flank wear in µm
	State    string  // of the tool, a word such as "worn" or "broken"

	Recording string  // that the window was cut from
	Sequence  float64 // of the window in its recording, from 0
	StartS    float64 // seconds from the beginning of the recording, where Start is not known
	LengthS   float64 // of the window, in seconds
	Status    string  // what became of the window: one of Statuses
	Phase     string  // of the machine's cycle
	Level     float64 // of the channel that tells cutting from idling, in the unit of the channel
	Quality   string  // flags of channels
	Frames    string  // what the machine's cycle is followed by
}

// Values of Details.Status.
const (
	Judged      = "judged"
	Learning    = "learning" // the window makes the reference of its tool
	NotCutting  = "not_cutting"
	SensorFault = "sensor_fault"
)

// Statuses are the values of Details.Status.
var Statuses = []string{Judged, Learning, NotCutting, SensorFault}

// unknownDetails knows nothing.
func unknownDetails() Details {
	nan := math.NaN()
	return Details{VBMeanUM: nan, Sequence: nan, StartS: nan, LengthS: nan, Level: nan}
}

// detail is one column of Details: text or a number.
type detail struct {
	name   string
	text   func(*Details) *string
	number func(*Details) *float64
}

// details are the columns of Details, in the order in which they are written. All but
// the label's begin with "window.", so that no feature of a stranger's table has such a name.
var details = []detail{
	{name: "vb_mean_um", number: func(d *Details) *float64 { return &d.VBMeanUM }},
	{name: "state", text: func(d *Details) *string { return &d.State }},
	{name: "window.recording", text: func(d *Details) *string { return &d.Recording }},
	{name: "window.sequence", number: func(d *Details) *float64 { return &d.Sequence }},
	{name: "window.start_s", number: func(d *Details) *float64 { return &d.StartS }},
	{name: "window.length_s", number: func(d *Details) *float64 { return &d.LengthS }},
	{name: "window.status", text: func(d *Details) *string { return &d.Status }},
	{name: "window.phase", text: func(d *Details) *string { return &d.Phase }},
	{name: "window.level", number: func(d *Details) *float64 { return &d.Level }},
	{name: "window.quality", text: func(d *Details) *string { return &d.Quality }},
	{name: "window.frames", text: func(d *Details) *string { return &d.Frames }},
}

// kind says how the column is written.
func (c detail) kind() SheetKind {
	switch {
	case c.number != nil:
		return SheetNumber
	case c.name == "window.frames": // each row another
		return SheetUnique
	}
	return SheetText
}

// value returns what is known of the column in d.
func (c detail) value(d *Details) value {
	if c.text != nil {
		return textOf(*c.text(d))
	}
	return numberOf(*c.number(d))
}

// set stores the value of a cell in d. The remedy is empty if it could.
func (c detail) set(d *Details, v value) (remedy string) {
	if c.text == nil {
		*c.number(d), remedy = v.finite()
		return remedy
	}
	if v.kind != isText && v.kind != missing {
		if c.name == "state" {
			return `is not a word for the state of a tool, such as "worn": rename the column if it is a feature, or leave it out with --ignore state`
		}
		return "is not text: write the table again"
	}
	*c.text(d), remedy = v.name()
	if remedy == "" && c.name == "window.status" && v.text != "" && !slices.Contains(Statuses, v.text) {
		return "is not judged, learning, not_cutting or sensor_fault: write the table again"
	}
	return remedy
}
