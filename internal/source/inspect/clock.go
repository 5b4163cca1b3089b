package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Clock is what a column of times says of a recording for which there is no
// layout that would name it.
type Clock struct {
	Column    string
	Date      string    // column of dates, if Column has the time of the day; empty: none
	Step      float64   // between rows, in seconds
	Unit      float64   // seconds that 1 in the column stands for; 0 if neither the column nor its size says it, and it is taken for 1
	Counts    string    // what the size of the numbers says that they count, in words; empty: nothing
	Format    string    // `time_format` of dates whose days above 12 show which is the day; empty: no such dates
	Days      string    // word of table.DayEpochs for what they count; empty: no days
	Stamps    bool      // the column holds dates
	Start     time.Time // of the first row; zero if it is only counted from
	Backwards int       // rows at which time goes back
	Still     int       // rows at which it stands still
	Restarts  int       // tools with which it begins again
	Jitter    float64   // by how many steps a row is off an even grid, at most
	Doubt     string    // why the step is not to be trusted; empty: it is
	ByRate    bool      // there is no doubt if a person says the rate

	stamps  source.Stamps
	unit    string      // behind the column's name, that is not known; empty: none
	unclear bool        // of dates that were read as nothing, day and month may change places
	epoch   table.Epoch // of Unit, if that is not 0
	number0 float64     // first number
	digits  clockDigits
	channel int
	date    int // channel of Date, −1: none
	last    tick
	seen    bool
	rows    int64
	first   []tick // until the step is known
	grid    source.Grid
	fit     line    // of the times of all rows by their places in the grid
	index   int64   // of the last row that is in it
	at      float64 // of that row, in seconds behind zero
	stated  float64 // time of the row before, behind zero
	zero    float64 // time of the first row
	coarse  float64 // seconds between stamps that repeat; 0: they do not
	late    []hole  // gaps, the first maxGaps
	holes   int     // how many there are
	lost    int64   // rows that are missing in them
	early   float64 // periods by which rows came early behind gaps, as of a logger that is late and catches up
	longest int64   // rows that are missing in one of them, at most
	usual   float64 // median of the first steps forwards
	changes []string
	back    time.Duration // by which later times count more, since daylight saving time ended
	period  float64       // the last step forwards that was not much longer than the one before
	jumped  bool          // the next row is of another piece
	pieces  int           // behind the first one
	ended   bool          // the last row of them is the recording's
	head    tick          // last row of the first piece, if there are several
}

// tick is the time of a row.
type tick struct {
	seconds float64
	row     int64
	at      time.Time // of a local date and time, zero of others
}

// hole is where rows are missing: how many before which one.
type hole struct{ at, rows int64 }

// clockSample is how many rows say how far apart rows are.
const clockSample = 1000

// clockNames are the names of columns that are taken for times, as bareName has them.
var clockNames = []string{"time", "timestamp", "zeit", "rawtime", "datetime", "datumzeit", "datumuhrzeit", "zeitstempel", "uhrzeit", "messzeit", "seconds", "sekunden", "zeitpunkt", "xvalue", "elapsedtime", "uptime", "zeit1standardmessrate", "time1defaultsamplerate", "abstime", "sampletime", "ts", "epoch", "unixtime", "utc",
	"localtime", "timestring", "temps", "heure", "horodatage", "tiempo", "hora", "fechahora", "tempo", "ora", "dataora", "tijd", "tijdstip"}

// dateNames are likewise the names of columns of dates.
var dateNames = []string{"date", "datum", "day", "tag", "fecha", "data"}

// bareName returns a name as source.PlainName does, without a number at its end, and whether a unit of time
// behind it was left out, as in time_ms. T_min is the least temperature.
func bareName(column string) (name string, unit bool) {
	name, word := source.SplitTimeUnit(column)
	name = name[strings.LastIndexByte(name, '/')+1:] // behind a group, as in TDMS
	return strings.TrimRight(source.PlainName(name), "0123456789"), word != ""
}

// NamesTime reports whether the name of a column says that it holds times. A T with a
// number or with a unit that is not one of time, such as T1 and T [°C], is a temperature.
func NamesTime(column string) bool {
	name, unit := bareName(column)
	if name == "t" && (unit || source.PlainName(column) == "t") {
		_, ok := source.UnitOfTime(column)
		return ok
	}
	if seconds, _ := source.UnitOfTime(name); seconds != 1 { // millis
		return true
	}
	return slices.Contains(clockNames, name)
}

// tells reports whether a column may be of times.
func (s *Summary) tells(c *Channel) bool {
	return NamesTime(c.Name) && !slices.Contains(s.Idle, c.Name)
}

// mayTell reports whether a column may be of times.
func (s *Summary) mayTell() bool {
	return slices.ContainsFunc(s.Channels, func(c Channel) bool { return s.tells(&c) })
}

// clockOf returns a clock for the first of the channels whose name says that it
// holds times, nil if there is none.
func (s *Summary) clockOf(set []int) *Clock {
	if s.Clock != nil || s.Sessions > 0 {
		return nil
	}
	at := -1
	for _, i := range set {
		if c := &s.Channels[i]; s.tells(c) && (at < 0 || c.Text && !s.Channels[at].Text) { // numbers say less than dates
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	column := s.Channels[at].Name
	s.Clock = &Clock{Column: column, channel: at, date: -1, Stamps: s.Channels[at].Text, Format: s.timeFormat}
	s.Clock.stamps, _ = source.StampsOf(s.timeFormat) // of its orders
	seconds, known := source.UnitOfTime(column)
	if _, unit := source.SplitTimeUnit(column); unit != "" && known || seconds != 1 {
		s.Clock.Unit = seconds
	} else if !known {
		s.Clock.unit = unit
	}
	for _, j := range set {
		if name, _ := bareName(s.Channels[j].Name); s.Channels[j].Text && slices.Contains(dateNames, name) && !slices.Contains(s.Idle, s.Channels[j].Name) {
			s.Clock.Date, s.Clock.date = s.Channels[j].Name, j
		}
	}
	return s.Clock
}

// add takes the times of rows from number at on, and their dates if there are any.
func (c *Clock) add(v, dates track.Values, at int64, changed []bool) {
	for i, text := range v.Texts {
		if c.date >= 0 && i < len(dates.Texts) {
			text = dates.Texts[i] + " " + text
		}
		t, hasZone, ok := c.stamps.Parse(text)
		if v.Texts[i] == "" {
			c.without(at + int64(i))
			continue
		}
		if !ok {
			c.unclear = c.unclear || source.IsSlashed(text)
			if s, ok := source.SecondsOf(text); ok {
				c.Stamps, c.Unit = false, 1
				c.number(s, at+int64(i), i < len(changed) && changed[i])
			}
			continue
		}
		now := tick{seconds: float64(t.Unix()) + float64(t.Nanosecond())/1e9, row: at + int64(i)}
		if !hasZone {
			now.at = t
		}
		if !c.seen {
			c.Start = t
		}
		c.tick(now)
	}
	for i, x := range v.Numbers {
		if x == x && !math.IsInf(x, 0) {
			c.number(x, at+int64(i), i < len(changed) && changed[i])
		} else {
			c.without(at + int64(i))
		}
	}
}

// without takes a row without a time, which is placed behind the row before.
func (c *Clock) without(row int64) {
	if c.seen && !c.jumped {
		c.tick(tick{seconds: c.last.seconds, row: row, at: c.last.at})
	}
}

// number takes the time of a row that is a number. If the tool changes, it may begin again.
func (c *Clock) number(x float64, row int64, changed bool) {
	if !c.seen {
		c.begin(x)
	}
	c.digits.add(x)
	now := tick{seconds: c.seconds(x), row: row}
	if changed && now.seconds < c.last.seconds-2*max(c.Step, c.period) && !signal.HasClock(c.Start) { // no jitter
		c.Restarts++
		c.jump()
		now.seconds = c.seconds(x) // which may be known now
		c.last.seconds = now.seconds
		if c.Step == 0 {
			c.first, c.seen, c.pieces = c.first[:0], false, 0 // it was too short to say anything
		}
	}
	c.tick(now)
}

// seconds returns what a number says.
func (c *Clock) seconds(x float64) float64 {
	if c.Unit == 0 {
		return x
	}
	return c.epoch.Seconds(x)
}

// begin finds out what numbers count by the first one.
func (c *Clock) begin(x float64) {
	c.number0 = x
	if c.Unit != 0 {
		if c.epoch.Unit = c.Unit; x*c.Unit >= 1e9 && x*c.Unit < 1<<33 {
			c.epoch.From = table.Since1970
			c.startAt(x)
		}
		return
	}
	if e, ok := table.EpochOf(x, time.Now()); ok {
		c.epoch, c.Unit, c.Counts = e, e.Unit, e.Name
		c.startAt(x)
	}
}

// startAt sets the start to what a number says, to the microsecond.
func (c *Clock) startAt(x float64) {
	whole, part := math.Modf(c.epoch.Seconds(x))
	c.Start = c.epoch.From.Add(time.Duration(whole)*time.Second + time.Duration(part*1e6)*time.Microsecond)
}

// settleDays finds out whether numbers of which nothing says what they count are days.
func (c *Clock) settleDays() {
	word := table.DaysOf(c.number0, c.Step)
	if c.Unit != 0 || c.Stamps || word == "" {
		return
	}
	c.epoch, c.Days = table.DayEpochs[word], word
	c.Unit, c.Counts = c.epoch.Unit, c.epoch.Name
	if c.epoch.Dated() {
		c.startAt(c.number0)
	}
	for i := range c.first {
		c.first[i].seconds = c.epoch.Seconds(c.first[i].seconds)
	}
	c.last.seconds = c.epoch.Seconds(c.last.seconds)
	c.Step, c.coarse, c.period = c.Step*c.Unit, c.coarse*c.Unit, c.period*c.Unit
}

// jump takes note that the next rows are of another piece of the recording.
func (c *Clock) jump() {
	if c.jumped = true; c.pieces == 0 {
		if c.Step == 0 {
			c.settle()
		}
		c.head = c.last
	}
	c.pieces++
}

func (c *Clock) tick(now tick) {
	before := c.last
	if c.seen && !now.at.IsZero() {
		now.at, now.seconds = now.at.Add(c.back), now.seconds+c.back.Seconds()
		if c.wentBack(before, now) {
			c.back, now.at, now.seconds = c.back+time.Hour, now.at.Add(time.Hour), now.seconds+3600
		}
	}
	d := now.seconds - before.seconds
	c.last = now
	c.rows++
	if !c.seen {
		c.seen = true
	} else if c.jumped && d >= 0 {
		c.jumped = false
		c.grid.Begin((now.seconds - c.zero) / max(c.Step, 1e-12))
		return
	} else {
		c.checkLocal(before, now)
		switch {
		case d < 0:
			c.Backwards++
		case d == 0:
			c.Still++
		case c.period == 0 || d <= 1.5*c.period:
			c.period = d
		}
	}
	if c.Step == 0 {
		if c.first = append(c.first, now); len(c.first) == clockSample {
			c.settle()
		}
		return
	}
	c.follow(now)
}

// wentBack reports whether local time repeats an hour as it does when daylight saving time ends, and notes it.
func (c *Clock) wentBack(before, now tick) bool {
	if before.at.IsZero() || c.period == 0 || c.jumped || !source.ClockWentBack(now.at.Sub(before.at), time.Duration(c.period*float64(time.Second))) {
		return false
	}
	c.changes = append(c.changes, fmt.Sprintf("column %q: from row %d, %s, to row %d, %s, time goes back by about an hour: it seems that daylight saving time ended, when local time repeats an hour: later times count an hour more; record UTC, or local time with its offset",
		c.Column, now.row, before.at.Format(time.DateTime), now.row+1, now.at.Format(time.DateTime)))
	return true
}

// checkLocal notes where local time jumps as it does when daylight saving time begins or
// ends.
func (c *Clock) checkLocal(before, now tick) {
	if before.at.IsZero() || now.at.IsZero() || c.period == 0 || len(c.changes) > 10 {
		return
	}
	if !source.ClockWentOn(before.at, now.at, time.Duration(c.period*float64(time.Second))) {
		return
	}
	c.changes = append(c.changes, fmt.Sprintf("column %q: from row %d, %s, to row %d, %s, an hour is missing: it seems that daylight saving time began, when local time leaves out an hour; record UTC, or local time with its offset",
		c.Column, now.row, before.at.Format(time.DateTime), now.row+1, now.at.Format(time.DateTime)))
}

// finish finds the step by all rows.
func (c *Clock) finish() {
	if c.Step == 0 {
		c.settle()
	}
	if c.Step == 0 || c.fit.n < 3 {
		return
	}
	step := c.fit.slope()
	if c.mixed() && c.pieces == 0 {
		step = (c.last.seconds - c.zero) / float64(c.rows-1)
	}
	if mostLate := float64(c.longest) * c.usual; c.catchesUp() && math.Abs(step/c.usual-1)*(c.last.seconds-c.zero) < 2.1*mostLate { // the first row or the last one may be late
		step = c.usual
	}
	if c.mixed() || c.Backwards == 0 && int64(c.holes)*50 < c.rows && math.Abs(step/c.Step-1) < 0.01 { // of many rows that are lost some are taken for jitter
		c.Step = step
	}
	part := (0.3 + min(c.Jitter, 1)) / float64(c.rows)
	if c.coarse > 0 {
		part = max(part, 0.3*c.coarse/max(c.at, c.coarse))
	}
	if c.mixed() {
		part = max(3/float64(c.rows), c.usual/(c.last.seconds-c.zero)) // the first and the last row may be a step or more off
	}
	if short, fast := nice(c.Step, part), nice(1/c.Step, part); c.Step > 1 || digits(short)+1 < digits(fast) {
		c.Step = short
	} else {
		c.Step = 1 / fast
	}
	if c.pieces == 0 {
		c.head = c.last
	}
	if c.Doubt = cmp.Or(c.doubtOfNumbers(), c.Doubt); c.Doubt != "" {
		return
	}
	if minute := c.Step * 86400; c.Unit == 0 && !c.Stamps && c.number0 > 36526 && c.number0 < 73050 && (math.Abs(minute/60-1) < 1e-3 || math.Abs(minute/30-1) < 1e-3) {
		c.Doubt = fmt.Sprintf("rows are %.6g apart: it may count seconds, or days as Excel does, %.0f s apart", c.Step, minute)
		return
	}
	if !c.mixed() && c.rows >= 100 && int64(c.holes)*20 > c.rows && c.lost > c.rows {
		c.Doubt = fmt.Sprintf("rows seem to come in bursts: of %d rows %d have a gap before them, if rows are %.6g s apart as most are", c.rows, c.holes, c.Step)
		return
	}
	span := c.head.seconds - c.zero
	if rows := float64(c.index+1) * c.Step; c.Disorder() == "" && math.Abs(rows/(span+c.Step)-1) > 0.01 && math.Abs(rows-span) > 2*c.Step+c.coarse {
		c.Doubt = fmt.Sprintf("from the first row to the last it says %.6g s, and rows that are %.6g s apart last %.6g s", span, c.Step, rows)
	}
}

// doubtOfNumbers says why numbers in the column may not be what they seem: they count an unknown unit, or are times of the day such as 060000; nothing if
// they may be.
func (c *Clock) doubtOfNumbers() string {
	switch {
	case c.Stamps || c.Unit != 0:
	case c.unit != "":
		return fmt.Sprintf("its unit, %q, is not known", c.unit)
	case c.number0 >= 0 && c.number0 <= 1000*c.Step && c.last.seconds < 1 && table.PartsOfDay(c.Step):
		return fmt.Sprintf("rows are %.6g apart: it may count seconds, or parts of a day as spreadsheets do, %.6g s apart", c.Step, c.Step*86400)
	case c.digits.clock && c.digits.last-c.digits.first >= 100 && c.digits.last < 240000, c.digits.clock && c.digits.first > 19000101000000 && c.digits.last < 21000101000000:
		return "its numbers seem to be times written as hhmmss, with a date or without, which are not read"
	}
	return ""
}

// clockDigits follows whether numbers may be written as hhmmss: the last two digits are below 60, and so are the two before them.
type clockDigits struct {
	first, last float64
	any, clock  bool
}

func (d *clockDigits) add(x float64) {
	n := math.Trunc(x)
	if !d.any {
		d.any, d.clock, d.first = true, true, n
	}
	d.last = n
	d.clock = d.clock && n >= 0 && math.Mod(n, 100) < 60 && math.Mod(math.Trunc(n/100), 100) < 60
}

// nice returns the rate with the fewest digits that differs by at most a part of it.
func nice(rate, part float64) float64 {
	for digits := 1; digits < 10; digits++ {
		scale := math.Pow(10, float64(digits)-1-math.Floor(math.Log10(rate)))
		if r := math.Round(rate*scale) / scale; math.Abs(r/rate-1) <= part {
			return r
		}
	}
	return rate
}

// digits returns how many digits a number of [nice] has.
func digits(v float64) int {
	text := strconv.FormatFloat(v, 'e', -1, 64)
	return strings.IndexByte(text, 'e')
}

// Disorder says why rows cannot be placed by their times, nothing if they can: each is later than the one before it. Of fifty rows one may have
// the same time, and all may where stamps are coarse.
func (c *Clock) Disorder() string {
	switch {
	case c.Backwards > 0, !c.Coarse() && int64(c.Still)*50 >= c.rows+50:
		return fmt.Sprintf("time goes back or stands still at %d rows", c.Backwards+c.Still)
	case c.catchesUp():
		return fmt.Sprintf("rows come late and then at once, at %d places", c.holes)
	}
	return ""
}

// Coarse reports whether rows have the same time because stamps are coarser than the time between rows.
func (c *Clock) Coarse() bool { return c.coarse > 1.5*c.Step }

// fromClock sets rates and gaps by the clock. A rate that is stated stands.
func (s *Summary) fromClock(stated float64) {
	c := s.Clock
	if c == nil {
		return
	}
	if c.date >= 0 && !slices.ContainsFunc(s.Channels[c.date].Words, source.LooksLikeDate) { // a tag
		s.Clock, s.Idle = nil, append(slices.Clone(s.Idle), c.Date)
		return
	}
	if c.unclear && c.stamps.Order() == "" {
		s.Unclear = c.Column
	}
	if c.finish(); c.Step == 0 {
		s.Clock, s.Idle = nil, append(slices.Clone(s.Idle), c.Column) // constant, or not in order: no time
		return
	}
	s.Notes = append(s.Notes, c.changes...)
	if c.Doubt != "" && (stated == 0 || !c.ByRate) {
		s.Notes = append(s.Notes, fmt.Sprintf("column %q: %s: give --rate", c.Column, c.Doubt))
	}
	if signal.HasClock(c.Start) {
		s.Start = c.Start
	}
	if !c.catchesUp() {
		for _, l := range c.late {
			s.gap(gap{At: l.at, Duration: time.Duration(math.Round(float64(l.rows) * c.Step * 1e9))})
		}
		s.GapCount += c.holes - len(c.late)
	}
	if c.ended && c.pieces > 0 && c.Backwards == 0 {
		n := int64(math.Round((c.last.seconds-c.zero)/c.Step)) + 1
		for i, rows := range s.Channels {
			if rows.Samples() == s.Channels[c.channel].Samples() && i != c.channel {
				s.Channels[i].Left = max(n-rows.Count, 0)
			}
		}
		s.Channels[c.channel].Left = max(n-s.Channels[c.channel].Count, 0)
	}
	if stated != 0 {
		return
	}
	for i := range s.Channels {
		if ch := &s.Channels[i]; ch.Rate == 0 && ch.Count == s.Channels[c.channel].Count {
			ch.Rate = 1 / c.Step
		}
	}
}
