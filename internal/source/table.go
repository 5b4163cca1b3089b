package source

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/table/csvfile"
	"github.com/flank-tcm/flank/pkg/signal"
)

// A Table delivers at most blockRows rows in one block, and of a slow one no more
// than it has in blockTime: in the pace of a live sensor whole blocks arrive.
const (
	blockRows = 256
	blockTime = 10 * time.Second
)

// tableOptions says of a recording what the recording does not say itself.
type tableOptions struct {
	Machine string // Context.Machine where the recording does not name it
	Session int64  // number of the first session; the following count up from it

	// Start is the sensor time of the first sample where the recording does not
	// state it, and the instant that small numbers in a time column count from.
	// The zero value means the start of 1970 in UTC.
	Start time.Time

	Warn func(text string) // called with what a person should know; may be nil
}

// Stats counts what a Table has read so far, which is up to one row more than
// it has delivered.
type Stats struct {
	Rows    int64    // rows, the header not counted
	Missing int64    // cells of channels that are missing
	Ignored []string // columns that neither layout nor recording names, in file order
}

// rows is a table that is read row by row.
type rows interface {
	names() []string       // of the columns
	want(cols []int) error // names the columns that will be read; -1 stands for none
	next() error           // reads the next row; io.EOF after the last
	start() time.Time      // sensor time of the first row, zero if the table does not say it

	// number returns the number in a cell of the row last read: NaN if it is
	// missing. Numbers of 32 bits are rounded once.
	number(col, bits int) (float64, error)
	// text returns the text in a cell, empty if it is missing or col is -1.
	text(col int) (string, error)
	// said reports whether a cell of text has something in it, if only a word for missing.
	said(col int) bool
	// moment returns the time in a cell, or a number. The date is in another cell, if date is not -1.
	moment(col, date int, by *Stamps) (moment, error)
	// errorf says what is wrong with a cell, and where it is.
	errorf(col int, format string, args ...any) error
}

// tableSource reads a recorded table, a [Source] of one row for each sample.
//
// A change in the tool column starts a new session, whose counter starts at 0.
// Without a time column rows follow each other at the rate of the layout,
// also from one tool to the next. With one, rows more than one and a half
// sample periods apart leave a gap in the counter, and each row must be later
// than the one before. Times are RFC 3339 or seconds: numbers from 1e9 on
// (September 2001) count from 1970, smaller ones from Options.Start. Smaller ones
// may start again with each tool, which then follows the one before it. The name of
// the column may end in another unit, such as [ms].
type tableSource struct {
	name   string
	rows   rows
	file   io.Closer
	layout *signal.Layout
	opt    tableOptions
	rate   float64
	most   int // rows of a block

	columns []tableColumn // of the channels, in layout order
	rec     recordingColumns

	row      tableRow
	pending  bool // row is read but not delivered
	err      error
	stats    Stats
	stamps   Stamps
	epoch    csvfile.Epoch // what numbers in the time column count
	found    bool          // by the size of the first one
	shift    time.Duration // of times of a tool with which the time column started again
	zero     time.Time     // time of the first row
	leap     time.Duration // of dates and times after a leap second
	rises    rises
	grid     Grid
	even     evenRows
	nameless skipped       // rows whose tool is a word for missing
	doubted  bool          // a warning said that rows come at another rate
	stamp    time.Time     // that the row before states
	coarse   time.Duration // what stamps are whole numbers of, or the time between them, if rows repeat them; 0: they do not
	blocks   bool          // rows of a block have one stamp, although it is finer than rows
	repeats  int           // rows with this stamp

	block Block
	truth []Truth
}

// tableColumn is where the values of a channel are and what to make of them.
type tableColumn struct {
	index int
	calibration
}

// recordingColumns are the cells that signal.Recording names, -1 if none.
type recordingColumns struct {
	time, date, machine, tool, hole, speed, vbMean, vbMax, state int
	vbMeanMM, vbMaxMM                                            bool // these columns are in mm
}

func (r recordingColumns) labelled() bool { return r.vbMean >= 0 || r.vbMax >= 0 || r.state >= 0 }

// tableRow is one row of the table, read and checked.
type tableRow struct {
	signal.Context
	session int64
	counter int64
	time    time.Time
	form    form // of the time
	sixty   bool // the second of the time was written as 60
	truth   Truth
	values  []float32 // in layout order
}

// openTable opens the table of text at path, see [Recording.Open] for other
// formats. It returns an error if the layout has more than one rate, or if the
// header lacks a column that layout or rec name. The caller must Close the
// result.
func openTable(path string, layout *signal.Layout, rec signal.Recording, opt tableOptions) (*tableSource, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	t, err := newText(f, path, layout, rec, opt)
	if err != nil {
		f.Close()
		return nil, err
	}
	t.file = f
	return t, nil
}

func newText(r io.Reader, name string, layout *signal.Layout, rec signal.Recording, opt tableOptions) (*tableSource, error) {
	if err := checkTable(name, layout); err != nil {
		return nil, err
	}
	d, err := dialectOf(rec)
	if err != nil {
		return nil, fmt.Errorf("source: %s: %w", name, err)
	}
	cells, err := newCellReader(r, name, d)
	if err != nil {
		return nil, err
	}
	if cells.warn = opt.Warn; opt.Warn != nil {
		for _, note := range cells.notes {
			opt.Warn(name + ": " + note)
		}
		if cells.dialect.skip > d.skip {
			opt.Warn(name + ": " + cells.dialect.String())
		}
	}
	return newTable(cells, name, layout, rec, opt)
}

// checkTable reports a layout that no table can have.
func checkTable(name string, layout *signal.Layout) error {
	if g := layout.Groups(); len(g) > 1 {
		cs := layout.Channels()
		return fmt.Errorf("source: %s: the layout has channels at %v Hz (%s) and at %v Hz (%s), but a row of a table is one sample of every channel: use a layout of one rate",
			name, g[0].Rate, cs[g[0].Channels[0]].Name, g[1].Rate, cs[g[1].Channels[0]].Name)
	}
	return nil
}

// newTable returns a Table of rows, for a layout of one rate.
func newTable(in rows, name string, layout *signal.Layout, rec signal.Recording, opt tableOptions) (*tableSource, error) {
	n := len(layout.Channels())
	t := &tableSource{
		name: name, rows: in, layout: layout, opt: opt, rate: layout.Groups()[0].Rate,
		row: tableRow{session: opt.Session, values: make([]float32, n)},
	}
	t.most = int(min(blockRows, max(1, t.rate*blockTime.Seconds())))
	if t.opt.Start.IsZero() {
		t.opt.Start = time.Unix(0, 0).UTC()
	}
	if err := t.findColumns(rec); err != nil {
		return nil, err
	}
	if err := t.readTimes(rec); err != nil {
		return nil, fmt.Errorf("source: %s: %w", name, err)
	}
	want := []int{t.rec.time, t.rec.date, t.rec.machine, t.rec.tool, t.rec.hole, t.rec.speed, t.rec.vbMean, t.rec.vbMax, t.rec.state}
	for _, col := range t.columns {
		want = append(want, col.index)
	}
	if err := in.want(want); err != nil {
		return nil, err
	}
	flat := make([]float32, n*t.most)
	for i := range n {
		t.block.Samples = append(t.block.Samples, flat[i*t.most:i*t.most:(i+1)*t.most])
	}
	if t.rec.labelled() {
		t.truth = make([]Truth, 0, t.most)
	}
	return t, nil
}

// readTimes takes what the layout says of the column of times.
func (t *tableSource) readTimes(rec signal.Recording) (err error) {
	t.epoch.Unit, t.found = 1, true
	if t.stamps, err = StampsOf(rec.TimeFormat); err != nil {
		return err
	}
	e, ok := timeUnits[rec.TimeUnit]
	days, isDays := csvfile.Day[rec.TimeUnit]
	switch {
	case ok:
		t.epoch = e
	case isDays:
		t.epoch = days
	case rec.TimeUnit != "":
		return fmt.Errorf("`recording: time_unit`: %q: write s, ms, us, ns, min, h, labview (seconds since 1904), excel (days since 1900), matlab (days since the year 0) or julian (days)", rec.TimeUnit)
	case t.rec.time >= 0:
		t.epoch.Unit, _ = UnitOfTime(t.rows.names()[t.rec.time])
		t.found = t.epoch.Unit != 1
	}
	return nil
}

// Layout returns the layout that the table was opened with.
func (t *tableSource) Layout() *signal.Layout { return t.layout }

// Stats returns what has been read so far.
func (t *tableSource) Stats() Stats { return t.stats }

// Close closes the file.
func (t *tableSource) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// Next returns the next rows of one session and context, at most 256 and no more
// than ten seconds have. The block and its slices are used again by the following call. After the last
// block Next returns io.EOF. What is wrong with a row is returned after the
// rows before it, and again by every later call.
func (t *tableSource) Next(ctx context.Context) (*Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !t.pending && !t.read() {
		return nil, t.err
	}
	b := &t.block
	b.Context, b.Session, b.First, b.Time = t.row.Context, t.row.session, t.row.counter, t.row.time
	for i := range b.Samples {
		b.Samples[i] = b.Samples[i][:0]
	}
	t.truth = t.truth[:0]
	for n := 1; ; n++ {
		for i, v := range t.row.values {
			b.Samples[i] = append(b.Samples[i], v)
		}
		if t.rec.labelled() {
			t.truth = append(t.truth, t.row.truth)
		}
		t.pending = false
		if n == t.most || !t.read() {
			break
		}
		if t.row.Context != b.Context || t.row.session != b.Session || t.row.counter != b.First+int64(n) {
			break
		}
	}
	b.Truth = t.truth
	return b, nil
}

// read reads the next row into t.row. It returns false when there is none, and
// t.err says why.
func (t *tableSource) read() bool {
	if t.err != nil {
		return false
	}
	if t.err = t.readRow(); t.err != nil {
		if n := t.nameless; n.count > 0 && t.opt.Warn != nil {
			t.opt.Warn(fmt.Sprintf("rows that name no tool, which count as of a tool that is named after the file: %d, the first is %s: name the tool", n.count, n.first))
		}
		return false
	}
	t.pending = true
	return true
}

func (t *tableSource) readRow() error {
	if err := t.rows.next(); err != nil {
		return err
	}
	if t.stats.Rows == 0 && t.rec.time < 0 {
		if at := t.rows.start(); !at.IsZero() {
			t.opt.Start = at
		}
	}
	r := &t.row
	for i, col := range t.columns {
		v, err := t.rows.number(col.index, col.bits())
		if err != nil {
			return err
		}
		if v != v {
			t.stats.Missing++
		}
		var ok bool
		if r.values[i], ok = col.apply(v); !ok {
			return t.rows.errorf(col.index, "is beyond the range of 32-bit numbers with gain %v: correct the cell or the gain", col.gain)
		}
	}
	before := *r
	if err := t.readContext(); err != nil {
		return err
	}
	if err := t.readTruth(); err != nil {
		return err
	}
	skipped, err := t.readTime(r.Tool != before.Tool, before.Tool)
	if err != nil {
		return err
	}
	switch {
	case t.stats.Rows == 0:
	case r.Tool != before.Tool:
		r.session++
		r.counter = 0
	default:
		r.counter += 1 + skipped
	}
	t.stats.Rows++
	return nil
}

func (t *tableSource) readContext() error {
	r := &t.row
	machine := r.Machine
	for _, f := range []struct {
		column int
		to     *string
	}{{t.rec.machine, &machine}, {t.rec.tool, &r.Tool}, {t.rec.hole, &r.Hole}} {
		s, err := t.rows.text(f.column)
		if err != nil {
			return err
		}
		if f.to == &machine && s == "" {
			s = t.opt.Machine
		}
		if s != *f.to && plain.Check(s) != nil {
			return t.rows.errorf(f.column, "has a line end, another control character, or one that turns the direction of writing: remove it")
		}
		if f.to == &r.Tool && s == "" && f.column >= 0 && t.rows.said(f.column) {
			if t.nameless.count++; t.nameless.count == 1 {
				t.nameless.first = strings.TrimPrefix(t.rows.errorf(f.column, "is a word for what is missing").Error(), "source: ")
			}
		}
		if f.to == &r.Tool && s != *f.to {
			if s, err = plain.Name(s); err != nil {
				return t.rows.errorf(f.column, "has an invisible character: remove it")
			}
		}
		*f.to = keep(*f.to, s)
	}
	if t.stats.Rows > 0 && machine != r.Machine {
		return t.rows.errorf(t.rec.machine, "comes after rows of machine %q: a recording is of one machine: split the table", r.Machine)
	}
	r.Machine = machine
	if t.rec.speed >= 0 {
		v, err := t.rows.number(t.rec.speed, 64)
		if err != nil {
			return err
		}
		if v != v {
			v = 0
		}
		r.SpindleSpeed = v
	}
	return nil
}

func (t *tableSource) readTruth() error {
	truth := &t.row.truth
	state := truth.State
	*truth = NoTruth
	for _, f := range []struct {
		column int
		mm     bool
		to     *float64
	}{{t.rec.vbMean, t.rec.vbMeanMM, &truth.VBMeanUM}, {t.rec.vbMax, t.rec.vbMaxMM, &truth.VBMaxUM}} {
		if f.column < 0 {
			continue
		}
		v, err := t.rows.number(f.column, 64)
		if err != nil {
			return err
		}
		if v < 0 {
			return t.rows.errorf(f.column, "is a negative flank wear: correct it, or leave the cell empty if it was not measured")
		}
		if f.mm {
			v = math.Round(v*1e6) / 1e3 // to the nm, so that 0.57 mm are 570 µm
		}
		*f.to = v
	}
	s, err := t.rows.text(t.rec.state)
	truth.State = keep(state, s)
	return err
}

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
	coarse := t.repeat(changed)
	if coarse {
		if skipped, err = t.within(before); err != nil {
			return 0, err
		}
	}
	step := t.row.time.Sub(before).Seconds() * t.rate
	if step <= 0 {
		return 0, t.notLater(before, changed, tool)
	}
	if coarse {
		t.even = evenRows{from: t.row.time, start: t.row.time}
	} else {
		_, skipped = t.grid.Next(t.row.time.Sub(t.zero).Seconds()*t.rate, OffGrid)
		if rate, n := t.even.add(t.row.time, changed, skipped > 0, t.rate, max(rateError, t.layout.Limits().Rate)); n > 0 {
			text := fmt.Sprintf("ends %d rows that come %.6g times a second, by their times, and the layout says %v: correct `rate`, or `time_unit` under the layout's `recording`", n, rate, t.rate)
			if rate > wrongRate*t.rate || rate < t.rate/wrongRate {
				return 0, t.rows.errorf(t.rec.time, "%s", text)
			}
			if !t.doubted {
				t.warn(text)
			}
			t.doubted = true
		}
	}
	if skipped > 0 && t.row.form == local && ClockWentOn(before, t.row.time, seconds(1/t.rate)) {
		t.warn("is about an hour later than the row before: it seems that daylight saving time began, when local time leaves out an hour; the hour counts as a gap; record UTC, or local time with its offset")
	}
	return skipped, t.checkUnit(step)
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
	case form == local && ClockWentBack(at.Sub(before), period):
		return t.rows.errorf(t.rec.time, "is about an hour earlier than the row before: it seems that daylight saving time ended, when local time repeats an hour; record UTC, as 2026-01-31T14:05:09Z, or local time with its offset, as 2026-01-31T15:05:09+01:00")
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
	t.row.form, t.row.sixty = m.form, m.sixty
	if err != nil || m.form != counted {
		return m.at.Add(t.leap), err
	}
	if first && !t.found {
		if e, ok := csvfile.EpochOf(m.seconds, time.Now()); ok {
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
		t.epoch.From = csvfile.Since1970
	}
	if t.counts() {
		return t.epoch.From.Add(seconds(s)), nil
	}
	return t.opt.Start.Add(t.shift).Add(seconds(s)), nil
}

// counts reports whether numbers in the time column count from a date.
func (t *tableSource) counts() bool { return t.epoch.Dated() }

// seconds converts to a Duration, rounded to the nanosecond. The fraction is
// converted by itself, or Unix times would be off by up to 128 ns.
func seconds(s float64) time.Duration {
	whole, frac := math.Modf(s)
	return time.Duration(whole)*time.Second + time.Duration(math.Round(frac*1e9))
}

// keep returns text equal to s that does not hold on to the row s is part of.
func keep(old, s string) string {
	if old == s {
		return old
	}
	return strings.Clone(s)
}
