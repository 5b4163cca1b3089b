package table

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/csvfile"
)

// WriteCSV writes the table as CSV, row by row: a header, in which the features
// come after machine, tool, hole, start (RFC 3339, UTC), class and vb_max_um.
// What is missing or not known is an empty cell; numbers have as many digits as
// it takes to read the same number again. WriteCSV returns an error if two
// columns have one name, if a feature has the name of one of the other columns,
// or if a number is infinite, which Load would refuse.
func (t *Table) WriteCSV(w io.Writer) error {
	if err := t.writable(); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	line := appendText(nil, facts[0])
	for _, name := range slices.Concat(facts[1:], t.Columns) {
		line = appendText(append(line, ','), name)
	}
	out.Write(append(line, '\n')) // errors stick until Flush
	for i := range t.Rows() {
		if err := t.finite(i); err != nil {
			return err
		}
		r := t.Row(i)
		line = appendText(line[:0], r.Machine)
		line = appendText(append(line, ','), r.Tool)
		line = appendText(append(line, ','), r.Hole)
		line = append(line, ',')
		if !r.Start.IsZero() {
			line = r.Start.UTC().AppendFormat(line, time.RFC3339Nano)
		}
		line = appendText(append(line, ','), r.classText())
		line = appendNumber(append(line, ','), r.VBMaxUM, 64)
		for _, v := range r.Features {
			line = appendNumber(append(line, ','), float64(v), 32)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("table: write: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("table: write: %w", err)
	}
	return nil
}

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

// scanCSV reads a table as WriteCSV writes it, or with its columns in another
// order: they are known by name, and all but the tool may be absent. file names
// the table in errors, which state line, column and remedy. Values are read to
// float32. A line break within a cell is read as a single line feed.
func scanCSV(in io.Reader, file string, to sink) error {
	d := &reader{where: "table: " + file, Reader: csvfile.NewReader(in, "table: "+file)}
	if err := d.readHeader(); err != nil {
		return err
	}
	if err := to.begin(d.header.features()); err != nil {
		return err
	}
	row := d.header.row()
	for {
		err := d.readRow(&row)
		if err == io.EOF {
			return nil
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
	*csvfile.Reader
	where  string // what errors begin with
	header header
}

func (d *reader) readHeader() error {
	if err := d.Header(); err == io.EOF {
		return fmt.Errorf("%s: the file is empty: write the table again", d.where)
	} else if err != nil {
		return err
	}
	var names []string
	for _, name := range d.Row {
		names = append(names, strings.Clone(name))
	}
	h, err := newHeader(names)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", d.where, d.Line, err)
	}
	d.header = h
	return nil
}

// readRow reads the next row into r. A text that is the same as in the row before
// is kept, so that a tool's name is not held once for each of its rows.
func (d *reader) readRow(r *Row) error {
	if err := d.Next(); err != nil {
		return err
	}
	for col, s := range d.Row {
		fact := d.header.fact[col]
		var err error
		switch fact {
		case factMachine, factTool, factHole:
			to := []*string{factMachine: &r.Machine, factTool: &r.Tool, factHole: &r.Hole}[fact]
			if s == *to {
				continue
			}
			if !utf8.ValidString(s) {
				return d.errorf(col, "is not valid UTF-8: save the file as UTF-8")
			}
			*to = strings.Clone(s)
		case factStart:
			var ok bool
			if r.Start, ok = csvfile.ParseTime(s); s != "" && !ok {
				return d.errorf(col, "is not a time: write RFC 3339, as 2026-01-31T14:05:09Z")
			}
		case factClass:
			if s == r.Label && s != "" {
				continue
			}
			var ok bool
			if r.Class, r.Label, ok = parseClass(s); !ok {
				return d.errorf(col, notAClass)
			}
			r.Label = strings.Clone(r.Label)
		case factVBMax:
			if r.VBMaxUM, err = d.number(col, 64); err != nil {
				return err
			}
		default:
			v, err := d.number(col, 32)
			if err != nil {
				return err
			}
			r.Features[d.header.feature[col]] = float32(v)
		}
	}
	return nil
}

// number returns the number in a cell, NaN if it is empty.
func (d *reader) number(col, bits int) (float64, error) {
	v, ok := csvfile.ParseNumber(d.Row[col], bits)
	if !ok {
		return 0, d.errorf(col, "is not a finite number of %d bits: correct it, or leave the cell empty if it is missing", bits)
	}
	return v, nil
}

func (d *reader) errorf(col int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: column %q: %.60q %s", d.where, d.Line, d.header.names[col], d.Row[col], fmt.Sprintf(format, args...))
}
