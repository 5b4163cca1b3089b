package signal

import (
	"cmp"
	"fmt"
	"math"
)

// Recording says how a recorded file is read: its format, which of its columns
// carry facts other than channels, and where channels are found. The zero value
// is a table of text with one line of header, or what the ending of the file
// says.
type Recording struct {
	Format string `yaml:"format"` // such as "tdms"; empty: by the ending of the file

	// Of a table of text.
	Skip      int    `yaml:"skip"`      // lines before the header
	Header    string `yaml:"header"`    // "none", or how many lines name the columns; empty: one
	Separator string `yaml:"separator"` // comma, semicolon, tab, blank, or one character; empty: found by itself
	Decimal   string `yaml:"decimal"`   // point or comma; empty: point

	TimeFormat string `yaml:"time_format"` // of dates and times, such as DD.MM.YYYY hh:mm:ss; empty: found by itself
	TimeUnit   string `yaml:"time_unit"`   // of numbers in the column of times: s, ms, us, ns, min, h, day, labview, excel, matlab or julian; empty: found by itself

	// Cells that say that a value is missing, besides the words that are known. In other formats than text the numbers among them.
	Missing []string `yaml:"missing"`

	// Names of columns, empty if there is none.
	Time     string `yaml:"time"`       // sensor time: a date and time, or seconds from any start
	Date     string `yaml:"date"`       // the date, where the column of times has the time of the day only
	Machine  string `yaml:"machine"`    // Context.Machine
	Tool     string `yaml:"tool"`       // Context.Tool; a change starts a new session
	Hole     string `yaml:"hole"`       // Context.Hole
	Speed    string `yaml:"speed"`      // Context.SpindleSpeed, in rev/min
	VBMean   string `yaml:"vb_mean_um"` // label: mean flank wear in µm
	VBMax    string `yaml:"vb_max_um"`  // label: maximum flank wear in µm
	VBMeanMM string `yaml:"vb_mean_mm"` // the same in mm
	VBMaxMM  string `yaml:"vb_max_mm"`
	State    string `yaml:"state"` // label: state of the tool, a word such as "worn"

	// Origins of the channels that are recorded under another name or in
	// another unit, by the name of the channel.
	Origins map[string]Origin `yaml:"-"`
}

// Origin says where a channel is found in a recording and what a recorded
// number means: Gain·number + Offset in the unit of the channel.
type Origin struct {
	From         string
	Gain, Offset float64
}

// Origin returns where the named channel is found: under its own name and in
// its own unit unless r says otherwise.
func (r Recording) Origin(channel string) Origin {
	if o, ok := r.Origins[channel]; ok {
		return o
	}
	return Origin{From: channel, Gain: 1}
}

// HasColumns reports whether r names a column.
func (r Recording) HasColumns() bool {
	return r.Time+r.Date+r.Machine+r.Tool+r.Hole+r.Speed+r.VBMean+r.VBMax+r.VBMeanMM+r.VBMaxMM+r.State != ""
}

// check reports a wear that two columns have.
func (r Recording) check() error {
	for _, c := range [][3]string{{"vb_mean", r.VBMean, r.VBMeanMM}, {"vb_max", r.VBMax, r.VBMaxMM}} {
		if c[1] != "" && c[2] != "" {
			return fmt.Errorf("`recording`: `%[1]s_um` and `%[1]s_mm` name the same wear: keep the one of the column's unit", c[0])
		}
	}
	return nil
}

// channelEntry is an entry under `channels` of a layout as people write it.
type channelEntry struct {
	Name   string   `yaml:"name"`
	Names  []string `yaml:"names"`
	From   string   `yaml:"from"`
	Gain   *float64 `yaml:"gain"`
	Offset float64  `yaml:"offset"`
	Kind   Kind     `yaml:"kind"`
	Unit   string   `yaml:"unit"`
	Rate   float64  `yaml:"rate"`
	Range  float64  `yaml:"range"`
	Sensor string   `yaml:"sensor"`
}

// origins notes where the channels of the entry come from, if not from a
// column of their name and unit.
func (e channelEntry) origins(names []string, to *Recording) error {
	if e.From == "" && e.Gain == nil && e.Offset == 0 {
		return nil
	}
	if e.From != "" && len(names) > 1 {
		return fmt.Errorf("`from` %q stands for one channel, but the entry names %d: give each an entry of its own", e.From, len(names))
	}
	gain := 1.0
	if e.Gain != nil {
		gain = *e.Gain
	}
	if gain == 0 || math.IsNaN(gain) || math.IsInf(gain, 0) {
		return fmt.Errorf("`gain` %v of %s: must be a finite number other than 0", gain, names[0])
	}
	if math.IsNaN(e.Offset) || math.IsInf(e.Offset, 0) {
		return fmt.Errorf("`offset` %v of %s: must be a finite number", e.Offset, names[0])
	}
	if to.Origins == nil {
		to.Origins = make(map[string]Origin)
	}
	for _, n := range names {
		to.Origins[n] = Origin{From: cmp.Or(e.From, n), Gain: gain, Offset: e.Offset}
	}
	return nil
}
