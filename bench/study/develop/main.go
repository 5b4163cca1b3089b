// Command develop compares settings of ECS-DBN on the development collection,
// the tasks that bench/peers/study/develop.py writes, none of which shares a row with
// KEEL's: the study's defaults were chosen by what it prints.
//
//	go run -C bench ./study/develop DIR
//	go run -C bench ./study/develop drill SET ROWS [CANDIDATE...]
//
// The second does so on simulated gun drills, of other seeds than the study's: SET is
// drill-random, drill-tools or drill-tools-reference. For each setting it prints the mean over tasks and folds of the rank AUC and
// of the G-mean of the rows held out, with costs chosen on out-of-fold
// posteriors in several ways: the inverse prior; n/(n+40), n/(n+80) and half of
// the way from there, in log weight, to the smoothed optimum, n rows of the
// rarer class; and that optimum itself. One seed; some minutes on two cores.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flank-tcm/flank/internal/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "develop:", err)
		os.Exit(1)
	}
}

// candidate is a setting to compare.
type candidate struct {
	name   string
	change func(*classify.Settings) // of the study's default
}

var candidates = []candidate{
	{"committee, the default", func(*classify.Settings) {}},
	{"without balance", func(s *classify.Settings) { s.Balance = -1 }},
	{"classes alike", func(s *classify.Settings) { s.Balance = 1 }},
	{"standard", func(s *classify.Settings) { s.Encoding = classify.Standard }},
	{"8 bins", func(s *classify.Settings) { s.Encoding = classify.Bins }},
	{"normal scores", func(s *classify.Settings) { s.Encoding = classify.NormalScore }},
}

// ways to choose costs, by how far they go from the inverse prior to the optimum
// with n rows of the rarer class.
var ways = []struct {
	name  string
	share func(n float64) float64
}{
	{"inverse prior", func(float64) float64 { return 0 }},
	{"n/(n+80)", func(n float64) float64 { return n / (n + 80) }},
	{"n/(n+40)", func(n float64) float64 { return n / (n + 40) }},
	{"half-way", func(float64) float64 { return 0.5 }},
	{"optimum", func(float64) float64 { return 1 }},
}

// task is a table whose rows are numbered by the fold that holds them out.
type task struct {
	x     dbn.Matrix
	y     []int
	folds []classify.Fold
}

// outcome is what a candidate gave on one fold.
type outcome struct {
	auc   float64
	gmean []float64 // by way
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 2 && args[0] == "drill" {
		return runDrill(ctx, args[1], args[2], args[3:], out)
	}
	if len(args) != 1 {
		return errors.New("give the folder that bench/peers/study/develop.py wrote, and nothing else; or drill, a set and how many of its rows")
	}
	paths, err := filepath.Glob(filepath.Join(args[0], "*.csv"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s: no tasks: run bench/peers/study/develop.py first", args[0])
	}
	var tasks []*task
	for _, path := range paths {
		t, err := read(path)
		if err != nil {
			return err
		}
		tasks = append(tasks, t)
	}
	fmt.Fprintf(out, "| %d tasks | AUC |", len(tasks))
	for _, w := range ways {
		fmt.Fprintf(out, " %s |", w.name)
	}
	fmt.Fprintf(out, "\n|---|---:|%s\n", strings.Repeat("---:|", len(ways)))
	for _, c := range candidates {
		s := study.Default()
		s.Seed, s.Workers = 1, 1
		c.change(&s)
		mean, err := measure(ctx, tasks, s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(out, "| %s | %.4f |", c.name, mean.auc)
		for _, g := range mean.gmean {
			fmt.Fprintf(out, " %.4f |", g)
		}
		fmt.Fprintln(out)
	}
	return nil
}

// measure returns the means over the folds of all tasks, each task counting
// alike.
func measure(ctx context.Context, tasks []*task, s classify.Settings) (outcome, error) {
	type cell struct{ task, fold int }
	var cells []cell
	for i, t := range tasks {
		for f := range t.folds {
			cells = append(cells, cell{i, f})
		}
	}
	got, errs := make([]outcome, len(cells)), make([]error, len(cells))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				t := tasks[cells[i].task]
				got[i], errs[i] = t.judge(ctx, t.folds[cells[i].fold], s)
			}
		})
	}
	for i := range cells {
		next <- i
	}
	close(next)
	wg.Wait()
	mean := outcome{gmean: make([]float64, len(ways))}
	for i, o := range got {
		share := 1 / float64(len(tasks)*len(tasks[cells[i].task].folds))
		mean.auc += share * o.auc
		for w, g := range o.gmean {
			mean.gmean[w] += share * g
		}
	}
	return mean, errors.Join(errs...)
}

// judge fits to a fold's Train rows and scores its Test rows.
func (t *task) judge(ctx context.Context, f classify.Fold, s classify.Settings) (outcome, error) {
	x, y := t.part(f.Train)
	c, report, err := classify.Fit(ctx, x, y, nil, s)
	if err != nil {
		return outcome{}, err
	}
	test, labels := t.part(f.Test)
	o, err := assess(c, report, test, labels, false)
	if err == nil {
		o.gmean = o.gmean[:len(ways)]
	}
	return o, err
}

func (t *task) part(rows []int) (dbn.Matrix, []int) {
	x, y := dbn.NewMatrix(len(rows), t.x.Cols), make([]int, len(rows))
	for i, r := range rows {
		copy(x.Row(i), t.x.Row(r))
		y[i] = t.y[r]
	}
	return x, y
}

// cutOf returns the log odds above which costs decide for the second class.
func cutOf(c classify.CostVector) float64 {
	p := c.Threshold()
	return math.Log(p / (1 - p))
}

func above(odds []float64, cut float64) float64 {
	n := 0
	for _, z := range odds {
		if z > cut {
			n++
		}
	}
	return float64(n) / float64(len(odds))
}

// read reads a task: a header, then features, of which an empty one is missing,
// the class, 0 or 1, and the number of the fold.
func read(path string) (*task, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) < 2 || len(lines[0]) < 3 {
		return nil, fmt.Errorf("%s: no rows of features, class and fold: write it again by bench/peers/study/develop.py", path)
	}
	n := len(lines[0]) - 2
	t := &task{x: dbn.NewMatrix(len(lines)-1, n)}
	for i, line := range lines[1:] {
		for j, text := range line[:n] {
			v, err := math.NaN(), error(nil)
			if text != "" {
				v, err = strconv.ParseFloat(text, 32)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: line %d, column %s: %q is not a number", path, i+2, lines[0][j], text)
			}
			t.x.Row(i)[j] = float32(v)
		}
		label, err := strconv.Atoi(line[n])
		fold, err2 := strconv.Atoi(line[n+1])
		if err != nil || err2 != nil || label < 0 || label > 1 || fold < 0 || fold >= len(lines) {
			return nil, fmt.Errorf("%s: line %d: class %q and fold %q: want 0 or 1, and a number", path, i+2, line[n], line[n+1])
		}
		t.y = append(t.y, label)
		for fold >= len(t.folds) {
			t.folds = append(t.folds, classify.Fold{})
		}
		t.folds[fold].Test = append(t.folds[fold].Test, i)
	}
	if err := t.fillTraining(); err != nil {
		return nil, fmt.Errorf("%s: %w: write it again by bench/peers/study/develop.py", path, err)
	}
	return t, nil
}

// fillTraining gives each fold the rows that it does not test. It reports a fold that does
// not test both classes.
func (t *task) fillTraining() error {
	for f, fold := range t.folds {
		_, y := t.part(fold.Test)
		if !slices.Contains(y, 0) || !slices.Contains(y, 1) {
			return fmt.Errorf("fold %d has not rows of both classes", f)
		}
		for i := range t.y {
			if !slices.Contains(t.folds[f].Test, i) {
				t.folds[f].Train = append(t.folds[f].Train, i)
			}
		}
	}
	return nil
}
