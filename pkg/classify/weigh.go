package classify

import (
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// Stability says whether columns count by how steadily they follow the lives of
// tools, see [score.Columns].
type Stability string

// The settings of stability.
const (
	// stabilityAuto weighs columns where the rows have groups and an order and three
	// groups or more went on to the end of their life.
	stabilityAuto Stability = "auto"
	StabilityOff  Stability = "off"
)

// Weights says by how much each column counted in training. The network that is
// kept has them in its lowest layer.
type Weights struct {
	Off string `json:"off,omitempty"` // why all columns count alike; empty if they do not

	Tools []string `json:"tools,omitempty"` // whose lives were looked at, with and without classes
	Ended int      `json:"ended,omitempty"` // of them that went on to the end of their life

	// Columns are those that count, the one that counts most first.
	Columns []ColumnWeight `json:"columns,omitempty"`
}

// ColumnWeight is a column that counts.
type ColumnWeight struct {
	Column int       `json:"column"`
	Name   string    `json:"name,omitempty"` // what the caller calls the column; Fit leaves it empty
	Weight float64   `json:"weight"`         // in [0, 1], before all are scaled alike
	Mean   float64   `json:"mean"`           // of Rho
	SD     float64   `json:"sd"`             // between tools, shrunk
	Rho    []float64 `json:"rho"`            // by tool: rank correlation with the order of windows
}

// weigh returns how much each column counts, given samples of d's rows with a class and
// without: a weight for each column. Where columns are not weighed, it is 1, and 0 for
// Settings.Exclude. The Weights say why, or which columns count; the Columns are nil in the first case.
func (d subset) weigh(s Settings, labelled, unlabelled sample) ([]float64, *Weights, *score.Columns) {
	_, cols := d.of.X.Shape()
	w := &Weights{}
	weights := slices.Repeat([]float64{1}, cols)
	for _, j := range s.Exclude {
		weights[j] = 0
	}
	switch {
	case s.Stability == StabilityOff:
		w.Off = "it was switched off"
	case d.of.Groups == nil || !d.of.Ordered:
		w.Off = "the rows have no order of time within a tool"
	}
	if w.Off != "" {
		return weights, w, nil
	}
	lives := d.lives(labelled, unlabelled)
	if w.Ended = d.countEnded(lives); w.Ended < score.LeastTools {
		w.Off = fmt.Sprintf("%d of the tools went on to the end of their life, and it takes %d", w.Ended, score.LeastTools)
		return weights, w, nil
	}
	c := s.Shared.ranks.Rank(cols, rowOf(labelled, unlabelled), lives)
	c.Exclude(s.Exclude)
	kept := c.Kept()
	if len(kept) == 0 {
		w.Off = "no column follows the life of every tool"
		return weights, w, nil
	}
	w.Tools = c.Tools
	for _, j := range kept {
		w.Columns = append(w.Columns, ColumnWeight{Column: j, Weight: c.Weight[j], Mean: c.Mean[j], SD: c.SD[j], Rho: c.Rho[j]})
	}
	return c.Weight, w, c
}

// rowOf returns the rows of two samples by their numbers in lives.
func rowOf(labelled, unlabelled sample) func(i int) []float32 {
	return func(i int) []float32 {
		if i < labelled.x.Rows {
			return labelled.x.Row(i)
		}
		return unlabelled.x.Row(i - labelled.x.Rows)
	}
}

// lives returns the sampled rows of each group in the order of time. Rows with a class
// are numbered as in their sample, and the rows without one go on from there.
func (d subset) lives(labelled, unlabelled sample) []score.Life {
	at := make(map[string]int)
	var lives []score.Life
	order := make([]int, 0, labelled.x.Rows+unlabelled.x.Rows)
	add := func(group string, place int) {
		k, known := at[group]
		if !known {
			k = len(lives)
			at[group] = k
			lives = append(lives, score.Life{Tool: group})
		}
		lives[k].Rows = append(lives[k].Rows, len(order))
		order = append(order, place)
	}
	for i := range labelled.x.Rows {
		row := d.rows.row(labelled.at(i))
		add(d.of.Groups[row], 2*row+1)
	}
	u := &d.of.Unlabelled
	for i := range unlabelled.x.Rows {
		row := d.more.row(unlabelled.at(i))
		add(u.Groups[row], 2*u.After[row])
	}
	for _, l := range lives {
		slices.SortStableFunc(l.Rows, func(a, b int) int { return order[a] - order[b] })
	}
	return lives
}

// scaleOf returns what all weights are multiplied by. Gaussian units take inputs of any
// size: with √(n/Σw²), n the columns with a weight, their inputs have all together the
// variance that n columns of weight 1 would have. Bernoulli units take inputs up to 1:
// with 1/max w the greatest weight becomes 1.
func scaleOf(weights []float64, visible dbn.Unit) float64 {
	most := slices.Max(weights)
	if most == 0 {
		return 1
	}
	if visible == dbn.Bernoulli {
		return 1 / most
	}
	var square, counted float64
	for _, w := range weights {
		square += w * w
		if w > 0 {
			counted++
		}
	}
	return math.Sqrt(counted / square)
}

// countEnded returns how many tools went on to the end of their life.
func (d subset) countEnded(lives []score.Life) (n int) {
	ended := d.ended()
	for _, l := range lives {
		if ended(l.Tool) {
			n++
		}
	}
	return n
}
