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
