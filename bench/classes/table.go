package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// rules are the ways to choose costs that are compared, by their names in a report.
var rules = []struct{ name, words string }{
	{"argmax", "equal"},
	{"inverse_prior", "inverse prior"},
	{"half_way", "half-way between the inverse prior and JADE's own"},
	{"jade", "JADE's own"},
	{"kept", "**kept**"},
}

// judged is what the costs of each rule decide on the tools that a cell holds out.
type judged struct {
	unit  string // cells whose windows are counted together before a G-mean is taken
	tools []string
	by    map[string][]score.Confusion // by rule, of each tool
}

func judge(c *cell) judged {
	number, tools := classify.NumberGroups(c.Held.Tool)
	j := judged{unit: fmt.Sprint(c.Name, " ", c.Seed), tools: tools, by: make(map[string][]score.Confusion)}
	if c.Protocol == oneOut { // one tool often lacks a class
		j.unit = fmt.Sprint(c.Seed)
	}
	for _, r := range rules {
		costs := costsOf(c, r.name)
		found := make([]score.Confusion, len(tools))
		for t := range found {
			found[t] = score.NewConfusion(classes)
		}
		for i, class := range c.Held.Class {
			found[number[i]].Add(class, costs.Decide(c.Held.Posterior[classes*i:classes*(i+1)]))
		}
		j.by[r.name] = found
	}
	return j
}

// costsOf returns the costs of a rule. Where few tools have rows of a class, nothing is
// compared, and half-way is what is kept.
func costsOf(c *cell, rule string) classify.CostVector {
	at := slices.IndexFunc(c.Choices, func(ch classify.Choice) bool { return ch.Name == rule })
	if at < 0 {
		at = len(c.Choices) - 1
	}
	return c.Choices[at].Costs
}

// figures returns the G-mean of each rule in each unit, where tools count as often as drawn
// says; nil stands for once each. Units without rows of some class are left out.
func figures(of []judged, drawn map[string]int) map[string][]float64 {
	units := make(map[string]map[string]score.Confusion) // by unit and rule
	var order []string
	for _, j := range of {
		if units[j.unit] == nil {
			units[j.unit] = make(map[string]score.Confusion)
			for _, r := range rules {
				units[j.unit][r.name] = score.NewConfusion(classes)
			}
			order = append(order, j.unit)
		}
		for rule, found := range j.by {
			sum := units[j.unit][rule]
			for t, m := range found {
				times := 1
				if drawn != nil {
					times = drawn[j.tools[t]]
				}
				for a := range m {
					for b := range m[a] {
						sum[a][b] += times * m[a][b]
					}
				}
			}
		}
	}
	out := make(map[string][]float64)
	for _, u := range order {
		for rule, m := range units[u] {
			if m.RowsOf(0) > 0 && m.RowsOf(1) > 0 && m.RowsOf(2) > 0 {
				out[rule] = append(out[rule], m.GMean())
			}
		}
	}
	return out
}

const draws = 1000

// leads returns the 95 % interval, over draws of whole tools, of the mean G-mean of the costs
// kept less the one of JADE's own.
func leads(of []judged) (low, high float64) {
	var tools []string
	for _, j := range of {
		for _, t := range j.tools {
			if !slices.Contains(tools, t) {
				tools = append(tools, t)
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 0x746f6f6c73)) // "tools"
	var found []float64
	for range draws {
		drawn := make(map[string]int)
		for range tools {
			drawn[tools[rng.IntN(len(tools))]]++
		}
		if f := figures(of, drawn); len(f["kept"]) > 0 {
			found = append(found, mean(f["kept"])-mean(f["jade"]))
		}
	}
	slices.Sort(found)
	return found[len(found)/40], found[len(found)-1-len(found)/40]
}

// tableOf returns the table of all cells.
func tableOf(cells []cell) string {
	by := make(map[string][]judged)
	var order []string
	for i := range cells {
		key := cells[i].Set + ", " + cells[i].Protocol
		if by[key] == nil {
			order = append(order, key)
		}
		by[key] = append(by[key], judge(&cells[i]))
	}
	var b strings.Builder
	for _, key := range order {
		low, high := leads(by[key])
		f := figures(by[key], nil)
		fmt.Fprintf(&b, "\n%s: %d units; kept less JADE's own: %s (%s to %s)\n\n| costs | G-mean | least |\n|---|---:|---:|\n", key, len(f["kept"]), signed(mean(f["kept"])-mean(f["jade"])), signed(low), signed(high))
		for _, r := range rules {
			fmt.Fprintf(&b, "| %s | %.3f | %.3f |\n", r.words, mean(f[r.name]), slices.Min(f[r.name]))
		}
	}
	return b.String()
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func signed(v float64) string {
	if math.Abs(v) < 0.0005 {
		return "0.000"
	}
	return strings.Replace(fmt.Sprintf("%+.3f", v), "-", "−", 1)
}
