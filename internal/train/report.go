package train

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/atomicfile"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// Report says what a training run saw and how good the model is. Its JSON is
// part of the contract: pooled, groups and random_split each have accuracy,
// recall, specificity, precision, f1 and gmean, with faulty as the positive
// class; a figure without rows to rest on is null. Of more than two classes the
// last is the positive one there, and recalls has all of them. fit.weights has the
// features that count, by name and column.
type Report struct {
	Model          string                   `json:"model"`
	Label          string                   `json:"label"`             // rule, in words
	Classes        []string                 `json:"classes,omitempty"` // their names, if there are more than two
	Split          string                   `json:"split,omitempty"`   // how tools were held out
	Pooled         *score.Summary           `json:"pooled,omitempty"`  // of all windows of tools held out
	Interval       *ToolInterval            `json:"pooled_interval,omitempty"`
	Groups         map[string]score.Summary `json:"groups,omitempty"` // of each tool held out
	Faulty         *score.Summary           `json:"faulty,omitempty"` // healthy against all others, of the same windows, if there are more than two
	FaultyInterval *ToolInterval            `json:"faulty_interval,omitempty"`
	Random         *score.Summary           `json:"random_split,omitempty"` // leaky: neighbouring windows of a tool are on both sides
	Leak           string                   `json:"random_split_note,omitempty"`
	Windows        tally                    `json:"windows"`
	Balance        string                   `json:"balance,omitempty"` // rows by class and tool, in words
	Features       int                      `json:"features"`
	Excluded       []string                 `json:"excluded,omitempty"` // features that do not count, because the configuration says so
	Warnings       []string                 `json:"warnings"`           // what to know before trusting a score; fit has its own
	Fit            *classify.Report         `json:"fit"`
	Trend          *Trend                   `json:"wear_trend,omitempty"` // if wear was measured of tools enough
	Unknown        *Doubts                  `json:"unknown,omitempty"`    // if the model has the third verdict
	Job            model.Provenance         `json:"provenance"`

	byWear bool // the model decides by estimated wear

	landscape *Landscape // of the posteriors that the costs were chosen on

	// Of tools held out, until doubts are measured on it.
	validated *classify.Validation
	folds     []classify.Fold

	tools   []string // in the order of the recordings
	held    heldOut  // of these or, if there are none, of the rows that costs were chosen on
	wear    string   // its bounds in words, if known
	cutting string   // when, in words
	ref     model.ReferenceSpec
	auto    bool // its mode was left to the trainer
}

const leakNote = "leaky: windows of one tool are on both sides of the split, and neighbouring windows are near copies; it says nothing of a new tool"

func newReport(job *Job, m *model.Model, rows rowTable, counts tally) *Report {
	r := &Report{
		Label: job.Config.Label.String(), Windows: counts, Balance: rows.balance(), Features: len(rows.Columns), Warnings: []string{},
		Job: m.Provenance, wear: rows.bounds(), cutting: m.Cutting(), ref: m.Reference,
		auto: job.Config.Reference.Mode == model.ReferenceAuto,
	}
	if several(rows.classes) {
		r.Classes = rows.classes
	}
	return r
}

// binary returns the scores of healthy against all other classes, nil if there
// is but one.
func (r *Report) binary() *score.Summary {
	switch {
	case !several(r.Classes):
		return nil
	case r.Pooled != nil:
		return againstHealthy(r.Pooled.Confusion)
	}
	return againstHealthy(r.Fit.Held.Confusion)
}

func (r *Report) byTool(v *classify.Validation, how string, folds int) {
	r.Split = fmt.Sprintf("%s by tool, %d folds", how, folds)
	r.Pooled = &v.Pooled
	r.Groups = make(map[string]score.Summary, len(v.Groups))
	for _, g := range v.Groups {
		r.Groups[g.Group] = g.Summary
		r.tools = append(r.tools, g.Group)
	}
	by := confusions(r.tools, r.Groups)
	r.Interval = intervalOf(by)
	if several(r.Classes) {
		r.FaultyInterval = intervalOf(twoClasses(by))
	}
}

func (r *Report) random(v *classify.Validation) {
	r.Random, r.Leak = &v.Pooled, leakNote
}

// headline is what a model keeps of its report, in Model.Scores.
type headline struct {
	Split     string         `json:"split"`
	Pooled    *score.Summary `json:"pooled,omitempty"` // of tools held out
	Interval  *ToolInterval  `json:"pooled_interval,omitempty"`
	OutOfFold *score.Summary `json:"out_of_fold,omitempty"` // without those

	// How the costs were chosen, and how much that matters.
	Costs     *classify.CostReport `json:"costs,omitempty"`
	Landscape *Landscape           `json:"landscape,omitempty"`

	Unknown *Doubts `json:"unknown,omitempty"`
	Trend   *Trend  `json:"wear_trend,omitempty"`
}

func (r *Report) headline() headline {
	h := headline{Split: r.Split, Pooled: r.Pooled, Interval: r.Interval, Costs: &r.Fit.Costs, Landscape: r.landscape, Unknown: r.Unknown, Trend: r.Trend}
	if r.Pooled == nil {
		h.Split, h.OutOfFold = "none: these are the out-of-fold rows that the costs were chosen on, which flatters", &r.Fit.Held
		if r.byWear {
			h.Split += "; the classifier decides them, and the model decides by estimated wear"
		}
	}
	return h
}

// Headline returns the scores that Run left in a model, and what they are of,
// in words. Both are empty if it left none.
func Headline(m *model.Model) (scores, of string) {
	var h headline
	if json.Unmarshal(m.Scores, &h) != nil {
		return "", ""
	}
	s := cmp.Or(h.Pooled, h.OutOfFold)
	if s == nil {
		return "", ""
	}
	if names := m.ClassNames(); several(names) && len(s.Recalls) == len(names) {
		scores = cmp.Or(h.Interval.words(names, s), fmt.Sprintf("G-mean %s, %s", figure(s.GMean), recalls(names, s)))
		return fmt.Sprintf("%s, accuracy %s", scores, figure(s.Accuracy)), fmt.Sprintf("%d windows; split: %s", s.Rows, h.Split)
	}
	scores = cmp.Or(h.Interval.words(nil, s), fmt.Sprintf("G-mean %s, recall %s, specificity %s", figure(s.GMean), figure(s.Recall), figure(s.Specificity)))
	scores += fmt.Sprintf(", precision %s, F1 %s, accuracy %s", figure(s.Precision), figure(s.F1), figure(s.Accuracy))
	return scores, fmt.Sprintf("%d windows, %d faulty; split: %s", s.Rows, s.Positive, h.Split)
}

// Beside returns what Run left in a model of the verdict unknown and of the wear trend,
// each on one line, in words. They are empty if it left nothing.
func Beside(m *model.Model) (unknown, wear string) {
	var h headline
	if json.Unmarshal(m.Scores, &h) != nil {
		return "", ""
	}
	return h.Unknown.words(), h.Trend.words()
}

// Shape describes the network of a model in words.
func Shape(m *model.Model) string {
	layers := m.Classifier.Network().Layers()
	words := make([]string, len(layers))
	for i, n := range layers {
		words[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("%s: %d features, encoded as %s, to %d inputs", strings.Join(words, "–"), m.Classifier.Columns(), m.Classifier.Encoder().Encoding(), layers[0])
}

// Summary returns a few lines for a terminal.
func (r *Report) Summary() string {
	var b strings.Builder
	b.WriteString(r.Windows.words())
	if n := r.Windows.Missing; n > 0 {
		fmt.Fprintf(&b, "; %d feature values missing, imputed", n)
	}
	if several(r.Classes) {
		return b.String() + r.summaryOfClasses()
	}
	const head, row = "\n%-16s %7s %7s %12s %10s %7s %9s %8s %7s", "\n%-16s %7s %7s %12s %10s %7s %9s %8d %7d"
	fmt.Fprintf(&b, head, "", "G-mean", "recall", "specificity", "precision", "F1", "accuracy", "windows", "faulty")
	line := func(name string, s *score.Summary) {
		fmt.Fprintf(&b, row, name, figure(s.GMean), figure(s.Recall), figure(s.Specificity), figure(s.Precision), figure(s.F1), figure(s.Accuracy), s.Rows, s.Positive)
	}
	if r.Pooled != nil {
		line("tools held out", r.Pooled)
	}
	if r.Random != nil {
		line("random (leaky)", r.Random)
	}
	if r.Pooled == nil && r.Random == nil {
		line("out of fold", &r.Fit.Held)
		b.WriteString(flatters)
	}
	if words := r.Interval.words(nil, r.Pooled); words != "" {
		fmt.Fprintf(&b, "\ntools held out, with 95 %% intervals: %s", words)
	}
	return b.String() + r.notes()
}

const flatters = "\nnote: out of fold are the rows that the costs were chosen on, which flatters"

func (r *Report) notes() string {
	var b strings.Builder
	for _, words := range []string{r.followers(), r.unlabelled(), r.between(), r.Unknown.words(), r.Trend.words()} {
		if words != "" {
			fmt.Fprintf(&b, "\n%s", words)
		}
	}
	for _, w := range r.warnings() {
		fmt.Fprintf(&b, "\nnote: %s", w)
	}
	return b.String()
}

// summaryOfClasses is the scores of a Summary, of more than two classes.
func (r *Report) summaryOfClasses() string {
	t := newScoreTable(r.Classes)
	if r.Pooled != nil {
		t.line("tools held out", r.Pooled)
	}
	if r.Random != nil {
		t.line("random (leaky)", r.Random)
	}
	outOfFold := r.Pooled == nil && r.Random == nil
	if outOfFold {
		t.line("out of fold", &r.Fit.Held)
	}
	s := t.String()
	if words := r.Interval.words(r.Classes, r.Pooled); words != "" {
		s += "\ntools held out, with 95 % intervals: " + words
	}
	s += fmt.Sprintf("\nFor verdicts and alarms every class but healthy is faulty: %s", healthyOrNot(r.Faulty))
	if words := r.FaultyInterval.words(nil, r.Faulty); words != "" {
		s += "; with 95 % intervals: " + words
	}
	if outOfFold {
		s += flatters
	}
	return s + r.notes()
}

func (r *Report) warnings() []string { return slices.Concat(r.Warnings, r.Fit.Warnings) }

func figure(f score.Figure) string {
	if math.IsNaN(float64(f)) {
		return "–"
	}
	return fmt.Sprintf("%.3f", float64(f))
}

// Markdown returns the model card: the report for people. Its plots are looked
// for in the given folder.
func (r *Report) Markdown(folder string) string { return r.card(folder, r.drawings()) }

func (r *Report) card(folder string, ds []drawing) string {
	var b strings.Builder
	w := r.Windows
	fmt.Fprintf(&b, "# Model card: %s\n\nTrained by %s, seed %d. A window is %s.\n\n", r.Model, r.Job.Program, r.Job.Seed, r.Label)
	b.WriteString(r.limits())
	how := "Faulty is the positive class everywhere. G-mean is √(recall · specificity)."
	if several(r.Classes) {
		how = "The recall of a class is the share of its windows that is found, and G-mean the geometric mean of all of them. AUC is the area under the ROC curve of a class against the rest."
	}
	fmt.Fprintf(&b, "\n## Score\n\n%s A dash is a figure without rows to rest on.\n", how)
	head, line := scoreRows(r.Classes)
	row := func(name string, s *score.Summary) { b.WriteString(line(name, s)) }
	b.WriteString("\n| split " + head)
	if r.Pooled != nil {
		row("**"+r.Split+"**", r.Pooled)
	}
	if r.Random != nil {
		row("random 5-fold (leaky)", r.Random)
	}
	if r.Pooled == nil {
		row("out of fold, as the costs were chosen (flatters)", &r.Fit.Held)
	}
	if words := r.Interval.words(r.Classes, r.Pooled); words != "" {
		fmt.Fprintf(&b, "\nOf tools held out, with 95 %% intervals: %s. The intervals come from %d draws of as many whole tools, with replacement; a draw in which a figure has no windows to rest on is left out of that figure's interval.\n", words, r.Interval.Draws)
	}
	if r.transductive() {
		b.WriteString("\nThis score is transductive: networks that judge a tool held out have learnt from that tool's windows without a label. It says what to expect of tools whose windows are at hand when the model is trained, and not of tools to come.\n")
	}
	if r.Random != nil {
		fmt.Fprintf(&b, "\nThe random split is %s.\n", leakNote)
	}
	if several(r.Classes) {
		fmt.Fprintf(&b, "\n%s\nFor verdicts and alarms every class but healthy is faulty: %s.\n", confusionMarkdown(r.Classes, cmp.Or(r.Pooled, &r.Fit.Held).Confusion), healthyOrNot(r.Faulty))
		if words := r.FaultyInterval.words(nil, r.Faulty); words != "" {
			fmt.Fprintf(&b, "\nWith 95 %% intervals: %s.\n", words)
		}
	}
	for _, w := range r.warnings() {
		fmt.Fprintf(&b, "\nNote: %s.\n", strings.TrimSuffix(w, "."))
	}
	if len(ds) > 0 {
		fmt.Fprintf(&b, "\nThe curves are of %s.\n", map[bool]string{true: "windows of tools held out", false: "windows that the costs were chosen on, out of fold, which flatters"}[r.Pooled != nil])
	}
	gallery(&b, folder, ds, "roc.svg", "precision-recall.svg", "calibration.svg", "costs.svg")
	if r.Pooled != nil {
		b.WriteString("\n## By tool, each held out\n")
		gallery(&b, folder, ds, "tools.svg")
		gallery(&b, folder, ds, "lives.svg")
		b.WriteString("\n| tool " + head)
		for _, t := range r.tools {
			s := r.Groups[t]
			row(strings.ReplaceAll(t, "|", `\|`), &s)
		}
	}
	r.followersMarkdown(&b, folder, ds)
	r.Unknown.markdown(&b)
	r.Trend.markdown(&b, folder, ds)

	fmt.Fprintf(&b, "\n## Data\n\n| recording | windows | SHA-256 |\n|---|---:|---|\n")
	for _, d := range r.Job.Data {
		fmt.Fprintf(&b, "| %s | %d | `%s` |\n", strings.ReplaceAll(d.Name, "|", `\|`), d.Windows, d.SHA256)
	}
	fmt.Fprintf(&b, "\n%d windows were cut and %d used: %d make the references of their tools, %d are not of cutting, %d have sensor faults, %d have no label. "+
		"Gaps that no window covers: %d. Feature values missing in the windows used, for which the mean of the training rows stands: %d.\n",
		w.Windows, w.Used, w.Learning, w.NotCutting, w.SensorFault, w.Unlabelled, w.Gaps, w.Missing)
	if words := r.unlabelled(); words != "" {
		fmt.Fprintf(&b, "\n%s. They are in no score, no count of classes and no choice of costs.\n", words)
	}
	if words := r.between(); words != "" {
		fmt.Fprintf(&b, "\n%s. They are in no score, no count of classes and no choice of costs.\n", words)
	}
	if w.Join != "" {
		fmt.Fprintf(&b, "\nOf the windows that are fit for judging, the wear file makes %s.\n", w.Join)
	}
	fmt.Fprintf(&b, "\nThe machine counts as cutting %s.\n", r.cutting)
	if r.ref.Mode != model.ReferenceOff {
		fmt.Fprintf(&b, "\nFeatures are relative (%s) to the tool's own first %d cutting windows, which are not scored.\n", r.ref.Describe(), r.ref.Windows)
	} else if r.auto {
		b.WriteString("\nFeatures are as they are, not relative to a reference.\n")
	}
	r.views(&b)
	r.costs(&b)
	if rule := r.Fit.Costs.Rule; rule != "" {
		fmt.Fprintf(&b, "\nFew tools have faulty windows, and there is a rule for that: what is kept is %s. A group is a tool.\n", rule)
	}
	if len(ds) > 0 {
		b.WriteString("\n## Training\n")
		gallery(&b, folder, ds, "pre-training.svg", "fine-tuning.svg")
	}
	fmt.Fprintf(&b, "\n## Configuration\n\n```json\n%s\n```\n", indent(r.Job.Config))
	return b.String()
}

// costs says how the costs were chosen and what the alternatives were worth.
func (r *Report) costs(b *strings.Builder) {
	c := r.Fit.Costs
	if several(r.Classes) {
		names := escaped(r.Classes)
		fmt.Fprintf(b, "\n## Costs\n\nAll on the same posteriors (%s); the last is kept.\n\n| rule | cost of %s | G-mean | accuracy |\n|---|%s---:|---:|\n",
			c.Posteriors, strings.Join(names, " | of "), strings.Repeat("---:|", len(names)))
		for _, ch := range c.Choices {
			fmt.Fprintf(b, "| %s |", ch.Name)
			for _, v := range ch.Costs {
				fmt.Fprintf(b, " %.4f |", v)
			}
			fmt.Fprintf(b, " %.3f | %.3f |\n", ch.GMean, ch.Accuracy)
		}
		fmt.Fprintf(b, "\nJADE (%s) stopped after %d generations and %d evaluations: %s.\n", c.Search.Variant, c.Search.Generations, c.Search.Evaluations, c.Search.Stopped)
		return
	}
	fmt.Fprintf(b, "\n## Costs\n\nAll on the same posteriors (%s); the last is kept.\n\n| rule | cost of healthy | cost of faulty | G-mean | accuracy |\n|---|---:|---:|---:|---:|\n", c.Posteriors)
	for _, ch := range c.Choices {
		fmt.Fprintf(b, "| %s | %.4f | %.4f | %.3f | %.3f |\n", ch.Name, ch.Costs[classify.Healthy], ch.Costs[len(ch.Costs)-1], ch.GMean, ch.Accuracy)
	}
	fmt.Fprintf(b, "\nEvery threshold on P(faulty) from %.4f to %.4f gives the best plain G-mean; kept is %.4f. JADE (%s) stopped after %d generations and %d evaluations: %s.\n",
		float64(c.Plateau[0]), float64(c.Plateau[1]), float64(c.Kept), c.Search.Variant, c.Search.Generations, c.Search.Evaluations, c.Search.Stopped)
}

func indent(text json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return text
	}
	return b.Bytes()
}

// Save writes base.json, base.md and the folder base with the plots of the
// latter.
func (r *Report) Save(base string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := atomicfile.Write(base+".json", append(text, '\n')); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	ds := r.drawings()
	if err := saveDrawings(base, ds); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := atomicfile.Write(base+".md", []byte(r.card(filepath.Base(base), ds))); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
