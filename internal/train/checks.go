package train

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/classify"
)

// balance says how many rows there are of each class and of how many tools.
func (t rowTable) balance() string {
	s := fmt.Sprintf("%d windows of %d tools: %s", t.Rows(), len(t.tools()), t.census())
	if several(t.classes) {
		return s
	}
	healthy, _ := t.rowsOf(classify.Healthy)
	faulty, worn := t.rowsOf(classify.Faulty)
	switch {
	case healthy == 0 || faulty == 0:
		return s
	case faulty > healthy:
		s += fmt.Sprintf(", %.3g to 1 healthy", float64(faulty)/float64(healthy))
	default:
		s += fmt.Sprintf(", 1 to %.3g healthy", float64(healthy)/float64(faulty))
	}
	return fmt.Sprintf("%s; %d tools have some", s, len(worn))
}

// census says how many rows there are of each class.
func (t rowTable) census() string {
	words := make([]string, len(t.classes))
	for k, name := range t.classes {
		rows, tools := t.rowsOf(k)
		words[k] = fmt.Sprintf("%d %s", rows, name)
		if several(t.classes) {
			words[k] += fmt.Sprintf(" of %d", len(tools))
		}
	}
	return strings.Join(words, ", ")
}

// hugeValue is the magnitude from which on a value is rather a mistake, such as
// a missing value written as a number.
const hugeValue = 1e15

// columnStats says of each feature what may be wrong with it.
type columnStats struct {
	first         []float32 // value, NaN as long as there is none
	varies, large []bool
	missing       int // values
}

func newColumnStats(columns int) *columnStats {
	return &columnStats{slices.Repeat([]float32{float32(math.NaN())}, columns), make([]bool, columns), make([]bool, columns), 0}
}

func (c *columnStats) add(row []float32) {
	for k, v := range row {
		if v != v {
			c.missing++
			continue
		}
		if c.first[k] != c.first[k] {
			c.first[k] = v
		}
		c.varies[k] = c.varies[k] || v != c.first[k]
		c.large[k] = c.large[k] || math.Abs(float64(v)) >= hugeValue
	}
}

// columnWarnings says which features cannot help.
func (t rowTable) columnWarnings() []string {
	stats := t.stats
	if stats == nil {
		stats = newColumnStats(len(t.Columns))
		x := t.inMemory()
		for i := range x.Rows {
			stats.add(x.Row(i))
		}
	}
	var constant, empty, huge []string
	for c, name := range t.Columns {
		switch {
		case stats.first[c] != stats.first[c]:
			empty = append(empty, name)
		case !stats.varies[c]:
			constant = append(constant, name)
		}
		if stats.large[c] {
			huge = append(huge, name)
		}
	}
	var out []string
	for _, w := range []struct {
		names []string
		text  string
		do    string
	}{
		{empty, "have no value in any window and say nothing", "; check that their sensors record, or leave them out of the layout or the table"},
		{constant, "have the same value in all windows and say nothing", "; check their sensors, or leave them out if that is right"},
		{huge, fmt.Sprintf("have values of %.0g and more: is that how something missing is written? leave such cells empty", hugeValue), ""},
	} {
		if len(w.names) > 0 {
			out = append(out, fmt.Sprintf("%d of %d features %s: %s", len(w.names), len(t.Columns), w.text, card.Some(w.names))+w.do)
		}
	}
	return out
}

// copyWarnings says which tools are copies of others, and which rows occur more than once, across tools or with two
// labels. Only rows of two features or more count: single numbers coincide.
func (t rowTable) copyWarnings() []string {
	out := twinWarnings(t.twins)
	if len(t.Columns) < 2 || t.onDisk != nil { // to remember every row of a large table takes too much
		return out
	}
	first := make(map[[sha256.Size]byte]int, t.Rows())
	var leaks, contradictions int
	var leak, contradiction string
	b := make([]byte, 0, 4*len(t.Columns))
	for i := range t.Rows() {
		b = b[:0]
		for _, v := range t.Row(i).Features {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		sum := sha256.Sum256(b)
		k, again := first[sum]
		if !again {
			first[sum] = i
			continue
		}
		if classify.Together(t.together, t.group[k]) != classify.Together(t.together, t.group[i]) {
			if leaks++; leaks == 1 {
				leak = fmt.Sprintf("%s and %s", t.group[k], t.group[i])
			}
		}
		if t.Class[k] != t.Class[i] {
			if contradictions++; contradictions == 1 {
				contradiction = fmt.Sprintf("of %s and %s", t.group[k], t.group[i])
			}
		}
	}
	if leaks > 0 {
		out = append(out, fmt.Sprintf("%d windows are exact copies of windows of another tool (first: %s): if one recording is there twice under two names, tools held out are known already, and the score flatters", leaks, leak))
	}
	if contradictions > 0 {
		out = append(out, fmt.Sprintf("%d windows are exact copies of others with the other label (first: %s): no classifier can tell them apart; check the labels", contradictions, contradiction))
	}
	return out
}
