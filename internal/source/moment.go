package source

import (
	"math"
	"time"
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
)

// ParseTime reads a date and time as the cells of a time column hold it: RFC 3339, or the
// same without T and zone, which is taken as UTC. It reports whether there was a zone. A
// second 60, which a leap second has and a recorder that rounds may write, is the first of
// the next minute.
func ParseTime(cell string) (at time.Time, hasZone, ok bool) {
	cell, more := withoutSixty(cell)
	at, err := time.Parse(time.RFC3339Nano, cell)
	hasZone = err == nil
	if err != nil {
		at, err = time.Parse(time.DateTime, cell)
	}
	at = at.Add(more)
	if y := at.UTC().Year(); err != nil || y < 1 || y > 9999 {
		return time.Time{}, false, false
	}
	return at, hasZone, true
}

// withoutSixty returns a date and time whose second is 60 with the second before, and how
// much later the time is.
func withoutSixty(cell string) (before string, more time.Duration) {
	const minute = len("2006-01-02 15:04")
	if len(cell) < minute+3 || cell[minute:minute+3] != ":60" {
		return cell, 0
	}
	return cell[:minute] + ":59" + cell[minute+3:], time.Second
}

// stamp returns the moment of a date and time, or false.
func stamp(cell string) (m moment, ok bool) {
	at, hasZone, ok := ParseTime(cell)
	m = moment{form: local, at: at}
	if hasZone {
		m.form = zoned
	}
	_, more := withoutSixty(cell)
	m.sixty = more > 0
	return m, ok
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

// UnitOfTime returns how many seconds a number in a column counts, by the unit in
// brackets that its name may end in; 1 if it names none.
func UnitOfTime(column string) float64 {
	_, unit, _ := SplitUnit(column)
	switch unitKey(unit) {
	case "ms", "msec":
		return 1e-3
	case "us":
		return 1e-6
	case "ns":
		return 1e-9
	case "min":
		return 60
	case "h":
		return 3600
	}
	return 1
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
	for _, u := range []float64{1e3, 1e6, 1e9} {
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
