package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
)

// Simple methods judge the windows that Flank judges, and find wear that is a force.
func TestCompareAll(t *testing.T) {
	folder := t.TempDir()
	if err := small().write(folder); err != nil {
		t.Fatal(err)
	}
	var out, again bytes.Buffer
	for _, to := range []io.Writer{&out, &again} {
		if err := compareAll(t.Context(), folder, []string{"small"}, to, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("made again, cells differ")
	}
	path := filepath.Join(folder, simpleFile)
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	cs, err := readCells(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(cs) != 6*len(simpleMethods) {
		t.Fatalf("%d cells", len(cs))
	}
	all := make(map[string]*counts)
	for _, c := range cs {
		if all[c.Method] == nil {
			all[c.Method] = &counts{}
		}
		all[c.Method].add(c.counts, 1)
		windows, faulty := 37.0, 10.0
		if c.Tool > "d" {
			windows, faulty = 22, 0
		}
		if n := c.TP + c.FN + c.TN + c.FP; n != windows || c.TP+c.FN != faulty || c.flank != nil {
			t.Errorf("tool %s: %+v, want %v windows, %v faulty", c.Tool, c, windows, faulty)
		}
		if faulty > 0 && !(c.AUC > 0.98) {
			t.Errorf("%s, tool %s: AUC %v", c.Method, c.Tool, c.AUC)
		}
	}
	for method, c := range all {
		if g := c.gmean(); !(g > 0.95) {
			t.Errorf("%s: G-mean %v", method, g)
		}
	}
}

// lessonsOf returns the rows of small, of which change makes others first.
func lessonsOf(t *testing.T, change func(r table.Row)) (*table.Table, *classify.Table) {
	t.Helper()
	s := small()
	all := split{Train: []string{"a", "b", "c", "d", "e", "f"}}
	part := table.New(s.table.Columns)
	from := s.part(all)
	for i := range from.Rows() {
		r := from.Row(i)
		r.Features = slices.Clone(r.Features)
		change(r)
		part.Append(r)
	}
	j, err := s.job(part, func(*train.Config) {})
	if err != nil {
		t.Fatal(err)
	}
	rows, lessons, _, err := train.Lessons(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return rows, lessons
}

// What is learnt does not depend on features of a tool that is judged, not even on whether they are
// positive, nor on labels of unlabelled tools.
func TestTaskSeesOnlyItsPart(t *testing.T) {
	p := split{Train: []string{"a", "b"}, Unlabelled: []string{"c", "e"}, Test: []string{"d"}}
	taskFrom := func(change func(r table.Row)) study.Task {
		rows, lessons := lessonsOf(t, change)
		task, err := taskOf(p, rows, lessons)
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	want := taskFrom(func(table.Row) {})
	if want.X.Rows != 2*37 || want.Test.Rows != 37 || len(want.Wear) != 2*37 || want.Weights[0] <= want.Weights[1] {
		t.Fatalf("%d rows, %d judged, %d with wear, weights %v", want.X.Rows, want.Test.Rows, len(want.Wear), want.Weights)
	}
	// ln(x/r) with r the median of the first three forces, 100, 112 and 124 N; the fourth is 131 N.
	if got, logs := float64(want.X.Row(0)[0]), math.Log(131.0/112); math.Abs(got-logs) > 1e-6 {
		t.Errorf("the first force is %v, want %v", got, logs)
	}
	got := taskFrom(func(r table.Row) {
		if r.Tool == "d" {
			r.Features[0], r.Features[1] = -5*r.Features[1], 1000*r.Features[0]
		}
	})
	if !slices.Equal(got.X.Data, want.X.Data) || !slices.Equal(got.Weights, want.Weights) || slices.Equal(got.Test.Data, want.Test.Data) {
		t.Error("features of a tool that is judged change what is learnt")
	}
	if n := len(want.Unlabelled.Groups); n != 37+22 {
		t.Errorf("%d rows without a label", n)
	}
}
