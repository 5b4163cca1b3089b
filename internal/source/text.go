package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/table"
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
	// maxFooter is the most lines behind a table.
	maxFooter = 50
)

// cellReader reads the cells of a table of text: [rows].
//
// Blanks around names and cells and a byte order mark do not count. A cell that
// is empty or holds a word for missing is missing, see [table.IsMissing] and
// [isMissingNumber]: NaN as a number, not known elsewhere. A line
// that is a date and time and nothing else says when the samples after it
// arrived; the first gives the time of the first row. Lines that repeat the header
// are skipped. A last line without its end is dropped: it may be half written. Errors
// name file, line, column and remedy.
type cellReader struct {
	name    string
	dialect dialect
	notes   []string // on how the text is written
	limit   *table.RowLimit
	whole   *wholeLines
	lines   lineReader
	header  []string   // names of the columns
	heads   [][]string // cells of the lines of the header, as they are
	row     []string   // cells of the row last read, valid until the next
	held    bool       // row was read ahead
	line    int        // that it starts on
	rows    int64      // read so far, with the header
	numbers []byte     // a cell with a decimal point for its comma

	arrivals    int64 // lines that are an arrival time
	firstArrive time.Time
	lastArrive  time.Time
	lastAt      int64 // rows before the last of them

	warn    func(text string) // called with what a person should know; may be nil
	repeats skipped           // lines that repeat the header

	comments skipped // lines that begin with a mark of comments
	foot     string  // what was left out behind the table
	numbered bool    // a row had a number or a time
	leads    bool    // in its first cell
	words    skipped // cells of numbers with a word for missing
	blanks   skipped // rows of which each cell is empty
	ended    bool    // the notes about the whole table were given
}

// skipped counts what a table has that is left out, and where the first was.
type skipped struct {
	count int64
	first string
}

func (s *skipped) add(format string, args ...any) {
	if s.count++; s.count == 1 {
		s.first = fmt.Sprintf(format, args...)
	}
}

// newCellReader reads up to the first row under the header.
func newCellReader(r io.Reader, name string, d dialect) (*cellReader, error) {
	plain, notes, err := table.PlainText(r)
	if err != nil {
		return nil, fmt.Errorf("source: %s: %w", name, err)
	}
	whole := &wholeLines{r: plain}
	c := &cellReader{name: name, dialect: d, notes: notes, whole: whole, limit: &table.RowLimit{In: whole, Left: maxRow}}
	br := bufio.NewReaderSize(c.limit, readAhead)
	head, err := br.Peek(readAhead)
	if err != nil && err != io.EOF {
		return nil, c.rowError(fmt.Errorf("source: %s: %w", name, err))
	}
	c.dialect.complete(head)
	for range c.dialect.skip {
		c.limit.Left = maxRow
		if err := skipLine(br); err != nil && err != io.EOF {
			return nil, c.rowError(fmt.Errorf("source: %s: %w", name, err))
		} else if err == io.EOF {
			return nil, c.rowError(err)
		}
	}
	c.lines = newLineReader(br, "source: "+name, c.dialect.separator, c.dialect.skip)
	if err := c.readHeader(); err != nil {
		return nil, err
	}
	return c, nil
}

// behindLines returns the text behind so many lines.
func behindLines(text []byte, n int) []byte {
	for range n {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
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
	var named []bool // by a cell of its own
	defer func() {
		for j := range c.header {
			if j < len(named) && !named[j] {
				c.header[j] = ""
			}
		}
	}()
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
		if i == 0 {
			c.row = withoutComment(c.row, c.dialect.separator)
		}
		c.heads = append(c.heads, cloneCells(c.row))
		if i > 0 && len(c.row) > len(c.header) {
			c.header = append(c.header, make([]string, len(c.row)-len(c.header))...)
		}
		units := i > 0 && i == c.dialect.header-1 && table.AllUnits(c.row)
		var left string
		for j, cell := range c.row {
			if !utf8.ValidString(cell) {
				return fmt.Errorf("source: %s:%d: the name of column %d, %q, is not valid UTF-8: save the table as UTF-8", c.name, c.line, j+1, cell)
			}
			if i == 0 && j == len(c.header) {
				c.header = append(c.header, "")
			}
			if j == len(named) {
				named = append(named, false)
			}
			named[j] = named[j] || strings.TrimSpace(cell) != ""
			if c.dialect.header > 1 {
				cell = strings.Join(strings.Fields(cell), " ")
			}
			if cell = strings.TrimSpace(cell); cell == "" && i < c.dialect.header-1 {
				cell = left
			}
			if _, _, ok := table.SplitUnit("x " + cell); units && cell != "" && !ok {
				cell = "[" + cell + "]"
			}
			left = cell
			c.header[j] = strings.TrimSpace(c.header[j] + " " + cell)
		}
	}
	return nil
}

// withoutComment returns the cells of a line of names without the mark of a comment before them.
func withoutComment(row []string, separator rune) []string {
	if len(row) < 2 || !isComment(row[0]) {
		return row
	}
	name := strings.TrimSpace(strings.TrimLeft(row[0], "#%/;"))
	if name == "" && separator == ' ' || slices.Contains([]string{"header", "headers", "columns", "fields", "names"}, strings.ToLower(strings.Trim(row[0], "#%/; "))) {
		return row[1:]
	}
	if name != "" {
		row[0] = name
	}
	return row
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
	for {
		if err := c.read(); err != nil {
			c.end()
			return err
		}
		switch {
		case c.repeatsHeader():
			c.repeats.add("line %d", c.line)
		case isComment(c.row[0]) && (len(c.row) != len(c.header) || strings.HasPrefix(c.row[0], "# ")):
			c.comments.add("line %d", c.line)
		case len(c.row) > 1 && len(withoutEmpty(c.row)) == 0:
			c.blanks.add("line %d", c.line)
		default:
			return c.fit()
		}
		c.rows--
	}
}

// fit makes the row as wide as the header: empty cells at its end may be missing or too many. It returns io.EOF at a footer, and an
// error for a row that is not of this table.
func (c *cellReader) fit() error {
	if len(c.row) > len(c.header) {
		c.row = c.row[:max(len(c.header), len(withoutEmpty(c.row)))]
	}
	for len(c.row) < len(c.header) && (c.header[len(c.row)] == "" && c.row[0] != "" || len(c.row) == len(c.header)-1 && isRemark(c.header[len(c.row)])) {
		c.row = append(c.row, "")
	}
	if len(c.row) == len(c.header) && !(len(c.row) > 1 && (c.isText() || c.isSummary())) {
		return nil
	}
	row, line := cloneCells(c.row), c.line
	isWord := func(cell string) bool { return kindOf(strings.TrimSpace(cell)) == word }
	if (slices.ContainsFunc(row, isWord) || !slices.ContainsFunc(row, hasValue)) && c.footer() {
		c.rows--
		c.foot = fmt.Sprintf("%s: lines after the table, left out: the first is line %d, %q", c.name, line, shorten(strings.Join(row, string(c.dialect.separator))))
		c.end()
		return io.EOF
	}
	if len(row) == len(c.header) && slices.ContainsFunc(row, isValue) {
		return fmt.Errorf("source: %s:%d: the row begins with %q, and rows before it with a number or a time: correct the cell, or leave it empty if its value is missing", c.name, line, shorten(row[0]))
	}
	if len(row) == len(c.header) {
		return fmt.Errorf("source: %s:%d: another table begins here, with the names %s: save each table as a file of its own", c.name, line, shorten(strings.Join(row, ", ")))
	}
	return table.CheckWidth("source: "+c.name, line, len(row), len(c.header))
}

// isText reports whether no cell of the row is a number or a time or is missing, and the row before had some.
func (c *cellReader) isText() bool {
	if !c.numbered {
		c.numbered, c.leads = slices.ContainsFunc(c.row, hasValue), hasValue(c.row[0])
		return false
	}
	for _, cell := range slices.Backward(c.row) { // times, which take longer to read, come first
		if kindOf(strings.TrimSpace(cell)) != word {
			return false
		}
	}
	return true
}

// isSummary reports whether the row begins with a word, such as Mean or Total, and the first row with a number or a time.
func (c *cellReader) isSummary() bool {
	cell := strings.TrimSpace(c.row[0])
	if !c.leads || cell == "" || cell[0] < 'A' {
		return false
	}
	return kindOf(cell) == word && !c.dialect.missing.word(cell)
}

// footer reports whether what follows the row is the end of the file, but for a few lines without numbers.
func (c *cellReader) footer() bool {
	for range maxFooter {
		c.limit.Left = maxRow
		row, line, err := c.lines.read()
		if err == io.EOF {
			return true
		}
		if err != nil || len(row) == len(c.header) && slices.ContainsFunc(row, hasValue) && (!c.leads || hasValue(row[0])) { // samples;400 is not a row of numbers
			return false
		}
		c.line = line
	}
	return false
}

// repeatsHeader reports whether the row is a line of the header once more, as recorders
// write it that were started again. A line of numbers is a row.
func (c *cellReader) repeatsHeader() bool {
	same := func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }
	row := withoutEmpty(c.row)
	if len(row) > 0 {
		row[0] = strings.TrimPrefix(row[0], "\ufeff") // files were joined
	}
	for _, head := range c.heads {
		if head = withoutEmpty(head); slices.EqualFunc(row, head, same) {
			return slices.ContainsFunc(head, func(cell string) bool { return !isMissingNumber(strings.TrimSpace(cell)) && !isNumber(cell) })
		}
	}
	return false
}

// withoutEmpty returns cells without empty ones at the end.
func withoutEmpty(cells []string) []string {
	for len(cells) > 0 && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}
	return cells
}

// end says once what was left out of the table.
func (c *cellReader) end() {
	if c.ended || c.warn == nil {
		return
	}
	c.ended = true
	for _, left := range []struct {
		skipped
		what, then string
	}{
		{c.repeats, "lines that repeat the header, skipped", ""},
		{c.comments, "lines of comment among the rows, skipped", ""},
		{c.blanks, "rows without a value, skipped", "; if each is a sample that was lost, write NaN in its cells"},
		{c.words, "cells with a word in place of a number, taken as missing values", ""},
	} {
		if left.count > 0 {
			c.warn(fmt.Sprintf("%s: %s: %d, the first is %s%s", c.name, left.what, left.count, left.first, left.then))
		}
	}
	if c.foot != "" {
		c.warn(c.foot)
	}
	if c.whole.ended && len(bytes.TrimSpace(c.whole.tail)) > 0 {
		c.warn(fmt.Sprintf("%s: the last line, %q, has no line end and may be half written: dropped; end the line if it is whole", c.name, shorten(string(c.whole.tail))))
	}
}

// cloneCells returns a copy of the cells that does not change with the next row.
func cloneCells(row []string) []string {
	row = slices.Clone(row)
	for i, cell := range row {
		row[i] = strings.Clone(cell)
	}
	return row
}

// read reads the next row that is not an arrival time.
func (c *cellReader) read() error {
	for {
		c.limit.Left = maxRow
		before := c.line
		row, line, err := c.lines.read()
		if len(row) > 0 {
			c.line = line
		} else if errors.Is(err, table.ErrLongRow) {
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
	case err == io.EOF && c.rows <= header && len(bytes.TrimSpace(c.whole.tail)) > 0:
		return fmt.Errorf("source: %s: there is no whole row under the header: the last line, %q, has no line end and may be half written: end the line if it is whole, or record again", c.name, shorten(string(c.whole.tail)))
	case err == io.EOF && c.rows == 0:
		return fmt.Errorf("source: %s: the file is empty: record again", c.name)
	case err == io.EOF && c.rows <= header:
		return fmt.Errorf("source: %s: there is no row under the header: record again", c.name)
	case err == io.EOF:
		return io.EOF
	case errors.Is(err, table.ErrLongRow):
		return fmt.Errorf("source: %s:%d: the row is longer than %d bytes: close the open quote (\"), or check that this is a table of text", c.name, c.line, maxRow)
	}
	return err
}

func (c *cellReader) errorf(col int, format string, args ...any) error {
	return fmt.Errorf("source: %s:%d: column %q: %q %s", c.name, c.line, c.header[col], shorten(c.cell(col)), fmt.Sprintf(format, args...))
}

// shorten returns the beginning of text, for a message.
func shorten(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return text
}

// cell returns a cell of the row last read without the blanks around it.
func (c *cellReader) cell(col int) string { return strings.TrimSpace(c.row[col]) }

// number returns the number in a cell: NaN if it is missing, never infinite.
func (c *cellReader) number(col, bits int) (float64, error) {
	cell := c.cell(col)
	switch cell {
	case "", "NaN", "nan", "NA":
		return math.NaN(), nil
	}
	v, err := c.parse(cell, bits)
	if c.dialect.missing.word(cell) || (err != nil || math.IsInf(v, 0)) && isMissingNumber(cell) || math.Abs(math.Abs(v)/9.905e37-1) < 1e-3 || c.dialect.missing.number(v) { // 9.9e37 and 9.91e37 of SCPI: infinity and not a number
		c.words.add("line %d, column %q: %q", c.line, c.header[col], shorten(cell))
		return math.NaN(), nil
	}
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && math.IsInf(v, 0):
		return 0, c.errorf(col, "is beyond the range of %d-bit numbers: correct it, or leave the cell empty if it is missing", bits)
	case c.dialect.comma && c.dialect.separator != ',' && !c.dialect.stated && strings.IndexByte(cell, '.') >= 0 && grouped.MatchString(cell):
		return 0, c.errorf(col, "may have a point between thousands or before decimals, and other numbers have a decimal comma: give `trainer init` --decimal comma if it divides thousands, or write all alike")
	case err != nil && strings.Contains(cell, ",") && c.dialect.guess:
		return 0, c.errorf(col, "is not a number: give `trainer init` --decimal comma if the comma is before decimals, or remove the commas between thousands")
	case err != nil && strings.Contains(cell, ","):
		return 0, c.errorf(col, "is not a number: write a decimal point, or set `decimal: comma` under the layout's `recording`")
	case err != nil && c.dialect.header > 0 && c.rows == int64(c.dialect.header)+1:
		return 0, c.errorf(col, "is not a number: correct it, or leave the cell empty if it is missing; if the line belongs to the header, as one of units does, set `header: %d` under the layout's `recording`", c.dialect.header+1)
	case err != nil:
		return 0, c.errorf(col, "is not a number: correct it, or leave the cell empty if it is missing")
	}
	return v, nil
}

// grouped is a whole number whose thousands are divided by points.
var grouped = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}(\.\d{3})+$`)

func (c *cellReader) parse(cell string, bits int) (float64, error) {
	if i := strings.IndexByte(cell, ','); i >= 0 && c.dialect.comma {
		whole := cell[:i]
		if strings.Contains(whole, ".") && grouped.MatchString(whole) {
			whole = strings.ReplaceAll(whole, ".", "")
		}
		c.numbers = append(append(append(c.numbers[:0], whole...), '.'), cell[i+1:]...)
		cell = string(c.numbers)
	} else if c.dialect.comma && c.dialect.stated && c.dialect.separator != ',' && strings.IndexByte(cell, '.') >= 0 && grouped.MatchString(cell) {
		cell = strings.ReplaceAll(cell, ".", "")
	}
	v, err := strconv.ParseFloat(cell, bits)
	if err != nil && strings.HasPrefix(cell, "−") { // the minus of typesetters
		return strconv.ParseFloat("-"+strings.TrimPrefix(cell, "−"), bits)
	}
	return v, err
}

func (c *cellReader) text(col int) (string, error) {
	if col < 0 {
		return "", nil
	}
	cell := c.cell(col)
	if table.IsMissing(cell) {
		return "", nil
	}
	if !utf8.ValidString(cell) {
		return "", c.errorf(col, "is not valid UTF-8: save the table as UTF-8")
	}
	return cell, nil
}

func (c *cellReader) said(col int) bool { return c.cell(col) != "" }

func (c *cellReader) moment(col, date int, by *Stamps) (moment, error) {
	cell := c.cell(col)
	if table.IsMissing(cell) {
		return moment{form: absent}, nil
	}
	if date >= 0 {
		cell = c.cell(date) + " " + cell
	} else if s, err := c.parse(cell, 64); err == nil && by.format == "" {
		return moment{seconds: s}, nil
	}
	return momentOf(cell, by, func(text string) error { return c.errorf(col, "%s", text) })
}

// momentOf reads a date and time, or a time of the day, which counts from midnight.
func momentOf(cell string, by *Stamps, wrong func(text string) error) (moment, error) {
	m, ok := by.parse(cell)
	if ok {
		return m, nil
	}
	if s, ok := SecondsOf(cell); ok {
		return moment{seconds: s}, nil
	}
	switch {
	case by.format != "":
		return m, wrong("is not a time as `time_format` of the layout's `recording` has it: correct one of them")
	case IsSlashed(cell):
		return m, wrong("may be two days: set `time_format` under the layout's `recording`, as M/D/YYYY hh:mm:ss or D/M/YYYY hh:mm:ss")
	}
	return m, wrong("is not a time: write RFC 3339, as 2026-01-31T14:05:09.25Z, or seconds, or set `time_format` under the layout's `recording`, as DD.MM.YYYY hh:mm:ss")
}

// wholeLines passes lines on that have their end. What follows the last line end is held
// back, up to maxRow bytes, and left in tail.
type wholeLines struct {
	r     io.Reader
	ready []byte // whole lines, to be passed on
	tail  []byte // behind them
	long  bool   // the line is too long for a row: it is passed on, and who reads it says so
	ended bool   // r has no more
	err   error
}

func (w *wholeLines) Read(p []byte) (int, error) {
	for len(w.ready) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, err := w.r.Read(p)
		w.err, w.ended = err, err == io.EOF
		end := bytes.LastIndexByte(p[:n], '\n') + 1
		if end > 0 && len(w.tail) == 0 { // nothing waits before it: it need not be copied
			w.long = false
			w.tail = append(w.tail, p[end:n]...)
			return end, nil
		}
		if end == 0 && w.long {
			return n, nil
		}
		whole := len(w.tail) + end
		w.tail = append(w.tail, p[:n]...)
		if w.long = end == 0 && len(w.tail) > maxRow; w.long {
			whole = len(w.tail)
		} else if end == 0 {
			continue
		}
		w.ready = append(w.ready[:0], w.tail[:whole]...)
		w.tail = append(w.tail[:0], w.tail[whole:]...)
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	return n, nil
}
