package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Plot is a pair of axes with series on it.
type Plot struct {
	Title       string
	Description string // for those who cannot see the plot: what it shows
	X, Y        Axis
	Series      []Series // the first is drawn lowest
	Marks       []Mark
}

// Axis is a range of values. If Low is not below High, the series
// decide the range.
type Axis struct {
	Label     string
	Low, High float64
	Log       bool // decades; values must be positive

	// Odds spaces probabilities by their log odds.
	Odds bool
}

// Series is a line through points.
type Series struct {
	Name   string // in the legend; empty: not there
	X, Y   []float64
	Color  string
	Width  float64 // default 2
	Dashed bool
	Dots   bool // a dot at each point too

	Notes []string // words above the dots, one for each point; nil: none
}

// Mark is a point with words next to it.
type Mark struct {
	X, Y  float64
	Text  string
	Color string
	Words Place
}

// Place is where the words of a mark are: after its point, before it or below.
type Place int

// The places.
const (
	After Place = iota
	Before
	Below
)

// frame is where the axes of a plot lie, in pixels from the upper left corner.
type frame struct {
	left, top, right, bottom float64
}

const (
	plotWidth, plotHeight = 460, 340
	plotLeft, plotRight   = 58, 18
	plotTop, plotBottom   = 46, 48
)

// SVG draws the plot.
func (p Plot) SVG() []byte {
	c := newCanvas(plotWidth, plotHeight, p.Title, p.Description)
	p.draw(c, frame{p.left(plotHeight - plotTop - plotBottom), plotTop, plotWidth - plotRight, plotHeight - plotBottom})
	return c.bytes()
}

// left returns the room at the left of axes of a height, for the labels of Y.
func (p Plot) left(height float64) float64 {
	room := float64(plotLeft)
	for _, label := range p.fitY().ticks(rows(height)) {
		room = max(room, 12+7*float64(len(label)))
	}
	return room
}

// rows is how many labels of Y have room in a height.
func rows(height float64) int { return min(5, int(height/20)) }

func (p Plot) fitY() Axis { return p.Y.fit(p.Series, func(s Series) []float64 { return s.Y }) }

// Panels draws plots in rows of so many columns, below a title for all of them.
// The axes of each are width by height pixels. A row has room for
// titles and for labels of X if one of its plots has one.
func Panels(title, description string, columns int, width, height float64, plots []Plot) []byte {
	const headline, bare = 36.0, 26.0 // bare: above axes without a title, below axes without a label
	y, room := 0.0, 0.0
	if title != "" {
		y = headline
	}
	for _, p := range plots {
		room = max(room, p.left(height))
	}
	cell := room + width + plotRight
	frames := make([]frame, 0, len(plots))
	for row := range slices.Chunk(plots, columns) {
		above, below := bare, bare
		if slices.ContainsFunc(row, func(p Plot) bool { return p.Title != "" }) {
			above = plotTop
		}
		if slices.ContainsFunc(row, func(p Plot) bool { return p.X.Label != "" }) {
			below = plotBottom
		}
		for i := range row {
			left := float64(i)*cell + room
			frames = append(frames, frame{left, y + above, left + width, y + above + height})
		}
		y += above + height + below
	}
	c := newCanvas(float64(columns)*cell, y, title, description)
	c.text(room, 24, start, ink, 14, true, title)
	for i, p := range plots {
		p.draw(c, frames[i])
	}
	return c.bytes()
}

// draw draws the plot with its axes at f, its title and labels around it. What is
// not finite is left out.
func (p Plot) draw(c *canvas, f frame) {
	c.text(f.left, f.top-22, start, ink, 14, true, p.Title)
	x := p.X.fit(p.Series, func(s Series) []float64 { return s.X })
	y := p.fitY()
	toX := func(v float64) float64 { return f.left + x.share(v)*(f.right-f.left) }
	toY := func(v float64) float64 { return f.bottom - y.share(v)*(f.bottom-f.top) }
	for at, label := range x.ticks(int((f.right - f.left) / 64)) {
		c.line(toX(at), f.top, toX(at), f.bottom, grid, 1, false)
		c.text(toX(at), f.bottom+17, middle, soft, 11, false, label)
	}
	for at, label := range y.ticks(rows(f.bottom - f.top)) {
		c.line(f.left, toY(at), f.right, toY(at), grid, 1, false)
		c.text(f.left-8, toY(at)+4, end, soft, 11, false, label)
	}
	c.line(f.left, f.bottom, f.right, f.bottom, axis, 1, false)
	c.text((f.left+f.right)/2, f.bottom+36, middle, soft, 12, false, p.X.Label)
	c.text(f.left, f.top-8, start, soft, 11, false, p.Y.Label)
	for _, s := range p.Series {
		s.draw(c, f, toX, toY)
	}
	p.legend(c, f)
	for _, m := range p.Marks {
		c.dot(toX(m.X), toY(m.Y), 5, m.Color)
		switch m.Words {
		case Below:
			c.label(toX(m.X), toY(m.Y)+21, middle, m.Color, m.Text)
		case Before:
			c.label(toX(m.X)-9, toY(m.Y)+4, end, m.Color, m.Text)
		default:
			c.label(toX(m.X)+9, toY(m.Y)+4, start, m.Color, m.Text)
		}
	}
}

func (s Series) draw(c *canvas, f frame, toX, toY func(float64) float64) {
	x, y := make([]float64, len(s.X)), make([]float64, len(s.Y))
	for i := range s.X {
		x[i], y[i] = toX(s.X[i]), toY(s.Y[i])
		if math.IsInf(s.X[i], 0) || math.IsInf(s.Y[i], 0) {
			x[i], y[i] = math.NaN(), math.NaN()
		}
	}
	width := s.Width
	if width == 0 {
		width = 2
	}
	c.path(x, y, s.Color, width, s.Dashed)
	if !s.Dots {
		return
	}
	for i := range x {
		if !math.IsNaN(x[i]) && !math.IsNaN(y[i]) {
			c.dot(x[i], y[i], 4, s.Color)
		}
	}
	s.notes(c, f, x, y)
}

// notes writes the words at the dots, where they do not leave the axes.
func (s Series) notes(c *canvas, f frame, x, y []float64) {
	for i, words := range s.Notes {
		if words == "" || math.IsNaN(x[i]) || math.IsNaN(y[i]) {
			continue
		}
		anchor, dx := start, -3.0
		if x[i] > f.right-50 {
			anchor, dx = end, 3.0
		}
		dy := -9.0
		if y[i] < f.top+16 {
			dy = 17
		}
		c.label(x[i]+dx, y[i]+dy, anchor, s.Color, words)
	}
}

// legend names the series in one line at the right of the Y label.
func (p Plot) legend(c *canvas, f frame) {
	const perLetter, swatch = 6.1, 18.0
	at := f.right
	for i := len(p.Series) - 1; i >= 0; i-- {
		s := p.Series[i]
		if s.Name == "" {
			continue
		}
		at -= perLetter * float64(len([]rune(s.Name)))
		c.text(at, f.top-8, start, soft, 11, false, s.Name)
		c.line(at-swatch, f.top-12, at-5, f.top-12, s.Color, 2.5, s.Dashed)
		at -= swatch + 10
	}
}

// leastLog is the least value that a logarithmic axis shows.
const leastLog = 1e-250

// fit returns the axis with a range.
func (a Axis) fit(series []Series, of func(Series) []float64) Axis {
	if a.Low < a.High {
		return a
	}
	a.Low, a.High = math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, v := range of(s) {
			if math.Abs(v) <= math.MaxFloat64 && !(a.Log && v < leastLog) {
				a.Low, a.High = min(a.Low, v), max(a.High, v)
			}
		}
	}
	if !(a.Low < a.High) {
		if math.IsInf(a.Low, 0) {
			a.Low, a.High = 1, 1
		}
		room := cmp.Or(0.1*math.Abs(a.Low), 1)
		a.Low, a.High = a.Low-room, a.High+room
	}
	if a.Log { // some room above and below
		room := math.Pow(a.High/a.Low, 0.05)
		a.Low, a.High = a.Low/room, a.High*room
	}
	return a
}

// share returns where on the axis v lies, 0 at its low end and 1 at its high
// end; values beyond the ends are at the ends.
func (a Axis) share(v float64) float64 {
	scale := func(v float64) float64 {
		switch {
		case a.Log:
			return math.Log(v)
		case a.Odds:
			return math.Log(v / (1 - v))
		}
		return v
	}
	s := (scale(v) - scale(a.Low)) / (scale(a.High) - scale(a.Low))
	return min(max(s, 0), 1)
}

// ticks yields the values with a line and their labels.
func (a Axis) ticks(n int) func(yield func(float64, string) bool) {
	switch {
	case a.Odds:
		return a.oddsTicks
	case a.Log:
		return a.logTicks
	}
	return func(yield func(float64, string) bool) {
		at, digits := ticks(a.Low, a.High, n)
		for _, v := range at {
			label := strconv.FormatFloat(v, 'f', digits, 64)
			if len(label) > 14 {
				label = strconv.FormatFloat(v, 'g', 6, 64)
			}
			if !yield(v, label) {
				return
			}
		}
	}
}

func (a Axis) oddsTicks(yield func(float64, string) bool) {
	last := math.Inf(-1)
	for _, v := range []float64{1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999} {
		if v < a.Low || v > a.High || a.share(v)-last < 0.09 {
			continue
		}
		if last = a.share(v); !yield(v, strconv.FormatFloat(v, 'g', -1, 64)) {
			return
		}
	}
}

func (a Axis) logTicks(yield func(float64, string) bool) {
	for k := math.Floor(math.Log10(a.Low)); k <= math.Log10(a.High); k++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, k)
			if m != 1 && a.High/a.Low > 200 || v < a.Low || v > a.High {
				continue
			}
			if !yield(v, strconv.FormatFloat(v, 'g', 4, 64)) {
				return
			}
		}
	}
}
