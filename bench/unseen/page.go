package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/train/study"
)

// page writes docs/figures/unseen.md of cells alone.
type page struct {
	strings.Builder
	cells []cell
	known map[[2]string][]*result
}

// result is a tally with its figures, as the page shows them.
type result struct {
	*tally
	figures
	own, lead bootstrap.Interval // of the G-mean, and of Flank's lead over it
	ahead     float64            // Flank's lead, NaN for Flank itself
}

// results returns all methods of a data set and protocol, the best first.
func (p *page) results(data, protocol string) []*result {
	key := [2]string{data, protocol}
	if rs, ok := p.known[key]; ok {
		return rs
	}
	ts := tallies(p.cells, data, protocol)
	most := 0
	for _, t := range ts {
		most = max(most, t.splits)
	}
	// A run that was stopped leaves a method with a part of the splits.
	ts = slices.DeleteFunc(ts, func(t *tally) bool { return t.splits < most })
	var ours *tally
	if i := slices.IndexFunc(ts, isOurs); i >= 0 {
		ours = ts[i]
	}
	var rs []*result
	for _, t := range ts {
		r := &result{tally: t, figures: t.figures(nil, false), ahead: math.NaN(), lead: bootstrap.None}
		if r.Units == 0 {
			continue
		}
		r.own, _ = bootstrapTools(t, nil)
		if ours != nil && t != ours {
			r.ahead = ours.figures(nil, false).GMean - r.GMean
			_, r.lead = bootstrapTools(ours, t)
		}
		rs = append(rs, r)
	}
	slices.SortStableFunc(rs, func(a, b *result) int { return cmp.Compare(b.GMean, a.GMean) })
	p.known[key] = rs
	return rs
}

// find returns the best result by a method in some variants, nil if there is none.
func (p *page) find(data, protocol string, is func(*tally) bool) *result {
	rs := p.results(data, protocol)
	if i := slices.IndexFunc(rs, func(r *result) bool { return is(r.tally) }); i >= 0 {
		return rs[i]
	}
	return nil
}

// isOurs reports whether a tally is of Flank with default settings.
func isOurs(t *tally) bool { return t.method == flankMethod && t.variant == defaultVariant }

// ours returns Flank's result with default settings, nil if there is none.
func (p *page) ours(data, protocol string) *result { return p.find(data, protocol, isOurs) }

func (p *page) peers(data, protocol string) []*result {
	return slices.DeleteFunc(slices.Clone(p.results(data, protocol)), func(r *result) bool { return r.method == flankMethod })
}

func newPage(cells []cell) *page {
	return &page{cells: cells, known: make(map[[2]string][]*result)}
}

//go:embed page.md.tmpl
var pageText string

func (p *page) markdown() string { return document.Fill(pageText, p, nil) }

// taken returns what a part has written to the page.
func (p *page) taken() string {
	defer p.Reset()
	return p.String()
}

func (p *page) row(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

// Goals writes what is to be reached, and whether it is.
func (p *page) Goals() string {
	line := func(goal string, held, known bool, measured string) {
		if known {
			p.row("| %s | %s | %s |", goal, measured, document.Held(held))
		} else {
			p.row("| %s | not measured yet |  |", goal)
		}
	}
	least := func(what, data, protocol string, goal float64) {
		r := p.ours(data, protocol)
		if what = fmt.Sprintf("%s: at least %.3f", what, goal); r == nil {
			line(what, false, false, "")
		} else {
			line(what, r.GMean >= goal, true, fmt.Sprintf("%.3f%s", r.GMean, bounds(r.own)))
		}
	}
	least("turning, six of nine tools", "turning", sixOfNine, 0.975)
	const ahead = "there, ahead of every peer, interval of the lead above 0"
	if peers := p.peers("turning", sixOfNine); p.ours("turning", sixOfNine) == nil || len(peers) == 0 {
		line(ahead, false, false, "")
	} else {
		best := peers[0]
		line(ahead, !slices.ContainsFunc(peers, func(r *result) bool { return !(r.lead.Low > 0) }), true,
			fmt.Sprintf("%s over the best, %s, %s (%s)", bootstrap.Signed(best.ahead), best.method, best.variant, best.lead.Signed()))
	}
	for n, word := range []string{"one labelled worn tool", "two", "three"} {
		goal := []float64{0.955, 0.965, 0.97}[n]
		protocol := fmt.Sprintf("%s%d", few, n+1)
		least("turning, "+word+", the tools that are judged recorded without labels", "turning", protocol+atHand, goal)
		least("turning, "+word+", the tools that are judged never seen", "turning", protocol, goal)
	}
	least("PHM 2010, one cutter left out", "phm2010", leaveOneOut, 0.95)
	least("simulated drill, by tool", "drill", fiveFold, 0.985)
	least("simulated drill, one labelled tool", "drill", few+"1", 0.95)
	least("simulated drill, three", "drill", few+"3", 0.975)
	p.leaveOneOutGoals(line)
	return p.taken()
}

// leaveOneOutGoals writes the goals for unknown windows, wear and alarms of the turning tools,
// of which each is left out in turn.
func (p *page) leaveOneOutGoals(line func(goal string, held, known bool, measured string)) {
	const (
		sets  = "turning, one tool left out: coverage of conformal sets 0.93 to 0.97 for either class"
		wear  = "there, wear: off by at most 27 µm, 75 to 90 % of windows inside the 80 % interval"
		first = "there, first alarm of every worn tool at 270 to 330 µm, none missed and none on other tools"
	)
	ours := p.ours("turning", leaveOneOut)
	if ours == nil {
		for _, goal := range []string{sets, wear, first} {
			line(goal, false, false, "")
		}
		return
	}
	c := coverageOf(ours.flank)
	in := func(v, low, high float64) bool { return v >= low && v <= high }
	line(sets, in(c.healthy(), 0.93, 0.97) && in(c.faulty(), 0.93, 0.97), true,
		fmt.Sprintf("healthy %s, faulty %s", three(c.healthy()), three(c.faulty())))
	line(wear, c.mae() <= 27 && in(c.inside(), 0.75, 0.90), true,
		fmt.Sprintf("%s µm, %s %%", one(c.mae()), one(100*c.inside())))
	worn, early, missed := 0, 0, 0
	low, high := math.Inf(1), math.Inf(-1)
	for _, k := range ours.flank {
		if o := k.flank; k.TP+k.FN == 0 {
			if o.AlarmUM == o.AlarmUM {
				early++
			}
		} else if worn++; o.AlarmUM != o.AlarmUM {
			missed++
		} else {
			low, high = min(low, o.AlarmUM), max(high, o.AlarmUM)
		}
	}
	line(first, missed == 0 && early == 0 && low >= 270 && high <= 330, true,
		fmt.Sprintf("%d worn tools: %s to %s µm, %d missed; %d alarms on other tools", worn, one(low), one(high), missed, early))
}

// Protocol writes the table of all methods on a data set.
func (p *page) Protocol(data, protocol, title, text string) string {
	rs := p.results(data, protocol)
	if len(rs) == 0 {
		return ""
	}
	fmt.Fprintf(p, "\n## %s\n\n%s\n\n", title, text)
	p.WriteString("| method | variant | G-mean | median | worst | 95 % of draws | recall | specificity | AUC | Flank's lead | 95 % of draws |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rs {
		name := r.method
		if name == flankMethod {
			name = "**Flank**"
		}
		median, worst := r.spread()
		p.row("| %s | %s | %.3f | %s | %s | %s | %.3f | %.3f | %s | %s | %s |", name, r.variant, r.GMean, median, worst, r.own, r.Recall, r.Specificity, three(r.auc()), bootstrap.Signed(r.ahead), r.lead.Signed())
	}
	units := "units"
	if rs[0].Units == 1 {
		units = "unit"
	}
	fmt.Fprintf(p, "\n%d %s with both classes, %d tools.\n", rs[0].Units, units, len(rs[0].tools))
	return p.taken()
}

// spread returns the median and the worst of the G-means of several units.
func (r *result) spread() (median, worst string) {
	if r.Units < 2 {
		return "–", "–"
	}
	return three(r.Median), three(r.Least)
}

// Uniwear says what cannot be learnt from it.
func (p *page) Uniwear() string {
	if n := len(p.results("uniwear", leaveOneOut)); n > 0 {
		best, name := p.bestAUC("W")
		within := best.aucBounds()
		verdict := "nothing"
		if within.Low > 0.5 {
			verdict = "little"
		}
		fmt.Fprintf(p, "- **Uniwear: %s** of how titanium is milled. Of %d methods and variants the best, %s, tells worn from less worn windows of one of the experiments\n"+
			"  W1 to W7 with an AUC of %s%s, averaged over them; a coin has 0.5.", verdict, n, name, three(best.auc()), bounds(within))
		if pair, name := p.bestAUC("c"); len(pair.aucs) > 0 {
			fmt.Fprintf(p, " The other two experiments, c1 and c4, are of one\n  process and do teach each other's wear: AUC %.3f by %s.", pair.auc(), name)
		}
		p.WriteString(" The G-mean over all says little, since some\n  experiments are worn nearly throughout.\n")
	}
	return p.taken()
}

// bestAUC returns the AUCs of the method that is best on Uniwear's experiments of that
// prefix, one for each that has one, and the method's name.
func (p *page) bestAUC(prefix string) (best *tally, name string) {
	best = &tally{}
	for _, r := range p.results("uniwear", leaveOneOut) {
		t := &tally{}
		for _, c := range p.cells {
			if c.Data == "uniwear" && c.Method == r.method && c.Variant == r.variant && strings.HasPrefix(c.Tool, prefix) && c.AUC == c.AUC {
				t.aucs = append(t.aucs, c.AUC)
			}
		}
		if len(t.aucs) > 0 && !(t.auc() <= best.auc()) {
			best, name = t, r.method+", "+r.variant
		}
	}
	return best, name
}

// protocols are those that Flank's own tables look at.
var protocols = []struct{ data, protocol, title string }{
	{"turning", sixOfNine, "turning, six of nine"},
	{"turning", leaveOneOut, "turning, one left out"},
	{"turning", few + "1", "turning, one labelled"},
	{"turning", few + "2", "turning, two labelled"},
	{"turning", few + "3", "turning, three labelled"},
	{"phm2010", leaveOneOut, "PHM 2010"},
	{"drill", fiveFold, "drill, by tool"},
	{"drill", few + "1", "drill, one labelled"},
	{"drill", few + "3", "drill, three labelled"},
	{"uniwear", leaveOneOut, "Uniwear"},
}

// looked returns Flank's result by each of these protocols that it was judged by, with the title.
func (p *page) looked() iter.Seq2[string, *result] {
	return func(yield func(string, *result) bool) {
		for _, l := range protocols {
			if r := p.ours(l.data, l.protocol); r != nil && !yield(l.title, r) {
				return
			}
		}
	}
}

func (p *page) Unknown() string {
	for title, r := range p.looked() {
		var all, unknown counts
		for _, c := range r.flank {
			all.add(c.counts, 1)
			unknown.add(c.flank.Unknown, 1)
		}
		p.row("| %s | %.3f | %.3f | %s %% | %s %% |", title, r.GMean, r.tally.figures(nil, true).GMean,
			one(100*(unknown.TN+unknown.FP)/(all.TN+all.FP)), one(100*(unknown.TP+unknown.FN)/(all.TP+all.FN)))
	}
	return p.taken()
}

// coverage sums what Flank promises of windows.
type coverage struct {
	counts                     // of tools whose model has conformal sets
	setHealthy, setFaulty      float64
	windows, known, off, inner float64 // of the wear
}

func coverageOf(cells []cell) (c coverage) {
	for _, k := range cells {
		o := k.flank
		if o.SetHealthy == o.SetHealthy {
			c.counts.add(k.counts, 1)
			c.setHealthy += o.SetHealthy
			c.setFaulty += o.SetFaulty
		}
		c.windows += o.Wear
		c.known += o.Known
		c.off += o.Error
		c.inner += o.Inside
	}
	return c
}

func (c *coverage) healthy() float64 { return c.setHealthy / (c.TN + c.FP) }
func (c *coverage) faulty() float64  { return c.setFaulty / (c.TP + c.FN) }
func (c *coverage) mae() float64     { return c.off / c.known }
func (c *coverage) inside() float64  { return c.inner / c.known }

func (p *page) Coverage() string {
	for title, r := range p.looked() {
		all := coverageOf(r.flank)
		healthy, faulty := math.NaN(), math.NaN() // of the worst tool
		for _, tool := range r.tools {
			c := coverageOf(slices.DeleteFunc(slices.Clone(r.flank), func(c cell) bool { return c.Tool != tool }))
			if v := c.healthy(); v == v && !(v >= healthy) {
				healthy = v
			}
			if v := c.faulty(); v == v && !(v >= faulty) {
				faulty = v
			}
		}
		p.row("| %s | %s | %s | %s | %s |", title, three(all.healthy()), three(healthy), three(all.faulty()), three(faulty))
	}
	return p.taken()
}

func (p *page) Wear() string {
	for title, r := range p.looked() {
		c := coverageOf(r.flank)
		p.row("| %s | %.0f | %.0f | %s | %s |", title, c.windows, c.known, one(c.mae()), three(c.inside()))
	}
	return p.taken()
}

func (p *page) Alarms() string {
	r := p.ours("turning", leaveOneOut)
	if r == nil {
		return ""
	}
	p.WriteString("\n## First alarms\n\nFlank, default settings and default alarm, turning with one tool left out: the wear that was measured when the alarm was first raised.\n\n" +
		"| tool | worn to, µm | windows | faulty | recall | specificity | first alarm at, µm |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range r.flank {
		at := one(c.flank.AlarmUM)
		if c.flank.AlarmUM != c.flank.AlarmUM {
			at = "none"
		}
		p.row("| %s | %.0f | %.0f | %.0f | %s | %s | %s |", c.Tool, c.flank.Worst, c.TP+c.FN+c.TN+c.FP, c.TP+c.FN, three(c.recall()), three(c.specificity()), at)
	}
	return p.taken()
}

// bounds returns an interval in brackets, nothing if there is none.
func bounds(i bootstrap.Interval) string {
	if i.Low != i.Low {
		return ""
	}
	return fmt.Sprintf(" (%s to %s)", three(i.Low), three(i.High))
}

func three(v float64) string { return document.Figure("%.3f", v) }
func one(v float64) string   { return document.Figure("%.1f", v) }

//go:embed readme.md.tmpl
var readmeText string

// readme returns the generated part of README.md: the table, and when a network is worth it.
func (p *page) readme() string { return document.Fill(readmeText, p, nil) }

// Row is a row of the table.
func (p *page) Row(data, protocol, title string) string {
	plain := p.best(data, protocol, func(variant string) bool { return variant == "plain" })
	aided := p.best(data, protocol, func(variant string) bool { return strings.HasPrefix(variant, "aided") })
	return fmt.Sprintf("| %s | **%s** | %s | %s | %s | %s |", title, p.ours(data, protocol).short(),
		p.simple(data, protocol, study.OneColumn).short(), p.simple(data, protocol, study.LogisticRegression).short(), aided.named(), plain.named())
}

// Lead is Flank's lead over a simple method.
func (p *page) Lead(data, protocol string, m study.Baseline) string {
	r := p.simple(data, protocol, m)
	if r == nil {
		return "–"
	}
	return bootstrap.Signed(r.ahead) + " (" + r.lead.Signed() + ")"
}

func (p *page) simple(data, protocol string, m study.Baseline) *result {
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
