package vote

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/flank-tcm/flank/internal/littleendian"
)

// stuckWindows is how many windows in a row of the same values say that a sensor is stuck.
const stuckWindows = 3

// Memory is what [Guard.Watch] remembers of the windows of one tool on one machine. The zero
// value remembers none; start with it after a change of tool or of model.
type Memory struct {
	last []float32 // the watched columns of the last window, by sensor
	same []uint8   // by sensor: windows in a row with the values of last, up to stuckWindows
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

// Watch stores in failed, one flag for each of [Guard.Sensors], which sensors have failed in
// the next window of a tool that is judged: those whose columns of kind RMS, Mean and Max (all columns, if it has
// none of these) are all missing, all zero, or all as they were in the two windows before. Raw is
// the window's features before the reference, which the guard's rows are made from. Watch panics
// if raw or failed is of another length than the guard's. It allocates only for the first window.
func (g *Guard) Watch(m *Memory, raw []float32, failed []bool) {
	if len(raw) != g.columns || len(failed) != len(g.sensors) {
		panic(fmt.Sprintf("vote: a row of %d columns and flags of %d sensors: want %d and %d", len(raw), len(failed), g.columns, len(g.sensors)))
	}
	watched := 0
	for _, s := range g.sensors {
		watched += len(s.watched)
	}
	if len(m.last) != watched || len(m.same) != len(g.sensors) {
		m.last, m.same = make([]float32, watched), make([]uint8, len(g.sensors))
	}
	last := m.last
	for k, s := range g.sensors {
		missing, zero, same := true, true, true
		for i, j := range s.watched {
			v := raw[j]
			missing = missing && v != v
			zero = zero && v == 0
			same = same && math.Float32bits(v) == math.Float32bits(last[i])
			last[i] = v
		}
		if same {
			m.same[k] = min(m.same[k]+1, stuckWindows)
		} else {
			m.same[k] = 1
		}
		failed[k] = missing || zero || m.same[k] == stuckWindows
		last = last[len(s.watched):]
	}
}

const memoryVersion = 1

// AppendBinary appends the binary form of the memory to b, little-endian: the version, 1, in a byte; the
// number of values and each as float32; the number of sensors and a byte for each. It never fails.
func (m *Memory) AppendBinary(b []byte) ([]byte, error) {
	le := binary.LittleEndian
	b = le.AppendUint32(append(b, memoryVersion), uint32(len(m.last)))
	for _, v := range m.last {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	return append(le.AppendUint32(b, uint32(len(m.same))), m.same...), nil
}

// UnmarshalBinary replaces m by the memory whose binary form b is. It returns an error that
// wraps ErrCorrupt, and leaves m alone, if b is anything else. It does not keep b. A memory
// of another guard is as good as none to Watch, unless it has as many sensors and values.
func (m *Memory) UnmarshalBinary(b []byte) error {
	r := &reader{Reader: littleendian.Reader{Rest: b}}
	if v := r.Uint8(); v != memoryVersion {
		return fmt.Errorf("vote: a memory of version %d: %w", v, ErrCorrupt)
	}
	values := r.Bytes(4 * r.count(4))
	same := r.Bytes(r.count(1))
	if r.Short || len(r.Rest) > 0 {
		return fmt.Errorf("vote: a memory of %d bytes: %w", len(b), ErrCorrupt)
	}
	var read Memory
	for ; len(values) > 0; values = values[4:] {
		read.last = append(read.last, math.Float32frombits(binary.LittleEndian.Uint32(values)))
	}
	for _, n := range same {
		if n > stuckWindows {
			return fmt.Errorf("vote: a memory of %d windows: %w", n, ErrCorrupt)
		}
		read.same = append(read.same, n)
	}
	*m = read
	return nil
}
