package main

import (
	"math"
	"math/rand/v2"
	"slices"
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
	f.Median = quantile(gs, 0.5)
	f.GMean, f.Recall, f.Specificity = f.GMean/n, f.Recall/n, f.Specificity/n
	return f
}

// auc returns the mean over splits, NaN if none has one.
func (t *tally) auc() float64 {
	var sum float64
	for _, a := range t.aucs {
		sum += a
	}
	return sum / float64(len(t.aucs))
}

// aucBounds returns where the mean of auc lies if splits are drawn with replacement,
// which are tools where one is left out at a time; NaN with fewer than five.
func (t *tally) aucBounds() interval {
	if len(t.aucs) < fewTools {
		return interval{math.NaN(), math.NaN()}
	}
	rng := rand.New(rand.NewPCG(drawSeed, 0x617563))
	means := make([]float64, draws)
	for i := range means {
		for range t.aucs {
			means[i] += t.aucs[rng.IntN(len(t.aucs))] / float64(len(t.aucs))
		}
	}
	return percentiles(means)
}

const (
	draws    = 2000
	fewTools = 5 // below that an interval says nothing
	drawSeed = 1
)

// interval is where 95 of 100 draws lie; NaN if there is none.
type interval struct{ Low, High float64 }

// bootstrapTools draws the tools of two tallies with replacement, whole tools with all
// their windows, and returns where the mean G-mean of the first lies, and its lead over
// the second, which may be nil. Splits overlap, windows of a tool are near
// copies, but tools are independent. Both tallies must be of the same data set and
// protocol; tools that one of them lacks are not drawn.
//
// Source: B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, §13.3
// (percentile intervals), with tools as the units that are drawn.
func bootstrapTools(a, b *tally) (own, lead interval) {
	none := interval{math.NaN(), math.NaN()}
	tools := slices.Clone(a.tools)
	if b != nil {
		tools = slices.DeleteFunc(tools, func(name string) bool { return !slices.Contains(b.tools, name) })
	}
	if len(tools) < fewTools {
		return none, none
	}
	slices.Sort(tools) // so that the order of cells does not matter
	rng := rand.New(rand.NewPCG(drawSeed, 0x746f6f6c73))
	var owns, leads []float64
	for range draws {
		times := make(map[string]float64)
		for range tools {
			times[tools[rng.IntN(len(tools))]]++
		}
		g := a.figures(a.times(times), false)
		if g.Units == 0 {
			continue // only healthy tools were drawn
		}
		owns = append(owns, g.GMean)
		if b != nil {
			leads = append(leads, g.GMean-b.figures(b.times(times), false).GMean)
		}
	}
	if b == nil {
		return percentiles(owns), none
	}
	return percentiles(owns), percentiles(leads)
}

// times returns how often each of t's tools was drawn.
func (t *tally) times(drawn map[string]float64) []float64 {
	out := make([]float64, len(t.tools))
	for k, name := range t.tools {
		out[k] = drawn[name]
	}
	return out
}

// percentiles returns the 2.5 and the 97.5 % quantile of x, which it sorts.
func percentiles(x []float64) interval {
	return interval{quantile(x, 0.025), quantile(x, 0.975)}
}

// quantile returns the p quantile of x, which it sorts; NaN of nothing.
func quantile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	i := p * float64(len(x)-1)
	low := int(i)
	high := min(low+1, len(x)-1)
	return x[low] + (i-float64(low))*(x[high]-x[low])
}
