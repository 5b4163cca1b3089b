package train

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// mostTools is how many tools a model.DataSet names.
const mostTools = 1000

// lineage gathers what a model.DataSet says of an input.
type lineage struct {
	set    model.DataSet
	length time.Duration // of windows
	tools  map[tool]bool
}

// dataSetOf returns what windows of an input are, of one length.
func dataSetOf(in *Input, os []observed, length time.Duration) model.DataSet {
	l := lineage{length: length}
	for i := range os {
		l.add(&os[i])
	}
	return l.dataSet(in)
}

// dataSets returns what windows of inputs are, of one length, and counts them.
func dataSets(inputs []Input, found [][]observed, length time.Duration, counts *card.Tally) (all []model.DataSet, err error) {
	for i := range inputs {
		l := lineage{length: length}
		for o, err := range windowsOf(inputs[i:i+1], found[i:i+1], false) {
			if err != nil {
				return nil, err
			}
			l.add(o)
		}
		counts.Windows += l.set.Windows
		all = append(all, l.dataSet(&inputs[i]))
	}
	return all, nil
}

// add adds a window.
func (l *lineage) add(o *observed) {
	if l.tools == nil {
		l.tools = make(map[tool]bool)
	}
	l.set.Windows++
	l.tools[tool{o.machine, o.Tool}] = true
	if !signal.HasClock(o.Start) {
		return
	}
	if l.set.From.IsZero() || o.Start.Before(l.set.From) {
		l.set.From = o.Start.UTC()
	}
	if end := o.Start.Add(l.length).UTC(); end.After(l.set.To) {
		l.set.To = end
	}
}

// dataSet returns what was added, of an input that is read.
func (l *lineage) dataSet(in *Input) model.DataSet {
	d := l.set
	d.Name, d.SHA256, d.Offsets, d.CutOff = in.Name, in.SHA256, in.Offsets, in.CutOff
	all := slices.SortedFunc(maps.Keys(l.tools), func(a, b tool) int {
		return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.name, b.name))
	})
	d.MoreTools = max(0, len(all)-mostTools)
	for _, t := range all[:len(all)-d.MoreTools] {
		if n := len(d.Machines); n == 0 || d.Machines[n-1].Machine != t.machine {
			d.Machines = append(d.Machines, model.MachineTools{Machine: t.machine})
		}
		m := &d.Machines[len(d.Machines)-1]
		m.Tools = append(m.Tools, t.name)
	}
	return d
}

// labelSum returns the SHA-256 of the labels that a table of training rows has, in the order of its rows.
func labelSum(t *rowTable) string {
	h := sha256.New()
	for i, class := range t.Class {
		fmt.Fprintf(h, "%q %d\n", t.group[i], class) // a hash never fails to write
	}
	return hex.EncodeToString(h.Sum(nil))
}
