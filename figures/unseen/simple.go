package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/baseline"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// simpleMethods are the methods of `trainer fit` that are judged here too.
var simpleMethods = []baseline.Method{baseline.OneColumn, baseline.LogisticRegression}

// simpleVariant is the name of their only variant.
const simpleVariant = "all aids"

// compareAll writes the cells of the simple methods on all splits of the sets.
func compareAll(ctx context.Context, folder string, names []string, out, log io.Writer) error {
	var all []cell
	for _, name := range names {
		s, err := loadSet(folder, name)
		if err != nil {
			return err
		}
		began := time.Now()
		cs, err := s.compare(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, cs...)
		fmt.Fprintf(log, "%s: %d splits in %v\n", name, len(s.Splits), time.Since(began).Round(time.Second))
	}
	return writeCells(out, cellHeader, all)
}

// compare judges every split by the simple methods.
func (s *set) compare(ctx context.Context) ([]cell, error) {
	layout, err := s.layout()
	if err != nil {
		return nil, err
	}
	all := split{}
	for _, l := range s.lives() {
		all.Train = append(all.Train, l.tool)
	}
	rows, lessons, _, err := train.Lessons(ctx, train.Job{
		Config: s.config(), Layout: layout, Program: "unseen", Log: zerolog.Nop(),
		Inputs: []train.Input{{Name: s.Name, Windows: s.table.Rows(), Table: s.part(all)}},
	})
	if err != nil {
		return nil, err
	}
	var out []cell
	for _, p := range s.Splits {
		t, err := taskOf(p, rows, lessons)
		if err != nil {
			return nil, err
		}
		for _, m := range simpleMethods {
			a, err := m.Judge(ctx, t)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %s: %w", p.Protocol, p.Name, m, err)
			}
			out = append(out, s.cells(p, m, a, rows)...)
		}
	}
	return out, nil
}

// rowsOf returns the rows of some tools, ascending.
func rowsOf(rows *table.Table, tools []string) []int {
	var out []int
	for i, tool := range rows.Tool {
		if slices.Contains(tools, tool) {
			out = append(out, i)
		}
	}
	return out
}

// taskOf returns what simple methods learn from and judge in a split: rows relative to the reference
// in the mode that `trainer fit` keeps to in doubt, as the tools that are learnt from teach it.
func taskOf(p split, rows *table.Table, all *classify.Table) (baseline.Task, error) {
	labelled, bare := rowsOf(rows, p.Train), rowsOf(rows, p.Unlabelled)
	seen := slices.Concat(labelled, bare)
	slices.Sort(seen)
	x := all.X
	if len(all.Views) > 0 {
		x, _ = all.Views[0].Rows(seen, nil)
	}
	part := func(some []int) dbn.Matrix { return classify.Part(x, some).(dbn.Matrix) }
	t := baseline.Task{X: part(labelled), Test: part(rowsOf(rows, p.Test)), Ordered: all.Ordered, Seed: 1, Workers: 1}
	for _, i := range labelled {
		t.Y, t.Groups = append(t.Y, all.Y[i]), append(t.Groups, rows.Tool[i])
		if all.Wear != nil {
			t.Wear = append(t.Wear, all.Wear[i])
		}
	}
	if len(bare) > 0 {
		t.Unlabelled.X = part(bare)
	}
	for _, i := range bare {
		t.Unlabelled.Groups, t.Unlabelled.After = append(t.Unlabelled.Groups, rows.Tool[i]), append(t.Unlabelled.After, len(labelled))
	}
	ended := func(tool string) bool { return slices.Contains(p.Unlabelled, tool) || all.Ended(tool) }
	var err error
	t.Weights, err = (&classify.Table{X: t.X, Y: t.Y, Groups: t.Groups, Ordered: t.Ordered, Ended: ended, Unlabelled: t.Unlabelled}).Weigh(classify.Settings{})
	return t, err
}

// cells returns a cell for each tool of a split that a method has judged.
func (s *set) cells(p split, m baseline.Method, a *baseline.Answer, rows *table.Table) []cell {
	var out []cell
	test := rowsOf(rows, p.Test)
	called, faulty := a.Decide(), make([]bool, len(test))
	for _, tool := range p.Test {
		c := cell{Data: s.Name, Protocol: p.Protocol, Unit: p.Unit, Split: p.Name, Method: string(m), Variant: simpleVariant, Tool: tool, AUC: math.NaN()}
		for n, i := range test {
			if rows.Tool[i] == tool {
				faulty[n] = rows.Class[i] != classify.Healthy
				c.add(decided(faulty[n], called[n] != classify.Healthy), 1)
			}
		}
		out = append(out, c)
	}
	if slices.Contains(faulty, true) && slices.Contains(faulty, false) {
		auc := score.AUC(a.Scores(), faulty)
		for k := range out {
			out[k].AUC = auc
		}
	}
	return out
}
