package source

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// lineReader reads the cells of one row after another. encoding/csv has one for
// a separator of one character.
type lineReader interface {
	Read() ([]string, error)
	FieldPos(field int) (line, column int)
}

func newLineReader(r io.Reader, separator rune) lineReader {
	if separator == ' ' {
		br, ok := r.(*bufio.Reader)
		if !ok {
			br = bufio.NewReader(r)
		}
		return &blankReader{r: br}
	}
	c := csv.NewReader(r)
	c.Comma = separator
	c.ReuseRecord = true
	c.FieldsPerRecord = -1 // checked by cellReader
	return c
}

// blankReader reads rows whose cells are separated by blanks and tabs, without
// quotes. Lines that are empty are left out; a line that is an arrival time is
// one cell. The row is used again by the next Read.
type blankReader struct {
	r    *bufio.Reader
	long []byte
	row  []string
	line int
}

func (b *blankReader) FieldPos(int) (line, column int) { return b.line, 1 }

func (b *blankReader) Read() ([]string, error) {
	for {
		line, err := b.readLine()
		if err != nil {
			return nil, err
		}
		b.line++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		b.row = b.row[:0]
		if isArrival(line) {
			return append(b.row, line), nil
		}
		for cell := range strings.FieldsSeq(line) {
			b.row = append(b.row, cell)
		}
		return b.row, nil
	}
}

// readLine returns the next line, or io.EOF.
func (b *blankReader) readLine() (string, error) {
	b.long = b.long[:0]
	for {
		part, err := b.r.ReadSlice('\n')
		switch {
		case err == nil && len(b.long) == 0:
			return string(part), nil
		case err == nil:
			return string(append(b.long, part...)), nil
		case err == io.EOF && len(part)+len(b.long) > 0:
			return string(append(b.long, part...)), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
		b.long = append(b.long, part...)
	}
}
