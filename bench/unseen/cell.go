package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	gonum "gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/bench/study/stat"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/score"
)

// cell is what one method made of one tool that it had not seen: counts of windows.
type cell struct {
	Data, Protocol, Unit, Split, Method, Variant, Tool string

	counts
	AUC float64 // of all windows of the split; NaN if one class is missing

	flank *own // of Flank's own cells; else nil
}

// counts is a confusion of windows by whether they were called faulty.
type counts struct{ TP, FN, TN, FP float64 }

func (c *counts) add(o counts, times float64) {
	c.TP += times * o.TP
	c.FN += times * o.FN
	c.TN += times * o.TN
	c.FP += times * o.FP
}

// recall is NaN without a faulty window, specificity without a healthy one, gmean
// without either.
func (c counts) recall() float64      { return c.TP / (c.TP + c.FN) }
func (c counts) specificity() float64 { return c.TN / (c.TN + c.FP) }
func (c counts) gmean() float64       { return math.Sqrt(c.recall() * c.specificity()) }

// own is what only Flank says of a tool.
type own struct {
	Unknown counts // windows whose decision does not stand, by what it was

	// Windows whose conformal set holds their class, of the healthy and of the
	// faulty ones; NaN if the model has no such sets.
	SetHealthy, SetFaulty float64

	Wear   float64 // windows with measured wear, the windows of the reference too; 0 if wear is not estimated
	Known  float64 // of them those with an estimate
	Error  float64 // sum of absolute errors over them, µm
	Inside float64 // of them those with the wear in the interval

	Worst   float64 // the greatest wear of the tool, measured, µm
	AlarmUM float64 // measured at the first alarm; NaN if there was none
}

var cellHeader = []string{"data", "protocol", "unit", "split", "method", "variant", "tool", "tp", "fn", "tn", "fp", "auc"}

var ownHeader = slices.Concat(cellHeader, []string{
	"unknown_tp", "unknown_fn", "unknown_tn", "unknown_fp", "set_healthy", "set_faulty",
	"wear", "wear_known", "wear_error", "wear_inside", "worst_um", "alarm_um",
})

// simpleFile is the file of the simple methods' cells.
const simpleFile = "simple.csv"

// cellFiles are the files of cells in their folder: Flank's, the simple methods' and the peers'.
var cellFiles = []string{"cells.csv", simpleFile, "peers.csv"}

// keys are the cell's columns of words, and numbers the others. Flank's own cells have more of these.
func (c *cell) keys() []*string {
	return []*string{&c.Data, &c.Protocol, &c.Unit, &c.Split, &c.Method, &c.Variant, &c.Tool}
}

func (c *cell) numbers() []*float64 {
	all := []*float64{&c.TP, &c.FN, &c.TN, &c.FP, &c.AUC}
	if o := c.flank; o != nil {
		all = append(all, &o.Unknown.TP, &o.Unknown.FN, &o.Unknown.TN, &o.Unknown.FP, &o.SetHealthy, &o.SetFaulty,
			&o.Wear, &o.Known, &o.Error, &o.Inside, &o.Worst, &o.AlarmUM)
	}
	return all
}

// digits are those behind the point of some numbers; others are written as they are.
var digits = map[string]int{"auc": 4, "wear_error": 1, "worst_um": 1, "alarm_um": 1}

// line is the cell as a line under ownHeader, or under cellHeader if it is not Flank's.
func (c cell) line() (line []string) {
	for _, text := range c.keys() {
		line = append(line, *text)
	}
	for _, v := range c.numbers() {
		if n, ok := digits[ownHeader[len(line)]]; ok {
			line = append(line, columns.Number(*v, n))
		} else {
			line = append(line, number(*v, 64))
		}
	}
	return line
}

func loadCells(folder string) ([]cell, error) {
	var all []cell
	for _, name := range cellFiles {
		path := filepath.Join(folder, name)
		cs, err := readCells(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, cs...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no cells in %v: make them with `make unseen`", folder, cellFiles)
	}
	return all, nil
}

// readCells reads one file of cells. An error names file, line and column.
func readCells(path string) ([]cell, error) {
	f, err := columns.Open(path)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(f.Header, cellHeader) && !slices.Equal(f.Header, ownHeader) {
		return nil, fmt.Errorf("%s:1: these are not the columns of a file of cells: take the file away and make it again", path)
	}
	var out []cell
	return out, f.Each(func(r *columns.Row) error {
		var c cell
		if len(f.Header) == len(ownHeader) {
			c.flank = &own{}
		}
		for k, text := range c.keys() {
			*text = r.Text(ownHeader[k])
		}
		for k, v := range c.numbers() {
			*v = r.Maybe(ownHeader[len(c.keys())+k])
		}
		out = append(out, c)
		if !(min(c.TP, c.FN, c.TN, c.FP) >= 0) {
			return errors.New("one of the columns tp, fn, tn and fp is empty or negative")
		}
		return nil
	})
}

// cellLog is Flank's file of cells, to which lines are appended as they are made.
type cellLog struct {
	file *os.File
	done map[[5]string]bool // data, protocol, split, method, variant
}

// key names what is computed at once.
func (c cell) key() [5]string { return [5]string{c.Data, c.Protocol, c.Split, c.Method, c.Variant} }

// openLog opens a file of cells, without the cells of the variants that are to be made
// again.
func openLog(path string, again []string) (*cellLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	cs, err := readCells(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cs = slices.DeleteFunc(cs, func(c cell) bool { return slices.Contains(again, c.Variant) })
	l := &cellLog{done: make(map[[5]string]bool)}
	for _, c := range cs {
		l.done[c.key()] = true
	}
	if err := config.WriteFileTo(path, func(out io.Writer) error { return writeCells(out, ownHeader, cs) }); err != nil {
		return nil, err
	}
	l.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	return l, err
}

// writeCells writes cells below a header, if there is one.
func writeCells(out io.Writer, header []string, cs []cell) error {
	var lines [][]string
	if header != nil {
		lines = append(lines, header)
	}
	for _, c := range cs {
		lines = append(lines, c.line())
	}
	return csv.NewWriter(out).WriteAll(lines)
}

func (l *cellLog) append(cs []cell) error { return writeCells(l.file, nil, cs) }

// tally is the cells of one method and variant on one data set by one protocol.
type tally struct {
	method, variant string
	tools           []string   // in the order of their first cells
	units           []string   // likewise
	splits          int        // that there are cells of
	counts          [][]counts // by unit and tool
	unknown         [][]counts // likewise; nil for peers
	aucs            []float64  // of splits, where there is one
	flank           []cell     // the cells themselves, if they are Flank's
}

// tallies sums the cells of a data set and protocol, by method and variant in the
// order in which these first appear.
func tallies(cs []cell, data, protocol string) []*tally {
	var out []*tally
	splits := make(map[[5]string]bool)
	for _, c := range cs {
		if c.Data != data || c.Protocol != protocol {
			continue
		}
		at := slices.IndexFunc(out, func(t *tally) bool { return t.method == c.Method && t.variant == c.Variant })
		if at < 0 {
			at = len(out)
			out = append(out, &tally{method: c.Method, variant: c.Variant})
		}
		t := out[at]
		t.add(c)
		if splits[c.key()] {
			continue
		}
		splits[c.key()] = true
		t.splits++
		if c.AUC == c.AUC {
			t.aucs = append(t.aucs, c.AUC)
		}
	}
	return out
}

func (t *tally) add(c cell) {
	tool := slices.Index(t.tools, c.Tool)
	if tool < 0 {
		tool = len(t.tools)
		t.tools = append(t.tools, c.Tool)
		for u := range t.counts {
			t.counts[u], t.unknown[u] = append(t.counts[u], counts{}), append(t.unknown[u], counts{})
		}
	}
	unit := slices.Index(t.units, c.Unit)
	if unit < 0 {
		unit = len(t.units)
		t.units = append(t.units, c.Unit)
		t.counts, t.unknown = append(t.counts, make([]counts, len(t.tools))), append(t.unknown, make([]counts, len(t.tools)))
	}
	t.counts[unit][tool].add(c.counts, 1)
	if c.flank != nil {
		t.unknown[unit][tool].add(c.flank.Unknown, 1)
		t.flank = append(t.flank, c)
	}
}

// figures are means over units: one counts as often as another.
type figures struct {
	GMean, Median, Least, Recall, Specificity float64 // Median and Least are of the G-mean
	Units                                     int     // that have both classes
}

// figures returns the figures if each tool had been there as often as times says; nil
// stands for once. With judged, windows whose verdict is unknown are left out.
func (t *tally) figures(times []float64, judged bool) figures {
	f := figures{Least: math.Inf(1)}
	var gs []float64
	for u := range t.counts {
		var sum counts
		for k, c := range t.counts[u] {
			n := 1.0
			if times != nil {
				n = times[k]
			}
			sum.add(c, n)
			if judged {
				sum.add(t.unknown[u][k], -n)
			}
		}
		g := sum.gmean()
		if g != g {
			continue
		}
		f.Units++
		gs = append(gs, g)
		f.GMean += g
		f.Recall += sum.recall()
		f.Specificity += sum.specificity()
		f.Least = min(f.Least, g)
	}
	n := float64(f.Units)
	f.Median = stat.Median(gs)
	f.GMean, f.Recall, f.Specificity = f.GMean/n, f.Recall/n, f.Specificity/n
	return f
}

// auc returns the mean over splits, NaN if none has one.
func (t *tally) auc() float64 {
	return gonum.Mean(t.aucs, nil)
}

// aucBounds returns where the mean of auc lies if splits are drawn with replacement,
// which are tools where one is left out at a time; NaN with fewer than five.
func (t *tally) aucBounds() bootstrap.Interval {
	if len(t.aucs) < bootstrap.Few {
		return bootstrap.None
	}
	of := score.Bootstrap(len(t.aucs), 1, func(drawn []int, figures []float64) {
		figures[0] = 0
		for _, i := range drawn {
			figures[0] += t.aucs[i] / float64(len(t.aucs))
		}
	})[0]
	return bootstrap.Interval{Low: float64(of[0]), High: float64(of[1])}
}

// bootstrapTools returns where the mean G-mean of a tally lies if tools are drawn, and its lead over
// another, which may be nil, see [bootstrap.Tools]. Both tallies must be of the same data set and
// protocol; tools that one of them lacks are not drawn.
func bootstrapTools(a, b *tally) (own, lead bootstrap.Interval) {
	tools := slices.Clone(a.tools)
	if b != nil {
		tools = slices.DeleteFunc(tools, func(name string) bool { return !slices.Contains(b.tools, name) })
	}
	drawn := bootstrap.Tools(tools, 2, func(times map[string]float64) []float64 {
		g := a.figures(a.times(times), false)
		switch {
		case g.Units == 0:
			return nil // only healthy tools were drawn
		case b == nil:
			return []float64{g.GMean, math.NaN()}
		}
		return []float64{g.GMean, g.GMean - b.figures(b.times(times), false).GMean}
	})
	return drawn[0], drawn[1]
}

// times returns how often each of t's tools was drawn.
func (t *tally) times(drawn map[string]float64) []float64 {
	out := make([]float64, len(t.tools))
	for k, name := range t.tools {
		out[k] = drawn[name]
	}
	return out
}
