// Package inspect shows what is in a recording: its channels, their rates and
// statistics, and where samples are missing; and draws them.
//
// It reads a recording once, however long it is, in memory that depends on the
// number of its channels only: of each it keeps running statistics and an
// [envelope], which is what a plot shows.
package inspect

import (
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
	"github.com/flank-tcm/flank/pkg/signal"
)

// Options says of a recording what it does not say itself.
type Options struct {
	Layout  *signal.Layout   // channels to look at, in their units and rates; nil: all that there is
	Columns signal.Recording // of the layout: how the recording is written
	Rate    float64          // samples per second where neither layout nor recording state it; 0 if not known
	Start   source.Start     // when it began, where it does not state it
}

// Summary is what is in a recording.
type Summary struct {
	Path     string
	Tool     string   // after what the tool is named, in words, if that is the file
	Notes    []string // what is odd about it
	Channels []Channel
	Clock    *Clock // what a column of times says; nil if there is none
	Gaps     []gap  // samples that are missing in time, the first 1000
	GapCount int
	Sessions int       // with a layout: recordings of one tool each; 0 without
	Start    time.Time // of the first sample; zero if it is not known, so that times are seconds from it
	Err      error     // what ended the reading early; nil if all was read
}

// Channel is one channel of a recording.
type Channel struct {
	track.Info
	Stats
	Words    []string // of text: the first different words
	More     bool     // of text: there are more than Words
	Envelope envelope
}

// Duration returns how long the channel lasts, 0 if its rate is not known.
func (c *Channel) Duration() time.Duration {
	if c.Rate == 0 {
		return 0
	}
	return time.Duration(float64(c.Count) / c.Rate * float64(time.Second))
}

// gap is where samples are missing in time.
type gap struct {
	At       int64 // samples before it
	Time     time.Time
	Duration time.Duration
}

const (
	maxGaps  = 1000
	maxWords = 8
)

// Inspect reads the recording at path. It returns an error if the recording
// cannot be opened; what is wrong further on is in Summary.Err.
func Inspect(ctx context.Context, path string, opt Options) (*Summary, error) {
	f, err := source.OpenTracks(path, opt.Columns)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &Summary{Path: path, Tool: toolOf(path, opt)}
	var gains []signal.Origin
	indices := make([]int, 0)
	if opt.Layout != nil {
		if indices, gains, err = s.ofLayout(ctx, f, opt); err != nil {
			return nil, err
		}
	} else {
		for i, info := range f.Tracks() {
			if info.Rate == 0 {
				info.Rate = opt.Rate
			}
			s.Channels = append(s.Channels, Channel{Info: info})
			indices, gains = append(indices, i), append(gains, signal.Origin{Gain: 1})
		}
		s.names()
	}
	s.begin(f.Tracks())
	for _, same := range sameLength(f.Tracks(), indices) {
		if err := s.read(ctx, f, indices, gains, same); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			s.Err = errors.Join(s.Err, err)
		}
	}
	s.Notes = slices.DeleteFunc(s.Notes, func(note string) bool { return slices.Contains(f.Notes(), note) }) // it was read twice
	s.Notes = append(slices.Clone(f.Notes()), s.Notes...)
	if opt.Layout == nil {
		s.fromClock(opt.Rate)
		return s, s.beginAt(opt.Start)
	}
	return s, nil
}

// begin takes the start that the file states for its tracks.
func (s *Summary) begin(infos []track.Info) {
	for _, info := range infos {
		if at := info.Start; signal.HasClock(at) && (s.Start.IsZero() || at.Before(s.Start)) {
			s.Start = at
		}
	}
}

// beginAt takes the start of a recording that does not state it, for want of a layout.
func (s *Summary) beginAt(start source.Start) error {
	if start.IsZero() || signal.HasClock(s.Start) {
		return nil
	}
	if s.Start = start.At; start.FileTime {
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

// names distinguishes channels of one name by their groups.
func (s *Summary) names() {
	count := make(map[string]int)
	for _, c := range s.Channels {
		count[c.Name]++
	}
	for i := range s.Channels {
		if c := &s.Channels[i]; count[c.Name] > 1 {
			c.Name = c.Path()
		}
	}
}

// ofLayout lists the channels of the layout and finds the gaps that a gateway
// would find.
func (s *Summary) ofLayout(ctx context.Context, f track.File, opt Options) (indices []int, gains []signal.Origin, err error) {
	rec := source.Recording{Path: s.Path, Layout: opt.Layout, Columns: opt.Columns, Start: opt.Start, Warn: func(text string) { s.Notes = append(s.Notes, strings.TrimPrefix(text, s.Path+": ")) }}
	src, err := rec.Open()
	if err != nil {
		return nil, nil, err
	}
	if c, ok := src.(io.Closer); ok {
		defer c.Close()
	}
	infos := f.Tracks()
	for _, ch := range opt.Layout.Channels() {
		o := opt.Columns.Origin(ch.Name)
		for _, i := range source.FindTracks(o.From, infos) {
			info := infos[i]
			if info.Text {
				continue
			}
			name := ch.Name
			if info.Group != "" && slices.ContainsFunc(infos, func(other track.Info) bool { return other.Name == info.Name && other.Group != info.Group }) {
				name = info.Group + "/" + name
			}
			info.Name, info.Unit, info.Rate = name, ch.Unit, ch.Rate
			s.Channels = append(s.Channels, Channel{Info: info})
			indices, gains = append(indices, i), append(gains, o)
		}
	}
	return indices, gains, s.sourceGaps(ctx, src)
}

// sourceGaps finds the gaps of a source.
func (s *Summary) sourceGaps(ctx context.Context, src source.Source) error {
	next := make([]int64, len(src.Layout().Groups()))
	session := int64(-1)
	var read int64
	for {
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
		if s.Sessions == 0 && signal.HasClock(b.Time) {
			s.Start = b.Time
		}
		if s.Sessions == 0 || b.Session != session {
			clear(next)
			session = b.Session
			s.Sessions++
		}
		rate := src.Layout().Groups()[b.Group].Rate
		if lost := b.First - next[b.Group]; lost > 0 {
			d := time.Duration(float64(lost) / rate * float64(time.Second))
			s.gap(gap{At: read, Time: b.Time.Add(-d), Duration: d})
		}
		next[b.Group] = b.First + int64(b.Len())
		if b.Group == 0 {
			read += int64(b.Len())
		}
	}
}

func (s *Summary) gap(g gap) {
	s.GapCount++
	if len(s.Gaps) < maxGaps {
		s.Gaps = append(s.Gaps, g)
	}
}

// sameLength divides tracks into those that can be read side by side to the end
// of each. It returns positions in indices.
func sameLength(infos []track.Info, indices []int) (sets [][]int) {
	seen := make(map[int64]int)
	for i, t := range indices {
		n := infos[t].Len
		k, ok := seen[n]
		if !ok {
			k = len(sets)
			seen[n] = k
			sets = append(sets, nil)
		}
		sets[k] = append(sets[k], i)
	}
	return sets
}

// read reads some of the channels to their end.
func (s *Summary) read(ctx context.Context, f track.File, indices []int, gains []signal.Origin, set []int) error {
	var tracks []int
	for _, i := range set {
		tracks = append(tracks, indices[i])
	}
	r, err := f.Open(tracks)
	if err != nil {
		return err
	}
	clock := s.clockOf(set)
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
				clock.add(values[k], dates, c.Count)
			}
			for _, v := range values[k].Numbers {
				v = gains[i].Gain*v + gains[i].Offset
				c.add(v)
				c.Envelope.add(v)
			}
			if c.Text {
				c.Count += int64(n)
			}
		}
	}
}

// words notes the first words of a column of text.
func (c *Channel) words(texts []string) {
	for _, w := range texts {
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

// Stats are running statistics of numbers. Mean, Deviation and RMS are of the
// numbers that are finite.
type Stats struct {
	Count    int64 // values of any kind
	Missing  int64 // values that are missing
	Infinite int64
	Min, Max float64 // NaN if there is no finite number

	finite  int64
	mean    float64
	squares float64 // sum of squared deviations from the mean (Welford 1962)
}

func (s *Stats) add(v float64) {
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
	if s.finite == 1 || v < s.Min {
		s.Min = v
	}
	if s.finite == 1 || v > s.Max {
		s.Max = v
	}
	d := v - s.mean
	s.mean += d / float64(s.finite)
	s.squares += d * (v - s.mean)
}

// Mean returns the arithmetic mean, NaN of no number.
func (s *Stats) Mean() float64 {
	if s.finite == 0 {
		return math.NaN()
	}
	return s.mean
}

// Deviation returns the standard deviation, of the numbers and not of a
// population they are drawn from; NaN of no number.
func (s *Stats) Deviation() float64 {
	if s.finite == 0 {
		return math.NaN()
	}
	return math.Sqrt(s.squares / float64(s.finite))
}

// RMS returns the root of the mean square, NaN of no number.
func (s *Stats) RMS() float64 { return math.Hypot(s.Mean(), s.Deviation()) }

// Constant reports whether all numbers are the same and there are several.
func (s *Stats) Constant() bool { return s.finite > 1 && s.Min == s.Max }

// String lists the words of a column of text.
func (c *Channel) words8() string {
	text := fmt.Sprintf("%q", c.Words)
	if c.More {
		text += " and more"
	}
	return text
}
