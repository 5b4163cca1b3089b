package main

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/document"
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

func mean(x []float64) float64 { return stat.Mean(x, nil) }

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

//go:embed page.md.tmpl
var text string

// page is docs/figures/parts.md. A test holds what its sentences presume against the cells.
func page(cells []cell) string {
	two, three := resultsOf(cells, 2), resultsOf(cells, 3)
	g := three[ecsDBN].gmeans(nil)
	best, least := bestRegression(three)
	lead, _ := three[ecsDBN].lead(best)
	_, _, worst := three[ecsDBN].tools()
	number := func(v float64) string { return fmt.Sprintf("%.3f", v) }
	of := func(variant string) string { return number(mean(two[variant].gmeans(nil))) }
	return document.Fill(text, map[string]any{
		"Tools": len(two[ecsDBN][0].Tools), "Seeds": len(two[ecsDBN]), "Two": table(two), "Three": table(three), "Spread": fmt.Sprintf("%.2f", slices.Max(g)-slices.Min(g)),
		"Worst": number(worst), "Least": number(least), "Lead": bootstrap.Signed(lead), "Regression": of(regressions), "Default": of(ecsDBN), "EqualCosts": of(regressions + ", argmax"),
	}, nil)
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
