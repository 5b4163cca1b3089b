// Parts measures what each part of the ECS-DBN adds on turning tools never seen: the network,
// pre-training, depth, and costs; with two and with three classes. It writes docs/figures/parts.md.
//
//	parts --data FOLDER
//
// Each part is taken away alone, all else being the default. What each variant decides on each tool is
// kept in bench/parts/cells.jsonl; cells that are there are not measured again. `make parts` calls it.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
	"github.com/flank-tcm/flank/pkg/signal"
)

func main() { command.Main("parts", run) }

// cell is what one variant decides on tools that it has not seen.
type cell struct {
	Classes int                        `json:"classes"`
	Seed    uint64                     `json:"seed"`
	Variant string                     `json:"variant"`
	Tools   map[string]score.Confusion `json:"tools"`
}

func run(ctx context.Context, args []string, _, stderr io.Writer) error {
	flags := command.Flags("parts", stderr)
	data := flags.String("data", os.Getenv("FLANK_DATA"), "`folder` of the recordings; only for cells that are not there")
	layout := flags.String("layout", "../examples/turning/layout.yaml", "`file` of their layout")
	file := flags.String("cells", "parts/cells.jsonl", "`file` of cells")
	out := flags.String("out", "../docs/figures/parts.md", "`file` of the page")
	seeds := flags.Uint64("seeds", 10, "how many seeds networks are trained with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cells, err := columns.Lines[cell](*file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, classes := range []int{2, 3} {
		for seed := range *seeds {
			if slices.ContainsFunc(cells, func(c cell) bool { return c.Classes == classes && c.Seed == seed+1 }) {
				continue
			}
			began := time.Now()
			more, err := measure(ctx, *data, *layout, classes, seed+1)
			if err != nil {
				return fmt.Errorf("%d classes, seed %d: %w", classes, seed+1, err)
			}
			cells = append(cells, more...)
			if err := saveCells(*file, cells); err != nil {
				return err
			}
			fmt.Fprintf(stderr, "%d classes, seed %d: %v\n", classes, seed+1, time.Since(began).Round(time.Second))
		}
	}
	return config.WriteFile(*out, []byte(page(cells)))
}

func saveCells(file string, cells []cell) error {
	return config.WriteFileTo(file, func(out io.Writer) error {
		lines := json.NewEncoder(out)
		for _, c := range cells {
			if err := lines.Encode(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// networks are what the default network is without a part.
var networks = []struct {
	name   string
	change func(*dbn.Settings)
}{
	{ecsDBN, func(*dbn.Settings) {}},
	{"no pre-training", func(s *dbn.Settings) { s.Pretrain.Epochs = -1 }},
	{"one layer", func(s *dbn.Settings) { s.Hidden = []int{30} }},
}

// measure judges each turning tool by every variant that has not seen it.
func measure(ctx context.Context, data, layout string, classes int, seed uint64) ([]cell, error) {
	if data == "" {
		return nil, errors.New("say where the recordings are: --data FOLDER, or FLANK_DATA")
	}
	l, columns, err := signal.LoadLayout(layout)
	if err != nil {
		return nil, err
	}
	rec := source.Recording{Path: filepath.Join(data, "vicomtech-turning", "turning_wear_dev.csv"), Layout: l, Columns: columns}
	c := train.DefaultConfig()
	if classes == 3 {
		c.Label = wear.Rule{Classes: []wear.Class{{Name: "healthy"}, {Name: "worn", VBMaxUM: 150}, {Name: "faulty", VBMaxUM: 300}}}
	}
	c.Seed, c.Guard = seed, classify.GuardOff // a guard bounds networks of two classes only
	_, t, _, err := train.Lessons(ctx, train.Job{Config: c, Layout: l, Inputs: []train.Input{{Name: rec.Name(), Open: rec.Open}}, Log: zerolog.Nop()})
	if err != nil {
		return nil, err
	}
	t.Views = t.Views[:1] // one mode of the reference for all: log, which the trainer keeps to in doubt
	return judge(ctx, t, c, classes)
}

// judge holds each tool of a table out in turn.
func judge(ctx context.Context, t *classify.Table, c train.Config, classes int) (cells []cell, err error) {
	folds := classify.LeaveOneGroupOut(t.Groups)
	add := func(variant string, decide func(i int) int) {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.variant == variant }) {
			return
		}
		found := make(map[string]score.Confusion)
		for i, class := range t.Y {
			if found[t.Groups[i]] == nil {
				found[t.Groups[i]] = score.NewConfusion(classes)
			}
			found[t.Groups[i]].Add(class, decide(i))
		}
		cells = append(cells, cell{classes, c.Seed, variant, found})
	}
	for _, network := range networks {
		settings := c.Settings(1)
		network.change(&settings.Network)
		v, err := classify.CrossValidateTable(ctx, t, settings, folds)
		if err != nil {
			return nil, err
		}
		add(network.name, func(i int) int { return v.Decision[i] })
		for at, choice := range v.Reports[0].Costs.Choices {
			add(network.name+", "+choice.Name, func(i int) int {
				return v.Reports[v.Fold[i]].Costs.Choices[at].Costs.Decide(v.Posterior[classes*i : classes*(i+1)])
			})
		}
	}
	err = regress(ctx, t, folds, classes, add)
	return cells, err
}

// regress decides the rows that each fold holds out by logistic regressions, one for each limit of wear, with
// several costs. A row is of the last class whose regression says that it is of that class or a later one.
func regress(ctx context.Context, t *classify.Table, folds []classify.Fold, classes int, add func(variant string, decide func(i int) int)) error {
	names := []string{regressions, regressions + ", argmax", regressions + ", inverse_prior"}
	decided := [][]int{make([]int, len(t.Y)), make([]int, len(t.Y)), make([]int, len(t.Y))}
	for limit := 1; limit < classes; limit++ {
		pair := *t
		pair.Y = make([]int, len(t.Y))
		for i, class := range t.Y {
			if class >= limit {
				pair.Y[i] = 1
			}
		}
		for _, f := range folds {
			task, err := study.NewTask(&pair, f.Train, nil, f.Test)
			if err != nil {
				return err
			}
			a, err := study.LogisticRegression.Judge(ctx, task)
			if err != nil {
				return err
			}
			counts := make([]int, 2)
			for _, class := range task.Y {
				counts[class]++
			}
			for way, costs := range []classify.CostVector{a.Costs, {0, 0}, classify.InversePrior(counts)} {
				for n, i := range f.Test {
					if costs.Decide(a.Posterior[2*n:2*n+2]) == 1 {
						decided[way][i] = limit
					}
				}
			}
		}
	}
	for way, name := range names {
		add(name, func(i int) int { return decided[way][i] })
	}
	return nil
}

const (
	ecsDBN      = "default"
	regressions = "logistic regression"
)

type row struct{ variant, words string }

var rows = []row{
	{ecsDBN, "**ECS-DBN, default settings**"},
	{"no pre-training", "without pre-training"},
	{"one layer", "one hidden layer"},
	{regressions, "no hidden layer: logistic regression"},
	{"default, argmax", "equal costs"},
	{"default, inverse_prior", "costs of the inverse prior"},
	{"default, half_way", "costs half-way from the inverse prior to JADE's"},
	{"default, jade", "JADE's own costs"},
	{regressions + ", argmax", "logistic regression, equal costs"},
	{regressions + ", inverse_prior", "logistic regression, inverse prior"},
}

// result is what the cells of one variant say, one for each seed.
type result []cell

// gmeans returns the G-mean of all tools together, by seed, if tools had been there as often as times says; nil
// stands for once. It returns nil if a class has no rows then.
func (r result) gmeans(times map[string]float64) (out []float64) {
	for _, c := range r {
		sum := score.NewConfusion(c.Classes)
		for tool, m := range c.Tools {
			for a := range m {
				for b, n := range m[a] {
					if times != nil {
						n *= int(times[tool])
					}
					sum[a][b] += n
				}
			}
		}
		for class := range sum {
			if sum.RowsOf(class) == 0 {
				return nil
			}
		}
		out = append(out, sum.GMean())
	}
	return out
}

// tools returns the mean and the worst of the G-means of tools over the classes that each has, averaged over seeds.
func (r result) tools() (average float64, name string, worst float64) {
	worst = math.Inf(1)
	var all []float64
	for _, tool := range slices.Sorted(maps.Keys(r[0].Tools)) {
		var sum float64
		for _, c := range r {
			sum += c.Tools[tool].GMean() / float64(len(r))
		}
		if all = append(all, sum); sum < worst {
			name, worst = tool, sum
		}
	}
	return mean(all), name, worst
}

// lead returns by how much the G-mean is above another's, and its interval over tools.
func (r result) lead(other result) (float64, bootstrap.Interval) {
	return mean(r.gmeans(nil)) - mean(other.gmeans(nil)), bootstrap.Tools(slices.Collect(maps.Keys(r[0].Tools)), 1, func(drawn map[string]float64) []float64 {
		ours := r.gmeans(drawn)
		if ours == nil {
			return nil // no tool with a faulty window was drawn
		}
		return []float64{mean(ours) - mean(other.gmeans(drawn))}
	})[0]
}

func mean(x []float64) float64 { return stat.Mean(x, nil) }

// adds says what the interval of a lead, as it is printed, says of the part that is missing.
func adds(i bootstrap.Interval) string {
	const least = 0.0005
	switch {
	case i.Low >= least:
		return "adds"
	case i.High <= -least:
		return "takes away"
	}
	return "cannot be told"
}

// resultsOf returns the results of so many classes by variant.
func resultsOf(cells []cell, classes int) map[string]result {
	out := make(map[string]result)
	for _, c := range cells {
		if c.Classes == classes {
			out[c.Variant] = append(out[c.Variant], c)
		}
	}
	return out
}

func table(of map[string]result) string {
	var b strings.Builder
	b.WriteString("| | G-mean | of seeds | mean of tools | worst tool | default's lead | 95 % of draws | the missing part |\n|---|---:|---:|---:|---:|---:|---:|---|\n")
	for _, r := range rows {
		found := of[r.variant]
		if found == nil {
			continue
		}
		g := found.gmeans(nil)
		average, name, worst := found.tools()
		fmt.Fprintf(&b, "| %s | %.3f | %.3f–%.3f | %.3f | %.3f (%s) |", r.words, mean(g), slices.Min(g), slices.Max(g), average, worst, name)
		if r.variant == ecsDBN {
			b.WriteString(" – | – | |\n")
			continue
		}
		lead, i := of[ecsDBN].lead(found)
		fmt.Fprintf(&b, " %s | %s | %s |\n", bootstrap.Signed(lead), i.Signed(), adds(i))
	}
	return b.String()
}

//go:embed page.md.tmpl
var text string

// page is docs/figures/parts.md. A test holds what its sentences presume against the cells.
func page(cells []cell) string {
	two, three := resultsOf(cells, 2), resultsOf(cells, 3)
	g := three[ecsDBN].gmeans(nil)
	best, least := bestRegression(three)
	lead, _ := three[ecsDBN].lead(best)
	_, _, worst := three[ecsDBN].tools()
	number := func(v float64) string { return fmt.Sprintf("%.3f", v) }
	of := func(variant string) string { return number(mean(two[variant].gmeans(nil))) }
	return document.Fill(text, map[string]any{
		"Tools": len(two[ecsDBN][0].Tools), "Seeds": len(two[ecsDBN]), "Two": table(two), "Three": table(three), "Spread": fmt.Sprintf("%.2f", slices.Max(g)-slices.Min(g)),
		"Worst": number(worst), "Least": number(least), "Lead": bootstrap.Signed(lead), "Regression": of(regressions), "Default": of(ecsDBN), "EqualCosts": of(regressions + ", argmax"),
	}, nil)
}

// bestRegression returns the regressions whose costs give the greatest G-mean, and the greatest G-mean that any
// have of their worst tool.
func bestRegression(of map[string]result) (best result, least float64) {
	for _, r := range rows {
		if found := of[r.variant]; strings.HasPrefix(r.variant, regressions) {
			if best == nil || mean(found.gmeans(nil)) > mean(best.gmeans(nil)) {
				best = found
			}
			_, _, worst := found.tools()
			least = max(least, worst)
		}
	}
	return best, least
}
