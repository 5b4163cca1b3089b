package train

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
)

func TestCounted(t *testing.T) {
	on := &classify.Weights{Columns: []classify.ColumnWeight{{Column: 3}, {Column: 1}}}
	off := &classify.Weights{Off: "why"}
	for name, tc := range map[string]struct {
		weights *classify.Weights
		exclude []int
		want    []bool
	}{
		"all alike":                     {off, nil, nil},
		"not known":                     {nil, nil, nil},
		"all but excluded":              {off, []int{0, 2}, []bool{false, true, false, true}},
		"no groups, excluded":           {nil, []int{1}, []bool{true, false, true, true}},
		"those with weights":            {on, nil, []bool{false, true, false, true}},
		"excluded have none":            {on, []int{2}, []bool{false, true, false, true}},
		"a weight is missing, not zero": {&classify.Weights{}, nil, []bool{false, false, false, false}},
	} {
		if got := counted(tc.weights, 4, tc.exclude); !slices.Equal(got, tc.want) || (got == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// What counts is said on one line and on the card, and why all features count alike.
func TestWordsOnFeatures(t *testing.T) {
	card := func(r *Report) string {
		var b strings.Builder
		r.followersMarkdown(&b, "x", nil)
		return b.String()
	}
	column := func(name string, tools int) classify.ColumnWeight {
		return classify.ColumnWeight{Name: name, Weight: 0.5, Mean: 0.9, SD: 0.2, Rho: slices.Repeat([]float64{0.9}, tools)}
	}
	many := &classify.Weights{Ended: 13}
	for i := range 13 {
		many.Tools = append(many.Tools, fmt.Sprint("T", i))
	}
	many.Columns = []classify.ColumnWeight{column("f", 13)}
	many.Columns[0].Rho[4] = -0.25
	six := &classify.Weights{Tools: []string{"A"}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		six.Columns = append(six.Columns, column(name, 1))
	}
	for name, tc := range map[string]struct {
		weights  *classify.Weights
		excluded []string
		line     string
		card     []string
	}{
		"not known": {nil, nil, "", nil},
		"off": {&classify.Weights{Off: "it was switched off"}, nil, "weighing features by how steadily they follow the life of every tool is off: it was switched off",
			[]string{"is off, so that all count alike: it was switched off.\n"}},
		"excluded alone": {nil, []string{"x|y"}, "", []string{"Excluded by `exclude` in `train.yaml`, so that they do not count: x\\|y.\n"}},
		"one":            {&classify.Weights{Tools: []string{"A"}, Columns: []classify.ColumnWeight{column("a", 1)}}, nil, "1 of 9 features follows the life of every tool: a", []string{"| a | 0.500 | 0.90 | 0.20 | 0.90 |\n"}},
		"five are named": {six, nil, "6 of 9 features follow the life of every tool: a, b, c, d and e count most", []string{"6 of 9 features count, the others do not.", "| f | 0.500"}},
		"many tools": {many, nil, "1 of 9 features follows the life of every tool: f",
			[]string{"13 tools were looked at", "| spread | least ρ of a tool | greatest |\n|---|---:|---:|---:|---:|---:|\n| f | 0.500 | 0.90 | 0.20 | -0.25 | 0.90 |\n"}},
	} {
		r := &Report{Features: 9, Excluded: tc.excluded, Fit: &classify.Report{Weights: tc.weights}}
		if got := r.followers(); got != tc.line {
			t.Errorf("%s: %q, want %q", name, got, tc.line)
		}
		text := card(r)
		if tc.card == nil && text != "" {
			t.Errorf("%s: the card says %q", name, text)
		}
		for _, want := range tc.card {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the card does not say %q:\n%s", name, want, text)
			}
		}
		if _, ok := r.followersDrawing(); ok != (tc.weights != nil && len(tc.weights.Columns) > 0) {
			t.Errorf("%s: drawn %v", name, ok)
		}
	}
}

func TestWordsOnWindowsWithoutALabel(t *testing.T) {
	on := &classify.Weights{Columns: []classify.ColumnWeight{{}}}
	for want, fit := range map[string]classify.Report{
		"": {Weights: on},
		"7 windows of 2 tools without a label fitted encoder, weights and pre-training; 3 of them, the first ones of tools without any label, counted as healthy": {Weights: on, Unlabelled: &classify.Bare{Rows: 7, Groups: 2, Healthy: 3}},
		"7 windows of 1 tool without a label fitted encoder and pre-training":                                                                                     {Weights: &classify.Weights{Off: "why"}, Unlabelled: &classify.Bare{Rows: 7, Groups: 1}},
	} {
		r := &Report{Fit: &fit}
		if got := r.unlabelled(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The card says that a mode was kept because no others were tried, what is kept with few
// worn tools, and that rows were put where wear jumps over the limit.
func TestCardOnChoices(t *testing.T) {
	r := fixedReport(t)
	if text := r.Markdown("x"); strings.Contains(text, "Wear jumps") {
		t.Error("the card tells of a jump where there is none")
	}
	r.Fit.Views, r.Fit.Costs.Rule, r.Fit.Between = nil, "the inverse prior alone", 7
	text := r.Markdown("x")
	for _, want := range []string{"(`auto`), which kept to the first: ", "at most 64 MiB", "what is kept is the inverse prior alone. A group is a tool.\n",
		"Wear jumps over the limit from one window to the next: fine-tuning learnt from 7 rows on the way between such windows too. They are in no score"} {
		if !strings.Contains(text, want) {
			t.Errorf("the card does not say %q", want)
		}
	}
	r.auto = false
	if text := r.Markdown("x"); strings.Contains(text, "left to the trainer") || strings.Contains(text, "transductive") {
		t.Error("the card says that a mode was chosen, or a score transductive")
	}
}

// withoutWear returns a recording of the lathe without the wear of some tools.
func withoutWear(text string, tools ...string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if tool, _, _ := strings.Cut(line, ","); slices.Contains(tools, tool) {
			lines[i] = line[:strings.LastIndex(line, ",")+1]
		}
	}
	return strings.Join(lines, "\n")
}

// Tools without labels are learnt from: card, summary and report say so, and a score for
// which networks saw windows of the tools held out is called transductive. Names of features
// are next to their columns in the report.
func TestRunOnUnlabelledTools(t *testing.T) {
	lives := []life{{"A", 48, 420}, {"B", 45, 390}, {"C", 40, 90}, {"D", 50, 450}, {"U", 44, 400}, {"V", 46, 410}}
	for _, transductive := range []bool{false, true} {
		j := latheJob(t)
		quick(&j.Config)
		j.Config.Network.Pretrain.Epochs = 1
		j.Config.Evaluate = Evaluate{ByTool: "leave-one-out", Transductive: transductive}
		j.Inputs = []Input{latheInput(t, j.Layout, "lives", "lathe", withoutWear(latheCSV(lives), "U", "V"))}
		m, r, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Windows.Bare, []string{"U", "V"}) || len(r.Windows.Unused) != 0 || r.Windows.Unlabelled != 44+46-2*5 {
			t.Errorf("windows %+v", r.Windows)
		}
		card, words := r.Markdown("x"), r.Summary()
		want := "80 windows of 2 tools without a label fitted encoder, weights and pre-training; 19 of them, the first ones of tools without any label, counted as healthy"
		if !strings.Contains(card, want+". They are in no score") || !strings.Contains(words, "\n"+want+"\n") {
			t.Errorf("card or summary do not say %q:\n%s", want, words)
		}
		if _, of := Headline(m); strings.Contains(card, "This score is transductive") != transductive || strings.Contains(of, ", transductive: ") != transductive || strings.Contains(r.Split, "transductive") != transductive {
			t.Errorf("transductive %v: split %q, headline %q", transductive, r.Split, of)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Fit.Weights.Columns {
			if c.Name != m.NewJudge().FeatureNames()[c.Column] || !strings.Contains(string(text), fmt.Sprintf(`{"column":%d,"name":%q,"weight":`, c.Column, c.Name)) {
				t.Errorf("column %d is named %q", c.Column, c.Name)
			}
		}
		for what, counts := range map[string][]bool{"novelty": m.Novelty.Counts(), "weights": counted(r.Fit.Weights, r.Features, nil)} {
			if n := len(r.Fit.Weights.Columns); n == 0 || !slices.Equal(counts, counted(r.Fit.Weights, r.Features, nil)) {
				t.Errorf("%d features count; for %s %v", n, what, counts)
			}
		}
		for f, scale := range m.Drift.Scale {
			if scale > 0 != m.Novelty.Counts()[f] {
				t.Errorf("feature %d counts for one of drift and novelty: %v, %v", f, m.Drift.Scale, m.Novelty.Counts())
			}
		}
	}
}
