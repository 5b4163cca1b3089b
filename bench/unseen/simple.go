package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/baseline"
	"github.com/flank-tcm/flank/pkg/classify"
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

// taskOf returns what simple methods learn from and judge in a split.
func taskOf(p split, rows *table.Table, all *classify.Table) (baseline.Task, error) {
	return baseline.NewTask(all, rowsOf(rows, p.Train), rowsOf(rows, p.Unlabelled), rowsOf(rows, p.Test))
}

// cells returns a cell for each tool of a split that a method has judged.
func (s *set) cells(p split, m baseline.Method, a *baseline.Answer, rows *table.Table) []cell {
	var out []cell
	test := rowsOf(rows, p.Test)
	called, faulty := a.Decide(), make([]bool, len(test))
	for _, tool := range p.Test {
		c := cell{Data: s.Name, Protocol: p.Protocol, Unit: p.Unit, Split: p.Name, Method: string(m), Variant: simpleVariant, Tool: tool}
		for n, i := range test {
			if rows.Tool[i] == tool {
				faulty[n] = rows.Class[i] != classify.Healthy
				c.add(decided(faulty[n], called[n] != classify.Healthy), 1)
			}
		}
		out = append(out, c)
	}
	setAUC(out, a.Scores(), faulty)
	return out
}
