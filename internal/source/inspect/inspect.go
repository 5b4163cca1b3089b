// Package inspect shows what is in a recording: its channels, their rates and
// statistics, and where samples are missing; and draws them.
//
// It reads a recording once, however long it is, in memory that depends on the
// number of its channels only: of each it keeps running statistics and an
// [envelope], which is what a plot shows. Of a long one it reads the beginning and
// pieces behind it.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Options says of a recording what it does not say itself.
type Options struct {
	Layout  *signal.Layout   // channels to look at, in their units and rates; nil: all that there is
	Columns signal.Recording // of the layout: how the recording is written
	Rate    float64          // samples per second where neither layout nor recording state it; 0 if not known
	Start   signal.Start     // when it began, where it does not state it
	All     bool             // read all of it, however long
	Tool    string           // column of the tool; empty: the one whose name says so best. A name that no column has stands for none
}

// Summary is what is in a recording.
type Summary struct {
	Path       string
	Tool       string           // after what the tool is named, in words, if that is the file
	Notes      []string         // what is odd about it
	Written    signal.Recording // of a table of text: how it is written, without columns
	Channels   []Channel
	Clock      *Clock // what a column of times says; nil if there is none
	Gaps       []gap  // samples that are missing in time, the first 1000
	GapCount   int
	Pieces     int       // that were read of a long recording, with its beginning; 0: all was read
	Sessions   int       // with a layout: recordings of one tool each; 0 without
	Start      time.Time // of the first sample; zero if it is not known, so that times are seconds from it
	Idle       []string  // columns of times or dates by their names, that are none or say nothing
	Unclear    string    // column of times that is not read, because day and month may change places; empty: none
	ToolColumn string    // that says which tool it is; empty: none
	Runs       []int64   // without a layout: rows in a row that name one tool there
	Err        error     // what ended the reading early; nil if all was read

	tools      tools
	timeFormat string // of dates in which day and month may change places
}

// Channel is one channel of a recording.
type Channel struct {
	track.Info
	stats
	Left     int64    // samples that were not read, about so many in a table of text; −1: more, and it is not known how many
	Words    []string // of text: the first different words
	More     bool     // of text: there are more than Words
	turns    int64    // of text: rows with another word than the row before
	word     string   // of the row before
	Envelope envelope
	Leak     table.Leak // whether it is a measurement
	Slower   string     // of a table: why it seems to be of another rate; empty: it does not
	Other    string     // why its rate differs from the others' rate, by its length; empty: it may be
}

// Duration returns how long the channel lasts, 0 if its rate is not known.
func (c *Channel) Duration() time.Duration {
	if c.Rate == 0 {
		return 0
	}
	return time.Duration(float64(c.Samples()) / c.Rate * float64(time.Second))
}

// Samples returns how many samples there are, with those that were not read as far as that is known.
func (c *Channel) Samples() int64 { return c.Count + max(c.Left, 0) }

// gap is where samples are missing in time.
type gap struct {
	At       int64 // samples before it
	Time     time.Time
	Duration time.Duration
}

const (
	maxGaps  = 1000
	maxWords = 8
	maxWidth = 10_000 // channels
)

// What is read of a long recording: that many values of the beginning, and of each of the pieces behind it; with a layout only so many of the beginning. The last piece goes
// to the end. Tests lower them.
var headValues, pieceValues, layoutValues int64 = 2 << 20, 1 << 17, 16 << 20

const (
	morePieces = 16
	lastPart   = 1. / 1024
)

// Inspect reads the recording at path. It returns an error if the recording
// cannot be opened; what is wrong further on is in Summary.Err.
func Inspect(ctx context.Context, path string, opt Options) (*Summary, error) {
	f, err := source.OpenTracks(path, opt.Columns)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if n := len(f.Tracks()); n > maxWidth {
		return nil, fmt.Errorf("inspect: %s: has %d columns, and a recording has at most %d: check that each row is a sample of all channels, and that the separator is right", path, n, maxWidth)
	}
	timeFormat, idle := opt.Columns.TimeFormat, []string(nil)
	if _, err := source.StampsOf(timeFormat); err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	for {
		s := &Summary{Path: path, Tool: toolOf(path, opt), timeFormat: timeFormat, Idle: idle}
		if opt.Layout != nil {
			return s, s.ofLayout(ctx, f, opt)
		}
		err := s.ofTracks(ctx, f, opt)
		switch c := s.Clock; {
		case errors.Is(s.Err, source.ErrOther):
		case timeFormat == "" && c != nil && c.unclear && c.stamps.Order() != "":
			timeFormat = c.stamps.Order() // the first dates can be read now
		case len(s.Idle) > len(idle) && s.mayTell():
			idle = s.Idle // another column says more
		case s.hasLonger():
			idle = append(idle, c.Column) // a slower column's
		default:
			return s, err
		}
	}
}

// toolOf says in words after what the tool of a recording is named, if it is the file.
func toolOf(path string, opt Options) string {
	name := source.Recording{Path: path}.Name()
	switch {
	case opt.Layout == nil:
		return fmt.Sprintf("%s, after the file's name, unless the layout names a column of tools", name)
	case opt.Columns.Tool == "":
		return fmt.Sprintf("%s, after the file's name; the layout has no tool column", name)
	}
	return ""
}

// ofTracks reads all that there is.
func (s *Summary) ofTracks(ctx context.Context, f track.File, opt Options) error {
	names := source.TrackNames(f.Tracks())
	for i, info := range f.Tracks() {
		info.Name, info.Rate = names[i], cmp.Or(info.Rate, opt.Rate)
		s.Channels = append(s.Channels, Channel{Info: info})
	}
	s.findTools(opt.Tool)
	s.begin(f.Tracks())
	for _, same := range sameLength(f.Tracks()) {
		if err := s.read(ctx, f, same, opt.All); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.Err = errors.Join(s.Err, err)
		}
	}
	if text, ok := f.(interface{ Written() signal.Recording }); ok {
		s.Written = text.Written()
		s.Written.Skip = opt.Columns.Skip // else found again in each recording
	}
	s.Notes = append(slices.Clone(f.Notes()), s.Notes...)
	s.fromClock(opt.Rate)
	s.findOther(f.Tracks())
	s.findSlower()
	s.noteDates()
	s.noteMissing()
	s.noteTools()
	s.noteQuality()
	return s.beginAt(opt.Start)
}

// findOther finds channels whose rate nothing says, and that are shorter than the longest one of their group: they are of another rate.
func (s *Summary) findOther(infos []track.Info) {
	longest := make(map[string]int)
	for i, info := range infos {
		if k, ok := longest[info.Group]; !info.Text && (!ok || info.Len > infos[k].Len) {
			longest[info.Group] = i
		}
	}
	for i, info := range infos {
		k := longest[info.Group]
		if c, most := &s.Channels[i], infos[k].Len; info.Rate == 0 && !info.Text && info.Len >= 0 && source.IsShort(info.Len, most) {
			c.Rate = 0
			c.Other = fmt.Sprintf("it has %d values and %q %d, so it is of another rate, which nothing says: name it in the layout with its `rate`", info.Len, s.Channels[k].Name, most)
		}
	}
}

// findSlower finds channels of a table that have cells without a value because they are of another rate: more than half of them, or with a column of times of their own.
func (s *Summary) findSlower() {
	var times *Channel // of the columns behind it
	for i := range s.Channels {
		c := &s.Channels[i]
		values := c.Count - c.Missing
		switch {
		case c.Text:
		case s.isPair(c) && c.Name != s.Clock.Column:
			times = c
		case NamesTime(c.Name):
			times = nil
		case times != nil && math.Abs(times.pace()/s.Clock.Step-1) > 0.02:
			c.Slower = fmt.Sprintf("its times are in %q, %.6g s apart, and those in %q are %.6g s apart: a table has one rate: make a file of it, with its times", times.Name, times.pace(), s.Clock.Column, s.Clock.Step)
		case values > 1 && 2*values <= c.Count:
			c.Slower = fmt.Sprintf("it has a value in %d rows of %d, so it is of another rate, which a table has not: make a file of it without the empty cells, or give --keep COLUMN", values, c.Count)
		}
	}
}

// isPair reports whether a column of numbers and the clock's both hold times, under names that differ in their number, as time1 and time2.
func (s *Summary) isPair(c *Channel) bool {
	if s.Clock == nil || s.Clock.Stamps || c.Text || c.Constant() {
		return false
	}
	name, _ := bareName(c.Name)
	other, _ := bareName(s.Clock.Column)
	return NamesTime(c.Name) && name == other
}

// pace returns the mean step of times.
func (c *Channel) pace() float64 { return (c.Max - c.Min) / float64(max(c.finite-1, 1)) }

// hasLonger reports whether another column of times has more of them than the clock.
func (s *Summary) hasLonger() bool {
	if s.Clock == nil {
		return false
	}
	clock := &s.Channels[s.Clock.channel]
	return slices.ContainsFunc(s.Channels, func(c Channel) bool {
		return s.isPair(&c) && !slices.Contains(s.Idle, c.Name) && c.finite > clock.finite+clock.finite/50
	})
}

// noteDates names columns that look like dates and are not read.
func (s *Summary) noteDates() {
	for i := range s.Channels {
		c := &s.Channels[i]
		if !c.Text || len(c.Words) == 0 || s.Clock != nil && (s.Clock.channel == i || s.Clock.date == i) || slices.ContainsFunc(c.Words, func(w string) bool { return !source.LooksLikeDate(w) }) {
			continue
		}
		remedy := "name it as `time` in the layout, with its `time_format` if it has two meanings"
		if s.Clock != nil {
			remedy = fmt.Sprintf("%q is taken for the time; if that is wrong, %s", s.Clock.Column, remedy)
		}
		s.Notes = append(s.Notes, fmt.Sprintf("column %q looks like dates or times, such as %q, and is not read: %s", c.Name, c.Words[0], remedy))
	}
}

// begin takes the start that the file states for its tracks.
func (s *Summary) begin(infos []track.Info) {
	for _, info := range infos {
		if at := info.Start; signal.HasClock(at) && (s.Start.IsZero() || at.Before(s.Start)) {
			s.Start = at
		}
	}
}

// beginAt takes the start of a recording that does not state it.
func (s *Summary) beginAt(start signal.Start) error {
	if start.IsZero() || signal.HasClock(s.Start) {
		return nil
	}
	if s.Start = start.At; start.FileTime {
		if slices.ContainsFunc(s.Channels, func(c Channel) bool { return c.Left < 0 }) {
			s.Start = time.Time{}
			s.Notes = append(s.Notes, "its length is not known as long as the rest is not read, so neither is its start: give --all")
			return nil
		}
		info, err := os.Stat(s.Path)
		if err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
		var longest time.Duration
		for i := range s.Channels {
			longest = max(longest, s.Channels[i].Duration())
		}
		if longest > 0 {
			s.Start = info.ModTime().Add(-longest)
		}
	}
	return nil
}

// ofLayout reads the channels of the layout and finds the gaps that a gateway would find.
func (s *Summary) ofLayout(ctx context.Context, f track.File, opt Options) error {
	rec := source.Recording{Path: s.Path, Layout: opt.Layout, Columns: opt.Columns, Warn: func(text string) { s.Notes = append(s.Notes, strings.TrimPrefix(text, s.Path+": ")) }}
	src, err := rec.Open()
	if err != nil {
		return err
	}
	defer source.Close(src)
	for _, ch := range opt.Layout.Channels() {
		s.Channels = append(s.Channels, Channel{Info: track.Info{Name: ch.Name, Unit: ch.Unit, Rate: ch.Rate}})
	}
	if err := s.follow(ctx, src, opt.All); err != nil {
		return err
	}
	s.noteMissing()
	s.Notes = append(slices.Clone(f.Notes()), slices.DeleteFunc(s.Notes, func(note string) bool { return slices.Contains(f.Notes(), note) })...)
	if signal.HasClock(s.Start) {
		return nil
	}
	first := s.Start
	if err := s.beginAt(opt.Start); err != nil || !signal.HasClock(s.Start) {
		return err
	}
	for i := range s.Gaps {
		s.Gaps[i].Time = s.Gaps[i].Time.Add(s.Start.Sub(first))
	}
	return nil
}

// follow reads a source: its beginning, if it is long and not all is wanted.
func (s *Summary) follow(ctx context.Context, src source.Source, all bool) error {
	next := make([]int64, len(src.Layout().Groups()))
	var session, read, values int64
	for all || values < layoutValues {
		b, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.Err = err
			return nil
		}
		if s.Sessions == 0 {
			s.Start = b.Time
		}
		if s.Sessions == 0 || b.Session != session {
			clear(next)
			session = b.Session
			s.Sessions++
		}
		group := src.Layout().Groups()[b.Group]
		if lost := b.First - next[b.Group]; lost > 0 {
			d := time.Duration(float64(lost) / group.Rate * float64(time.Second))
			s.gap(gap{At: read, Time: b.Time.Add(-d), Duration: d})
		}
		next[b.Group] = b.First + int64(b.Len())
		if b.Group == 0 {
			read += int64(b.Len())
		}
		for k, i := range group.Channels {
			for _, v := range b.Samples[k] {
				s.Channels[i].take(float64(v))
			}
		}
		values += int64(b.Len() * len(group.Channels))
	}
	s.Pieces = 1
	for i := range s.Channels {
		s.Channels[i].Left = -1
	}
	return nil
}

func (s *Summary) gap(g gap) {
	s.GapCount++
	if len(s.Gaps) < maxGaps {
		s.Gaps = append(s.Gaps, g)
	}
}

// sameLength divides tracks into those that can be read side by side to the end
// of each.
func sameLength(infos []track.Info) (sets [][]int) {
	seen := make(map[int64]int)
	for i, info := range infos {
		k, ok := seen[info.Len]
		if !ok {
			k = len(sets)
			seen[info.Len] = k
			sets = append(sets, nil)
		}
		sets[k] = append(sets[k], i)
	}
	return sets
}

// read reads some of the channels, to their end or in pieces.
func (s *Summary) read(ctx context.Context, f track.File, set []int, all bool) error {
	r, err := f.Open(set)
	if err != nil {
		return err
	}
	p := &pieces{s: s, set: set, clock: s.clockOf(set), left: headValues, r: r}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		values, n, err := r.Read(1 << 12)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.take(values, n, set, p.clock)
		if p.left -= int64(n * len(set)); p.left > 0 || all || p.last {
			continue
		}
		if more, err := p.next(); err != nil || !more {
			return err
		}
	}
}

// take takes values of channels, side by side.
func (s *Summary) take(values []track.Values, n int, set []int, clock *Clock) {
	s.tools.changed = s.tools.changed[:0]
	if at := slices.Index(set, s.tools.column); at >= 0 {
		s.followTools(values[at])
	}
	for k, i := range set {
		c := &s.Channels[i]
		if c.Text {
			c.words(values[k].Texts)
		}
		if clock != nil && clock.channel == i {
			var dates track.Values
			if at := slices.Index(set, clock.date); at >= 0 {
				dates = values[at]
			}
			clock.add(values[k], dates, c.Samples(), s.tools.changed)
		}
		for row, v := range values[k].Numbers {
			c.take(v)
			c.Leak.Add(v, row < len(s.tools.changed) && s.tools.changed[row])
		}
		if c.Text {
			c.Count += int64(n)
		}
	}
}

// take takes a value.
func (c *Channel) take(v float64) {
	c.add(v)
	c.Envelope.add(v)
}

// pieces are what is read of channels that are long.
type pieces struct {
	s     *Summary
	set   []int
	clock *Clock
	r     track.Reader
	left  int64 // values until the end of this one
	tried int   // shares of the file to go on at
	read  int   // pieces behind the beginning
	last  bool  // it goes on to the end
}

// next goes on with the next piece. It returns false if there is none.
func (p *pieces) next() (bool, error) {
	p.left = pieceValues
	j, ok := p.r.(track.Jumper)
	more := int64(-1)
	for ok && p.tried < morePieces {
		share := float64(p.tried+1) / morePieces
		if p.tried++; p.tried == morePieces {
			share, p.last = 1-lastPart, true
			if p.clock != nil {
				p.clock.ended = true
			}
		}
		var err error
		if more, ok, err = j.Jump(share); err != nil {
			return false, err
		}
		if ok && more > 0 {
			p.read++
			p.leave(more)
			return true, nil
		}
	}
	if ok {
		return true, nil // it is there already
	}
	if c := &p.s.Channels[p.set[0]]; c.Len >= 0 {
		more = c.Len - c.Count
	}
	if more != 0 {
		p.leave(more)
	}
	return false, nil
}

// leave notes samples that are left out.
func (p *pieces) leave(n int64) {
	p.s.Pieces = max(p.s.Pieces, p.read+1)
	if p.clock != nil {
		p.clock.jump()
	}
	for _, i := range p.set {
		c := &p.s.Channels[i]
		c.Left += n
		c.Envelope.skip(n)
	}
}

// words notes the first words of a column of text.
func (c *Channel) words(texts []string) {
	for _, w := range texts {
		if w != c.word {
			c.turns, c.word = c.turns+1, strings.Clone(w)
		}
		switch {
		case w == "":
			c.Missing++
		case slices.Contains(c.Words, w):
		case len(c.Words) < maxWords:
			c.Words = append(c.Words, strings.Clone(w))
		default:
			c.More = true
		}
	}
}

// stats are running statistics of numbers. Mean, Deviation and RMS are of the
// numbers that are finite.
type stats struct {
	Count    int64 // values of any kind
	Missing  int64 // values that are missing
	Infinite int64
	Min, Max float64 // NaN if there is no finite number

	odd     oddNumbers
	finite  int64
	mean    float64
	squares float64 // sum of squared deviations from the mean (Welford 1962)
}

func (s *stats) add(v float64) {
	if s.Count++; s.Count == 1 {
		s.Min, s.Max = math.NaN(), math.NaN()
	}
	switch {
	case v != v:
		s.Missing++
		return
	case math.IsInf(v, 0):
		s.Infinite++
		return
	}
	s.finite++
	s.odd.add(v)
	s.Min, s.Max = fmin(s.Min, v), -fmin(-s.Max, -v)
	d := v - s.mean
	s.mean += d / float64(s.finite)
	s.squares += d * (v - s.mean)
}

// Mean returns the arithmetic mean, NaN of no number.
func (s *stats) Mean() float64 {
	if s.finite == 0 {
		return math.NaN()
	}
	return s.mean
}

// Deviation returns the standard deviation, of the numbers and not of a
// population they are drawn from; NaN of no number.
func (s *stats) Deviation() float64 {
	if s.finite == 0 {
		return math.NaN()
	}
	return math.Sqrt(s.squares / float64(s.finite))
}

// RMS returns the root of the mean square, NaN of no number.
func (s *stats) RMS() float64 { return math.Hypot(s.Mean(), s.Deviation()) }

// Constant reports whether all numbers are the same and there are several.
func (s *stats) Constant() bool { return s.finite > 1 && s.Min == s.Max }

// Binary reports whether all numbers are 0 or 1, and there are both.
func (s *stats) Binary() bool {
	return s.Min == 0 && s.Max == 1 && s.Infinite == 0 && math.Abs(s.RMS()*s.RMS()-s.mean) < 1e-9
}

// words8 lists the words of a column of text.
func (c *Channel) words8() string {
	text := fmt.Sprintf("%q", c.Words)
	if c.More {
		text += " and more"
	}
	return text
}
