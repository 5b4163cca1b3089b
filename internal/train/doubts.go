package train

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// Doubts says how often the verdict unknown takes the place of a decision, and whether
// the classes are in their conformal sets as often as promised.
type Doubts struct {
	ErrorRate float64      `json:"error_rate,omitempty"` // of conformal sets; 0: there are none
	Novelty   float64      `json:"novelty,omitempty"`    // p-value up to which a window is new; 0: none ever is
	Without   []string     `json:"without,omitempty"`    // parts that the data cannot give, and why
	Split     string       `json:"split,omitempty"`      // what the windows below were not seen by, in words
	Classes   []ClassDoubt `json:"classes,omitempty"`
	Tools     []ToolDoubt  `json:"tools,omitempty"` // in the order of the recordings

	// Judged are the scores of the windows that are left, healthy against all others,
	// and Decided the same of all windows, had none been unknown.
	Judged  *classify.Scores `json:"judged,omitempty"`
	Decided *classify.Scores `json:"decided,omitempty"`
}

// ClassDoubt is what becomes of the windows of one class.
type ClassDoubt struct {
	Class    string          `json:"class"`
	Windows  int             `json:"windows"`
	Coverage classify.Figure `json:"coverage"` // share whose set holds the class: at least 1 − error rate is promised

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
	covered []int
	tools   map[string]int
	judged  classify.Confusion
	decided classify.Confusion
}

func newDoubter(d *Doubts, classes []string) *doubter {
	b := &doubter{d: d, covered: make([]int, len(classes)), tools: make(map[string]int), judged: classify.NewConfusion(2), decided: classify.NewConfusion(2)}
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
	if m.Conformal != nil && m.Conformal.In(class, posterior) {
		b.covered[class]++
	}
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
		c.Coverage = classify.Figure(float64(b.covered[k]) / float64(c.Windows))
	}
	judged, decided := b.judged.Scores(), b.decided.Scores()
	b.d.Judged, b.d.Decided = &judged, &decided
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
	case !strings.HasPrefix(r.Fit.Costs.Posteriors, string(classify.OutOfFold)):
		d.Without = append(d.Without, "no conformal sets: posteriors of windows held out are needed, and these are "+r.Fit.Costs.Posteriors)
	default:
		m.Conformal, err = classify.NewConformal(posterior, rows.Class, len(rows.classes), u.ErrorRate)
		if errors.Is(err, classify.ErrTooFew) {
			d.Without = append(d.Without, fmt.Sprintf("no conformal sets: %v; label more windows, or allow more errors", err))
		} else if err != nil {
			return err
		}
	}
	var held classify.HeldNovelty
	if u.Novelty > 0 {
		m.Novelty, held, err = classify.FitNovelty(ctx, rows.x(), rows.group, u.Novelty, j.Config.Seed, j.Workers)
		if errors.Is(err, classify.ErrTooFew) {
			d.Without = append(d.Without, fmt.Sprintf("nothing is out of distribution: %v", err))
		} else if err != nil {
			return err
		}
	}
	if m.Novelty != nil {
		d.Novelty = m.Novelty.Rate
		s := m.Novelty.NewScorer()
		for _, g := range m.Golden {
			m.Distances = append(m.Distances, s.Distance(g.Features))
		}
	}
	if m.Conformal != nil {
		d.ErrorRate = m.Conformal.Rate
	}
	for _, why := range d.Without {
		j.Log.Info().Msg("unknown: " + why)
	}
	if v == nil || m.Novelty == nil && m.Conformal == nil {
		return nil
	}
	return j.measureDoubts(rows, m, d, v, folds, held)
}

// measureDoubts judges the windows of tools held out. Conformal sets of a fold are
// calibrated on the posteriors out of fold of the tools that are left, so that nothing has
// seen the tool; p-values of novelty are those by the distances of other tools.
func (j *Job) measureDoubts(rows rowTable, m *model.Model, d *Doubts, v *classify.Validation, folds []classify.Fold, held classify.HeldNovelty) error {
	k := len(rows.classes)
	d.Split = fmt.Sprintf("tools held out, %d folds", len(folds))
	parts, err := ofFolds(rows, m, v, folds)
	if errors.Is(err, classify.ErrTooFew) {
		d.Split = "" // with one of the tools left out, too few windows of a class are left
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
// any, calibrated without the fold's tools.
func ofFolds(rows rowTable, m *model.Model, v *classify.Validation, folds []classify.Fold) ([]*model.Model, error) {
	parts := make([]*model.Model, len(folds))
	for f, fold := range folds {
		parts[f] = &model.Model{Novelty: m.Novelty}
		if m.Conformal == nil {
			continue
		}
		y := make([]int, len(fold.Train))
		for n, i := range fold.Train {
			y[n] = rows.Class[i]
		}
		p := v.Reports[f].Posterior
		v.Reports[f].Posterior = nil
		var err error
		if parts[f].Conformal, err = classify.NewConformal(p, y, len(rows.classes), m.Conformal.Rate); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// unknown returns which decisions of a validation do not stand at the rates of m, each
// by what has not seen its tool. Where that cannot be, with too few windows of a class
// once a tool is left out, they all stand.
func (j *Job) unknown(ctx context.Context, rows rowTable, m *model.Model, v *classify.Validation, folds []classify.Fold) ([]bool, error) {
	k := len(rows.classes)
	out, novelty := make([]bool, len(v.Fold)), make([]float64, len(v.Fold))
	for i := range novelty {
		novelty[i] = 1
	}
	sets := &model.Model{Conformal: m.Conformal}
	if m.Novelty != nil {
		fitted, held, err := classify.FitNovelty(ctx, rows.x(), rows.group, m.Novelty.Rate, j.Config.Seed, j.Workers)
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
			s += fmt.Sprintf(" (coverage %s)", figure(c.Coverage))
		}
		parts = append(parts, s)
	}
	return fmt.Sprintf("unknown: %s of windows, %s", strings.Join(parts, ", "), d.rates())
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
	b.WriteString("| windows | | coverage | unknown | out of distribution | ambiguous | implausible | new, whatever was decided |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range d.Classes {
		coverage := "–"
		if d.ErrorRate > 0 {
			coverage = figure(c.Coverage)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %d | %d | %d | %s |\n", strings.ReplaceAll(c.Class, "|", `\|`), c.Windows, coverage, share(c.Unknown(), c.Windows),
			c.OutOfDistribution, c.Ambiguous, c.Implausible, share(c.New, c.Windows))
	}
	return b.String()
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
	if len(d.Classes) == 0 {
		b.WriteString(" It was not measured: too few tools could be held out.\n")
		return
	}
	fmt.Fprintf(b, " Measured on %s:\n\n%s", d.Split, d.table())
	fmt.Fprintf(b, "\nOf the windows that are left recall is %s and specificity %s; had none been unknown, %s and %s.\n",
		figure(d.Judged.Recall), figure(d.Judged.Specificity), figure(d.Decided.Recall), figure(d.Decided.Specificity))
	b.WriteString("\n| tool | healthy windows | of them unknown | new | faulty windows | of them unknown |\n|---|---:|---:|---:|---:|---:|\n")
	for _, t := range d.Tools {
		fmt.Fprintf(b, "| %s | %d | %s | %s | %d | %s |\n", strings.ReplaceAll(t.Tool, "|", `\|`), t.Healthy, share(t.UnknownHealthy, t.Healthy), share(t.NewHealthy, t.Healthy),
			t.Faulty, share(t.UnknownFaulty, t.Faulty))
	}
}
