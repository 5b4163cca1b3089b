package compare

import (
	"bytes"
	_ "embed" // of the page
	"fmt"
	"html/template"
	"strings"

	"github.com/flank-tcm/flank/internal/report"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "raised": raised, "wear": wearOf, "percent": percent,
	"cells": func(s string) []string {
		key, value, _ := strings.Cut(s, " ")
		return []string{key, strings.TrimSpace(value)}
	},
}).Parse(pageText))

// html returns the report as a page.
func (r *Report) html() ([]byte, error) {
	var b bytes.Buffer
	data := struct {
		*Report
		Summary []string
		Plot    template.HTML
	}{r, r.summary(), template.HTML(r.plot())}
	if err := pageTemplate.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("compare: page: %w", err)
	}
	return b.Bytes(), nil
}

// mostLanes is how many machines the plot has.
const mostLanes = 20

// Colors of the sides.
var sideColors = [2]string{"#2a6fdb", "#d9622b"}

// plot draws when each side had an alarm, for the machines on which one had; empty if there is
// none.
func (r *Report) plot() []byte {
	whole := r.To.Sub(r.From)
	unit, label := whole.Hours(), "hours"
	if unit > 96 {
		unit, label = unit/24, "days"
	}
	if unit <= 0 {
		return nil
	}
	t := report.Timeline{
		Title: "Alarms: A above, B below", Description: "When each model had an alarm, by machine.",
		Label: fmt.Sprintf("%s from %s", label, dayTime(r.From)), High: unit,
	}
	at := func(a *Alarm, s modelSide) report.Span {
		to := a.Cleared
		if to.IsZero() || to.After(r.To) {
			to = r.To
		}
		part := func(d float64) float64 { return d / whole.Seconds() * unit }
		return report.Span{From: part(a.Raised.Sub(r.From).Seconds()), To: part(to.Sub(r.From).Seconds()), Color: sideColors[s]}
	}
	for _, m := range r.Machines {
		if len(m.Events) == 0 || len(t.Lanes) >= 2*mostLanes {
			continue
		}
		lanes := [2]report.Lane{{Name: tail(m.Name) + " A"}, {Name: "B"}}
		for _, e := range m.Events {
			for s, alarms := range [2][]*Alarm{e.A, e.B} {
				for _, a := range alarms {
					lanes[s].Spans = append(lanes[s].Spans, at(a, modelSide(s)))
				}
			}
		}
		t.Lanes = append(t.Lanes, lanes[:]...)
	}
	if len(t.Lanes) == 0 {
		return nil
	}
	return t.SVG()
}

// tail returns the end of an ISA-95 path, from the line on if that is short enough to tell
// machines apart in little room.
func tail(machine string) string {
	const most = 13
	levels := strings.Split(machine, "/")
	name := levels[len(levels)-1]
	if n := len(levels); n > 1 && len(levels[n-2])+1+len(name) <= most {
		return levels[n-2] + "/" + name
	}
	if r := []rune(name); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return name
}
