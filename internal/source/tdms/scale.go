package tdms

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// scale turns recorded numbers into the unit of the channel, by one step
// after another. The zero value changes nothing.
type scale struct {
	steps  []step
	scaler uint32 // id of the DAQmx scaler that the first one takes
}

// step is a polynomial or a table.
type step struct {
	polynomial []float64 // coefficients of 1, x, x², …; nil for a table
	from, to   []float64 // what numbers of a table become, with from ascending
}

const (
	rawInput  = 0xffffffff // input source of a scale that takes what is recorded
	maxScales = 1 << 10    // scales of a channel, and coefficients of a scale
)

// apply scales x in place.
func (s scale) apply(x []float64) {
	for _, st := range s.steps {
		for i, v := range x {
			if st.polynomial == nil {
				x[i] = st.lookUp(v)
				continue
			}
			c := st.polynomial
			sum := c[len(c)-1]
			for k := len(c) - 2; k >= 0; k-- {
				sum = sum*v + c[k]
			}
			x[i] = sum
		}
	}
}

// lookUp interpolates in a table. Beyond its ends it holds the last value, as DAQmx does.
func (st step) lookUp(v float64) float64 {
	last := len(st.from) - 1
	switch {
	case v != v:
		return v
	case v <= st.from[0]:
		return st.to[0]
	case v >= st.from[last]:
		return st.to[last]
	}
	k := sort.Search(last, func(k int) bool { return st.from[k] > v }) - 1
	slope := (st.to[k+1] - st.to[k]) / (st.from[k+1] - st.from[k])
	return slope*(v-st.from[k]) + st.to[k]
}

// scaler returns the DAQmx scaler that the scale of o takes, or else the first.
func (f *file) scaler(o *object, ix rawIndex) scaler {
	s, _ := f.scaleOf(o) // errors are reported when all segments are read
	id := s.scaler
	if i := slices.IndexFunc(ix.daqmx, func(s scaler) bool { return s.id == id }); i >= 0 {
		return ix.daqmx[i]
	}
	return ix.daqmx[0]
}

// scaleOf returns the scale of a channel: its own, or its group's, or
// of the file. Values of status "scaled" were scaled when they were written.
func (f *file) scaleOf(o *object) (scale, error) {
	for _, from := range []*object{o, f.objects["/"+Quoted(o.group)], f.objects["/"]} {
		if from != nil && scaleCount(from.properties) > 0 && from.properties["NI_Scaling_Status"].text != "scaled" {
			return readScale(from.properties)
		}
	}
	return scale{}, nil
}

// Quoted returns a part of the path of an object.
func Quoted(name string) string { return "'" + strings.ReplaceAll(name, "'", "''") + "'" }

// scaleCount returns how many scales there are, which some writers do not say.
func scaleCount(p map[string]value) int {
	if n, ok := p["NI_Number_Of_Scales"]; ok {
		if !(n.number >= 0 && n.number <= maxScales) {
			return maxScales + 1
		}
		return int(n.number)
	}
	n := 0
	for key := range p {
		var i int
		if _, err := fmt.Sscanf(key, "NI_Scale[%d]_Scale_Type", &i); err == nil && i >= 0 && i < maxScales {
			n = max(n, i+1)
		}
	}
	return n
}

// readScale returns the scale that the last entry describes, with those that it
// takes its input from. There must be one.
func readScale(p map[string]value) (scale, error) {
	var s scale
	n := scaleCount(p)
	if n > maxScales {
		return s, fmt.Errorf("it has more than %d scales", maxScales)
	}
	for at, steps := n-1, 0; ; steps++ {
		if steps > n {
			return s, fmt.Errorf("its scales take each other as input")
		}
		key := func(name string) string { return fmt.Sprintf("NI_Scale[%d]_%s", at, name) }
		kind, ok := p[key("Scale_Type")]
		if !ok { // what DAQmx recorded, by the id of the scaler
			s.scaler = uint32(at)
			return reversed(s), nil
		}
		st, err := readStep(kind.text, at, func(name string) (value, bool) { v, ok := p[key(name)]; return v, ok })
		if err != nil {
			return s, err
		}
		if st.polynomial != nil || st.from != nil {
			s.steps = append(s.steps, st)
		}
		input, ok := p[key(kind.text+"_Input_Source")]
		if !ok || input.number == rawInput {
			return reversed(s), nil
		}
		if !(input.number >= 0 && input.number < float64(n)) {
			return s, fmt.Errorf("scale %d takes scale %v as input, of %d", at, input.number, n)
		}
		at = int(input.number)
	}
}

// readStep reads a scale of the given type. One of AdvancedAPI changes nothing.
func readStep(kind string, at int, get func(name string) (value, bool)) (st step, err error) {
	switch kind {
	case "Linear":
		slope, ok1 := get("Linear_Slope")
		intercept, ok2 := get("Linear_Y_Intercept")
		if !ok1 || !ok2 {
			return st, fmt.Errorf("scale %d has no slope or no intercept", at)
		}
		st.polynomial = []float64{intercept.number, slope.number}
	case "Polynomial":
		st.polynomial, err = numbers("Polynomial_Coefficients", 4, at, get)
		if len(st.polynomial) == 0 {
			st.polynomial = []float64{0}
		}
	case "Table":
		if st.from, err = numbers("Table_Pre_Scaled_Values", 0, at, get); err == nil {
			st.to, err = numbers("Table_Scaled_Values", 0, at, get)
		}
		if len(st.from) > 1 && st.from[0] > st.from[1] {
			slices.Reverse(st.from)
			slices.Reverse(st.to)
		}
		if err == nil && (len(st.from) == 0 || len(st.from) != len(st.to) || !slices.IsSorted(st.from) || len(slices.Compact(slices.Clone(st.from))) < len(st.from) || slices.ContainsFunc(st.from, math.IsNaN)) {
			err = fmt.Errorf("scale %d is a table of %d and %d numbers that do not ascend or descend", at, len(st.from), len(st.to))
		}
	case "AdvancedAPI":
	default:
		err = fmt.Errorf("its scale %d is of type %q; linear, polynomial and table scales are supported: export it scaled", at, kind)
	}
	return st, err
}

// numbers reads a list of a scale, of the given size if the file does not say it.
func numbers(name string, size, at int, get func(name string) (value, bool)) (out []float64, err error) {
	n := float64(size)
	if v, ok := get(name + "_Size"); ok {
		n = v.number
	}
	if !(n >= 0 && n <= maxScales) {
		return nil, fmt.Errorf("scale %d has %v %s", at, n, name)
	}
	for k := range int(n) {
		v, ok := get(fmt.Sprintf("%s[%d]", name, k))
		if !ok {
			return nil, fmt.Errorf("scale %d has no %s[%d]", at, name, k)
		}
		out = append(out, v.number)
	}
	return out, nil
}

// reversed returns s with the step first that is applied first.
func reversed(s scale) scale {
	slices.Reverse(s.steps)
	return s
}

// calibrating are names of properties by which people write down what numbers must be multiplied by.
var calibrating = regexp.MustCompile(`(?i)gain|sensitivity|scale|calibration|factor`)

// unused lists properties of an object that look like a calibration. No program applies them: what they mean differs.
func (o *object) unused() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(o.properties)) {
		v := o.properties[name]
		text := strings.TrimSpace(v.text)
		if text == "" && v.number != 0 {
			text = strconv.FormatFloat(v.number, 'g', -1, 64)
		}
		if isKept(name) || text == "" || text == "1" || !strings.ContainsAny(text[:1], "+-.0123456789") {
			continue // a word, or nothing to multiply by
		}
		list = append(list, fmt.Sprintf("%q: %.40s", name, text))
	}
	return list
}
