// Package keel reads the data sets of the KEEL repository.
//
// A file has a header, which declares attributes and says which of them are
// inputs and which one is the output, and then a row of values a line. A set is
// a folder of ten files: the training and the test part of each of five folds,
// which partition its rows.
//
// Source: J. Alcalá-Fdez et al., "KEEL Data-Mining Software Tool: Data Set
// Repository, Integration of Algorithms and Experimental Analysis Framework",
// J. Multiple-Valued Logic and Soft Computing 17, 2011. The files out there keep
// to its grammar loosely, and so does Read.
package keel

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

type attribute struct {
	Name string
	// Values are those that a nominal attribute may have; nil: it is a number.
	Values []string
	open   bool // Values are those that occur, for the header declares none
}

func (a *attribute) nominal() bool { return a.Values != nil || a.open }

// file is what a file holds. The ranges that it declares are left out: they are
// of all rows, so scaling by them would leak the test rows.
type file struct {
	Inputs []attribute
	Output attribute // nominal
	Data   []float64 // N×len(Inputs), row-major: a number, the index of a value, or NaN where there is none
	Class  []int     // by row: the index of the output's value
}

// maxLine is the length of the longest line that Read takes.
const maxLine = 1 << 20

// read reads a file. The name is for errors, which state the line and a remedy.
//
// Keywords may be of either case, blanks are of no matter, % begins a comment,
// names and values may stand in single quotes. Without @outputs the last
// attribute is the output, without @inputs all others are inputs. Attributes
// without a type are nominal. Missing values are ? or <null>.
func read(r io.Reader, name string) (*file, error) {
	p := parser{name: name}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		p.line++
		text := lines.Text()
		if p.line == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		text = strings.TrimSpace(text[:outside(text, '%')])
		var err error
		switch {
		case text == "":
		case p.roles == nil:
			err = p.declare(text)
		default:
			err = p.row(text)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		p.line++
		return nil, p.errorf("%v: correct the file, in which lines end with a line feed and have at most %d bytes", err, maxLine)
	}
	switch {
	case p.roles == nil:
		return nil, p.errorf("no @data: the file is cut off, or is not a KEEL file")
	case len(p.file.Class) == 0:
		return nil, p.errorf("no rows follow @data: the file is cut off")
	}
	return &p.file, nil
}

// Roles of an attribute: the index of an input, or one of these.
const (
	unused = -1
	output = -2
)

type parser struct {
	name string
	line int

	attributes      []attribute
	inputs, outputs []string // as declared; nil: not declared

	roles []int // of each attribute, once @data has come
	file  file
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{p.name, p.line}, args...)...)
}

func (p *parser) declare(text string) error {
	if text[0] != '@' {
		return p.errorf("%.40q is before @data: a line of the header begins with @", text)
	}
	keyword := strings.Fields(text)[0]
	rest := strings.TrimSpace(text[len(keyword):])
	switch strings.ToLower(keyword) {
	case "@relation":
		return nil
	case "@attribute":
		return p.attribute(rest)
	case "@input", "@inputs":
		p.inputs = list(rest)
		return nil
	case "@output", "@outputs":
		p.outputs = list(rest)
		return nil
	case "@data":
		return p.begin()
	}
	return p.errorf("%.40q is not a keyword: @relation, @attribute, @inputs, @outputs and @data are", keyword)
}

func (p *parser) attribute(text string) error {
	var name, kind string
	if strings.HasPrefix(text, "'") {
		end := strings.IndexByte(text[1:], '\'')
		if end < 0 {
			return p.errorf("the quote of %.40q is not closed", text)
		}
		name, kind = text[1:1+end], text[2+end:]
	} else if i := strings.IndexAny(text, " \t{"); i >= 0 {
		name, kind = text[:i], text[i:]
	} else {
		name = text
	}
	if name = strings.TrimSpace(name); name == "" {
		return p.errorf("@attribute without a name")
	}
	if p.find(name) >= 0 {
		return p.errorf("attribute %q is declared twice: rename one of them", name)
	}
	a := attribute{Name: name}
	kind = strings.TrimSpace(kind)
	switch {
	case kind == "":
		a.open = true
	case kind[0] == '{':
		if kind[len(kind)-1] != '}' {
			return p.errorf("the values of attribute %q have no closing brace", name)
		}
		if a.Values = list(kind[1 : len(kind)-1]); len(a.Values) == 0 {
			return p.errorf("attribute %q may have no value at all: list its values", name)
		}
		for i, v := range a.Values {
			if slices.Contains(a.Values[:i], v) {
				return p.errorf("attribute %q lists its value %q twice: list it once", name, v)
			}
		}
	default:
		word, bounds, ranged := strings.Cut(kind, "[")
		switch word = strings.ToLower(strings.TrimSpace(word)); {
		case word != "real" && word != "integer":
			return p.errorf("attribute %q is of type %.40q: must be real, integer or a list in braces", name, kind)
		case ranged && !strings.HasSuffix(bounds, "]"):
			return p.errorf("the range of attribute %q has no closing bracket", name)
		}
	}
	p.attributes = append(p.attributes, a)
	return nil
}

func (p *parser) find(name string) int {
	return slices.IndexFunc(p.attributes, func(a attribute) bool { return a.Name == name })
}

// begin takes @data: from here on it is known what each column is.
func (p *parser) begin() error {
	if len(p.attributes) < 2 {
		return p.errorf("@data after %d attributes: there must be an input and an output", len(p.attributes))
	}
	if p.outputs == nil {
		p.outputs = []string{p.attributes[len(p.attributes)-1].Name}
	}
	if len(p.outputs) != 1 {
		return p.errorf("%d outputs: one is the class", len(p.outputs))
	}
	p.roles = slices.Repeat([]int{unused}, len(p.attributes))
	out := p.find(p.outputs[0])
	if out < 0 {
		return p.errorf("output %q is not an attribute: declare it before @data", p.outputs[0])
	}
	p.roles[out] = output
	p.file.Output = p.attributes[out]
	if !p.file.Output.nominal() {
		return p.errorf("output %q is a number: a class is one of the values in braces", p.file.Output.Name)
	}
	if p.inputs == nil {
		for i, a := range p.attributes {
			if i != out {
				p.inputs = append(p.inputs, a.Name)
			}
		}
	}
	for _, name := range p.inputs {
		i := p.find(name)
		if i < 0 {
			return p.errorf("input %q is not an attribute: declare it before @data", name)
		}
		if p.roles[i] != unused {
			return p.errorf("attribute %q is an input and something else too: name it once", name)
		}
		p.roles[i] = len(p.file.Inputs)
		p.file.Inputs = append(p.file.Inputs, p.attributes[i])
	}
	if len(p.file.Inputs) == 0 {
		return p.errorf("no inputs")
	}
	return nil
}

func (p *parser) row(text string) error {
	values := split(text)
	if len(values) != len(p.roles) {
		return p.errorf("%d values, but %d attributes: the row is cut off, or has a comma in a value: correct it", len(values), len(p.roles))
	}
	from, class := len(p.file.Data), 0
	p.file.Data = append(p.file.Data, make([]float64, len(p.file.Inputs))...)
	for i, text := range values {
		absent := text == "?" || strings.EqualFold(text, "<null>")
		switch role := p.roles[i]; {
		case role == unused:
		case role == output && absent:
			return p.errorf("output %q is missing: leave the row out", p.file.Output.Name)
		case role == output:
			var err error
			if class, err = p.index(&p.file.Output, text); err != nil {
				return err
			}
		case absent:
			p.file.Data[from+role] = math.NaN()
		case p.file.Inputs[role].nominal():
			v, err := p.index(&p.file.Inputs[role], text)
			if err != nil {
				return err
			}
			p.file.Data[from+role] = float64(v)
		default:
			v, ok := number(text)
			if !ok {
				return p.errorf("attribute %q: %.40q is not a number: correct it, or write ? or <null> for a missing value", p.file.Inputs[role].Name, text)
			}
			p.file.Data[from+role] = v
		}
	}
	p.file.Class = append(p.file.Class, class)
	return nil
}

func (p *parser) index(a *attribute, text string) (int, error) {
	if i := slices.Index(a.Values, text); i >= 0 {
		return i, nil
	}
	if !a.open {
		return 0, p.errorf("attribute %q: %.40q is none of its values {%s}", a.Name, text, strings.Join(a.Values, ", "))
	}
	a.Values = append(a.Values, text)
	return len(a.Values) - 1, nil
}

// number returns the value of a decimal number that float32 can hold, which is
// what networks take.
func number(text string) (float64, bool) {
	if strings.ContainsAny(text, "xXpP_") { // Go's own notations
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	v, _ = strconv.ParseFloat(text, 64)
	return v, true
}

// outside returns where a byte first is outside of quotes, the length of the text if it is nowhere.
func outside(text string, b byte) int {
	quoted := false
	for i := range len(text) {
		if text[i] == b && !quoted {
			return i
		}
		quoted = quoted != (text[i] == '\'')
	}
	return len(text)
}

// split returns what commas outside of quotes separate, without the blanks and
// the quotes around it.
func split(text string) (parts []string) {
	for {
		i := outside(text, ',')
		part := strings.TrimSpace(text[:i])
		if n := len(part); n >= 2 && part[0] == '\'' && part[n-1] == '\'' {
			part = part[1 : n-1]
		}
		if parts = append(parts, part); i == len(text) {
			return parts
		}
		text = text[i+1:]
	}
}

// list is split without empty parts, which some files have.
func list(text string) []string {
	return slices.DeleteFunc(split(text), func(s string) bool { return s == "" })
}
