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

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
)

// lvm is the format of measurement files of LabVIEW: a heading, and segments, each of which has a heading of its own, names and
// rows. A file without headings is a table of text.
//
// Source: NI, "Specification for the LabVIEW Measurement File (.lvm)". Values are checked against lvm_read.
var lvm = track.Format{Name: "lvm", Like: regexp.MustCompile(`^(\xef\xbb\xbf)?LabVIEW Measurement[\s,;]`), New: newLVM}

const (
	maxChannels  = 1 << 12
	maxHeading   = 1 << 10              // lines
	maxLVMPieces = 1 << 17              // segments times channels
	lvmSlack     = 2 * time.Millisecond // between a segment and the next: a program reads the clock late
	endOfHeader  = "***End_of_Header***"
)

// lvmFile is an open file: a [track.Contents] of its channels. Where values are not at an even rate, a track X_Value holds their times.
type lvmFile struct {
	name    string
	in      io.ReaderAt
	size    int64
	sep     byte
	comma   bool
	multi   bool // each channel has a column of x values
	xs      bool // there are x values
	heading map[string][]string
	parts   []lvmPart
	uneven  string // where x values are that are not as Delta_X says; empty if there are none
	undated string // a date and time that is not read; empty if there is none
	track.Joined
}

// lvmHeading is the heading of a segment.
type lvmHeading struct {
	line  int
	cells map[string][]string
	step  int       // from the cell of a channel to the next one's
	names []string  // of the channels
	steps []float64 // s between values of each channel
	rows  int64
}

// lvmPart is rows that follow each other under one heading.
type lvmPart struct {
	*lvmHeading
	at     int64 // byte of the first row
	from   int   // its number
	count  int64
	first  []float64 // x values of the first row, by channel
	counts []int64   // rows up to the last value, by channel
	past   bool      // a row has a later x than the first one
}

// lvmLines reads lines and counts them.
type lvmLines struct {
	r    *bufio.Reader
	long []byte
	at   int64 // byte that comes next
	line int   // number of the line last read
	open bool  // it has no end
}

// next returns the next line without its end, valid until the next call.
func (l *lvmLines) next() ([]byte, error) {
	l.long = l.long[:0]
	l.line++
	for {
		part, err := l.r.ReadSlice('\n')
		l.at += int64(len(part))
		l.open = err == io.EOF && len(l.long)+len(part) > 0
		switch {
		case err == nil && len(l.long) == 0:
			return bytes.TrimRight(part, "\r\n"), nil
		case err == nil, l.open:
			return bytes.TrimRight(append(l.long, part...), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(l.long) > maxRow:
			return nil, fmt.Errorf("line %d is longer than %d bytes: check that this is a measurement file of LabVIEW", l.line, maxRow)
		}
		l.long = append(l.long, part...)
	}
}

func newLVM(in io.ReaderAt, size int64, name string) (track.Contents, error) {
	f := &lvmFile{name: name, in: in, size: size, sep: '\t', heading: make(map[string][]string)}
	lines := &lvmLines{r: bufio.NewReaderSize(io.NewSectionReader(in, 0, size), readAhead)}
	err := f.readFileHeading(lines)
	if err == nil {
		err = f.readParts(lines)
	}
	if err == nil {
		err = f.join()
	}
	if err != nil {
		return nil, fmt.Errorf("lvm: %s: %w", name, err)
	}
	return f, nil
}

// cells returns the cells of a line.
func (f *lvmFile) cells(line []byte) (cells []string) {
	for cell := range bytes.SplitSeq(line, []byte{f.sep}) {
		cells = append(cells, table.UTF8(string(bytes.TrimSpace(cell))))
	}
	return cells
}

// readFileHeading reads what holds for the whole file.
func (f *lvmFile) readFileHeading(lines *lvmLines) error {
	for {
		line, err := lines.next()
		if err == io.EOF {
			return fmt.Errorf("the file ends before %s: copy it again", endOfHeader)
		}
		if err != nil {
			return err
		}
		if text, ok := bytes.CutPrefix(line, []byte("Separator")); ok && len(text) > 0 && (text[0] == ',' || text[0] == ';') {
			f.sep = text[0]
		}
		cells := f.cells(line)
		if bytes.HasPrefix(line, []byte(endOfHeader)) {
			break
		}
		if lines.line > maxHeading {
			return fmt.Errorf("no %s in the first %d lines: copy it again", endOfHeader, maxHeading)
		}
		f.heading[cells[0]] = cells[1:]
	}
	value := func(key string) string { return strings.Join(f.heading[key][:min(1, len(f.heading[key]))], "") }
	f.comma = value("Decimal_Separator") == "," && f.sep != ','
	f.multi = value("X_Columns") == "Multi"
	f.xs = f.multi || value("X_Columns") != "No"
	return nil
}

// readParts finds the rows of all segments.
func (f *lvmFile) readParts(lines *lvmLines) error {
	var h *lvmHeading // that rows belong to
	inside := false
	for {
		from := lines.at
		line, err := lines.next()
		switch {
		case err == io.EOF && len(f.parts) == 0:
			return errors.New("it holds no rows: record again")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(bytes.Trim(line, "\t,; ")) == 0:
			inside = false
		case bytes.HasPrefix(line, []byte("***Start_Special***")):
			for err == nil && !bytes.HasPrefix(line, []byte("***End_Special***")) {
				line, err = lines.next()
			}
			if err != nil && err != io.EOF {
				return err
			}
			inside = false
		case bytes.HasPrefix(line, []byte("Channels")):
			if h, err = f.readHeading(lines, line); err != nil {
				return err
			}
			inside = false
		case h == nil:
			return fmt.Errorf("line %d: a row comes before the heading of its segment, which begins with Channels: record again", lines.line)
		case lines.open:
			f.Remark("the last line, %d, has no line end and may be half written: dropped; end the line if it is whole", lines.line)
		default:
			if err := f.addRow(h, bytes.Split(line, []byte{f.sep}), from, lines.line, inside); err != nil {
				return fmt.Errorf("line %d: %w", lines.line, err)
			}
			inside = true
		}
	}
}

// readHeading reads the heading of a segment, and the names of its columns.
func (f *lvmFile) readHeading(lines *lvmLines, line []byte) (h *lvmHeading, err error) {
	h = &lvmHeading{line: lines.line, cells: make(map[string][]string), step: f.column(1) - f.column(0)}
	for ; err == nil && !bytes.HasPrefix(line, []byte(endOfHeader)); line, err = lines.next() {
		if lines.line-h.line > maxHeading {
			return nil, fmt.Errorf("line %d: the heading has no %s in %d lines: copy it again", h.line, endOfHeader, maxHeading)
		}
		cells := f.cells(line)
		h.cells[cells[0]] = cells[1:]
	}
	if err == nil {
		line, err = lines.next()
	}
	if err == io.EOF {
		return nil, fmt.Errorf("the file ends in the heading at line %d: copy it again", h.line)
	}
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(h.cell("Channels", 0))
	names := f.cells(line)
	if err != nil || n < 1 || n > maxChannels || f.column(n-1) >= len(names) {
		return nil, fmt.Errorf("line %d: the heading says %q channels, which the names in line %d do not have: record again", h.line, h.cell("Channels", 0), lines.line)
	}
	taken := make(map[string]bool)
	for i := range n {
		name := names[f.column(i)]
		for k := 2; name == "" || taken[name]; k++ {
			name = strings.TrimSpace(fmt.Sprint(names[f.column(i)], " ", k))
		}
		taken[name] = true
		step, err := f.number(h.cell("Delta_X", i))
		if err != nil || !(step > 0) || math.IsInf(1/step, 0) {
			step = 0
		}
		h.names, h.steps = append(h.names, name), append(h.steps, step)
		if d := h.cell("X_Dimension", i); d != "" && !strings.EqualFold(d, "Time") {
			return nil, fmt.Errorf("line %d: x of channel %q is %s and not Time: export the time signals", h.line, name, d)
		}
	}
	if len(f.parts) > 0 {
		if first := f.parts[0]; !slices.Equal(h.names, first.names) || !slices.Equal(h.steps, first.steps) {
			return nil, fmt.Errorf("line %d: the segment has the channels %s with Delta_X %v, the first one %s with %v: export each of them as a file of its own",
				h.line, someOf(h.names), h.steps, someOf(first.names), first.steps)
		}
	}
	return h, nil
}

// column returns where the values of a channel are in a row, and x where its x values are.
func (f *lvmFile) column(channel int) int {
	if f.multi {
		return 2*channel + 1
	}
	return channel + 1
}

func (f *lvmFile) x(channel int) int {
	if f.multi {
		return 2 * channel
	}
	return 0
}

// cell returns what the heading says of a channel.
func (h *lvmHeading) cell(key string, channel int) string {
	if cells := h.cells[key]; channel*h.step < len(cells) {
		return cells[channel*h.step]
	}
	return ""
}

// number reads a number, NaN if it is missing.
func (f *lvmFile) number(cell string) (float64, error) {
	if f.comma {
		cell = strings.Replace(cell, ",", ".", 1)
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil && isMissingNumber(cell) {
		return math.NaN(), nil
	}
	return v, err
}

// rowX returns x of each channel in a row: in a column of its own, in the first one, or in the heading.
func (f *lvmFile) rowX(h *lvmHeading, cell func(c int) string) ([]float64, error) {
	x := make([]float64, len(h.names))
	for i := range h.names {
		text := cell(f.x(i))
		if i > 0 && !f.multi {
			x[i] = x[0]
			continue
		}
		if !f.xs || text == "" {
			text = h.cell("X0", i)
		}
		var err error
		if x[i], err = f.number(text); err != nil || math.IsInf(x[i], 0) {
			return nil, fmt.Errorf("the x value %.40q is not a number: correct it, or record again", text)
		}
	}
	return x, nil
}

// addRow adds a row to the last part. Under a heading and behind an empty line another part begins.
func (f *lvmFile) addRow(h *lvmHeading, cells [][]byte, at int64, line int, inside bool) error {
	cell := func(c int) string {
		if c >= len(cells) {
			return ""
		}
		return string(bytes.TrimSpace(cells[c]))
	}
	x, err := f.rowX(h, cell)
	if err != nil {
		return err
	}
	var p *lvmPart
	if len(f.parts) > 0 {
		p = &f.parts[len(f.parts)-1]
	}
	switch under := p != nil && p.lvmHeading == h; { // the same heading
	case under && !inside && !f.xs:
		return errors.New("rows follow an empty line without a heading of their own, so nothing says when they were taken: record with a heading for each segment (Multi_Headings), or with x values")
	case under && f.xs && (x[0] < p.first[0] || x[0] == p.first[0] && p.past): // six digits may say the same x twice
		return fmt.Errorf("x begins again at %v without a heading, so nothing says when these rows were taken: record with a heading for each segment (Multi_Headings)", x[0])
	case len(f.parts)*len(h.names) > maxLVMPieces:
		return fmt.Errorf("it has more than %d segments of channels: record fewer into one file", maxLVMPieces)
	case !inside:
		for i, v := range x {
			if v != v {
				x[i] = 0
			}
		}
		f.parts = append(f.parts, lvmPart{lvmHeading: h, at: at, from: line, first: x, counts: make([]int64, len(h.names))})
		p = &f.parts[len(f.parts)-1]
	}
	p.past = p.past || x[0] > p.first[0]
	for i := range h.names {
		if cell(f.column(i)) == "" {
			continue
		}
		p.counts[i] = p.count + 1
		want := p.first[i] + float64(p.count)*h.steps[i]
		if f.xs && f.uneven == "" && !(math.Abs(x[i]-want) <= max(0.5*h.steps[i], 1e-5*math.Abs(want))) { // x has six digits
			f.uneven = fmt.Sprintf("line %d: x is %v and not %v, as Delta_X says", line, x[i], want)
		}
	}
	p.count++
	h.rows++
	return nil
}

// lvmAbsolute is from which value on x counts seconds from 1904, and by how much the local time of Date may be off that.
const (
	lvmAbsolute = 1e8
	lvmZone     = 15 * time.Hour
)

// start returns when x values of a channel are 0, if the heading says it.
func (f *lvmFile) start(p *lvmPart, channel int) (at time.Time, ok bool) {
	day, clock := p.cell("Date", channel), p.cell("Time", channel)
	if day == "" || clock == "" {
		file := lvmHeading{cells: f.heading}
		day, clock = file.cell("Date", 0), file.cell("Time", 0)
	}
	text := strings.TrimSpace(day + " " + clock)
	if half, err := time.Parse("3:04:05 PM", clock); err == nil {
		clock = half.Format("15:04:05.999999999")
	}
	m, ok := stamp(day + " " + clock)
	x0, err := f.number(p.cell("X0", channel))
	if err != nil || x0 != x0 || math.Abs(p.first[channel]) < lvmAbsolute {
		x0 = 0
	}
	from1904 := time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC).Add(seconds(x0))
	switch {
	case !ok && text != "":
		f.undated = fmt.Sprintf("its date and time %q are not read", text)
	case !ok:
	case math.Abs(p.first[channel]-x0) >= lvmAbsolute || x0 != 0 && m.at.Sub(from1904).Abs() > lvmZone:
		ok, f.undated = false, fmt.Sprintf("its date and time %q and x, which begins at %.12g s after 1904, do not agree", text, p.first[channel])
	}
	return m.at.Add(-seconds(x0)), ok
}

// join makes channels of the parts.
func (f *lvmFile) join() error {
	scalars := len(f.parts) > 1 && !slices.ContainsFunc(f.parts, func(p lvmPart) bool { return p.count > 1 })
	uneven := f.uneven != "" || scalars || slices.Min(f.parts[0].steps) == 0
	switch {
	case uneven && f.multi:
		return fmt.Errorf("each channel has x values of its own, which are not at an even rate (%s): export it with one column of x values (X_Columns One)", f.uneven)
	case !f.xs && slices.Min(f.parts[0].steps) == 0:
		return errors.New("it has neither x values nor a Delta_X above 0: record it with x values")
	}
	var pieces []track.Piece
	for i := range f.parts {
		p := &f.parts[i]
		if uneven {
			pieces = append(pieces, f.piece(p, 0, track.Info{Name: "X_Value", Unit: "s", Len: p.count}, f.x(0), true))
		}
		for c, name := range p.names {
			info := track.Info{Name: name, Unit: p.cell("Y_Unit_Label", c), Len: p.count}
			if !uneven {
				info.Rate, info.Len = track.RoundRate(1/p.steps[c]), p.counts[c]
			}
			pieces = append(pieces, f.piece(p, c, info, f.column(c), false))
		}
		if most, err := f.number(p.cell("Samples", 0)); err == nil && float64(p.rows) < most && i == len(f.parts)-1 {
			f.Remark("the segment at line %d has %d of the %v rows that its heading says: it was not finished", p.line, p.rows, most)
		}
	}
	f.Join(pieces)
	if f.uneven != "" {
		f.Remark("%s: the column X_Value says when rows are", f.uneven)
	}
	if f.undated != "" {
		f.Remark("%s: its start is not known; name it by --start", f.undated)
	}
	return nil
}

// piece returns a column of a part: the values of a channel, or times, which count from 1970 if the heading says when x is 0.
func (f *lvmFile) piece(p *lvmPart, channel int, info track.Info, cell int, times bool) track.Piece {
	begin, zero := p.first[channel], 0.0
	if origin, ok := f.start(&f.parts[0], 0); ok {
		if at, ok := f.start(p, channel); ok {
			begin += at.Sub(origin).Seconds()
			zero = float64(at.UnixNano()) / 1e9
			if info.Rate > 0 {
				info.Start = at.Add(seconds(p.first[channel]))
			}
		}
	}
	return track.Piece{Info: info, Begin: begin, Slack: lvmSlack.Seconds(), Column: func() (track.Column, error) {
		lines := lvmLines{r: bufio.NewReader(io.NewSectionReader(f.in, p.at, f.size-p.at)), line: p.from - 1}
		return &lvmColumn{f: f, part: p, count: info.Len, cell: cell, times: times, zero: zero, lines: lines}, nil
	}}
}

// lvmColumn reads the cells of a column of a part: numbers, or times in seconds.
type lvmColumn struct {
	f     *lvmFile
	part  *lvmPart
	count int64
	cell  int
	times bool
	zero  float64 // when x is 0
	lines lvmLines
	read  int64
}

func (c *lvmColumn) Read(dst track.Values) (n int, err error) {
	for ; n < len(dst.Numbers); n++ {
		if c.read == c.count {
			return n, io.EOF
		}
		line, err := c.lines.next()
		if err != nil {
			return n, fmt.Errorf("lvm: %s: line %d: %w: the file changed while it was read", c.f.name, c.lines.line, err)
		}
		if dst.Numbers[n], err = c.value(line); err != nil {
			return n, fmt.Errorf("lvm: %s: line %d: %w", c.f.name, c.lines.line, err)
		}
		c.read++
	}
	return n, nil
}

// value returns the number in the cell of a row.
func (c *lvmColumn) value(line []byte) (float64, error) {
	if c.times && !c.f.xs {
		return c.zero + c.part.first[0], nil
	}
	for range c.cell {
		_, line, _ = bytes.Cut(line, []byte{c.f.sep})
	}
	cell, _, _ := bytes.Cut(line, []byte{c.f.sep})
	v, err := c.f.number(string(bytes.TrimSpace(cell)))
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number: correct it, or leave the cell empty if it is missing", cell)
	}
	if c.times {
		v += c.zero
	}
	return v, nil
}
