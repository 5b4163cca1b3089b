package card

import (
	"fmt"
	"slices"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/pkg/classify"
)

// SetFit takes what the fit of the model's classifier says. Columns are the names of the
// features; those in exclude do not count.
func (r *Report) SetFit(fit *classify.Report, columns []string, exclude []int) {
	r.Fit = fit
	for _, j := range exclude {
		r.Excluded = append(r.Excluded, columns[j])
	}
	if fit.Weights == nil {
		return
	}
	for i := range fit.Weights.Columns {
		c := &fit.Weights.Columns[i]
		c.Name = columns[c.Column]
	}
}

// guard says on one line what bounds the network; nothing if nothing was asked for.
func (r *Report) guard() string {
	g := r.Fit.Guard
	switch {
	case g == nil:
		return ""
	case g.Off != "":
		return "no guard: " + g.Off
	}
	names := make([]string, len(g.Sensors))
	for i, s := range g.Sensors {
		names[i] = s.Name
	}
	s := fmt.Sprintf("a guard of %d experts bounds the network, of the sensors %s", len(g.Experts), Listed(names))
	var steps []string
	for _, of := range g.Sensors {
		if of.Step > 0 {
			steps = append(steps, fmt.Sprintf("%s ×%.2f", of.Name, of.Step))
		}
	}
	switch {
	case g.StepsOff != "":
		s += "; no step in the gain of one is taken out: " + g.StepsOff
	case steps != nil:
		s += "; a step in the gain of one is taken out if it is at least " + Listed(steps)
	}
	return s
}

// followers says on one line how many features count, and which most.
func (r *Report) followers() string {
	const most = 5 // that are named
	w := r.Fit.Weights
	switch {
	case w == nil:
		return ""
	case w.Off != "":
		return "weighing features by how steadily they follow the life of every tool is off: " + w.Off
	}
	names := make([]string, min(most, len(w.Columns)))
	for i := range names {
		names[i] = w.Columns[i].Name
	}
	verb, more := "follow", " count most"
	if len(w.Columns) == 1 {
		verb, more = "follows", ""
	}
	return fmt.Sprintf("%d of %d features %s the life of every tool: %s%s", len(w.Columns), r.Features, verb, Listed(names), more)
}

// followersTo writes the part of the card that says which features count.
func (r *Report) followersTo(p *page) {
	w := r.Fit.Weights
	if w == nil && len(r.Excluded) == 0 {
		return
	}
	p.section("features", "What follows wear in every tool")
	if len(r.Excluded) > 0 {
		p.text("Excluded by `exclude` in `train.yaml`, so that they do not count: %s.", Some(r.Excluded))
	}
	if g := r.guard(); g != "" {
		p.text("%s.", capital(g))
	}
	if w == nil {
		return
	}
	if w.Off != "" {
		p.text("Weighing features by how steadily they follow the life of every tool is off, so that all count alike: %s.", w.Off)
		return
	}
	p.text("%d of %d features count, the others do not. A feature counts if it rises, or falls, steadily over the life of a tool and does so the same way in every tool. "+
		"%d tools were looked at, with and without labels, of which %d were recorded until the end of their life. "+
		"Weight is max(0, |mean| − spread)²: the mean and the spread, over tools, of the rank correlation ρ with the order of windows. "+
		"The weights are inside the network's first layer, so that scoring and exports need not know of them.", len(w.Columns), r.Features, len(w.Tools), w.Ended)
	p.text("A feature that rises in every tool for another reason than wear, for example because the workpiece gets thinner, counts too. Only a person can know that: " +
		"name such features under `exclude` in `train.yaml`, as in `exclude: [\"CV3.*\"]`, and train again.")
	p.figures("stability")
	r.followersTable(p)
}

// followersTable lists the features that count, with their correlation in each tool if these
// are few.
func (r *Report) followersTable(p *page) {
	const mostColumns = 12
	w := r.Fit.Weights
	t := p.table("feature", "weight", "mean ρ", "spread")
	var order []int // of the tools, if each has a column
	if len(w.Tools) <= mostColumns {
		order = sortedByName(len(w.Tools), func(i int) string { return w.Tools[i] })
		for _, i := range order {
			t.Head = append(t.Head, "ρ of "+w.Tools[i])
		}
	} else {
		t.Head = append(t.Head, "least ρ of a tool", "greatest")
	}
	for _, c := range w.Columns {
		cells := []string{c.Name, fmt.Sprintf("%.3f", c.Weight), fmt.Sprintf("%.2f", c.Mean), fmt.Sprintf("%.2f", c.SD)}
		if order == nil {
			cells = append(cells, fmt.Sprintf("%.2f", slices.Min(c.Rho)), fmt.Sprintf("%.2f", slices.Max(c.Rho)))
		}
		for _, i := range order {
			cells = append(cells, fmt.Sprintf("%.2f", c.Rho[i]))
		}
		t.row(cells...)
	}
}

// sortedByName returns the indices of n things in the order in which people count their
// names.
func sortedByName(n int, name func(i int) string) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return CompareNames(name(a), name(b)) })
	return order
}

const mostFollowers = 25 // features that are drawn

// followersDrawing draws the features that count most; ok is false if all count alike.
func (r *Report) followersDrawing() (d drawing, ok bool) {
	w := r.Fit.Weights
	if w == nil || len(w.Columns) == 0 {
		return drawing{}, false
	}
	rows := make([]report.Follower, min(mostFollowers, len(w.Columns)))
	for i := range rows {
		c := w.Columns[i]
		rows[i] = report.Follower{Name: c.Name, Weight: c.Weight, Rho: c.Rho}
	}
	return drawing{"stability", report.Followers("What follows wear in every tool"+theFirst(len(rows), len(w.Columns), "features that count"), rows)}, true
}

// unlabelled says on one line what windows without a label were good for; nothing if there
// are none.
func (r *Report) unlabelled() string {
	u := r.Fit.Unlabelled
	if u == nil {
		return ""
	}
	what := []string{"encoder"}
	if w := r.Fit.Weights; w != nil && w.Off == "" {
		what = append(what, "weights")
	}
	if h := r.Fit.History; h == nil || len(h.Pretrain) > 0 {
		what = append(what, "pre-training")
	}
	s := fmt.Sprintf("%d windows of %s without a label fitted %s", u.Rows, count(u.Groups, "tool", "tools"), Listed(what))
	if u.Healthy > 0 {
		s += fmt.Sprintf("; %d of them, the first ones of tools without any label, counted as healthy", u.Healthy)
	}
	return s
}

// between says on one line how many rows were put where wear jumps over the limit; nothing
// if there are none.
func (r *Report) between() string {
	if r.Fit.Between == 0 {
		return ""
	}
	return fmt.Sprintf("Wear jumps over the limit from one window to the next: fine-tuning learnt from %d rows on the way between such windows too", r.Fit.Between)
}
