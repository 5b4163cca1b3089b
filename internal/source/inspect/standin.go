package inspect

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// standIns are numbers that programs and people write for a value that is missing, and ends of converters, whose values
// may be measured.
var (
	standIns = []float64{999, 999.9, 999.99, 999.25, 9999, 9999.9, 9999.99, 99999, 99999.9, 999999, 9999999}
	fullEnds = []float64{32767, 32768, 65535, 8388607, 8388608, 16777215, 2147483647, 2147483648, 4294967295}
)

// huge is larger than what sensors measure.
const huge = 1e30

// farOff is how many times as far from zero as all others a number is that stands for a missing value.
const farOff = 3

// oddNumbers counts the numbers of a channel that may stand for missing values, and follows the others.
type oddNumbers struct {
	odd      []oddNumber // different ones, the first maxOdd
	min, max float64     // of the others, if any is true
	any      bool
}

type oddNumber struct {
	value float64
	count int64
}

const maxOdd = 8

func (o *oddNumbers) add(v float64) {
	if a := math.Abs(v); a >= standIns[0] && (a >= huge || slices.Contains(standIns, math.Round(a*100)/100) || slices.Contains(fullEnds, a)) {
		i := slices.IndexFunc(o.odd, func(n oddNumber) bool { return n.value == v })
		if i < 0 && len(o.odd) < maxOdd {
			i, o.odd = len(o.odd), append(o.odd, oddNumber{value: v})
		}
		if i >= 0 {
			o.odd[i].count++
			return
		}
	}
	if !o.any || v < o.min {
		o.min = v
	}
	if !o.any || v > o.max {
		o.max = v
	}
	o.any = true
}

// seemMissing returns the numbers that seem to stand for missing values, of so many that are finite.
func (o *oddNumbers) seemMissing(finite int64) (odd []oddNumber) {
	for _, n := range o.odd {
		far := farOff * max(math.Abs(o.min), math.Abs(o.max))
		if a := math.Abs(n.value); o.any && o.min < o.max && a > far && 2*n.count < finite && (n.count > 2 || a >= huge) {
			odd = append(odd, n)
		}
	}
	return odd
}

// noteMissing names numbers that seem to stand for missing values.
func (s *Summary) noteMissing() {
	for i := range s.Channels {
		c := &s.Channels[i]
		if s.Clock != nil && s.Clock.channel == i {
			continue
		}
		for _, n := range c.odd.seemMissing(c.finite) {
			text := fmt.Sprintf("column %q: %v comes %d times, and other values are from %.6g to %.6g: it ", c.Name, n.value, n.count, c.odd.min, c.odd.max)
			if slices.Contains(fullEnds, math.Abs(n.value)) {
				s.Notes = append(s.Notes, text+"may be the end of a converter, or stand for a missing value: if so, name it in `missing` of the layout's `recording`")
				continue
			}
			s.Notes = append(s.Notes, text+"seems to stand for a missing value, which `missing` of the layout's `recording` names")
			if cell := strconv.FormatFloat(n.value, 'g', -1, 64); !slices.Contains(s.Written.Missing, cell) {
				s.Written.Missing = append(slices.Clone(s.Written.Missing), cell)
			}
		}
	}
}
