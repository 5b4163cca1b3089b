package study

import (
	"math"
	"strings"
	"testing"
)

func TestVerdict(t *testing.T) {
	s := &Set{Rare: "state=worn", Y: append(make([]int, 800), ones(100)...)}
	method := func(name string, g, sd float64) Summary {
		return Summary{Method: name, GMean: g, SD: sd, Recall: g, Specificity: g}
	}
	for name, tc := range map[string]struct {
		all  []Summary
		want []string // sentences
	}{
		"the best": {[]Summary{method("ecs-dbn", 0.9, 0.01), method("welm-w1", 0.8, 0.01), method("dbn", 0.7, 0.01)},
			[]string{"? Yes: it is better than every other method.", "Of 100 rows of state=worn it finds 90; of 100 others it takes 10 for state=worn.", "Costs are worth 0.200: the same network without them, dbn, has 0.700.", "only 100 rows are of state=worn"}},
		"one as good": {[]Summary{method("welm-w1", 0.905, 0.01), method("ecs-dbn", 0.9, 0.01), method("dbn", 0.7, 0.01)},
			[]string{"? Yes, no method is better; but as good are welm-w1.\n"}},
		"draws that scatter": {[]Summary{method("csdbn", 0.96, 0.08), method("ecs-dbn", 0.9, 0.01)},
			[]string{"? Yes, no method is better; but as good are csdbn.\n"}},
		"one is better": {[]Summary{method("smote-dbn", 0.96, 0.01), method("ecs-dbn", 0.9, 0.01)},
			[]string{"? No: better than its 0.900 by G-mean are smote-dbn (0.960).\n"}},
		"no costs needed": {[]Summary{method("dbn", 0.91, 0.01), method("ecs-dbn", 0.9, 0.01)},
			[]string{"Costs are worth nothing"}},
		"noise": {[]Summary{method("welm-w1", 0.51, 0.01), method("ecs-dbn", 0.5, 0.01)},
			[]string{"? No, and nothing here is: its G-mean of 0.500 is no more than what tossing a coin has"}},
		"nothing learnt, but by another": {[]Summary{method("welm-w1", 0.9, 0.01), method("ecs-dbn", 0, 0)},
			[]string{"? No: better than its 0.000 by G-mean are welm-w1 (0.900).\n"}},
	} {
		got := Verdict(s, tc.all)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
		if strings.Contains(got, "NaN") || strings.Contains(got, "%!") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := Verdict(s, []Summary{method("ecs-dbn", 1, 0)}) + Verdict(s, []Summary{method("dbn", 1, 0), method("csdbn", 1, 0)}); got != "" {
		t.Errorf("a verdict on one method, or without ECS-DBN: %s", got)
	}
}

// The standard error by the delta method is the spread of what is drawn.
func TestStandardError(t *testing.T) {
	const recall, specificity, trials = 0.8, 0.9, 20_000
	n := [2]float64{400, 60}
	rng := newRand(1)
	draw := func(p, n float64) float64 {
		k := 0.
		for range int(n) {
			if rng.Float64() < p {
				k++
			}
		}
		return k / n
	}
	var sum, square float64
	for range trials {
		g := math.Sqrt(draw(recall, n[1]) * draw(specificity, n[0]))
		sum, square = sum+g/trials, square+g*g/trials
	}
	want := math.Sqrt(square - sum*sum)
	if got := standardError(Summary{Recall: recall, Specificity: specificity}, n); math.Abs(got/want-1) > 0.05 {
		t.Errorf("%v, drawn %v", got, want)
	}
	if got := standardError(Summary{Recall: 1, Specificity: 1}, n); got < 0.005 || got > 0.05 {
		t.Errorf("%v where all is right: 60 rows say no more than that", got)
	}
}

func ones(n int) []int {
	y := make([]int, n)
	for i := range y {
		y[i] = 1
	}
	return y
}
