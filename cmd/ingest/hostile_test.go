package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// Names of channels, units and tools of a recording come raw into no listing, no error and no
// configuration that is written from it.
func TestHostileRecording(t *testing.T) {
	const evil = "\nFORGED line\r\x1b[2J\u009b31m\u202e<b>[x](https://evil.example)|"
	dir := t.TempDir()
	path := filepath.Join(dir, "day.csv")
	text := "\"ax" + evil + "\",\"tool" + evil + "\",ay\n"
	for range 100 {
		text += "1,\"T1" + evil + "\",2\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	layout := filepath.Join(dir, "layout.yaml")
	if err := os.WriteFile(layout, []byte("channels: [{name: a, from: \"by\\e[2J\", kind: vibration, unit: g, rate: 2}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(dir, "n\x1b[2J\nFORGED.csv")
	if err := os.WriteFile(named, []byte("ax,ay\n1,2\n3,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := false
	for name, args := range map[string][]string{
		"inspect":            {"inspect", path, "--rate", "10"},
		"inspect as JSON":    {"inspect", path, "--rate", "10", "-o", "json"},
		"a layout":           {"inspect", path, "--layout", layout},
		"a plot":             {"inspect", path, "--rate", "10", "--plot", filepath.Join(dir, "day.svg")},
		"a file of any name": {"inspect", named, "--rate", "10"},
		"spool":              {"spool", "ls", "--config", layout},
	} {
		var out, log strings.Builder
		err := run(t.Context(), args, &out, &log)
		text := out.String() + log.String()
		if err != nil {
			text += err.Error() + "\n"
		}
		shown = shown || strings.Contains(text, "evil.example")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
				t.Errorf("%s: a line was forged:\n%s", name, text)
			}
			if i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s: %q is raw in %q", name, line[i:min(i+4, len(line))], line)
			}
		}
	}
	if !shown {
		t.Error("no command shows the names, so this tests nothing")
	}
	if plot, err := os.ReadFile(filepath.Join(dir, "day.svg")); err == nil && strings.Contains(string(plot), "<b>[x]") {
		t.Error("the plot has HTML of a name")
	}
}
