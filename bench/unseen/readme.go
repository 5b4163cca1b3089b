package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/internal/train/baseline"
)

//go:embed readme.md.tmpl
var readmeText string

// readme returns the generated part of README.md: the table, and when a network is worth it.
func (p *page) readme() string { return p.fill(readmeText) }

// Row is a row of the table.
func (p *page) Row(data, protocol, title string) string {
	plain := p.best(data, protocol, func(variant string) bool { return variant == "plain" })
	aided := p.best(data, protocol, func(variant string) bool { return strings.HasPrefix(variant, "aided") })
	return fmt.Sprintf("| %s | **%s** | %s | %s | %s | %s |", title, p.ours(data, protocol).short(),
		p.simple(data, protocol, baseline.OneColumn).short(), p.simple(data, protocol, baseline.LogisticRegression).short(), aided.named(), plain.named())
}

// Lead is Flank's lead over a simple method.
func (p *page) Lead(data, protocol string, m baseline.Method) string {
	r := p.simple(data, protocol, m)
	if r == nil {
		return "–"
	}
	return bootstrap.Signed(r.ahead) + " (" + r.lead.Signed() + ")"
}

// simple returns the result of a simple method, nil if there is none.
func (p *page) simple(data, protocol string, m baseline.Method) *result {
	return p.find(data, protocol, func(t *tally) bool { return t.method == string(m) && t.variant == simpleVariant })
}

// best returns the best peer in some variants, nil if there is none.
func (p *page) best(data, protocol string, in func(variant string) bool) *result {
	return p.find(data, protocol, func(t *tally) bool { return t.method != flankMethod && in(t.variant) })
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
