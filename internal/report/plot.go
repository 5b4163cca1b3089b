package report

import (
	"math"
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

const (
	plotWidth, plotHeight = 460, 340
	plotLeft, plotRight   = 58, 18
	plotTop, plotBottom   = 46, 48
)

// SVG draws the plot.
func (p Plot) SVG() []byte {
	c := newCanvas(plotWidth, plotHeight, p.Title, p.Description)
	c.text(plotLeft, 24, start, ink, 14, true, p.Title)
	x := p.X.fit(p.Series, func(s Series) []float64 { return s.X })
	y := p.Y.fit(p.Series, func(s Series) []float64 { return s.Y })
	toX := func(v float64) float64 {
		return plotLeft + x.share(v)*(plotWidth-plotLeft-plotRight)
	}
	toY := func(v float64) float64 {
		return plotHeight - plotBottom - y.share(v)*(plotHeight-plotTop-plotBottom)
	}
	for at, label := range x.ticks(6) {
		c.line(toX(at), plotTop, toX(at), plotHeight-plotBottom, grid, 1, false)
		c.text(toX(at), plotHeight-plotBottom+17, middle, soft, 11, false, label)
	}
	for at, label := range y.ticks(5) {
		c.line(plotLeft, toY(at), plotWidth-plotRight, toY(at), grid, 1, false)
		c.text(plotLeft-8, toY(at)+4, end, soft, 11, false, label)
	}
	c.line(plotLeft, plotHeight-plotBottom, plotWidth-plotRight, plotHeight-plotBottom, axis, 1, false)
	c.text((plotLeft+plotWidth-plotRight)/2, plotHeight-12, middle, soft, 12, false, p.X.Label)
	c.text(plotLeft, plotTop-8, start, soft, 11, false, p.Y.Label)
	for _, s := range p.Series {
		px, py := make([]float64, len(s.X)), make([]float64, len(s.Y))
		for i := range s.X {
			px[i], py[i] = toX(s.X[i]), toY(s.Y[i])
		}
		width := s.Width
		if width == 0 {
			width = 2
		}
		c.path(px, py, s.Color, width, s.Dashed)
		if s.Dots {
			for i := range px {
				if !math.IsNaN(px[i]) && !math.IsNaN(py[i]) {
					c.dot(px[i], py[i], 4, s.Color)
				}
			}
			s.notes(c, px, py)
		}
	}
	p.legend(c)
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
	return c.bytes()
}

// notes writes the words at the dots, where they do not leave the plot.
func (s Series) notes(c *canvas, x, y []float64) {
	for i, words := range s.Notes {
		if words == "" || math.IsNaN(x[i]) || math.IsNaN(y[i]) {
			continue
		}
		anchor, dx := start, -3.0
		if x[i] > plotWidth-plotRight-50 {
			anchor, dx = end, 3.0
		}
		dy := -9.0
		if y[i] < plotTop+16 {
			dy = 17
		}
		c.label(x[i]+dx, y[i]+dy, anchor, s.Color, words)
	}
}

// legend names the series in one line at the right of the Y label.
func (p Plot) legend(c *canvas) {
	const perLetter, swatch = 6.1, 18.0
	at := float64(plotWidth - plotRight)
	for i := len(p.Series) - 1; i >= 0; i-- {
		s := p.Series[i]
		if s.Name == "" {
			continue
		}
		at -= perLetter * float64(len([]rune(s.Name)))
		c.text(at, plotTop-8, start, soft, 11, false, s.Name)
		c.line(at-swatch, plotTop-12, at-5, plotTop-12, s.Color, 2.5, s.Dashed)
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
			if !math.IsNaN(v) && (!a.Log || v >= leastLog) {
				a.Low, a.High = min(a.Low, v), max(a.High, v)
			}
		}
	}
	if !(a.Low < a.High) {
		if math.IsInf(a.Low, 0) {
			a.Low, a.High = 1, 1
		}
		room := 0.1 * math.Abs(a.Low)
		if !a.Log {
			room = max(room, 1e-9)
		}
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
	return func(yield func(float64, string) bool) {
		switch {
		case a.Odds:
			last := math.Inf(-1)
			for _, v := range []float64{1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999} {
				if v < a.Low || v > a.High || a.share(v)-last < 0.09 {
					continue
				}
				if last = a.share(v); !yield(v, strconv.FormatFloat(v, 'g', -1, 64)) {
					return
				}
			}
		case a.Log:
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
		default:
			at, digits := ticks(a.Low, a.High, n)
			for _, v := range at {
				if !yield(v, strconv.FormatFloat(v, 'f', digits, 64)) {
					return
				}
			}
		}
	}
}
