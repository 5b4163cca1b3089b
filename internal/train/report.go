package train

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// Report says what a training run saw and how good the model is. Its JSON is
// part of the contract: pooled, groups and random_split each have accuracy,
// recall, specificity, precision, f1 and gmean, with faulty as the positive
// class; a figure without rows to rest on is null.
type Report struct {
	Model    string                     `json:"model"`
	Label    string                     `json:"label"`                  // rule, in words
	Split    string                     `json:"split,omitempty"`        // how tools were held out
	Pooled   *classify.Scores           `json:"pooled,omitempty"`       // of all windows of tools held out
	Groups   map[string]classify.Scores `json:"groups,omitempty"`       // of each tool held out
	Random   *classify.Scores           `json:"random_split,omitempty"` // leaky: neighbouring windows of a tool are on both sides
	Leak     string                     `json:"random_split_note,omitempty"`
	Windows  tally                      `json:"windows"`
	Features int                        `json:"features"`
	Fit      *classify.Report           `json:"fit"`
	Job      model.Provenance           `json:"provenance"`

	tools []string // in the order of the recordings
	gate  *model.Gate
	ref   model.ReferenceSpec
}

const leakNote = "leaky: windows of one tool are on both sides of the split, and neighbouring windows are near copies; it says nothing of a new tool"

func newReport(job *Job, m *model.Model, rows rowTable, counts tally) *Report {
	r := &Report{
		Label: job.Config.Label.String(), Windows: counts, Features: len(rows.Columns), Job: m.Provenance, gate: m.Gate, ref: m.Reference,
	}
	seen := map[string]bool{}
	for _, t := range rows.Tool {
		if !seen[t] {
			seen[t] = true
			r.tools = append(r.tools, t)
		}
	}
	return r
}

func (r *Report) byTool(v *classify.Validation, how string, folds int) {
	r.Split = fmt.Sprintf("%s by tool, %d folds", how, folds)
	r.Pooled = &v.Pooled
	r.Groups = make(map[string]classify.Scores, len(v.Groups))
	for _, g := range v.Groups {
		r.Groups[g.Group] = g.Scores
	}
}

func (r *Report) random(v *classify.Validation) {
	r.Random, r.Leak = &v.Pooled, leakNote
}

// headline is what a model keeps of its report.
func (r *Report) headline() map[string]any {
	h := map[string]any{"split": r.Split}
	if r.Pooled != nil {
		h["pooled"] = r.Pooled
	} else {
		h["split"] = "none: these are the out-of-fold rows that the costs were chosen on, which flatters"
		h["out_of_fold"] = r.Fit.Held
	}
	return h
}

// Summary returns a few lines for a terminal.
func (r *Report) Summary() string {
	var b strings.Builder
	w := r.Windows
	fmt.Fprintf(&b, "windows %d cut, %d used", w.Windows, w.Used)
	for _, left := range []struct {
		n    int
		what string
	}{{w.Learning, "make references"}, {w.NotCutting, "not cutting"}, {w.SensorFault, "sensor faults"}, {w.Unlabelled, "without label"}} {
		if left.n > 0 {
			fmt.Fprintf(&b, ", %d %s", left.n, left.what)
		}
	}
	if w.Missing > 0 {
		fmt.Fprintf(&b, "; %d feature values missing, imputed", w.Missing)
	}
	row := func(name string, s *classify.Scores) {
		fmt.Fprintf(&b, "\n%-18s %8s %8s %8s %8s %8s %8s", name, figure(s.GMean), figure(s.Recall), figure(s.Specificity), figure(s.Precision), figure(s.F1), figure(s.Accuracy))
	}
	fmt.Fprintf(&b, "\n%-18s %8s %8s %8s %8s %8s %8s", "", "G-mean", "recall", "specif.", "precis.", "F1", "accuracy")
	if r.Pooled != nil {
		row("tools held out", r.Pooled)
	}
	if r.Random != nil {
		row("random (leaky)", r.Random)
	}
	if r.Pooled == nil && r.Random == nil {
		row("out of fold", &r.Fit.Held)
	}
	for _, warning := range r.Fit.Warnings {
		fmt.Fprintf(&b, "\nnote: %s", warning)
	}
	return b.String()
}

func figure(f classify.Figure) string {
	if math.IsNaN(float64(f)) {
		return "–"
	}
	return fmt.Sprintf("%.3f", float64(f))
}

// Markdown returns the report for people.
func (r *Report) Markdown() string {
	var b strings.Builder
	w := r.Windows
	fmt.Fprintf(&b, "# Training report\n\nModel `%s`, by %s, seed %d. A window is %s.\n\n", r.Model, r.Job.Program, r.Job.Seed, r.Label)
	b.WriteString("Faulty is the positive class everywhere. G-mean is √(recall · specificity). A dash is a figure without rows to rest on.\n\n")

	b.WriteString("## Score\n\n| split | windows | faulty | accuracy | recall | specificity | precision | F1 | G-mean |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	row := func(name string, s *classify.Scores) {
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | %s | %s | %s | %s |\n", name, s.Rows, s.Positive,
			figure(s.Accuracy), figure(s.Recall), figure(s.Specificity), figure(s.Precision), figure(s.F1), figure(s.GMean))
	}
	if r.Pooled != nil {
		row("**"+r.Split+"**", r.Pooled)
	}
	if r.Random != nil {
		row("random 5-fold (leaky)", r.Random)
	}
	if r.Pooled == nil {
		row("out of fold, as the costs were chosen (flatters)", &r.Fit.Held)
	}
	if r.Random != nil {
		fmt.Fprintf(&b, "\nThe random split is %s.\n", leakNote)
	}
	if r.Pooled != nil {
		b.WriteString("\n## By tool, each held out\n\n| tool | windows | faulty | accuracy | recall | specificity | precision | F1 | G-mean |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
		for _, t := range r.tools {
			if s, ok := r.Groups[t]; ok {
				row(strings.ReplaceAll(t, "|", `\|`), &s)
			}
		}
	}

	fmt.Fprintf(&b, "\n## Data\n\n| recording | windows | SHA-256 |\n|---|---:|---|\n")
	for _, d := range r.Job.Data {
		fmt.Fprintf(&b, "| %s | %d | `%s` |\n", strings.ReplaceAll(d.Name, "|", `\|`), d.Windows, d.SHA256)
	}
	fmt.Fprintf(&b, "\n%d windows were cut and %d used: %d make the references of their tools, %d are not of cutting, %d have sensor faults, %d have no label. "+
		"%d spans are covered by no window. Of the features used, %d values are missing; the mean of the training rows stands for them.\n",
		w.Windows, w.Used, w.Learning, w.NotCutting, w.SensorFault, w.Unlabelled, w.Gaps, w.Missing)
	if r.gate != nil {
		fmt.Fprintf(&b, "\nThe machine counts as cutting while the level of %s is at %.4g or more, learnt from these recordings.\n", r.gate.Channel, r.gate.Threshold)
	}
	if r.ref.Mode != model.ReferenceOff {
		fmt.Fprintf(&b, "\nFeatures are relative (%s) to the tool's own first %d cutting windows, which are not scored.\n", r.ref.Mode, r.ref.Windows)
	}
	r.costs(&b)
	for _, warning := range r.Fit.Warnings {
		fmt.Fprintf(&b, "\nNote: %s.\n", strings.TrimSuffix(warning, "."))
	}
	fmt.Fprintf(&b, "\n## Configuration\n\n```json\n%s\n```\n", indent(r.Job.Config))
	return b.String()
}

// costs says how the costs were chosen and what the alternatives were worth.
func (r *Report) costs(b *strings.Builder) {
	c := r.Fit.Costs
	fmt.Fprintf(b, "\n## Costs\n\nAll on the same posteriors (%s); the last is kept.\n\n| rule | cost of healthy | cost of faulty | G-mean | accuracy |\n|---|---:|---:|---:|---:|\n", c.Posteriors)
	for _, ch := range c.Choices {
		fmt.Fprintf(b, "| %s | %.4f | %.4f | %.3f | %.3f |\n", ch.Name, ch.Costs[classify.Healthy], ch.Costs[len(ch.Costs)-1], ch.GMean, ch.Accuracy)
	}
	fmt.Fprintf(b, "\nEvery threshold on P(faulty) from %.4f to %.4f gives the best plain G-mean; kept is %.4f. JADE (%s) stopped after %d generations and %d evaluations: %s.\n",
		float64(c.Plateau[0]), float64(c.Plateau[1]), float64(c.Kept), c.Search.Variant, c.Search.Generations, c.Search.Evaluations, c.Search.Stopped)
}

func indent(text json.RawMessage) string {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return string(text)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(text)
	}
	return string(out)
}

// Save writes base.json and base.md.
func (r *Report) Save(base string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := model.WriteFile(base+".json", append(text, '\n')); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := model.WriteFile(base+".md", []byte(r.Markdown())); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
