package source

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxRow is the most bytes of one row. It bounds the memory that a quote
	// which is never closed can take.
	maxRow = 1 << 20
	// readAhead is how far a cellReader reads ahead, and so the longest header
	// of which the separator can be told.
	readAhead = 64 << 10
)

// cellReader reads the cells of a table of text with one header row. Its
// errors name file, line, column and remedy.
type cellReader struct {
	name   string
	limit  *limitReader
	csv    *csv.Reader
	header []string // names of the columns, without the blanks around them
	row    []string // cells of the row last read, valid until the next
	line   int      // that it starts on
	rows   int64    // read so far, with the header
}

// newCellReader finds the separator and reads the header.
func newCellReader(r io.Reader, name string) (*cellReader, error) {
	c := &cellReader{name: name, limit: &limitReader{r: r, left: maxRow}}
	br := bufio.NewReaderSize(c.limit, readAhead)
	head, err := br.Peek(readAhead)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("source: %s: %w", name, err)
	}
	if bom := []byte("\xef\xbb\xbf"); bytes.HasPrefix(head, bom) {
		head = head[len(bom):]
		br.Discard(len(bom)) // cannot fail: it was peeked
	}
	c.csv = csv.NewReader(br)
	c.csv.Comma = separator(head)
	c.csv.ReuseRecord = true
	if err := c.next(); err != nil {
		return nil, err
	}
	for i, name := range c.row {
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("source: %s:%d: the name of column %d, %q, is not valid UTF-8: save the table as UTF-8", c.name, c.line, i+1, name)
		}
		c.header = append(c.header, strings.TrimSpace(name))
	}
	return c, nil
}

// next reads the next row. It returns io.EOF after the last.
func (c *cellReader) next() error {
	c.limit.left = maxRow
	row, err := c.csv.Read()
	before := c.line
	if len(row) > 0 {
		c.line, _ = c.csv.FieldPos(0)
	}
	c.row = row
	if err != nil {
		return c.rowError(err)
	}
	c.rows++
	if len(c.header) == 1 && c.line > before+1 {
		return fmt.Errorf("source: %s:%d: the line is empty: write NaN if the value of column %q is missing", c.name, before+1, c.header[0])
	}
	return nil
}

// rowError says why c.row is not the whole row.
func (c *cellReader) rowError(err error) error {
	var parse *csv.ParseError
	switch {
	case err == io.EOF && c.rows == 0:
		return fmt.Errorf("source: %s: the file is empty: record again", c.name)
	case err == io.EOF && c.rows == 1:
		return fmt.Errorf("source: %s: there is no row under the header: record again", c.name)
	case err == io.EOF:
		return io.EOF
	case errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("source: %s:%d: cells in the row: %d, in the header: %d: correct the row; common causes are a decimal comma, a missing separator and a file that was cut off",
			c.name, c.line, len(c.row), len(c.header))
	case errors.As(err, &parse):
		return fmt.Errorf("source: %s:%d: a quote (\") at byte %d of line %d does not belong there or is never closed: remove it",
			c.name, parse.StartLine, parse.Column, parse.Line)
	case errors.Is(err, errRowTooLong):
		return fmt.Errorf("source: %s:%d: the row is longer than %d bytes: close the open quote (\"), or check that this is a table of text", c.name, c.line, maxRow)
	}
	return fmt.Errorf("source: %s: %w", c.name, err)
}

// errorf says what is wrong with a cell of the row last read.
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
	v, err := strconv.ParseFloat(cell, bits)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && math.IsInf(v, 0):
		return 0, c.errorf(col, "is beyond the range of %d-bit numbers: correct it, or leave the cell empty if it is missing", bits)
	case err != nil && strings.Contains(cell, ","):
		return 0, c.errorf(col, "is not a number: write a decimal point, not a comma")
	case err != nil:
		return 0, c.errorf(col, "is not a number: correct it, or leave the cell empty if it is missing")
	}
	return v, nil
}

// text returns the text in a cell, empty if it is missing or col is -1.
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

func isMissing(cell string) bool {
	switch cell {
	case "", "NaN", "nan", "NA":
		return true
	}
	return false
}

// separator returns the one of comma, semicolon and tab that is most frequent
// outside quotes in the first line that is not empty.
func separator(head []byte) rune {
	var n [128]int
	quoted := false
	for _, b := range bytes.TrimLeft(head, "\r\n") {
		if b == '"' {
			quoted = !quoted
		} else if b == '\n' && !quoted {
			break
		} else if b < 128 && !quoted {
			n[b]++
		}
	}
	sep := ','
	for _, s := range ";\t" {
		if n[s] > n[sep] {
			sep = s
		}
	}
	return sep
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
