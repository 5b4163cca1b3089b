package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/table"
)

// Rows of a table whose tool is a word for a missing name are counted, whether the table is in memory or not, and once however often it is read.
func TestNamelessTools(t *testing.T) {
	for text, want := range map[string]string{
		"tool,rms\nT1,1\n-,2\nn/a,3\nT2,4\n": `rows whose tool is a word for a missing name: 2, the first is row 2, \"-\"`,
		"tool,rms\nT1,1\nT-,2\n":             "",
	} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, far := range []bool{false, true} {
			var said strings.Builder
			ts := &tables{log: zerolog.New(&said)}
			if !far {
				if _, err := ts.inMemory(path); err != nil {
					t.Fatal(err)
				}
			} else {
				in, err := ts.onDisk(path)
				for range 2 {
					if err == nil {
						err = in.Scan(func([]string) error { return nil }, func(table.Row) error { return nil })
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !strings.Contains(said.String(), want) || strings.Count(said.String(), "\n") != min(len(want), 1) {
				t.Errorf("on disk %v: %q, want %q", far, said.String(), want)
			}
		}
	}
}

// Columns that later tables have and the first one lacks are not learnt from, and named, whether the tables are in memory or not.
func TestColumnsOfLaterTables(t *testing.T) {
	dir := bench(t, "a.csv", "tool,rms\nT1,1\nT1,3\nT2,2\n", "b.csv", "tool,power,rms\nT3,5,4\nT3,7,2\nT4,6,5\n", "c.csv", "tool,rms\nT5,5\nT6,1\n")
	for _, large := range []bool{false, true} {
		if large {
			scanned(t)
		}
		var said strings.Builder
		var f inputFlags
		f.Table = []string{dir.path("a.csv"), dir.path("b.csv"), dir.path("c.csv")}
		d, err := f.load("--config", "", "", nil, zerolog.New(&said))
		if err != nil || len(d.Layout.Channels()) != 1 {
			t.Fatalf("%v, %+v", err, d)
		}
		if want := `columns of b that a does not have are left out: power`; strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), want) {
			t.Errorf("large %v: %q, want %q", large, said.String(), want)
		}
	}
}

// A column to ignore that no table has is an error, whether the tables are in memory or not.
func TestIgnoreOfNoColumn(t *testing.T) {
	dir := bench(t, "a.csv", "tool,rms,note\nT1,1,x\nT1,3,y\nT2,2,z\n", "b.csv", "tool,rms,by\nT3,4,kim\nT3,2,kim\n")
	for _, large := range []bool{false, true} {
		if large {
			scanned(t)
		}
		for ignore, want := range map[string]string{"note,by": "", "note,by,nte": `ignore: no column is named "nte"`} {
			var f inputFlags
			f.Table, f.Ignore = []string{dir.path("a.csv"), dir.path("b.csv")}, strings.Split(ignore, ",")
			if _, err := f.load("--config", "", "", nil, zerolog.Nop()); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("large %v, --ignore %s: %v", large, ignore, err)
			}
		}
	}
}
