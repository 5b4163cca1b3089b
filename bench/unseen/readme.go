package main

import (
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/internal/train/baseline"
)

// readmeRows are the rows of the table in README.md.
var readmeRows = []struct{ data, protocol, title string }{
	{"turning", sixOfNine, "turning, learning from six of nine tools"},
	{"turning", few + "1", "turning, one labelled worn tool, others recorded without labels"},
	{"phm2010", leaveOneOut, "PHM 2010 milling, one of three cutters left out"},
	{"drill", fiveFold, "simulated gun drill, a fifth of the tools left out"},
	{"drill", few + "1", "simulated gun drill, one labelled tool of twenty"},
}

// readme returns the generated part of README.md: the table, and when a network is worth it.
func (p *page) readme() string {
	var b strings.Builder
	b.WriteString("| data | Flank | threshold on one feature | logistic regression | best of scikit-learn with Flank's features, screening and thresholds | best as people use it |\n|---|---:|---:|---:|---:|---:|\n")
	for _, r := range readmeRows {
		plain := p.best(r.data, r.protocol, func(variant string) bool { return variant == "plain" })
		aided := p.best(r.data, r.protocol, func(variant string) bool { return strings.HasPrefix(variant, "aided") })
		fmt.Fprintf(&b, "| %s | **%s** | %s | %s | %s | %s |\n", r.title, p.ours(r.data, r.protocol).short(),
			p.simple(r.data, r.protocol, baseline.OneColumn).short(), p.simple(r.data, r.protocol, baseline.LogisticRegression).short(), aided.named(), plain.named())
	}
	lead := func(data, protocol string, m baseline.Method) string {
		r := p.simple(data, protocol, m)
		if r == nil {
			return "–"
		}
		return bootstrap.Signed(r.ahead) + " (" + r.lead.Signed() + ")"
	}
	fmt.Fprintf(&b, `
With one labelled tool and others that were recorded without labels, ECS-DBN is ahead of logistic regression by %s on turning if the tools that are judged were
among those recorded, by %s if they were not, and by %s on the simulated drills: an interval above 0 shows a lead. With labels from six turning tools the
lead is %s: a linear model does as well. Over a threshold on one feature, where one follows the wear, it is %s on turning with one labelled tool, and on the drills, where none does, %s. So a network is worth it where few tools have labels
and no single feature follows the wear.
`, lead("turning", few+"1"+atHand, baseline.LogisticRegression), lead("turning", few+"1", baseline.LogisticRegression), lead("drill", few+"1", baseline.LogisticRegression),
		lead("turning", sixOfNine, baseline.LogisticRegression), lead("turning", few+"1", baseline.OneColumn), lead("drill", few+"1", baseline.OneColumn))
	return b.String()
}

// simple returns the result of a simple method, nil if there is none.
func (p *page) simple(data, protocol string, m baseline.Method) *result {
	for _, r := range p.results(data, protocol) {
		if r.method == string(m) && r.variant == simpleVariant {
			return r
		}
	}
	return nil
}

// best returns the best peer in some variants, nil if there is none.
func (p *page) best(data, protocol string, in func(variant string) bool) *result {
	for _, r := range p.peers(data, protocol) {
		if in(r.variant) {
			return r
		}
	}
	return nil
}

// short returns the mean G-mean with its interval and, of several splits, the median and the worst below it.
func (r *result) short() string {
	if r == nil {
		return "–"
	}
	text := three(r.GMean) + bounds(r.own)
	if median, worst := r.spread(); r.Units > 1 {
		text += "<br>" + median + ", " + worst
	}
	return text
}

// named is short with the name of the method.
func (r *result) named() string {
	if r == nil {
		return "–"
	}
	name := r.method
	if name == "ridge" || r.variant == "aided-wear" {
		name += " on wear"
	}
	return name + "<br>" + r.short()
}
