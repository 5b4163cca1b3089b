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

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/internal/config/atomicfile"
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

// line is the cell as a line under ownHeader, or under cellHeader if it is not Flank's.
func (c cell) line() []string {
	line := []string{c.Data, c.Protocol, c.Unit, c.Split, c.Method, c.Variant, c.Tool}
	for _, v := range []float64{c.TP, c.FN, c.TN, c.FP} {
		line = append(line, number(v, 64))
	}
	line = append(line, columns.Number(c.AUC, 4))
	o := c.flank
	if o == nil {
		return line
	}
	for _, v := range []float64{o.Unknown.TP, o.Unknown.FN, o.Unknown.TN, o.Unknown.FP, o.SetHealthy, o.SetFaulty, o.Wear, o.Known} {
		line = append(line, number(v, 64))
	}
	return append(line, columns.Number(o.Error, 1), number(o.Inside, 64), columns.Number(o.Worst, 1), columns.Number(o.AlarmUM, 1))
}

// loadCells reads the cells of a folder.
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
		c := cell{
			Data: r.Text("data"), Protocol: r.Text("protocol"), Unit: r.Text("unit"), Split: r.Text("split"),
			Method: r.Text("method"), Variant: r.Text("variant"), Tool: r.Text("tool"),
		}
		c.TP, c.FN, c.TN, c.FP, c.AUC = r.Maybe("tp"), r.Maybe("fn"), r.Maybe("tn"), r.Maybe("fp"), r.Maybe("auc")
		if len(f.Header) == len(ownHeader) {
			c.flank = &own{
				Unknown:    counts{TP: r.Maybe("unknown_tp"), FN: r.Maybe("unknown_fn"), TN: r.Maybe("unknown_tn"), FP: r.Maybe("unknown_fp")},
				SetHealthy: r.Maybe("set_healthy"), SetFaulty: r.Maybe("set_faulty"),
				Wear: r.Maybe("wear"), Known: r.Maybe("wear_known"), Error: r.Maybe("wear_error"), Inside: r.Maybe("wear_inside"),
				Worst: r.Maybe("worst_um"), AlarmUM: r.Maybe("alarm_um"),
			}
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
	if err := atomicfile.WriteTo(path, func(out io.Writer) error { return writeCells(out, ownHeader, cs) }); err != nil {
		return nil, err
	}
	l.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	return l, err
}

// writeCells writes cells below a header, if there is one.
func writeCells(out io.Writer, header []string, cs []cell) error {
	w := csv.NewWriter(out)
	if header != nil {
		w.Write(header)
	}
	for _, c := range cs {
		w.Write(c.line())
	}
	w.Flush()
	return w.Error()
}

// append adds the cells of one split.
func (l *cellLog) append(cs []cell) error { return writeCells(l.file, nil, cs) }
