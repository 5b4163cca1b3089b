package card

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// page is the model card while it is written, section by section. The template escapes all
// that comes from recordings and configurations.
type page struct {
	drawings []drawing
	Sections []section
}

type section struct {
	ID, Title string
	Blocks    []block
}

// block is one of its fields.
type block struct {
	Text    []span
	Note    bool // Text is one to read before trusting a figure
	Table   *grid
	Figures []template.HTML
	Code    string
}

// span is a part of a text, which may be code.
type span struct {
	Text string
	Code bool
}

// grid is a table. Cells of the columns from Left on are figures, which are aligned right.
type grid struct {
	Head []string
	Rows [][]string
	Left int
}

// section begins a section.
func (p *page) section(id, title string) {
	p.Sections = append(p.Sections, section{ID: id, Title: title})
}

func (p *page) add(b block) {
	s := &p.Sections[len(p.Sections)-1]
	s.Blocks = append(s.Blocks, b)
}

// text adds a paragraph; what is in it between backquotes is code. An empty one is left out.
func (p *page) text(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); s != "" {
		p.add(block{Text: spans(s)})
	}
}

// note adds a paragraph to read before trusting a figure.
func (p *page) note(text string) {
	p.add(block{Text: spans(strings.TrimSuffix(text, ".") + "."), Note: true})
}

// table adds a table without rows, of which the first column has names.
func (p *page) table(head ...string) *grid {
	g := &grid{Head: head, Left: 1}
	p.add(block{Table: g})
	return g
}

func (g *grid) row(cells ...string) { g.Rows = append(g.Rows, cells) }

// figures adds the drawings of the given names that there are.
func (p *page) figures(names ...string) {
	var b block
	for _, name := range names {
		if i := slices.IndexFunc(p.drawings, func(d drawing) bool { return d.name == name }); i >= 0 {
			b.Figures = append(b.Figures, template.HTML(p.drawings[i].svg)) //nolint:gosec // package report escapes its text
		}
	}
	if len(b.Figures) > 0 {
		p.add(b)
	}
}

// spans parts a text at its backquotes.
func spans(s string) []span {
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 { // one of them has no partner
		return []span{{Text: s}}
	}
	var out []span
	for i, part := range parts {
		if part != "" {
			out = append(out, span{part, i%2 == 1})
		}
	}
	return out
}

var (
	//go:embed card.html
	pageText string
	//go:embed card.css
	pageStyle string

	pageTemplate = template.Must(template.New("card").Funcs(template.FuncMap{
		"spans": spans,
		"mark":  func(l Level) string { return verdictMarks[l] },
		"class": func(l Level) string { return strings.ReplaceAll(levelWords[l][0], "_", "-") },
	}).Parse(pageText))
)

// HTML returns the model card: the report for people, as one file with its plots, and with
// the JSON of the report for programs.
func (r *Report) HTML() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("card: %w", err)
	}
	return cardHead{r.Model, r.Label, r.Job, r.Verdict}.html(r.page().Sections, text)
}

// cardHead is what a card begins with.
type cardHead struct {
	Model, Label string
	Job          model.Provenance
	Verdict      *Verdict // nil: there is none
}

// html returns a card. Text is the JSON of the report, which has <, > and & escaped.
func (h cardHead) html(sections []section, text []byte) ([]byte, error) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		cardHead
		Sections []section
		Style    template.CSS
		JSON     template.JS
	}{h, sections, template.CSS(pageStyle), template.JS(text)}) //nolint:gosec // of this package, and escaped
	if err != nil {
		return nil, fmt.Errorf("card: %w", err)
	}
	return b.Bytes(), nil
}

// saveCard writes a report for programs to base.json, and its card to base.html.
func saveCard(base string, write func(path string, b []byte) error, r any, h cardHead, sections []section) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	page, err := h.html(sections, text)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return errors.Join(write(base+".json", append(text, '\n')), write(base+".html", page))
}

// page returns what follows the verdict on the card.
func (r *Report) page() *page {
	p := &page{drawings: r.drawings()}
	r.limits(p)
	r.Relabelled.writeTo(p)
	r.score(p)
	p.contests(r.Against)
	r.byTool(p)
	r.robustness(p)
	r.followersTo(p)
	r.Unknown.writeTo(p)
	r.Trend.writeTo(p)
	r.data(p)
	r.costs(p)
	if slices.ContainsFunc(p.drawings, func(d drawing) bool { return d.name == "pre-training" || d.name == "fine-tuning" }) {
		p.section("training", "Training")
		p.figures("pre-training", "fine-tuning")
	}
	p.section("configuration", "Configuration")
	p.add(block{Code: string(indent(r.Job.Config))})
	return p
}

// limits says in words what the model is for and what not.
func (r *Report) limits(p *page) {
	p.section("purpose", "What it is for")
	p.text("It says of each window of cutting whether the tool is worn, for an alarm that a person acts on. It is not a safety function and does not stop the machine. " +
		"It knows the machines, tools, materials and cutting data below and no others: on anything else, examine it with `trainer evaluate` before you rely on it.")
	if r.Balance != "" {
		p.text("It learnt from %s%s.", r.Balance, strings.Replace(r.Bounds, "they have", "their wear is", 1))
	}
	if r.Windows.States != "" {
		p.text("States of tools were taken for these classes, with the windows of each: %s.", r.Windows.States)
	}
}

// score writes the scores of all windows together, and what to know of them.
func (r *Report) score(p *page) {
	p.section("score", "Score")
	how := "Faulty is the positive class everywhere. G-mean is √(recall · specificity)."
	if several(r.Classes) {
		how = "The recall of a class is the share of its windows that is found, and G-mean the geometric mean of all of them. AUC is the area under the ROC curve of a class against the rest."
	}
	p.text("%s A dash is a figure without rows to rest on.", how)
	head, line := scoreRows(r.Classes)
	t := p.table(append([]string{"split"}, head...)...)
	if r.Pooled != nil {
		t.row(line(r.Split, r.Pooled)...)
	}
	if r.Random != nil {
		t.row(line("random 5-fold (leaky)", r.Random)...)
	}
	if r.Pooled == nil {
		t.row(line("out of fold, as the costs were chosen (flatters)", &r.Fit.Held)...)
	}
	if words := r.Interval.Words(r.Classes, r.Pooled); words != "" {
		p.text("Of tools held out, with 95 %% intervals: %s. The intervals come from %d draws of as many whole tools, with replacement; a draw in which a figure has no windows to rest on is left out of that figure's interval.", words, r.Interval.Draws)
	}
	if r.transductive() {
		p.note("This score is transductive: networks that judge a tool held out have learnt from that tool's windows without a label. It says what to expect of tools whose windows are at hand when the model is trained, and not of tools to come")
	}
	if r.Random != nil {
		p.text("The random split is %s.", leakNote)
	}
	r.scoreOfClasses(p)
	r.simplerMethods(p)
	for _, w := range r.warnings() {
		p.note(w)
	}
	if len(p.drawings) > 0 {
		p.text("The curves are of %s.", map[bool]string{true: "windows of tools held out", false: "windows that the costs were chosen on, out of fold, which flatters"}[r.Pooled != nil])
	}
	p.figures("roc", "precision-recall", "calibration", "costs")
}

// scoreOfClasses writes which of several classes was taken for which.
func (r *Report) scoreOfClasses(p *page) {
	if !several(r.Classes) {
		return
	}
	t := p.table("true class")
	for _, name := range r.Classes {
		t.Head = append(t.Head, "decided "+name)
	}
	for truth, decided := range cmp.Or(r.Pooled, &r.Fit.Held).Confusion {
		cells := []string{r.Classes[truth]}
		for _, n := range decided {
			cells = append(cells, fmt.Sprint(n))
		}
		t.row(cells...)
	}
	p.text("For verdicts and alarms every class but healthy is faulty: %s.", healthyOrNot(r.Faulty))
	if words := r.FaultyInterval.Words(nil, r.Faulty); words != "" {
		p.text("With 95 %% intervals: %s.", words)
	}
}

// simplerMethods writes how simpler methods do on the same folds.
func (r *Report) simplerMethods(p *page) {
	if len(r.Baselines) == 0 {
		if r.NotCompared != "" {
			p.text("Simpler methods were not compared: %s.", r.NotCompared)
		}
		return
	}
	p.text("Simpler methods on the same tools held out, with the same features and rule for costs, healthy against all other classes:")
	t := p.table("method", "G-mean", "95 % interval", "recall", "specificity", "this model is ahead by", "95 % interval")
	interval := func(v [2]score.Figure) string {
		if v[0] != v[0] {
			return "–"
		}
		return Figure(v[0]) + " to " + Figure(v[1])
	}
	for _, b := range r.Baselines {
		within := undefinedInterval()
		if b.Interval != nil {
			within = b.Interval.GMean
		}
		t.row(b.Method, Figure(b.Pooled.GMean), interval(within), Figure(b.Pooled.Recall), Figure(b.Pooled.Specificity), Figure(b.Ahead), interval(b.AheadInterval))
	}
	if words := r.Settings.Words(); words != "" {
		p.text("%s. Settings are the same in all windows of a tool; a random forest judged by them on the same folds.", capital(words))
	}
}

// byTool writes how each tool was judged while it was held out.
func (r *Report) byTool(p *page) {
	switch {
	case r.Pooled != nil:
		p.section("tools", "By tool, each held out")
	case r.Alarms != nil:
		p.section("tools", "By tool")
		p.note("networks had not seen the tools that they judged, but costs were chosen on these tools, which flatters")
	default:
		return
	}
	r.alarmTable(p)
	p.figures("lives")
	if r.Pooled == nil {
		return
	}
	p.figures("tools")
	head, line := scoreRows(r.Classes)
	t := p.table(append([]string{"tool"}, head...)...)
	for _, name := range slices.SortedFunc(slices.Values(r.Tools), CompareNames) {
		s := r.Groups[name]
		t.row(line(name, &s)...)
	}
}

// alarmTable writes what alarms each tool would have raised.
func (r *Report) alarmTable(p *page) {
	a := r.Alarms
	if a == nil {
		return
	}
	p.text("What an alarm at %d of %d windows with a score of %v or more would have done. Windows are counted from 1 among those that are judged. "+
		"A false alarm comes in a window that is healthy by its label, with less than %.0f %% of the limit as measured wear.", a.K, a.N, a.Threshold, 100*inTimeFrom)
	if r.NotOfModel != "" {
		p.text("%s: these alarms are of the folds.", capital(r.NotOfModel))
	}
	t := p.table("tool", "windows", "unknown", "right", "worn from", "first alarm", "wear then, µm", "alarm came", "false alarms")
	or := func(n int) string {
		if n == 0 {
			return "–"
		}
		return fmt.Sprint(n)
	}
	words := map[moment]string{missed: "missed", inTime: "in time", early: "early", farTooEarly: "far too early", late: "late", inTimeOrLate: "in time or late"}
	for _, l := range a.Tools {
		um, when := "–", ""
		if l.WearUM == l.WearUM {
			um = fmt.Sprintf("%.0f", float64(l.WearUM))
		}
		if l.Worn > 0 {
			when = words[a.moment(l)]
		}
		if l.Unjudged > 0 && l.Alarm == 0 {
			when += fmt.Sprintf(" (worn windows that were not judged: %s)", l.Why)
		}
		unknown := share(l.Unknown, l.Judged)
		if r.unknownNotMeasured() {
			unknown = "–"
		}
		t.row(l.Tool, fmt.Sprint(l.Judged), unknown, share(l.Right, l.Judged), or(l.Worn), or(l.Alarm), um, when, or(l.False))
	}
}

// data writes what the model was trained on, and how features were taken.
func (r *Report) data(p *page) {
	w := r.Windows
	p.section("data", "Data")
	t := p.table("recording", "windows", "SHA-256", "tools and time")
	for _, d := range r.Job.Data {
		t.row(d.Name, fmt.Sprint(d.Windows), d.SHA256, d.Of())
	}
	p.text("%d windows were cut and %d used: %d make the references of their tools, %d are not of cutting, %d have sensor faults, %d have no label. "+
		"Gaps that no window covers: %d. Feature values missing in the windows used, replaced by the mean of the training rows: %d.",
		w.Windows, w.Used, w.Learning, w.NotCutting, w.SensorFault, w.Unlabelled, w.Gaps, w.Missing)
	for _, words := range []string{r.unlabelled(), r.between()} {
		if words != "" {
			p.text("%s. They are in no score, no count of classes and no choice of costs.", words)
		}
	}
	if w.Join != "" {
		p.text("Of the windows that are fit for judging, measurements make %s.", w.Join)
		if from := model.LabelsFrom(w.LabelsFrom); from != "" {
			p.text("Labels of these tools: %s.", from)
		}
	}
	p.text("The machine counts as cutting %s.", r.Cutting)
	if r.Reference.Mode != model.ReferenceOff {
		p.text("Features are relative (%s) to the tool's own first %d cutting windows, which are not scored.", r.Reference.Describe(), r.Reference.Windows)
	} else if r.ViewLimitMiB > 0 {
		p.text("Features are as they are, not relative to a reference.")
	}
	r.views(p)
}

// costs says how the costs were chosen and what the alternatives were worth.
func (r *Report) costs(p *page) {
	c := r.Fit.Costs
	p.section("costs", "Costs")
	p.text("All on the same posteriors (%s); the last is kept.", c.Posteriors)
	names := []string{"healthy", "faulty"}
	if several(r.Classes) {
		names = r.Classes
	}
	t := p.table("rule")
	for _, name := range names {
		t.Head = append(t.Head, "cost of "+name)
	}
	t.Head = append(t.Head, "G-mean", "accuracy")
	for _, ch := range c.Choices {
		cells := []string{ch.Name}
		if several(r.Classes) {
			for _, v := range ch.Costs {
				cells = append(cells, fmt.Sprintf("%.4f", v))
			}
		} else {
			cells = append(cells, fmt.Sprintf("%.4f", ch.Costs[classify.Healthy]), fmt.Sprintf("%.4f", ch.Costs[len(ch.Costs)-1]))
		}
		t.row(append(cells, fmt.Sprintf("%.3f", ch.GMean), fmt.Sprintf("%.3f", ch.Accuracy))...)
	}
	plateau := ""
	if !several(r.Classes) {
		plateau = fmt.Sprintf("Every threshold on P(faulty) from %.4f to %.4f gives the best plain G-mean; kept is %.4f. ", float64(c.Plateau[0]), float64(c.Plateau[1]), float64(c.Kept))
	}
	p.text("%sJADE (%s) stopped after %d generations and %d evaluations: %s.", plateau, c.Search.Variant, c.Search.Generations, c.Search.Evaluations, c.Search.Stopped)
	if held := heldChoices(&c); held != "" {
		p.text("%s.", held)
	}
	if c.Rule != "" {
		p.text("Few tools have faulty windows, and there is a rule for that: what is kept is %s. A group is a tool.", c.Rule)
	}
}

func indent(text json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return text
	}
	return b.Bytes()
}
