package card

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// reportOf returns a report with tools held out whose windows are decided so.
func reportOf(by map[string]score.Confusion, tools ...string) *Report {
	r := &Report{Tools: tools, Groups: map[string]score.Summary{}}
	for tool, m := range by {
		r.Groups[tool] = m.Summary()
	}
	return r
}

func validationOf(by map[string]score.Confusion, tools ...string) *classify.Validation {
	v := &classify.Validation{}
	all := score.NewConfusion(2)
	for _, tool := range tools {
		for i, row := range by[tool] {
			for k, n := range row {
				all[i][k] += n
			}
		}
		v.Groups = append(v.Groups, classify.GroupScores{Group: tool, Summary: by[tool].Summary()})
	}
	v.Pooled = all.Summary()
	return v
}

func TestBaseline(t *testing.T) {
	good := score.Confusion{{90, 10}, {5, 95}}
	bad := score.Confusion{{60, 40}, {30, 70}}
	calm := score.Confusion{{100, 0}, {0, 0}} // no worn window
	tools := []string{"a", "b", "c"}
	all := func(m score.Confusion) map[string]score.Confusion {
		return map[string]score.Confusion{"a": m, "b": m, "c": m}
	}
	for name, tc := range map[string]struct {
		ours, theirs map[string]score.Confusion
		want         string
		undefined    bool // the interval
	}{
		"equal on every tool":  {all(good), all(good), "logistic regression: G-mean 0.925 [0.92, 0.92]; the model is 0.000 ahead [0.000, 0.000]", false},
		"better on every tool": {all(good), all(bad), "logistic regression: G-mean 0.648 [0.65, 0.65]; the model is 0.277 ahead [0.277, 0.277]", false},
		"worse on every tool":  {all(bad), all(good), "the model is 0.277 behind [0.277, 0.277]", false},
		"one worn tool": {map[string]score.Confusion{"a": good, "b": calm, "c": calm}, map[string]score.Confusion{"a": bad, "b": calm, "c": calm},
			"ahead", true},
		"no worn tool": {all(calm), all(calm), "logistic regression: G-mean –", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := reportOf(tc.ours, tools...).NewBaseline("logistic regression", validationOf(tc.theirs, tools...))
			if got := b.Words(); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := math.IsNaN(float64(b.AheadInterval[0])); got != tc.undefined {
				t.Errorf("interval %v", b.AheadInterval)
			}
			if _, err := json.Marshal(b); err != nil {
				t.Error(err)
			}
		})
	}
}

// A model of several classes is compared as verdicts and alarms have it: healthy or not.
func TestBaselineOfClasses(t *testing.T) {
	three := score.Confusion{{90, 10, 0}, {5, 50, 45}, {0, 50, 50}}
	two := score.Confusion{{90, 10}, {5, 195}}
	r := reportOf(map[string]score.Confusion{"a": three, "b": three}, "a", "b")
	r.Classes = []string{"healthy", "worn", "broken"}
	b := r.NewBaseline("random forest", validationOf(map[string]score.Confusion{"a": two, "b": two}, "a", "b"))
	if b.Ahead != 0 || b.AheadInterval != [2]score.Figure{0, 0} {
		t.Errorf("the same verdicts: %v ahead, %v", b.Ahead, b.AheadInterval)
	}
}

// Tools that both methods find hard do not widen the interval of their difference.
func TestAheadIsPaired(t *testing.T) {
	ours := map[string]score.Confusion{"a": {{90, 10}, {10, 90}}, "b": {{50, 50}, {50, 50}}, "c": {{70, 30}, {30, 70}}}
	theirs := map[string]score.Confusion{"a": {{89, 11}, {11, 89}}, "b": {{49, 51}, {51, 49}}, "c": {{69, 31}, {31, 69}}}
	b := reportOf(ours, "a", "b", "c").NewBaseline("x", validationOf(theirs, "a", "b", "c"))
	if w := b.AheadInterval[1] - b.AheadInterval[0]; w > 1e-9 || math.Abs(float64(b.Ahead)-0.01) > 1e-9 {
		t.Errorf("%v ahead, %v", b.Ahead, b.AheadInterval)
	}
	if w := b.Interval.GMean[1] - b.Interval.GMean[0]; w < 0.2 {
		t.Errorf("the method's own interval is %v", b.Interval.GMean)
	}
}

func TestBaselineWords(t *testing.T) {
	r := &Report{}
	if got := r.BaselineWords(); got != "" {
		t.Errorf("%q of nothing", got)
	}
	r.NotCompared = "the rows are on disk"
	if got := r.BaselineWords(); got != "simpler methods were not compared: the rows are on disk" {
		t.Errorf("%q", got)
	}
}
