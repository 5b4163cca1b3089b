package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/ingest"
)

// What init writes can be used as it is.
func TestInit(t *testing.T) {
	for kind, want := range map[string]int{"simulate": 0, "file": 1, "folder": 1, "tcp": 0, "mqtt": 1} {
		t.Run(kind, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range map[string]string{
				"layout.yaml": "name: mill\nchannels:\n  - {name: x, kind: vibration, rate: 1000}\n",
				"train.yaml":  "layout: layout.yaml\nwindow:\n  length: 250ms\n",
			} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			args := []string{"init", "--machine", "acme/spore/bay2/line1/mill-1", "--kafka", "broker:9093", "--source", kind}
			if err := run(t.Context(), args, &out, &out); err != nil {
				t.Fatal(err)
			}
			c, err := ingest.Load("ingest.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			to, err := c.Bus("test")
			if err != nil || len(to.Brokers) != 1 || to.Brokers[0] != "broker:9093" {
				t.Errorf("%v, %v", to.Brokers, err)
			}
			m := c.All()[0]
			layout, _, err := m.LoadLayout()
			if err != nil || m.Path != "acme/spore/bay2/line1/mill-1" || m.Source.Kind != kind {
				t.Errorf("%+v, %v", m, err)
			}
			name, length := "mill", 250*time.Millisecond
			if kind == "simulate" {
				name, length = "gun drill", time.Second
			}
			if layout.Name() != name && kind != "simulate" || m.Window.Length != length {
				t.Errorf("layout %q, windows of %v", layout.Name(), m.Window.Length)
			}
			text, err := os.ReadFile("ingest.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte("CHANGE")); n != want {
				t.Errorf("%d lines to change, want %d:\n%s", n, want, text)
			}
			if !strings.Contains(out.String(), "ingest run --config ingest.yaml") {
				t.Errorf("no next command:\n%s", out.String())
			}
			if err := run(t.Context(), args, &out, &out); err == nil || !strings.Contains(err.Error(), "ingest.yaml is there already, and is not overwritten") {
				t.Error(err)
			}
			if after, _ := os.ReadFile("ingest.yaml"); !bytes.Equal(after, text) {
				t.Error("it was overwritten")
			}
		})
	}
}

func TestInitRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"--machine a//b":     "--machine: ",
		"--kafka broker":     `--kafka "broker": write host:port`,
		"--source oracle":    "--source",
		"--config no/i.yaml": "no such file or directory",
	} {
		var out bytes.Buffer
		if err := run(t.Context(), append([]string{"init"}, strings.Fields(args)...), &out, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
