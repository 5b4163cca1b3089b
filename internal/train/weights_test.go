package train

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
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
	t.Parallel()
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
		shown, words := cardText(t, r), r.Summary()
		want := "80 windows of 2 tools without a label fitted encoder, weights and pre-training; 19 of them, the first ones of tools without any label, counted as healthy"
		if !strings.Contains(shown, want+". They are in no score") || !strings.Contains(words, "\n"+want+"\n") {
			t.Errorf("card or summary do not say %q:\n%s", want, words)
		}
		if _, of := card.Scores(m); strings.Contains(shown, "This score is transductive") != transductive || strings.Contains(of, ", transductive: ") != transductive || strings.Contains(r.Split, "transductive") != transductive {
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
