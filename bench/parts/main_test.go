package main

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// wearing is five tools whose first feature is their wear, in as many classes; the other is noise.
func wearing(classes int) *classify.Table {
	const rows = 30
	rng := rand.New(rand.NewPCG(1, 2))
	x := dbn.NewMatrix(5*rows, 2)
	t := &classify.Table{X: x, Ordered: true}
	for i := range x.Rows {
		wear := float64(i%rows) / rows
		x.Row(i)[0], x.Row(i)[1] = float32(wear+0.01*rng.NormFloat64()), float32(rng.NormFloat64())
		t.Y, t.Groups = append(t.Y, int(wear*float64(classes))), append(t.Groups, string(rune('a'+i/rows)))
	}
	return t
}

// Every variant decides each row once, and finds wear that is a feature.
func TestJudge(t *testing.T) {
	if testing.Short() {
		t.Skip("trains networks for each part")
	}
	for classes, want := range map[int]int{2: 9, 3: 10} { // of two classes nothing is half-way to JADE's
		c := train.DefaultConfig()
		c.Network.Pretrain.Epochs, c.Network.FineTune.Rate = 5, 0.03
		cells, err := judge(t.Context(), wearing(classes), c, classes)
		if err != nil {
			t.Fatal(err)
		}
		if len(cells) != want {
			t.Errorf("%d classes: %d cells", classes, len(cells))
		}
		for _, c := range cells {
			for tool, m := range c.Tools {
				if m.Rows() != 30 || m.RowsOf(0) != 30/classes {
					t.Errorf("%s, tool %s: %v", c.Variant, tool, m)
				}
			}
			if g := (result{c}).gmeans(nil); !(g[0] > 0.9) {
				t.Errorf("%d classes, %s: G-mean %v", classes, c.Variant, g)
			}
		}
	}
}

// of returns a cell of five tools, of which some miss half their faulty rows.
func of(variant string, missing int) cell {
	c := cell{2, 1, variant, make(map[string]score.Confusion)}
	for i, tool := range []string{"a", "b", "c", "d", "e"} {
		if c.Tools[tool] = (score.Confusion{{4, 0}, {0, 2}}); i < missing {
			c.Tools[tool] = score.Confusion{{4, 0}, {1, 1}}
		}
	}
	return c
}

func TestResult(t *testing.T) {
	some, none := result{of("some", 2), of("some", 0)}, result{of("none", 0)}
	if g := some.gmeans(nil); math.Abs(g[0]-math.Sqrt(0.8)) > 1e-12 || g[1] != 1 {
		t.Errorf("G-means %v", g)
	}
	if g := some.gmeans(map[string]float64{"a": 2}); g[0] != math.Sqrt(0.5) {
		t.Errorf("of tool a twice %v", g)
	}
	if average, name, worst := some.tools(); math.Abs(worst-(1+math.Sqrt(0.5))/2) > 1e-12 || name != "a" || math.Abs(average-(3+2*worst)/5) > 1e-12 {
		t.Errorf("tools: %v, worst %s %v", average, name, worst)
	}
	// Of the draws of five tools 95 of 100 have none to four of the two that miss rows.
	lead, i := none.lead(some)
	if want := (1 - math.Sqrt(0.8)) / 2; math.Abs(lead-want) > 1e-12 || i.Low != 0 || math.Abs(i.High-(1-math.Sqrt(0.6))/2) > 1e-12 {
		t.Errorf("lead %v, %v", lead, i)
	}
	healthy := of("healthy", 0)
	for tool := range healthy.Tools {
		healthy.Tools[tool] = score.Confusion{{4, 0}, {0, 0}}
	}
	if g := (result{healthy}).gmeans(nil); g != nil {
		t.Errorf("without a faulty row %v", g)
	}
	for want, i := range map[string]bootstrap.Interval{"adds": {Low: 0.001, High: 0.1}, "takes away": {Low: -0.1, High: -0.001}, "cannot be told": {Low: -0.1, High: -0.0001}} {
		if got := adds(i); got != want {
			t.Errorf("%v: %q", i, got)
		}
	}
}

func committed(t *testing.T) []cell {
	t.Helper()
	cells, err := columns.Lines[cell]("cells.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

// The committed page is what the committed cells give.
func TestCommittedPage(t *testing.T) {
	made, err := os.ReadFile("../../docs/figures/parts.md")
	if err != nil {
		t.Fatal(err)
	}
	if page(committed(t)) != string(made) {
		t.Error("docs/figures/parts.md is not the page of bench/parts/cells.jsonl: run `make parts`")
	}
}

// What the sentences of the page say is so.
func TestSentences(t *testing.T) {
	if testing.Short() {
		t.Skip("draws for each part")
	}
	two, three := resultsOf(committed(t), 2), resultsOf(committed(t), 3)
	for variant, want := range map[string]string{
		"no pre-training": "adds", "one layer": "adds", "default, argmax": "adds", regressions: "cannot be told", "default, inverse_prior": "cannot be told", "default, jade": "cannot be told",
	} {
		if lead, i := two[ecsDBN].lead(two[variant]); adds(i) != want || math.Abs(lead) > 0.005 != (variant == "default, argmax") {
			t.Errorf("two classes, %s: %v, %v", variant, lead, i)
		}
	}
	if lead, _ := two[regressions].lead(two[regressions+", argmax"]); lead < 0.02 {
		t.Errorf("two classes: costs add %v to logistic regression", lead)
	}
	for variant, of := range three {
		if _, i := three[ecsDBN].lead(of); variant != ecsDBN && adds(i) != "cannot be told" {
			t.Errorf("three classes, %s: %v", variant, i)
		}
	}
	best, least := bestRegression(three)
	if lead, _ := three[ecsDBN].lead(best); lead < 0 {
		t.Errorf("three classes: regressions are ahead by %v", -lead)
	}
	if _, _, worst := three[ecsDBN].tools(); worst < least+0.1 {
		t.Errorf("three classes: worst tool %v, of regressions %v", worst, least)
	}
}

func TestCellsAreReadAsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cells.jsonl")
	if cells, err := columns.Lines[cell](file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, %v", cells, err)
	}
	if err := saveCells(file, []cell{of("a", 0), of("b", 2)}); err != nil {
		t.Fatal(err)
	}
	cells, err := columns.Lines[cell](file)
	if err != nil || len(cells) != 2 || cells[1].Variant != "b" || !slices.Equal(cells[1].Tools["b"][1], []int{1, 1}) {
		t.Errorf("%v, %v", cells, err)
	}
	if err := os.WriteFile(file, []byte(`{"classes":2`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := columns.Lines[cell](file); err == nil {
		t.Error("a line that is cut off is read")
	}
}

func TestBadFlags(t *testing.T) {
	t.Setenv("FLANK_DATA", "")
	var stderr bytes.Buffer
	none := filepath.Join(t.TempDir(), "cells.jsonl")
	for want, args := range map[string][]string{
		"--data":               {"--cells", none},
		"turning_wear_dev.csv": {"--cells", none, "--data", t.TempDir(), "--layout", "../../examples/turning/layout.yaml"},
	} {
		if err := run(t.Context(), args, &stderr, &stderr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
