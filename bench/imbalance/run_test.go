package imbalance

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// twoClouds is a set that is easy, but not for a constant.
func twoClouds(name string, seed uint64) *Set {
	x, y := clouds(seed, 48, 12, 3, 1.5)
	return &Set{Name: name, X: x, Y: y, Folds: classify.StratifiedKFold(y, 3, newRand(1))}
}

// answers returns the answers of a family for the first fold, without its
// first test row.
func answers(t *testing.T, f family, s *Set) []methodAnswer {
	t.Helper()
	all, err := f.solve(t.Context(), s.Task(0, 7))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range all {
		if len(a.Decision) != len(s.Folds[0].Test) || len(a.Score) != len(a.Decision) {
			t.Fatalf("%s: %d decisions, %d scores", f.methods[i].Name, len(a.Decision), len(a.Score))
		}
		all[i] = methodAnswer{Decision: a.Decision[1:], Score: a.Score[1:]}
	}
	return all
}

func sameAnswers(a, b []methodAnswer) bool {
	return slices.EqualFunc(a, b, func(a, b methodAnswer) bool {
		return slices.Equal(a.Decision, b.Decision) && slices.Equal(a.Score, b.Score)
	})
}

// What a test row holds, and which class the test rows are of, moves no other
// decision: nothing is fitted to them.
func TestNothingLeaks(t *testing.T) {
	marked := twoClouds("marked", 1)
	row := marked.X.Row(marked.Folds[0].Test[0])
	for j := range row {
		row[j] = 1e6
	}
	for _, i := range marked.Folds[0].Test {
		marked.Y[i] = 1 - marked.Y[i]
	}
	for _, f := range families() {
		clean := answers(t, f, twoClouds("clean", 1))
		if !sameAnswers(clean, answers(t, f, twoClouds("clean", 1))) {
			t.Errorf("%s: equal seeds, other answers", f.methods[0].Name)
		}
		if !sameAnswers(clean, answers(t, f, marked)) {
			t.Errorf("%s: a test row moves decisions on others", f.methods[0].Name)
		}
		for i, a := range clean {
			m := score.NewConfusion(2)
			for k, d := range a.Decision {
				m.Add(twoClouds("clean", 1).Y[twoClouds("clean", 1).Folds[0].Test[k+1]], d)
			}
			if g := m.GMean(); g < 0.6 && !slices.Contains([]string{"dbn-paper", "csdbn"}, f.methods[i].Name) {
				t.Errorf("%s: G-mean %.2f on two clouds", f.methods[i].Name, g)
			}
		}
	}

	// A method that scales by what it is to decide is caught.
	leaky := family{methods: []Method{{Name: "leaky"}}, solve: func(_ context.Context, t Task) ([]methodAnswer, error) {
		z := FitScale(t.Test).Apply(t.Test)
		a := methodAnswer{Decision: make([]int, z.Rows)}
		for i := range z.Rows {
			a.Score = append(a.Score, float64(z.Row(i)[0]))
		}
		return []methodAnswer{a}, nil
	}}
	if sameAnswers(answers(t, leaky, twoClouds("clean", 1)), answers(t, leaky, marked)) {
		t.Error("a leak goes unnoticed")
	}
}

// plan is one of two methods that share training and take little time.
func plan(dir string) Plan {
	return Plan{Sets: []*Set{twoClouds("a", 1), twoClouds("b", 2)}, Methods: []string{"ecs-dbn-paper", "dbn-paper"}, Trials: 2, Dir: dir, Workers: 2}
}

// lines returns the lines of the file of cells, without the times to train and to judge.
func lines(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, CellsFile))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(line, ",")
		all = append(all, strings.Join(slices.Delete(slices.Delete(fields, 17, 18), 10, 11), ","))
	}
	return all
}

// A study that is stopped goes on, and gives what it would have given; so do
// another number of workers and another order of sets.
func TestRunResumes(t *testing.T) {
	whole := t.TempDir()
	cells, err := Run(t.Context(), plan(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := lines(t, whole)
	if len(cells) != 2*2*2*3 || len(want) != 1+len(cells) {
		t.Fatalf("%d cells, %d lines", len(cells), len(want))
	}

	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	p := plan(dir)
	p.Workers = 1
	p.Progress = func(_ string, done, total int) {
		if done > total/3 {
			stop()
		}
	}
	if _, err := Run(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	some := lines(t, dir)
	if len(some) < 3 || len(some) >= len(want) {
		t.Fatalf("stopped after %d lines of %d", len(some), len(want))
	}
	// The process died while it wrote a line.
	f, err := os.OpenFile(filepath.Join(dir, CellsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("b,ecs-dbn-paper,2,3,0.9")
	f.Close()
	p = plan(dir)
	slices.Reverse(p.Sets)
	made := 0
	p.Workers, p.Progress = 1, func(string, int, int) { made++ }
	if _, err := Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, dir); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if missing := (len(want) - len(some)) / 2; made < missing || made > missing+1 {
		t.Errorf("%d calls for %d cells that were missing", made, 2*missing)
	}

	// Nothing is left to do; one method is made again.
	p.Progress = func(string, int, int) { t.Error("work on a study that is done") }
	if _, err := Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Redo, made = []string{"dbn-paper"}, 0
	p.Progress = func(string, int, int) { made++ }
	if _, err := Run(t.Context(), p); err != nil || made != 12 {
		t.Errorf("%d calls, %v", made, err)
	}
	if got := lines(t, dir); !slices.Equal(got, want) {
		t.Error("cells made again differ")
	}
}

// A method alone has the same cells as together with methods that share its training.
func TestRunOfPart(t *testing.T) {
	both, one := t.TempDir(), t.TempDir()
	p := plan(both)
	p.Sets = p.Sets[:1]
	p.Trials = 1
	if _, err := Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Dir, p.Methods = one, []string{"dbn-paper"}
	cells, err := Run(t.Context(), p)
	if err != nil || len(cells) != 3 {
		t.Fatalf("%d cells, %v", len(cells), err)
	}
	want := slices.DeleteFunc(lines(t, both), func(l string) bool { return strings.Contains(l, "ecs-dbn-paper") })
	if got := lines(t, one); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestRunErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(p *Plan)
		want   string
	}{
		"unknown method":       {func(p *Plan) { p.Methods = []string{"svm"} }, `"svm" is not a method: there are ecs-dbn, dbn,`},
		"unknown to redo":      {func(p *Plan) { p.Redo = []string{"svm"} }, `to be made again: "svm"`},
		"one row of a class":   {func(p *Plan) { p.Sets[0].Folds[1].Train = p.Sets[0].Folds[1].Train[:5] }, "set a: fold 2 leaves 5 rows of the frequent and 0 of the rare class"},
		"another set of cells": {func(p *Plan) { os.WriteFile(filepath.Join(p.Dir, CellsFile), []byte("a,b\n1,2\n"), 0o644) }, `cells.csv:1: no column "dataset"`},
		"other settings": {func(p *Plan) {
			os.WriteFile(filepath.Join(p.Dir, CellsFile), []byte(strings.Join(cellColumns, ",")+"\n"+Cell{Key: Key{"a", "ecs-dbn-paper", 1, 1}}.line()), 0o644)
			os.WriteFile(filepath.Join(p.Dir, methodsFile), []byte("method,settings\necs-dbn-paper,other\n"), 0o644)
		}, "make them again with --redo ecs-dbn-paper"},
		"a cell twice": {func(p *Plan) {
			line := Cell{Key: Key{"a", "ecs-dbn-paper", 1, 1}}.line()
			os.WriteFile(filepath.Join(p.Dir, CellsFile), []byte(strings.Join(cellColumns, ",")+"\n"+line+line), 0o644)
		}, "the cell of a, ecs-dbn-paper, trial 1, fold 1 is there twice"},
	} {
		p := plan(t.TempDir())
		tc.change(&p)
		if _, err := Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		}
	}
}

// Cells of other rows or folds are not taken for cells of another set of the same name.
func TestRunOfOtherRows(t *testing.T) {
	dir := t.TempDir()
	p := plan(dir)
	p.Trials = 1
	if _, err := Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	before := lines(t, dir)
	for name, change := range map[string]func(s *Set){
		"a value":  func(s *Set) { s.X.Data[7]++ },
		"a label":  func(s *Set) { s.Y[0] = 1 - s.Y[0] },
		"a fold":   func(s *Set) { s.Folds = classify.StratifiedKFold(s.Y, 3, newRand(2)) },
		"group":    func(s *Set) { s.Groups = slices.Repeat([]string{"A", "B", "C"}, len(s.Y)/3) },
		"a column": func(s *Set) { s.X.Rows, s.X.Cols, s.Y = s.X.Rows*s.X.Cols, 1, slices.Repeat(s.Y, s.X.Cols) },
	} {
		p := plan(dir)
		change(p.Sets[0])
		if _, err := Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "the cells of a were made of other rows, columns or folds (60 rows of 3 columns, folds by row: 3") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := lines(t, dir); !slices.Equal(got, before) {
		t.Error("a study that was refused changed the cells")
	}
	p.Trials = 2
	if _, err := Run(t.Context(), p); err != nil {
		t.Errorf("the same rows: %v", err)
	}
}

// Methods are dropped for being made again only where a study begins.
func TestRedoRefused(t *testing.T) {
	dir := t.TempDir()
	p := plan(dir)
	if _, err := Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	before := lines(t, dir)
	p.Redo, p.Methods = []string{"dbn-paper"}, []string{"ecs-dbn-paper"}
	if _, err := Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "dbn-paper is to be made again, but is not among the methods wanted") {
		t.Errorf("not wanted: %v", err)
	}
	path := filepath.Join(dir, methodsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(path, []byte(strings.Replace(string(text), "on training posteriors", "as of old", 1)), 0o644)
	p.Methods = nil
	if _, err := Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "--redo ecs-dbn-paper") {
		t.Errorf("other settings of another method: %v", err)
	}
	if got := lines(t, dir); !slices.Equal(got, before) {
		t.Errorf("%d lines are left of %d", len(got), len(before))
	}
}

// Of two studies in one folder, the second would write over what the first adds.
func TestOneStudyAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := openStore(dir, func(Key) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), plan(dir)); err == nil || !strings.Contains(err.Error(), "another study is adding to its cells") {
		t.Errorf("while another study runs: %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	p := plan(dir)
	p.Trials = 1
	if _, err := Run(t.Context(), p); err != nil {
		t.Errorf("after the other: %v", err)
	}
}

func TestSeconds(t *testing.T) {
	all, err := costFamily().solve(t.Context(), twoClouds("a", 1).Task(0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range all {
		if !(a.Judging > 0) {
			t.Errorf("answer %d took %v s to judge", i, a.Judging)
		}
	}
	// Networks of five folds come after the one that is kept.
	if ecs, dbn := all[0].Seconds, all[1].Seconds; !(dbn > 0 && ecs > dbn) {
		t.Errorf("ECS-DBN took %v s, DBN %v s", ecs, dbn)
	}
}

func TestGridCosts(t *testing.T) {
	// Odds of 0.2 part the classes: P₁ from 0.1 to 0.3 is positive above 1/6.
	posterior := []float64{0.9, 0.1, 0.88, 0.12, 0.8, 0.2, 0.7, 0.3}
	y := []int{0, 0, 1, 1}
	c := gridCosts(posterior, y)
	for i, label := range y {
		if c.Decide(posterior[2*i:2*i+2]) != label {
			t.Errorf("costs %v decide row %d wrong", c, i)
		}
	}
}

func TestNewCell(t *testing.T) {
	k := Key{"s", "m", 1, 2}
	c := newCell(k, []int{1, 1, 0, 0}, nil, methodAnswer{Decision: []int{1, 0, 0, 0}, Score: []float64{3, 1, 2, 0}})
	want := Cell{Key: k, Accuracy: 0.75, GMean: math.Sqrt(0.5), AUC: 0.75, Precision: 1, Recall: 0.5, F1: 2.0 / 3, MCC: 1 / math.Sqrt(3), BalancedAccuracy: 0.75, TP: 1, FN: 1, TN: 2}
	if c.line() != want.line() {
		t.Errorf("got  %swant %s", c.line(), want.line())
	}
	// Figures of a class that is not there are undefined, not 0.
	c = newCell(k, []int{0, 0}, nil, methodAnswer{Decision: []int{0, 1}, Score: []float64{0, 1}})
	if got, want := c.line(), "s,m,1,2,0.500000,,,,,,0.0000,"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if c = newCell(k, []int{1, 0}, nil, methodAnswer{Decision: []int{0, 0}, Score: []float64{0, 0}}); c.Precision != 0 || c.GMean != 0 || c.AUC != 0.5 {
		t.Errorf("nothing decided positive: %+v", c)
	}
}

func FuzzReadCells(f *testing.F) {
	header := strings.Join(cellColumns, ",") + "\n"
	f.Add(header + Cell{Key: Key{"a", "b", 1, 1}, AUC: math.NaN(), Seconds: 0.25}.line())
	f.Add("dataset,method,trial,fold,accuracy,gmean,auc,precision,recall,f1,seconds\na,b,1,1,0.5,,1,1,1,1,0.1\n")
	f.Add(header + "a,b,0,1")
	f.Fuzz(func(t *testing.T, text string) {
		cells, err := readCells(strings.NewReader(text), "x.csv")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.csv") {
				t.Errorf("%v does not say where", err)
			}
			return
		}
		for _, c := range cells {
			if c.Trial < 1 || c.Fold < 1 || c.TP < 0 || math.IsInf(c.GMean, 0) {
				t.Fatalf("%+v", c)
			}
		}
	})
}
