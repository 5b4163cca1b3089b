package report

import (
	"fmt"
	"math"
	"slices"
)

// Life is the life of a tool as a model sees it, window by window.
type Life struct {
	Tool   string
	Score  []float64 // in [0, 1]; from 0.5 on the window is called faulty
	Faulty []bool    // by its label

	Alarm int    // window in which the first alarm was raised, from 1 on; 0: there was none
	Note  string // at the right of the tool's name
}

const (
	lifeColumns, lifeWidth, lifeHeight = 3, 228.0, 128.0
	lifeLeft, lifeTop                  = 30.0, 58.0
)

// Lives draws one small plot for each tool: its score over its life, with what
// is faulty by its label shaded. Windows are counted from the first that is
// judged.
func Lives(title string, lives []Life) []byte {
	rows := (len(lives) + lifeColumns - 1) / lifeColumns
	columns := min(len(lives), lifeColumns)
	width, height := lifeLeft+float64(max(columns, 2))*lifeWidth+8, lifeTop+float64(rows)*lifeHeight+4
	c := newCanvas(width, height, title, fmt.Sprintf("The score of each window of %d tools over their lives. Shaded: faulty by the label. Above the dashed line: called faulty.", len(lives)))
	c.text(lifeLeft, 24, start, ink, 14, true, title)
	c.rect(lifeLeft, 33, 14, 10, faint)
	c.text(lifeLeft+19, 42, start, soft, 11, false, "faulty by its label")
	c.line(lifeLeft+138, 38, lifeLeft+152, 38, soft, 1, true)
	c.text(lifeLeft+157, 42, start, soft, 11, false, "above: called faulty")
	if slices.ContainsFunc(lives, func(l Life) bool { return l.Alarm > 0 }) {
		c.line(lifeLeft+280, 32, lifeLeft+280, 44, Orange, 1.8, false)
		c.text(lifeLeft+287, 42, start, soft, 11, false, "first alarm")
	}
	for i, l := range lives {
		x := lifeLeft + float64(i%lifeColumns)*lifeWidth
		y := lifeTop + float64(i/lifeColumns)*lifeHeight
		l.draw(c, x, y)
	}
	return c.bytes()
}

func (l Life) draw(c *canvas, left, top float64) {
	const w, h = lifeWidth - 26, lifeHeight - 46
	top += 18
	c.text(left, top-6, start, ink, 12, true, l.Tool)
	n := len(l.Score)
	toX := func(i float64) float64 { return left + i*w/float64(max(n, 1)) }
	toY := func(v float64) float64 { return top + (1-v)*h }
	for i := 0; i < n; {
		from := i
		for i < n && l.Faulty[i] == l.Faulty[from] {
			i++
		}
		if l.Faulty[from] {
			c.rect(toX(float64(from)), top, toX(float64(i))-toX(float64(from)), h, faint)
		}
	}
	for _, v := range []float64{0, 1} {
		c.line(left, toY(v), left+w, toY(v), grid, 1, false)
		c.text(left-6, toY(v)+4, end, soft, 10, false, fmt.Sprint(v))
	}
	c.line(left, toY(0.5), left+w, toY(0.5), soft, 1, true)
	var xs, ys []float64
	step := max(1, n/int(w))
	for from := 0; from < n; from += step { // of windows on one pixel the extremes are drawn
		part := l.Score[from:min(from+step, n)]
		xs, ys = append(xs, toX(float64(from)+0.5)), append(ys, toY(slices.Min(part)))
		if step > 1 {
			xs, ys = append(xs, toX(float64(from)+0.5)), append(ys, toY(slices.Max(part)))
		}
	}
	c.path(xs, ys, Blue, 1.3, false)
	if l.Alarm > 0 {
		x := toX(float64(l.Alarm))
		c.line(x, top-3, x, top+h, Orange, 1.8, false)
	}
	c.text(left+w, top-6, end, soft, 10, false, l.Note)
	c.text(left+w, top+h+14, end, soft, 10, false, fmt.Sprintf("%d windows", n))
}

// DotRow is the figures of one tool; NaN is one that is not defined.
type DotRow struct {
	Tool   string
	Values []float64 // in [0, 1], one for each name
	Note   string    // at the right
}

// Dots draws a row of figures for each tool, on one scale from 0 to 1. Names and
// colors are the colors of the figures.
func Dots(title string, names, colors []string, rows []DotRow) []byte {
	const width, left, right, top, step = 704.0, 150.0, 130.0, 64.0, 24.0
	height := top + step*float64(len(rows)) + 30
	c := newCanvas(width, height, title, fmt.Sprintf("Figures of %d tools from 0 to 1.", len(rows)))
	c.text(18, 24, start, ink, 14, true, title)
	x := 18.0
	for i, name := range names {
		c.dot(x+5, 42, 5, colors[i])
		c.text(x+15, 46, start, soft, 11, false, name)
		x += 32 + 6.3*float64(len([]rune(name)))
	}
	toX := func(v float64) float64 { return left + v*(width-left-right) }
	bottom := top + step*float64(len(rows))
	at, digits := ticks(0, 1, 5)
	c.columns(at, digits, toX, top-4, bottom)
	for i, r := range rows {
		y := top + step*(float64(i)+0.5)
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range r.Values {
			if !math.IsNaN(v) {
				low, high = min(low, v), max(high, v)
			}
		}
		c.text(left-12, y+4, end, ink, 12, false, Shorten(r.Tool, 20))
		if low < high {
			c.line(toX(low), y, toX(high), y, "#d0d5dd", 2, false)
		}
		for k := len(r.Values) - 1; k >= 0; k-- { // the first on top
			if v := r.Values[k]; !math.IsNaN(v) {
				c.dot(toX(v), y, 5, colors[k])
			}
		}
		c.text(width-right+14, y+4, start, soft, 11, false, r.Note)
	}
	return c.bytes()
}

// Shorten cuts a name to n letters.
func Shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}
