package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Rank is the mean rank of one method; 1 is the best there is.
type Rank struct {
	Name  string
	Mean  float64
	Color string
	Bold  bool
}

// Ranks draws a critical-difference diagram: methods on an axis by their mean
// rank, the best at the left, and a bar below the axis through each largest group
// whose mean ranks lie within the critical difference, so that no two of it were
// told apart. (J. Demšar, J. Machine Learning Research 7, 2006, §3.2.2.)
func Ranks(title string, critical float64, ranks []Rank) []byte {
	const width, left, right, axisY, step, barStep = 840.0, 250.0, 250.0, 86.0, 18.0, 6.0
	sorted := slices.Clone(ranks)
	slices.SortStableFunc(sorted, func(a, b Rank) int { return cmp.Compare(a.Mean, b.Mean) })
	bars := groups(sorted, critical)
	half := (len(sorted) + 1) / 2
	labels := axisY + 22 + barStep*float64(len(bars))
	c := newCanvas(width, labels+step*float64(half)+12, title,
		fmt.Sprintf("Mean ranks of %d methods. Bars join methods whose mean ranks differ by less than the critical difference, %.2f.", len(sorted), critical))
	c.text(18, 24, start, ink, 14, true, title)
	low, high := 1., 2.
	if len(sorted) > 0 {
		low = max(1, math.Floor(sorted[0].Mean))
		high = max(low+1, math.Ceil(sorted[len(sorted)-1].Mean), math.Ceil(low+critical))
	}
	toX := func(r float64) float64 { return left + (r-low)/(high-low)*(width-left-right) }
	c.line(toX(low), axisY, toX(high), axisY, axis, 1.2, false)
	at, digits := ticks(low, high, 8)
	for _, v := range at {
		c.line(toX(v), axisY-5, toX(v), axisY, axis, 1.2, false)
		c.text(toX(v), axisY-9, middle, soft, 11, false, fmt.Sprintf("%.*f", digits, v))
	}
	// The critical difference as a length.
	c.line(toX(low), 50, toX(low+critical), 50, ink, 1.5, false)
	for _, v := range []float64{low, low + critical} {
		c.line(toX(v), 46, toX(v), 54, ink, 1.5, false)
	}
	c.text(toX(low)-8, 54, end, soft, 11, false, fmt.Sprintf("critical difference %.2f", critical))
	for i, b := range bars {
		y := axisY + 10 + barStep*float64(i)
		c.line(toX(sorted[b[0]].Mean)-3, y, toX(sorted[b[1]].Mean)+3, y, ink, 3, false)
	}
	for i, r := range sorted {
		row, edge, anchor, words := i, left-14, end, fmt.Sprintf("%s  %.2f", r.Name, r.Mean)
		if i >= half {
			row, edge, anchor, words = len(sorted)-1-i, width-right+14, start, fmt.Sprintf("%.2f  %s", r.Mean, r.Name)
		}
		y := labels + step*(float64(row)+0.5)
		c.path([]float64{toX(r.Mean), toX(r.Mean), edge}, []float64{axisY, y, y}, r.Color, 1.2, false)
		c.dot(toX(r.Mean), axisY, 3.5, r.Color)
		shift := -4.
		if anchor == start {
			shift = 4
		}
		color := soft
		if r.Bold {
			color = ink
		}
		c.text(edge+shift, y+4, anchor, color, 12, r.Bold, words)
	}
	return c.bytes()
}

// groups returns the first and the last of each largest group of sorted ranks
// within critical of each other; groups of one are left out.
func groups(sorted []Rank, critical float64) [][2]int {
	var found [][2]int
	last := -1
	for i := range sorted {
		j := i
		for j+1 < len(sorted) && sorted[j+1].Mean-sorted[i].Mean < critical {
			j++
		}
		if j > i && j > last {
			found = append(found, [2]int{i, j})
		}
		last = max(last, j)
	}
	return found
}
