package source

import (
	"bytes"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/table"
)

// What is looked at to find the table in a file of text.
const (
	sniffLines = 500 // lines, with those before the first row
	sniffRows  = 20  // rows that must be alike
)

// textLine is a line of a file as cells.
type textLine struct {
	number  int // from 0
	cells   []string
	kinds   []kind // of the cells
	arrival bool
}

// kind is what a cell holds.
type kind byte

const (
	missing kind = iota
	value        // a number, a date or a time
	word
)

func kindOf(cell string) kind {
	switch {
	case isMissingNumber(cell):
		return missing
	case isValue(cell):
		return value
	}
	return word
}

// aside reports whether a line is not of the table: an arrival time, or a comment.
func (l textLine) aside() bool { return l.arrival || isComment(l.cells[0]) }

// sniff finds the table in the beginning of a file: the first rows of one width that hold numbers, the lines of names above
// them, and what is before those. What d states holds: the separator, the decimal comma, how many lines of header there are if
// stated is true, and skip if it is not 0. ok is false if nothing looks like a table with numbers.
func (d dialect) sniff(head []byte, stated bool) (found dialect, ok bool) {
	best := 0
	for _, sep := range ",;\t| " {
		if d.separator != 0 && sep != d.separator || d.separator == 0 && d.comma && sep == ',' {
			continue
		}
		if with, score := d.sniffWith(head, sep, stated); score > best {
			found, best = with, score
		}
	}
	if table := behindLines(head, found.skip); best == 1 && d.separator == 0 {
		names, _, _ := bytes.Cut(table, []byte("\n"))
		if bytes.ContainsRune(names, d.findSeparator(table)) { // several columns, of which a row has an error
			return d, false
		}
	}
	return found, best > 0
}

// sniffWith finds the table with a separator. It returns how good that is, by the numbers and times of the first rows; 0 if there is no table. Lines before a
// table may look like a smaller one.
func (d dialect) sniffWith(head []byte, sep rune, stated bool) (best dialect, score int) {
	d.separator, best = sep, d
	lines := splitLines(head, sep, d.skip)
	for i, l := range lines {
		if l.aside() {
			continue
		}
		rows := slices.DeleteFunc(slices.Clone(lines[i:min(len(lines), i+sniffRows)]), func(l textLine) bool {
			return l.aside() || !slices.Contains(l.kinds, value) // a header comes again where a recorder began again
		})
		if len(rows) == 0 || rows[0].number != l.number {
			continue
		}
		width, values := alike(rows)
		if width == 0 {
			continue
		}
		found, ok := d.above(lines[:i], rows, width, stated)
		if !ok && score > 0 && len(rows) < sniffRows-1 {
			continue // a later row of a table
		} else if !ok {
			return d, 0
		}
		now := values * (1 + min(found.header, 1))
		if width == 1 { // of what has no separator, and of what has another one
			now = 1
		}
		if now > score {
			best, score = found, now
		}
		if len(rows) >= sniffRows-1 { // no part of what comes before a table is as long
			break
		}
	}
	return best, score
}

// above finds what is above the first rows of a table: lines of names, and those to skip. It is false if they do not go with the rows.
func (d dialect) above(lines, rows []textLine, width int, stated bool) (dialect, bool) {
	if !stated {
		d.header = namesAbove(lines, rows, width)
	}
	if d.header < 0 || d.header > len(lines) {
		return d, false
	}
	if d.skip == 0 {
		d.skip = preamble(lines, len(lines)-d.header)
	}
	return d, true
}

// splitLines returns the lines of the beginning of a file that are not empty, without those to skip and without a last one that may be cut off. Lines
// that a quoted cell holds are one.
func splitLines(head []byte, sep rune, skip int) (lines []textLine) {
	raw := slices.Collect(bytes.Lines(head))
	if n := len(raw); n > 0 && len(head) >= readAhead && !bytes.HasSuffix(raw[n-1], []byte("\n")) {
		raw = raw[:n-1]
	}
	for n := skip; n < len(raw) && len(lines) < sniffLines; n++ {
		l := textLine{number: n}
		text := string(bytes.TrimRight(raw[n], "\r\n"))
		joined := text
		for more := n + 1; sep != ' ' && isOpen(joined, sep) && more < min(len(raw), n+maxHeader); more++ {
			if joined += "\n" + string(bytes.TrimRight(raw[more], "\r\n")); !isOpen(joined, sep) {
				text, n = joined, more
				break
			}
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if sep == ' ' {
			l.cells = strings.Fields(text)
		} else {
			l.cells = splitQuoted(text, sep)
		}
		l.arrival = isArrival(text) && (sep == ' ' || len(l.cells) == 1)
		for _, cell := range l.cells {
			l.kinds = append(l.kinds, kindOf(cell))
		}
		lines = append(lines, l)
	}
	return lines
}

// isOpen reports whether a quote that begins a cell is not closed.
func isOpen(text string, sep rune) bool {
	return strings.Count(text, `"`)%2 == 1 && (strings.HasPrefix(text, `"`) || strings.Contains(text, string(sep)+`"`))
}

// splitQuoted returns the cells of a line, without quotes.
func splitQuoted(line string, sep rune) (cells []string) {
	quoted, from := false, 0
	cell := func(to int) { cells = append(cells, strings.Trim(strings.TrimSpace(line[from:to]), `"`)) }
	for i, r := range line {
		switch {
		case r == '"':
			quoted = !quoted
		case r == sep && !quoted:
			cell(i)
			from = i + 1
		}
	}
	cell(len(line))
	return cells
}

// width returns how many cells a line has without empty ones at its end.
func (l textLine) width() int {
	n := len(l.cells)
	for n > 0 && l.cells[n-1] == "" {
		n--
	}
	return n
}

// alike returns how many columns a table has whose first rows these are, and how many numbers and times they have; 0 if they are none: many of them are as wide,
// the first is at least half numbers and times, and none of its words is above numbers, as a name is.
func alike(rows []textLine) (width, numbers int) {
	width = rows[0].width()
	if width == 0 {
		return 0, 0
	}
	same := 1
	for same < len(rows) && (rows[same].width() == width || len(rows[same].cells) >= width && len(rows[same].cells) == len(rows[0].cells)) {
		same++
	}
	if same < min(3, (len(rows)+1)/2) {
		return 0, 0
	}
	values, words := 0, 0
	for col, k := range rows[0].kinds[:width] {
		switch k {
		case value:
			if values++; same > 1 && count(rows[1:same], col, word)*5 > same {
				return 0, 0 // a number above words
			}
		case word:
			named := count(rows[1:same], col, word)
			if words++; same > 1 && count(rows[1:same], col, value) >= max(1, named) || col == 0 && same > 2 && 2*named < same-1 {
				return 0, 0 // a name above numbers, or before one value
			}
		}
	}
	if values == 0 || values < words {
		return 0, 0
	}
	return width, values * same
}

// count returns how many cells of a column are of a kind.
func count(rows []textLine, col int, of kind) (n int) {
	for _, r := range rows {
		if col < len(r.kinds) && r.kinds[col] == of {
			n++
		}
	}
	return n
}

// hasValue is isValue for a cell with blanks around it.
func hasValue(cell string) bool { return isValue(strings.TrimSpace(cell)) }

// isValue reports whether a cell is a number, with a decimal point or comma, a date or a time.
func isValue(cell string) bool {
	if cell == "" || !strings.ContainsAny(cell[:1], "0123456789+-.,iInN") {
		return false
	}
	if isNumber(cell) || isNumber(strings.Replace(cell, ",", ".", 1)) {
		return true
	}
	if whole, part, ok := strings.Cut(cell, ","); ok && grouped.MatchString(whole) && isNumber("."+part) {
		return true
	}
	if len(cell) < len("1.1.06") || !strings.ContainsAny(cell, ":-/") && strings.Count(cell, ".") < 2 {
		return false
	}
	_, stamped := stamp(cell)
	_, timed := ofDay(cell)
	return stamped || timed || IsSlashed(cell) || isDate(cell)
}

// namesAbove returns how many lines above the first row of a table name its columns: lines as wide as it, without a number. It is −1 if the line
// above seems to be the header and has another width.
func namesAbove(above, rows []textLine, width int) (n int) {
	for n < maxHeader && n < len(above) {
		l := above[len(above)-1-n]
		w := l.width()
		numbers := slices.Contains(l.kinds, value)
		lead := isComment(l.cells[0])
		switch {
		case l.arrival, strings.HasPrefix(strings.ToLower(l.cells[0]), "sep="), n > 0 && above[len(above)-n].number != l.number+1:
			return n
		case numbers && n == 0 && w == width && isNamed(l, rows): // names such as 2 and 3
		case numbers && n == 0 && w == width:
			return -1 // a row with an error
		case numbers:
			return n
		case w == width, lead && w == width+1, w > 0 && len(l.cells) == width:
		case n == 0 && w == width+1 && isRemark(l.cells[width]): // rows without a remark are shorter
		case n == 0 && w > 1 && (w == width-1 || w == width+1):
			return -1
		default:
			return n
		}
		if n > 0 && width <= 2 && !slices.Contains(l.cells[:w], "") && !isUnits(above[len(above)-n].cells) {
			return n // "Operator,Kim" does not name columns
		}
		n++
	}
	return n
}

// isNamed reports whether a line with numbers names columns: it has words, and each is above numbers.
func isNamed(l textLine, rows []textLine) bool {
	for col, k := range l.kinds {
		if k == word && count(rows, col, word) > 0 {
			return false
		}
	}
	return slices.Contains(l.kinds, word)
}

// isRemark reports whether a column is of remarks, which rows may lack, as in files of LabVIEW.
func isRemark(name string) bool { return strings.EqualFold(strings.TrimSpace(name), "comment") }

// isUnits reports whether all cells of a line may be units: in brackets, or short.
func isUnits(cells []string) bool {
	return !slices.ContainsFunc(cells, func(c string) bool {
		return c != "" && !strings.HasPrefix(c, "[") && !strings.HasPrefix(c, "(") && len([]rune(c)) > 5
	})
}

// isComment reports whether a cell begins a comment of a logger or a program.
func isComment(cell string) bool {
	return strings.HasPrefix(cell, ";") || strings.HasPrefix(cell, "#") && !table.IsMissing(cell) || strings.HasPrefix(cell, "%") || strings.HasPrefix(cell, "//")
}

// preamble returns how many lines of the file are before line i of lines and say nothing. Arrival times say something.
func preamble(lines []textLine, i int) int {
	for i > 0 && lines[i-1].arrival {
		i--
	}
	if i == 0 {
		return 0
	}
	return lines[i-1].number + 1
}
