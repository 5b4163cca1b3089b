package vote

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Memory is what [Guard.Watch] remembers of the windows of one tool on one machine, by the name of the sensor. Nil
// remembers none; start with it after a change of tool. A guard of another model that goes on with the tool's reference goes on
// with a clone of it. It is plain data, to be kept as JSON.
type Memory map[string]*held

// held is how long a sensor has said the same.
type held struct {
	At      []uint32 `json:"at,omitempty"` // bits of the levels where it began to say so: JSON has no NaN
	Windows uint8    `json:"windows"`      // in a row that were so, up to stuckWindows
	Steps   steps    `json:"steps,omitzero"`
}

// Sensed is what [Guard.Watch] finds of a sensor in a window.
type Sensed struct {
	Failed bool
	Gain   float64 // what it reads of what it read when the tool's reference was settled; 1 if no step was found
}

// Clone returns a copy that shares nothing with m.
func (m Memory) Clone() Memory {
	m = maps.Clone(m)
	for name, h := range m {
		c := *cmp.Or(h, new(held)) // null in JSON
		c.At = slices.Clone(c.At)
		c.Steps.Levels = slices.Clone(c.Steps.Levels)
		m[name] = &c
	}
	return m
}

// watchedColumns returns the columns that tell that a sensor has failed: its sizes if it has some,
// as others, such as kurtosis, need not be 0 of a signal that is.
func watchedColumns(s Sensor) []int {
	var sizes []int
	for i, j := range s.Columns {
		if s.Kinds[i] != Other {
			sizes = append(sizes, j)
		}
	}
	if sizes == nil {
		return append(sizes, s.Columns...)
	}
	return sizes
}

// Watch stores in sensed, one for each of [Guard.Sensors], what it finds of the sensors in
// the next window of a tool that is judged. Failed are those whose columns of kind RMS, Mean and Max (all columns, if it has
// none of these) are all missing, all zero, or all as they were in the two windows before; of columns that are logarithms in training,
// these alone and within an eighth of the least change over three windows there, or 0.05 % of themselves. A sensor that
// repeated itself so in training may do it. Raw is
// the window's features before the reference, which the guard's rows are made from; settled says whether the
// reference is, from which on steps of gains are taken out. Watch panics
// if raw or sensed is of another length than the guard's. It allocates only for the first window that a sensor is seen in.
func (g *Guard) Watch(m *Memory, raw []float32, settled bool, sensed []Sensed) {
	if len(raw) != g.columns || len(sensed) != len(g.sensors) {
		panic(fmt.Sprintf("vote: a row of %d columns and %d sensors: want %d and %d", len(raw), len(sensed), g.columns, len(g.sensors)))
	}
	m.prepare(g)
	for k := range g.sensors {
		s := &g.sensors[k]
		zero := true
		for _, j := range s.watched {
			zero = zero && raw[j] == 0
		}
		stuck := (*m)[s.name].next(raw, s.levels, s.still) >= stuckWindows
		sensed[k].Failed = s.missing(raw) || !s.repeats && (zero || stuck)
	}
	g.look(*m, settled, func(k int) bool { return sensed[k].Failed }, func(j int) float64 { return math.Log(math.Abs(float64(raw[j]))) })
	for k := range sensed {
		sensed[k].Gain = math.Exp((*m)[g.sensors[k].name].Steps.Gain)
	}
}

// prepare makes room for the sensors of g.
func (m *Memory) prepare(g *Guard) {
	if *m == nil {
		*m = make(Memory, len(g.sensors))
	}
	for _, s := range g.sensors {
		if (*m)[s.name] == nil {
			(*m)[s.name] = new(held)
		}
	}
}

// next returns how many windows in a row, up to stuckWindows, some columns have been as in the first of them, within a share of
// themselves.
func (h *held) next(row []float32, columns []int, still float64) uint8 {
	same := h.Windows > 0 && len(h.At) == len(columns)
	for i := 0; same && i < len(columns); i++ {
		v, at := row[columns[i]], math.Float32frombits(h.At[i])
		same = v == at || v != v && at != at || math.Abs(float64(v-at)) <= still*math.Abs(float64(at))
	}
	if !same {
		h.Windows, h.At = 0, h.At[:0]
		for _, j := range columns {
			h.At = append(h.At, math.Float32bits(row[j]))
		}
	}
	h.Windows = min(h.Windows, stuckWindows-1) + 1
	return h.Windows
}

// repeats reports whether some columns were the same, or zero, for three windows on end in so many tools.
func (x Whole) repeats(columns []int) bool {
	tools := 0
	for _, l := range x.Lives {
		var h held
		if slices.ContainsFunc(l.Rows, func(i int) bool { return h.next(x.Row(i), columns, 0) >= stuckWindows }) {
			tools++
		}
	}
	return float64(tools) >= repeatingTools*float64(len(x.Lives))
}

// still returns by what share of themselves the levels of a sensor move if it is stuck, given columns that are logarithms of them: a part
// of the least that one of them moved by in any three windows of training but for those in which it did repeat itself.
func (x Whole) still(logs []int) float64 {
	least := math.Inf(1)
	for _, l := range x.Lives {
		for n := stuckWindows; n <= len(l.Rows); n++ {
			if most := x.moved(l.Rows[n-stuckWindows:n], logs); most > 0 {
				least = min(least, most)
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return min(stillShare*least, mostStill)
}

// moved returns the largest share of itself by which a level differs, in some rows, from the first of them, given columns that
// are logarithms of levels. Missing ones do not count.
func (x Whole) moved(rows, logs []int) (most float64) {
	first := x.Row(rows[0])
	for _, i := range rows[1:] {
		for _, j := range logs {
			if d := math.Abs(math.Expm1(float64(x.Row(i)[j] - first[j]))); d > most { // NaN is not
				most = d
			}
		}
	}
	return most
}
