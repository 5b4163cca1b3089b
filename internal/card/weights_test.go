package card

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
)

// One line and the card say which features count, or why all count alike.
func TestWordsOnFeatures(t *testing.T) {
	card := func(r *Report) string {
		p := new(page)
		r.followersTo(p)
		return wordsOf(p)
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
		"excluded alone": {nil, []string{"x|y"}, "", []string{"Excluded by `exclude` in `train.yaml`, so that they do not count: x|y.\n"}},
		"one":            {&classify.Weights{Tools: []string{"A"}, Columns: []classify.ColumnWeight{column("a", 1)}}, nil, "1 of 9 features follows the life of every tool: a", []string{"\na | 0.500 | 0.90 | 0.20 | 0.90\n"}},
		"five are named": {six, nil, "6 of 9 features follow the life of every tool: a, b, c, d and e count most", []string{"6 of 9 features count, the others do not.", "\nf | 0.500"}},
		"many tools": {many, nil, "1 of 9 features follows the life of every tool: f",
			[]string{"13 tools were looked at", " | spread | least ρ of a tool | greatest\nf | 0.500 | 0.90 | 0.20 | -0.25 | 0.90\n"}},
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
	if text := wordsOf(r.page()); strings.Contains(text, "Wear jumps") {
		t.Error("the card mentions a jump, but the wear has none")
	}
	r.Fit.Views, r.Fit.Costs.Rule, r.Fit.Between = nil, "the inverse prior alone", 7
	text := wordsOf(r.page())
	for _, want := range []string{"(`auto`), which kept to the first: ", "at most 64 MiB", "what is kept is the inverse prior alone. A group is a tool.\n",
		"Wear jumps over the limit from one window to the next: fine-tuning learnt from 7 rows on the way between such windows too. They are in no score"} {
		if !strings.Contains(text, want) {
			t.Errorf("the card does not say %q", want)
		}
	}
	r.ViewLimitMiB = 0
	if text := wordsOf(r.page()); strings.Contains(text, "left to the trainer") || strings.Contains(text, "transductive") {
		t.Error("the card says that a mode was chosen, or a score transductive")
	}
}
