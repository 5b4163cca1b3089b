package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// invented is four sets with scores out of thin air; svm lacks a fold of one.
func invented(t *testing.T) Input {
	t.Helper()
	cells, err := imbalance.LoadCells("testdata/cells.csv")
	if err != nil {
		t.Fatal(err)
	}
	paper, err := ReadPaper("testdata/keel")
	if err != nil {
		t.Fatal(err)
	}
	return Input{Cells: cells, Paper: paper, Defaults: "defaults.md", Drill: "drill/drill.md", Methods: []imbalance.Method{
		{Name: "ecs-dbn", Trials: 2, Settings: "the study's network, costs chosen out of fold"},
		{Name: "dbn", Trials: 2, Settings: "the same, argmax"},
		{Name: "welm-w1", Trials: 2, Settings: "not run, so not shown"},
	}}
}

func TestPages(t *testing.T) {
	files, err := Files(invented(t))
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(files))
	want := []string{"README.md", "accuracy.md", "boxes-accuracy.svg", "boxes-gmean.svg", "gmean.md", "ranks-accuracy.svg", "ranks-gmean.svg",
		"scatter-dbn-accuracy.svg", "scatter-dbn-gmean.svg", "scatter-paper-accuracy.svg", "scatter-paper-gmean.svg", "scatter-peer-accuracy.svg", "scatter-peer-gmean.svg"}
	if !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	for _, name := range names {
		golden.Check(t, filepath.Join("golden", name), files[name])
	}
	// All that a page shows or links is there.
	for name, text := range files {
		for _, part := range strings.Split(string(text), "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			if _, ok := files[link]; !ok && link != "defaults.md" && link != "drill/drill.md" {
				t.Errorf("%s links %s, which is not written", name, link)
			}
		}
		for _, bad := range []string{"NaN", "%!", "<no value>"} {
			if bytes.Contains(text, []byte(bad)) {
				t.Errorf("%s shows %q", name, bad)
			}
		}
	}
}

func TestOrderOfCellsDoesNotMatter(t *testing.T) {
	in := invented(t)
	want, err := Files(in)
	if err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(in.Cells), func(i, j int) { in.Cells[i], in.Cells[j] = in.Cells[j], in.Cells[i] })
	got, err := Files(in)
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s differs when the cells come in another order", name)
		}
	}
}

// A method that lacks a fold has no score there: the set leaves the comparison,
// and the page says so.
func TestGaps(t *testing.T) {
	p, err := newPages(invented(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"glass0", "haberman", "iris0"}; !slices.Equal(p.Sets, want) {
		t.Errorf("compared on %v, want %v", p.Sets, want)
	}
	if want := []string{"svm: pima"}; !slices.Equal(p.Gaps, want) {
		t.Errorf("gaps %v, want %v", p.Gaps, want)
	}
}

// By hand: two trials with fold means 0.3 and 0.5, a third that lacks a fold.
func TestScore(t *testing.T) {
	var cells []imbalance.Cell
	for trial, g := range []float64{0.3, 0.5, 0.9} {
		for fold := range 5 - trial/2 {
			c := imbalance.Cell{Key: imbalance.Key{Dataset: "a", Method: "m", Trial: trial + 1, Fold: fold + 1}, GMean: g + 0.01*float64(fold-2)}
			cells = append(cells, c)
		}
	}
	s := newScore(cells)
	if got := fmt.Sprintf("%d %.6f %.6f", s.trials, s.mean[GMean], s.spread[GMean]); got != "2 0.400000 0.141421" {
		t.Error(got)
	}
}

// Folds alike are a tie, for any number of trials that they are a mean of.
func TestTiesOfDifferentTrials(t *testing.T) {
	var cells []imbalance.Cell
	for method, trials := range map[string]int{Control: 10, "dbn": 3, "svm": 1} {
		for _, set := range []string{"a", "b", "c"} {
			for trial := range trials {
				for fold := range folds {
					c := imbalance.Cell{Key: imbalance.Key{Dataset: set, Method: method, Trial: trial + 1, Fold: fold + 1}, GMean: 1}
					if fold == trial%folds && set == "b" {
						c.GMean = 0.912871 // in another fold of each trial: their sums differ in the last bit
					}
					cells = append(cells, c)
				}
			}
		}
	}
	b, err := newBoard(cells)
	if err != nil {
		t.Fatal(err)
	}
	c := b.compare(GMean, Control, b.methods, b.sets)
	for _, m := range b.methods {
		if c.rank(m) != 2 {
			t.Errorf("%s: mean rank %v among three that are equal", m, c.rank(m))
		}
	}
	if v := c.against["svm"]; v.pairsP != 1 || v.draw != 3 {
		t.Errorf("pairs that are equal: %+v", v)
	}
}

// A method is beaten where the test is sure, and in favour of the control.
func TestNotBeaten(t *testing.T) {
	c := comparison{control: Control, methods: []string{"svm", Control, "dbn", "knn", "sgd"}, against: map[string]versus{
		"svm": {rankHolm: 0.01, pairsHolm: 0.01, biserial: -0.9},
		"dbn": {rankHolm: 0.2, pairsHolm: 0.01, biserial: 0.5},
		"knn": {rankHolm: 0.01, pairsHolm: 0.2, biserial: 0.5},
		"sgd": {rankHolm: 0.01, pairsHolm: 0.01, biserial: 0.9},
	}}
	c.test.Ranks = []float64{1, 2, 3, 4, 5}
	if pairs, ranks := c.notBeaten(signedRanks), c.notBeaten(meanRanks); !slices.Equal(pairs, []string{"SVM", "KNN"}) || !slices.Equal(ranks, []string{"SVM", "DBN"}) {
		t.Errorf("by signed ranks not %v, by mean ranks not %v", pairs, ranks)
	}
}

// A constant column is in no order, so that it cannot agree with another.
func TestCorrelation(t *testing.T) {
	if got := correlation(math.NaN()) + correlation(-0.125); got != "–-0.12" {
		t.Error(got)
	}
}

func TestWhatCannotBeShown(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"no control": {func(in *Input) {
			in.Cells = slices.DeleteFunc(in.Cells, func(c imbalance.Cell) bool { return c.Method == Control })
		}, "no cells of ecs-dbn"},
		"a file given twice": {func(in *Input) { in.Cells = slices.Concat(in.Cells, in.Cells) }, "two such cells"},
		"one set": {func(in *Input) {
			in.Cells = slices.DeleteFunc(in.Cells, func(c imbalance.Cell) bool { return c.Dataset != "pima" })
		}, "svm: pima"},
		"one method": {func(in *Input) {
			in.Cells = slices.DeleteFunc(in.Cells, func(c imbalance.Cell) bool { return c.Method != Control })
		}, "fewer than two methods"},
	} {
		in := invented(t)
		tc.change(&in)
		if _, err := Files(in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "docs", "study")
	if err := Write(dir, invented(t)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || !bytes.HasPrefix(text, []byte("# The study\n")) {
		t.Errorf("%v: %.40s", err, text)
	}
}
