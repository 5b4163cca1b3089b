package source

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
)

// trackRows reads the tracks of a file as a table: [rows].
type trackRows struct {
	file   track.File
	name   string
	header []string
	infos  []track.Info

	at     []int // position in values of each track, -1 if it is not read
	tracks []int // that are read
	reader track.Reader
	values []track.Values
	i, n   int
	row    int64 // number of the row last read, from 1
}

// TrackNames returns what tracks are called: their names, with their groups
// where several have one name.
func TrackNames(infos []track.Info) []string {
	count := make(map[string]int)
	for _, info := range infos {
		count[info.Name]++
	}
	var names []string
	for _, info := range infos {
		if count[info.Name] > 1 {
			names = append(names, info.Path())
		} else {
			names = append(names, info.Name)
		}
	}
	return names
}

func (r *trackRows) names() []string { return r.header }

func (r *trackRows) start() time.Time {
	for i, info := range r.infos {
		if r.at[i] >= 0 && !info.Start.IsZero() {
			return info.Start
		}
	}
	return time.Time{}
}

func (r *trackRows) want(cols []int) error {
	r.at = slices.Repeat([]int{-1}, len(r.infos))
	for _, c := range cols {
		if c >= 0 && r.at[c] < 0 {
			r.at[c] = len(r.tracks)
			r.tracks = append(r.tracks, c)
		}
	}
	var err error
	r.reader, err = r.file.Open(r.tracks)
	return err
}

func (r *trackRows) next() error {
	if r.i++; r.i >= r.n {
		var err error
		if r.values, r.n, err = r.reader.Read(blockRows); err != nil {
			return err
		}
		r.i = 0
	}
	r.row++
	return nil
}

func (r *trackRows) number(col, _ int) (float64, error) {
	if r.infos[col].Text {
		s := r.values[r.at[col]].Texts[r.i]
		if isMissingNumber(s) {
			return math.NaN(), nil
		}
		return 0, r.errorf(col, "is text, not a number: take the column out of the layout, or record it as numbers")
	}
	return r.values[r.at[col]].Numbers[r.i], nil
}

func (r *trackRows) text(col int) (string, error) {
	if col < 0 {
		return "", nil
	}
	if r.infos[col].Text {
		s := r.values[r.at[col]].Texts[r.i]
		if table.IsMissing(s) {
			s = ""
		}
		return s, nil
	}
	v := r.values[r.at[col]].Numbers[r.i]
	if v != v {
		return "", nil
	}
	return strconv.FormatFloat(v, 'f', -1, 64), nil
}

func (r *trackRows) said(col int) bool {
	return r.infos[col].Text && r.values[r.at[col]].Texts[r.i] != ""
}

func (r *trackRows) moment(col, date int, by *Stamps) (moment, error) {
	if r.infos[col].Text {
		cell := r.values[r.at[col]].Texts[r.i]
		if date >= 0 {
			day, _ := r.text(date) // of numbers too, such as 20261102
			cell = day + " " + cell
		}
		return momentOf(cell, by, func(text string) error { return r.errorf(col, "%s", text) })
	}
	v := r.values[r.at[col]].Numbers[r.i]
	if v != v {
		return moment{form: absent}, nil
	}
	return moment{seconds: v}, nil
}

func (r *trackRows) errorf(col int, format string, args ...any) error {
	var cell string
	if v := r.values[r.at[col]]; r.infos[col].Text {
		cell = fmt.Sprintf("%.40q", v.Texts[r.i])
	} else {
		cell = strconv.FormatFloat(v.Numbers[r.i], 'g', -1, 64)
	}
	return fmt.Errorf("source: %s: row %d: column %q: %s %s", r.name, r.row, r.header[col], cell, fmt.Sprintf(format, args...))
}
