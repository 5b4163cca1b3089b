package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Scatter sets one method against another: a point for each data set, above the
// diagonal where Y is the better one.
type Scatter struct {
	Title, Description string
	XLabel, YLabel     string
	X, Y               []float64 // in [0, 1]
	Names              []string  // of the points
	Color              string
}

// named is how many points are named: of those with room for a name, the ones
// farthest from the diagonal.
const named = 4

// perLetter is about how wide a letter of a name is.
const perLetter = 6.6

// SVG draws the points.
func (s Scatter) SVG() []byte {
	const size, left, top, side = 420.0, 56.0, 58.0, 316.0
	c := newCanvas(size, top+side+52, s.Title, s.Description)
	c.text(18, 24, start, ink, 14, true, s.Title)
	low := 1.
	for i := range s.X {
		low = min(low, s.X[i], s.Y[i])
	}
	low = min(0.9, math.Floor(10*max(low, 0))/10)
	place := func(v float64) float64 { return (min(max(v, low), 1) - low) / (1 - low) * side }
	toX := func(v float64) float64 { return left + place(v) }
	toY := func(v float64) float64 { return top + side - place(v) }
	at, digits := ticks(low, 1, 5)
	for _, v := range at {
		c.line(toX(v), top, toX(v), top+side, grid, 1, false)
		c.line(left, toY(v), left+side, toY(v), grid, 1, false)
		c.text(toX(v), top+side+17, middle, soft, 11, false, fmt.Sprintf("%.*f", digits, v))
		c.text(left-8, toY(v)+4, end, soft, 11, false, fmt.Sprintf("%.*f", digits, v))
	}
	c.line(toX(low), toY(low), toX(1), toY(1), axis, 1, true)
	c.text(left+side/2, top+side+38, middle, soft, 12, false, s.XLabel)
	c.text(18, top-12, start, soft, 12, false, s.YLabel)
	above, below := 0, 0
	for i := range s.X {
		switch cmp.Compare(s.Y[i], s.X[i]) {
		case 1:
			above++
		case -1:
			below++
		}
	}
	c.text(left+side, top-12, end, soft, 11, false, fmt.Sprintf("higher on %d, lower on %d", above, below))
	s.label(c, left, side, toX, toY)
	for i := range s.X {
		c.dot(toX(s.X[i]), toY(s.Y[i]), 4, s.Color)
	}
	return c.bytes()
}

// label names some points, where there is room for a name.
func (s Scatter) label(c *canvas, left, side float64, toX, toY func(float64) float64) {
	free := func(from, to, y float64) bool { // of points and words
		for i := range s.X {
			if px, py := toX(s.X[i]), toY(s.Y[i]); px > from-3 && px < to+3 && math.Abs(py-y) < 10 {
				return false
			}
		}
		return from > left && to < left+side
	}
	var words [][3]float64
	for _, i := range s.farthest() {
		x, y := toX(s.X[i]), toY(s.Y[i])
		length := perLetter * float64(len([]rune(s.Names[i])))
		anchor, at, from := start, x+8, x+8
		if !free(from, from+length, y) {
			anchor, at, from = end, x-8, x-8-length
		}
		if len(words) == named || !free(from, from+length, y) || slices.ContainsFunc(words, func(w [3]float64) bool {
			return from < w[1] && w[0] < from+length && math.Abs(w[2]-y) < 13
		}) {
			continue
		}
		words = append(words, [3]float64{from, from + length, y})
		c.text(at, y+4, anchor, soft, 11, false, s.Names[i])
	}
}

// farthest returns the points off the diagonal, the farthest first.
func (s Scatter) farthest() []int {
	var order []int
	for i := range s.X {
		if s.X[i] != s.Y[i] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(s.Y[b]-s.X[b]), math.Abs(s.Y[a]-s.X[a]))
	})
	return order
}
