package track

import (
	"io"
	"math"
	"strconv"
	"time"
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
// Starts by which a track begins again before it ended are not used.
func (j *Joined) Join(pieces []Piece) {
	last, runs, overlap := make(map[string]int), make(map[string]int), false
	for _, p := range pieces {
		i, seen := last[p.Name]
		if seen && follows(j.pieces[i], p) {
			j.pieces[i] = append(j.pieces[i], p)
			j.Infos[i].Len += p.Len
			continue
		}
		if seen && p.Rate > 0 {
			before := j.Infos[i]
			end := before.Start.Add(time.Duration((float64(before.Len)/before.Rate - p.Slack) * 1e9))
			overlap = overlap || !before.Start.IsZero() && p.Start.Before(end)
		}
		last[p.Name] = len(j.Infos)
		runs[p.Name]++
		p.Group = strconv.Itoa(runs[p.Name])
		j.Infos = append(j.Infos, p.Info)
		j.pieces = append(j.pieces, []Piece{p})
	}
	if len(runs) < len(j.Infos) {
		j.Remark("channels that are recorded several times: each recording is a session of its own, with its number as the hole")
	}
	if overlap {
		j.Remark("the starts that it states are not used: by them a channel begins again before it ended")
	}
	for i := range j.Infos {
		if len(runs) == len(j.Infos) {
			j.Infos[i].Group = ""
		}
		if overlap {
			j.Infos[i].Start = time.Time{}
		}
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
		if n, err = c.column.Read(dst); err == io.EOF {
			c.pieces, c.column, err = c.pieces[1:], nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.EOF
}
