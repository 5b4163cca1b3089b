package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/unknown"
)

// Doubts says how often the verdict unknown takes the place of a decision, and whether
// the classes are in their conformal sets as often as promised.
type Doubts struct {
	ErrorRate float64      `json:"error_rate,omitempty"` // of conformal sets; 0: there are none
	Novelty   float64      `json:"novelty,omitempty"`    // p-value up to which a window is new; 0: none ever is
	Without   []string     `json:"without,omitempty"`    // parts that the data cannot give, and why
	Promises  []Promise    `json:"promises,omitempty"`   // of conformal sets, one of each class
	New       *Promise     `json:"new,omitempty"`        // of novelty: the share of windows that are new at most
	Split     string       `json:"split,omitempty"`      // what the windows below were not seen by, in words
	Classes   []ClassDoubt `json:"classes,omitempty"`
	Tools     []ToolDoubt  `json:"tools,omitempty"` // in the order of the recordings

	// Judged are the scores of the windows that are left, healthy against all others,
	// and Decided the same of all windows, had none been unknown.
	Judged  *score.Summary `json:"judged,omitempty"`
	Decided *score.Summary `json:"decided,omitempty"`
}

// Promise is what can be promised of a new tool, on average over such tools, if it is of one
// kind with the tools of calibration: the fewer there are, the less.
type Promise struct {
	Class string       `json:"class,omitempty"`
	Tools int          `json:"tools"` // of calibration
	Share score.Figure `json:"share"` // of the tool's windows

	// Most is what no conformal sets can promise more than, short of holding the class
	// always.
	Most score.Figure `json:"most,omitempty"`
}

// ClassDoubt is what becomes of the windows of one class.
type ClassDoubt struct {
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
	New               int `json:"new"` // windows with a p-value up to Novelty, whatever became of them
}

// ToolDoubt is what becomes of the windows of one tool.
type ToolDoubt struct {
	Tool           string `json:"tool"`
	Healthy        int    `json:"healthy"` // windows
	UnknownHealthy int    `json:"unknown_healthy"`
	NewHealthy     int    `json:"new_healthy"`
	Faulty         int    `json:"faulty"`
	UnknownFaulty  int    `json:"unknown_faulty"`
}

// Unknown returns how many windows of the class are unknown.
func (c ClassDoubt) Unknown() int { return c.OutOfDistribution + c.Ambiguous + c.Implausible }

// doubter adds windows up.
type doubter struct {
	d       *Doubts
	covered [][]int // by tool and class: windows whose set holds the class
	windows [][]int // by tool and class
	tools   map[string]int
	judged  score.Confusion
	decided score.Confusion
}

func newDoubter(d *Doubts, classes []string) *doubter {
	b := &doubter{d: d, tools: make(map[string]int), judged: score.NewConfusion(2), decided: score.NewConfusion(2)}
	for _, name := range classes {
		d.Classes = append(d.Classes, ClassDoubt{Class: name})
	}
	return b
}

// add counts a window of a class, whose decision was doubted or not, with the parts that m has.
func (b *doubter) add(m *model.Model, tool string, class, decision int, posterior []float64, novelty float64) model.Doubt {
	doubt := m.Doubt(decision, posterior, novelty)
	c := &b.d.Classes[class]
	c.Windows++
	fresh := m.Novelty != nil && novelty <= m.Novelty.Rate
	if fresh {
		c.New++
	}
	switch doubt {
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
		b.d.Tools = append(b.d.Tools, ToolDoubt{Tool: tool})
		b.covered, b.windows = append(b.covered, make([]int, len(b.d.Classes))), append(b.windows, make([]int, len(b.d.Classes)))
	}
	b.windows[k][class]++
	if m.Conformal != nil && m.Conformal.In(class, posterior) {
		b.covered[k][class]++
	}
	switch t := &b.d.Tools[k]; {
	case class == classify.Healthy:
		t.Healthy++
		if doubt != "" {
			t.UnknownHealthy++
		}
		if fresh {
			t.NewHealthy++
		}
	default:
		t.Faulty++
		if doubt != "" {
			t.UnknownFaulty++
		}
	}
	return doubt
}

func (b *doubter) finish() {
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

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// promise notes what is certain of a new tool by what m has.
func (d *Doubts) promise(m *model.Model, classes []string) {
	if c := m.Conformal; c != nil {
		d.ErrorRate = c.Rate
		for k, name := range classes {
			if tools := c.Tools(k); tools > 0 { // else the model is older and says nothing of tools
				d.Promises = append(d.Promises, Promise{name, tools, score.Figure(c.Promise(k)), score.Figure(float64(tools) / float64(1+tools))})
			}
		}
	}
	if n := m.Novelty; n != nil {
		d.Novelty = n.Rate
		if n.Tools() > 0 {
			d.New = &Promise{Tools: n.Tools(), Share: score.Figure(n.Promise())}
		}
	}
}

// tooFew says which classes have too few tools for any sets to promise what was asked for.
func (d *Doubts) tooFew() []string {
	var out []string
	for _, p := range d.Promises {
		if asked := 1 - d.ErrorRate; float64(p.Most) < asked {
			out = append(out, fmt.Sprintf("with %d tools that have %s windows no conformal sets can promise %.3g for %s: %s is the most, and these promise %s",
				p.Tools, p.Class, asked, p.Class, figure(p.Most), figure(p.Share)))
		}
	}
	return out
}

// How the costs were chosen, as Fit says it.
const (
	posteriorsByTool = "out-of-fold by group"
	posteriorsByRow  = "out-of-fold by row"
)

// lone names the tool that alone has windows of a class, and the class.
func (t rowTable) lone() string {
	for k, name := range slices.Backward(t.classes) {
		if _, tools := t.homes(k); len(tools) == 1 {
			return fmt.Sprintf("tool %s alone has %s windows", tools[0], name)
		}
	}
	return "tools are not known"
}

// doubts gives the model its third verdict, calibrated on the posteriors that the costs
// were chosen on, and measures it on tools held out of all of that.
func (j *Job) doubts(ctx context.Context, rows rowTable, posterior []float64, m *model.Model, r *Report) error {
	u := j.Config.Unknown
	d := &Doubts{}
	r.Unknown = d
	v, folds := r.validated, r.folds
	r.validated, r.folds = nil, nil
	var err error
	switch {
	case u.ErrorRate == 0:
	case m.ByWear != nil:
		d.Without = append(d.Without, "no conformal sets: they are of a classifier's posteriors, and the verdict comes from the estimated wear")
	case r.Fit.Costs.Posteriors == posteriorsByRow:
		d.Without = append(d.Without, "no conformal sets: costs were chosen on folds by row, because "+rows.lone()+"; windows of one tool are near copies, so sets calibrated on them hold less of another tool than they promise; label a second such tool")
	case r.Fit.Costs.Posteriors != posteriorsByTool:
		d.Without = append(d.Without, "no conformal sets: posteriors of windows held out are needed, and these are "+r.Fit.Costs.Posteriors)
	default:
		m.Conformal, err = unknown.NewConformal(posterior, rows.Class, rows.group, len(rows.classes), u.ErrorRate)
		if err != nil {
			return err
		}
	}
	var held unknown.HeldNovelty
	if u.Novelty > 0 {
		m.Novelty, held, err = unknown.FitNovelty(ctx, rows.x(), rows.group, counted(r.Fit.Weights, len(rows.Columns), rows.exclude), u.Novelty, j.Config.Seed, j.Workers)
		if errors.Is(err, classify.ErrTooFew) {
			d.Without = append(d.Without, fmt.Sprintf("nothing is out of distribution: %v", err))
		} else if err != nil {
			return err
		}
	}
	d.promise(m, rows.classes)
	if m.Novelty != nil {
		s := m.Novelty.NewScorer()
		for _, g := range m.Golden {
			m.Distances = append(m.Distances, s.Distance(g.Features))
		}
	}
	for _, why := range slices.Concat(d.Without, d.tooFew()) {
		j.Log.Info().Msg("unknown: " + why)
	}
	if v == nil || m.Novelty == nil && m.Conformal == nil {
		return nil
	}
	return j.measureDoubts(rows, m, d, v, folds, held)
}

// measureDoubts judges the windows of tools held out. Conformal sets of a fold are
// calibrated on the posteriors out of fold of the tools that are left, so that nothing has
// seen the tool, which is one tool fewer than the model has; p-values of novelty are by the
// distances of other tools.
func (j *Job) measureDoubts(rows rowTable, m *model.Model, d *Doubts, v *classify.Validation, folds []classify.Fold, held unknown.HeldNovelty) error {
	k := len(rows.classes)
	d.Split = fmt.Sprintf("tools held out, %d folds", len(folds))
	parts, err := ofFolds(rows, m, v, folds)
	if errors.Is(err, classify.ErrTooFew) {
		d.Split = "" // with one of the tools left out, a single one of a class is left
		return nil
	} else if err != nil {
		return err
	}
	b := newDoubter(d, rows.classes)
	judge := func(i int, novelty float64) {
		if f := v.Fold[i]; f >= 0 {
			b.add(parts[f], rows.group[i], rows.Class[i], v.Decision[i], v.Posterior[i*k:(i+1)*k], novelty)
		}
	}
	if m.Novelty == nil {
		for i := range rows.Class {
			judge(i, 1)
		}
	}
	for n, i := range held.Rows {
		judge(i, held.P[n])
	}
	b.finish()
	return nil
}

// ofFolds returns what doubts the decisions of each fold: the sets that m has, if it has
// any, calibrated without the fold's tools. The error wraps classify.ErrTooFew if the tools
// of a fold that are left do not make conformal sets.
func ofFolds(rows rowTable, m *model.Model, v *classify.Validation, folds []classify.Fold) ([]*model.Model, error) {
	parts := make([]*model.Model, len(folds))
	for f, fold := range folds {
		parts[f] = &model.Model{Novelty: m.Novelty}
		if m.Conformal == nil {
			continue
		}
		if how := v.Reports[f].Costs.Posteriors; how != posteriorsByTool {
			return nil, fmt.Errorf("posteriors of fold %d are %s: %w", f, how, classify.ErrTooFew)
		}
		y, group := make([]int, len(fold.Train)), make([]string, len(fold.Train))
		for n, i := range fold.Train {
			y[n], group[n] = rows.Class[i], rows.group[i]
		}
		p := v.Reports[f].Posterior
		if p == nil {
			return nil, fmt.Errorf("fold %d is decided by wear, which makes no sets: %w", f, classify.ErrTooFew)
		}
		v.Reports[f].Posterior = nil
		var err error
		if parts[f].Conformal, err = unknown.NewConformal(p, y, group, len(rows.classes), m.Conformal.Rate); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// unknown returns which decisions of a validation do not stand at the rates of m, each
// by what has not seen its tool. The features that count for novelty are those that count
// for m's. Where that cannot be, with too few tools of a class
// once one is left out, they all stand.
func (j *Job) unknown(ctx context.Context, rows rowTable, m *model.Model, v *classify.Validation, folds []classify.Fold) ([]bool, error) {
	k := len(rows.classes)
	out, novelty := make([]bool, len(v.Fold)), make([]float64, len(v.Fold))
	for i := range novelty {
		novelty[i] = 1
	}
	sets := &model.Model{Conformal: m.Conformal}
	if m.Novelty != nil {
		fitted, held, err := unknown.FitNovelty(ctx, rows.x(), rows.group, m.Novelty.Counts(), m.Novelty.Rate, j.Config.Seed, j.Workers)
		if err != nil && !errors.Is(err, classify.ErrTooFew) {
			return nil, err
		}
		sets.Novelty = fitted
		for n, i := range held.Rows {
			novelty[i] = held.P[n]
		}
	}
	parts, err := ofFolds(rows, sets, v, folds)
	if errors.Is(err, classify.ErrTooFew) {
		return out, nil
	} else if err != nil {
		return nil, err
	}
	for i, f := range v.Fold {
		out[i] = f >= 0 && parts[f].Doubt(v.Decision[i], v.Posterior[i*k:(i+1)*k], novelty[i]) != ""
	}
	return out, nil
}

// words says on one line how the third verdict does; nothing if there is none.
func (d *Doubts) words() string {
	switch {
	case d == nil || d.ErrorRate == 0 && d.Novelty == 0:
		return ""
	case len(d.Classes) == 0:
		return "unknown: " + d.rates() + "; not measured, no tool was held out"
	}
	var parts []string
	for _, c := range d.Classes {
		s := fmt.Sprintf("%s %s", c.Class, share(c.Unknown(), c.Windows))
		if d.ErrorRate > 0 {
			s += fmt.Sprintf(" (coverage %s%s)", figure(c.Coverage), c.byTool())
		}
		parts = append(parts, s)
	}
	return fmt.Sprintf("unknown: %s of windows, %s%s", strings.Join(parts, ", "), d.rates(), d.bothWays())
}

// bothWays says how good decisions are without and with the windows that are unknown;
// nothing if that was not measured.
func (d *Doubts) bothWays() string {
	if d.Judged == nil || d.Decided == nil {
		return ""
	}
	return fmt.Sprintf("; recall %s and specificity %s of the windows that are left, %s and %s had none been unknown",
		figure(d.Judged.Recall), figure(d.Judged.Specificity), figure(d.Decided.Recall), figure(d.Decided.Specificity))
}

// byTool says what coverage is by tool; nothing if that was not measured.
func (c ClassDoubt) byTool() string {
	switch {
	case c.Tools == 0:
		return ""
	case c.Tools == 1:
		return ", of one tool"
	}
	return fmt.Sprintf(", by tool %s [%s, %s]", figure(c.CoverageByTool), figure(c.Interval[0]), figure(c.Interval[1]))
}

func (d *Doubts) rates() string {
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

// table returns the figures as a Markdown table.
func (d *Doubts) table() string {
	var b strings.Builder
	b.WriteString("| windows | | coverage | mean of tools | 95 % interval | unknown | out of distribution | ambiguous | implausible | new, decided either way |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range d.Classes {
		coverage, mean, interval := "–", "–", "–"
		if d.ErrorRate > 0 {
			coverage, mean = figure(c.Coverage), fmt.Sprintf("%s (%d)", figure(c.CoverageByTool), c.Tools)
			if c.Tools > 1 {
				interval = figure(c.Interval[0]) + " to " + figure(c.Interval[1])
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %d | %d | %d | %s |\n", strings.ReplaceAll(c.Class, "|", `\|`), c.Windows, coverage, mean, interval, share(c.Unknown(), c.Windows),
			c.OutOfDistribution, c.Ambiguous, c.Implausible, share(c.New, c.Windows))
	}
	return b.String()
}

// promised writes what is certain of a new tool, and ends the paragraph.
func (d *Doubts) promised(b *strings.Builder) {
	if len(d.Promises) > 0 || d.New != nil {
		b.WriteString(" All tools weigh the same in that, however many windows they have. The rates hold on average over many tools;" +
			" with few tools less can be promised of a new one, which may be unlike all of them.")
	}
	b.WriteString("\n")
	if len(d.Promises) > 0 {
		b.WriteString("\nShare of a new tool's windows whose conformal set holds their class:\n\n" +
			"| class | tools | asked for | promised | no sets can promise more than |\n|---|---:|---:|---:|---:|\n")
		for _, p := range d.Promises {
			fmt.Fprintf(b, "| %s | %d | %.3g | %s | %s |\n", strings.ReplaceAll(p.Class, "|", `\|`), p.Tools, 1-d.ErrorRate, figure(p.Share), figure(p.Most))
		}
	}
	if d.New != nil {
		fmt.Fprintf(b, "\nOf a new tool's windows at most %.3g should be out of distribution; with %d tools at most %s can be promised.\n", d.Novelty, d.New.Tools, figure(d.New.Share))
	}
	for _, why := range d.tooFew() {
		fmt.Fprintf(b, "\nNote: %s.\n", why)
	}
}

// markdown writes the part of the model card.
func (d *Doubts) markdown(b *strings.Builder) {
	if d == nil {
		return
	}
	b.WriteString("\n## Unknown\n")
	for _, why := range d.Without {
		fmt.Fprintf(b, "\nNote: %s.\n", why)
	}
	if d.ErrorRate == 0 && d.Novelty == 0 {
		b.WriteString("\nEvery window that is judged is healthy or faulty.\n")
		return
	}
	fmt.Fprintf(b, "\nA window is neither healthy nor faulty where the decision is not certain %s.", d.rates())
	d.promised(b)
	if len(d.Classes) == 0 {
		b.WriteString("\nIt was not measured: too few tools could be held out.\n")
		return
	}
	fmt.Fprintf(b, "\nMeasured on %s:\n\n%s", d.Split, d.table())
	fmt.Fprintf(b, "\nOf the windows that are left recall is %s and specificity %s; had none been unknown, %s and %s.\n",
		figure(d.Judged.Recall), figure(d.Judged.Specificity), figure(d.Decided.Recall), figure(d.Decided.Specificity))
	b.WriteString("\n| tool | healthy windows | of them unknown | new | faulty windows | of them unknown |\n|---|---:|---:|---:|---:|---:|\n")
	for _, t := range d.Tools {
		fmt.Fprintf(b, "| %s | %d | %s | %s | %d | %s |\n", strings.ReplaceAll(t.Tool, "|", `\|`), t.Healthy, share(t.UnknownHealthy, t.Healthy), share(t.NewHealthy, t.Healthy),
			t.Faulty, share(t.UnknownFaulty, t.Faulty))
	}
}
