package card

import (
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// Baseline says how a simpler method decides the windows of the tools held out: with the
// folds, features, weights and rule for costs that the model has. Scores are of healthy
// against all other classes.
type Baseline struct {
	Method   string                   `json:"method"` // such as "logistic regression"
	Pooled   score.Summary            `json:"pooled"` // of all windows of tools held out
	Interval *ToolInterval            `json:"pooled_interval,omitempty"`
	Groups   map[string]score.Summary `json:"groups"` // of each tool held out

	// Ahead is the model's G-mean less the G-mean of the method. Its interval is of 95 %
	// over tools, which are drawn for both together; it is undefined of fewer than two tools
	// with windows of either class.
	Ahead         score.Figure    `json:"ahead"`
	AheadInterval [2]score.Figure `json:"ahead_interval"`
}

// NewBaseline returns the scores of a method on the tools that are held out in the
// report, whose scores are set.
func (r *Report) NewBaseline(method string, v *classify.Validation) Baseline {
	b := Baseline{Method: method, Pooled: v.Pooled, Groups: make(map[string]score.Summary, len(v.Groups))}
	for _, g := range v.Groups {
		b.Groups[g.Group] = g.Summary
	}
	ours, theirs := twoClasses(confusions(r.Tools, r.Groups)), confusions(r.Tools, b.Groups)
	b.Interval = IntervalOf(theirs)
	b.Ahead = together(ours, 2).Summary().GMean - together(theirs, 2).Summary().GMean
	b.AheadInterval = undefinedInterval()
	if i := b.Interval; i != nil && i.GMean[0] == i.GMean[0] {
		b.AheadInterval = aheadOf(ours, theirs)
	}
	return b
}

// aheadOf returns the interval of the difference in G-mean between two methods, given the
// decisions of each on the same tools.
func aheadOf(ours, theirs []score.Confusion) [2]score.Figure {
	a, b := make([]score.Confusion, len(ours)), make([]score.Confusion, len(ours))
	return score.Bootstrap(len(ours), 1, func(drawn []int, out []float64) {
		for i, t := range drawn {
			a[i], b[i] = ours[t], theirs[t]
		}
		out[0] = float64(together(a, 2).Summary().GMean - together(b, 2).Summary().GMean)
	})[0]
}

// Words returns the scores on one line: the method's G-mean with its interval, and how far
// the model is ahead of it or behind.
func (b *Baseline) Words() string {
	text := b.Method + ": G-mean " + Figure(b.Pooled.GMean)
	if b.Interval != nil {
		text = b.Method + ": G-mean " + Within(b.Pooled.GMean, b.Interval.GMean)
	}
	if b.Ahead != b.Ahead {
		return text
	}
	from, to := b.AheadInterval[0], b.AheadInterval[1]
	ahead, word := b.Ahead, "ahead"
	if ahead < 0 {
		ahead, from, to, word = -ahead, -to, -from, "behind"
	}
	text += fmt.Sprintf("; the model is %.3f %s", float64(ahead), word)
	if from != from {
		return text
	}
	return text + fmt.Sprintf(" [%.3f, %.3f]", float64(from), float64(to))
}

// SettingsAlone is what columns that are constant in each tool, such as speed and feed, reach without any sensor.
type SettingsAlone struct {
	Columns []string `json:"columns"`
	Baseline
}

// Words returns both scores on one line.
func (s *SettingsAlone) Words() string {
	if s == nil {
		return ""
	}
	of := undefinedInterval()
	if s.Interval != nil {
		of = s.Interval.GMean
	}
	return fmt.Sprintf("settings alone (%s): G-mean %s; with sensors: %s, more by %s", Some(s.Columns), Within(s.Pooled.GMean, of), Figure(s.Pooled.GMean+s.Ahead), Within(s.Ahead, s.AheadInterval))
}

// Warning says that sensors add nothing that shows, if so.
func (s *SettingsAlone) Warning() string {
	if s.AheadInterval[0] > 0 {
		return ""
	}
	return fmt.Sprintf("sensors add nothing that shows to the settings of the tools: %s: record worn and new tools at the same settings", s.Words())
}

// BaselineWords returns how simpler methods do on the same tools held out, a line for each, or why
// they were not compared. It is empty if no tools were held out.
func (r *Report) BaselineWords() string {
	switch {
	case r.NotCompared != "":
		return "simpler methods were not compared: " + r.NotCompared
	case len(r.Baselines) == 0:
		return ""
	}
	lines := []string{"simpler methods on the same tools held out, same features and rule for costs:"}
	for i := range r.Baselines {
		lines = append(lines, "  "+r.Baselines[i].Words())
	}
	return strings.Join(lines, "\n")
}
