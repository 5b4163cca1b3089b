package card

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/trend"
)

// Trend says how the model estimates wear, and how well.
type Trend struct {
	OfTools int          `json:"tools"`
	Windows int          `json:"windows"` // with measured wear; those that make references too
	LimitUM float64      `json:"limit_um"`
	Choice  trend.Choice `json:"choice"`
	Score   *trend.Score `json:"score,omitempty"` // of tools held out; missing if none were

	Measured []float64 `json:"-"` // wear of each window
	Tool     []string  `json:"-"` // of each window
}

// words says on one line how well wear is estimated; nothing if it is not.
func (t *Trend) Words() string {
	if t == nil {
		return ""
	}
	s := t.Score
	if s == nil {
		return fmt.Sprintf("flank wear: estimated, learnt from %d windows of %d tools; not scored", t.Windows, t.OfTools)
	}
	return fmt.Sprintf("flank wear of tools held out: off by %.1f µm on average, %.0f %% intervals hold %.1f %%, %.1f %% of %d windows unknown",
		s.MAEUM, 100*trend.Coverage, 100*s.Coverage, 100*(1-float64(s.Known)/float64(s.Rows)), s.Rows)
}

// writeTo writes the part of the model card.
func (t *Trend) writeTo(p *page) {
	if t == nil {
		return
	}
	p.section("wear", "Wear trend")
	end := ""
	if t.LimitUM > 0 {
		end = fmt.Sprintf(" The life of a tool ends at %g µm.", t.LimitUM)
	}
	p.text("Flank wear is estimated next to the verdict, by %s, learnt from %d windows of %d tools. The running maximum of a median of %d windows is published.%s",
		mix(t.Choice.Parts), t.Windows, t.OfTools, t.Choice.Median, end)
	p.text("%s", t.chosen())
	s := t.Score
	if s == nil {
		p.text("It was not scored: no tool was held out of all of this.")
		return
	}
	life := ""
	if s.LifeKnown > 0 {
		life = fmt.Sprintf(" What is left of a life was given in %d of the %d windows before the limit was reached, off by %.1f on average, inside its interval %.1f %%.",
			s.LifeKnown, s.Life, s.LifeMAE, 100*s.LifeCoverage)
	}
	p.text("Of tools held out of all of this, over the %d of %d windows with an estimate: mean absolute error %.1f µm (%.1f µm had none been unknown once the tool had its reference), wear inside its %.0f %% interval %.1f %%, mean width of the interval %.0f µm.%s",
		s.Known, s.Rows, s.MAEUM, s.AllMAEUM, 100*trend.Coverage, 100*s.Coverage, s.WidthUM, life)
	p.figures("wear")
	table := p.table("tool", "windows", "with an estimate", "worn to, µm", "error, µm", "interval holds")
	for _, i := range sortedByName(len(s.Tools), func(i int) string { return s.Tools[i].Tool }) {
		k := s.Tools[i]
		table.row(k.Tool, fmt.Sprint(k.Rows), fmt.Sprint(k.Known), fmt.Sprintf("%.0f", k.MostUM), fmt.Sprintf("%.1f", k.MAEUM), fmt.Sprintf("%.1f %%", 100*k.Coverage))
	}
}

// mix says in words what an estimate is the mean of.
func mix(parts []trend.Part) string {
	names := map[trend.Part]string{
		trend.Ridge:    "ridge regression on features as they are",
		trend.Weighted: "ridge regression on features weighted by stability",
		trend.Trees:    "extra trees on the features of the greatest stability weight",
	}
	var words []string
	for _, p := range parts {
		words = append(words, names[p])
	}
	if len(words) == 1 {
		return words[0]
	}
	return "the mean of " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// chosen says how the parts, penalties and the median were chosen, and on how little.
func (t *Trend) chosen() string {
	c := t.Choice
	var b strings.Builder
	switch {
	case c.Fixed:
		b.WriteString("Two tools are too few to choose anything on: the parts, penalties and the median are those that Flank takes by default.")
	case len(c.Tried) > 1:
		b.WriteString("Chosen on tools held out, by the error of the root of the wear in √µm:")
		for i, tried := range c.Tried {
			var names []string
			for _, p := range tried.Parts {
				names = append(names, strings.ReplaceAll(string(p), "_", " "))
			}
			if i > 0 {
				b.WriteString(";")
			}
			fmt.Fprintf(&b, " %s %.2f", strings.Join(names, " + "), tried.RMS)
		}
		b.WriteString(". The mean of all three is taken unless the error of another is less by more than a tenth.")
	default:
		b.WriteString("The penalty and the median were chosen on tools held out.")
	}
	if c.Steady > 0 {
		fmt.Fprintf(&b, " Features with a stability weight: %d.", c.Steady)
		if t.OfTools < score.LeastTools {
			b.WriteString(" Their weights come from two tools only.")
		}
	} else {
		b.WriteString(" No feature follows the life of every tool, so no other regression is there to take.")
	}
	if slices.Contains(c.Parts, trend.Ridge) {
		fmt.Fprintf(&b, " Penalty of the ridge regression: %g.", c.Penalty)
	}
	if c.Weighted > 0 {
		fmt.Fprintf(&b, " Penalty of the weighted one: %g.", c.Weighted)
	}
	if t.OfTools <= 4 {
		fmt.Fprintf(&b, " The interval is as wide as the largest error of any window of a tool held out: %d tools are too few for a share of them.", t.OfTools)
	}
	return b.String()
}

// drawing shows estimates of tools held out over what was measured, a line for each
// tool.
func (t *Trend) drawing() report.Plot {
	at := make(map[string]int)
	var lines []report.Series
	most := t.LimitUM
	for i, e := range t.Score.Estimates {
		if !e.Known() {
			continue
		}
		k, known := at[t.Tool[i]]
		if !known {
			k = len(lines)
			at[t.Tool[i]] = k
			lines = append(lines, report.Series{Color: report.Blue, Width: 1.2})
		}
		most = max(most, t.Measured[i], e.UM)
		l := &lines[k]
		if n := len(l.X); n > 1 && l.Y[n-1] == e.UM && l.Y[n-2] == e.UM { // a step needs its ends only
			l.X[n-1] = t.Measured[i]
			continue
		}
		l.X, l.Y = append(l.X, t.Measured[i]), append(l.Y, e.UM)
	}
	diagonal := report.Series{Name: "as measured", X: []float64{0, most}, Y: []float64{0, most}, Color: report.Grey, Width: 1, Dashed: true}
	return report.Plot{
		Title:       fmt.Sprintf("Flank wear, off by %.1f µm on average", t.Score.MAEUM),
		Description: "Flank wear as estimated over flank wear as measured, a line for each tool while it was held out.",
		X:           report.Axis{Label: "measured, µm", High: most}, Y: report.Axis{Label: "estimated, µm", High: most},
		Series: append([]report.Series{diagonal}, lines...),
	}
}
