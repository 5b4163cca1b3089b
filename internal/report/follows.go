package report

import (
	"fmt"
	"math"
)

// Follower is a feature that follows the lives of tools.
type Follower struct {
	Name   string
	Weight float64   // how much it counts, in [0, 1]
	Rho    []float64 // by tool: rank correlation with the order of windows, in [-1, 1]; NaN is not drawn
}

// Followers draws a row for each feature, in the order given: a bar for its weight and,
// next to it on a scale from -1 to 1, a dot for each tool and a line at their mean.
func Followers(title string, rows []Follower) []byte {
	const (
		width, top, step = 840.0, 84.0, 21.0
		barLeft, barEnd  = 222.0, 452.0
		rhoLeft, rhoEnd  = 520.0, 816.0
	)
	bottom := top + step*float64(len(rows))
	c := newCanvas(width, bottom+34, title, fmt.Sprintf("%d features. Bars: how much each counts. Dots: rank correlation of the feature with the order of windows, one dot for each tool. A feature counts if it goes the same way in every tool.", len(rows)))
	c.text(18, 24, start, ink, 14, true, title)
	c.text(barLeft, top-32, start, ink, 12, true, "weight")
	c.text(rhoLeft, top-32, start, ink, 12, true, "rank correlation with the order of windows")
	c.text(rhoLeft, top-16, start, soft, 11, false, "a dot for each tool, a line at their mean")
	most := 0.0
	for _, r := range rows {
		most = max(most, r.Weight)
	}
	// The scale of the bars ends at a round value.
	at, digits := ticks(0, max(most, 1e-6), 4)
	if step := at[len(at)-1] / float64(max(len(at)-1, 1)); at[len(at)-1] < most {
		at = append(at, at[len(at)-1]+step)
	}
	high := max(at[len(at)-1], 1e-6)
	toBar := func(w float64) float64 { return barLeft + min(max(w/high, 0), 1)*(barEnd-barLeft) }
	toRho := func(r float64) float64 { return rhoLeft + (min(max(r, -1), 1)+1)/2*(rhoEnd-rhoLeft) }
	c.columns(at, digits, toBar, top-4, bottom)
	for _, v := range []float64{-1, -0.5, 0, 0.5, 1} {
		color := grid
		if v == 0 {
			color = axis
		}
		c.line(toRho(v), top-4, toRho(v), bottom, color, 1, false)
		c.text(toRho(v), bottom+16, middle, soft, 11, false, fmt.Sprint(v))
	}
	for i, r := range rows {
		y := top + step*(float64(i)+0.5)
		c.text(barLeft-12, y+4, end, ink, 12, false, Shorten(r.Name, 28))
		c.rect(barLeft, y-6, toBar(r.Weight)-barLeft, 12, Blue)
		c.text(toBar(r.Weight)+6, y+4, start, soft, 11, false, fmt.Sprintf("%.2f", r.Weight))
		sum, n := 0., 0
		for _, v := range r.Rho {
			if !math.IsNaN(v) {
				c.ring(toRho(v), y, 4, Orange)
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			x := toRho(sum / float64(n))
			c.line(x, y-7, x, y+7, ink, 2, false)
		}
	}
	return c.bytes()
}
