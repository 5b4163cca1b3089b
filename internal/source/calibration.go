package source

import "math"

// calibration makes the value of a channel of a recorded number.
type calibration struct {
	gain, offset float64
	missing      missingCells
}

func (c *calibration) identity() bool { return c.gain == 1 && c.offset == 0 }

// bits returns how exactly numbers must be read for apply.
func (c *calibration) bits() int {
	if c.identity() {
		return 32
	}
	return 64
}

// apply returns gain·v + offset. It is false if v is finite and the result is
// not, as a 32-bit number. A number that stands for a missing value is NaN.
func (c *calibration) apply(v float64) (float32, bool) {
	if c.missing.number(v) {
		return float32(math.NaN()), true
	}
	if !c.identity() {
		v = c.gain*v + c.offset
	}
	x := float32(v)
	return x, !math.IsInf(float64(x), 0) || math.IsInf(v, 0)
}
