// Package track says what a recorded file holds, in any format.
//
// A track is one series of values in a [File]: the samples of a channel, or a
// column of facts such as the tool. What the file says of it is its [Info]. A
// [Reader] reads several tracks side by side, in order and in bounded memory,
// and a [Column] reads one.
//
// Numbers are what the recorder meant: scaled as the file says, NaN where they
// are missing.
package track

import (
	"io"
	"math"
	"time"
)

// Info is what a file says of a track.
type Info struct {
	Name  string
	Group string    // what holds the track in the file; empty where the format has no groups
	Unit  string    // of the numbers; empty if the file does not say it
	Rate  float64   // values per second; 0 if the file does not say it
	Start time.Time // of the first value; zero if the file does not say it
	Len   int64     // values; -1 if it is known only after reading
	Text  bool      // values are text
}

// Path returns the name by which the file has no other track.
func (i Info) Path() string {
	if i.Group == "" {
		return i.Name
	}
	return i.Group + "/" + i.Name
}

// RoundRate returns the whole rate that is meant where the time between samples is written with six digits.
func RoundRate(rate float64) float64 {
	if whole := math.Round(rate); math.Abs(whole/rate-1) < 5e-6 {
		return whole
	}
	return rate
}

// Contents is what a file holds. Readers of one file must not be used
// concurrently.
type Contents interface {
	// Tracks returns what can be read, in the order of the file.
	Tracks() []Info
	// Notes returns what a person should know of the file, such as what in it
	// cannot be read.
	Notes() []string
	// Open returns a Reader of the tracks with the given indices.
	Open(tracks []int) (Reader, error)
}

// File is a recorded file, open.
type File interface {
	Contents
	io.Closer
}

// Values are consecutive values of one track: Texts if it is text, Numbers if
// it is not.
type Values struct {
	Numbers []float64
	Texts   []string
}

// Values returns room for so many values of the track.
func (i Info) Values(most int) Values {
	if i.Text {
		return Values{Texts: make([]string, most)}
	}
	return Values{Numbers: make([]float64, most)}
}

// Slice returns the values from i up to but not with j.
func (v Values) Slice(i, j int) Values {
	if v.Texts != nil {
		return Values{Texts: v.Texts[i:j]}
	}
	return Values{Numbers: v.Numbers[i:j]}
}

// Reader reads tracks side by side.
type Reader interface {
	// Read returns the next values of every track: n of each, with 0 < n ≤ most,
	// valid until the next call. After the last value of the shortest track it
	// returns io.EOF. An error comes after the values before it and is final.
	Read(most int) (values []Values, n int, err error)
}

// Jumper is a Reader, or a Column, that can leave values out, for a look into a long file.
type Jumper interface {
	// Jump goes on at a share of the file, from 0 to 1, and returns how many values it leaves out, in a table of text about so many; 0 if it
	// is as far already. It returns false if it cannot leave any out, and then how many follow, −1 if that is not known.
	Jump(share float64) (left int64, ok bool, err error)
}

// Column reads the values of one track: at most as many as dst holds, into dst.
// It returns an error after the values before it, io.EOF after the last.
type Column interface {
	Read(dst Values) (n int, err error)
}

// batch is the most values that a Reader of columns reads at once.
const batch = 4096

// SideBySide returns a Reader of the tracks with the given indices, side by side.
// column returns a Column of one of them.
func (l *Listing) SideBySide(tracks []int, column func(track int) (Column, error)) (Reader, error) {
	s := &sideBySide{out: make([]Values, len(tracks))}
	for _, i := range tracks {
		c, err := column(i)
		if err != nil {
			return nil, err
		}
		s.columns = append(s.columns, c)
		s.buffers = append(s.buffers, l.Infos[i].Values(batch))
	}
	return s, nil
}

type sideBySide struct {
	columns []Column
	buffers []Values
	out     []Values
	err     error
}

func (s *sideBySide) Read(most int) ([]Values, int, error) {
	if s.err != nil {
		return nil, 0, s.err
	}
	n := min(most, batch)
	for i, c := range s.columns {
		have, err := fill(c, s.buffers[i].Slice(0, n))
		if have < n || err != nil && s.err == nil {
			n, s.err = have, err // what the columns before have more than that is not asked for again
		}
	}
	if n == 0 {
		return nil, 0, s.err
	}
	for i, b := range s.buffers {
		s.out[i] = b.Slice(0, n)
	}
	return s.out, n, nil
}

// Jump makes all columns jump.
func (s *sideBySide) Jump(share float64) (left int64, ok bool, err error) {
	for _, c := range s.columns {
		if _, ok := c.(Jumper); !ok {
			return -1, false, nil
		}
	}
	for _, c := range s.columns {
		if left, ok, err = c.(Jumper).Jump(share); err != nil || !ok {
			return left, ok, err
		}
	}
	return left, ok, nil
}

// fill reads until dst is full or an error comes.
func fill(c Column, dst Values) (n int, err error) {
	size := len(dst.Numbers) + len(dst.Texts)
	for n < size && err == nil {
		var m int
		m, err = c.Read(dst.Slice(n, size))
		n += m
		if m == 0 && err == nil {
			err = io.ErrNoProgress
		}
	}
	if n == size {
		// An error that came with the last value comes again.
		err = nil
	}
	return n, err
}
