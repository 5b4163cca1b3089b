package source

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/table"
)

// How a row of a table is placed in time: by what it states, by the rate where stamps are coarse, and with a gap where rows are missing.

// readTime sets the time of the row and returns how many samples are missing
// between it and the row before.
func (t *tableSource) readTime(changed bool, tool string) (skipped int64, err error) {
	first, before, leap := t.stats.Rows == 0, t.row.time, t.row.sixty
	if t.rec.time < 0 {
		t.row.time = t.opt.Start.Add(seconds(float64(t.stats.Rows) / t.rate))
		return 0, nil
	}
	if t.row.time, err = t.parseTime(first); err != nil {
		return 0, err
	}
	if !first && !changed && t.row.form == local && ClockWentBack(t.row.time.Sub(before), seconds(1/t.rate)) {
		t.leap += clockChange
		t.row.time = t.row.time.Add(clockChange)
		t.warn("is about an hour earlier than the row before: it seems that daylight saving time ended, when local time repeats an hour: it and later times of this recording count an hour more; record UTC, as 2026-01-31T14:05:09Z, or local time with its offset")
	}
	stated := t.row.time
	defer func() {
		if t.repeats++; !stated.Equal(t.stamp) {
			t.repeats = 1
		}
		t.stamp = stated
	}()
	if first {
		t.zero = t.row.time
		t.grid.Begin(0)
		t.even = evenRows{from: t.zero, start: t.zero}
		t.checkDate()
		return 0, nil
	}
	if changed && t.row.form == counted && !t.counts() && !t.row.time.After(before) {
		t.shift += before.Add(seconds(1 / t.rate)).Sub(t.row.time)
		t.row.time = before.Add(seconds(1 / t.rate))
	}
	if leap && !t.row.sixty && !t.row.time.After(before) { // the minute begins again after a leap second
		t.leap += time.Second
		t.row.time = t.row.time.Add(time.Second)
		t.warn("follows a leap second: it and later times of this recording count a second more, so that rows stay in order")
	}
	coarse := (t.row.form != absent || t.coarse > 0 || t.blocks) && t.repeat(changed)
	if coarse {
		if skipped, err = t.within(before); err != nil {
			return 0, err
		}
	}
	if !coarse && !changed && t.standsStill() {
		t.row.time = before.Add(seconds(0.25 / t.rate))
	}
	step := t.row.time.Sub(before).Seconds() * t.rate
	if step <= 0 {
		return 0, t.notLater(before, changed, tool)
	}
	if coarse {
		t.even = evenRows{from: t.row.time, start: t.row.time}
	} else {
		_, skipped = t.grid.Next(t.row.time.Sub(t.zero).Seconds()*t.rate, OffGrid)
		if err := t.checkRate(changed, skipped > 0); err != nil {
			return 0, err
		}
	}
	if skipped > 0 && t.row.form == local && ClockWentOn(before, t.row.time, seconds(1/t.rate)) {
		t.warn("is about an hour later than the row before: it seems that daylight saving time began, when local time leaves out an hour; the hour counts as a gap; record UTC, or local time with its offset")
	}
	return skipped, t.checkUnit(step)
}

// standsStill reports whether the row has the time of the one before, which a logger may write now and then: of twenty rows one, and no more than four rows
// have one time.
func (t *tableSource) standsStill() bool {
	if !t.row.time.Equal(t.stamp) || !t.mayStandStill() {
		return false
	}
	t.still.add("%s", strings.TrimPrefix(t.rows.errorf(t.rec.time, "in its column of times").Error(), "source: "))
	return true
}

// mayStandStill reports whether there are few rows yet that have no time of their own.
func (t *tableSource) mayStandStill() bool {
	return t.repeats <= 3 && t.still.count <= 2+t.stats.Rows/20
}

// end says of the whole table what was not as it should be.
func (t *tableSource) end() {
	if n := t.nameless; n.count > 0 && t.opt.Warn != nil {
		t.opt.Warn(fmt.Sprintf("rows that name no tool, which count as of a tool that is named after the file: %d, the first is %s: name the tool", n.count, n.first))
	}
	if n := t.still.count; n > 0 && t.opt.Warn != nil {
		t.opt.Warn(fmt.Sprintf("%s: rows without a time, or with the time of the row before, placed behind it: %d, the first is %s", t.name, n, t.still.first))
	}
}

// checkRate compares the rate of the rows so far with the layout's.
func (t *tableSource) checkRate(changed, gap bool) error {
	rate, n := t.even.add(t.row.time, changed, gap, t.rate, max(rateError, t.layout.Limits().Rate))
	if n == 0 {
		return nil
	}
	text := fmt.Sprintf("ends %d rows that come %.6g times a second, by their times, and the layout says %v: correct `rate`, or `time_unit` under the layout's `recording`", n, rate, t.rate)
	if rate > wrongRate*t.rate || rate < t.rate/wrongRate {
		return t.rows.errorf(t.rec.time, "%s", text)
	}
	if !t.doubted {
		t.warn(text)
	}
	t.doubted = true
	return nil
}

// evenRows follows the rows of a tool, and those without a gap.
type evenRows struct {
	start, from time.Time // of all rows, and of those without a gap
	all, n      int       // behind start and behind from
	gaps        int
}

// Rows whose rate is compared with the layout's. It may differ by rateError, or by more if the layout's `quality` says so, and by lateRows that a logger writes late and at
// once. Of gapRows rows at most half may be behind a gap.
const (
	evenMost  = 2000
	rateError = 0.01
	lateRows  = 10
	gapRows   = 100

	wrongRate = 1.5 // by this factor a rate is wrong; by less it may be a logger's odd habit, of which a warning tells
)

// isEven reports whether the rate of so many rows is looked at.
func isEven(n int) bool { return n == 20 || n == 100 || n == 500 || n == evenMost }

// add takes the time of the next row, which may be the first of another tool, or behind a gap. It returns the rate of rows if that differs from
// the layout's by more than most, as a part, and how many rows have it. Only rows without a gap can be too slow. Those may be too fast: they
// are late, and catch up.
func (e *evenRows) add(at time.Time, changed, gap bool, layout, most float64) (rate float64, rows int) {
	if changed {
		*e = evenRows{from: at, start: at}
		return 0, 0
	}
	e.n, e.all = e.n+1, e.all+1
	if gap {
		e.from, e.n, e.gaps = at, 0, e.gaps+1
	}
	off := func(n int) float64 { return most + lateRows/float64(n) }
	if rate = float64(e.all) / at.Sub(e.start).Seconds(); isEven(e.all) && rate/layout-1 > off(e.all) {
		return rate, e.all
	}
	if e.all == gapRows && 2*e.gaps > gapRows { // later ones are gaps
		return rate, e.all
	}
	if n := e.n; isEven(n) {
		rate = float64(n) / at.Sub(e.from).Seconds()
		if n == evenMost {
			e.from, e.n = at, 0
		}
		if rate/layout-1 < -off(n) {
			return rate, n
		}
	}
	return 0, 0
}

// repeat reports whether stamps are coarser than the time between rows, so that rows have the same one.
func (t *tableSource) repeat(changed bool) bool {
	at := t.row.time
	if t.row.form == counted && !t.counts() {
		at = time.Unix(0, 0).Add(at.Sub(t.opt.Start.Add(t.shift)))
	}
	unit, ns := time.Millisecond, at.Round(time.Microsecond).UnixNano()
	for _, d := range []time.Duration{time.Minute, time.Second, 100 * time.Millisecond, 10 * time.Millisecond} {
		if ns%int64(d) == 0 {
			unit = d
			break
		}
	}
	same, between, rows := t.row.time.Equal(t.stamp), t.row.time.Sub(t.stamp), seconds(float64(t.repeats)/t.rate)
	if !changed || same {
		if t.coarse == 0 && same || t.coarse > unit && !t.blocks {
			t.coarse = unit
		}
		fits := int(1.5*t.coarse.Seconds()*t.rate) + 1 // rows of a stamp
		if t.coarse.Seconds()*t.rate <= 1.5 {
			fits = 1
		}
		if t.coarse > 0 && t.coarse < time.Second && (t.row.form != counted || t.counts()) && !t.blocks && (same && t.repeats >= fits || t.repeats > fits) {
			t.blocks, t.coarse = true, 0
			t.warn("is one of several rows with the same time, as of a block that was written at once: they are placed by the rate")
		}
	}
	if t.blocks && !same && !changed {
		t.coarse = max(t.coarse, rows)
		if between < 4*rows { // else there is a gap
			t.coarse = max(t.coarse, between)
		}
	}
	return !t.row.time.Before(t.stamp) && (t.blocks || t.coarse.Seconds()*t.rate > 1.5)
}

// followed is by what part of a stamp's time rows follow a clock that runs fast or slow, once they are a stamp off.
const followed = 500

// longBlock is longer than what a logger writes at once, with one stamp.
const longBlock = 10 * time.Second

// within places a row by the rate, as far as its stamp allows, and returns how many samples are missing before it.
func (t *tableSource) within(before time.Time) (skipped int64, err error) {
	period := seconds(1 / t.rate)
	most := t.coarse + t.coarse/2
	late := t.row.time.Sub(before.Add(period))
	repeats, mostRows := 1, most
	if t.row.time.Equal(t.stamp) {
		repeats += t.repeats
	}
	if t.blocks {
		mostRows = longBlock
	}
	switch same := repeats > 1; {
	case late > most && !same:
		skipped = int64(math.Round(late.Seconds() * t.rate))
	case late < -most && !same || repeats > int(mostRows.Seconds()*t.rate)+1:
		return 0, t.rows.errorf(t.rec.time, "comes too early: so many rows have this time or the one before that they are more than %v a second: correct `rate`", t.rate)
	default:
		t.row.time = before.Add(period)
		if !same && late > t.coarse {
			t.row.time = t.row.time.Add(t.coarse / followed)
		} else if !same && late < -t.coarse {
			t.row.time = t.row.time.Add(-min(t.coarse/followed, period/2))
		}
	}
	t.grid.Begin(t.row.time.Sub(t.zero).Seconds() * t.rate)
	return skipped, nil
}

// notLater says why a row is not later than the row before, and what to do.
func (t *tableSource) notLater(before time.Time, changed bool, tool string) error {
	at, form := t.row.time, t.row.form
	period := seconds(1 / t.rate)
	switch {
	case changed:
		return t.rows.errorf(t.rec.time, "is not later than the row before, at which the tool changes from %q to %q: sort the rows by time, or make a file of each tool", tool, t.row.Tool)
	case form == counted && !t.counts() && !at.After(t.zero.Add(2*period)) && before.Sub(t.zero) > 2*period:
		return t.rows.errorf(t.rec.time, "starts again, after %s: if another recording begins here, name the column that tells them apart as `tool` under the layout's `recording`, or make a file of each",
			strconv.FormatFloat(before.Sub(t.opt.Start.Add(t.shift)).Seconds()/t.epoch.Unit, 'g', -1, 64))
	}
	return t.rows.errorf(t.rec.time, "is not later than the row before: sort the rows by time; if its stamps are too coarse for %v rows a second, leave `time` out of the layout's `recording`", t.rate)
}

// warn says what is odd about the time of the row.
func (t *tableSource) warn(what string) {
	if t.opt.Warn != nil {
		t.opt.Warn(strings.TrimPrefix(t.rows.errorf(t.rec.time, "%s", what).Error(), "source: "))
	}
}

// checkUnit reports a column of numbers that seems to count another unit than seconds, by the steps between rows in sample periods.
func (t *tableSource) checkUnit(step float64) error {
	if t.row.form != counted || t.counts() {
		return nil
	}
	unit := t.rises.add(step)
	if unit == 0 {
		return nil
	}
	name := map[float64][2]string{1e-3: {"milliseconds", "ms"}, 1e-6: {"microseconds", "us"}, 1e-9: {"nanoseconds", "ns"}, 60: {"minutes", "min"}, 3600: {"hours", "h"}, 86400: {"days", "excel"}}[unit]
	if unit == 86400 {
		return t.rows.errorf(t.rec.time, "and the rows before it are about %.4g apart, and the layout says %v rows a second: the column seems to count days, as Excel does: set `time_unit: excel` under the layout's `recording`", step/t.rate, t.rate)
	}
	return t.rows.errorf(t.rec.time, "and the rows before it are about %.4g apart, and the layout says %v rows a second: the column seems to count %s, not seconds; write the unit behind its name, as \"t [%s]\", set `time_unit`, or leave `time` out of the layout's `recording`",
		step/t.rate, t.rate, name[0], name[1])
}

// checkDate warns of a first time that is not of a recording: before loggers had clocks, in the future, or years after the start.
func (t *tableSource) checkDate() {
	at := t.row.time.UTC()
	switch {
	case t.row.form == counted && !t.counts():
		if s := t.row.time.Sub(t.opt.Start); s > longTime {
			t.warn(fmt.Sprintf("is %.4g years after the start of the recording: if the column counts from a date, set `time_unit` under the layout's `recording`, or its start", s.Hours()/8766))
		}
	case at.Year() < 1990 || time.Until(at) > aheadMost:
		t.warn("is of " + at.Format(time.DateOnly) + ", and no recording is of then: set the clock of the logger, or `time_unit` or `time_format` under the layout's `recording`")
	}
}

// longTime is longer than a recording.
const longTime = 366 * 24 * time.Hour

// parseTime returns the time that the row states. What a number counts, and from when, is
// settled by the first row.
func (t *tableSource) parseTime(first bool) (time.Time, error) {
	m, err := t.rows.moment(t.rec.time, t.rec.date, &t.stamps)
	if err == nil && m.form == absent {
		if first || !t.mayStandStill() {
			return time.Time{}, t.rows.errorf(t.rec.time, "is not a time: give every row its time, or leave `time` out of the layout's `recording`")
		}
		t.row.form = absent
		return t.stamp, nil // it is placed behind the row before
	}
	t.row.form, t.row.sixty = m.form, m.sixty
	if err != nil || m.form != counted {
		return m.at.Add(t.leap), err
	}
	if first && !t.found {
		e, ok := table.EpochOf(m.seconds, time.Now())
		if !ok && !t.named {
			return time.Time{}, t.rows.errorf(t.rec.time, "is in a unit that is not known, by the name of the column: set `time_unit` under the layout's `recording`")
		}
		if ok {
			if t.epoch = e; e.Unit != 1 || e.From.Year() != 1970 {
				t.warn("is taken for " + e.Name)
			}
		}
	}
	s := t.epoch.Seconds(m.seconds)
	if !(math.Abs(s) < 1<<33) {
		return time.Time{}, t.rows.errorf(t.rec.time, "is not a time in seconds: write the unit behind the name of the column, as \"t [ms]\", or set `time_unit` under the layout's `recording`")
	}
	if first && t.found && !t.counts() && s >= 1e9 {
		t.epoch.From = table.Since1970
	}
	if t.counts() {
		return t.epoch.From.Add(seconds(s)), nil
	}
	return t.opt.Start.Add(t.shift).Add(seconds(s)), nil
}

// counts reports whether numbers in the time column count from a date.
func (t *tableSource) counts() bool { return t.epoch.Dated() }
