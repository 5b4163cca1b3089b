package model

import (
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"github.com/flank-tcm/flank/pkg/vote"
)

// Memory is what a judge remembers of the last windows of one tool, next to its reference. The zero
// value remembers nothing; start with it after a change of tool. It is plain data, to be kept as JSON.
type Memory struct {
	Cycle   cycle.Memory `json:"cycle,omitzero"`
	Sensors vote.Memory  `json:"sensors,omitempty"`
}

func (m *Memory) cycle() *cycle.Memory {
	if m == nil {
		return nil
	}
	return &m.Cycle
}

// Clone returns a copy that shares nothing with m.
func (m Memory) Clone() Memory {
	m.Cycle = m.Cycle.Clone()
	m.Sensors = slices.Clone(m.Sensors)
	return m
}

// Watch takes sensors that have failed out of the features of windows. It is not safe for concurrent use.
type Watch struct {
	guard   *vote.Guard
	columns [][]int // by sensor of the guard: all features that are computed from it
	flags   []signal.Quality
	failed  []bool
}

// NewWatch returns a watch of the sensors that a guard knows, given which sensor each feature comes from.
func NewWatch(g *vote.Guard, origins []signal.FeatureOrigin) *Watch {
	w := &Watch{guard: g}
	for _, name := range g.Sensors() {
		var columns []int
		for j, o := range origins {
			if o.Sensor == name || o.Other == name {
				columns = append(columns, j)
			}
		}
		w.columns = append(w.columns, columns)
	}
	w.flags, w.failed = make([]signal.Quality, len(w.columns)), make([]bool, len(w.columns))
	return w
}

// Abstain makes the features of each sensor that has failed missing (NaN) in the next window of a tool, given
// before the reference, see vote.Guard.Watch. It returns a flag for each sensor of the guard, valid until
// the next call: Dropout if the sensor delivers nothing, Flatline if it reads zero or is stuck.
func (w *Watch) Abstain(m *vote.Memory, raw []float32) []signal.Quality {
	w.guard.Watch(m, raw, w.failed)
	for k, columns := range w.columns {
		if w.flags[k] = 0; !w.failed[k] {
			continue
		}
		w.flags[k] = signal.Dropout
		for _, j := range columns {
			if raw[j] == raw[j] {
				w.flags[k] = signal.Flatline
			}
			raw[j] = float32(math.NaN())
		}
	}
	return w.flags
}
