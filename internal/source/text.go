package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/csvfile"
)

const (
	// maxRow is the most bytes of one row. It bounds the memory that a quote
	// which is never closed can take.
	maxRow = 1 << 20
	// readAhead is how far a cellReader reads ahead, and so the longest header
	// of which the separator can be found.
	readAhead = 64 << 10
	// maxHeader is the most lines that can name columns.
	maxHeader = 20
)

// cellReader reads the cells of a table of text: [rows].
//
// Blanks around names and cells and a byte order mark do not count. An empty
// cell, NaN, nan or NA is missing: NaN as a number, not known elsewhere. A line
// that is a date and time and nothing else says when the samples after it
// arrived; the first gives the time of the first row. Errors name file, line,
// column and remedy.
type cellReader struct {
	name    string
	dialect dialect
	limit   *limitReader
	lines   lineReader
	header  []string // names of the columns
	row     []string // cells of the row last read, valid until the next
	held    bool     // row was read ahead
	line    int      // that it starts on
	rows    int64    // read so far, with the header
	numbers []byte   // a cell with a decimal point for its comma

	arrivals    int64 // lines that are an arrival time
	firstArrive time.Time
	lastArrive  time.Time
	lastAt      int64 // rows before the last of them
}

// newCellReader reads up to the first row under the header.
func newCellReader(r io.Reader, name string, d dialect) (*cellReader, error) {
	c := &cellReader{name: name, dialect: d, limit: &limitReader{r: r, left: maxRow}}
	br := bufio.NewReaderSize(c.limit, readAhead)
	for range d.skip {
		c.limit.left = maxRow
		if err := skipLine(br); err != nil && err != io.EOF {
			return nil, c.rowError(fmt.Errorf("source: %s: %w", name, err))
		} else if err == io.EOF {
			return nil, c.rowError(err)
		}
	}
	head, err := br.Peek(readAhead)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("source: %s: %w", name, err)
	}
	if bom := []byte("\xef\xbb\xbf"); bytes.HasPrefix(head, bom) {
		head = head[len(bom):]
		br.Discard(len(bom)) // cannot fail: it was peeked
	}
	c.dialect.complete(head)
	c.lines = newLineReader(br, "source: "+name, c.dialect.separator, d.skip)
	if err := c.readHeader(); err != nil {
		return nil, err
	}
	return c, nil
}

func skipLine(br *bufio.Reader) error {
	for {
		if _, err := br.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// readHeader names the columns: with several lines of header, by the cells of
// the column, from the top down; an empty cell is covered by the one to its
// left, except in the last line. Without a header, by their numbers.
func (c *cellReader) readHeader() error {
	for i := range max(c.dialect.header, 1) {
		if err := c.read(); err != nil {
			return err
		}
		if c.dialect.header == 0 {
			for j := range c.row {
				c.header = append(c.header, strconv.Itoa(j+1))
			}
			c.held = true
			return nil
		}
		if i > 0 && len(c.row) > len(c.header) {
			c.header = append(c.header, make([]string, len(c.row)-len(c.header))...)
		}
		var left string
		for j, cell := range c.row {
			if !utf8.ValidString(cell) {
				return fmt.Errorf("source: %s:%d: the name of column %d, %q, is not valid UTF-8: save the table as UTF-8", c.name, c.line, j+1, cell)
			}
			if i == 0 && j == len(c.header) {
				c.header = append(c.header, "")
			}
			if c.dialect.header > 1 {
				cell = strings.Join(strings.Fields(cell), " ")
			}
			if cell = strings.TrimSpace(cell); cell == "" && i < c.dialect.header-1 {
				cell = left
			}
			left = cell
			c.header[j] = strings.TrimSpace(c.header[j] + " " + cell)
		}
	}
	return nil
}

func (c *cellReader) names() []string { return c.header }

func (c *cellReader) want([]int) error { return nil }

func (c *cellReader) start() time.Time { return c.firstArrive }

// next reads the next row. It returns io.EOF after the last.
func (c *cellReader) next() error {
	if c.held {
		c.held = false
		return nil
	}
	if err := c.read(); err != nil {
		return err
	}
	return csvfile.CheckWidth("source: "+c.name, c.line, len(c.row), len(c.header))
}

// read reads the next row that is not an arrival time.
func (c *cellReader) read() error {
	for {
		c.limit.left = maxRow
		before := c.line
		row, line, err := c.lines.read()
		if len(row) > 0 {
			c.line = line
		} else if errors.Is(err, errRowTooLong) {
			c.line++ // it begins there, if no empty lines are before it
		}
		c.row = row
		if err != nil {
			return c.rowError(err)
		}
		if len(row) == 1 {
			if at, ok := arrival(row[0]); ok {
				c.arrived(at)
				continue
			}
		}
		c.rows++
		if len(c.header) == 1 && c.line > before+1 {
			return fmt.Errorf("source: %s:%d: the line is empty: write NaN if the value of column %q is missing", c.name, before+1, c.header[0])
		}
		return nil
	}
}

// arrived notes the time of the rows that follow.
func (c *cellReader) arrived(at time.Time) {
	if c.arrivals == 0 {
		c.firstArrive = at
	}
	c.arrivals++
	c.lastArrive, c.lastAt = at, c.rows
}

// rowError says why c.row is not the whole row.
func (c *cellReader) rowError(err error) error {
	switch header := int64(c.dialect.header); {
	case err == io.EOF && c.rows == 0:
		return fmt.Errorf("source: %s: the file is empty: record again", c.name)
	case err == io.EOF && c.rows <= header:
		return fmt.Errorf("source: %s: there is no row under the header: record again", c.name)
	case err == io.EOF:
		return io.EOF
	case errors.Is(err, errRowTooLong):
		return fmt.Errorf("source: %s:%d: the row is longer than %d bytes: close the open quote (\"), or check that this is a table of text", c.name, c.line, maxRow)
	}
	return err
}

func (c *cellReader) errorf(col int, format string, args ...any) error {
	cell := c.cell(col)
	if r := []rune(cell); len(r) > 40 {
		cell = string(r[:40]) + "…"
	}
	return fmt.Errorf("source: %s:%d: column %q: %q %s", c.name, c.line, c.header[col], cell, fmt.Sprintf(format, args...))
}

// cell returns a cell of the row last read without the blanks around it.
func (c *cellReader) cell(col int) string { return strings.TrimSpace(c.row[col]) }

// number returns the number in a cell: NaN if it is missing, never infinite.
func (c *cellReader) number(col, bits int) (float64, error) {
	cell := c.cell(col)
	if isMissing(cell) {
		return math.NaN(), nil
	}
	v, err := c.parse(cell, bits)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && math.IsInf(v, 0):
		return 0, c.errorf(col, "is beyond the range of %d-bit numbers: correct it, or leave the cell empty if it is missing", bits)
	case err != nil && strings.Contains(cell, ","):
		return 0, c.errorf(col, "is not a number: write a decimal point, or set `decimal: comma` under the layout's `recording`")
	case err != nil && c.dialect.header > 0 && c.rows == int64(c.dialect.header)+1:
		return 0, c.errorf(col, "is not a number: correct it, or leave the cell empty if it is missing; if the line belongs to the header, as one of units does, set `header: %d` under the layout's `recording`", c.dialect.header+1)
	case err != nil:
		return 0, c.errorf(col, "is not a number: correct it, or leave the cell empty if it is missing")
	}
	return v, nil
}

func (c *cellReader) parse(cell string, bits int) (float64, error) {
	if i := strings.IndexByte(cell, ','); i >= 0 && c.dialect.comma {
		c.numbers = append(append(append(c.numbers[:0], cell[:i]...), '.'), cell[i+1:]...)
		cell = string(c.numbers)
	}
	return strconv.ParseFloat(cell, bits)
}

func (c *cellReader) text(col int) (string, error) {
	if col < 0 {
		return "", nil
	}
	cell := c.cell(col)
	if isMissing(cell) {
		return "", nil
	}
	if !utf8.ValidString(cell) {
		return "", c.errorf(col, "is not valid UTF-8: save the table as UTF-8")
	}
	return cell, nil
}

func (c *cellReader) moment(col int) (moment, error) {
	cell := c.cell(col)
	if isMissing(cell) {
		return moment{}, c.errorf(col, "is not a time: give every row its time, or leave `time` out of the layout's `recording`")
	}
	if s, err := c.parse(cell, 64); err == nil {
		return moment{seconds: s}, nil
	}
	m, ok := stamp(cell)
	if !ok {
		return m, c.errorf(col, "is not a time: write RFC 3339, as 2026-01-31T14:05:09.25Z, or seconds")
	}
	return m, nil
}

func isMissing(cell string) bool {
	switch cell {
	case "", "NaN", "nan", "NA":
		return true
	}
	return false
}

// limitReader fails when more is read from it than it has left.
type limitReader struct {
	r    io.Reader
	left int
}

var errRowTooLong = errors.New("row too long")

func (l *limitReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}
