package card

import (
	"math"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// viewScore is what a mode gives on tools of ten healthy and ten faulty windows each, of
// which so many are decided rightly.
func viewScore(loss []float64, right []int) classify.ViewScore {
	var v classify.ViewScore
	for t, l := range loss {
		v.Loss += l / float64(len(loss))
		v.Groups = append(v.Groups, classify.ViewGroup{
			Group: string(rune('A' + t)), Loss: []float64{l, l},
			Confusion: score.Confusion{{right[t], 10 - right[t]}, {10 - right[t], right[t]}},
		})
	}
	return v
}

// textOf returns the texts and the rows of the tables of a page.
func textOf(p *page) string {
	var b strings.Builder
	for _, s := range p.Sections {
		for _, of := range s.Blocks {
			for _, span := range of.Text {
				b.WriteString(span.Text)
			}
			if of.Table != nil {
				for _, row := range of.Table.Rows {
					b.WriteString("\n" + strings.Join(row, " | "))
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestModeAdvice(t *testing.T) {
	same := func(v, n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	for name, tc := range map[string]struct {
		kept, other classify.ViewScore
		want        string
	}{
		"clearly better": {
			viewScore([]float64{.4, .5, .4, .6}, same(7, 4)), viewScore([]float64{.2, .3, .2, .3}, same(9, 4)),
			"off, encoding committee has a G-mean of 0.900 and a loss of 0.250 on tools held out, where log, which is kept, has 0.700 and 0.475 (95 % over tools: less by 0.200 to 0.275): set `reference.mode` to off and `network.encoding` to committee in train.yaml and train again",
		},
		"of three tools": {
			viewScore([]float64{.4, .5, .4}, same(7, 3)), viewScore([]float64{.2, .3, .2}, same(9, 3)),
			"",
		},
		"better on one tool, worse on another": {
			viewScore([]float64{.4, .5, .4, .6}, same(7, 4)), viewScore([]float64{.1, .9, .1, .7}, []int{10, 4, 10, 6}),
			"",
		},
		"no better": {viewScore([]float64{.4, .5, .4, .6}, same(7, 4)), viewScore([]float64{.4, .6, .4, .6}, same(7, 4)), ""},
		"better on the whole, but for one tool of four": {
			viewScore([]float64{.4, .5, .4, .6}, same(7, 4)), viewScore([]float64{.2, .3, .2, .7}, same(9, 4)),
			"",
		},
	} {
		// The one that is kept stands second: its place does not matter.
		r := &Report{Fit: &classify.Report{}}
		r.SetModes([]ModeScore{{Mode: model.ReferenceOff, Encoding: classify.Committee}, {Mode: model.ReferenceLog, Encoding: classify.Standard}}, []classify.ViewScore{tc.other, tc.kept}, 1)
		if got := r.Modes.Advice(); got != tc.want {
			t.Errorf("%s: %q; want %q", name, got, tc.want)
		}
		if r.Modes[0].Kept || !r.Modes[1].Kept {
			t.Errorf("%s: kept are %+v", name, r.Modes)
		}
		p := new(page)
		p.section("data", "Data")
		r.views(p)
		shown := textOf(p)
		advice := "No mode is better than the one kept by more than chance."
		if tc.want != "" {
			advice = capital(tc.want)
		}
		for _, want := range []string{"\noff, encoding committee | ", "\nlog, kept | ", strings.ReplaceAll(advice, "`", "")} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: the card lacks %q:\n%s", name, want, shown)
			}
		}
		text := r.Modes.text()
		if !strings.Contains(text, "kept") || strings.Contains(text, "set `") {
			t.Errorf("%s: the console shows\n%s", name, text)
		}
	}
}

// Intervals hold the figures, and one tool has none.
func TestModeIntervals(t *testing.T) {
	r := &Report{Fit: &classify.Report{}}
	two, one := viewScore([]float64{.4, .8}, []int{9, 7}), viewScore([]float64{.4}, []int{9})
	r.SetModes([]ModeScore{{Mode: model.ReferenceLog}}, []classify.ViewScore{two}, 0)
	m := r.Modes[0]
	if m.GMean != 0.8 || math.Abs(float64(m.Loss)-0.6) > 1e-12 || m.GMeanInterval != [2]score.Figure{0.7, 0.9} || math.Abs(float64(m.LossInterval[0])-.4)+math.Abs(float64(m.LossInterval[1])-.8) > 1e-12 {
		t.Errorf("two tools: %+v", m)
	}
	// A loss of one class that only one tool has is undefined in draws without that tool.
	two.Groups[1].Loss[1] = math.NaN()
	r.SetModes([]ModeScore{{Mode: model.ReferenceLog}}, []classify.ViewScore{two}, 0)
	if m := r.Modes[0]; !(m.LossInterval[0] >= .4-1e-12 && m.LossInterval[1] <= .6+1e-12) {
		t.Errorf("a class of one tool: %+v", m)
	}
	r.SetModes([]ModeScore{{Mode: model.ReferenceLog}}, []classify.ViewScore{one}, 0)
	if m := r.Modes[0]; m.GMeanInterval[0] == m.GMeanInterval[0] || m.LossInterval[0] == m.LossInterval[0] || m.GMean != 0.9 {
		t.Errorf("one tool: %+v", m)
	}
}

// Without scores of modes there is no table and no advice.
func TestModesThatWereNotScored(t *testing.T) {
	r := &Report{Fit: &classify.Report{}}
	if advice := r.Modes.Advice(); advice != "" || r.Modes.text() != "" {
		t.Errorf("advice %q, table %q", advice, r.Modes.text())
	}
}

func TestHeldChoices(t *testing.T) {
	if got := heldChoices(&classify.CostReport{}); got != "" {
		t.Errorf("nothing was compared: %q", got)
	}
	c := &classify.CostReport{Metric: score.GMean, Held: []classify.HeldChoice{{Name: "half_way", Fitness: 0.7}, {Name: "jade", Fitness: 0.75}}}
	if got, want := heldChoices(c), "On rows held out from the choice of costs: half way 0.700 and jade 0.750 (gmean). The greater one is kept"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
