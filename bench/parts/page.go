package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/pkg/score"
)

const (
	ecsDBN      = "default"
	regressions = "logistic regression"
)

// row is a row of the page's tables.
type row struct{ variant, words string }

var rows = []row{
	{ecsDBN, "**ECS-DBN, default settings**"},
	{"no pre-training", "without pre-training"},
	{"one layer", "one hidden layer"},
	{regressions, "no hidden layer: logistic regression"},
	{"default, argmax", "equal costs"},
	{"default, inverse_prior", "costs of the inverse prior"},
	{"default, half_way", "costs half-way from the inverse prior to JADE's"},
	{"default, jade", "JADE's own costs"},
	{regressions + ", argmax", "logistic regression, equal costs"},
	{regressions + ", inverse_prior", "logistic regression, inverse prior"},
}

// result is what the cells of one variant say, one for each seed.
type result []cell

// gmeans returns the G-mean of all tools together, by seed, if tools had been there as often as times says; nil
// stands for once. It returns nil if a class has no rows then.
func (r result) gmeans(times map[string]float64) (out []float64) {
	for _, c := range r {
		sum := score.NewConfusion(c.Classes)
		for tool, m := range c.Tools {
			for a := range m {
				for b, n := range m[a] {
					if times != nil {
						n *= int(times[tool])
					}
					sum[a][b] += n
				}
			}
		}
		for class := range sum {
			if sum.RowsOf(class) == 0 {
				return nil
			}
		}
		out = append(out, sum.GMean())
	}
	return out
}

// tools returns the mean and the worst of the G-means of tools over the classes that each has, averaged over seeds.
func (r result) tools() (average float64, name string, worst float64) {
	worst = math.Inf(1)
	var all []float64
	for _, tool := range slices.Sorted(maps.Keys(r[0].Tools)) {
		var sum float64
		for _, c := range r {
			sum += c.Tools[tool].GMean() / float64(len(r))
		}
		if all = append(all, sum); sum < worst {
			name, worst = tool, sum
		}
	}
	return mean(all), name, worst
}

// lead returns by how much the G-mean is above another's, and its interval over tools.
func (r result) lead(other result) (float64, bootstrap.Interval) {
	return mean(r.gmeans(nil)) - mean(other.gmeans(nil)), bootstrap.Tools(slices.Collect(maps.Keys(r[0].Tools)), 1, func(drawn map[string]float64) []float64 {
		ours := r.gmeans(drawn)
		if ours == nil {
			return nil // no tool with a faulty window was drawn
		}
		return []float64{mean(ours) - mean(other.gmeans(drawn))}
	})[0]
}

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return sum
}

// adds says what the interval of a lead, as it is printed, says of the part that is missing.
func adds(i bootstrap.Interval) string {
	const least = 0.0005
	switch {
	case i.Low >= least:
		return "adds"
	case i.High <= -least:
		return "takes away"
	}
	return "cannot be told"
}

// resultsOf returns the results of so many classes by variant.
func resultsOf(cells []cell, classes int) map[string]result {
	out := make(map[string]result)
	for _, c := range cells {
		if c.Classes == classes {
			out[c.Variant] = append(out[c.Variant], c)
		}
	}
	return out
}

func table(of map[string]result) string {
	var b strings.Builder
	b.WriteString("| | G-mean | of seeds | mean of tools | worst tool | default's lead | 95 % of draws | the missing part |\n|---|---:|---:|---:|---:|---:|---:|---|\n")
	for _, r := range rows {
		found := of[r.variant]
		if found == nil {
			continue
		}
		g := found.gmeans(nil)
		average, name, worst := found.tools()
		fmt.Fprintf(&b, "| %s | %.3f | %.3f–%.3f | %.3f | %.3f (%s) |", r.words, mean(g), slices.Min(g), slices.Max(g), average, worst, name)
		if r.variant == ecsDBN {
			b.WriteString(" – | – | |\n")
			continue
		}
		lead, i := of[ecsDBN].lead(found)
		fmt.Fprintf(&b, " %s | %s | %s |\n", bootstrap.Signed(lead), i.Signed(), adds(i))
	}
	return b.String()
}

// page is docs/figures/parts.md.
func page(cells []cell) string {
	two, three := resultsOf(cells, 2), resultsOf(cells, 3)
	g := three[ecsDBN].gmeans(nil)
	return fmt.Sprintf(`# What each part adds

Written by `+"`make parts`"+`. The data are %d turning tools. Each tool is held out in turn and judged by classifiers that have not seen it.
In each row one part of the ECS-DBN is missing. No guard bounds the network. All else is the default, and the same in all rows: the trainer weighs features, and takes them relative to each tool's reference in mode `+"`log`"+`.

- The G-mean is the geometric mean of the recalls of all classes. It counts the windows of all tools together, and is averaged over %d seeds; the next column has the least and the greatest.
- A tool's G-mean is over the classes that the tool has. The name of the worst tool is in brackets.
- The default's lead is its G-mean less the row's. The interval holds 95 of 100 draws of whole tools, as in [unseen.md](unseen.md).
- A part adds if its interval lies above 0, and takes away if it lies below 0. Otherwise these tools cannot tell. One interval in twenty leaves 0 out by chance.
- Logistic regression is the method that `+"`trainer fit`"+` [compares a network with](../how-to/compare-methods.md). It has the same windows and the same weights of features. Each limit of wear has a regression with costs of its own, which the trainer's rule for two classes chooses. Its posteriors are not calibrated.
- The trainer's settings and the penalty of the regressions were chosen on these tools with two classes, so both flatter there.

## Two classes

A window is faulty from 300 µm on. The costs kept are half-way from what a sweep finds to the inverse prior. What JADE finds is only reported.

%s
Pre-training and the second layer each add a little to the network, and costs add much more.
The network as a whole adds nothing that shows to logistic regression, and the search for costs nothing to the inverse prior.

## Three classes

A window is worn from 150 µm on, and faulty from 300 µm on. The costs kept are JADE's own, or half-way from them to the inverse prior if JADE's own give less on tools held out from the choice.

%s
No part adds anything that these tools can tell. Seeds alone move the default's G-mean by %.2f.

## When is it worth it?

%s`, len(two[ecsDBN][0].Tools), len(two[ecsDBN]), table(two), table(three), slices.Max(g)-slices.Min(g), conclusion(two, three))
}

// conclusion says when a network is worth it. A test holds what it presumes against the cells.
func conclusion(two, three map[string]result) string {
	best, least := bestRegression(three)
	lead, _ := three[ecsDBN].lead(best)
	_, _, worst := three[ecsDBN].tools()
	return fmt.Sprintf(`An ECS-DBN is worth trying with three classes if every tool counts: its worst tool has %.3f and the worst tool of each regression at most %.3f, though these tools cannot tell its lead over the best regression, %s, from none.
With two classes logistic regression does as well, %.3f compared with %.3f, if it has the same features and the same rule for costs: with equal costs it has %.3f.
`, worst, least, bootstrap.Signed(lead), mean(two[regressions].gmeans(nil)), mean(two[ecsDBN].gmeans(nil)), mean(two[regressions+", argmax"].gmeans(nil)))
}

// bestRegression returns the regressions whose costs give the greatest G-mean, and the greatest G-mean that any
// have of their worst tool.
func bestRegression(of map[string]result) (best result, least float64) {
	for _, r := range rows {
		if found := of[r.variant]; strings.HasPrefix(r.variant, regressions) {
			if best == nil || mean(found.gmeans(nil)) > mean(best.gmeans(nil)) {
				best = found
			}
			_, _, worst := found.tools()
			least = max(least, worst)
		}
	}
	return best, least
}
