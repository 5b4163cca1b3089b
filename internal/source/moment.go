package source

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/table"
)

// moment is what a cell of a time column says.
type moment struct {
	form    form
	at      time.Time // of zoned and local
	seconds float64   // of counted, in the unit of the column
	sixty   bool      // the second was written as 60
}

// form is how a time is written.
type form int

const (
	counted form = iota // a number
	zoned               // a date and time with its zone
	local               // a date and time without a zone, which is taken as UTC
	absent              // there is none
)

// stampLayouts are how loggers write a date and time, without the fraction of a second, which may follow a point or a comma. Where day
// and month may change places, see [dayFirst].
var stampLayouts = []string{
	time.DateTime, "2006-01-02T15:04:05", "2006/1/2 15:04:05", "2.1.2006 15:04:05", "1/2/2006 3:04:05 PM", slashed, "2-Jan-2006 15:04:05", "2 Jan 2006 15:04:05", "2-Jan-06 15:04:05",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 Z0700", "2006-01-02T15:04:05Z0700", // programs that write a zone
	"2006-01-02-15:04:05", // of PLCs by IEC 61131-3, behind DT#
	"2006-01-02 15:04", "2.1.2006 15:04", "1/2/2006 3:04 PM", "20060102 15:04:05", "20060102T150405", "2.1.06 15:04:05",
}

// slashed is a date of which the month or the day may come first.
const slashed = "1/2/2006 15:04:05"

// Stamps reads the dates and times of one column: its cells are written in one way. The zero value finds out in which.
type Stamps struct {
	format string // of the layout of the recording; empty: any that is known
	last   string // that was read last
}

// Parse reads a date and time as the cells of a time column hold it: RFC 3339, or as loggers write it, without a zone, which is
// taken as UTC. It reports whether there was a zone. A second 60, which a leap second has and a recorder that rounds may write, is
// the first of the next minute. A date such as 3/4/2026, which has two meanings, is none: a layout's `time_format` says which is meant.
func (s *Stamps) Parse(cell string) (at time.Time, hasZone, ok bool) {
	m, ok := s.parse(cell)
	return m.at, m.form == zoned, ok
}

func (s *Stamps) parse(cell string) (m moment, ok bool) {
	if strings.IndexByte(cell, '#') > 0 {
		cell = plcDate.ReplaceAllString(cell, "")
	}
	cell, more := withoutSixty(cell)
	m = moment{form: local, sixty: more > 0}
	var err error
	if m.at, err = time.Parse(cmp.Or(s.format, s.last), cell); err != nil && s.format == "" {
		if m.at, err = time.Parse(time.RFC3339Nano, cell); err == nil {
			m.form = zoned
		} else {
			m.at, err = s.find(cell)
		}
	}
	if strings.Contains(cmp.Or(s.format, s.last), "Z07") {
		m.form = zoned
	}
	m.at = m.at.Add(more)
	y := m.at.UTC().Year()
	return m, err == nil && y >= 1 && y <= 9999
}

// orders are dates of which day and month may change places, as people write their formats.
var orders = map[string]string{slashed: "M/D/YYYY hh:mm:ss", "2/1/2006 15:04:05": "D/M/YYYY hh:mm:ss"}

// Order returns the `time_format` of what was read last, if that is a date of which day and month may change places, and empty of others.
func (s *Stamps) Order() string { return orders[s.last] }

// StampsOf returns Stamps of a `time_format`; empty: they find it out.
func StampsOf(format string) (s Stamps, err error) {
	if format != "" {
		s.format, err = timeFormat(format)
	}
	return s, err
}

// plcDate is what PLCs write before a date and time.
var plcDate = regexp.MustCompile(`^(L?DT|DATE_AND_TIME)#`)

// find reads a date and time in the first layout that is right.
func (s *Stamps) find(cell string) (at time.Time, err error) {
	if len(cell) < len("1.1.06 00:00") || cell[0] < '0' || cell[0] > '9' {
		return at, errNoTime
	}
	for _, layout := range stampLayouts {
		if at, err = time.Parse(layout, cell); err != nil && layout == slashed {
			layout = "2/1/2006 15:04:05"
			at, err = time.Parse(layout, cell)
		} else if err == nil && layout == slashed && at.Day() <= 12 {
			continue // the month may be the day
		}
		if err == nil {
			s.last = layout
			return at, nil
		}
	}
	return at, errNoTime
}

var errNoTime = errors.New("no date and time")

// IsSlashed reports whether a cell is a date with slashes of which it is not known whether day or month comes first.
func IsSlashed(cell string) bool {
	at, err := time.Parse(slashed, cell)
	return err == nil && at.Day() <= 12
}

// looksLikeDate is how dates and times begin that [Stamps] may not read.
var looksLikeDate = regexp.MustCompile(`^(L?DT#|DATE|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}[ .-]*[A-Za-zäéû]{3,9}[ .,-]+\d{2,4}|([A-Za-z]{3,9}[ ,.]+)+\d{1,2}[ ,.]|\d{4}-\d{3}T|\d{1,2}[:.h]\d{2}[:.m]\d{2})`)

// LooksLikeDate reports whether a cell seems to be a date or a time of the day, also one that cannot be read.
func LooksLikeDate(cell string) bool { return looksLikeDate.MatchString(cell) }

// SecondsOf returns the seconds of a cell that is a time of the day, counted from midnight, or a number with a unit of time behind it, such as 250 ms.
func SecondsOf(cell string) (seconds float64, ok bool) {
	if s, ok := ofDay(cell); ok {
		return s, true
	}
	end := strings.LastIndexAny(cell, "0123456789.") + 1
	unit, ok := table.UnitOfTime(cell[end:])
	v, err := strconv.ParseFloat(strings.Replace(cell[:end], ",", ".", 1), 64)
	return v * unit, ok && err == nil
}

// isDate reports whether a cell is a date without a time.
func isDate(cell string) bool {
	return slices.ContainsFunc([]string{time.DateOnly, "2006/1/2", "2.1.2006", "2/1/2006", "1/2/2006", "2.1.06"}, func(layout string) bool {
		_, err := time.Parse(layout, cell)
		return err == nil
	})
}

// minutes is a time of minutes and seconds with a fraction, as spreadsheets write it: 06:00 may be hours.
var minutes = regexp.MustCompile(`^[0-5]\d:[0-5]\d[.,]\d+$`)

// ofDay returns the seconds since midnight of a time of the day, such as 06:00:00,250, or of minutes and seconds, such as 00:06.2.
func ofDay(cell string) (seconds float64, ok bool) {
	switch n := strings.Count(cell, ":"); {
	case n == 1 && minutes.MatchString(cell):
		cell = "00:" + cell
	case n != 2:
		return 0, false
	}
	at, err := time.Parse(time.TimeOnly, cell)
	if err != nil {
		return 0, false
	}
	midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	return at.Sub(midnight).Seconds(), true
}

// timeFormat returns the layout of package time that a `time_format` of people means, such as DD.MM.YYYY hh:mm:ss.
func timeFormat(text string) (string, error) {
	format := strings.NewReplacer("YYYY", "2006", "YY", "06", "MMM", "Jan", "MM", "01", "M", "1", "DD", "02", "D", "2", "hh", "15", "mm", "04", "ss", "05", "AM", "PM").Replace(text)
	if strings.Contains(format, "PM") {
		format = strings.Replace(format, "15", "03", 1)
	}
	if !strings.Contains(format, "06") || !strings.Contains(format, "04") {
		return "", fmt.Errorf("`recording: time_format`: %q: write it with YYYY, MM, DD, hh, mm and ss, such as DD.MM.YYYY hh:mm:ss or M/D/YYYY hh:mm:ss AM", text)
	}
	return format, nil
}

// withoutSixty returns a date and time whose second is 60 with the second before, and how
// much later the time is.
func withoutSixty(cell string) (before string, more time.Duration) {
	i := strings.LastIndex(cell, ":60")
	if i < 3 || cell[i-3] != ':' {
		return cell, 0
	}
	return cell[:i] + ":59" + cell[i+3:], time.Second
}

// stamp returns the moment of a date and time, or false.
func stamp(cell string) (m moment, ok bool) { return new(Stamps).parse(cell) }

// timeUnits are words of `time_unit`; [table.DayEpochs] has the others.
var timeUnits = map[string]table.Epoch{
	"s": {Unit: 1}, "ms": {Unit: 1e-3}, "us": {Unit: 1e-6}, "ns": {Unit: 1e-9}, "min": {Unit: 60}, "h": {Unit: 3600},
	"labview": {Unit: 1, From: table.Since1904, Name: "seconds since 1904, as LabVIEW counts"},
}

// clockChange is by how much local time jumps when daylight saving time begins or ends.
const clockChange = time.Hour

// ClockWentBack reports whether local times that followed each other by step would
// follow each other by about one sample period if daylight saving time had just ended.
func ClockWentBack(step, period time.Duration) bool { return near(step+clockChange, period) }

// ClockWentOn is ClockWentBack for the beginning of daylight saving time, when local time
// leaves out an hour. It begins at a full hour.
func ClockWentOn(before, after time.Time, period time.Duration) bool {
	return near(after.Sub(before)-clockChange, period) &&
		after.Truncate(time.Hour).Sub(before.Truncate(time.Hour)) == 2*clockChange
}

// near reports whether a step is one sample period, up to one period more or less, or
// as many lost samples as a second has.
func near(step, period time.Duration) bool {
	return period < clockChange/2 && (step-period).Abs() <= max(period, time.Second)
}

// SplitTimeUnit divides the name of a column of times from its unit, in brackets, or as in t_ms, t/ms and "t in ms". The unit is empty if there is none.
func SplitTimeUnit(column string) (name, unit string) {
	if name, unit, ok := table.SplitUnit(column); ok {
		return name, unit
	}
	for _, between := range []string{"_", "/", " in "} {
		name, unit, ok := cutLast(column, between)
		if _, known := table.UnitOfTime(unit); ok && known && (len(name) > 1 || len(unit) > 1 && !strings.EqualFold(unit, "min")) { // T_min is the least temperature
			return name, unit
		}
	}
	return column, ""
}

func cutLast(text, between string) (before, after string, ok bool) {
	i := strings.LastIndex(text, between)
	if i <= 0 {
		return text, "", false
	}
	return text[:i], text[i+len(between):], true
}

// UnitOfTime returns how many seconds a number in a column counts, by the unit that its name ends in or is: 1 if it names none, and 1 and false if it is
// another unit.
func UnitOfTime(column string) (seconds float64, ok bool) {
	_, unit := SplitTimeUnit(column)
	if unit == "" {
		unit = strings.TrimRight(PlainName(column), "0123456789")
		if seconds, ok = table.UnitOfTime(unit); ok && len(unit) > 2 {
			return seconds, true
		}
		return 1, true
	}
	if seconds, ok = table.UnitOfTime(unit); ok {
		return seconds, true
	}
	return 1, false
}

// rises follows the first steps of a column of numbers that should count seconds.
type rises struct {
	seen int
	unit float64 // that all of them fit, in seconds; 0 before the first
}

// riseRows is how many steps in a row must fit another unit than seconds.
const riseRows = 10

// add takes a step in sample periods. It returns the unit in seconds that the first
// steps fit if they do not fit seconds, 0 while that is not known.
func (r *rises) add(step float64) (unit float64) {
	if r.seen >= riseRows || r.seen < 0 {
		return 0
	}
	unit = 0
	for _, u := range []float64{1e3, 1e6, 1e9, 1. / 60, 1. / 3600, 1. / 86400} {
		if math.Abs(step/u-1) < 0.1 {
			unit = 1 / u
		}
	}
	if unit == 0 || r.seen > 0 && unit != r.unit {
		r.seen = -1 // seconds, or a gap
		return 0
	}
	r.unit = unit
	if r.seen++; r.seen == riseRows {
		return unit
	}
	return 0
}

// Grid is where the rows of a table lie that are a sample period apart, however their times jitter: it follows a clock that drifts.
// Times are in sample periods from any start. Begin it before Next.
type Grid struct {
	Index int64 // of the last row

	origin float64 // time of index 0
	n      float64 // rows since the origin was set
}

// OffGrid is by how many sample periods a row may be late; from there on samples are missing. It may be more than half: a
// row that jitters by less than half a period follows one that jitters the other way.
const OffGrid = 0.9

// Begin takes the time of the first row.
func (g *Grid) Begin(at float64) { *g = Grid{origin: at} }

// Next takes the time of the next row, which may be so much off. It returns by how much it is late, and how many samples are missing before it.
func (g *Grid) Next(at, most float64) (late float64, missing int64) {
	late = at - g.origin - float64(g.Index) - 1
	if g.Index++; math.Abs(late) > most {
		if late > 0 {
			missing = int64(math.Round(late))
		}
		g.Index += missing
		g.origin, g.n = at-float64(g.Index), 0
		return late, missing
	}
	g.n++
	g.origin += late / min(g.n+1, 50)
	return late, 0
}
