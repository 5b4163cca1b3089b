package wear

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// columns of wear.csv, in the order in which Write writes them.
var columns = []string{"machine", "tool", "recording", "hole", "time", "to", "vb_mean_um", "vb_max_um", "state", "class"}

// Indices of columns.
const (
	colMachine = iota
	colTool
	colRecording
	colHole
	colTime
	colTo
	colVBMean
	colVBMax
	colState
	colClass
	numColumns
)

// otherNames are names of columns that mean one of columns. wearNames are names, as fold returns them, of columns with a unit in brackets or in the next row.
var otherNames = map[string]int{"from": colTime, "start": colTime, "end": colTo, "vb_um": colVBMax, "vb_mm": colVBMax, "vb_max_mm": colVBMax, "vb_mean_mm": colVBMean}

var wearNames = func() map[string]int {
	out := make(map[string]int)
	for k, names := range map[int]string{
		colVBMax:  "vb vbmax maxvb wear maxwear maximumwear flankwear toolwear verschleiß verschleiss verschleißmarkenbreite verschleissmarkenbreite freiflächenverschleiß",
		colVBMean: "vbmean meanvb vbmittel meanwear meanflankwear",
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = k
		}
	}
	return out
}()

// columnOf returns which column a cell of the header names, -1 if none, and its unit as [table.UnitKey] returns it: empty if it is not said. A wear
// whose unit is not said may be none.
func columnOf(cell string) (k int, unit string) {
	name := strings.ToLower(strings.TrimSpace(cell))
	k, known := otherNames[name]
	if !known {
		k = slices.Index(columns, name)
	}
	base, said, _ := table.SplitUnit(name)
	switch {
	case strings.HasSuffix(name, "_um"), strings.HasSuffix(name, "_mm"):
		return k, name[len(name)-2:]
	case k >= 0:
		return k, ""
	}
	unit = table.UnitKey(said)
	if k, known = wearNames[fold(base)]; known {
		return k, unit
	}
	if k = slices.Index(columns, base); k == colTime && unit == "s" || k == colTo && unit == "s" || unit == "-" {
		return k, unit
	}
	return -1, ""
}

// Write writes measurements as wear.csv. What is not known is an empty cell. The
// columns recording, to and class are left out if nothing is in them.
func Write(w io.Writer, ms []Measurement) error {
	rows := make([][]string, 0, len(ms)+1)
	rows = append(rows, columns)
	used := make([]bool, numColumns)
	for _, k := range []int{colMachine, colTool, colHole, colTime, colVBMean, colVBMax, colState} {
		used[k] = true
	}
	for _, m := range ms {
		row := []string{m.Machine, m.Tool, m.Recording, m.Hole, timeCell(m.Time), timeCell(m.End), numberCell(m.VBMeanUM), numberCell(m.VBMaxUM), m.State, m.Class}
		for k, cell := range row {
			used[k] = used[k] || cell != ""
		}
		rows = append(rows, row)
	}
	out := csv.NewWriter(w)
	for _, row := range rows {
		var cells []string
		for k, cell := range row {
			if used[k] {
				cells = append(cells, cell)
			}
		}
		out.Write(cells) // errors stick; see Error below
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("wear: write: %w", err)
	}
	return nil
}

func numberCell(v float64) string {
	if v != v {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// timeCell writes an instant by RFC 3339, and seconds as a decimal number.
func timeCell(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case signal.HasClock(t):
		return t.UTC().Format(time.RFC3339Nano)
	}
	text := fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// parseTime reads what timeCell writes. A number of 10⁹ or more counts seconds since
// 1970, as it does in the time column of a recording.
func parseTime(cell string) (t time.Time, ok bool) {
	if t, ok := table.ParseTime(cell); ok {
		return t, t.Unix() >= 0
	}
	v, ok := table.ParseNumber(cell, 64)
	if !ok || !(v >= 0 && v < 1e11) {
		return time.Time{}, false
	}
	whole, part, _ := strings.Cut(cell, ".")
	part = (part + "000000000")[:9]
	seconds, err1 := strconv.ParseUint(whole, 10, 63)
	nanos, err2 := strconv.ParseUint(part, 10, 63)
	if err1 != nil || err2 != nil || strings.ContainsAny(cell, "eE") { // a number with an exponent
		seconds = uint64(v)
		nanos = uint64((v - float64(seconds)) * 1e9)
	}
	return time.Unix(int64(seconds), int64(nanos)).UTC(), true
}

// Load reads the file at path, see [Load].
func Load(path string) (ms []Measurement, warnings []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("wear: %w", err)
	}
	defer f.Close()
	return readMeasurements(f, path)
}

// readMeasurements reads measurements, in file order; file names them in errors.
//
// The file has one row for each measurement and a header row with the names
// machine, tool, recording, hole, time, to, vb_mean_um, vb_max_um, state and class
// in any order; from and start mean time, end means to, and vb_um means vb_max_um.
// Columns vb_mean_mm and vb_max_mm, or vb_mm, are in mm. A wear in words, as "VB" or "Verschleiß", has its unit in
// brackets, or in a row of units below the header. The header is the first line that names a tool or a recording, and how
// worn it is; a title and comments above it are left out.
// Only tool or recording is needed, and one of the last four. Other columns are
// ignored, unless they start with "vb", so that wear in millimetres is not lost
// without a word. An empty cell, or one with a word for what is missing, such as NaN or -, is not known; a row must
// have a tool or a recording. Times are RFC 3339, or seconds from the start of the
// recording.
//
// Cells are separated by commas, or by semicolons or tabs if the header has some.
// In a file of the latter kinds numbers may have a decimal comma.
//
// What cannot be a measurement is an error with file, line, column and remedy:
// text in a number, negative wear, a mean above the maximum, the same tool
// measured twice at one hole and time. What is odd but can be is a warning:
// wear that falls within a tool, because measured curves do fall by the
// uncertainty of the microscope, or when a built-up edge breaks off, and a
// file that is refused for it would be edited until it fits; and wear so small
// throughout that it looks like millimetres.
func readMeasurements(r io.Reader, file string) (ms []Measurement, warnings []string, err error) {
	d := &reader{file: file, where: "wear: " + file}
	if err := d.open(r); err != nil {
		return nil, nil, err
	}
	if err := d.readHeader(); err != nil {
		return nil, nil, err
	}
	for {
		m, err := d.readRow()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		ms = append(ms, m)
	}
	for _, g := range d.grouped {
		if g.err != nil && g.hundreds && !g.fractions {
			return nil, nil, g.err
		}
	}
	if err := checkTwice(ms); err != nil {
		return nil, nil, err
	}
	for _, note := range d.notes {
		warnings = append(warnings, file+": "+note)
	}
	return ms, append(warnings, warn(file, ms)...), nil
}

// reader reads the rows of a wear file.
type reader struct {
	*table.TextReader
	file  string
	where string             // what errors begin with
	cell  [numColumns]int    // of each of columns, -1 if the file lacks it
	name  [numColumns]string // as the file has it
	unit  [numColumns]string // of wear: um or mm
	vague []int              // cells of columns that have wear if the row of units says so
	width int                // cells of the header
	notes []string           // on how the text is written

	// The line of the first number with a decimal point, and with a decimal comma.
	point, comma int
	grouped      [numColumns]groups

	held    bool // the row was read ahead
	heldErr error
}

// groups are the numbers of a column of wear in µm whose mark may divide thousands.
type groups struct {
	err       error // of the first one, such as 1.350
	hundreds  bool  // a number from 100 on has no mark
	fractions bool  // a number has other decimals
}

var group = regexp.MustCompile(`^[1-9]\d{0,2}[.,]\d{3}$`)

// open finds out what separates the cells.
func (d *reader) open(r io.Reader) error {
	text, notes, err := table.PlainText(r)
	if err != nil {
		return fmt.Errorf("%s: %w", d.where, err)
	}
	d.notes = notes
	br := bufio.NewReaderSize(text, headSize)
	head, _ := br.Peek(headSize)
	above, separator := headerIn(head)
	for range above {
		if _, err := br.ReadString('\n'); err != nil {
			break
		}
	}
	d.TextReader = table.NewTextReader(br, d.where)
	d.Skipped, d.Separator = above, separator
	return nil
}

// headSize is how far a reader looks for the header.
const headSize = 64 << 10

// headerIn returns how many lines are above the header of a wear file, and what separates its cells. If no line is one, the first line that does not begin as a comment is taken.
func headerIn(head []byte) (above int, separator rune) {
	first, n := -1, 0
	for line := range bytes.Lines(head) {
		if text := bytes.TrimSpace(line); len(text) > 0 && !bytes.HasPrefix(text, []byte("#")) && !bytes.HasPrefix(text, []byte("sep=")) {
			for _, sep := range ";\t," {
				if isHeader(string(text), sep) {
					return n, sep
				}
			}
			if first < 0 {
				first, separator = n, separatorOf(line)
			}
		}
		n++
	}
	if first < 0 {
		return n, ','
	}
	return first, separator
}

// isHeader reports whether a line names what is worn, and how.
func isHeader(line string, sep rune) bool {
	var subject, wear bool
	for cell := range strings.SplitSeq(line, string(sep)) {
		k, _ := columnOf(strings.Trim(strings.TrimSpace(cell), `"`))
		subject = subject || k == colTool || k == colRecording
		wear = wear || k >= colVBMean || Asked(cell) != ""
	}
	return subject && wear
}

// separatorOf returns what separates the cells of the header: semicolons or tabs if
// there are any outside of quotes.
func separatorOf(line []byte) rune {
	quoted, separator := false, ','
	for _, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			return ';'
		case c == '\t':
			separator = '\t'
		}
	}
	return separator
}

func (d *reader) readHeader() error {
	if err := d.Header(); err == io.EOF {
		return fmt.Errorf("%s: the file is empty: write a header such as tool,state or %s", d.where, strings.Join(columns, ","))
	} else if err != nil {
		return err
	}
	d.width = len(d.Row)
	for i := range d.cell {
		d.cell[i] = -1
	}
	for i, cell := range d.Row {
		name := strings.ToLower(strings.TrimSpace(cell))
		k, unit := columnOf(name)
		isWear := k == colVBMean || k == colVBMax
		switch {
		case isWear && unit == "" && !strings.HasPrefix(name, "vb"): // a column of another kind, unless the next row says a unit
			d.vague = append(d.vague, i)
		case isWear && unit != "" && unit != "um" && unit != "mm", k < 0 && strings.HasPrefix(name, "vb"):
			return fmt.Errorf("%s:%d: column %q is not known: %s", d.where, d.Line, name, wearColumns)
		case k >= 0:
			if err := d.take(k, i, name, unit); err != nil {
				return err
			}
		}
	}
	if err := d.takeAsked(); err != nil {
		return err
	}
	header, line := slices.Clone(d.Row), d.Line
	if err := d.readUnits(); err != nil {
		return err
	}
	return d.checkHeader(header, line)
}

const wearColumns = "wear is in vb_mean_um and vb_max_um (or vb_um), in mm in vb_mean_mm and vb_max_mm (or vb_mm), or has its unit in brackets, as vb [µm]"

// take lets cell i of each row be column k.
func (d *reader) take(k, i int, name, unit string) error {
	switch {
	case d.cell[k] >= 0 && d.name[k] == name:
		return fmt.Errorf("%s:%d: columns %d and %d are both named %q: rename or remove one", d.where, d.Line, d.cell[k]+1, i+1, name)
	case d.cell[k] >= 0:
		return fmt.Errorf("%s:%d: columns %d, %q, and %d, %q, mean the same: remove one", d.where, d.Line, d.cell[k]+1, d.name[k], i+1, name)
	}
	d.cell[k], d.name[k], d.unit[k] = i, strings.Clone(name), unit
	return nil
}

// takeAsked lets a column such as is_worn be the state, if no other one is a state or a class.
func (d *reader) takeAsked() error {
	if d.cell[colState] >= 0 || d.cell[colClass] >= 0 {
		return nil
	}
	for i, cell := range d.Row {
		if Asked(cell) == "" {
			continue
		}
		if err := d.take(colState, i, strings.ToLower(strings.TrimSpace(cell)), ""); err != nil {
			return err
		}
	}
	return nil
}

// readUnits reads the row below the header, and holds it if it is not one of units.
func (d *reader) readUnits() error {
	header, line := make([]string, len(d.Row)), d.Line
	for i, cell := range d.Row {
		header[i] = strings.ToLower(strings.TrimSpace(cell))
	}
	d.heldErr, d.held = d.Next(), true
	if d.heldErr == nil && table.AllUnits(d.Row) {
		for _, i := range d.vague {
			k, _ := columnOf(header[i])
			if unit := d.unitIn(i); unit == "um" || unit == "mm" {
				if err := d.take(k, i, header[i], unit); err != nil {
					return err
				}
			}
		}
		for _, k := range []int{colVBMean, colVBMax, colTime} {
			unit := ""
			if d.cell[k] >= 0 {
				unit = d.unitIn(d.cell[k])
			}
			switch {
			case unit == "" || unit == "-":
				continue
			case d.unit[k] != "" && d.unit[k] != unit, k == colTime && unit != "s", k != colTime && unit != "um" && unit != "mm":
				return fmt.Errorf("%s:%d: column %s is in %s by the row of units: name the unit once; wear is in µm or mm, and a time in s", d.where, d.Line, d.name[k], d.Row[d.cell[k]])
			}
			d.unit[k], d.held = unit, false
		}
	}
	for _, k := range []int{colVBMean, colVBMax} {
		if d.cell[k] >= 0 && d.unit[k] == "" {
			return fmt.Errorf("%s:%d: column %q is not known: %s", d.where, line, d.name[k], wearColumns)
		}
	}
	return nil
}

// unitIn returns the unit in a cell of a row of units.
func (d *reader) unitIn(i int) string {
	return table.UnitKey(strings.ToLower(strings.Trim(strings.TrimSpace(d.Row[i]), "[]()")))
}

// checkHeader reports columns that a wear file cannot do without.
func (d *reader) checkHeader(header []string, line int) error {
	has := func(k int) bool { return d.cell[k] >= 0 }
	from := d.name[colTime] == "from" || d.name[colTime] == "start"
	err := cmp.Or(
		config.Wrong(!has(colTool) && !has(colRecording), "no column %q or %q, but %s: add one; the columns are %s", "tool", "recording", someNames(header), strings.Join(columns, ", ")),
		config.Wrong(!has(colVBMean) && !has(colVBMax) && !has(colState) && !has(colClass), "no column says how worn a tool is: add vb_um (that is vb_max_um), vb_mean_um, state or class"),
		config.Wrong(has(colTo) && !has(colTime), "column %q has no column next to it that says from when on: add %q", d.name[colTo], "from"),
		config.Wrong(!has(colTo) && from, "column %q has no column next to it that says until when: add %q, or name the column %q if wear was measured at one moment", d.name[colTime], "to", "time"))
	if err != nil {
		return fmt.Errorf("%s:%d: %w", d.where, line, err)
	}
	return nil
}

func (d *reader) readRow() (Measurement, error) {
	err := d.heldErr
	if !d.held {
		err = d.Next()
	}
	if d.held = false; err != nil {
		if d.Separator == ',' && err != io.EOF && len(d.Row) > d.width && d.width > 0 {
			return Measurement{}, d.commaError(err)
		}
		return Measurement{}, err
	}
	m := Measurement{Where: d.file + ":" + strconv.Itoa(d.Line)}
	for k, to := range []*string{colMachine: &m.Machine, colTool: &m.Tool, colRecording: &m.Recording, colHole: &m.Hole, colState: &m.State, colClass: &m.Class} {
		if to == nil || d.cell[k] < 0 {
			continue
		}
		cell := d.text(k)
		if !utf8.ValidString(cell) {
			return m, d.errorf(k, "is not valid UTF-8: save the file as UTF-8")
		}
		if plain.Check(cell) != nil {
			return m, d.errorf(k, "has a line end, another control character, or one that turns the direction of writing: remove it")
		}
		if *to = strings.Clone(cell); k == colState {
			*to = Stated(d.name[k], *to)
		}
	}
	if m.Tool, err = plain.Name(m.Tool); err != nil {
		return m, d.errorf(colTool, "has an invisible character: write the name again")
	}
	switch {
	case m.Tool != "" || m.Recording != "":
	case d.cell[colTool] < 0:
		return m, d.errorf(colRecording, "is not a recording: write the name of its file")
	default:
		return m, d.errorf(colTool, "is not a tool: name the tool that was measured")
	}
	if err := d.readTimes(&m); err != nil {
		return m, err
	}
	return m, d.readWear(&m)
}

// readTimes reads from when on and until when the wear was.
func (d *reader) readTimes(m *Measurement) error {
	for k, to := range []*time.Time{colTime: &m.Time, colTo: &m.End} {
		if to == nil {
			continue
		}
		cell := d.text(k)
		if cell == "" {
			continue
		}
		var ok bool
		if *to, ok = parseTime(d.decimal(cell)); !ok {
			return d.errorf(k, "is not a time: write RFC 3339, as 2026-01-31T14:05:09Z, or seconds from the start of the recording, as 12.5")
		}
	}
	switch {
	case m.End.IsZero():
	case m.Time.IsZero():
		return d.errorf(colTo, "is an end without a beginning: write from when on; 0 is the start of the recording")
	case signal.HasClock(m.Time) != signal.HasClock(m.End):
		return d.errorf(colTo, "and the beginning, %q, are not both times or both seconds: write both alike", d.text(colTime))
	case !m.End.After(m.Time):
		return d.errorf(colTo, "is not after the beginning, %q: correct the row", d.text(colTime))
	}
	return nil
}

// readWear reads the numbers.
func (d *reader) readWear(m *Measurement) error {
	for k, to := range []*float64{colVBMean: &m.VBMeanUM, colVBMax: &m.VBMaxUM} {
		if to == nil {
			continue
		}
		cell := d.text(k)
		v, ok := table.ParseNumber(d.decimal(cell), 64)
		switch {
		case !ok && strings.Contains(cell, ",") && strings.Contains(cell, "."):
			return d.errorf(k, "has a comma and a point: write the number without thousands separators")
		case !ok && d.Separator == ',' && strings.Contains(cell, ","):
			if before, after, _ := strings.Cut(cell, ","); len(after) == 3 && len(before) <= 3 {
				return d.errorf(k, "may be %s%s or %s.%s: write it without a comma", before, after, before, after)
			}
			return d.errorf(k, "has a decimal comma in a file with commas between cells: write %s, or separate the columns of the whole file by semicolons", strings.Replace(cell, ",", ".", 1))
		case !ok:
			return d.errorf(k, "is not a number of µm or mm: correct it, or leave the cell empty if it was not measured")
		case v < 0:
			return d.errorf(k, "is a negative wear: correct it, or leave the cell empty if it was not measured")
		}
		if err := d.checkMark(k); err != nil {
			return err
		}
		if d.unit[k] == "mm" {
			if v > 1e6 {
				return d.errorf(k, "is not a wear in mm: correct it")
			}
			v = math.Round(v*1e6) / 1e3 // to the nm, so that 0.57 mm are 570 µm
		} else {
			d.noteGroup(k, cell, v)
		}
		*to = v
	}
	if m.VBMeanUM > m.VBMaxUM {
		return d.errorf(colVBMean, "is above %s, %v, but a mean is at most the maximum: correct the row; are the columns exchanged?", d.name[colVBMax], m.VBMaxUM)
	}
	return nil
}

// noteGroup notes whether the mark of a wear in µm may divide thousands.
func (d *reader) noteGroup(k int, cell string, v float64) {
	switch g := &d.grouped[k]; {
	case !strings.ContainsAny(cell, ".,"):
		g.hundreds = g.hundreds || v >= 100
	case !group.MatchString(cell):
		g.fractions = true
	case g.err == nil:
		whole := strings.NewReplacer(".", "", ",", "").Replace(cell)
		g.err = d.errorf(k, "may be %s or %v µm, because other numbers from 100 on have no mark: write it as one of them", whole, v)
	}
}

// decimal returns a number's cell with a decimal point, where it may have a comma.
func (d *reader) decimal(cell string) string {
	if d.Separator == ',' || strings.Count(cell, ",") != 1 || strings.Contains(cell, ".") {
		return cell
	}
	return strings.Replace(cell, ",", ".", 1)
}

// checkMark reports a number with a decimal point in a file that has decimal commas, or
// the other way round: one of them separates thousands.
func (d *reader) checkMark(k int) error {
	cell := d.text(k)
	switch {
	case d.Separator == ',':
		return nil
	case strings.Contains(cell, ",") && d.comma == 0:
		d.comma = d.Line
	case strings.Contains(cell, ".") && d.point == 0:
		d.point = d.Line
	}
	switch {
	case d.comma == 0 || d.point == 0:
		return nil
	case d.comma > d.point:
		return d.errorf(k, "has a decimal comma, but line %d has a decimal point: write all numbers alike, without thousands separators", d.point)
	}
	return d.errorf(k, "has a decimal point, but line %d has a decimal comma: write all numbers alike, without thousands separators", d.comma)
}

// commaError says of a row with more cells than the header which number has a decimal
// comma. It returns err if none has.
func (d *reader) commaError(err error) error {
	digits := func(cell string) bool {
		return cell != "" && strings.Trim(cell, "0123456789") == ""
	}
	for i := 1; i < len(d.Row); i++ {
		a, b := strings.TrimSpace(d.Row[i-1]), strings.TrimSpace(d.Row[i])
		if digits(a) && digits(b) {
			return fmt.Errorf("%s:%d: cells in the row: %d, in the header: %d: is %s,%s one number with a decimal comma? Write %s.%s, or separate the columns of the whole file by semicolons",
				d.where, d.Line, len(d.Row), d.width, a, b, a, b)
		}
	}
	return err
}

// text returns the cell of a column of ours, empty if it is not known.
func (d *reader) text(k int) string {
	if d.cell[k] < 0 {
		return ""
	}
	s := strings.TrimSpace(d.Row[d.cell[k]])
	if table.IsMissing(s) {
		return ""
	}
	return s
}

func (d *reader) errorf(k int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: column %s: %.60q %s", d.where, d.Line, d.name[k], d.text(k), fmt.Sprintf(format, args...))
}

// checkTwice returns an error if two rows measure the same tool at the same
// hole and time.
func checkTwice(ms []Measurement) error {
	type key struct {
		machine, tool, recording, hole string
		at                             time.Time
	}
	seen := make(map[key]string, len(ms))
	for _, m := range ms {
		k := key{m.Machine, m.Tool, m.Recording, m.Hole, m.Time}
		first, twice := seen[k]
		switch {
		case twice && m.Hole == "" && m.Time.IsZero():
			return fmt.Errorf("wear: %s: %s has a label as a whole on line %s already: keep one of them, or say with hole or time when each held", m.Where, m.subject(), lineOf(first))
		case twice:
			return fmt.Errorf("wear: %s: %s is measured at this hole and time on line %s already: keep one of them, or state when each was measured", m.Where, m.subject(), lineOf(first))
		}
		seen[k] = m.Where
	}
	return nil
}

// lineOf returns the line that a Measurement was read from.
func lineOf(where string) string { return where[strings.LastIndexByte(where, ':')+1:] }

// subject says in words what m is of.
func (m Measurement) subject() string {
	switch {
	case m.Recording == "":
		return fmt.Sprintf("tool %q", m.Tool)
	case m.Tool == "":
		return fmt.Sprintf("recording %q", m.Recording)
	}
	return fmt.Sprintf("tool %q in recording %q", m.Tool, m.Recording)
}

// warn returns what is odd about the measurements, one line of text for each.
func warn(file string, ms []Measurement) []string {
	order := make([]int, len(ms))
	largest := math.NaN()
	for i, m := range ms {
		order[i] = i
		for _, v := range []float64{m.VBMeanUM, m.VBMaxUM} {
			if !(v <= largest) && v == v {
				largest = v
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := ms[i], ms[j]
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Recording, b.Recording), a.Time.Compare(b.Time))
	})
	var warnings []string
	last := [2]int{-1, -1} // the latest row that knows the mean, and the maximum
	for n, i := range order {
		if n > 0 && !alike(ms[i], ms[order[n-1]]) {
			last = [2]int{-1, -1}
		}
		for q, of := range []func(Measurement) float64{
			func(m Measurement) float64 { return m.VBMeanUM },
			func(m Measurement) float64 { return m.VBMaxUM },
		} {
			v := of(ms[i])
			if v != v {
				continue
			}
			if j := last[q]; j >= 0 && v < of(ms[j]) {
				warnings = append(warnings, fmt.Sprintf("wear: %s: %s of %s falls from %v (line %s) to %v: check the measurements; a tool that was ground again needs a new name",
					ms[i].Where, columns[colVBMean+q], ms[i].subject(), of(ms[j]), lineOf(ms[j].Where), v))
			}
			last[q] = i
		}
	}
	if text := UnitDoubt(largest); text != "" {
		warnings = append(warnings, fmt.Sprintf("wear: %s: %s", file, text))
	}
	return warnings
}

// alike reports whether two measurements are of one tool, with times of one kind.
func alike(a, b Measurement) bool {
	return a.Machine == b.Machine && a.Tool == b.Tool && a.Recording == b.Recording && signal.HasClock(a.Time) == signal.HasClock(b.Time)
}

// mostWear is more flank wear than a tool has that still cuts, in µm.
const mostWear = 10_000

// UnitDoubt asks whether wear is in another unit, given the greatest of all in µm. It is empty if
// that is plausible.
func UnitDoubt(largest float64) string {
	switch {
	case largest > mostWear:
		return fmt.Sprintf("the greatest wear is %.4g µm, which is %.4g mm: is the column in µm? Name it vb_um, or vb_max_um in a layout, and correct the number", largest, largest/1000)
	case !(largest > 0 && largest < 3):
		return ""
	}
	return fmt.Sprintf("no wear is above %.4g µm: is it in mm? Write %.4g for %.4g mm, or name the column vb_mm, or vb_max_mm in a layout", largest, 1000*largest, largest)
}

// someNames lists up to four names, in quotes.
func someNames(names []string) string {
	const most = 4
	var words []string
	for _, name := range names[:min(most, len(names))] {
		words = append(words, fmt.Sprintf("%.40q", strings.TrimSpace(name)))
	}
	if len(names) > most {
		words = append(words, fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(words, ", ")
}
