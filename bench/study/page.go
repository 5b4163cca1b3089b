package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/bench/imbalance"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/internal/train/study"
)

// Control is the method that all others are compared with.
const Control = study.Control

// goal is the mean G-mean that the study sets out to reach, and more if it can
// be had.
const goal, goalBeyond = 0.875, 0.885

// Input is what the pages are made of.
type Input struct {
	Cells   []imbalance.Cell   // of all methods
	Methods []imbalance.Method // ours, for their settings
	Paper   *Paper
	// Defaults is the name of a page in the folder that says how default
	// settings were chosen; empty: there is none.
	Defaults string
	// Drill is the name of a page in the folder of the experiment on gun drills;
	// empty: there is none.
	Drill string
}

//go:embed README.md.tmpl
var readmeText string

//go:embed sets.md.tmpl
var setsText string

// Files returns the pages and drawings by file name.
func Files(in Input) (map[string][]byte, error) {
	p, err := newPages(in)
	if err != nil {
		return nil, err
	}
	files := p.plots()
	functions := template.FuncMap{"title": title, "peer": func(method string) string { return names[method].peer }, "gmean": func() Metric { return GMean }}
	files["README.md"] = []byte(document.Fill(readmeText, p, functions))
	files["gmean.md"] = []byte(document.Fill(setsText, tablesOf{p, GMean}, functions))
	files["accuracy.md"] = []byte(document.Fill(setsText, tablesOf{p, Accuracy}, functions))
	return files, nil
}

// Write writes the files into a folder, which it makes if need be.
func Write(dir string, in Input) error {
	files, err := Files(in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := config.WriteFile(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

// pages is what the templates show.
type pages struct {
	Input
	*board
	Sets     []string // that all methods have
	Gaps     []string // methods that lack sets, in words
	all      map[Metric]comparison
	seven    map[Metric]comparison // the paper's columns, with the study's settings
	first    *comparison           // all by the G-mean of trial 1 alone; nil if trial 1 is the only one, or some method lacks it
	BestPeer string                // by mean rank of G-mean; empty: there is none
}

func newPages(in Input) (*pages, error) {
	b, err := newBoard(in.Cells)
	if err != nil {
		return nil, err
	}
	p := &pages{Input: in, board: b, all: map[Metric]comparison{}, seven: map[Metric]comparison{}}
	if !p.Has(Control) {
		return nil, fmt.Errorf("no cells of %s, with which all others are compared: run the study first", Control)
	}
	p.Sets = slices.DeleteFunc(slices.Clone(b.sets), func(set string) bool {
		return slices.ContainsFunc(b.methods, func(m string) bool { return !b.has(m, []string{set}) })
	})
	p.Gaps = b.gaps(b.sets)
	if len(p.Sets) < 2 || len(b.methods) < 2 {
		return nil, errors.New("fewer than two methods, or fewer than two sets that all of them have:\n" + strings.Join(p.Gaps, "\n"))
	}
	var seven []string
	for _, column := range in.Paper.Methods {
		if m := ofPaper(column); p.Has(m) {
			seven = append(seven, m)
		}
	}
	for _, m := range []Metric{GMean, Accuracy} {
		p.all[m] = b.compare(m, Control, b.methods, p.Sets)
		if len(seven) > 1 {
			p.seven[m] = b.compare(m, Control, seven, p.Sets)
		}
	}
	first, err := newBoard(slices.DeleteFunc(slices.Clone(in.Cells), func(c imbalance.Cell) bool { return c.Trial != 1 }))
	if err != nil {
		return nil, err
	}
	if b.trials(Control, p.Sets) > 1 && !slices.ContainsFunc(b.methods, func(m string) bool { return !first.has(m, p.Sets) }) {
		c := first.compare(GMean, Control, b.methods, p.Sets)
		p.first = &c
	}
	if i := slices.IndexFunc(p.all[GMean].methods, isPeer); i >= 0 {
		p.BestPeer = p.all[GMean].methods[i]
	}
	return p, nil
}

func (p *pages) mean(method string, m Metric) float64 {
	return mean(p.column(method, m, p.Sets))
}

// spread returns the mean over the sets of a method's spread over trials.
func (p *pages) spread(method string, m Metric) float64 {
	sum := 0.
	for _, set := range p.Sets {
		sum += p.scores[pair{method, set}].spread[m] / float64(len(p.Sets))
	}
	return sum
}

// number writes a score with three digits, – for none.
func number(v float64) string { return document.Figure("%.3f", v) }

// spreadOf writes "0.871 ± 0.008", without a spread if there is none.
func spreadOf(mean, spread float64) string {
	if math.IsNaN(spread) {
		return number(mean)
	}
	return number(mean) + " ± " + number(spread)
}

// probability writes a p-value with two digits.
func probability(p float64) string {
	switch {
	case math.IsNaN(p):
		return "–"
	case p > 0.001:
		return fmt.Sprintf("%.3f", p)
	default:
		return fmt.Sprintf("%.0e", p)
	}
}

// table writes a Markdown table. Columns but the first are right-aligned; "|" in
// a cell is the caller's to avoid.
func table(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	b.WriteString("|---|" + strings.Repeat("---:|", len(header)-1) + "\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

func strong(bold bool, s string) string {
	if bold && s != "" {
		return "**" + s + "**"
	}
	return s
}

// plots draws, by file name, what the pages show.
func (p *pages) plots() map[string][]byte {
	files := map[string][]byte{}
	for metric, name := range map[Metric]string{GMean: "gmean", Accuracy: "accuracy"} {
		c := p.all[metric]
		var ranks []report.Rank
		var boxes []report.BoxRow
		for _, m := range c.methods {
			ranks = append(ranks, report.Rank{Name: title(m), Mean: c.rank(m), Color: color(m), Bold: m == Control})
			boxes = append(boxes, report.BoxRow{Name: title(m), Values: p.column(m, metric, p.Sets), Color: color(m), Bold: m == Control})
		}
		files["ranks-"+name+".svg"] = report.Ranks(fmt.Sprintf("Mean rank of %s over %d sets", metric, len(p.Sets)), c.test.CriticalDifference(level), ranks)
		files["boxes-"+name+".svg"] = report.Boxes(fmt.Sprintf("%s on %d sets", capital(metric), len(p.Sets)),
			fmt.Sprintf("One box for each of %d methods, the best mean rank first; its values are the sets.", len(boxes)), fmt.Sprint(metric), boxes)
		for _, other := range []struct{ method, file string }{{p.BestPeer, "peer"}, {"dbn", "dbn"}} {
			if _, ok := c.against[other.method]; ok {
				files["scatter-"+other.file+"-"+name+".svg"] = p.scatter(other.method, metric)
			}
		}
		if sets := p.known(); len(sets) > 0 {
			files["scatter-paper-"+name+".svg"] = report.Scatter{
				Title:       fmt.Sprintf("ECS-DBN: ours against the paper's %s", metric),
				Description: fmt.Sprintf("A point for each of %d sets: printed by the paper to the right, measured here upwards.", len(sets)),
				XLabel:      "printed by the paper", YLabel: "measured here",
				X: p.Paper.column(p.Paper.Methods[0], metric, sets), Y: p.column(Control, metric, sets), Names: sets, Color: report.Purple,
			}.SVG()
		}
	}
	return files
}

func (p *pages) scatter(other string, m Metric) []byte {
	return report.Scatter{
		Title:       fmt.Sprintf("%s: ECS-DBN and %s", capital(m), title(other)),
		Description: fmt.Sprintf("A point for each of %d sets: %s to the right, ECS-DBN upwards.", len(p.Sets), title(other)),
		XLabel:      title(other), YLabel: title(Control),
		X: p.column(other, m, p.Sets), Y: p.column(Control, m, p.Sets), Names: p.Sets, Color: color(other),
	}.SVG()
}

// color is orange for the control, blue for what is ours besides, grey for peers.
func color(method string) string {
	switch {
	case method == Control:
		return report.Orange
	case isPeer(method):
		return report.Grey
	}
	return report.Blue
}

func capital(m Metric) string {
	if m == Accuracy {
		return "Accuracy"
	}
	return m.String()
}

//go:embed names.csv
var namesFile []byte

// name is a method's title, and what it is if it is one of Python's classifiers.
type name struct{ title, peer string }

var names = readNames()

func readNames() map[string]name {
	all := make(map[string]name)
	f, err := columns.Read(bytes.NewReader(namesFile), "names.csv", "method", "title", "peer")
	if err == nil {
		err = f.Each(func(r *columns.Row) error {
			all[r.Text("method")] = name{r.Text("title"), r.Text("peer")}
			return nil
		})
	}
	if err != nil {
		panic("study: " + err.Error()) // it is a part of the program
	}
	return all
}

// title returns what pages call a method.
func title(method string) string { return cmp.Or(names[method].title, method) }

func isPeer(method string) bool { return names[method].peer != "" }

// ofPaper returns our method for a column of the paper's tables, with the
// study's settings.
func ofPaper(column string) string { return strings.ToLower(column) }

// atPaperSettings returns the same with the paper's settings.
func atPaperSettings(column string) string { return ofPaper(column) + "-paper" }
