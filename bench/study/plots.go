package main

import (
	"fmt"

	"github.com/flank-tcm/flank/internal/report"
)

// plots draws, by file name, what the pages show.
func (p *pages) plots() map[string][]byte {
	files := map[string][]byte{}
	for metric, name := range map[Metric]string{GMean: "gmean", Accuracy: "accuracy"} {
		c := p.all[metric]
		var ranks []report.Rank
		var boxes []report.BoxRow
		for _, m := range c.methods {
			ranks = append(ranks, report.Rank{Name: title(m), Mean: c.rank(m), Color: color(m), Bold: m == Control})
			boxes = append(boxes, report.BoxRow{Name: title(m), Values: p.column(m, metric, p.Sets), Color: color(m), Bold: m == Control})
		}
		files["ranks-"+name+".svg"] = report.Ranks(fmt.Sprintf("Mean rank of %s over %d sets", metric, len(p.Sets)), c.test.CriticalDifference(level), ranks)
		files["boxes-"+name+".svg"] = report.Boxes(fmt.Sprintf("%s on %d sets", capital(metric), len(p.Sets)),
			fmt.Sprintf("One box for each of %d methods, the best mean rank first; its values are the sets.", len(boxes)), fmt.Sprint(metric), boxes)
		for _, other := range []struct{ method, file string }{{p.BestPeer, "peer"}, {"dbn", "dbn"}} {
			if _, ok := c.against[other.method]; ok {
				files["scatter-"+other.file+"-"+name+".svg"] = p.scatter(other.method, metric)
			}
		}
		if sets := p.known(); len(sets) > 0 {
			files["scatter-paper-"+name+".svg"] = report.Scatter{
				Title:       fmt.Sprintf("ECS-DBN: ours against the paper's %s", metric),
				Description: fmt.Sprintf("A point for each of %d sets: printed by the paper to the right, measured here upwards.", len(sets)),
				XLabel:      "printed by the paper", YLabel: "measured here",
				X: p.Paper.column(p.Paper.Methods[0], metric, sets), Y: p.column(Control, metric, sets), Names: sets, Color: report.Purple,
			}.SVG()
		}
	}
	return files
}

func (p *pages) scatter(other string, m Metric) []byte {
	return report.Scatter{
		Title:       fmt.Sprintf("%s: ECS-DBN and %s", capital(m), title(other)),
		Description: fmt.Sprintf("A point for each of %d sets: %s to the right, ECS-DBN upwards.", len(p.Sets), title(other)),
		XLabel:      title(other), YLabel: title(Control),
		X: p.column(other, m, p.Sets), Y: p.column(Control, m, p.Sets), Names: p.Sets, Color: color(other),
	}.SVG()
}

// color is orange for the control, blue for what is ours besides, grey for peers.
func color(method string) string {
	switch {
	case method == Control:
		return report.Orange
	case isPeer(method):
		return report.Grey
	}
	return report.Blue
}

func capital(m Metric) string {
	if m == Accuracy {
		return "Accuracy"
	}
	return m.String()
}
