package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/pkg/classify"
)

// clouds writes a task of two classes the given distance apart.
func clouds(t *testing.T, dir string, distance float64) {
	rng := rand.New(rand.NewPCG(1, 0))
	var b strings.Builder
	b.WriteString("x0,x1,class,fold\n")
	for i := range 80 {
		label := 0
		if i%8 < 2 {
			label = 1
		}
		fmt.Fprintf(&b, "%.3f,,%d,%d\n", distance*float64(label)+rng.NormFloat64(), label, i/8%2)
	}
	if err := os.WriteFile(filepath.Join(dir, "clouds.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Classes far apart are told apart by every candidate and way, those that lie on
// each other by none.
func TestRun(t *testing.T) {
	kept := candidates
	t.Cleanup(func() { candidates = kept })
	for i := range candidates {
		change := candidates[i].change
		candidates[i].change = func(s *classify.Settings) {
			change(s)
			s.Costs.Folds, s.Network.FineTune.Epochs, s.Network.FineTune.Rate = 2, 30, 0.03
		}
	}
	figure := regexp.MustCompile(`\d\.\d{4}`)
	for _, distance := range []float64{0, 8} {
		dir := t.TempDir()
		clouds(t, dir, distance)
		var out strings.Builder
		if err := run(t.Context(), []string{dir}, &out); err != nil {
			t.Fatal(err)
		}
		all := figure.FindAllString(out.String(), -1)
		if len(all) != len(candidates)*(1+len(ways)) {
			t.Fatalf("%d figures in\n%s", len(all), out.String())
		}
		for _, text := range all {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || distance == 0 && v > 0.8 || distance > 0 && v < 0.95 {
				t.Errorf("%v apart: %v in\n%s", distance, v, out.String())
			}
		}
	}
}

// A drill of some seconds goes through every way to fit to it, and what was not
// meant is refused.
func TestRunDrill(t *testing.T) {
	seeds, all, whole := drillSeeds, drillCandidates, simulated
	t.Cleanup(func() { drillSeeds, drillCandidates, simulated = seeds, all, whole })
	simulated = imbalance.Drill{Cutting: 60 * time.Second, Rows: 2000}
	drillSeeds = map[string][]uint64{"drill-random": {1}, "drill-tools-reference": {1}}
	quick := func(s *classify.Settings) { s.Network.FineTune.Epochs = 2 }
	drillCandidates = []drillCandidate{{"network", quick, nil}, {"made up", quick, imbalance.SMOTE}}
	for set, folds := range map[string]int{"drill-random": 1, "drill-tools-reference": 3} {
		var out strings.Builder
		if err := run(t.Context(), []string{"drill", set, "1000"}, &out); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[2:] {
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			if len(cells) != 2+len(ways)+2 || len(strings.Fields(cells[len(cells)-1])) != folds {
				t.Fatalf("%s: %q", set, line)
			}
			best, err := strconv.ParseFloat(cells[len(cells)-2], 64)
			if err != nil || best < 0.5 || best > 1 { // any cut but the ends does better than chance
				t.Errorf("%s: best cut of %q", set, line)
			}
			same := cells[2] == cells[3] && cells[3] == cells[6] // the ways to choose costs
			if resampled := cells[0] == "made up"; same != resampled {
				t.Errorf("%s: %q", set, line)
			}
		}
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"drill", "drill-random", "1000", "made up"}, &out); err != nil || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("one candidate: %v\n%s", err, out.String())
	}
	for _, args := range [][]string{{"drill", "x", "1000"}, {"drill", "drill-random", "1000", "x"}, {"drill", "drill-random", "x"}} {
		if err := run(t.Context(), args, &strings.Builder{}); err == nil || !strings.HasPrefix(err.Error(), `"x" `) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestReadRefusesWhatItCannotUse(t *testing.T) {
	const header = "x0,class,fold\n"
	for text, says := range map[string]string{
		"":                                "no rows",
		header:                            "no rows",
		header + "1,0,0\nnarrow,1,0\n":    "line 3, column x0",
		header + "1,0,0\n2,2,0\n":         "line 3: class \"2\"",
		header + "1,0,0\n2,1,-1\n":        "fold \"-1\"",
		header + "1,0,0\n2,1,0\n3,0,1\n":  "fold 1 has not rows of both",
		header + "1,0,0\n2,1,0\n3,1,99\n": "fold \"99\"",
	} {
		path := filepath.Join(t.TempDir(), "task.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", text, err, says)
		}
	}
	if err := run(t.Context(), []string{t.TempDir()}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "develop.py") {
		t.Errorf("an empty folder: %v", err)
	}
}
