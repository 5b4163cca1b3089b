package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
)

func TestRecordedReaders(t *testing.T) {
	folder := recorded.Folder(t)
	for _, want := range []struct {
		name                                 string
		rows, columns, faulty, tools, splits int
	}{
		{"turning", 1474, 152, 115, 9, 183},
		{"phm2010", 945, 70, 190, 3, 3},
		{"uniwear", 1147, 12, 527, 8, 8},
		{"lmas", 139, 18, 66, 2, 2},
	} {
		t.Run(want.name, func(t *testing.T) {
			read := readers[slices.IndexFunc(readers, func(r reader) bool { return r.name == want.name })].read
			s, err := read(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			ls := s.lives()
			if s.table.Rows() != want.rows || len(s.table.Columns) != want.columns || s.faulty() != want.faulty || len(ls) != want.tools {
				t.Errorf("%d rows, %d columns, %d faulty, %d tools: want %+v", s.table.Rows(), len(s.table.Columns), s.faulty(), len(ls), want)
			}
			if n := len(s.allSplits()); n != want.splits {
				t.Errorf("%d splits, want %d", n, want.splits)
			}
			for _, l := range ls {
				if n := slices.Index(s.table.Tool, l.tool); l.rows[0] != n+s.Reference {
					t.Errorf("tool %s: its first window after the reference is row %d, its first row %d", l.tool, l.rows[0], n)
				}
			}
		})
	}
}

// The turning recording lacks CV3.X_SK and CV3.X_KURT in 428 rows.
func TestRecordedTurningHasMissingValues(t *testing.T) {
	s, err := readTurning(t.Context(), recorded.Folder(t))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, v := range s.table.Data {
		if v != v {
			n++
		}
	}
	if n != 2*428 {
		t.Errorf("%d values are missing, want 856", n)
	}
}

func TestReadErrors(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no number":  {"a,tool,Vb\n1,5,0\nx,5,1\n", `turning_wear_dev.csv:3: column "a": "x" is not a number`},
		"no wear":    {"a,tool,Vb\n1,5,\n", `csv:2: column "Vb"`},
		"short line": {"a,tool,Vb\n1,5\n", "record on line 2: wrong number of fields"},
		"empty":      {"", "no header"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.Mkdir(filepath.Join(folder, "vicomtech-turning"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "vicomtech-turning", "turning_wear_dev.csv"), []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := readTurning(t.Context(), folder); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// small is a set of six tools, four of which wear out, told by one feature of two.
func small() *set {
	s := newSet("small", 3, 300, "1 s", []string{"force", "noise"})
	for k := range 6 {
		windows := 40
		if k > 3 {
			windows = 25
		}
		for i := range windows {
			um := float64(i) * 10
			s.add(string(rune('a'+k)), um, []float32{float32(100 + um + float64(i*7%5)), float32(i * 37 % 11)})
		}
	}
	s.Splits = outOneByOne(s.lives())
	return s
}

func TestSetIsReadAsWritten(t *testing.T) {
	folder, want := t.TempDir(), small()
	want.table.Append(table.Row{Tool: "z", VBMaxUM: 0.1, Features: []float32{1.0 / 3, -0}})
	if err := want.write(folder); err != nil {
		t.Fatal(err)
	}
	got, err := loadSet(folder, "small")
	if err != nil {
		t.Fatal(err)
	}
	if got.table.SHA256() != want.table.SHA256() || !reflect.DeepEqual(got.Splits, want.Splits) || got.Reference != 3 || got.LimitUM != 300 {
		t.Errorf("read %+v\nwrote %+v", got, want)
	}
}

// A set whose table is there is not read from the recordings again.
func TestPrepareKeepsTables(t *testing.T) {
	folder, s := t.TempDir(), small()
	s.Name = "phm2010"
	s.Splits = nil
	if err := s.write(folder); err != nil {
		t.Fatal(err)
	}
	if err := prepareSets(t.Context(), []string{"phm2010"}, filepath.Join(folder, "nowhere"), folder, os.Stderr); err != nil {
		t.Fatal(err)
	}
	got, err := loadSet(folder, "phm2010")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Splits) != 6 {
		t.Errorf("%d splits, want 6 by today's rules", len(got.Splits))
	}
}

func TestMissingFolders(t *testing.T) {
	folder := t.TempDir()
	if err := prepareSets(t.Context(), []string{"turning"}, filepath.Join(folder, "nowhere"), folder, os.Stderr); err == nil || !strings.Contains(err.Error(), "--data or FLANK_DATA") {
		t.Errorf("without recordings: %v", err)
	}
	if _, err := loadSet(folder, "turning"); err == nil || !strings.Contains(err.Error(), "unseen tables") {
		t.Errorf("without tables: %v", err)
	}
}

func FuzzReadCells(f *testing.F) {
	f.Add(strings.Join(cellHeader, ",") + "\nturning,6/3,u,s,m,v,4,1,2,3,4,0.5\n")
	f.Add(strings.Join(ownHeader, ",") + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "cells.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cs, err := readCells(path)
		if err != nil {
			if !strings.Contains(err.Error(), "cells.csv") {
				t.Errorf("%v names no file", err)
			}
			return
		}
		for _, c := range cs {
			if c.TP < 0 || c.FN < 0 || c.TN < 0 || c.FP < 0 {
				t.Errorf("accepted %+v", c)
			}
		}
	})
}
