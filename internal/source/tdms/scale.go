package tdms

import (
	"fmt"
	"slices"
)

// scale turns recorded numbers into the unit of the channel, by one polynomial
// after another. The zero value changes nothing.
type scale struct {
	polynomials [][]float64 // coefficients of 1, x, x², …
	scaler      uint32      // id of the DAQmx scaler that the first one takes
}

const (
	rawInput  = 0xffffffff // input source of a scale that takes what is recorded
	maxScales = 1 << 10    // scales of a channel, and coefficients of a scale
)

// apply scales x in place.
func (s scale) apply(x []float64) {
	for _, c := range s.polynomials {
		for i, v := range x {
			sum := c[len(c)-1]
			for k := len(c) - 2; k >= 0; k-- {
				sum = sum*v + c[k]
			}
			x[i] = sum
		}
	}
}

// scaler returns the DAQmx scaler that the scale of o takes, or else the first.
func (f *File) scaler(o *object, ix rawIndex) scaler {
	s, _ := f.scaleOf(o) // errors are reported when all segments are read
	id := s.scaler
	if i := slices.IndexFunc(ix.daqmx, func(s scaler) bool { return s.id == id }); i >= 0 {
		return ix.daqmx[i]
	}
	return ix.daqmx[0]
}

// scaleOf returns the scale of a channel: its own, or its group's, or
// of the file.
func (f *File) scaleOf(o *object) (scale, error) {
	for _, from := range []*object{o, f.objects["/"+quoted(o.group)], f.objects["/"]} {
		if from == nil || !hasScales(from.properties) {
			continue
		}
		return readScale(from.properties)
	}
	return scale{}, nil
}

func quoted(name string) string {
	q := []byte{'\''}
	for i := range len(name) {
		if q = append(q, name[i]); name[i] == '\'' {
			q = append(q, '\'')
		}
	}
	return string(append(q, '\''))
}

// hasScales reports whether an object says how its values are scaled. Values of
// status "scaled" were scaled when they were written.
func hasScales(p map[string]value) bool {
	return scaleCount(p) > 0 && p["NI_Scaling_Status"].text != "scaled"
}

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
		switch kind.text {
		case "Linear":
			slope, ok1 := p[key("Linear_Slope")]
			intercept, ok2 := p[key("Linear_Y_Intercept")]
			if !ok1 || !ok2 {
				return s, fmt.Errorf("scale %d has no slope or no intercept", at)
			}
			s.polynomials = append(s.polynomials, []float64{intercept.number, slope.number})
		case "Polynomial":
			size := 4.0
			if v, ok := p[key("Polynomial_Coefficients_Size")]; ok {
				size = v.number
			}
			if !(size >= 0 && size <= maxScales) {
				return s, fmt.Errorf("scale %d has %v coefficients", at, size)
			}
			c := []float64{}
			for k := range int(size) {
				v, ok := p[key(fmt.Sprintf("Polynomial_Coefficients[%d]", k))]
				if !ok {
					return s, fmt.Errorf("scale %d has no coefficient %d", at, k)
				}
				c = append(c, v.number)
			}
			if len(c) == 0 {
				c = []float64{0}
			}
			s.polynomials = append(s.polynomials, c)
		case "AdvancedAPI": // changes nothing
		default:
			return s, fmt.Errorf("its scale %d is of type %q; linear and polynomial scales are supported: export it scaled", at, kind.text)
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

// reversed returns s with the polynomial first that is applied first.
func reversed(s scale) scale {
	slices.Reverse(s.polynomials)
	return s
}
