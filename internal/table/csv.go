package table

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// csvWriter writes rows as CSV. What is missing or not known is an empty cell; times are RFC 3339,
// UTC; numbers have as many digits as it takes to read the same number again.
type csvWriter struct {
	out  *bufio.Writer // errors stick until Flush
	line []byte
}

func newCSVWriter(w io.Writer, columns []SheetColumn) *csvWriter {
	c := &csvWriter{out: bufio.NewWriterSize(w, 64<<10)}
	for i, column := range columns {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		c.line = appendText(c.line, column.Name)
	}
	c.out.Write(append(c.line, '\n'))
	return c
}

func (c *csvWriter) write(facts []value, features []float32) error {
	line := c.line[:0]
	for i, v := range facts {
		if i > 0 {
			line = append(line, ',')
		}
		switch v.kind {
		case isText:
			line = appendText(line, v.text)
		case isNumber:
			line = appendNumber(line, v.number, 64)
		case isTime:
			line = v.time.AppendFormat(line, time.RFC3339Nano)
		}
	}
	for _, v := range features {
		line = appendNumber(append(line, ','), float64(v), 32)
	}
	c.line = append(line, '\n')
	_, err := c.out.Write(c.line)
	return err
}

func (c *csvWriter) close() error { return c.out.Flush() }

func appendNumber(line []byte, v float64, bits int) []byte {
	if v != v {
		return line
	}
	return strconv.AppendFloat(line, v, 'g', -1, bits)
}

// appendText appends a cell, in quotes if it needs them (RFC 4180).
func appendText(line []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") && strings.TrimSpace(s) == s {
		return append(line, s...)
	}
	line = append(line, '"')
	line = append(line, strings.ReplaceAll(s, `"`, `""`)...)
	return append(line, '"')
}

// scanCSV reads a table as csvWriter writes it, or with its columns in another
// order: they are known by name, and all but the tool may be absent. file names
// the table in errors, which state line, column and remedy. Values are read to
// float32. A line break within a cell is read as a single line feed.
func scanCSV(in io.Reader, file string, ignore *Ignore, to sink) error {
	in, notes, err := PlainText(in)
	switch {
	case err != nil:
		return fmt.Errorf("table: %s: %w", file, err)
	case slices.Contains(notes, guessedEncoding): // there is no one to tell of a guess
		return fmt.Errorf("table: %s: the text is not UTF-8: save the file as UTF-8", file)
	}
	d := &reader{where: "table: " + file, TextReader: NewTextReader(in, "table: "+file)}
	if err := d.readHeader(ignore); err != nil {
		return err
	}
	if err := to.begin(d.header.features); err != nil {
		return err
	}
	row := d.header.row()
	for {
		err := d.readRow(&row)
		if err == io.EOF {
			return nil
		}
		if bad := (*notNumber)(nil); errors.As(err, &bad) {
			return cmp.Or(d.textColumns(), err)
		}
		if err == nil {
			err = to.row(row)
		}
		if err != nil {
			return err
		}
	}
}

// reader reads the rows of a table.
type reader struct {
	*TextReader
	where   string // what errors begin with
	header  header
	numbers []bool   // by column: a cell of it is a number
	last    []string // by column: the cell in the row before, if it is not a feature's
}

func (d *reader) readHeader(ignore *Ignore) error {
	if err := d.Header(); err == io.EOF {
		return fmt.Errorf("%s: the file is empty: write the table again", d.where)
	} else if err != nil {
		return err
	}
	var names []string
	for _, name := range d.Row {
		names = append(names, strings.Clone(name))
	}
	h, err := newHeader(names, ignore)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", d.where, d.Line, err)
	}
	d.header, d.numbers, d.last = h, make([]bool, len(names)), make([]string, len(names))
	return nil
}

// readRow reads the next row into r, which has the row before. A cell that is the same there
// is kept, so that a tool's name is not held once for each of its rows.
func (d *reader) readRow(r *Row) error {
	if err := d.Next(); err != nil {
		return err
	}
	for col, s := range d.Row {
		switch d.header.fact[col] {
		case isIgnored:
		case isFeature:
			v, ok := ParseNumber(s, 32)
			if !ok {
				return &notNumber{d.number(col, 32)}
			}
			d.numbers[col] = d.numbers[col] || s != ""
			r.Features[d.header.feature[col]] = float32(v)
		default:
			if s == d.last[col] {
				continue
			}
			d.last[col] = strings.Clone(s)
			if err := d.readFact(r, col, d.last[col]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFact reads the cell of a column that is not a feature.
func (d *reader) readFact(r *Row, col int, s string) error {
	v := textOf(s)
	number, state := d.header.fact[col] == factVBMax, false
	if fact := d.header.fact[col]; fact >= firstDetail {
		number, state = details[fact-firstDetail].number != nil, details[fact-firstDetail].name == "state"
	}
	x, ok := ParseNumber(s, 64)
	switch {
	case number && !ok:
		return d.number(col, 64)
	case number, state && ok && !d.header.windows: // which no word for a state is
		v = numberOf(x)
	}
	if remedy := d.header.store(r, col, v); remedy != "" {
		return d.errorf(col, "%s", remedy)
	}
	return nil
}

// notNumber is the error for the cell of a feature.
type notNumber struct{ error }

// number returns the error for a cell that is not a number.
func (d *reader) number(col, bits int) error {
	return d.errorf(col, "is not a finite number of %d bits: correct it, or leave the cell empty if it is missing", bits)
}

// findNumbers notes the features that have a number in this row, and texts of the others.
func (d *reader) findNumbers(example []string) {
	for col, s := range d.Row {
		if d.header.fact[col] != isFeature || s == "" {
			continue
		}
		if _, err := strconv.ParseFloat(s, 32); err == nil || errors.Is(err, strconv.ErrRange) {
			d.numbers[col] = true // also one that a feature cannot be
		} else if example[col] == "" {
			example[col] = strings.Clone(s)
		}
	}
}

// textColumns reads on from a row with a feature that is not a number. It returns an error
// that names all features of which no cell in the file is a number; nil if there are none.
func (d *reader) textColumns() error {
	example := make([]string, len(d.Row))
	for {
		d.findNumbers(example)
		if err := d.Next(); err != nil { // what is wrong further down comes after this
			break
		}
	}
	var texts []textColumn
	for col, s := range example {
		if s != "" && !d.numbers[col] {
			texts = append(texts, textColumn{d.header.names[col], s})
		}
	}
	if texts == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", d.where, textError(len(d.header.names), texts))
}

func (d *reader) errorf(col int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: column %q: %.60q %s", d.where, d.Line, d.header.names[col], d.Row[col], fmt.Sprintf(format, args...))
}
