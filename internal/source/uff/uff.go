// Package uff reads universal files (UFF, UNV): the time responses in their data sets 58, as text or binary (58b).
//
// A file is a chain of data sets, each between two lines of -1. A data set 58 is eleven lines that say what it is, and its
// values: one function at one point and in one direction. Time responses at an even rate are channels; other functions
// and other data sets are left out, with a note.
//
// Sources: SDRC, "Universal Dataset Number: 58"; UC-SDRL, "The Binary 58 Universal file Format". Values are checked against
// pyuff.
package uff

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
)

// Format is UFF.
var Format = track.Format{
	Name: "uff", Endings: []string{".uff", ".unv", ".uf"}, New: newFile,
	Like: regexp.MustCompile(`^    -1 *\r?\n {0,5}\d{1,6}(b[ 0-9]*)? *\r?\n`),
}

const (
	maxSets = 1 << 16 // functions that a file may have
	header  = "151"   // data sets that say nothing of functions
	units   = "164"
)

// file is an open universal file: a [track.Contents] of its time responses.
type file struct {
	name string
	in   io.ReaderAt
	size int64
	sets []set
	track.Joined
}

// set is a data set 58 that can be read.
type set struct {
	number   int    // among all data sets, from 1
	where    string // in the file it begins
	id, date string // ID lines 1 and 3
	response string // point and direction
	label    string // of the values
	unit     string
	count    int64   // values
	begin    float64 // s
	step     float64 // s from one value to the next
	double   bool
	parts    int // numbers of a value: 1, or 2 if it is complex
	at       int64
	line     int              // before the first value
	order    binary.ByteOrder // nil: the values are text
}

// newFile reads which functions a file of the given size holds; name names it in errors. The caller keeps in and closes it.
func newFile(in io.ReaderAt, size int64, name string) (track.Contents, error) {
	f := &file{name: name, in: in, size: size}
	s := &scanner{in: in, size: size}
	s.seek(0)
	var left, others []string
	for number := 1; ; number++ {
		where, reason, err := f.next(s, number, &others)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("uff: %s: data set %d, which begins at %s: %w", name, number, where, err)
		}
		if reason != "" {
			left = append(left, fmt.Sprintf("data set %d at %s is left out: %s", number, where, reason))
		}
		if len(f.sets)+len(left) > maxSets {
			return nil, fmt.Errorf("uff: %s: holds more than %d functions: export fewer into one file", name, maxSets)
		}
	}
	if len(others) > 0 {
		left = append(left, fmt.Sprintf("data sets without functions are left out: %s", shortList(others, ", ")))
	}
	if len(f.sets) == 0 {
		return nil, fmt.Errorf("uff: %s: holds no time response at an even rate (%s): export the time signals as data set 58, function type 1", name, shortList(left, "; "))
	}
	if len(left) > 0 {
		f.Remark("%s", shortList(left, "; "))
	}
	f.Join(f.pieces())
	return f, nil
}

// shortList joins the first of several texts, and counts the others.
func shortList(texts []string, by string) string {
	if n := len(texts); n > 5 {
		texts = append(texts[:5:5], fmt.Sprintf("and %d more", n-5))
	} else if n == 0 {
		return "it has no data set"
	}
	return strings.Join(texts, by)
}

// next reads the next data set and keeps it if it is a time response. Others are listed by their number; reason says
// why a function cannot be a channel.
func (f *file) next(s *scanner, number int, others *[]string) (where, reason string, err error) {
	for {
		if err := s.next(); err != nil {
			return "", "", err
		}
		if where = s.where(); isMark(s.text) {
			break
		}
		if strings.TrimSpace(s.text) != "" {
			return where, "", fmt.Errorf("%.20q is not the line of -1 with which it begins: the file is damaged, or is not a universal file; export it again", s.text)
		}
	}
	if err := s.next(); err != nil {
		return where, "", err // a mark too many at the end
	}
	kind := strings.Fields(s.text)
	d := set{number: number, where: where}
	switch {
	case len(kind) > 0 && kind[0] == "58":
		if reason, err = d.readHead(s); err == nil {
			d.at, d.line = s.at, s.line
			err = s.toMark()
		}
	case len(kind) > 0 && kind[0] == "58b":
		reason, err = d.readBinary(s, kind[1:])
	default:
		if name := cut(s.text, 0, 6); name != header && name != units && len(*others) < 1000 && !slices.Contains(*others, name) {
			*others = append(*others, name)
		}
		return where, "", s.toMark()
	}
	if err == nil && reason == "" {
		f.sets = append(f.sets, d)
	}
	return where, reason, err
}

// readBinary reads what a data set 58b is, and passes over its values.
func (d *set) readBinary(s *scanner, head []string) (reason string, err error) {
	var n [4]int64 // byte order, floating-point format, lines, bytes
	for i := range n {
		if i == len(head) {
			return "", fmt.Errorf("its line %q does not say the order and the number of its bytes: export it again", s.text)
		}
		if n[i], err = strconv.ParseInt(head[i], 10, 48); err != nil || n[i] < 0 {
			return "", fmt.Errorf("%q in its line %q is not a number: export it again", head[i], s.text)
		}
	}
	if reason, err = d.readHead(s); err != nil {
		return "", err
	}
	for range n[2] - 11 {
		if err := s.next(); err != nil {
			return "", errCut
		}
	}
	d.at = s.at
	d.order = binary.LittleEndian
	if n[0] == 2 {
		d.order = binary.BigEndian
	}
	if reason == "" && (n[0] != 1 && n[0] != 2 || n[1] != 2) {
		reason = fmt.Sprintf("its numbers are of byte order %d and floating-point format %d; 1 or 2 and 2 (IEEE 754) are supported", n[0], n[1])
	}
	// Writers state the bytes of complex values and of those with an abscissa as half of what they are.
	need, x := d.count*int64(d.parts)*d.bytes(), d.count*4
	for i, size := range []int64{need, n[3], need + x, need + 2*x} {
		if s.marked(s.at + size) {
			s.seek(s.at + size)
			return reason, s.toMark()
		}
		if i == 0 && reason == "" {
			break // its values would be others
		}
	}
	return "", fmt.Errorf("its %d values take %d bytes and it says that it has %d, but the line of -1 that ends it does not follow those: the file is cut off or damaged; copy it again, or export it again", d.count, need, n[3])
}

// bytes returns how long a number is in a data set 58b.
func (d *set) bytes() int64 {
	if d.double {
		return 8
	}
	return 4
}

// functions are the names of function types.
var functions = []string{
	"a function of an unknown type", "", "an auto spectrum", "a cross spectrum", "a frequency response function", "a transmissibility",
	"a coherence", "an auto correlation", "a cross correlation", "a power spectral density", "an energy spectral density",
	"a probability density", "a spectrum",
}

// readHead reads the eleven lines of a data set 58. It returns why the function cannot be a channel, empty if it can.
func (d *set) readHead(s *scanner) (reason string, err error) {
	var lines [11]string
	for i := range lines {
		if err := s.next(); err != nil || isMark(s.text) {
			return "", errCut
		}
		lines[i] = s.text
	}
	d.id, d.date = stated(lines[0]), stated(lines[2])
	function, err1 := strconv.Atoi(cut(lines[5], 0, 5))
	node, err2 := strconv.Atoi(cut(lines[5], 41, 51))
	direction, err3 := strconv.Atoi(cut(lines[5], 51, 55))
	if err1 != nil || err2 != nil || err3 != nil {
		return "", fmt.Errorf("its line %q does not say function type, node and direction in columns of 5, 10 and 4: export it again", lines[5])
	}
	d.response = point(stated(cut(lines[5], 31, 41)), node, direction)
	even, kind, err := d.readForm(lines[6])
	if err != nil {
		return "", err
	}
	abscissa, _ := strconv.Atoi(cut(lines[7], 0, 10))
	unit := stated(cut(lines[7], 47, 67))
	d.label, d.unit = stated(cut(lines[8], 26, 46)), stated(cut(lines[8], 47, 67))
	perSecond, isTime := map[string]float64{"": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 1e3, "us": 1e6}[strings.ToLower(unit)]
	d.begin, d.step = d.begin/perSecond, d.step/perSecond
	switch {
	case function != 1 && !(function == 0 && abscissa == 17):
		if function >= 0 && function < len(functions) {
			return "it is " + functions[function] + ", not a time response", nil
		}
		return fmt.Sprintf("it is of function type %d, not a time response", function), nil
	case abscissa > 17 || !isTime:
		return fmt.Sprintf("its abscissa is not time in seconds, but of type %d in %q", abscissa, unit), nil
	case !even:
		return "its values are not evenly spaced: export it resampled, or as CSV with a column of times", nil
	case kind != 2 && kind != 4 && kind != 5 && kind != 6:
		return fmt.Sprintf("its values are of type %d; 2, 4, 5 and 6 are defined", kind), nil
	case !(d.step > 0) || math.IsInf(1/d.step, 0):
		return fmt.Sprintf("its values are %v s apart", d.step), nil
	case d.count < 1:
		return "it has no values", nil
	}
	return "", nil
}

// readForm reads the line that says how many values there are, how they are spaced and of which type they are.
func (d *set) readForm(line string) (even bool, kind int64, err error) {
	fields := strings.Fields(line)
	if len(fields) < 6 { // without blanks between them
		fields = []string{cut(line, 0, 10), cut(line, 10, 20), cut(line, 20, 30), cut(line, 30, 43), cut(line, 43, 56)}
	}
	var n [3]int64
	for i := range n {
		if err == nil {
			n[i], err = strconv.ParseInt(fields[i], 10, 48)
		}
	}
	if err != nil || n[1] < 0 || n[1] > 1<<40 {
		return false, 0, fmt.Errorf("its line %q does not say type, number and spacing of values: export it again", line)
	}
	d.begin, err = number(fields[3])
	if err == nil {
		d.step, err = number(fields[4])
	}
	if err != nil || d.begin-d.begin != 0 {
		return false, 0, fmt.Errorf("its line %q does not say where values begin and how far apart they are: export it again", line)
	}
	d.count, d.double, d.parts = n[1], n[0] == 4 || n[0] == 6, 1
	if n[0] == 5 || n[0] == 6 {
		d.parts = 2
	}
	return n[2] == 1, n[0], nil
}

// cut returns the text in the columns of a line, from one up to but not with another.
func cut(line string, from, to int) string {
	return strings.TrimSpace(line[min(from, len(line)):min(to, len(line))])
}

// stated returns text as UTF-8, empty if it says that there is none.
func stated(text string) string {
	if text = strings.TrimSpace(text); strings.EqualFold(text, "NONE") {
		return ""
	}
	return table.UTF8(text)
}

// point names a point and a direction, as modal analysis does: 12+Z. It is empty for node 0 without a name.
func point(entity string, node, direction int) string {
	if node != 0 || entity == "" && direction != 0 {
		if entity != "" {
			entity += ":"
		}
		entity += strconv.Itoa(node)
	}
	if i := max(direction, -direction); i > 0 && i <= 6 {
		sign := "+"
		if direction < 0 {
			sign = "-"
		}
		entity += sign + [...]string{"", "X", "Y", "Z", "RX", "RY", "RZ"}[i]
	}
	return entity
}

// pieces returns the numbers of all data sets as pieces of channels. A complex value is two channels.
func (f *file) pieces() (pieces []track.Piece) {
	names, undated := f.names(), false
	for i, d := range f.sets {
		info := track.Info{Name: names[i], Unit: d.unit, Rate: track.RoundRate(1 / d.step), Len: d.count}
		if at, ok := date(d.date); ok && math.Abs(d.begin) < 1e9 {
			info.Start = at.Add(time.Duration(d.begin * 1e9))
		} else if !ok && !undated && digits.MatchString(d.date) {
			undated = true
			f.Remark("the date %q of data set %d at %s is not as the standard writes it, 02-NOV-26 06:00:00, and is not read: name the start by --start", d.date, d.number, d.where)
		}
		for part := range d.parts {
			if d.parts == 2 {
				info.Name = names[i] + [...]string{" (re)", " (im)"}[part]
			}
			// The beginning is written with six digits.
			pieces = append(pieces, track.Piece{Info: info, Begin: d.begin, Slack: 1e-5 * math.Abs(d.begin), Column: func() (track.Column, error) { return f.column(d, part), nil }})
		}
	}
	return pieces
}

// digits tell a date in an ID line from words.
var digits = regexp.MustCompile(`\d[/.:-]\d`)

// date returns the date and time in an ID line.
func date(text string) (time.Time, bool) {
	text = strings.Join(strings.Fields(text), " ")
	for _, layout := range []string{"02-Jan-06 15:04:05", "02-Jan-2006 15:04:05", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// names returns what the channels of the data sets are called: by point and direction, by ID line 1 or by the label of their values, or by
// several of them: what tells most of them apart, and the least of it. Data sets that nothing tells apart record one channel again.
func (f *file) names() (best []string) {
	most := 0
	for _, of := range []func(d set) []string{
		func(d set) []string { return []string{d.response} },
		func(d set) []string { return []string{d.id} },
		func(d set) []string { return []string{d.label} },
		func(d set) []string { return []string{d.response, d.label} },
		func(d set) []string { return []string{d.id, d.response} },
		func(d set) []string { return []string{d.id, d.response, d.label} },
	} {
		names, different := make([]string, len(f.sets)), make(map[string]bool)
		for i, d := range f.sets {
			names[i] = strings.TrimSpace(strings.Join(of(d), " "))
			different[names[i]] = true
		}
		if !different[""] && len(different) > most {
			best, most = names, len(different)
		}
	}
	for i := range f.sets {
		if most == 0 { // nothing names them all
			best = append(best, strconv.Itoa(i+1))
		}
	}
	return best
}

// column returns a column of the numbers of a data set: of its real or imaginary part.
func (f *file) column(d set, part int) track.Column {
	fail := func(value int64, err error) error {
		return fmt.Errorf("uff: %s: data set %d, which begins at %s: value %d of %d: %w", f.name, d.number, d.where, value+1, d.count, err)
	}
	at := bufio.NewReaderSize(io.NewSectionReader(f.in, d.at, f.size-d.at), 32<<10)
	if d.order == nil {
		return &text{in: at, set: d, part: part, fail: fail}
	}
	size := d.bytes()
	if err := track.Skip(at, int64(part)*size); err != nil {
		return &text{set: d, err: fail(0, err)}
	}
	return &track.Strided{
		Stream: at, Size: int(size), Step: size * int64(d.parts), Count: d.count,
		Decode: track.Decoder('f', int(size), d.order), Fail: fail,
	}
}

// text reads numbers that are written as text.
type text struct {
	in      *bufio.Reader
	set     set
	part    int
	fail    func(value int64, err error) error
	lines   int
	numbers []float64 // of the line last read
	next    int       // of them
	read    int64     // values
	err     error
}

func (t *text) Read(dst track.Values) (n int, err error) {
	for n < len(dst.Numbers) && t.err == nil {
		if t.read == t.set.count {
			t.err = t.atEnd()
		} else if t.next+t.part >= len(t.numbers) {
			t.err = t.readLine()
		} else {
			dst.Numbers[n] = t.numbers[t.next+t.part]
			t.next += t.set.parts
			t.read++
			n++
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, t.err
}

// atEnd returns io.EOF if no number follows the last one.
func (t *text) atEnd() error {
	for t.next > len(t.numbers) { // the other part of the last value is on the next line
		if err := t.readLine(); err != nil {
			return err
		}
	}
	more := len(t.numbers) > t.next
	if !more {
		line, err := t.in.ReadSlice('\n')
		for err == nil && len(bytes.TrimSpace(line)) == 0 {
			line, err = t.in.ReadSlice('\n')
		}
		if more = !isMark(string(line)); more && err != nil {
			return t.fail(t.read, err)
		}
	}
	if more {
		return t.fail(t.read-1, errors.New("more numbers follow this value than it says: the file is damaged; export it again"))
	}
	return io.EOF
}

// readLine reads the numbers of the next line. A complex value may be on two lines.
func (t *text) readLine() error {
	rest := t.numbers[min(t.next, len(t.numbers)):]
	t.next = max(0, t.next-len(t.numbers)) // of a value whose parts are on two lines
	t.numbers = append(t.numbers[:0], rest...)
	line, err := t.in.ReadSlice('\n')
	t.lines++
	where := func(err error) error {
		if t.set.line > 0 {
			err = fmt.Errorf("line %d: %w", t.set.line+t.lines, err)
		}
		return t.fail(t.read, err)
	}
	if err == bufio.ErrBufferFull {
		return where(fmt.Errorf("the line is longer than any line of numbers: export it again"))
	}
	if err != nil && err != io.EOF {
		return t.fail(t.read, err)
	}
	if isMark(string(line)) || len(line) == 0 {
		return where(fmt.Errorf("the values end here: the file is damaged; export it again"))
	}
	width := 13
	if t.set.double {
		width = 20
	}
	for field := range strings.FieldsSeq(string(line)) {
		v, err := number(field)
		if err != nil { // numbers without a blank between them
			if t.numbers, err = fixed(t.numbers[:len(rest)], string(bytes.TrimRight(line, " \r\n")), width); err != nil {
				return where(err)
			}
			return nil
		}
		t.numbers = append(t.numbers, v)
	}
	return nil
}

// fixed appends the numbers of a line that has width columns for each.
func fixed(numbers []float64, line string, width int) ([]float64, error) {
	for at := 0; at < len(line); at += width {
		v, err := number(cut(line, at, at+width))
		if err != nil {
			return nil, fmt.Errorf("%.40q is not a number: export it again", cut(line, at, at+width))
		}
		numbers = append(numbers, v)
	}
	return numbers, nil
}

// number reads a number as Fortran writes it.
func number(field string) (float64, error) {
	v, err := strconv.ParseFloat(field, 64)
	if err != nil && strings.ContainsAny(field, "dD") {
		return strconv.ParseFloat(strings.NewReplacer("d", "e", "D", "E").Replace(field), 64)
	}
	return v, err
}
