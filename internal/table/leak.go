package table

import (
	"fmt"
	"math"
	"time"
)

// Leak follows the numbers of a column, row by row, and says whether they tell when a row was taken, or from which tool, and not how
// the tool cuts. A model that learns from such a column is right about the tools that it has seen, and about no other.
type Leak struct {
	n               int64 // numbers
	last, min, max  float64
	sum, squares    float64 // of the distances from the first number
	first           float64
	fractions       bool     // some are not whole
	within, between [2]int64 // steps down and up, within a tool and from one tool to the next
	tools           int64    // changes of the tool between numbers
	changed         bool     // the tool has since the last number
	step            float64  // the step that most are like
	same, net       int64    // steps like it; by how many they outnumber others
}

// Rows from which on chance does not explain a column that never falls.
const (
	fewSteps  = 3  // of whole numbers, all alike
	fewRows   = 8  // that have them
	someSteps = 12 // of any
	manySteps = 30 // if it falls from one tool to the next, as what follows wear does
)

// Add takes the number of the next row, NaN or infinite if there is none. A tool that changes is another one than in the row before.
func (l *Leak) Add(v float64, changed bool) {
	l.changed = l.changed || changed
	if v != v || math.IsInf(v, 0) {
		return
	}
	if l.n++; l.n == 1 {
		l.first, l.last, l.min, l.max, l.changed = v, v, v, v, false
	}
	if l.changed {
		l.tools++
	}
	d := v - l.first
	l.sum += d
	l.squares += d * d
	l.min, l.max = min(l.min, v), max(l.max, v)
	l.fractions = l.fractions || v != math.Trunc(v)
	if v != l.last {
		l.stepTo(v, l.changed)
	}
	l.last, l.changed = v, false
}

// stepTo takes a step, and keeps the one that most are like (Boyer and Moore 1991).
func (l *Leak) stepTo(v float64, changed bool) {
	d := v - l.last
	up := 0
	if d > 0 {
		up = 1
	}
	if changed {
		l.between[up]++
		return
	}
	l.within[up]++
	if math.Abs(d-l.step) <= 1e-6*math.Abs(l.step)+1e-12*math.Abs(v) {
		l.same++
		l.net++
		return
	}
	if l.net--; l.net < 0 {
		l.step, l.net, l.same = d, 1, 1
	}
}

// Why says in words what the column seems to be; empty if it may well be a measurement.
func (l *Leak) Why() string {
	if l.n == 0 || l.min == l.max {
		return ""
	}
	now := time.Now()
	least, ok := EpochOf(l.min, now)
	most, _ := EpochOf(l.max, now)
	if ok && least == most && (l.max-l.min)*least.Unit < 400*86400 { // no sensor has so large a level for so small a span
		return "it looks like a time in " + least.Name
	}
	if l.permuted() {
		return "it seems to count rows"
	}
	steps := l.within[0] + l.within[1]
	alike := steps > 0 && 20*l.same > 19*steps
	counts := alike && !l.fractions && l.n >= fewRows
	for up, never := range []string{"rises", "falls"} {
		down, rises := 1-up, l.within[up]+l.between[up]
		switch {
		case l.within[down] > 0:
		case l.between[down] == 0 && (counts && rises >= fewSteps || rises >= someSteps):
			return fmt.Sprintf("it never %s, as a counter, a clock or an energy does", never)
		case l.between[down] > 0 && (counts && l.within[up] >= someSteps || l.within[up] >= manySteps):
			return fmt.Sprintf("it never %s while a tool is in use, as a counter or a clock does that begins again", never)
		}
	}
	switch {
	case alike && !l.fractions && steps >= manySteps: // of other numbers it may be a sweep
		return "it counts in equal steps, and begins again"
	case steps == 0 && l.tools > 0 && l.n >= 3*(l.tools+1):
		return "it is constant within each tool, as a setting or the tool's name is"
	}
	return ""
}

// permuted reports whether the numbers are n whole numbers that follow each other, in any order: by their range, sum and squares.
func (l *Leak) permuted() bool {
	n := float64(l.n)
	if l.fractions || l.n < fewRows || l.max-l.min+1 != n {
		return false
	}
	mean := l.sum / n
	spread := math.Sqrt(max(l.squares/n-mean*mean, 0))
	return math.Abs(mean+l.first-(l.min+l.max)/2) < 0.01*n && math.Abs(spread/math.Sqrt((n*n-1)/12)-1) < 0.01
}
