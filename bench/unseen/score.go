package main

import (
	"math"
	"slices"

	gonum "gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/study/stat"
	"github.com/flank-tcm/flank/pkg/score"
)

// tally is the cells of one method and variant on one data set by one protocol.
type tally struct {
	method, variant string
	tools           []string   // in the order of their first cells
	units           []string   // likewise
	splits          int        // that there are cells of
	counts          [][]counts // by unit and tool
	unknown         [][]counts // likewise; nil for peers
	aucs            []float64  // of splits, where there is one
	flank           []cell     // the cells themselves, if they are Flank's
}

// tallies sums the cells of a data set and protocol, by method and variant in the
// order in which these first appear.
func tallies(cs []cell, data, protocol string) []*tally {
	var out []*tally
	splits := make(map[[5]string]bool)
	for _, c := range cs {
		if c.Data != data || c.Protocol != protocol {
			continue
		}
		at := slices.IndexFunc(out, func(t *tally) bool { return t.method == c.Method && t.variant == c.Variant })
		if at < 0 {
			at = len(out)
			out = append(out, &tally{method: c.Method, variant: c.Variant})
		}
		t := out[at]
		t.add(c)
		if splits[c.key()] {
			continue
		}
		splits[c.key()] = true
		t.splits++
		if c.AUC == c.AUC {
			t.aucs = append(t.aucs, c.AUC)
		}
	}
	return out
}

func (t *tally) add(c cell) {
	tool := slices.Index(t.tools, c.Tool)
	if tool < 0 {
		tool = len(t.tools)
		t.tools = append(t.tools, c.Tool)
		for u := range t.counts {
			t.counts[u], t.unknown[u] = append(t.counts[u], counts{}), append(t.unknown[u], counts{})
		}
	}
	unit := slices.Index(t.units, c.Unit)
	if unit < 0 {
		unit = len(t.units)
		t.units = append(t.units, c.Unit)
		t.counts, t.unknown = append(t.counts, make([]counts, len(t.tools))), append(t.unknown, make([]counts, len(t.tools)))
	}
	t.counts[unit][tool].add(c.counts, 1)
	if c.flank != nil {
		t.unknown[unit][tool].add(c.flank.Unknown, 1)
		t.flank = append(t.flank, c)
	}
}

// figures are means over units: one counts as often as another.
type figures struct {
	GMean, Median, Least, Recall, Specificity float64 // Median and Least are of the G-mean
	Units                                     int     // that have both classes
}

// figures returns the figures if each tool had been there as often as times says; nil
// stands for once. With judged, windows whose verdict is unknown are left out.
func (t *tally) figures(times []float64, judged bool) figures {
	f := figures{Least: math.Inf(1)}
	var gs []float64
	for u := range t.counts {
		var sum counts
		for k, c := range t.counts[u] {
			n := 1.0
			if times != nil {
				n = times[k]
			}
			sum.add(c, n)
			if judged {
				sum.add(t.unknown[u][k], -n)
			}
		}
		g := sum.gmean()
		if g != g {
			continue
		}
		f.Units++
		gs = append(gs, g)
		f.GMean += g
		f.Recall += sum.recall()
		f.Specificity += sum.specificity()
		f.Least = min(f.Least, g)
	}
	n := float64(f.Units)
	f.Median = stat.Median(gs)
	f.GMean, f.Recall, f.Specificity = f.GMean/n, f.Recall/n, f.Specificity/n
	return f
}

// auc returns the mean over splits, NaN if none has one.
func (t *tally) auc() float64 {
	return gonum.Mean(t.aucs, nil)
}

// aucBounds returns where the mean of auc lies if splits are drawn with replacement,
// which are tools where one is left out at a time; NaN with fewer than five.
func (t *tally) aucBounds() bootstrap.Interval {
	if len(t.aucs) < bootstrap.Few {
		return bootstrap.None
	}
	of := score.Bootstrap(len(t.aucs), 1, func(drawn []int, figures []float64) {
		figures[0] = 0
		for _, i := range drawn {
			figures[0] += t.aucs[i] / float64(len(t.aucs))
		}
	})[0]
	return bootstrap.Interval{Low: float64(of[0]), High: float64(of[1])}
}

// bootstrapTools returns where the mean G-mean of a tally lies if tools are drawn, and its lead over
// another, which may be nil, see [bootstrap.Tools]. Both tallies must be of the same data set and
// protocol; tools that one of them lacks are not drawn.
func bootstrapTools(a, b *tally) (own, lead bootstrap.Interval) {
	tools := slices.Clone(a.tools)
	if b != nil {
		tools = slices.DeleteFunc(tools, func(name string) bool { return !slices.Contains(b.tools, name) })
	}
	drawn := bootstrap.Tools(tools, 2, func(times map[string]float64) []float64 {
		g := a.figures(a.times(times), false)
		switch {
		case g.Units == 0:
			return nil // only healthy tools were drawn
		case b == nil:
			return []float64{g.GMean, math.NaN()}
		}
		return []float64{g.GMean, g.GMean - b.figures(b.times(times), false).GMean}
	})
	return drawn[0], drawn[1]
}

// times returns how often each of t's tools was drawn.
func (t *tally) times(drawn map[string]float64) []float64 {
	out := make([]float64, len(t.tools))
	for k, name := range t.tools {
		out[k] = drawn[name]
	}
	return out
}
