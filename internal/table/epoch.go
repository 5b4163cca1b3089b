package table

import (
	"math"
	"slices"
	"time"
)

// The instants from which programs count times.
var (
	Since1970 = time.Unix(0, 0).UTC()
	Since1900 = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)   // NTP
	Since1904 = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)   // LabVIEW
	Since1899 = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC) // Excel
)

// Epoch is what numbers in a column of times count. The zero value counts nothing.
type Epoch struct {
	Unit float64   // seconds of 1
	Zero float64   // the number that means From
	From time.Time // zero: the start of the recording
	Name string    // in words, such as "seconds since 1970"
}

// Dated reports whether numbers count from a date.
func (e Epoch) Dated() bool { return !e.From.IsZero() }

// Seconds returns how many seconds after From, or after the start of the recording, v is.
func (e Epoch) Seconds(v float64) float64 { return (v - e.Zero) * e.Unit }

// DayEpochs are the counts of days of programs, by their word in a layout's `time_unit`.
var DayEpochs = map[string]Epoch{
	"excel":  {86400, 0, Since1899, "days since 1900, as Excel counts"},
	"matlab": {86400, 719529, Since1970, "days since the year 0, as MATLAB counts"},
	"julian": {86400, 2440587.5, Since1970, "Julian days"},
	"day":    {Unit: 86400, Name: "parts of a day, as spreadsheets write times"},
}

// Numbers of seconds since 1970 that a recording may have: from the beginning of 2000 to the end of 2099.
const (
	in2000 = 9.46e8
	in2099 = 4.1e9
)

// ticks are counts of tenths of microseconds, whose numbers are too large for seconds since their zero.
var ticks = []Epoch{
	{1e-7, 116444736000000000, Since1970, "tenths of microseconds since 1601, as FILETIME of Windows"},
	{1e-7, 621355968000000000, Since1970, "tenths of microseconds since the year 1, as ticks of .NET"},
}

// EpochOf returns what numbers count whose first one is v, if their size tells it. Seconds between 2001 and 2060, and
// milliseconds, microseconds and nanoseconds of this century, count from 1970; larger seconds count from 1904, as LabVIEW's do, or from 1900 if that
// would be in the future. Ticks of Windows and .NET count tenths of microseconds. Smaller numbers count from the start of the recording: ok is false.
func EpochOf(v float64, now time.Time) (e Epoch, ok bool) {
	const last, labView = 2.84e9, 6.2e9 // 2060 since 1970, 2100 since 1904
	switch {
	case v >= 1e9 && v < last:
		return Epoch{1, 0, Since1970, "seconds since 1970"}, true
	case v >= last && v < labView:
		if v < now.Sub(Since1904).Seconds()+86400 {
			return Epoch{1, 0, Since1904, "seconds since 1904, as LabVIEW counts"}, true
		}
		return Epoch{1, 0, Since1900, "seconds since 1900, as NTP counts"}, true
	}
	for _, e := range append([]Epoch{
		{1e-3, 0, Since1970, "milliseconds since 1970"}, {1e-6, 0, Since1970, "microseconds since 1970"}, {1e-9, 0, Since1970, "nanoseconds since 1970"},
	}, ticks...) {
		if s := e.Seconds(v); s >= in2000 && s < in2099 {
			return e, true
		}
	}
	return Epoch{}, false
}

// PartsOfDay reports whether steps are parts of a day: they would be an odd rate as seconds, and as parts of a day are a round number of seconds, or a round rate.
func PartsOfDay(step float64) bool {
	return step > 0 && step*86400 < 61 && (round(step*86400) || round(1/step/86400)) && !round(1/step)
}

// round reports whether a number has at most two digits.
func round(x float64) bool {
	digits := x / math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Abs(digits-math.Round(digits)) < 1e-3*digits
}

// DaysOf returns the word of [DayEpochs] that the numbers of a column fit whose first one is v, and which are a step apart: they are dates of this century, and rows come a
// usual number of seconds apart, at most 20, or more often. It is empty for others. Numbers of seconds since midnight are as large as Excel's days: what would be a round rate of
// these is none.
func DaysOf(v, step float64) (word string) {
	if v < 1 && v > 1000*step && PartsOfDay(step) {
		return "day"
	}
	between := step * 86400
	if !(step > 0) || round(1/step) || between > 1.04 && !slices.ContainsFunc([]float64{2, 5, 10, 15, 20}, func(s float64) bool { return math.Abs(between/s-1) < 1e-3 }) {
		return ""
	}
	for _, word := range []string{"excel", "matlab", "julian"} {
		e := DayEpochs[word]
		if s := e.Seconds(v) - Since1970.Sub(e.From).Seconds(); s >= in2000 && s < in2099 {
			return word
		}
	}
	return ""
}
