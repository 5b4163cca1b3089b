package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/model"
)

// archivedDrills archives the features of four tools of two machines in a new working directory.
func archivedDrills(t *testing.T) {
	t.Helper()
	here(t, "drill.yaml", drillYAML)
	p := newPlant(t)
	var wear []string
	tools := sim.Tools(1, 20*time.Second)
	for i, machine := range []string{"acme/raw", "acme/edge"} {
		wear = append(wear, drilled(t, machine, tools[2*i:2*i+2], envelope.Gateway, func(seq uint64, _, f bus.Message) {
			if p.send(t, f); seq%9 == 4 {
				p.send(t, f) // sent again
			}
		})...)
	}
	folder(".").writeWear(t, "wear.csv", wear)
	if _, _, err := trainer(t, "archive --quiet --out kept --kafka "+p.addr); err != nil {
		t.Fatal(err)
	}
}

// An archive of more windows than memory is for stays on disk. What is learnt of when the machine cuts, and what is made of each window,
// is what it is from memory.
func TestFitLargeArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("fits from disk")
	}
	archivedDrills(t)
	const all = " --wear wear.csv --table kept/features/**/*.parquet"
	run := func(args string) string {
		t.Helper()
		out, log, err := trainer(t, args+all)
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, log)
		}
		return out
	}
	load := func(path string) *model.Model {
		t.Helper()
		m, err := model.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	asked := []string{"evaluate --quiet --model near.flank -o json", "labels check --quiet --config drill.yaml"}
	run("fit --quiet --config drill.yaml --model near.flank")
	var want []string
	for _, args := range asked {
		want = append(want, run(args))
	}
	scanned(t)
	for i, args := range asked {
		if got := run(args); evaluated(t, got) != evaluated(t, want[i]) {
			t.Errorf("%s: from disk\n%s\nfrom memory\n%s", args, got, want[i])
		}
	}
	for i, workers := range []int{1, 3} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		run(fmt.Sprintf("fit --quiet --config drill.yaml --model far%d.flank", i))
	}
	near, far, again := load("near.flank"), load("far0.flank"), load("far1.flank")
	if far.ID() != again.ID() {
		t.Error("another model with 3 workers")
	}
	if !reflect.DeepEqual(near.Gate, far.Gate) || !reflect.DeepEqual(near.Cycle, far.Cycle) || !reflect.DeepEqual(near.Usual, far.Usual) || !reflect.DeepEqual(near.Provenance.Data[0].Machines, far.Provenance.Data[0].Machines) || near.Provenance.Data[0].Windows != far.Provenance.Data[0].Windows {
		t.Errorf("from disk %+v\nfrom memory %+v", far, near)
	}
	if left, _ := filepath.Glob(".flank*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A pattern of machines and days opens the files that match alone: the others are links to nothing.
func TestPrunedArchive(t *testing.T) {
	archivedDrills(t)
	const of = "labels check --quiet --config drill.yaml --wear wear.csv --table "
	day := "kept/features/machine=acme%2Fraw/day=2020-01-31"
	if err := os.Mkdir(day, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, large := range []bool{false, true} {
		if large {
			scanned(t)
		}
		for _, pattern := range []string{"kept/features/**/machine=acme%2Fraw/day=2026-*/*.parquet", "kept/features/machine=acme%2Fraw/day=2026-*/*.parquet"} {
			want, _, err := trainer(t, of+pattern)
			if err != nil {
				t.Fatal(err)
			}
			others, err := filepath.Glob("kept/*/machine=acme%2Fedge/*/*.parquet")
			if err != nil || len(others) == 0 {
				t.Fatal(others, err)
			}
			others = append(others, day+"/part-0-0-9-1-aa.parquet")
			for _, path := range others {
				if err := os.Rename(path, path+".kept"); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				if err := os.Symlink("nothing", path); err != nil {
					t.Fatal(err)
				}
			}
			if got, _, err := trainer(t, of+pattern); err != nil || got != want || !strings.Contains(got, "of 2 tools") {
				t.Errorf("%s: %v\n%s, want\n%s", pattern, err, got, want)
			}
			if _, _, err := trainer(t, of+"kept/features/**/*.parquet"); err == nil {
				t.Error("a link to nothing was read")
			}
			for _, path := range others {
				if err := os.Rename(path+".kept", path); err != nil && os.Remove(path) != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// evaluated returns an evaluation without what depends on the checksum of its data, which is another one of a large archive.
func evaluated(t *testing.T, text string) string {
	t.Helper()
	var all map[string]any
	if json.Unmarshal([]byte(text), &all) != nil {
		return text
	}
	for _, key := range []string{"data", "verdict", "warnings", "seen"} {
		delete(all, key)
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil || !strings.Contains(text, `"gmean"`) {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(b)
}
