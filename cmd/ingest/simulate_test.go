package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table/wear"
)

// A simulated recording can be replayed, and its wear is in a file next to it.
func TestSimulate(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t)
	out, _, err := dir.run(t, t.Context(), "simulate --out ./sim --tools 2 --life 4s --hole 2s --machine a/b/c/d/e --fault flatline:torque@3s+2s --fault missing:torque@5s+1s")
	if err != nil || !strings.HasPrefix(out, "2 tools, ") {
		t.Fatalf("%v\n%s", err, out)
	}
	var names []string
	entries, err := os.ReadDir(dir.path("sim"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"T01-100hz.csv", "T01-20000hz.csv", "T02-100hz.csv", "T02-20000hz.csv", "layout-100hz.yaml", "layout-20000hz.yaml", "wear.csv"}
	if !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	ms, warnings, err := wear.Load(dir.path("sim/wear.csv"))
	if err != nil || len(warnings) > 0 || len(ms) < 4 || ms[0].Tool != "T01" || ms[0].Hole != "H01" || ms[0].Machine != "" {
		t.Errorf("wear %+v, %v, %v", ms, warnings, err)
	}
	first, err := os.ReadFile(dir.path("sim/T01-100hz.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.run(t, t.Context(), "simulate --out ./again --tools 1 --life 4s --hole 2s --machine a/b/c/d/e --fault flatline:torque@3s+2s --fault missing:torque@5s+1s"); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(dir.path("again/T01-100hz.csv")); err != nil || string(again) != string(first) {
		t.Errorf("the same tool is recorded otherwise the second time, %v", err)
	}

	dir.write(t, "sim.yaml", fmt.Sprintf(`machine: a/b/c/d/e
kafka: {brokers: [%q]}
layout: sim/layout-100hz.yaml
spool: simspool
source: {kind: file, file: sim/T01-100hz.csv, speed: 0}
`, addr))
	if _, _, err := dir.run(t, t.Context(), "topics apply --config sim.yaml"); err != nil {
		t.Fatal(err)
	}
	out, log, err := dir.run(t, t.Context(), "run --config sim.yaml")
	if err != nil || !strings.HasSuffix(out, " 1 gaps\n") || strings.HasPrefix(out, "0 windows") {
		t.Errorf("replay: %v\n%s%s", err, out, log)
	}
}

// inspect reads a recording of all channels with the layout next to it, and draws
// two of its holes.
func TestSimulateTDMS(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	if _, _, err := dir.run(t, t.Context(), "simulate --out ./sim --format tdms --tools 1 --life 4s --hole 2s"); err != nil {
		t.Fatal(err)
	}
	out, _, err := dir.run(t, t.Context(), "inspect ./sim/T01.tdms --layout ./sim/layout.yaml")
	if err != nil || !strings.Contains(out, "2 sessions") || !strings.Contains(out, "torque   N·m    100") || strings.Contains(out, "left out") || strings.Contains(out, "--all") {
		t.Errorf("%v\n%s", err, out)
	}
	const holes = "inspect ./sim/T01.tdms --layout ./sim/layout.yaml --hole H01 --hole H02 --channel ch07 --plot ./holes.svg"
	if _, _, err := dir.run(t, t.Context(), holes+" --wear ./sim/wear.csv"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(dir.path("holes.svg")); err != nil || !strings.Contains(string(text), "H02, VB ") || !strings.Contains(string(text), "thrust.mean [N]") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	dir.write(t, "wear.csv", "tool,hole,vb_max_um\nT01,H02,90\n")
	for args, want := range map[string]string{
		"inspect ./sim/T01.tdms --hole H01 --plot ./holes.svg": "give --hole twice",
		holes + " --wear ./wear.csv":                           `no measurement of tool "T01" after hole "H01"`,
		strings.Replace(holes, "H02", "H03", 1):                `"H03" is not among "H01", "H02"`,
	} {
		if _, _, err := dir.run(t, t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestSimulateErrors(t *testing.T) {
	t.Parallel()
	dir := bench(t)
	for args, want := range map[string]string{
		"":                               "--out",
		"--out ./x --machine lathe":      "--machine: ",
		"--out ./x --format hdf5":        `format "hdf5" is not one of [csv parquet tdms]`,
		"--out ./x --tools 21":           "--tools 21: must be 1 to 20",
		"--out ./x --life 1s":            "--life 1s: must be 2s or more",
		"--out ./x --hole 1ms":           "1ms to drill a hole",
		"--out ./x --fault rust":         `--fault: fault "rust": does not say when`,
		"--out ./x --fault bias:ch99@3s": `--fault: sim: fault bias:ch99@3s: no channel "ch99"`,
		"--out ./":                       "name an empty folder",
	} {
		if _, _, err := dir.run(t, t.Context(), "simulate "+args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
