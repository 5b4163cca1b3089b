package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/bench/study/stat"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
)

// The figures that the paper prints below its two tables follow from the tables.
func TestRecordedPaperStatistics(t *testing.T) {
	dir := recorded.Folder(t)
	p, err := ReadPaper(filepath.Join(dir, "keel"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Sets) != 58 || len(p.Methods) != 7 {
		t.Fatalf("%d sets, %d methods", len(p.Sets), len(p.Methods))
	}
	for metric, printed := range map[Metric]struct{ ranks, p []string }{
		Accuracy: {
			[]string{"1.6466", "1.8190", "5.0690", "4.8017", "5.1034", "5.8448", "3.7155"},
			[]string{"3.60922E-03", "3.44739E-11", "5.76082E-11", "6.06238E-11", "3.10875E-11", "2.12982E-10"},
		},
		GMean: {
			[]string{"1.4310", "5.8103", "5.8534", "3.4483", "3.6207", "4.3879", "3.4483"},
			[]string{"1.75303E-11", "4.45971E-11", "3.65941E-10", "2.72630E-10", "2.59525E-10", "4.10284E-09"},
		},
	} {
		ranks := p.ranks(metric)
		for j, want := range printed.ranks {
			if got := fmt.Sprintf("%.4f", ranks[j]); got != want {
				t.Errorf("%s of %s: mean rank %s, printed %s", metric, p.Methods[j], got, want)
			}
		}
		for j, want := range printed.p {
			w := stat.SignedRankSplit(p.Column(p.Methods[0], metric), p.Column(p.Methods[j+1], metric), stat.Greater)
			if got := fmt.Sprintf("%.5E", w.P); got != want {
				t.Errorf("%s against %s: p = %s, printed %s", metric, p.Methods[j+1], got, want)
			}
		}
	}
	// A Holm procedure would have decided otherwise on one of them.
	if holm := p.holm(Accuracy); math.Abs(holm[1]-0.67) > 0.005 {
		t.Errorf("accuracy against DBN: Holm's p = %v, want 0.67", holm[1])
	}
	for what, n := range map[string][2]int{
		"impossible cells of ECS-DBN":          {len(p.Impossible("ECS-DBN")), 15},
		"impossible cells of DBN":              {len(p.Impossible("DBN")), 20},
		"repeated G-means of ECS-DBN":          {p.Repeated("ECS-DBN"), 28},
		"deviations of DBN that are means":     {p.SpreadIsMean("DBN"), 50},
		"sets where ECS-DBN is best by G-mean": {p.Bests("ECS-DBN", GMean), 49},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, counted by hand %d", what, n[0], n[1])
		}
	}
}

// For any recalls and specificities of five folds, their means are possible.
func TestWhatIsMeasuredIsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0.01, 0.5).Draw(t, "share")
		var accuracy, gmean float64
		for range folds {
			recall, specificity := rapid.Float64Range(0, 1).Draw(t, "recall"), rapid.Float64Range(0, 1).Draw(t, "specificity")
			accuracy += (share*recall + (1-share)*specificity) / folds
			gmean += math.Sqrt(recall*specificity) / folds
		}
		if !possible(accuracy, gmean, share) {
			t.Fatalf("accuracy %v and G-mean %v with a share of %v", accuracy, gmean, share)
		}
	})
}

func TestPossible(t *testing.T) {
	for name, tc := range map[string]struct {
		accuracy, gmean, share float64
		want                   bool
	}{
		"all right":                            {1, 1, 0.1, true},
		"all right, but no minority found":     {1, 0, 0.1, false},
		"the majority class throughout":        {0.9, 0, 0.1, true},
		"accurate, so some minority is found":  {0.95, 0.2, 0.1, false},
		"too good for so many errors":          {0.7392, 0.995, 0.0835, false},
		"every minority row and half the rest": {0.55, math.Sqrt(0.5), 0.1, true},
	} {
		if got := possible(tc.accuracy, tc.gmean, tc.share); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReadPaperErrors(t *testing.T) {
	good := "dataset,metric,method,mean,std\na,accuracy,ECS-DBN,0.9,0.01\na,gmean,ECS-DBN,0.8,0.01\n"
	manifest := "name,instances,positives\na,10,2\n"
	for name, tc := range map[string]struct{ results, manifest, want string }{
		"no such metric":   {strings.Replace(good, "gmean", "gmeans", 1), manifest, "paper_results.csv:3: metric \"gmeans\""},
		"no number":        {strings.Replace(good, "0.8", "much", 1), manifest, "paper_results.csv:3"},
		"a missing cell":   {good[:strings.Index(good, "a,gmean")], manifest, "no G-mean of ECS-DBN on a"},
		"a missing column": {good, "name,instances\na,10\n", "no column \"positives\""},
		"an empty file":    {"", manifest, "no header"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"paper_results.csv": tc.results, "MANIFEST.csv": tc.manifest} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ReadPaper(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := ReadPaper(t.TempDir()); err == nil {
		t.Error("an empty folder is read")
	}
}
