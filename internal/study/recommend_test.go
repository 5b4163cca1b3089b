package study

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// fourTools is a set whose cells byTool makes.
func fourTools() *Set {
	s := &Set{Rare: "state=worn", Y: append(make([]int, 4000), ones(400)...), Folds: make([]classify.Fold, 4), Kind: "tool"}
	for i := range s.Y {
		s.Groups = append(s.Groups, fmt.Sprint("T", i%4))
	}
	return s
}

func TestRecommend(t *testing.T) {
	for name, tc := range map[string]struct {
		cells [][]Cell
		want  string
	}{
		"a simple method is better": {[][]Cell{byTool("ecs-dbn", 80, 80, 80, 80), byTool("logistic", 90, 90, 90, 91)},
			"Deploy logistic regression: its G-mean of 0.901 is ahead of ECS-DBN by 0.053 (0.050 to 0.055) over 4 tools, and it is simpler.\n"},
		"a simple method is as good": {[][]Cell{byTool("ecs-dbn", 90, 80, 85, 80), byTool("logistic", 80, 85, 80, 85)},
			"Deploy logistic regression: its G-mean of 0.862 is within chance of the best, ECS-DBN, which is ahead by 0.007 (-0.033 to 0.046) over 4 tools, and it is simpler.\n"},
		"ours is better": {[][]Cell{byTool("ecs-dbn", 90, 90, 90, 91), byTool("logistic", 80, 80, 80, 80), byTool("random-forest", 70, 71, 70, 70)},
			"Deploy ECS-DBN: its G-mean of 0.901 is ahead of logistic regression by 0.053 (0.050 to 0.055) over 4 tools, and no simpler method comes as near.\n"},
		"the simplest of several as good": {[][]Cell{byTool("ecs-dbn", 90, 80, 85, 80), byTool("extra-trees", 70, 70, 70, 70), byTool("random-forest", 85, 80, 80, 90), byTool("logistic", 20, 20, 20, 20)},
			"Deploy a random forest: its G-mean of 0.868 is within chance of the best, ECS-DBN, which is ahead by 0.000 (-0.037 to 0.037) over 4 tools, and it is simpler.\n"},
		"worse than a simpler one, but scattered": {[][]Cell{byTool("ecs-dbn", 90, 90, 90, 91), byTool("logistic", 80, 80, 80, 80), byTool("random-forest", 99, 60, 60, 40)},
			"Deploy ECS-DBN: its G-mean of 0.901 is ahead of logistic regression by 0.053 (0.050 to 0.055) over 4 tools, and no simpler method comes as near.\n"},
		"of two that are as simple the better": {[][]Cell{byTool("ecs-dbn", 90, 90, 90, 90), byTool("extra-trees", 91, 90, 89, 90), byTool("random-forest", 90, 90, 90, 89)},
			"Deploy extra trees: "},
		"none is better than a coin": {[][]Cell{byTool("ecs-dbn", 30, 20, 40, 20), byTool("logistic", 25, 30, 20, 35)},
			"Deploy none of these methods yet: the best, "},
		"one lucky tool": {[][]Cell{byTool("ecs-dbn", 100, 0, 0, 30), byTool("logistic", 0, 0, 0, 0)},
			"is not above a tossed coin's, 0.5, by more than chance"},
	} {
		got := Recommend(fourTools(), slices.Concat(tc.cells...))
		if !strings.HasPrefix(got, tc.want) && !strings.Contains(got, tc.want) {
			t.Errorf("%s: no %q in\n%s", name, tc.want, got)
		}
		if strings.Contains(got, "NaN") || strings.Contains(got, "%!") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Recommend(fourTools(), byTool("ecs-dbn", 1, 1, 1, 1)); got != "" {
		t.Errorf("of one method: %s", got)
	}
	one := slices.Concat(byTool("ecs-dbn", 80, 0, 0, 0), byTool("logistic", 70, 0, 0, 0))
	for i := range one {
		if one[i].Fold > 1 {
			one[i].FN = 0
		}
	}
	if got := Recommend(fourTools(), one); !strings.HasPrefix(got, "Deploy none of these methods yet: rows of state=worn, or all others, are in only one of 4 tools") {
		t.Errorf("worn rows of one tool only: %s", got)
	}
}

// A method that does better on every tool is never recommended less: law of the rule.
func TestRecommendLaw(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	draw := func(method string, add int) []Cell {
		var found []int
		for range 4 {
			found = append(found, min(100, 60+rng.IntN(30)+add))
		}
		return byTool(method, found...)
	}
	for range 60 {
		ours, simple := draw("ecs-dbn", 0), draw("logistic", 0)
		if strings.HasPrefix(Recommend(fourTools(), slices.Concat(ours, simple)), "Deploy logistic") {
			better := slices.Clone(simple)
			for i := range better {
				more := min(5, better[i].FN)
				better[i].TP, better[i].FN = better[i].TP+more, better[i].FN-more
			}
			if got := Recommend(fourTools(), slices.Concat(ours, better)); !strings.HasPrefix(got, "Deploy logistic") {
				t.Fatalf("better on every tool, and not recommended any more: %s%v\n%v", got, ours, better)
			}
		}
	}
}

// madeUp returns a set of six groups with four columns whose label is what truth says of them.
func madeUp(name string, truth func(x []float32, rng *rand.Rand) bool) *Set {
	rng := rand.New(rand.NewPCG(17, 18))
	s := &Set{Name: name, Rare: "worn=1", Kind: "tool", X: dbn.NewMatrix(6*40, 4)}
	for i := range s.X.Rows {
		for j := range 4 {
			s.X.Row(i)[j] = float32(rng.NormFloat64())
		}
		y := 0
		if truth(s.X.Row(i), rng) {
			y = 1
		}
		s.Y, s.Groups = append(s.Y, y), append(s.Groups, fmt.Sprint("T", i/40))
	}
	s.Folds = classify.LeaveOneGroupOut(s.Groups)
	return s
}

// What is recommended suits what the label was made of.
func TestRecommendOnMadeUpTables(t *testing.T) {
	sigmoid := func(v float32) float64 { return 1 / (1 + math.Exp(-float64(v))) }
	for name, tc := range map[string]struct {
		truth func(x []float32, rng *rand.Rand) bool
		want  []string // one of them
	}{
		"linear": {func(x []float32, rng *rand.Rand) bool { return rng.Float64() < sigmoid(3*x[0]-3*x[1]-2) }, []string{"Deploy logistic regression: "}},
		"xor":    {func(x []float32, _ *rand.Rand) bool { return (x[0] > 0) != (x[1] > 0) }, []string{"Deploy a random forest: ", "Deploy extra trees: "}},
		"noise":  {func(_ []float32, rng *rand.Rand) bool { return rng.Float64() < 0.3 }, []string{"Deploy none of these methods yet: "}},
	} {
		t.Run(name, func(t *testing.T) {
			s := madeUp(name, tc.truth)
			cells, err := Run(t.Context(), s, Plan{Methods: []string{"logistic", "random-forest", "extra-trees"}, Trials: 1, Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			got := Recommend(s, cells)
			if !slices.ContainsFunc(tc.want, func(want string) bool { return strings.HasPrefix(got, want) }) {
				t.Errorf("%q, want %q\n%s", got, tc.want, Table(Summarise(cells, true)))
			}
		})
	}
}
