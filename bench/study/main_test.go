package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	const keel = "testdata/keel"
	dir := t.TempDir()
	if err := write("", dir, io.Discard); err == nil || !strings.Contains(err.Error(), "-keel") {
		t.Errorf("without -keel: %v", err)
	}
	if err := write(keel, dir, io.Discard); err == nil || !strings.Contains(err.Error(), "cells.csv") {
		t.Errorf("without cells: %v", err)
	}
	text, err := os.ReadFile("testdata/cells.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	files := map[string]string{"cells.csv": lines[0], "peers.csv": lines[0]}
	for _, line := range lines[1:] {
		if strings.Contains(line, ",svm,") || strings.Contains(line, "-tuned,") {
			files["peers.csv"] += line
		} else {
			files["cells.csv"] += line
		}
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page := func() string {
		if err := write(keel, dir, io.Discard); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	put("cells.csv", files["cells.csv"])
	if text := page(); strings.Contains(text, "extra trees, tuned |") || strings.Contains(text, "defaults.md") || strings.Contains(text, "drill.md") {
		t.Error("the page shows peers, or links how defaults were chosen or gun drills, and there are none")
	}
	put("peers.csv", files["peers.csv"])
	put("defaults.md", "# Defaults\n")
	if err := os.Mkdir(filepath.Join(dir, "drill"), 0o755); err != nil {
		t.Fatal(err)
	}
	put("drill/drill.md", "# Gun drills\n")
	if text := page(); !strings.Contains(text, "(drill/drill.md)") || !strings.Contains(text, "extra trees, tuned |") || !strings.Contains(text, "(defaults.md)") {
		t.Error("the page lacks peers, or a link to how defaults were chosen or to gun drills")
	}
}

// The cells of a short drill are made and written down as a page, and go on where they were stopped.
func TestDrill(t *testing.T) {
	dir := t.TempDir()
	args := []string{"drill", "-cutting", "30s", "-rows", "1000", "-methods", "dbn-paper", "-o", dir}
	if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "drill.md"))
	for _, want := range []string{"## drill-random\n", "## drill-tools\n", "| dbn-paper | 1 | 0."} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s: %v", want, text, err)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(stopped, args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "goes on with what is in") {
		t.Errorf("stopped: %v", err)
	}
	for _, args := range [][]string{{"cells", "-keel", dir}, {"pages"}, {"drill", "-methods", "x", "-rows", "1000", "-cutting", "30s", "-o", dir}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
