package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// TextReader reads rows of text whose cells are separated by commas (RFC 4180), or by
// another character. Its errors name file and line and say what to do.
type TextReader struct {
	Row  []string // the cells of the row last read; the slice is used again by the next
	Line int      // the line that it starts on, from 1

	// Separator is between cells, a comma if it is 0. Skipped is the number of lines
	// before the first that is read. They count from the first call on.
	Separator rune
	Skipped   int

	where string
	csv   *csv.Reader
	in    *RowLimit
	width int // cells of the header, 0 if it was not read
}

// NewTextReader returns a TextReader of in. Errors begin with where, such as the name of
// the file. The text is UTF-8, see PlainText.
func NewTextReader(in io.Reader, where string) *TextReader {
	limit := &RowLimit{In: in}
	r := &TextReader{where: where, csv: csv.NewReader(limit), in: limit}
	r.csv.ReuseRecord = true
	r.csv.FieldsPerRecord = -1
	return r
}

// maxRow is how many bytes a row may have: a row of separators takes some thirty times as much memory.
const maxRow = 4 << 20

// ErrLongRow is the error of a row that is too long.
var ErrLongRow = fmt.Errorf("has more than %d MiB: correct the file, in which lines end with a line feed and every quote is closed", maxRow>>20)

// RowLimit passes on as many bytes as are left of what a row may have. Its reader sets
// Left before each row.
type RowLimit struct {
	In   io.Reader
	Left int
}

func (l *RowLimit) Read(b []byte) (int, error) {
	if l.Left <= 0 {
		return 0, ErrLongRow
	}
	n, err := l.In.Read(b[:min(len(b), l.Left)])
	l.Left -= n
	return n, err
}

// Header reads the first row. All that follow must have as many cells. It returns
// io.EOF if there is none.
func (r *TextReader) Header() error {
	if err := r.Next(); err != nil {
		return err
	}
	r.width = len(r.Row)
	return nil
}

// Next reads the next row. It returns io.EOF after the last.
func (r *TextReader) Next() error {
	if r.Separator != 0 {
		r.csv.Comma = r.Separator
	}
	r.in.Left = maxRow
	row, err := r.csv.Read()
	r.Row = row
	if len(row) > 0 {
		line, _ := r.csv.FieldPos(0)
		r.Line = line + r.Skipped
	}
	var parse *csv.ParseError
	switch {
	case err == io.EOF:
		return io.EOF
	case errors.Is(err, ErrLongRow):
		return fmt.Errorf("%s: the row after line %d %w", r.where, r.Line, err)
	case errors.As(err, &parse):
		return fmt.Errorf("%s:%d: a quote (\") at byte %d of line %d does not belong there or is never closed: remove it", r.where, parse.StartLine+r.Skipped, parse.Column, parse.Line+r.Skipped)
	case err != nil:
		return fmt.Errorf("%s: %w", r.where, err)
	case r.width > 0:
		return CheckWidth(r.where, r.Line, len(row), r.width)
	}
	return nil
}

// CheckWidth reports a row that does not have as many cells as the header.
func CheckWidth(where string, line, cells, header int) error {
	if cells == header {
		return nil
	}
	return fmt.Errorf("%s:%d: cells in the row: %d, in the header: %d: correct the row; common causes are a decimal comma, a missing separator and a file that was cut off", where, line, cells, header)
}

// ParseTime returns the time in a cell, in UTC: RFC 3339, between the years 1 and
// 9999.
func ParseTime(cell string) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, cell)
	if y := at.UTC().Year(); err != nil || y < 1 || y > 9999 {
		return time.Time{}, false
	}
	return at.UTC(), true
}

// ParseNumber returns the number in a cell, NaN if the cell is empty. It is false
// for anything but a finite number of the given bits, NaN in words too.
func ParseNumber(cell string, bits int) (v float64, ok bool) {
	if cell == "" {
		return math.NaN(), true
	}
	v, err := strconv.ParseFloat(cell, bits)
	return v, err == nil && !math.IsInf(v, 0) && v == v
}
