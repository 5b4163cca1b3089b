package train

import (
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// With two tools that were worn out the estimated wear decides, in the model and in the
// folds that hold tools out; with three the classifier does, and so it does where labels
// are classes or there are tools without labels that were worn out too.
func TestVerdictByWearOfFewTools(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tools []life
		want  bool
	}{
		"two worn tools":                {[]life{{"A", 48, 420}, {"B", 40, 380}}, true},
		"one, and one that stays young": {[]life{{"A", 48, 420}, {"B", 30, 90}}, true},
		"three":                         {[]life{{"A", 48, 420}, {"B", 40, 380}, {"C", 44, 400}}, false},
		"three, one of them half-way":   {[]life{{"A", 48, 420}, {"B", 40, 380}, {"C", 44, 170}}, false},
	} {
		j := latheJob(t)
		j.Inputs = []Input{latheInput(t, j.Layout, "few", "lathe", latheCSV(tc.tools))}
		quick(&j.Config)
		j.Config.Network.Hidden, j.Config.Network.FineTune.Epochs = []int{4}, 60 // until it has learnt: else it is chance which way it points
		m, r, err := Run(t.Context(), j)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (m.ByWear != nil) != tc.want {
			t.Errorf("%s: decided by wear: %+v", name, m.ByWear)
		}
		if said := strings.Contains(cardText(t, r), "the verdict comes from the estimated wear, cut at 300 µm"); said != tc.want {
			t.Errorf("%s: the card says so: %v", name, said)
		}
		if tc.want && m.Conformal != nil {
			t.Errorf("%s: conformal sets of a classifier that does not decide", name)
		}
		// The model judges its own data as the report of an exam says, by wear or not.
		e, err := Exam{Model: m, Inputs: j.Inputs, Alarm: alarm.Default}.Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.Unknown != nil && e.Unknown.Decided.GMean < 0.8 || e.Pooled.GMean < 0.8 {
			t.Errorf("%s: G-mean %v on its own data", name, e.Pooled.GMean)
		}
	}
}

// Of three tools each fold that holds one out has two left, and the estimate of wear
// decides there as it would in a model of those two.
func TestFoldsByWear(t *testing.T) {
	j := latheJob(t)
	var tools []Input
	head, rows, _ := strings.Cut(latheCSV([]life{{"A", 48, 420}, {"B", 40, 380}, {"C", 44, 400}}), "\n") // of one draw, or they would be copies
	for _, tool := range []string{"A", "B", "C"} {
		text := head + "\n"
		for row := range strings.Lines(rows) {
			if strings.HasPrefix(row, tool+",") {
				text += row
			}
		}
		tools = append(tools, latheInput(t, j.Layout, tool, "lathe", text))
	}
	j.Inputs = tools
	quick(&j.Config)
	m, r, err := Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if m.ByWear != nil || r.Pooled == nil {
		t.Fatalf("by wear %v, held out %v", m.ByWear, r.Pooled)
	}
	// Headline, verdict, card and console say that the folds are not of the model, and why no one knows how many windows are unknown.
	const note = "3 of the 3 folds that hold out tools are decided by estimated wear"
	h := card.HeadlineOf(m)
	if !strings.Contains(h.Split, note) || !strings.Contains(h.Verdict.Text(), note) || h.Verdict.Level > card.Shadow || strings.Count(cardText(t, r), note) < 3 || !strings.Contains(r.Summary(), note) {
		t.Errorf("split %q, verdict %s", h.Split, h.Verdict.Text())
	}
	if words := r.Unknown.Words(); strings.Contains(words, "no tools were held out") {
		t.Errorf("%q", words)
	}
	two := latheJob(t)
	two.Inputs = tools[1:]
	quick(&two.Config)
	if m, _, err = Run(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	e, err := Exam{Model: m, Inputs: tools[:1], Alarm: alarm.Default}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, got := e.Unknown, r.Groups["A"]
	decided := e.Pooled
	if want != nil {
		decided = *want.Decided
	}
	if got.Recall != decided.Recall || got.Specificity != decided.Specificity {
		t.Errorf("tool A held out: recall %v, specificity %v; by a model of the others %v and %v", got.Recall, got.Specificity, decided.Recall, decided.Specificity)
	}
}
