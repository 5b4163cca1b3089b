package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What no source could be opened with is an error of the configuration, before anything runs.
func TestCheckSource(t *testing.T) {
	for text, want := range map[string]string{
		"kind: fil":  `source: kind "fil": choose simulate, file, folder, tcp or mqtt`,
		"kind: ''":   `source: kind "": choose simulate, file, folder, tcp or mqtt`,
		"kind: file": "source: file: name the recording",
		"kind: csv":  "source: file: name the recording",
	} {
		path := filepath.Join(t.TempDir(), "ingest.yaml")
		if err := os.WriteFile(path, []byte("kafka: {brokers: [\"b:9092\"]}\nmachine: a/b/c/d/m1\nsource: {"+text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Next to machines, edge is for all that do not set it: one that sets it to the default has the default.
func TestEdgeOfOneMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ingest.yaml")
	text := "kafka: {brokers: [\"b:9092\"]}\nmode: edge\nedge: {keep_hours: 2, keep_mib: 10}\nmachines:\n" +
		"  - {machine: a/b/c/d/m1}\n  - {machine: a/b/c/d/m2, edge: {keep_hours: 24}}\n  - {machine: a/b/c/d/m3, edge: {sample: 5}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for i, want := range []edgeConfig{{KeepHours: 2, KeepMiB: 10}, {KeepHours: 24}, {KeepHours: 24, Sample: 5}} {
		m := c.All()[i]
		if e := m.Edge; e.KeepHours != want.KeepHours || e.KeepMiB != want.KeepMiB || e.Sample != want.Sample {
			t.Errorf("%s: %+v, want %+v", m.Path, e, want)
		}
	}
}
