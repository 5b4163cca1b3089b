package source

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
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
	epoch    table.Epoch   // what numbers in the time column count
	found    bool          // by the name of the column or the size of the first one
	named    bool          // the column has no unit that is not known
	shift    time.Duration // of times of a tool with which the time column started again
	zero     time.Time     // time of the first row
	leap     time.Duration // of dates and times after a leap second, or after daylight saving time ended
	rises    rises
	grid     Grid
	even     evenRows
	nameless skipped       // rows whose tool is a word for missing
	doubted  bool          // a warning said that rows come at another rate
	stamp    time.Time     // that the row before states
	coarse   time.Duration // what stamps are whole numbers of, or the time between them, if rows repeat them; 0: they do not
	blocks   bool          // rows of a block have one stamp, although it is finer than rows
	repeats  int           // rows with this stamp
	cell     string        // of the state, in the row before
	still    skipped       // rows with the time of the one before, although stamps are fine

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
	t.epoch.Unit, t.found, t.named = 1, true, true
	if t.stamps, err = StampsOf(rec.TimeFormat); err != nil {
		return err
	}
	e, ok := timeUnits[rec.TimeUnit]
	days, isDays := table.DayEpochs[rec.TimeUnit]
	switch {
	case ok:
		t.epoch = e
	case isDays:
		t.epoch = days
	case rec.TimeUnit != "":
		return fmt.Errorf("`recording: time_unit`: %q: write s, ms, us, ns, min, h, labview (seconds since 1904), day (parts of a day), excel (days since 1900), matlab (days since the year 0) or julian (days)", rec.TimeUnit)
	case t.rec.time >= 0:
		t.epoch.Unit, t.named = UnitOfTime(t.rows.names()[t.rec.time])
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
		if t.err == io.EOF {
			t.end()
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
		if s != *f.to {
			*f.to = strings.Clone(s) // which does not hold on to the row
		}
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
	truth.State = state
	s, err := t.rows.text(t.rec.state)
	if s != t.cell {
		t.cell = strings.Clone(s)
		truth.State = wear.Stated(t.rows.names()[t.rec.state], t.cell)
	}
	return err
}

// seconds converts to a Duration, rounded to the nanosecond. The fraction is
// converted by itself, or Unix times would be off by up to 128 ns.
func seconds(s float64) time.Duration {
	whole, frac := math.Modf(s)
	return time.Duration(whole)*time.Second + time.Duration(math.Round(frac*1e9))
}
