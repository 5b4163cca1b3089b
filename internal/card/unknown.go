package card

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// UnknownReport says how often the verdict unknown takes the place of a decision, and whether
// the classes are in their conformal sets as often as promised.
type UnknownReport struct {
	ErrorRate  float64        `json:"error_rate,omitempty"` // of conformal sets; 0: there are none
	Novelty    float64        `json:"novelty,omitempty"`    // p-value up to which a window is new; 0: none ever is
	Without    []string       `json:"without,omitempty"`    // parts that the data cannot give, and why
	Promises   []promise      `json:"promises,omitempty"`   // of conformal sets, one of each class
	New        *promise       `json:"new,omitempty"`        // of novelty: the share of windows that are new at most
	Split      string         `json:"split,omitempty"`      // what the windows below were not seen by, in words
	Classes    []unknownClass `json:"classes,omitempty"`
	Unmeasured string         `json:"not_measured,omitempty"` // why there are none, if tools were held out
	Tools      []unknownTool  `json:"tools,omitempty"`        // in the order of the recordings

	// Judged are the scores of the windows that are left, healthy against all others,
	// and Decided the same of all windows, had none been unknown.
	Judged  *score.Summary `json:"judged,omitempty"`
	Decided *score.Summary `json:"decided,omitempty"`
}

// promise is what can be promised of a new tool, on average over such tools, if it is of one
// kind with the tools of calibration: the fewer there are, the less.
type promise struct {
	Class string       `json:"class,omitempty"`
	Tools int          `json:"tools"` // of calibration
	Share score.Figure `json:"share"` // of the tool's windows

	// Most is what no conformal sets can promise more than, short of holding the class
	// always.
	Most score.Figure `json:"most,omitempty"`
}

// unknownClass is what becomes of the windows of one class.
type unknownClass struct {
	Class    string       `json:"class"`
	Windows  int          `json:"windows"`
	Coverage score.Figure `json:"coverage"` // share whose set holds the class: 1 − error rate is aimed at

	// Tools have windows of the class. CoverageByTool is the mean of the share within each
	// of them, and Interval its 95 % interval by the bootstrap of whole tools, undefined of
	// one tool.
	Tools          int             `json:"tools,omitempty"`
	CoverageByTool score.Figure    `json:"coverage_by_tool"`
	Interval       [2]score.Figure `json:"coverage_interval"`

	OutOfDistribution int `json:"out_of_distribution"` // windows that are unknown because of it
	Ambiguous         int `json:"ambiguous"`
	Implausible       int `json:"implausible"`
	New               int `json:"new"` // windows with a p-value up to Novelty, whether they are unknown or not
}

// unknownTool is what becomes of the windows of one tool.
type unknownTool struct {
	Tool           string `json:"tool"`
	Healthy        int    `json:"healthy"` // windows
	UnknownHealthy int    `json:"unknown_healthy"`
	NewHealthy     int    `json:"new_healthy"`
	Faulty         int    `json:"faulty"`
	UnknownFaulty  int    `json:"unknown_faulty"`
}

// Unknown returns how many windows of the class are unknown.
func (c unknownClass) Unknown() int { return c.OutOfDistribution + c.Ambiguous + c.Implausible }

// UnknownCounter counts windows with the verdict unknown.
type UnknownCounter struct {
	d       *UnknownReport
	covered [][]int // by tool and class: windows whose set holds the class
	windows [][]int // by tool and class
	tools   map[string]int
	judged  score.Confusion
	decided score.Confusion
}

// NewUnknownCounter returns a counter of windows of the given classes, which fills d in.
func NewUnknownCounter(d *UnknownReport, classes []string) *UnknownCounter {
	b := &UnknownCounter{d: d, tools: make(map[string]int), judged: score.NewConfusion(2), decided: score.NewConfusion(2)}
	for _, name := range classes {
		d.Classes = append(d.Classes, unknownClass{Class: name})
	}
	return b
}

// Add counts a window of a class, whose decision was doubted or not, with the parts that m has.
func (b *UnknownCounter) Add(m *model.Model, tool string, class, decision int, posterior []float64, novelty float64) model.UnknownReason {
	reason := m.UnknownReason(decision, posterior, novelty)
	c := &b.d.Classes[class]
	c.Windows++
	fresh := m.Novelty != nil && novelty <= m.Novelty.Rate
	if fresh {
		c.New++
	}
	switch reason {
	case model.OutOfDistribution:
		c.OutOfDistribution++
	case model.Ambiguous:
		c.Ambiguous++
	case model.Implausible:
		c.Implausible++
	default:
		b.judged.Add(min(class, 1), min(decision, 1))
	}
	b.decided.Add(min(class, 1), min(decision, 1))
	k, known := b.tools[tool]
	if !known {
		k = len(b.d.Tools)
		b.tools[tool] = k
		b.d.Tools = append(b.d.Tools, unknownTool{Tool: tool})
		b.covered, b.windows = append(b.covered, make([]int, len(b.d.Classes))), append(b.windows, make([]int, len(b.d.Classes)))
	}
	b.windows[k][class]++
	if m.Conformal != nil && m.Conformal.In(class, posterior) {
		b.covered[k][class]++
	}
	b.d.Tools[k].add(class == classify.Healthy, reason != "", fresh)
	return reason
}

// add counts a window.
func (t *unknownTool) add(healthy, unknown, fresh bool) {
	windows, unknowns := &t.Faulty, &t.UnknownFaulty
	if healthy {
		windows, unknowns = &t.Healthy, &t.UnknownHealthy
	}
	if *windows++; unknown {
		*unknowns++
	}
	if healthy && fresh {
		t.NewHealthy++
	}
}

// Finish sets the figures of all windows that were counted.
func (b *UnknownCounter) Finish() {
	for k := range b.d.Classes {
		c := &b.d.Classes[k]
		covered := 0
		var shares []float64 // by tool
		for t, n := range b.windows {
			if n[k] > 0 {
				covered += b.covered[t][k]
				shares = append(shares, float64(b.covered[t][k])/float64(n[k]))
			}
		}
		c.Coverage = score.Figure(float64(covered) / float64(c.Windows))
		c.Tools, c.CoverageByTool, c.Interval = len(shares), score.Figure(mean(shares)), overTools(shares)
	}
	judged, decided := b.judged.Summary(), b.decided.Summary()
	b.d.Judged, b.d.Decided = &judged, &decided
}

// SetPromises notes what is certain of a new tool by what m has.
func (d *UnknownReport) SetPromises(m *model.Model, classes []string) {
	if c := m.Conformal; c != nil {
		d.ErrorRate = c.Rate
		for k, name := range classes {
			tools := c.Tools(k)
			d.Promises = append(d.Promises, promise{name, tools, score.Figure(c.Promise(k)), score.Figure(float64(tools) / float64(1+tools))})
		}
	}
	if n := m.Novelty; n != nil {
		d.Novelty = n.Rate
		d.New = &promise{Tools: n.Tools(), Share: score.Figure(n.Promise())}
	}
}

// TooFew says which classes have too few tools for any sets to promise what was asked for.
func (d *UnknownReport) TooFew() []string {
	var out []string
	for _, p := range d.Promises {
		if asked := 1 - d.ErrorRate; float64(p.Most) < asked {
			out = append(out, fmt.Sprintf("with %d tools that have %s windows no conformal sets can promise %.3g for %s: %s is the most, and these promise %s",
				p.Tools, p.Class, asked, p.Class, Figure(p.Most), Figure(p.Share)))
		}
	}
	return out
}

// Words says on one line how the third verdict does; nothing if there is none.
func (d *UnknownReport) Words() string {
	switch {
	case d == nil || d.ErrorRate == 0 && d.Novelty == 0:
		return ""
	case len(d.Classes) == 0:
		return "unknown: " + d.rates() + "; not measured, as " + cmp.Or(d.Unmeasured, "no tools were held out for it")
	}
	var parts []string
	for _, c := range d.Classes {
		s := fmt.Sprintf("%s %s", c.Class, share(c.Unknown(), c.Windows))
		if d.ErrorRate > 0 {
			s += fmt.Sprintf(" (coverage %s%s)", Figure(c.Coverage), c.byTool())
		}
		parts = append(parts, s)
	}
	return fmt.Sprintf("unknown: %s of windows, %s%s", strings.Join(parts, ", "), d.rates(), d.bothWays())
}

// bothWays says how good decisions are with unknown windows counted as wrong, without
// them, and had none been unknown; nothing if that was not measured.
func (d *UnknownReport) bothWays() string {
	if d.Judged == nil || d.Decided == nil {
		return ""
	}
	wrong := d.countedWrong()
	return fmt.Sprintf("; recall %s and specificity %s with unknown windows counted as wrong, %s and %s of the windows that are left, %s and %s had none been unknown",
		Figure(wrong.Recall), Figure(wrong.Specificity),
		Figure(d.Judged.Recall), Figure(d.Judged.Specificity), Figure(d.Decided.Recall), Figure(d.Decided.Specificity))
}

// countedWrong returns the scores of all windows, unknown ones counted as wrong.
func (d *UnknownReport) countedWrong() score.Summary {
	unknown := make([]int, len(d.Judged.Confusion))
	for class := range unknown {
		unknown[class] = d.Decided.Confusion.RowsOf(class) - d.Judged.Confusion.RowsOf(class)
	}
	return d.Judged.Confusion.CountingUnknown(unknown)
}

// byTool says what coverage is by tool; nothing if that was not measured.
func (c unknownClass) byTool() string {
	switch {
	case c.Tools == 0:
		return ""
	case c.Tools == 1:
		return ", of one tool"
	}
	return fmt.Sprintf(", by tool %s [%s, %s]", Figure(c.CoverageByTool), Figure(c.Interval[0]), Figure(c.Interval[1]))
}

func (d *UnknownReport) rates() string {
	var parts []string
	if d.ErrorRate > 0 {
		parts = append(parts, fmt.Sprintf("at an error rate of %g for each class", d.ErrorRate))
	}
	if d.Novelty > 0 {
		parts = append(parts, fmt.Sprintf("out of distribution up to a p-value of %g", d.Novelty))
	}
	return strings.Join(parts, ", ")
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// table writes the figures.
func (d *UnknownReport) table(p *page) {
	t := p.table("class", "windows", "coverage", "mean of tools", "95 % interval", "unknown", "out of distribution", "ambiguous", "implausible", "new, unknown or not")
	for _, c := range d.Classes {
		coverage, mean, interval := "–", "–", "–"
		if d.ErrorRate > 0 {
			coverage, mean = Figure(c.Coverage), fmt.Sprintf("%s (%d)", Figure(c.CoverageByTool), c.Tools)
			if c.Tools > 1 {
				interval = Figure(c.Interval[0]) + " to " + Figure(c.Interval[1])
			}
		}
		t.row(c.Class, fmt.Sprint(c.Windows), coverage, mean, interval, share(c.Unknown(), c.Windows),
			fmt.Sprint(c.OutOfDistribution), fmt.Sprint(c.Ambiguous), fmt.Sprint(c.Implausible), share(c.New, c.Windows))
	}
}

// promised writes what is certain of a new tool.
func (d *UnknownReport) promised(p *page) {
	if len(d.Promises) > 0 {
		p.text("Share of a new tool's windows whose conformal set holds their class:")
		t := p.table("class", "tools", "asked for", "promised", "no sets can promise more than")
		for _, v := range d.Promises {
			t.row(v.Class, fmt.Sprint(v.Tools), fmt.Sprintf("%.3g", 1-d.ErrorRate), Figure(v.Share), Figure(v.Most))
		}
	}
	if d.New != nil {
		p.text("Of a new tool's windows at most %.3g should be out of distribution; with %d tools at most %s can be promised.", d.Novelty, d.New.Tools, Figure(d.New.Share))
	}
	for _, why := range d.TooFew() {
		p.note(why)
	}
}

// writeTo writes the part of the model card.
func (d *UnknownReport) writeTo(p *page) {
	if d == nil {
		return
	}
	p.section("unknown", "Unknown")
	for _, why := range d.Without {
		p.note(why)
	}
	if d.ErrorRate == 0 && d.Novelty == 0 {
		p.text("Every window that is judged is healthy or faulty.")
		return
	}
	average := ""
	if len(d.Promises) > 0 || d.New != nil {
		average = " All tools weigh the same in that, however many windows they have. The rates hold on average over many tools;" +
			" with few tools less can be promised of a new one, which may be unlike all of them."
	}
	p.text("A window is neither healthy nor faulty where the decision is not certain %s.%s", d.rates(), average)
	d.promised(p)
	if len(d.Classes) == 0 {
		p.text("It was not measured: %s.", cmp.Or(d.Unmeasured, "too few tools could be held out"))
		return
	}
	p.text("Measured on %s:", d.Split)
	d.table(p)
	wrong := d.countedWrong()
	t := p.table("windows, healthy against all others", "recall", "specificity", "G-mean")
	for _, line := range []struct {
		of string
		s  *score.Summary
	}{{"all, unknown ones counted as wrong", &wrong}, {"without unknown ones, which flatters", d.Judged}, {"all, had none been unknown", d.Decided}} {
		t.row(line.of, Figure(line.s.Recall), Figure(line.s.Specificity), Figure(line.s.GMean))
	}
	t = p.table("tool", "healthy windows", "of them unknown", "new", "faulty windows", "of them unknown")
	for _, i := range sortedByName(len(d.Tools), func(i int) string { return d.Tools[i].Tool }) {
		l := d.Tools[i]
		t.row(l.Tool, fmt.Sprint(l.Healthy), share(l.UnknownHealthy, l.Healthy), share(l.NewHealthy, l.Healthy), fmt.Sprint(l.Faulty), share(l.UnknownFaulty, l.Faulty))
	}
}
