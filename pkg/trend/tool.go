package trend

import (
	"errors"
	"math"
	"slices"
)

// Tool is what is remembered of a tool between windows. The zero Tool is a new
// one. Its JSON restores it exactly. It is not safe for concurrent use.
type Tool struct {
	Name    string    `json:"tool"`
	Recent  []float64 `json:"recent,omitempty"` // roots of the last windows that were known, the newest last; at most Model.Median
	Root    float64   `json:"root"`             // that is published
	Windows int       `json:"windows"`          // of cutting
	Hole    string    `json:"hole,omitempty"`   // of the last window
	Holes   int       `json:"holes"`            // that were begun
	Stride  int       `json:"stride,omitempty"` // of the points below, in holes or windows
	Points  []point   `json:"points,omitempty"` // what the life is read from, ascending
}

// point is the root that was published after so many holes or windows.
type point struct {
	At   int     `json:"at"`
	Root float64 `json:"root"`
}

const (
	mostPoints  = 64 // then every other one goes
	leastPoints = 5  // for a slope
)

// ChangeTool forgets all if name is the name of another tool.
func (t *Tool) ChangeTool(name string) {
	if t.Name == name {
		return
	}
	*t = Tool{Name: name, Recent: t.Recent[:0], Points: t.Points[:0]}
}

// Observe takes the features of the tool's next window of cutting, with the tool's
// reference as Model.Root takes them, and returns
// the estimate after it. The hole is empty where windows name none. A window
// that the model does not know moves nothing but the count of windows and holes,
// and its estimate is unknown. Once Recent and Points have grown, it allocates
// nothing.
func (t *Tool) Observe(m *Model, x, reference []float32, hole string) Estimate {
	t.Windows++
	if hole != "" && hole != t.Hole {
		if t.Holes > 0 && len(t.Recent) > 0 {
			t.note(t.Holes) // with what was published when the last hole ended
		}
		t.Hole = hole
		t.Holes++
		if t.Holes == 1 {
			t.Points, t.Stride = t.Points[:0], 0 // they were of windows before the first hole
		}
	}
	root, known := m.Root(x, reference)
	if !known {
		return Unknown
	}
	if len(t.Recent) >= m.Median {
		n := copy(t.Recent, t.Recent[len(t.Recent)-m.Median+1:])
		t.Recent = t.Recent[:n]
	}
	t.Recent = append(t.Recent, root)
	t.Root = max(t.Root, median(t.Recent))
	if t.Holes == 0 {
		t.note(t.Windows)
	}
	var e Estimate
	e.UM, e.LowUM, e.HighUM = m.interval(t.Root)
	e.Holes = t.Holes > 0
	e.Left, e.LowLeft, e.HighLeft = t.left(m)
	return e
}

// median returns the lower median of up to mostMedian values.
func median(x []float64) float64 {
	var sorted [mostMedian]float64
	n := copy(sorted[:], x)
	slices.Sort(sorted[:n])
	return sorted[(n-1)/2]
}

// note adds the point at a count of holes or windows, if the stride says so. If
// there are too many, every other one goes.
func (t *Tool) note(at int) {
	t.Stride = max(t.Stride, 1)
	if at%t.Stride != 0 {
		return
	}
	t.Points = append(t.Points, point{at, t.Root})
	// Windows between points may be unknown, so that none goes, or one, and there are as many as before the last: then others go.
	for most := mostPoints; len(t.Points) >= most; most = mostPoints - 1 {
		t.Stride *= 2
		t.Points = slices.DeleteFunc(t.Points, func(p point) bool { return p.At%t.Stride != 0 })
	}
}

// left returns how many holes or windows are left until the limit.
func (t *Tool) left(m *Model) (left, low, high float64) {
	nan := math.NaN()
	now := t.Windows
	if t.Holes > 0 {
		now = t.Holes
	}
	if m.LimitUM == 0 {
		return nan, nan, nan
	}
	if left = t.until(m, 0, now); left != left {
		return nan, nan, nan
	}
	if low = t.until(m, m.High, now); low != low {
		low = 0
	}
	return left, min(low, left), max(t.until(m, m.Low, now), left)
}

// until returns how many holes or windows are left until (root+offset)² is at the
// limit: along the line of least squares through the points of the second half
// of the life so far, because wear does not grow evenly. It is NaN if there are
// too few of them, if the line does not rise, or if it had to be followed
// further than the tool has cut.
func (t *Tool) until(m *Model, offset float64, now int) float64 {
	square := func(root float64) float64 { r := max(root+offset, 0); return r * r }
	um := square(t.Root)
	if um >= m.LimitUM {
		return 0
	}
	var n, meanX, meanY, xx, xy float64
	for _, p := range t.Points {
		if 2*p.At < now {
			continue
		}
		x, y := float64(p.At), square(p.Root) // Welford's updates
		n++
		dx := x - meanX
		meanX += dx / n
		xx += dx * (x - meanX)
		meanY += (y - meanY) / n
		xy += dx * (y - meanY)
	}
	if n < leastPoints || !(xy > 0) {
		return math.NaN()
	}
	left := (m.LimitUM - um) * xx / xy
	if left > float64(now) {
		return math.NaN()
	}
	return left
}

func badRoot(v float64) bool { return !(v >= 0) || math.IsInf(v, 0) }

// Check reports a state that no tool can have.
func (t *Tool) Check() error {
	switch {
	case len(t.Recent) > mostMedian || slices.ContainsFunc(t.Recent, badRoot) || badRoot(t.Root):
		return errors.New("trend: tool: impossible roots")
	case min(t.Windows, t.Holes, t.Stride) < 0 || len(t.Points) >= mostPoints:
		return errors.New("trend: tool: impossible counts")
	}
	at, root := -1, 0.
	for _, p := range t.Points {
		if p.At <= at || p.Root < root || badRoot(p.Root) {
			return errors.New("trend: tool: points out of order")
		}
		at, root = p.At, p.Root
	}
	return nil
}
