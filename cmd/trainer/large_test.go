package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
)

// scanned makes every table count as large. The collector stays as it is: a command would have it work harder for a
// large one, and so for all tests that follow.
func scanned(t *testing.T) {
	t.Setenv("GOGC", "100")
	before := largeTables
	t.Cleanup(func() { largeTables = before })
	largeTables = 0
}

// A large table stays on disk. What is learnt from it has the same windows and is
// as good as from memory, does not depend on the number of workers, and nothing
// is left behind.
func TestFitLargeTable(t *testing.T) {
	here(t, "t.csv", asTable("T"))
	all, err := table.Load("t.csv")
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Save("t.parquet"); err != nil {
		t.Fatal(err)
	}
	type report struct {
		Pooled  struct{ GMean float64 }
		Windows json.RawMessage
		Balance string
	}
	read := func(path string) (r report) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	fit := func(args string) {
		t.Helper()
		if _, _, err := trainer(t, "fit --quiet --config train.yaml "+args); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
	}
	fit("--table t.csv --model near.flank")
	near := read("near.report.json")

	scanned(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as many workers
	fit("--table t.csv --model one.flank")
	runtime.GOMAXPROCS(3)
	fit("--table t.csv --model two.flank")
	fit("--table t.parquet --model three.flank")
	far := read("one.report.json")
	if !bytes.Equal(far.Windows, near.Windows) || far.Balance != near.Balance {
		t.Errorf("windows\n%s %s\nin memory\n%s %s", far.Windows, far.Balance, near.Windows, near.Balance)
	}
	if d := far.Pooled.GMean - near.Pooled.GMean; d < -0.05 || d > 0.05 {
		t.Errorf("G-mean %v, in memory %v", far.Pooled.GMean, near.Pooled.GMean)
	}
	one, err := os.ReadFile("one.flank")
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile("two.flank")
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("another model with 3 workers: %v", err)
	}
	if left, _ := filepath.Glob(".flank*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLargeTableErrors(t *testing.T) {
	scanned(t)
	good := asTable("T")
	rows := strings.SplitAfter(good, "\n")
	for name, tc := range map[string]struct{ table, want string }{
		"no rows":       {rows[0], "it has no rows"},
		"no tool":       {good + strings.Replace(rows[1], "T", "", 1)[1:], "names no tool"},
		"text":          {good + strings.Replace(rows[1], ".", "x", 1), "is not a finite number"},
		"a tool again":  {good + rows[1], "comes back after tool"},
		"all healthy":   {strings.Join(rows[:13], ""), "nothing to learn from"},
		"another table": {"tool,rms,class\nT1,1,0\n", "no column \"power\""},
	} {
		here(t, "t.csv", tc.table)
		if _, _, err := trainer(t, "fit --quiet --config train.yaml --table t.csv --model m.flank"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A study holds its rows in memory, and says so of a table that is too large.
func TestStudyOfLargeTable(t *testing.T) {
	here(t, "t.csv", asTable("T"))
	scanned(t)
	if _, _, err := trainer(t, "study --quiet --config train.yaml --table t.csv"); err == nil || !strings.Contains(err.Error(), "104 windows do not fit in memory: name a part of the tables") {
		t.Errorf("error %v", err)
	}
}
