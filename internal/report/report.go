// Package report draws what a recording, a model card and a study of methods show: curves,
// dots, boxes and the lives of tools, as SVG that looks the same in a browser, in
// a repository's page view and on paper.
//
// A [Plot] is one pair of axes with series on it, and [Panels] are several;
// [Lives] is one small plot for each tool; [Dots] is a row of figures for each
// tool, and [Followers] one for each feature. [Boxes], [Ranks] and [Scatter]
// compare methods over data sets. All of them are plain data: equal
// data, equal bytes. Text is text, so that it can be searched and
// read aloud; every drawing has a title and a description for those who cannot
// see it.
package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Colors of series, told apart by people with any of the common kinds of colour
// blindness and on grey paper. (M. Okabe and K. Ito, "Color Universal Design",
// 2008, darkened for thin lines.)
const (
	Blue   = "#1f6fb2"
	Orange = "#d55e00"
	Green  = "#00876c"
	Purple = "#8a5a99"
	Grey   = "#98a2b3"
)

const (
	ink   = "#1d2939"
	soft  = "#667085"
	grid  = "#eaecf0"
	axis  = "#98a2b3"
	faint = "#fdeee2" // behind what is faulty
)

// canvas collects the elements of a drawing.
type canvas struct {
	b bytes.Buffer
}

func newCanvas(width, height float64, title, description string) *canvas {
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" font-family="Inter, system-ui, 'Segoe UI', 'Liberation Sans', Helvetica, Arial, sans-serif" font-size="12" fill="%s">`+"\n",
		num(width), num(height), num(width), num(height), ink)
	fmt.Fprintf(&c.b, "<title>%s</title>\n<desc>%s</desc>\n", escape(title), escape(description))
	fmt.Fprintf(&c.b, `<rect width="%s" height="%s" rx="6" fill="#ffffff"/>`+"\n", num(width), num(height))
	return c
}

func (c *canvas) bytes() []byte {
	c.b.WriteString("</svg>\n")
	return c.b.Bytes()
}

// escape returns s as XML has it, without characters that XML cannot hold.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes all
	return b.String()
}

// num writes a coordinate with no more digits than can be seen.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func (c *canvas) line(x1, y1, x2, y2 float64, color string, width float64, dashed bool) {
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="4 4"`
	}
	fmt.Fprintf(&c.b, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" stroke-width="%s"%s/>`+"\n", num(x1), num(y1), num(x2), num(y2), color, num(width), dash)
}

func (c *canvas) rect(x, y, w, h float64, color string) {
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`+"\n", num(x), num(y), num(w), num(h), color)
}

func (c *canvas) dot(x, y, r float64, color string) {
	fmt.Fprintf(&c.b, `<circle cx="%s" cy="%s" r="%s" fill="%s" stroke="#ffffff" stroke-width="1.5"/>`+"\n", num(x), num(y), num(r), color)
}

func (c *canvas) ring(x, y, r float64, color string) {
	fmt.Fprintf(&c.b, `<circle cx="%s" cy="%s" r="%s" fill="none" stroke="%s"/>`+"\n", num(x), num(y), num(r), color)
}

// box is a rectangle with an edge, its colour washed out inside.
func (c *canvas) box(x, y, w, h float64, color string) {
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" fill="#ffffff"/>`+"\n", num(x), num(y), num(w), num(h))
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity="0.18" stroke="%s"/>`+"\n", num(x), num(y), num(w), num(h), color, color)
}

// anchors of text.
const (
	start  = "start"
	middle = "middle"
	end    = "end"
)

func (c *canvas) text(x, y float64, anchor, color string, size float64, bold bool, s string) {
	weight := ""
	if bold {
		weight = ` font-weight="600"`
	}
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" text-anchor="%s" fill="%s" font-size="%s"%s>%s</text>`+"\n", num(x), num(y), anchor, color, num(size), weight, escape(s))
}

// label is bold text that stays readable on top of lines.
func (c *canvas) label(x, y float64, anchor, color, s string) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" text-anchor="%s" fill="%s" font-size="11" font-weight="600" paint-order="stroke" stroke="#ffffff" stroke-width="4">%s</text>`+"\n", num(x), num(y), anchor, color, escape(s))
}

// path draws a line through points. Where a coordinate is NaN the line is
// broken. Points that lie on top of the one before are left out.
func (c *canvas) path(x, y []float64, color string, width float64, dashed bool) {
	var d strings.Builder
	pen, last := "M", ""
	for i := range x {
		if math.IsNaN(x[i]) || math.IsNaN(y[i]) {
			pen, last = "M", ""
			continue
		}
		at := num(x[i]) + " " + num(y[i])
		if at == last {
			continue
		}
		d.WriteString(pen + at)
		pen, last = "L", at
	}
	if d.Len() == 0 {
		return
	}
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="4 4"`
	}
	fmt.Fprintf(&c.b, `<path d="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round" stroke-linecap="round"%s/>`+"\n", d.String(), color, num(width), dash)
}

// columns draws a line down from top for each value, and the value below it.
func (c *canvas) columns(at []float64, digits int, toX func(float64) float64, top, bottom float64) {
	for _, v := range at {
		c.line(toX(v), top, toX(v), bottom, grid, 1, false)
		c.text(toX(v), bottom+16, middle, soft, 11, false, fmt.Sprintf("%.*f", digits, v))
	}
}

// ticks returns up to about n round values within [low, high], and how many
// digits after the point tell them apart.
func ticks(low, high float64, n int) (at []float64, digits int) {
	if !(high-low > 1e-9*max(math.Abs(low), math.Abs(high))) { // floats are too coarse to count in such steps
		return []float64{low}, 2
	}
	raw := (high - low) / float64(n)
	power := math.Floor(math.Log10(raw))
	step := math.Pow(10, power)
	switch unit := raw / step; {
	case unit > 5:
		step *= 10
		power++
	case unit > 2:
		step *= 5
	case unit > 1:
		step *= 2
	}
	for k := math.Ceil(low/step - 1e-9); k*step <= high+step*1e-9; k++ {
		at = append(at, k*step+0) // −0 + 0 is 0
	}
	return at, max(0, int(-power))
}
