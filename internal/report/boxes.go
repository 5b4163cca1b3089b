package report

import (
	"fmt"
	"math"
	"slices"
)

// BoxRow is the values of one method, drawn as a box: it reaches from the first
// to the third quartile, with a line at the median and a dot at the mean;
// whiskers reach to the farthest values within 1.5 times its length, and what
// lies beyond is a small dot each. (J. Tukey, Exploratory Data Analysis, 1977.)
type BoxRow struct {
	Name   string
	Values []float64
	Color  string
	Bold   bool
}

// Boxes draws a row for each method, on one scale that ends at 1 and begins at 0
// or at a round value above it. Label says what the values are.
func Boxes(title, description, label string, rows []BoxRow) []byte {
	const width, left, right, top, step = 704.0, 190.0, 62.0, 48.0, 20.0
	bottom := top + step*float64(len(rows))
	c := newCanvas(width, bottom+44, title, description)
	c.text(18, 24, start, ink, 14, true, title)
	c.text(width-right+14, top-8, start, soft, 11, false, "mean")
	least := 0.8
	for _, r := range rows {
		for _, v := range r.Values {
			least = min(least, v)
		}
	}
	least = max(0, math.Floor(5*least)/5)
	toX := func(v float64) float64 { return left + (min(max(v, least), 1)-least)/(1-least)*(width-left-right) }
	at, digits := ticks(least, 1, 5)
	c.columns(at, digits, toX, top-4, bottom)
	c.text(toX((1+least)/2), bottom+36, middle, soft, 12, false, label)
	for i, r := range rows {
		y := top + step*(float64(i)+0.5)
		text := soft
		if r.Bold {
			text = ink
		}
		c.text(left-12, y+4, end, text, 12, r.Bold, r.Name)
		if len(r.Values) == 0 {
			continue
		}
		v := slices.Sorted(slices.Values(r.Values))
		first, median, third := quantile(v, 0.25), quantile(v, 0.5), quantile(v, 0.75)
		reach := 1.5 * (third - first)
		low, high, sum := third, first, 0.
		for _, x := range v {
			sum += x
			if x < first-reach || x > third+reach {
				c.ring(toX(x), y, 1.8, r.Color)
				continue
			}
			low, high = min(low, x), max(high, x)
		}
		c.line(toX(low), y, toX(high), y, r.Color, 1.3, false)
		c.box(toX(first), y-6, toX(third)-toX(first), 12, r.Color)
		c.line(toX(median), y-6, toX(median), y+6, r.Color, 2.4, false)
		mean := sum / float64(len(v))
		c.dot(toX(mean), y, 3.4, r.Color)
		c.text(width-right+14, y+4, start, text, 11, r.Bold, fmt.Sprintf("%.3f", mean))
	}
	return c.bytes()
}

// quantile interpolates between sorted values.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(math.Floor(at))
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
