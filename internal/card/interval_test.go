package card

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/score"
)

// The interval over tools of scores: no width where tools agree, the tools that stand out
// where they do not, and undefined where a figure rests on fewer than two tools.
func TestIntervalOfScores(t *testing.T) {
	undefined := math.NaN()
	good, missing, never := score.Confusion{{40, 0}, {0, 10}}, score.Confusion{{40, 0}, {10, 0}}, score.Confusion{{30, 10}, {0, 0}}
	for name, tc := range map[string]struct {
		tools                      []score.Confusion
		gmean, recall, specificity [2]float64
	}{
		"all alike":                      {[]score.Confusion{good, good, good}, [2]float64{1, 1}, [2]float64{1, 1}, [2]float64{1, 1}},
		"one of two misses all":          {[]score.Confusion{good, missing}, [2]float64{0, 1}, [2]float64{0, 1}, [2]float64{1, 1}},
		"a single tool ever gets faulty": {[]score.Confusion{good, never, never}, [2]float64{undefined, undefined}, [2]float64{undefined, undefined}, [2]float64{0.75, 1}},
		"no tool does":                   {[]score.Confusion{never, never}, [2]float64{undefined, undefined}, [2]float64{undefined, undefined}, [2]float64{0.75, 0.75}},
		// Draws of the third tool alone, one of 27, have no recall, and are left out.
		"two of three do": {[]score.Confusion{good, good, never}, [2]float64{math.Sqrt(100. / 120), 1}, [2]float64{1, 1}, [2]float64{0.75, 1}},
	} {
		v := IntervalOf(tc.tools)
		if v.Tools != len(tc.tools) || v.Draws != 2000 || v.Recalls != nil {
			t.Errorf("%s: %+v", name, v)
		}
		for figure, of := range map[string][2][2]float64{
			"G-mean":      {{float64(v.GMean[0]), float64(v.GMean[1])}, tc.gmean},
			"recall":      {{float64(v.Recall[0]), float64(v.Recall[1])}, tc.recall},
			"specificity": {{float64(v.Specificity[0]), float64(v.Specificity[1])}, tc.specificity},
		} {
			for end := range 2 {
				if got, want := of[0][end], of[1][end]; !(math.Abs(got-want) < 1e-12) && !(got != got && want != want) {
					t.Errorf("%s: %s from %v to %v, want %v", name, figure, of[0][0], of[0][1], of[1])
				}
			}
		}
	}
	if v := IntervalOf([]score.Confusion{good}); v != nil {
		t.Errorf("of one tool: %+v", v)
	}
	if words := (*ToolInterval)(nil).Words(nil, &score.Summary{}); words != "" {
		t.Errorf("no interval, %q", words)
	}
}

// Of several classes each recall has an interval.
func TestIntervalOfThreeClasses(t *testing.T) {
	tools := []score.Confusion{
		{{10, 0, 0}, {0, 10, 0}, {0, 0, 10}},
		{{10, 0, 0}, {10, 0, 0}, {0, 0, 0}},
	}
	v := IntervalOf(tools)
	pooled := score.Confusion{{20, 0, 0}, {10, 10, 0}, {0, 0, 10}}.Summary()
	const want = "G-mean 0.794, recall 1.000 [1.00, 1.00] of healthy, 0.500 [0.00, 1.00] of worn and 1.000 of broken over 2 tools"
	if got := v.Words([]string{"healthy", "worn", "broken"}, &pooled); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	two := IntervalOf(twoClasses(tools))
	if two.Recalls != nil || float64(two.Recall[0]) != 0 || float64(two.Recall[1]) != 1 || float64(two.Specificity[0]) != 1 {
		t.Errorf("healthy against all others: %+v", two)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	const fields = `{"tools":2,"draws":2000,"gmean":[null,null],"recall":[null,null],"specificity":[1,1],"recalls":[[1,1],[0,1],[null,null]]}`
	if string(text) != fields {
		t.Errorf("%s, want %s", text, fields)
	}
}

// Of tools that have as many windows of each class, the interval holds the figure of all
// tools together, is the same again, and does not depend on the number of windows.
func TestIntervalHoldsThePoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "tools")
		const healthy, faulty = 60, 20
		var tools, twice []score.Confusion
		pooled := score.NewConfusion(2)
		for range n {
			tn, tp := rapid.IntRange(0, healthy).Draw(t, "tn"), rapid.IntRange(0, faulty).Draw(t, "tp")
			m := score.Confusion{{tn, healthy - tn}, {faulty - tp, tp}}
			tools = append(tools, m)
			double := score.NewConfusion(2)
			for i := range m {
				for j, c := range m[i] {
					pooled[i][j] += c
					double[i][j] = 2 * c
				}
			}
			twice = append(twice, double)
		}
		s, v := pooled.Summary(), IntervalOf(tools)
		for name, of := range map[string]struct {
			point score.Figure
			in    [2]score.Figure
		}{"recall": {s.Recall, v.Recall}, "specificity": {s.Specificity, v.Specificity}, "G-mean": {s.GMean, v.GMean}} {
			if !(of.in[0] <= of.point && of.point <= of.in[1]) {
				t.Fatalf("%s %v is not within %v", name, of.point, of.in)
			}
		}
		again, double := IntervalOf(tools), IntervalOf(twice)
		if again.GMean != v.GMean || again.Recall != v.Recall || again.Specificity != v.Specificity {
			t.Fatalf("%+v, then %+v", v, again)
		}
		if double.Recall != v.Recall || double.Specificity != v.Specificity {
			t.Fatalf("with twice the windows %+v, before %+v", double, v)
		}
	})
}
