package study

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
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
		"the best": {[]Summary{method("ecs-dbn", 0.9, 0.01), method("logistic", 0.8, 0.01), method("extra-trees", 0.7, 0.01)},
			[]string{"? Yes: it is better than every other method.", "Of 100 rows of state=worn it finds 90; of 100 others it takes 10 for state=worn.", "only 100 rows are of state=worn"}},
		"one as good": {[]Summary{method("logistic", 0.905, 0.01), method("ecs-dbn", 0.9, 0.01), method("extra-trees", 0.7, 0.01)},
			[]string{"? Yes, no method is better; but as good, as far as the data shows, are logistic.\n"}},
		"draws that scatter": {[]Summary{method("random-forest", 0.96, 0.08), method("ecs-dbn", 0.9, 0.01)},
			[]string{"? Yes, no method is better; but as good, as far as the data shows, are random-forest.\n"}},
		"one is better": {[]Summary{method("extra-trees", 0.96, 0.01), method("ecs-dbn", 0.9, 0.01)},
			[]string{"? No: better than its 0.900 by G-mean are extra-trees (0.960).\n"}},
		"noise": {[]Summary{method("logistic", 0.51, 0.01), method("ecs-dbn", 0.5, 0.01)},
			[]string{"? No, and nothing here is: its G-mean of 0.500 is not above a tossed coin's, 0.5"}},
		"nothing learnt, but by another": {[]Summary{method("logistic", 0.9, 0.01), method("ecs-dbn", 0, 0)},
			[]string{"? No: better than its 0.000 by G-mean are logistic (0.900).\n"}},
	} {
		got := newJudgement(s, nil).sentences(tc.all)
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
		if strings.Contains(got, "NaN") || strings.Contains(got, "%!") {
			t.Errorf("%s: %s", name, got)
		}
	}
	cell := func(method string) Cell { return Cell{Method: method, Trial: 1, Fold: 1, TP: 1, TN: 1} }
	if got := Verdict(s, []Cell{cell("ecs-dbn")}) + Verdict(s, []Cell{cell("logistic"), cell("random-forest")}); got != "" {
		t.Errorf("a verdict on one method, or without ECS-DBN: %s", got)
	}
}

// byTool returns the cells of a method on tools with 100 worn rows each, of which so
// many are found, and 1000 others, of which 900 are.
func byTool(method string, found ...int) (cells []Cell) {
	for i, n := range found {
		cells = append(cells, Cell{Method: method, Trial: 1, Fold: i + 1, TP: n, FN: 100 - n, TN: 900, FP: 100})
	}
	return cells
}

// Where rows have groups, what counts is how much a difference depends on which
// groups there are, however many rows they have.
func TestVerdictByGroup(t *testing.T) {
	s := &Set{Rare: "state=worn", Y: append(make([]int, 4000), ones(400)...), Groups: []string{"a"}, Folds: make([]classify.Fold, 4)}
	for name, tc := range map[string]struct {
		other []Cell
		want  []string
	}{
		"better on every tool": {byTool("logistic", 90, 90, 90, 91), []string{"? No: better than its 0.849 by G-mean are logistic (", " does not count, because only 4 parts were held out"}},
		"much better on one":   {byTool("logistic", 80, 80, 80, 100), []string{"? Yes, no method is better; but as good, as far as the data shows, are logistic.\n"}},
		"worse on every tool":  {byTool("logistic", 60, 60, 60, 61), []string{"? Yes: it is better than every other method.\n"}},
	} {
		got := Verdict(s, slices.Concat(byTool("ecs-dbn", 80, 80, 80, 80), tc.other))
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}

	one := slices.Concat(byTool("ecs-dbn", 80, 0, 0, 0), byTool("logistic", 70, 0, 0, 0))
	for i := range one {
		if one[i].Fold > 1 {
			one[i].FN = 0
		}
	}
	if got := Verdict(s, one); !strings.Contains(got, "? The data does not show it: rows of state=worn, or all others, are in only one of the 4 parts") {
		t.Errorf("worn rows of one tool only: %s", got)
	}
}

// The jackknife's standard error is the spread that comes from drawing groups.
func TestJackknife(t *testing.T) {
	const groups, trials = 8, 3000
	rng := rand.New(rand.NewPCG(1, 0))
	draw := func() []Cell {
		var ecs, dbn []int
		for range groups {
			ecs = append(ecs, 60+rng.IntN(31))
			dbn = append(dbn, ecs[len(ecs)-1]-rng.IntN(21))
		}
		return slices.Concat(byTool("ecs-dbn", ecs...), byTool("logistic", dbn...))
	}
	var sum, square, estimate float64 // of the difference
	for range trials {
		cells := draw()
		all := Summarise(cells, true)
		d := math.Abs(all[0].GMean - all[1].GMean)
		sum, square = sum+d/trials, square+d*d/trials
		without := leftOutOneByOne(cells, groups)
		differences := without["logistic"]
		for i, ecs := range without["ecs-dbn"] {
			differences[i] -= ecs
		}
		se := jackknife(differences)
		estimate += se * se / trials
	}
	if want := math.Sqrt(square - sum*sum); math.Abs(math.Sqrt(estimate)/want-1) > 0.1 {
		t.Errorf("%v, drawn %v", math.Sqrt(estimate), want)
	}
}

// The standard error by the delta method is the spread of what is drawn.
func TestStandardError(t *testing.T) {
	const recall, specificity, trials = 0.8, 0.9, 20_000
	n := [2]float64{400, 60}
	rng := rand.New(rand.NewPCG(1, 0))
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
	standardError := func(recall, specificity float64) float64 {
		s := &Set{Y: append(make([]int, int(n[0])), ones(int(n[1]))...)}
		return binomial(s, Summary{Method: "ecs-dbn", Recall: recall, Specificity: specificity})
	}
	if got := standardError(recall, specificity); math.Abs(got/want-1) > 0.05 {
		t.Errorf("%v, drawn %v", got, want)
	}
	if got := standardError(1, 1); got < 0.005 || got > 0.05 {
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
