package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/train"
)

// Flank judges tools that it did not learn from; every window after the reference is
// counted once, and cells that are there are not computed again.
func TestJudgeAll(t *testing.T) {
	folder, cells := t.TempDir(), t.TempDir()
	s := small()
	if err := s.write(folder); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cells, "cells.csv")
	run := func(redo []string) []byte {
		t.Helper()
		log, err := openLog(path, redo)
		if err != nil {
			t.Fatal(err)
		}
		defer log.file.Close()
		if err := judgeAll(t.Context(), folder, []string{"small"}, nil, log, io.Discard); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := run(nil)
	cs, err := readCells(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(cs) != 6 {
		t.Fatalf("%d cells", len(cs))
	}
	var all counts
	for _, c := range cs {
		all.add(c.counts, 1)
		if u := c.flank.Unknown; u.TP > c.TP || u.FN > c.FN || u.TN > c.TN || u.FP > c.FP {
			t.Errorf("tool %s: more unknown windows than windows: %+v", c.Tool, c)
		}
		windows := 40.0
		if c.Tool > "d" {
			windows = 25
		}
		if n := c.TP + c.FN + c.TN + c.FP; n != windows-3 || c.flank.Wear != windows {
			t.Errorf("tool %s: %v windows judged, wear of %v, of %v", c.Tool, n, c.flank.Wear, windows)
		}
		if c.Tool <= "d" && !(c.flank.AlarmUM >= 270 && c.flank.Worst == 390) {
			t.Errorf("tool %s: alarm at %v of %v µm", c.Tool, c.flank.AlarmUM, c.flank.Worst)
		}
	}
	if g := all.gmean(); !(g > 0.95) {
		t.Errorf("G-mean %v of tools whose force is their wear", g)
	}
	if again := run(nil); !bytes.Equal(again, first) {
		t.Errorf("cells that were there were made again:\n%s", again)
	}
	if again := run([]string{defaultVariant}); !bytes.Equal(again, first) {
		t.Errorf("made again:\n%s\nwere\n%s", again, first)
	}
}

// What is learnt from holds no label of an unlabelled tool, and nothing of a tool that
// is judged.
func TestPart(t *testing.T) {
	s := small()
	p := split{Train: []string{"a", "b"}, Unlabelled: []string{"c"}, Test: []string{"d"}}
	got := s.part(p)
	if got.Rows() != 3*40 {
		t.Errorf("%d rows", got.Rows())
	}
	for i := range got.Rows() {
		r := got.Row(i)
		if r.Tool == "c" && (r.Class != table.NoClass || r.VBMaxUM == r.VBMaxUM) || r.Tool == "d" {
			t.Fatalf("row %d: %+v", i, r)
		}
	}
}

func TestVariantsDiffer(t *testing.T) {
	names := make(map[string]bool)
	for _, v := range variants {
		if names[v.name] {
			t.Errorf("%s is there twice", v.name)
		}
		names[v.name] = true
		v.change(new(train.Config)) // must not need more than a configuration
	}
	if !names[defaultVariant] {
		t.Error("the default settings are not among the variants")
	}
}

func TestReadCellsErrors(t *testing.T) {
	line := "turning,6/3,u,s,m,v,4,"
	for name, tc := range map[string]struct{ text, want string }{
		"other columns": {"a,b\n", "csv:1: these are not the columns of a file of cells"},
		"no count":      {strings.Join(cellHeader, ",") + "\n" + line + "1,,3,4,0.5\n", "csv:2: one of the columns tp, fn, tn and fp"},
		"negative":      {strings.Join(cellHeader, ",") + "\n" + line + "1,-2,3,4,0.5\n", "csv:2: one of the columns tp, fn, tn and fp"},
		"no number":     {strings.Join(cellHeader, ",") + "\n" + line + "1,2,x,4,0.5\n", `csv:2: column "tn"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cells.csv")
			if err := os.WriteFile(path, []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := readCells(path); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// The page of a few cells. Goals that nothing is known of are not called held.
func TestPage(t *testing.T) {
	cs, err := loadCells("testdata")
	if err != nil {
		t.Fatal(err)
	}
	text := newPage(cs).markdown()
	golden.Check(t, "page.md", text)
	if again := newPage(cs).markdown(); again != text {
		t.Error("two pages of the same cells differ")
	}
	readme := newPage(cs).readme()
	golden.Check(t, "readme.md", readme)
	if strings.Contains(text+readme, "NaN") {
		t.Error("the page says NaN")
	}
}

// The committed page is what the committed cells give.
func TestCommittedPage(t *testing.T) {
	if raceDetector {
		t.Skip("draws tools for minutes under the race detector, in one goroutine")
	}
	cs, err := loadCells("../../docs/figures/unseen")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../docs/figures/unseen.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(cs)
	if p.markdown() != string(want) {
		t.Error("docs/figures/unseen.md is not the page of the cells in docs/figures/unseen: run `go run -C bench ./unseen page`")
	}
	if want, err = os.ReadFile("../../README.md"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(want), "<!-- unseen: begin -->\n"+p.readme()+"<!-- unseen: end -->\n") {
		t.Error("README.md has another table than the cells in docs/figures/unseen give: run `go run -C bench ./unseen page`")
	}
}
