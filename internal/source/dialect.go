package source

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// dialect says how a table of text is written.
type dialect struct {
	skip      int  // lines before the header that say nothing
	header    int  // lines that name the columns; 0: columns are named 1, 2, …
	separator rune // between cells, ' ' for any number of blanks and tabs; 0: to be found
	comma     bool // numbers have a decimal comma
	stated    bool // the layout says whether they have
	counted   bool // the layout says how many lines name the columns
	whole     bool // nothing of it is to be found any more
	missing   missingCells
	guess     bool // there is no layout: columns without names have numbers
}

// separators are the words that a layout may use for a separator that is hard
// to see.
var separators = map[string]rune{"": 0, "comma": ',', "semicolon": ';', "tab": '\t', "blank": ' '}

// separatorWord returns the word for a separator, empty if it has none.
func separatorWord(separator rune) string {
	for word, s := range separators {
		if s == separator {
			return word
		}
	}
	return ""
}

// dialectOf returns what a layout says of its tables.
func dialectOf(rec signal.Recording) (dialect, error) {
	d := dialect{skip: rec.Skip, header: 1, missing: missingOf(rec.Missing)}
	if rec.Skip < 0 {
		return d, fmt.Errorf("`recording: skip`: %d: must be how many lines there are before the header", rec.Skip)
	}
	d.counted = rec.Header != ""
	switch n, err := strconv.Atoi(rec.Header); {
	case rec.Header == "":
	case rec.Header == "none":
		d.header = 0
	case err != nil || n < 0 || n > maxHeader:
		return d, fmt.Errorf("`recording: header`: %q: write `none`, or how many lines name the columns, at most %d", rec.Header, maxHeader)
	default:
		d.header = n
	}
	var ok bool
	if d.separator, ok = separators[rec.Separator]; !ok {
		r := []rune(rec.Separator)
		if len(r) != 1 || !strings.ContainsRune(",;\t |:", r[0]) {
			return d, fmt.Errorf("`recording: separator`: %q: write comma, semicolon, tab, blank, \"|\" or \":\"", rec.Separator)
		}
		d.separator = r[0]
	}
	switch d.stated = rec.Decimal != ""; rec.Decimal {
	case "", "point":
	case "comma":
		d.comma = true
	default:
		return d, fmt.Errorf("`recording: decimal`: %q: write point or comma", rec.Decimal)
	}
	return d, nil
}

// recording says of a dialect what a layout must say: what is not the default.
func (d dialect) recording() (rec signal.Recording) {
	switch d.header {
	case 0:
		rec.Header = "none"
	case 1:
	default:
		rec.Header = strconv.Itoa(d.header)
	}
	if d.separator != ',' || d.comma {
		rec.Separator = cmp.Or(separatorWord(d.separator), string(d.separator))
	}
	if d.comma {
		rec.Decimal = "comma"
	}
	rec.Missing = d.missing.cells
	return rec
}

// findSeparator returns the one of comma, semicolon and tab that is most
// frequent outside quotes in the first line of head that is neither empty nor
// an arrival time. Where none of them occurs and the table has no header, it
// returns a blank if the line has several words.
func (d dialect) findSeparator(head []byte) rune {
	var n [128]int
	var line []byte
	quoted := false
	for line = range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !isArrival(string(line[:min(len(line), 40)])) {
			break
		}
	}
	for _, b := range head[max(0, bytes.Index(head, line)):] {
		if b == '"' {
			quoted = !quoted
		} else if b == '\n' && !quoted {
			break
		} else if b < 128 && !quoted {
			n[b]++
		}
	}
	if d.comma {
		n[','] = 0
	}
	sep := ','
	for _, s := range ";\t" {
		if n[s] > n[sep] {
			sep = s
		}
	}
	if n[sep] == 0 && d.header == 0 && len(bytes.Fields(line)) > 1 || sep == ',' && d.comma {
		return ' '
	}
	return sep
}

// complete finds by the beginning of the file what a layout does not say: lines before the header, the separator, and
// whether numbers have a decimal comma. A file without names has them as the layout says.
func (d *dialect) complete(head []byte) {
	if d.whole {
		return
	}
	if end := bytes.LastIndexByte(head, '\n') + 1; len(head) >= readAhead && end > 0 { // 02.11.2026 that is cut off may be a number
		head = head[:end]
	}
	if found, ok := d.sniff(head, d.counted); ok && (found.header > 0 || d.header == 0 || d.guess) {
		*d = found
	}
	head = behindLines(head, d.skip)
	if d.separator == 0 {
		d.separator = d.findSeparator(head)
	}
	if !d.stated {
		d.comma = d.separator != ',' && d.hasDecimalCommas(head) || d.separator == ',' && quotedCommas.Match(head)
	}
	d.whole = true
}

// hasDecimalCommas reports whether numbers in head have a decimal comma, and none a
// point, but between thousands. A comma that may divide thousands, as in 1,234, is not enough, unless all numbers of a column have one.
func (d dialect) hasDecimalCommas(head []byte) bool {
	comma := false
	between := func(r rune) bool { return r == d.separator || r == '\n' || r == '\r' || r == ' ' }
	for cell := range strings.FieldsFuncSeq(string(head), between) {
		if strings.Contains(cell, ".") && isNumber(cell) && !grouped.MatchString(cell) {
			return false
		}
		before, after, ok := strings.Cut(strings.Trim(cell, "\""), ",")
		comma = comma || ok && isNumber(before+"."+after) && !thousands(before, after)
	}
	return comma || d.allCommas(head)
}

// quotedCommas are numbers with a decimal comma, in quotes because the comma separates cells too. One digit or two before the comma, and no three behind it, divide no
// thousands.
var quotedCommas = regexp.MustCompile(`(,|^)"-?\d+,(\d{1,2}|\d{4,})"`)

// manyCommas is how many different numbers of a column show that it has numbers with decimals: of thousands some would be below 1,000.
const manyCommas = 20

// allCommas reports whether each number of a column has a comma.
func (d dialect) allCommas(head []byte) bool {
	var others [64]int
	var commas [64]map[string]bool // different numbers
	for line := range bytes.Lines(head) {
		for i, cell := range splitQuoted(string(bytes.TrimRight(line, "\r\n")), d.separator) {
			if before, after, ok := strings.Cut(cell, ","); i < len(commas) && ok && isNumber(before+"."+after) {
				if commas[i] == nil {
					commas[i] = make(map[string]bool)
				}
				commas[i][cell] = true
			} else if i < len(others) && isNumber(cell) {
				others[i]++
			}
		}
	}
	for i, of := range commas {
		if len(of) >= manyCommas && others[i] == 0 {
			return true
		}
	}
	return false
}

// thousands reports whether the comma between two parts of a number may divide
// thousands.
func thousands(before, after string) bool {
	before = strings.TrimLeft(before, "+-")
	return len(before) >= 1 && len(before) <= 3 && before[0] != '0' && len(after) == 3
}

// arrivalLayouts are how recorders stamp the arrival of a chunk of samples.
var arrivalLayouts = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", time.RFC3339}

// arrival returns the time that a line is which holds nothing else. Without a
// zone it is taken as UTC.
func arrival(line string) (time.Time, bool) {
	if !isArrival(line) {
		return time.Time{}, false
	}
	line, more := withoutSixty(strings.TrimSpace(line))
	for _, l := range arrivalLayouts {
		if t, err := time.Parse(l, line); err == nil {
			return t.Add(more), true
		}
	}
	return time.Time{}, false
}

// isArrival reports whether a line is a date and time, and nothing else.
func isArrival(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len("2006-01-02 15:04:05") && line[4] == '-' && arrivalLine.MatchString(line)
}

var arrivalLine = regexp.MustCompile(`^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([.,]\d+)? ?(Z|[+-]\d\d:?\d\d)?$`)

func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return err == nil
}

func allNumbers(cells []string) bool {
	return len(cells) > 0 && !slices.ContainsFunc(cells, func(c string) bool { return !isNumber(c) })
}
