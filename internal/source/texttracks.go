package source

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// textFile is a table of text whose columns are looked at as tracks.
type textFile struct {
	path    string
	dialect dialect
	notes   []string // on how the text is encoded
	head    int      // lines before the first row
	direct  bool     // the bytes of the file are UTF-8
	track.Listing
}

// openText opens the table at path in the dialect that rec states, or else the
// one that it seems to have.
func openText(path string, rec signal.Recording) (track.File, error) {
	t := &textFile{path: path}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	defer f.Close()
	if t.dialect, err = dialectOf(rec); err != nil {
		return nil, fmt.Errorf("source: %s: %w", path, err)
	}
	t.dialect.guess = !rec.HasColumns() && rec.Origins == nil
	cells, err := newCellReader(f, path, t.dialect)
	if err != nil {
		return nil, err
	}
	t.dialect = cells.dialect
	t.notes = cells.notes
	t.direct = len(cells.notes) == 0
	for _, name := range cells.header {
		_, unit, _ := table.SplitUnit(name)
		t.Infos = append(t.Infos, track.Info{Name: name, Unit: unit, Len: -1, Start: cells.firstArrive})
	}
	columns := make([]firstCells, len(t.Infos))
	for row := range 100 { // rows that show which columns are text
		if err := cells.next(); err != nil {
			break // it comes again when the table is read
		}
		if row == 0 {
			t.head = cells.line - 1
		}
		for i := range t.Infos {
			columns[i].add(cells, i)
		}
	}
	for i := range t.Infos {
		f := &columns[i]
		if d := t.dialect; d.guess && !d.stated && f.grouped > 4 && f.grouped == f.fractions && f.hundreds > 4 {
			return nil, fmt.Errorf("source: %s: column %q has numbers such as %s, and numbers from 100 to 999 without a point: give `trainer init` --decimal comma if the point divides thousands, or --decimal point", path, t.Infos[i].Name, f.example)
		}
		t.settle(i, f)
	}
	if t.dialect.guess && apart(columns) {
		t.notes = append(t.notes, fmt.Sprintf("line %d has other numbers than all rows below it, and is the first sample: remove the line if it has sensitivities or numbers of channels", columns[0].at))
	}
	t.describe()
	return t, nil
}

// firstCells are the cells of the first rows of a column that are not missing.
type firstCells struct {
	numbers, fractions int
	grouped, hundreds  int      // numbers such as 1.234, and such as 123
	example            string   // of the former
	words              []string // different ones, which are not numbers
	count, line        int      // of these cells, and of the first

	first, low, high float64 // the first number, and the bounds of those in other rows
	at               int     // the line of the first row
}

func (f *firstCells) add(cells *cellReader, col int) {
	cell := cells.cell(col)
	if f.at == 0 {
		f.at = cells.line
	}
	if isMissingNumber(cell) || cells.dialect.missing.word(cell) {
		return
	}
	if x, err := cells.parse(cell, 64); err == nil {
		f.number(x, cell)
		return
	}
	if f.count++; f.count == 1 {
		f.line = cells.line
	}
	if !slices.Contains(f.words, cell) {
		f.words = append(f.words, strings.Clone(cell))
	}
}

func (f *firstCells) number(x float64, cell string) {
	if f.numbers++; f.numbers == 1 {
		f.first, f.low, f.high = x, math.Inf(1), math.Inf(-1)
	} else {
		f.low, f.high = min(f.low, x), max(f.high, x)
	}
	switch digits := strings.TrimLeft(cell, "+-"); {
	case strings.ContainsAny(cell, ".,"):
		if f.fractions++; grouped.MatchString(cell) {
			f.grouped, f.example = f.grouped+1, strings.Clone(cell)
		}
	case len(digits) == 3 && digits[0] != '0':
		f.hundreds++
	}
}

// varies reports whether the numbers of the rows below the first one differ, and far whether that one is far from all of them.
func (f *firstCells) varies() bool { return f.numbers >= 20 && f.high > f.low }
func (f *firstCells) far() bool {
	span := 5 * (f.high - f.low)
	return f.first < f.low-span || f.first > f.high+span
}

// apart reports whether the first row is far from all others in every column of numbers that change, but for one that may count
// time, or numbers the columns.
func apart(columns []firstCells) bool {
	far, near, counts, fractions := 0, 0, len(columns) > 2, 0
	from := columns[0].first
	for i := range columns {
		f := &columns[i]
		counts = counts && f.first == from+float64(i)
		fractions += f.fractions
		switch {
		case !f.varies():
		case f.far():
			far++
		default:
			near++
		}
	}
	counts = counts && (from == 0 || from == 1)
	return far > 1 && near < 2 || counts && fractions > 0
}

// manyWords is how many different words a column of numbers has for values that are missing, at most.
const manyWords = 3

// settle finds out whether a column is of text. A few words without digits among numbers with decimals are of values that are missing.
func (t *textFile) settle(i int, f *firstCells) {
	name := t.Infos[i].Name
	switch {
	case f.count == 0:
	case t.dialect.guess && 2*f.count < f.numbers && f.fractions > 0 && len(f.words) <= manyWords && !slices.ContainsFunc(f.words, hasDigit):
		for _, w := range f.words {
			t.takeForMissing(name, w, f.line)
		}
	case f.count < f.numbers:
		t.Infos[i].Text = true
		t.notes = append(t.notes, fmt.Sprintf("column %q has %q in line %d, among numbers, and is taken for text: correct the cell if the column is a channel", name, shorten(f.words[0]), f.line))
	default:
		t.Infos[i].Text = true
	}
}

func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

// takeForMissing takes a word for a missing value in all columns of numbers.
func (t *textFile) takeForMissing(column, word string, line int) {
	if t.dialect.missing.word(word) {
		return
	}
	t.dialect.missing = missingOf(append(slices.Clone(t.dialect.missing.cells), word))
	t.notes = append(t.notes, fmt.Sprintf("column %q has %q in line %d, among numbers: it is taken for a missing value, in `missing` of the layout's `recording`", column, shorten(word), line))
}

// ErrOther is why reading columns of text ends if later rows are written otherwise than the first: the file knows that now, so that they can be
// read again.
var ErrOther = errors.New("source: columns are written otherwise than in the first rows")

// learn takes the cell at hand of a column that was taken for numbers, and is none. It reports false if no other way to read the column helps: if it had
// fractions, it is a damaged number.
func (t *textFile) learn(i int, cells *cellReader, fractions bool) bool {
	cell := cells.cell(i)
	before, after, comma := strings.Cut(cell, ",")
	d := &t.dialect
	switch {
	case d.guess && fractions && cell != "" && !hasDigit(cell) && len(d.missing.cells) < manyWords:
		t.takeForMissing(t.Infos[i].Name, strings.Clone(cell), cells.line)
	case !d.guess || fractions || grouped.MatchString(cell):
		return false
	case comma && isNumber(before+"."+after):
		if d.stated || d.comma || d.separator == ',' || thousands(before, after) {
			return false
		}
		d.comma = true
	default:
		t.Infos[i].Text = true
		t.notes = append(t.notes, fmt.Sprintf("column %q has %q in line %d, behind numbers, and is taken for text: correct the cell if the column is a channel", t.Infos[i].Name, shorten(cell), cells.line))
	}
	t.describe()
	return true
}

// describe makes the remarks that the notes and the dialect are.
func (t *textFile) describe() {
	t.Remarks = append(slices.Clone(t.notes), t.dialect.String())
}

// Written returns how the recording is written: what a layout needs to say under `recording`, without columns. It is empty for tables as layouts expect them.
func (t *textFile) Written() signal.Recording { return t.dialect.recording() }

// String describes the dialect in words.
func (d dialect) String() string {
	lines := func(n int) string {
		if n == 1 {
			return "1 line"
		}
		return fmt.Sprintf("%d lines", n)
	}
	words := []string{"no header"}
	if d.header > 0 {
		words[0] = lines(d.header) + " of header"
	}
	if d.skip > 0 {
		words = append(words, lines(d.skip)+" before it skipped")
	}
	words = append(words, "separated by "+cmp.Or(separatorWord(d.separator), fmt.Sprintf("%q", d.separator)))
	if d.comma {
		words = append(words, "decimal comma")
	}
	return "text, " + strings.Join(words, ", ")
}

func (t *textFile) Close() error { return nil }

func (t *textFile) Open(tracks []int) (track.Reader, error) {
	f, err := os.Open(t.path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	cells, err := newCellReader(f, t.path, t.dialect)
	if err != nil {
		f.Close()
		return nil, err
	}
	r := &textReader{t: t, file: f, cells: cells, tracks: tracks, fractions: make([]bool, len(tracks))}
	cells.warn = func(text string) { r.notes = append(r.notes, strings.TrimPrefix(text, t.path+": ")) }
	for _, i := range tracks {
		r.values = append(r.values, t.Infos[i].Values(blockRows))
	}
	return r, nil
}

// textReader reads columns of a table. It closes the file at its end.
type textReader struct {
	t         *textFile
	file      *os.File
	cells     *cellReader
	tracks    []int
	values    []track.Values
	notes     []string // about what was left out
	fractions []bool   // of tracks of numbers: some have decimals
	rows      int64    // read so far
	bytes     int64    // of them
	left      int64    // rows left out, about
	jumped    bool
	err       error
}

func (r *textReader) Read(most int) ([]track.Values, int, error) {
	for i := range r.values {
		r.values[i].Numbers, r.values[i].Texts = r.values[i].Numbers[:0], r.values[i].Texts[:0]
	}
	n := 0
	for n < min(most, blockRows) && r.err == nil {
		if r.err = r.cells.next(); r.err == nil {
			if r.err = r.row(); r.err == nil {
				n++
			}
		}
		if r.err != nil {
			r.finish()
		}
	}
	if n == 0 {
		return nil, 0, r.err
	}
	for i := range r.values { // a row with an error is left out whole
		r.values[i] = r.values[i].Slice(0, n)
	}
	return r.values, n, nil
}

// Jump goes on at the first whole line behind a share of the bytes.
func (r *textReader) Jump(share float64) (left int64, ok bool, err error) {
	fail := func(err error) (int64, bool, error) {
		r.err = fmt.Errorf("source: %s: %w", r.t.path, err)
		return 0, true, r.err
	}
	if r.err != nil { // the rows have ended, and the file is closed
		return 0, true, nil
	}
	info, err := r.file.Stat()
	if err != nil {
		return fail(err)
	}
	at, err := r.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fail(err)
	}
	to := int64(share * float64(info.Size()))
	switch {
	case !r.t.direct:
		return -1, false, nil // packed bytes do not say how many rows they hold
	case to <= at:
		return 0, true, nil
	}
	head := make([]byte, readAhead)
	n, err := r.file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fail(err)
	}
	whole := bytes.Count(head[:n], []byte("\n")) >= r.t.head
	names := head[:n-len(behindLines(head[:n], r.t.head))]
	if _, err := r.file.Seek(to, io.SeekStart); err != nil {
		return fail(err)
	}
	behind := bufio.NewReaderSize(r.file, readAhead)
	if err := skipLine(behind); !whole || err != nil {
		return 0, false, nil
	}
	name := fmt.Sprintf("%s, from byte %d on", r.t.path, to)
	cells, err := newCellReader(io.MultiReader(bytes.NewReader(names), behind), name, r.t.dialect)
	if err != nil {
		r.err = err
		return 0, true, err
	}
	before := r.cells
	cells.repeats, cells.comments, cells.words, cells.blanks, cells.warn = before.repeats, before.comments, before.words, before.blanks, before.warn
	r.cells, r.jumped = cells, true
	left = max(1, to*r.rows/max(r.bytes, 1)-r.rows-r.left)
	r.left += left
	return left, true, nil
}

// row takes the row last read.
func (r *textReader) row() (other error) {
	r.rows++
	for _, cell := range r.cells.row {
		r.bytes += int64(len(cell)) + 1
	}
	for k, i := range r.tracks {
		v := &r.values[k]
		if r.t.Infos[i].Text {
			v.Texts = append(v.Texts, strings.Clone(r.cells.cell(i)))
			continue
		}
		x, err := r.cells.number(i, 64)
		if err != nil && r.t.learn(i, r.cells, r.fractions[k]) {
			other = ErrOther
			continue
		} else if err != nil {
			return err
		}
		r.fractions[k] = r.fractions[k] || x == x && strings.ContainsAny(r.cells.cell(i), ".,")
		v.Numbers = append(v.Numbers, x)
	}
	return other
}

// finish closes the file and notes what was left out and what arrival times say.
func (r *textReader) finish() {
	r.file.Close()
	c := r.cells
	r.t.Remarks = append(r.t.Remarks[:len(r.t.notes)+1], r.notes...)
	if c.arrivals > 1 && errors.Is(r.err, io.EOF) && !r.jumped {
		note := fmt.Sprintf("%d arrival times between the rows", c.arrivals)
		if s := c.lastArrive.Sub(c.firstArrive).Seconds(); s > 0 && !math.IsInf(s, 0) {
			note += fmt.Sprintf("; by the clock of the recorder %.5g rows a second arrived", float64(c.lastAt)/s)
		}
		r.t.Remarks = append(r.t.Remarks, note)
	}
}
