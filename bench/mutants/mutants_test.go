package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var named = regexp.MustCompile(`docs/[\w/-]+\.md`)

// Each patch applies to the tree, and names a room and a document that are there.
func TestPatches(t *testing.T) {
	all, err := read("patches")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 40 {
		t.Errorf("%d mutants: want 40", len(all))
	}
	numbers := make(map[string]string)
	for _, m := range all {
		if other := numbers[m.number()]; other != "" {
			t.Errorf("%s and %s have one number", other, m.Name)
		}
		numbers[m.number()] = m.Name
		if _, err := os.Stat(filepath.Join(root, m.Room)); err != nil {
			t.Errorf("%s: Room: %v", m.Name, err)
		}
		if _, err := os.Stat(filepath.Join(root, named.FindString(m.Law))); err != nil || !named.MatchString(m.Law) {
			t.Errorf("%s: Law: %s: want a document that is there", m.Name, m.Law)
		}
		folder := t.TempDir()
		if err := m.apply(root, folder); err != nil {
			t.Error(err)
		}
		for _, file := range m.files() {
			text, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				t.Error(err)
			}
			if !strings.HasPrefix(file, m.Room+"/") {
				t.Errorf("%s changes %s, which is not of %s", m.Name, file, m.Room)
			}
			if before, _ := os.ReadFile(filepath.Join(root, file)); string(before) == string(text) {
				t.Errorf("%s changes nothing in %s", m.Name, file)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

const header = "Breaks: a\nLaw: b\nRoom: c\nSimulation: yes\n\n"

// A patch finds its lines where they have moved to, and the nearest ones; else it names itself.
func TestApply(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ patch, before, after string }{
		"in place":  {"@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "a\nb\n", "a\nx\n"},
		"moved":     {"@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "0\n0\na\nb\n", "0\n0\na\nx\n"},
		"nearest":   {"@@ -3,2 +3,2 @@\n a\n-b\n+x\n", "a\nb\na\nb\na\nb\n", "a\nb\na\nx\na\nb\n"},
		"two hunks": {"@@ -1 +1,2 @@\n-a\n+x\n+y\n@@ -3 +4 @@\n-c\n+z\n", "a\nb\nc\n", "x\ny\nb\nz\n"},
		"gone":      {"@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "a\nc\nb\n", ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "f.go"), []byte(c.before), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := parse("07-one", header+"--- a/f.go\n+++ b/f.go\n"+c.patch)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		folder := t.TempDir()
		err = m.apply(dir, folder)
		if c.after == "" {
			if err == nil || !strings.Contains(err.Error(), "07-one") {
				t.Errorf("%s: %v: want an error that names the mutant", name, err)
			}
			continue
		}
		changed, _ := os.ReadFile(filepath.Join(folder, "f.go"))
		if err != nil || string(changed) != c.after {
			t.Errorf("%s: %q, %v: want %q", name, changed, err, c.after)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const body = "--- a/f.go\n+++ b/f.go\n@@ -1 +1 @@\n-a\n+b\n"
	for _, text := range []string{
		"", header, body,
		strings.Replace(header, "Law: b\n", "", 1) + body,
		strings.Replace(header, "yes", "perhaps", 1) + body,
		strings.Replace(header, "Room", "Folder", 1) + body,
		header + "-a\n" + body,
		header + "--- a/f.go\n+++ b/f.go\n-a\n",
		header + body + "?\n",
	} {
		if _, err := parse("07-one", text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// The page counts what was found, and marks what lives.
func TestTables(t *testing.T) {
	all := []*mutant{
		{Name: "01-a", Simulation: "yes"},
		{Name: "02-b", Simulation: "no: it is far"},
		{Name: "03-c", Simulation: "yes"},
	}
	text := tables(all, map[string]score{
		"01-a": {Room: "TestA", Oracle: "finds it", Simulation: "in 3 seeds", Seeds: 200},
		"02-b": {Room: lives, Oracle: "finds it", Simulation: lives, Seeds: 200},
		"03-c": {Room: lives, Oracle: lives, Simulation: lives, Seeds: 200},
	})
	for _, want := range []string{
		"| anything | 2 | 3 |", "| the tests of their rooms | 2 | 3 |", "which is one of these tests | 2 | 3 |", "| 200 seeds of the simulation, which can reach 2 | 1 | 3 |",
		"| TestA | finds it | in 3 seeds |", "| finds it | cannot: it is far |", "| **lives** | **lives** | **lives** |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if s := (score{Room: lives, Simulation: lives}); !s.survivor() {
		t.Error("what nothing finds is not a survivor")
	}
	if s := (score{Room: lives}); s.survivor() {
		t.Error("a mutant survives a simulation that was not asked")
	}
}
