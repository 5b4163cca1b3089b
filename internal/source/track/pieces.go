package track

import (
	"io"
	"math"
	"strconv"
)

// Piece is values of a track without a gap, as a segment of a file holds them.
type Piece struct {
	Info           // Start and Len are of the piece; a rate of 0 means that a track of times says when values are
	Begin  float64 // when the first value is, in seconds on a clock that all pieces of the file share
	Slack  float64 // by how much Begin may be wrong, in seconds
	Column func() (Column, error)
}

// Joined is the tracks that pieces make.
type Joined struct {
	Listing
	pieces [][]Piece
}

// Join lists the tracks that pieces make, in the order of the file. A piece that begins where the one before it with its name
// ends continues the track. Any other begins the track again, and then groups are numbers: how many times the name has begun.
func (j *Joined) Join(pieces []Piece) {
	last, runs := make(map[string]int), make(map[string]int)
	for _, p := range pieces {
		i, seen := last[p.Name]
		if seen && follows(j.pieces[i], p) {
			j.pieces[i] = append(j.pieces[i], p)
			j.Infos[i].Len += p.Len
			continue
		}
		last[p.Name] = len(j.Infos)
		runs[p.Name]++
		p.Group = strconv.Itoa(runs[p.Name])
		j.Infos = append(j.Infos, p.Info)
		j.pieces = append(j.pieces, []Piece{p})
	}
	if len(runs) < len(j.Infos) {
		j.Remark("channels that are recorded several times: each recording is a session of its own, with its number as the hole")
		return
	}
	for i := range j.Infos {
		j.Infos[i].Group = ""
	}
}

// follows reports whether a piece begins where others end: half a sample or Slack may be missing.
func follows(before []Piece, p Piece) bool {
	last := before[len(before)-1]
	if p.Rate == 0 {
		return last.Rate == 0
	}
	end := last.Begin + float64(last.Len)/last.Rate
	return p.Rate == last.Rate && math.Abs(p.Begin-end) <= max(0.5/p.Rate, p.Slack)
}

// Open returns a Reader of tracks.
func (j *Joined) Open(tracks []int) (Reader, error) {
	return j.SideBySide(tracks, func(i int) (Column, error) { return &chain{pieces: j.pieces[i]}, nil })
}

// chain reads pieces one after another.
type chain struct {
	pieces []Piece
	column Column // of the first one; nil if it is not open
}

func (c *chain) Read(dst Values) (n int, err error) {
	for len(c.pieces) > 0 {
		if c.column == nil {
			if c.column, err = c.pieces[0].Column(); err != nil {
				return 0, err
			}
		}
		if n, err = c.column.Read(dst); n > 0 || err != io.EOF {
			return n, err
		}
		c.pieces, c.column = c.pieces[1:], nil
	}
	return 0, io.EOF
}
