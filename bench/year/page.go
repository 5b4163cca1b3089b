package main

import (
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/internal/report"
)

// tally is what the tools of some months came to, by frozen, retrained.
type tally struct {
	tools            int
	caught, falsely  [2]int
	unknown, windows [2]int
}

func (t *tally) add(l *life) {
	t.tools++
	for of, f := range l.found {
		if f.caught() {
			t.caught[of]++
		}
		if f.falsely() {
			t.falsely[of]++
		}
		t.unknown[of] += f.unknown
		t.windows[of] += f.windows
	}
}

func (y *year) tally(month int) (t tally) {
	for _, l := range y.lives[month] {
		t.add(l)
	}
	return t
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }

// page returns the page and its picture.
func (y *year) page() (text string, plot []byte) {
	var b strings.Builder
	fmt.Fprintf(&b, `# A year of a fleet, with and without training again

Written by `+"`make year`"+`; do not edit. %d simulated machines wear out %d tools each in a month. The first model learnt from %d tools of the month before. One tool in %d is measured, once, when it is taken out, and said to be chipped or broken if it is;
the trainer hears of it a month later, and trains again on all that it knows. Gains of sensors drift by %.0f %% a month. In month %d an accelerometer of each third machine reads half as much.
From month %d on one tool in %d is reground, and from month %d on half of the machines drill another material at another speed and feed. A tool is found if its first alarm is at %d µm or later; an earlier one is false.
It is a simulation: it shows what training again is worth there, not what a plant will see.

![Tools found and false alarms by month](year.svg)

| month | tools | learnt from | found: first model | trained again | false alarms: first model | trained again | unknown windows: first model | trained again |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`, y.machines, y.tools, y.first, measured, 100*walk, remounted, regrindFrom, regrindEvery, otherSteel, nearUM)
	var all tally
	for month := 1; month <= y.months; month++ {
		t := y.tally(month)
		for _, l := range y.lives[month] {
			all.add(l)
		}
		row(&b, fmt.Sprint(month), fmt.Sprint(y.learn[month-1]), t)
	}
	row(&b, "all", "", all)
	fmt.Fprintf(&b, "\nTraining again changes the share of tools found by %s, and the share of tools with a false alarm by %s (95 of 100 draws of tools).\n", y.change(finding.caught), y.change(finding.falsely))
	return b.String(), y.draw()
}

func row(b *strings.Builder, month, learnt string, t tally) {
	fmt.Fprintf(b, "| %s | %d | %s |", month, t.tools, learnt)
	for _, n := range [][2]int{t.caught, t.falsely} {
		for of := range n {
			fmt.Fprintf(b, " %d |", n[of])
		}
	}
	for of := range t.unknown {
		fmt.Fprintf(b, " %.1f %% |", 100*share(t.unknown[of], t.windows[of]))
	}
	b.WriteString("\n")
}

// change returns by how much training again changes a share of the tools, with its interval.
func (y *year) change(is func(finding) bool) string {
	of, names := make(map[string]float64), []string(nil)
	sum := 0.0
	for _, lives := range y.lives[1:] {
		for _, l := range lives {
			for which, sign := range [...]float64{frozen: -1, retrained: 1} {
				if is(l.found[which]) {
					of[l.plan.tool.Name] += sign
				}
			}
			sum += of[l.plan.tool.Name]
			names = append(names, l.plan.tool.Name)
		}
	}
	interval := bootstrap.Tools(names, 1, func(times map[string]float64) []float64 {
		s, n := 0.0, 0.0
		for _, name := range names { // in order, so that equal draws give equal sums
			s, n = s+times[name]*of[name], n+times[name]
		}
		return []float64{s / n}
	})[0]
	return fmt.Sprintf("%s (%s)", bootstrap.Signed(sum/float64(len(names))), interval.Signed())
}

func (y *year) draw() []byte {
	plots := []report.Plot{{Title: "Tools found", Y: report.Axis{Label: "share of tools", Low: 0, High: 1}}, {Title: "Tools with a false alarm", Y: report.Axis{Label: "share of tools", Low: 0, High: 1}}}
	series := [2][2]report.Series{}
	for month := 1; month <= y.months; month++ {
		t := y.tally(month)
		for panel, n := range [...][2]int{t.caught, t.falsely} {
			for of := range n {
				s := &series[panel][of]
				s.X, s.Y = append(s.X, float64(month)), append(s.Y, share(n[of], t.tools))
			}
		}
	}
	for panel := range plots {
		p := &plots[panel]
		p.X = report.Axis{Label: "month", Low: 0, High: float64(y.months + 1)}
		p.Description = p.Title + " by month, with the first model and with one that is trained again each month."
		for of, style := range [...]report.Series{frozen: {Name: "first model", Color: report.Orange, Dashed: true}, retrained: {Name: "trained again", Color: report.Blue}} {
			style.X, style.Y, style.Dots = series[panel][of].X, series[panel][of].Y, true
			p.Series = append(p.Series, style)
		}
	}
	return report.Panels("A year of a simulated fleet", "Tools found and false alarms by month, with and without training again.", 2, 420, 260, plots)
}
