package report

import "fmt"

// Timeline is what happened over some time: lanes below each other, on one axis.
type Timeline struct {
	Title       string
	Description string // for those who cannot see it
	Label       string // of the axis, which begins at 0
	High        float64
	Lanes       []Lane
}

// Lane is a line over time, or spans of time, or both.
type Lane struct {
	Name  string
	Spans []Span
	X, Y  []float64 // of the line; NaN breaks it
	High  float64   // of Y, which begins at 0; not positive: the lane has no line
	Limit float64   // a dashed line across; 0: none
	Unit  string    // next to High
}

// Span is a time in which something was so.
type Span struct {
	From, To float64
	Color    string
	Text     string // above its beginning; may be empty
}

const (
	timeWidth, timeLeft, timeRight, timeTop = 900.0, 118.0, 18.0, 44.0
	lineHeight, spanHeight, laneGap         = 76.0, 13.0, 22.0
)

// SVG draws the timeline.
func (t Timeline) SVG() []byte {
	height := timeTop + 40
	for _, l := range t.Lanes {
		height += l.height() + laneGap
	}
	c := newCanvas(timeWidth, height, t.Title, t.Description)
	c.text(18, 26, start, ink, 14, true, t.Title)
	toX := func(v float64) float64 {
		return timeLeft + min(max(v/max(t.High, 1e-9), 0), 1)*(timeWidth-timeLeft-timeRight)
	}
	bottom := height - 40
	at, digits := ticks(0, t.High, 8)
	c.columns(at, digits, toX, timeTop, bottom)
	c.text(timeLeft+(timeWidth-timeLeft-timeRight)/2, bottom+32, middle, soft, 11, false, t.Label)
	y := timeTop + laneGap - 6
	for _, l := range t.Lanes {
		l.draw(c, y, toX)
		y += l.height() + laneGap
	}
	return c.bytes()
}

func (l Lane) height() float64 {
	if l.High > 0 {
		return lineHeight
	}
	return spanHeight
}

func (l Lane) draw(c *canvas, top float64, toX func(float64) float64) {
	h := l.height()
	c.text(timeLeft-12, top+h/2+4, end, ink, 12, true, l.Name)
	for _, s := range l.Spans {
		from := toX(s.From)
		c.rect(from, top, max(toX(s.To)-from, 1.5), h, s.Color)
		if s.Text != "" {
			c.label(from, top-4, start, s.Color, s.Text)
		}
	}
	if l.High <= 0 {
		c.line(timeLeft, top+h, timeWidth-timeRight, top+h, grid, 1, false)
		return
	}
	toY := func(v float64) float64 { return top + (1-min(max(v/l.High, 0), 1))*h }
	c.line(timeLeft, toY(0), timeWidth-timeRight, toY(0), axis, 1, false)
	c.text(timeLeft-12, top+10, end, soft, 10, false, fmt.Sprintf("%g %s", l.High, l.Unit))
	if l.Limit > 0 {
		c.line(timeLeft, toY(l.Limit), timeWidth-timeRight, toY(l.Limit), soft, 1, true)
	}
	xs, ys := make([]float64, len(l.X)), make([]float64, len(l.Y))
	for i := range l.X {
		xs[i], ys[i] = toX(l.X[i]), toY(l.Y[i])
	}
	c.path(xs, ys, Blue, 1.3, false)
}
