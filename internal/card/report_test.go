package card

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/jade"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// fixedReport is a report of made-up figures, so that its bytes are the same
// on every CPU.
func fixedReport(t *testing.T) *Report {
	t.Helper()
	config, err := os.ReadFile("testdata/config.json") // the default one
	if err != nil {
		t.Fatal(err)
	}
	scores := func(tn, fp, fn, tp int) score.Summary {
		return score.Confusion{{tn, fp}, {fn, tp}}.Summary()
	}
	random := scores(148, 2, 1, 49)
	r := &Report{
		Model: "ecs-dbn-0123456789ab", Label: wear.DefaultRule().String(), Random: &random, Leak: leakNote,
		Windows: Tally{
			Windows: 260, Gaps: 1, NotCutting: 20, SensorFault: 3, Learning: 30, Unlabelled: 7, Missing: 12, Used: 200,
			Unused: []string{"T4"}, Bare: []string{"T5"}, Join: "200 labelled, 7 not: 7 after the last measurement",
		},
		Features: 4,
		Fit: &classify.Report{
			Rows: 200, Columns: 4, Inputs: 4, ClassCounts: []int{150, 50}, Groups: 3, Held: scores(146, 4, 3, 47),
			Warnings: []string{"something about the fit"},
			Weights: &classify.Weights{Tools: []string{"T1", "T|2", "T5"}, Ended: 3, Columns: []classify.ColumnWeight{
				{Column: 2, Name: "thrust.RMS", Weight: 0.49, Mean: 0.9, SD: 0.2, Rho: []float64{0.95, 0.9, 0.85}},
				{Column: 0, Name: "a|b", Weight: 0.0625, Mean: -0.5, SD: 0.25, Rho: []float64{-0.7, -0.5, -0.3}},
			}},
			Unlabelled: &classify.Bare{Rows: 7, Groups: 2, Healthy: 1},
			View:       "difference",
			Views:      []classify.ViewScore{{Name: "log", Loss: 0.2104}, {Name: "ratio", Loss: 0.25}, {Name: "difference", Loss: 0.15}, {Name: "off", Loss: 0.31}},
			Costs: classify.CostReport{
				Posteriors: "out-of-fold by group", Folds: 2, Plateau: [2]score.Figure{0.2, 0.3}, Kept: 0.25,
				Choices: []classify.Choice{
					{Name: "argmax", Costs: classify.CostVector{0, 0}, GMean: 0.9, Accuracy: 0.95},
					{Name: "kept", Costs: classify.CostVector{0.6667, 0}, GMean: 0.96, Accuracy: 0.965},
				},
				Search: classify.SearchReport{Variant: jade.Published, Generations: 12, Evaluations: 360, Stopped: jade.Stalled},
			},
		},
		Job: model.Provenance{Program: "flank 1.2.3", Seed: 1, Config: config, Data: []model.DataSet{
			{Name: "day|one", SHA256: strings.Repeat("ab", 32), Windows: 200}, {Name: "day two", SHA256: strings.Repeat("cd", 32), Windows: 60},
		}},
		Cutting: "while the level of thrust is at 123.5 or more", Reference: model.ReferenceSpec{Windows: 10, Mode: model.ReferenceDifference}, ViewLimitMiB: 64,
	}
	r.Warnings, r.Robustness = r.Windows.Warnings(), tried(madeUpTrials()...)
	r.SetByTool(&classify.Validation{
		Pooled: scores(144, 6, 4, 46),
		Groups: []classify.GroupScores{{Group: "T1", Summary: scores(44, 6, 0, 20)}, {Group: "T|2", Summary: scores(50, 0, 4, 26)}, {Group: "T3", Summary: scores(50, 0, 0, 0)}},
	}, "leave-one-out", 3)
	return r
}

// wordsOf returns the words of a page, and where it has drawings.
func wordsOf(p *page) string {
	var b strings.Builder
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "# %s (#%s)\n\n", s.Title, s.ID)
		for _, k := range s.Blocks {
			if k.Note {
				b.WriteString("Note: ")
			}
			for _, span := range k.Text {
				if span.Code {
					span.Text = "`" + span.Text + "`"
				}
				b.WriteString(span.Text)
			}
			if k.Table != nil {
				for _, row := range append([][]string{k.Table.Head}, k.Table.Rows...) {
					b.WriteString(strings.Join(row, " | ") + "\n")
				}
			}
			for _, f := range k.Figures {
				title, _, _ := strings.Cut(string(f), "</title>")
				b.WriteString("[" + title[strings.Index(title, "<title>")+len("<title>"):] + "]")
			}
			b.WriteString(k.Code + "\n\n")
		}
	}
	return b.String()
}

func TestReportForPeople(t *testing.T) {
	r := fixedReport(t)
	r.Held = madeUp()
	r.Decide(LivesOf(r.Held.Group, r.Held.Class, r.Held.Score, nil, nil), alarm.Default, second, 300)
	golden.Check(t, "report.txt", wordsOf(r.page()))
	golden.Check(t, "summary.txt", r.Summary()+"\n")
	r.Pooled, r.Groups, r.Random, r.Split = nil, nil, nil, ""
	r.Decide(LivesOf(r.Held.Group, r.Held.Class, r.Held.Score, nil, nil), alarm.Default, second, 300)
	golden.Check(t, "summary-unscored.txt", r.Summary()+"\n")
}

// The report of three classes for people is kept as golden files.
func TestReportOfThreeClasses(t *testing.T) {
	r := fixedReport(t)
	scores := func(rows ...[]int) score.Summary {
		s := score.Confusion(rows).Summary()
		for k := range s.AUCs {
			s.AUCs[k] = score.Figure(0.9 + float64(k)/100)
		}
		return s
	}
	rule := wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn", VBMaxUM: 120}, {Name: "broken", VBMaxUM: 280}}}
	random := scores([]int{118, 2, 0}, []int{1, 48, 1}, []int{0, 1, 29})
	r.Classes, r.Label, r.Random = []string{"healthy", "worn", "b|n"}, rule.String(), &random
	r.Fit.Held = scores([]int{110, 8, 2}, []int{5, 40, 5}, []int{0, 2, 28})
	r.Fit.Costs.Plateau, r.Fit.Costs.Kept = [2]score.Figure{score.Figure(math.NaN()), score.Figure(math.NaN())}, score.Figure(math.NaN())
	for i := range r.Fit.Costs.Choices {
		r.Fit.Costs.Choices[i].Costs = classify.CostVector{0.5, 0.25, 0}
	}
	r.Tools = nil
	r.SetByTool(&classify.Validation{
		Pooled: scores([]int{100, 15, 5}, []int{10, 35, 5}, []int{1, 4, 25}),
		Groups: []classify.GroupScores{{Group: "T1", Summary: scores([]int{50, 10, 5}, []int{5, 20, 5}, []int{1, 4, 25})}, {Group: "T2", Summary: scores([]int{50, 5, 0}, []int{5, 15, 0}, []int{0, 0, 0})}},
	}, "leave-one-out", 2)
	r.SetFaulty()
	golden.Check(t, "classes.txt", wordsOf(r.page()))
	golden.Check(t, "classes-summary.txt", r.Summary()+"\n")
	r.Pooled, r.Groups, r.Random, r.Split = nil, nil, nil, ""
	r.Interval, r.FaultyInterval = nil, nil
	r.SetFaulty()
	golden.Check(t, "classes-unscored.txt", r.Summary()+"\n")
}
