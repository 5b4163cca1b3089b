package card

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// Markdown returns the model card: the report for people. Its plots are looked
// for in the given folder.
func (r *Report) Markdown(folder string) string { return r.card(folder, r.drawings()) }

func (r *Report) card(folder string, ds []drawing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Model card: %s\n\nTrained by %s, seed %d. A window is %s.\n\n", r.Model, r.Job.Program, r.Job.Seed, r.Label)
	b.WriteString(r.limits())
	r.score(&b)
	if len(ds) > 0 {
		fmt.Fprintf(&b, "\nThe curves are of %s.\n", map[bool]string{true: "windows of tools held out", false: "windows that the costs were chosen on, out of fold, which flatters"}[r.Pooled != nil])
	}
	gallery(&b, folder, ds, "roc.svg", "precision-recall.svg", "calibration.svg", "costs.svg")
	if r.Pooled != nil {
		b.WriteString("\n## By tool, each held out\n")
		gallery(&b, folder, ds, "tools.svg")
		gallery(&b, folder, ds, "lives.svg")
		head, line := scoreRows(r.Classes)
		b.WriteString("\n| tool " + head)
		for _, t := range r.Tools {
			s := r.Groups[t]
			b.WriteString(line(escape(t), &s))
		}
	}
	r.followersMarkdown(&b, folder, ds)
	r.Unknown.markdown(&b)
	r.Trend.markdown(&b, folder, ds)
	r.data(&b)
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

// score writes the scores of all windows together, and what to know of them.
func (r *Report) score(b *strings.Builder) {
	how := "Faulty is the positive class everywhere. G-mean is √(recall · specificity)."
	if several(r.Classes) {
		how = "The recall of a class is the share of its windows that is found, and G-mean the geometric mean of all of them. AUC is the area under the ROC curve of a class against the rest."
	}
	fmt.Fprintf(b, "\n## Score\n\n%s A dash is a figure without rows to rest on.\n", how)
	head, line := scoreRows(r.Classes)
	b.WriteString("\n| split " + head)
	if r.Pooled != nil {
		b.WriteString(line("**"+r.Split+"**", r.Pooled))
	}
	if r.Random != nil {
		b.WriteString(line("random 5-fold (leaky)", r.Random))
	}
	if r.Pooled == nil {
		b.WriteString(line("out of fold, as the costs were chosen (flatters)", &r.Fit.Held))
	}
	if words := r.Interval.Words(r.Classes, r.Pooled); words != "" {
		fmt.Fprintf(b, "\nOf tools held out, with 95 %% intervals: %s. The intervals come from %d draws of as many whole tools, with replacement; a draw in which a figure has no windows to rest on is left out of that figure's interval.\n", words, r.Interval.Draws)
	}
	if r.transductive() {
		b.WriteString("\nThis score is transductive: networks that judge a tool held out have learnt from that tool's windows without a label. It says what to expect of tools whose windows are at hand when the model is trained, and not of tools to come.\n")
	}
	if r.Random != nil {
		fmt.Fprintf(b, "\nThe random split is %s.\n", leakNote)
	}
	if several(r.Classes) {
		fmt.Fprintf(b, "\n%s\nFor verdicts and alarms every class but healthy is faulty: %s.\n", confusionMarkdown(r.Classes, cmp.Or(r.Pooled, &r.Fit.Held).Confusion), healthyOrNot(r.Faulty))
		if words := r.FaultyInterval.Words(nil, r.Faulty); words != "" {
			fmt.Fprintf(b, "\nWith 95 %% intervals: %s.\n", words)
		}
	}
	for _, w := range r.warnings() {
		fmt.Fprintf(b, "\nNote: %s.\n", strings.TrimSuffix(w, "."))
	}
}

// data writes what the model was trained on, and how features were taken.
func (r *Report) data(b *strings.Builder) {
	w := r.Windows
	b.WriteString("\n## Data\n\n| recording | windows | SHA-256 |\n|---|---:|---|\n")
	for _, d := range r.Job.Data {
		fmt.Fprintf(b, "| %s | %d | `%s` |\n", escape(d.Name), d.Windows, d.SHA256)
	}
	fmt.Fprintf(b, "\n%d windows were cut and %d used: %d make the references of their tools, %d are not of cutting, %d have sensor faults, %d have no label. "+
		"Gaps that no window covers: %d. Feature values missing in the windows used, replaced by the mean of the training rows: %d.\n",
		w.Windows, w.Used, w.Learning, w.NotCutting, w.SensorFault, w.Unlabelled, w.Gaps, w.Missing)
	for _, words := range []string{r.unlabelled(), r.between()} {
		if words != "" {
			fmt.Fprintf(b, "\n%s. They are in no score, no count of classes and no choice of costs.\n", words)
		}
	}
	if w.Join != "" {
		fmt.Fprintf(b, "\nOf the windows that are fit for judging, the wear file makes %s.\n", w.Join)
	}
	fmt.Fprintf(b, "\nThe machine counts as cutting %s.\n", r.Cutting)
	if r.Reference.Mode != model.ReferenceOff {
		fmt.Fprintf(b, "\nFeatures are relative (%s) to the tool's own first %d cutting windows, which are not scored.\n", r.Reference.Describe(), r.Reference.Windows)
	} else if r.ViewLimitMiB > 0 {
		b.WriteString("\nFeatures are as they are, not relative to a reference.\n")
	}
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
		if held := heldChoices(&c); held != "" {
			fmt.Fprintf(b, "\n%s.\n", held)
		}
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

// limits says in words what the model is for and what not.
func (r *Report) limits() string {
	var b strings.Builder
	b.WriteString("## What it is for\n\nIt says of each window of cutting whether the tool is worn, for an alarm that a person acts on. It is not a safety function and does not stop the machine. " +
		"It knows the machines, tools, materials and cutting data below and no others: on anything else, examine it with `trainer evaluate` before you rely on it.\n")
	if r.Balance != "" {
		fmt.Fprintf(&b, "\nIt learnt from %s", r.Balance)
		if w := r.Bounds; w != "" {
			b.WriteString(strings.Replace(w, "they have", "their wear is", 1))
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// gallery shows the drawings of the given files, two in a row.
func gallery(b *strings.Builder, folder string, ds []drawing, files ...string) {
	var shown []string
	for _, d := range ds {
		if slices.Contains(files, d.file) {
			shown = append(shown, fmt.Sprintf("![%s](<%s/%s>)", d.alt, folder, d.file))
		}
	}
	if len(shown) == 0 {
		return
	}
	if len(files) == 1 {
		fmt.Fprintf(b, "\n%s\n", shown[0])
		return
	}
	b.WriteString("\n| | |\n|---|---|\n")
	for i := 0; i < len(shown); i += 2 {
		right := ""
		if i+1 < len(shown) {
			right = shown[i+1]
		}
		fmt.Fprintf(b, "| %s | %s |\n", shown[i], right)
	}
}
