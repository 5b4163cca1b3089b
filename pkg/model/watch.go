package model

import (
	"math"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
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
	m.Sensors = m.Sensors.Clone()
	return m
}

// watch takes sensors that have failed, and steps of their gains, out of the features of windows. It is not safe for concurrent use.
type watch struct {
	guard   *vote.Guard
	columns [][]column // by sensor of the guard: all features that are computed from it
	sensors []vote.Sensed
	flags   []signal.Quality
}

// column is a feature of a sensor.
type column struct {
	at   int
	gain signal.Gain // of the sensor: none of a feature that has its name from another one
}

// NewWatch returns a watch of the sensors that a guard knows, given which sensor each feature comes from.
func NewWatch(g *vote.Guard, origins []signal.FeatureOrigin) *watch {
	w := &watch{guard: g}
	for _, name := range g.Sensors() {
		var columns []column
		for j, o := range origins {
			switch name {
			case o.Sensor:
				columns = append(columns, column{j, o.Gain})
			case o.Other:
				columns = append(columns, column{at: j})
			}
		}
		w.columns = append(w.columns, columns)
	}
	w.flags, w.sensors = make([]signal.Quality, len(w.columns)), make([]vote.Sensed, len(w.columns))
	return w
}

// Mend makes the features of each sensor that has failed missing (NaN) in the next window of a tool, given
// before the reference, and takes the steps of its gain out of the others, see vote.Guard.Watch. It returns a flag for each sensor of the guard, valid until
// the next call: Dropout if the sensor delivers nothing, Flatline if it reads zero or is stuck.
func (w *watch) Mend(m *vote.Memory, raw []float32, settled bool) []signal.Quality {
	w.guard.Watch(m, raw, settled, w.sensors)
	for k, columns := range w.columns {
		w.flags[k] = 0
		switch s := w.sensors[k]; {
		case s.Failed:
			w.flags[k] = signal.Dropout
			for _, c := range columns {
				if raw[c.at] == raw[c.at] {
					w.flags[k] = signal.Flatline
				}
				raw[c.at] = float32(math.NaN())
			}
		case s.Gain != 1:
			for _, c := range columns {
				raw[c.at] = float32(c.gain.Scale(float64(raw[c.at]), 1/s.Gain))
			}
		}
	}
	return w.flags
}
