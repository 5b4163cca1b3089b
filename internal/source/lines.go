package source

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/table"
)

// lineReader reads the cells of one row after another.
type lineReader interface {
	// read returns the cells of the next row, valid until the next call, and the
	// line that it starts on; io.EOF after the last.
	read() (row []string, line int, err error)
}

// newLineReader returns a reader of rows that follow skip lines. Errors begin with
// where.
func newLineReader(in *bufio.Reader, where string, separator rune, skip int) lineReader {
	if separator == ' ' {
		return &blankReader{r: in, where: where, line: skip}
	}
	r := table.NewTextReader(in, where)
	r.Separator, r.Skipped = separator, skip
	return quotedReader{r}
}

// quotedReader reads rows whose cells are separated by one character, with quotes.
type quotedReader struct{ *table.TextReader }

func (q quotedReader) read() ([]string, int, error) {
	err := q.Next()
	return q.Row, q.Line, err
}

// blankReader reads rows whose cells are separated by blanks and tabs, without
// quotes. Lines that are empty are left out; a line that is an arrival time is
// one cell. The row is used again by the next Read.
type blankReader struct {
	r     *bufio.Reader
	where string
	row   []string
	line  int
}

func (b *blankReader) read() ([]string, int, error) {
	for {
		line, err := b.r.ReadString('\n')
		switch {
		case err == io.EOF && line == "":
			return nil, b.line, io.EOF
		case err != nil && err != io.EOF:
			return nil, b.line, fmt.Errorf("%s: %w", b.where, err)
		}
		b.line++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		b.row = b.row[:0]
		if isArrival(line) {
			return append(b.row, line), b.line, nil
		}
		b.row = slices.AppendSeq(b.row, strings.FieldsSeq(line))
		return b.row, b.line, nil
	}
}
