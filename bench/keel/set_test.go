package keel

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/recorded"
)

// write makes the ten files of a set whose test parts are given.
func write(t *testing.T, dir, name, header string, tests [Folds][]string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	for f := range Folds {
		others := slices.Concat(slices.Concat(tests[:f]...), slices.Concat(tests[f+1:]...))
		slices.Reverse(others) // order is of no matter
		for part, rows := range map[string][]string{"tst": tests[f], "tra": others} {
			if err := os.WriteFile(path(dir, name, f, part), []byte(header+strings.Join(rows, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

var tests = [Folds][]string{
	{"1, M, yes, positive", "2, F, no, negative"}, {"3, I, no, negative"}, {"4, ?, yes, negative"}, {"5, F, yes, positive"}, {"6, F, no, negative"},
}

const mixed = "@relation r\n@attribute a real\n@attribute b {M, F, I}\n@attribute d {no, yes}\n@attribute c {positive, none, negative}\n@data\n"

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "mixed", mixed, tests)
	names, err := Names(dir)
	if err != nil || fmt.Sprint(names) != "[mixed]" {
		t.Fatalf("%v, %v", names, err)
	}
	s, err := Load(dir, "mixed")
	if err != nil {
		t.Fatal(err)
	}
	// The frequent class is 0, a nominal column of three values is three, of two
	// it is one, and a missing one is missing in all of them.
	want := "mixed [a b=M b=F b=I d] [negative positive] [1 1 0 0 1 2 0 1 0 0 3 0 0 1 0 4 NaN NaN NaN 1 5 0 1 0 1 6 0 1 0 0] [1 0 0 0 1 0] " +
		"[{[2 3 4 5] [0 1]} {[0 1 3 4 5] [2]} {[0 1 2 4 5] [3]} {[0 1 2 3 5] [4]} {[0 1 2 3 4] [5]}]\n"
	if got := fmt.Sprintln(s.Name, s.Columns, s.Classes, s.X.Data, s.Y, s.Folds); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Values that no header declares are the same in all files, whichever comes first.
func TestLoadOpen(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "open", "@attribute a\n@attribute c {n, p}\n@data\n", [Folds][]string{{"x, n"}, {"y, n"}, {"z, p"}, {"y, p"}, {"x, n"}})
	s, err := Load(dir, "open")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Columns, s.X.Data), "[a=x a=y a=z] [1 0 0 0 1 0 0 0 1 0 1 0 1 0 0]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLoadErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"a file is missing": {func(dir string) error { return os.Remove(path(dir, "mixed", 3, "tra")) }, "mixed-5-4tra.dat"},
		"a row is in both parts": {func(dir string) error {
			return os.WriteFile(path(dir, "mixed", 0, "tra"), []byte(mixed+"3, I, no, negative\n4, ?, yes, negative\n5, F, yes, positive\n6, F, no, negative\n1, M, yes, positive\n"), 0o644)
		}, "mixed-5-1tra.dat: its rows differ from the rows of the other four test files, for example [1 0 1] positive"},
		"other attributes": {func(dir string) error {
			return os.WriteFile(path(dir, "mixed", 1, "tst"), []byte(strings.Replace(mixed, "attribute a", "attribute z", 1)+"3, I, no, negative\n"), 0o644)
		}, "mixed-5-2tst.dat: its attributes differ"},
	} {
		dir := t.TempDir()
		write(t, dir, "mixed", mixed, tests)
		if err := tc.spoil(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, "mixed"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		}
	}
	if _, err := Names(t.TempDir()); err == nil {
		t.Error("an empty folder holds sets")
	}
}

// All 58 sets, against what MANIFEST.csv and FOLDS.csv count.
func TestRecordedAll(t *testing.T) {
	data := recorded.Folder(t)
	dir := filepath.Join(data, "keel")
	names, err := Names(dir)
	if err != nil || len(names) != 58 {
		t.Fatalf("%d sets, %v", len(names), err)
	}
	folds := make(map[string]map[string]string) // by set, fold and part
	for _, line := range table(t, dir, "FOLDS.csv") {
		folds[fmt.Sprintf("%s %s%s", line["name"], line["fold"], line["part"])] = line
	}
	seen := 0
	for _, m := range table(t, dir, "MANIFEST.csv") {
		name := m["name"]
		s, err := Load(dir, name)
		if err != nil {
			t.Error(err)
			continue
		}
		seen++
		if fmt.Sprint(s.Classes) != "[negative positive]" {
			t.Errorf("%s: classes %v", name, s.Classes)
		}
		rows := count(t, m["instances"])
		if name == "cleveland-0-vs-4" { // whose folds leave out four rows with missing values
			rows -= count(t, m["rows_with_missing"])
		}
		columns := count(t, m["attributes"])
		if name == "abalone9-18" { // sex: M, F or I
			columns += 2
		}
		if s.X.Rows != rows || s.X.Cols != columns {
			t.Errorf("%s: %d×%d, want %d×%d", name, s.X.Rows, s.X.Cols, rows, columns)
		}
		for f, fold := range s.Folds {
			for part, rows := range map[string][]int{"tra": fold.Train, "tst": fold.Test} {
				line := folds[fmt.Sprintf("%s %d%s", name, f+1, part)]
				positives := 0
				for _, i := range rows {
					positives += s.Y[i]
				}
				if len(rows) != count(t, line["rows"]) || positives != count(t, line["positives"]) {
					t.Errorf("%s, fold %d, %s: %d rows, %d positive, want %s and %s", name, f+1, part, len(rows), positives, line["rows"], line["positives"])
				}
			}
		}
		whole, err := os.Open(filepath.Join(dir, name+".dat"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := read(whole, name+".dat")
		whole.Close()
		if err != nil || len(file.Class) != count(t, m["instances"]) {
			t.Errorf("%s.dat: %v", name, err)
		}
	}
	if seen != 58 {
		t.Errorf("%d sets", seen)
	}
}

// table reads a CSV file with a header.
func table(t *testing.T, dir, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := make(map[string]string)
		for j, v := range line {
			row[lines[0][j]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

func count(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
