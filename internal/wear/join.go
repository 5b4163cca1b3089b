package wear

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"
)

// Mode says how measurements reach windows.
type Mode string

const (
	// HoleEnd gives every window of a hole the measurement that was taken
	// when the hole had ended, the latest if there are several.
	HoleEnd Mode = "hole-end"

	// Interpolate takes the wear of a window linear in time between two
	// measurements of its tool. Before the first measurement it starts from
	// zero at the start of the tool, if [Join.Start] said when that was;
	// otherwise, and after the last measurement, wear is not known. A state is
	// never carried back in time: a window has it if both measurements around
	// it agree on it. From a measurement that says chipped or broken on, the
	// tool is that for good. So the windows between the cut that chipped a tool
	// and the measurement that found out keep the label of their wear.
	Interpolate Mode = "interpolate"
)

// Tally counts the windows that a Join was asked about: how many found a
// label, and why the others did not.
type Tally struct {
	Labelled int
	NoTool   int // no measurement of the tool
	NoHole   int // HoleEnd: none at the end of the hole, or the window names no hole
	Before   int // Interpolate: before the first measurement, and the tool's start is not known
	After    int // Interpolate: after the last measurement
	Between  int // Interpolate: between measurements of states that differ, and of no wear
}

// Unlabelled returns how many windows found no label.
func (t Tally) Unlabelled() int { return t.NoTool + t.NoHole + t.Before + t.After + t.Between }

// String returns the tally in words, leaving out what did not occur.
func (t Tally) String() string {
	var why []string
	for _, r := range []struct {
		n    int
		text string
	}{
		{t.NoTool, "tool not measured"},
		{t.NoHole, "hole not measured"},
		{t.Before, "before the first measurement"},
		{t.After, "after the last measurement"},
		{t.Between, "between two states"},
	} {
		if r.n > 0 {
			why = append(why, fmt.Sprintf("%d %s", r.n, r.text))
		}
	}
	s := fmt.Sprintf("%d labelled, %d not", t.Labelled, t.Unlabelled())
	if len(why) > 0 {
		s += ": " + strings.Join(why, ", ")
	}
	return s
}

// Join finds the wear of windows. It must not be used by several goroutines at
// once.
type Join struct {
	mode   Mode
	tools  map[toolKey]*history
	starts map[toolKey]time.Time
	tally  Tally
}

type toolKey struct{ machine, tool string }

// history is what is known of one tool.
type history struct {
	holes     map[string]Measurement // HoleEnd
	states    []Measurement          // Interpolate: all of them, by time
	mean, max curve
}

// curve is measured wear over time, ascending.
type curve struct {
	at []time.Time
	um []float64
}

// NewJoin returns a Join of the measurements, of which those that know nothing
// are left out. A measurement without a machine goes for every machine that has
// none of the tool itself. NewJoin returns an error if mode is not known, if it
// needs a hole or a time that a measurement lacks, or if a tool was measured
// twice at once.
func NewJoin(ms []Measurement, mode Mode) (*Join, error) {
	if mode != HoleEnd && mode != Interpolate {
		return nil, fmt.Errorf("wear: join %q is not one of %q, %q", mode, HoleEnd, Interpolate)
	}
	j := &Join{mode: mode, tools: make(map[toolKey]*history), starts: make(map[toolKey]time.Time)}
	ms = slices.Clone(ms)
	slices.SortStableFunc(ms, func(a, b Measurement) int { return a.Time.Compare(b.Time) })
	for _, m := range ms {
		if !m.Known() {
			continue
		}
		key := toolKey{m.Machine, m.Tool}
		h := j.tools[key]
		if h == nil {
			h = &history{holes: make(map[string]Measurement)}
			j.tools[key] = h
		}
		var err error
		if mode == HoleEnd {
			err = h.addHole(m)
		} else {
			err = h.addTime(m)
		}
		if err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (h *history) addHole(m Measurement) error {
	if m.Hole == "" {
		return fmt.Errorf("wear: a measurement of tool %q names no hole, which join %q needs: fill column hole, or use join %q", m.Tool, HoleEnd, Interpolate)
	}
	if o, twice := h.holes[m.Hole]; twice && o.Time.Equal(m.Time) {
		return fmt.Errorf("wear: tool %q has two measurements at the end of hole %q: keep one of them, or state when each was taken", m.Tool, m.Hole)
	}
	h.holes[m.Hole] = m
	return nil
}

func (h *history) addTime(m Measurement) error {
	if m.Time.IsZero() {
		return fmt.Errorf("wear: a measurement of tool %q has no time, which join %q needs: fill column time, or use join %q", m.Tool, Interpolate, HoleEnd)
	}
	if n := len(h.states); n > 0 && h.states[n-1].Time.Equal(m.Time) {
		return fmt.Errorf("wear: tool %q has two measurements at %s: keep one of them", m.Tool, m.Time.Format(time.RFC3339Nano))
	}
	h.states = append(h.states, m)
	h.mean.add(m.Time, m.VBMeanUM)
	h.max.add(m.Time, m.VBMaxUM)
	return nil
}

func (c *curve) add(at time.Time, um float64) {
	if um == um {
		c.at = append(c.at, at)
		c.um = append(c.um, um)
	}
}

// Start says that a tool was new, with no wear, at time t, which is the start
// of its first window. The earliest of several calls counts.
func (j *Join) Start(machine, tool string, t time.Time) {
	key := toolKey{machine, tool}
	if s, ok := j.starts[key]; !ok || t.Before(s) {
		j.starts[key] = t
	}
}

// Tally returns the count of the calls of At so far.
func (j *Join) Tally() Tally { return j.tally }

// Peek is At for a window that is not labelled, so that it is not counted.
func (j *Join) Peek(machine, tool, hole string, t time.Time) (m Measurement, ok bool) {
	before := j.tally
	defer func() { j.tally = before }()
	return j.At(machine, tool, hole, t)
}

// At returns the wear of a tool in a window that starts at t and belongs to
// hole, and counts what it found. What is not known of it is NaN or empty; ok
// is false if nothing is. By HoleEnd it is the measurement itself, by
// Interpolate it bears the time t.
func (j *Join) At(machine, tool, hole string, t time.Time) (m Measurement, ok bool) {
	h := j.tools[toolKey{machine, tool}]
	if h == nil {
		h = j.tools[toolKey{"", tool}]
	}
	missed := &j.tally.NoTool
	switch {
	case h == nil:
	case j.mode == HoleEnd:
		missed = &j.tally.NoHole
		m, ok = h.holes[hole]
	default:
		start, started := j.starts[toolKey{machine, tool}]
		m = Measurement{
			Machine: machine, Tool: tool, Hole: hole, Time: t,
			VBMeanUM: h.mean.value(t, start, started),
			VBMaxUM:  h.max.value(t, start, started),
			State:    h.state(t),
		}
		ok = m.Known()
		missed = &j.tally.Between
		if t.Before(h.states[0].Time) {
			missed = &j.tally.Before
		} else if t.After(h.states[len(h.states)-1].Time) {
			missed = &j.tally.After
		}
	}
	if !ok {
		*missed++
		return Measurement{VBMeanUM: math.NaN(), VBMaxUM: math.NaN()}, false
	}
	j.tally.Labelled++
	return m, true
}

// value returns the wear at t, NaN if it is not known.
func (c *curve) value(t, start time.Time, started bool) float64 {
	i := sort.Search(len(c.at), func(i int) bool { return !c.at[i].Before(t) }) // first at or after t
	if i == len(c.at) {
		return math.NaN()
	}
	if c.at[i].Equal(t) {
		return c.um[i]
	}
	var t0 time.Time
	var um0 float64
	switch {
	case i > 0:
		t0, um0 = c.at[i-1], c.um[i-1]
	case started && !t.Before(start):
		t0 = start
	default:
		return math.NaN()
	}
	um1 := c.um[i]
	share := float64(t.Sub(t0)) / float64(c.at[i].Sub(t0))
	// Rounding must not carry the wear beyond the measurements around it.
	return min(max(um0+share*(um1-um0), min(um0, um1)), max(um0, um1))
}

// state returns the state of the tool at t, empty if it is not known.
func (h *history) state(t time.Time) string {
	i := sort.Search(len(h.states), func(i int) bool { return h.states[i].Time.After(t) }) // first after t
	for k := i - 1; k >= 0; k-- {
		if s := h.states[k].State; strings.EqualFold(s, Chipped) || strings.EqualFold(s, Broken) {
			return s
		}
	}
	switch {
	case i == 0:
		return ""
	case h.states[i-1].Time.Equal(t), i < len(h.states) && strings.EqualFold(h.states[i].State, h.states[i-1].State):
		return h.states[i-1].State
	}
	return ""
}
