package table

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/plain"
)

// facts are the columns that are not features, in the order in which they are
// written. A file may have them in any order, between features too, and may lack
// all but the tool.
var facts = []string{"machine", "tool", "hole", "start", "class", "vb_max_um"}

// Indices of facts.
const (
	factMachine = iota
	factTool
	factHole
	factStart
	factClass
	factVBMax
	factVBMean  // and on: details
	firstDetail = factVBMean
)

// What else a column may be.
const (
	isFeature = -1
	isIgnored = -2
)

// header says which column of a file is which of a table.
type header struct {
	names    []string
	fact     []int    // by column: index into facts, firstDetail and an index into details, isFeature or isIgnored
	feature  []int    // by column: index into the features; 0 for others
	mm       []bool   // by column: it is wear in mm
	features []string // names
	detailed bool     // there is a column of details
	windows  bool     // there is one that begins with "window."
}

// newHeader returns the header of a file with the given columns. Its errors do
// not name the file.
func newHeader(names []string, ignore *Ignore) (header, error) {
	h := header{names: names, fact: make([]int, len(names)), feature: make([]int, len(names)), mm: make([]bool, len(names))}
	for i, name := range names {
		if um := inUM(name); um != name {
			if slices.Contains(names, um) {
				return header{}, fmt.Errorf("columns %q and %q are the same wear: remove one", um, name)
			}
			h.mm[i] = true
		}
		if !utf8.ValidString(name) {
			return header{}, fmt.Errorf("the name of column %d, %q, is not valid UTF-8: save the file as UTF-8", i+1, name)
		}
		if err := plain.Check(name); err != nil {
			return header{}, fmt.Errorf("the name of column %d: %w", i+1, err)
		}
		switch h.fact[i] = factOf(name); {
		case ignore.match(name):
			h.fact[i] = isIgnored
		case h.fact[i] == isFeature:
			h.feature[i] = len(h.features)
			h.features = append(h.features, name)
		case h.fact[i] >= firstDetail:
			h.detailed = true
			h.windows = h.windows || strings.HasPrefix(name, "window.")
		}
	}
	if name, twice := duplicate(names); twice {
		return header{}, fmt.Errorf("two columns are named %q: rename one", name)
	}
	return h, h.checkTool()
}

// checkTool reports that no column names the tools.
func (h header) checkTool() error {
	at := slices.Index(h.names, facts[factTool])
	if at < 0 {
		return fmt.Errorf("no column %q: name the tool of each row in it, because rows of one tool are near copies; other known columns are %s, and all the rest are features",
			facts[factTool], strings.Join(slices.Delete(slices.Clone(facts), factTool, factTool+1), ", "))
	}
	if h.fact[at] == isIgnored {
		return fmt.Errorf("ignore: the column %q cannot be left out: rows of one tool are near copies", facts[factTool])
	}
	return nil
}

// factOf returns what a column of a name is: a fact, a detail or a feature.
func factOf(name string) int {
	name = inUM(name)
	if f := slices.Index(facts, name); f >= 0 {
		return f
	}
	if d := slices.IndexFunc(details, func(d detail) bool { return d.name == name }); d >= 0 {
		return firstDetail + d
	}
	return isFeature
}

// inUM returns the column of a table that holds wear which a file has in mm by the name of its column; of others the name.
func inUM(name string) string {
	switch name {
	case "vb_max_mm", "vb_mean_mm":
		return strings.TrimSuffix(name, "mm") + "um"
	}
	return name
}

// checkTypes reports features of which the file says that they are not numbers.
func (h header) checkTypes(number func(column int) bool) error {
	var texts []textColumn
	for i, f := range h.fact {
		if f == isFeature && !number(i) {
			texts = append(texts, textColumn{name: h.names[i]})
		}
	}
	if texts == nil {
		return nil
	}
	return textError(len(h.names), texts)
}

// row returns a row of the table, all of whose cells are missing or not known.
func (h header) row() Row {
	r := Row{Class: NoClass, VBMaxUM: math.NaN(), Features: slices.Repeat([]float32{float32(math.NaN())}, len(h.features))}
	if h.detailed {
		r.Details = new(unknownDetails())
	}
	return r
}

// value is a cell of a typed file.
type value struct {
	kind   kind
	text   string
	number float64
	time   time.Time
}

type kind int

const (
	missing kind = iota
	isText
	isNumber
	isTime
)

// textOf and numberOf return values, which are missing if they are empty or NaN.
func textOf(s string) (v value) {
	if s != "" {
		v = value{kind: isText, text: s}
	}
	return v
}

func numberOf(x float64) (v value) {
	if x == x {
		v = value{kind: isNumber, number: x}
	}
	return v
}

func (v value) String() string {
	switch v.kind {
	case isText:
		return strconv.Quote(v.text)
	case isNumber:
		return strconv.FormatFloat(v.number, 'g', -1, 64)
	case isTime:
		return v.time.Format(time.RFC3339Nano)
	}
	return "a missing value"
}

// valuesOf returns what reads the values of a column of a typed file.
func valuesOf[Cell any](c CellReader[Cell]) func(Cell) value {
	var of func(Cell) value
	switch c.Kind {
	case KindText:
		of = func(cell Cell) value { return value{kind: isText, text: strings.Clone(c.Text(cell))} }
	case KindTime:
		of = func(cell Cell) value { return value{kind: isTime, time: c.Time(cell)} }
	default:
		of = func(cell Cell) value { return value{kind: isNumber, number: c.Number(cell)} }
	}
	return func(cell Cell) value {
		if c.Null(cell) {
			return value{}
		}
		return of(cell)
	}
}

// set stores the value of a column in r. Its errors name the column.
func (h header) set(r *Row, col int, v value) error {
	if h.fact[col] == isIgnored {
		return nil
	}
	if v.kind == isNumber && math.IsNaN(v.number) {
		v = value{}
	}
	if remedy := h.store(r, col, v); remedy != "" {
		return fmt.Errorf("column %q: %.60v %s", h.names[col], v, remedy)
	}
	return nil
}

// store stores a value, which may be missing. The remedy is empty if it can be stored.
func (h header) store(r *Row, col int, v value) (remedy string) {
	if h.mm[col] {
		v.number = math.Round(v.number*1e6) / 1e3 // to the nm, so that 0.35 mm are 350 µm of 32 bits too
	}
	fact := h.fact[col]
	if v.number < 0 && (fact == factVBMax || fact == factVBMean) {
		return "is a negative flank wear: correct it, or leave the cell empty if it was not measured"
	}
	switch fact {
	case factMachine:
		r.Machine, remedy = v.name()
	case factTool:
		if r.Tool, remedy = v.name(); remedy == "" {
			var err error
			if r.Tool, err = plain.Name(r.Tool); err != nil {
				remedy = "has an invisible character: write the name again"
			}
		}
	case factHole:
		r.Hole, remedy = v.name()
	case factStart:
		r.Start, remedy = v.start()
	case factClass:
		r.Class, r.Label, remedy = v.class()
	case factVBMax:
		r.VBMaxUM, remedy = v.finite()
	case isFeature:
		r.Features[h.feature[col]], remedy = v.feature()
	default:
		remedy = details[fact-firstDetail].set(r.Details, v)
	}
	return remedy
}

// isControl is what is wrong with a name that would change how a listing looks.
const isControl = "has a line end, another control character, or one that turns the direction of writing: remove it"

// name returns the name in v, or else what is wrong with it. Tools may be
// numbered.
func (v value) name() (name, remedy string) {
	switch {
	case v.kind == isText && !utf8.ValidString(v.text):
		return "", "is not valid UTF-8: write the file again, as UTF-8"
	case v.kind == isText && plain.Check(v.text) != nil:
		return "", isControl
	case v.kind == isText:
		return v.text, ""
	case v.kind == isNumber && math.Abs(v.number) >= 1<<53:
		return "", "is too large for a name, as its neighbours are the same number: make the column text"
	case v.kind == isNumber:
		return strconv.FormatFloat(v.number, 'f', -1, 64), ""
	case v.kind == missing:
		return "", ""
	}
	return "", "is not a name: make the column text"
}

// start returns the time in v, or else what is wrong with it.
func (v value) start() (at time.Time, remedy string) {
	switch v.kind {
	case missing:
		return at, ""
	case isText:
		at, ok := ParseTime(v.text)
		if !ok {
			return at, "is not a time: write RFC 3339, as 2026-01-31T14:05:09Z"
		}
		return at, ""
	case isTime:
		if y := v.time.UTC().Year(); y < 1 || y > 9999 {
			return at, "is not a time between the years 1 and 9999"
		}
		return v.time.UTC(), ""
	}
	return at, "is not a time: make the column a timestamp"
}

// class returns the class in v, or else what is wrong with it.
func (v value) class() (class int, label, remedy string) {
	switch v.kind {
	case missing:
		return NoClass, "", ""
	case isText:
		if class, label, ok := parseClass(v.text); ok {
			return class, label, ""
		}
	case isNumber:
		if v.number >= 0 && v.number <= math.MaxInt32 && v.number == math.Trunc(v.number) {
			return int(v.number), "", ""
		}
	}
	return NoClass, "", notAClass
}

// finite returns the number in v, NaN if it is missing, or else what is wrong with it.
func (v value) finite() (x float64, remedy string) {
	switch {
	case v.kind == missing:
		return math.NaN(), ""
	case v.kind != isNumber || math.IsInf(v.number, 0):
		return math.NaN(), notFinite
	}
	return v.number, ""
}

// feature is finite for numbers of 32 bits.
func (v value) feature() (x float32, remedy string) {
	n, remedy := v.finite()
	if x = float32(n); math.IsInf(float64(x), 0) {
		remedy = "is not a finite number of 32 bits: correct it, or leave the cell empty if it is missing"
	}
	return x, remedy
}

const notFinite = "is not a finite number: correct it, or leave the cell empty if it is missing"

const notAClass = "is not a class: write 0, 1, …, or the class's name, or leave the cell empty"

// parseClass reads a class: its number, or else its name, which is text that is
// no number. An empty cell is NoClass.
func parseClass(s string) (class int, label string, ok bool) {
	if s == "" {
		return NoClass, "", true
	}
	number, err := strconv.ParseFloat(s, 64) // programs write classes as 1.0 where some are missing
	if err == nil && number == math.Trunc(number) && math.Abs(number) <= math.MaxInt32 {
		return int(number), "", number >= 0
	}
	if err == nil || errors.Is(err, strconv.ErrRange) || strings.TrimSpace(s) != s || plain.Check(s) != nil {
		return NoClass, "", false
	}
	return NoClass, s, true
}

// writable reports what no format can hold: two columns of one name, or a
// feature with the name of a column that is not one.
func writable(columns []string) error {
	if name, twice := duplicate(columns); twice {
		return fmt.Errorf("table: write: two columns are named %q", name)
	}
	for _, name := range columns {
		if factOf(name) != isFeature {
			return fmt.Errorf("table: write: a feature is named %q, which is not a feature in a table: rename it", name)
		}
	}
	return nil
}

// facts appends what is known of a row next to its features, in the order of the columns. Only the tool may be a text without
// letters. A class is a name or, unless the table has names for classes, a number.
func (r Row) facts(to []value, named bool) []value {
	to = append(to, textOf(r.Machine), value{kind: isText, text: r.Tool}, textOf(r.Hole), value{}, value{}, numberOf(r.VBMaxUM))
	if !r.Start.IsZero() {
		to[factStart] = value{kind: isTime, time: r.Start.UTC()}
	}
	if named {
		to[factClass] = textOf(r.classText())
	} else if r.Class != NoClass {
		to[factClass] = numberOf(float64(r.Class))
	}
	if r.Details != nil {
		for _, d := range details {
			to = append(to, d.value(r.Details))
		}
	}
	return to
}

// writable reports what of row i no file can hold, or what would not be read again: an infinite number, or a label.
func (r Row) writable(i int, facts []value, columns []SheetColumn) error {
	if class, label, ok := parseClass(r.Label); !ok || class != NoClass || label != r.Label {
		return fmt.Errorf("row %d: class %.60q would not be read as a name: name it by a word", i+1, r.Label)
	}
	if math.IsInf(r.VBMaxUM, 0) {
		return fmt.Errorf("row %d: wear is infinite", i+1)
	}
	for col, v := range facts {
		if v.kind == isNumber && math.IsInf(v.number, 0) {
			return fmt.Errorf("row %d, column %q: the value is infinite", i+1, columns[col].Name)
		}
	}
	for j, v := range r.Features {
		if math.IsInf(float64(v), 0) {
			return fmt.Errorf("row %d, column %q: the value is infinite", i+1, columns[len(facts)+j].Name)
		}
	}
	return nil
}

// classText returns the class of r as text: the name or the number, empty if it
// has neither.
func (r Row) classText() string {
	if r.Label != "" || r.Class == NoClass {
		return r.Label
	}
	return strconv.Itoa(r.Class)
}
