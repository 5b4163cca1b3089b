// Package clitest holds the commands of a program to what all programs keep. It is for tests.
package clitest

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/flank-tcm/flank/cmd/internal/cli"
)

// former are names of flags that other flags have everywhere.
var former = map[string]string{
	"from": "since", "to": "until", "begin": "since", "end": "until", "output": "out", "dir": "out", "json": "format", "brokers": "kafka",
}

// Check checks the commands in flags, as cli.Run gets them: each has examples that it understands, one thing has
// one name, lists are there for programs, and completion and the manual page know all of it. run is the
// program.
func Check(t *testing.T, flags any, name, description string, run func(args []string, stdout, stderr io.Writer) error) {
	t.Helper()
	t.Setenv("TCM_CONFIG", "")
	model := cli.Parser(flags, name, description).Model
	var manual bytes.Buffer
	if err := run([]string{"--man"}, &manual, io.Discard); err != nil {
		t.Fatal(err)
	}
	leaves := model.Leaves(false)
	if len(model.Children) == 0 {
		leaves = []*kong.Node{model.Node}
	}
	for _, leaf := range leaves {
		path := strings.TrimSpace(leaf.FullPath())
		if leaf != model.Node {
			checkExamples(t, flags, name, description, leaf)
			if !strings.Contains(manual.String(), ".SS "+strings.ReplaceAll(strings.TrimPrefix(path, name+" "), "-", `\-`)) {
				t.Errorf("%s: not in the manual page", path)
			}
		}
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				checkName(t, path, f)
			}
		}
		if leaf.Name == "ls" || leaf.Name == "history" {
			if f := flagOf(leaf, "format"); f == nil || f.Short != 'o' || !slices.Contains(f.EnumSlice(), "json") {
				t.Errorf("%s: no -o json: embed cli.Listing", path)
			}
		}
		checkCompletion(t, model.Node, leaf)
	}
	var first bytes.Buffer
	if err := run([]string{"--complete", "--", "--he"}, &first, io.Discard); err != nil || !slices.Contains(strings.Fields(first.String()), "--help") {
		t.Errorf("--complete -- --he: %v, %q", err, &first)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var script bytes.Buffer
		if err := run([]string{"--completion", shell}, &script, io.Discard); err != nil || !strings.Contains(script.String(), name+" --complete -- ") {
			t.Errorf("--completion %s: %v, %q", shell, err, &script)
		}
	}
	if err := run([]string{"--completion", "ksh"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "bash, zsh or fish") {
		t.Errorf("--completion ksh: %v", err)
	}
	var version bytes.Buffer
	if err := run([]string{"--version"}, &version, io.Discard); err != nil || !strings.HasPrefix(version.String(), name+" (flank ") || !strings.Contains(version.String(), ", commit ") || !strings.Contains(version.String(), ", go1.") {
		t.Errorf("--version: %v, %q", err, &version)
	}
}

func flagOf(node *kong.Node, name string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

// checkName checks that a flag has the name that this thing has everywhere.
func checkName(t *testing.T, path string, f *kong.Flag) {
	t.Helper()
	if now := former[f.Name]; now != "" && f.Enum == "" { // --from KIND says what to read, and no time
		t.Errorf("%s: flag --%s: its name is --%s everywhere", path, f.Name, now)
	}
	if f.Short == 'o' && f.Name != "format" {
		t.Errorf("%s: -o is short for --%s: it is for --format everywhere", path, f.Name)
	}
	if f.Name == "config" && !f.IsBool() && !slices.Equal(f.Envs, []string{"TCM_CONFIG"}) {
		t.Errorf("%s: --config does not come from TCM_CONFIG", path)
	}
}

// checkExamples checks that a command has examples below its help, and understands them.
func checkExamples(t *testing.T, flags any, name, description string, leaf *kong.Node) {
	t.Helper()
	path := leaf.FullPath()
	if leaf.Tag == nil || !leaf.Tag.Has("example") {
		t.Errorf("%s: no example: write one in the tag `example`", path)
		return
	}
	for _, example := range strings.Split(leaf.Tag.Get("example"), "; ") {
		words := split(example)
		for len(words) > 0 && strings.HasPrefix(words[0], "TCM_") {
			words = words[1:]
		}
		if len(words) == 0 || words[0] != name {
			t.Errorf("%s: example %q: does not begin with the program", path, example)
			continue
		}
		parsed, err := cli.Parser(flags, name, description).Parse(words[1:])
		if err != nil {
			t.Errorf("%s: example %q: %v", path, example, err)
		} else if parsed.Selected().FullPath() != path {
			t.Errorf("%s: example %q: is of %s", path, example, parsed.Selected().FullPath())
		}
	}
}

// split parts a command line as a shell does that knows single quotes only.
func split(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// checkCompletion types a command of a program word by word.
func checkCompletion(t *testing.T, program, leaf *kong.Node) {
	t.Helper()
	words := strings.Fields(leaf.FullPath())[1:]
	for i, word := range words {
		typed := append(slices.Clone(words[:i]), word[:1])
		if got := cli.Complete(program, typed); !slices.Contains(got, word) {
			t.Errorf("%q completes to %v, without %s", typed, got, word)
		}
	}
	for _, group := range leaf.AllFlags(true) {
		for _, f := range group {
			typed := append(slices.Clone(words), "--"+f.Name[:1])
			if got := cli.Complete(program, typed); !slices.Contains(got, "--"+f.Name) {
				t.Errorf("%q completes to %v, without --%s", typed, got, f.Name)
			}
			if values := f.EnumSlice(); len(values) > 0 {
				typed := append(slices.Clone(words), "--"+f.Name, "")
				if got := cli.Complete(program, typed); fmt.Sprint(got) != fmt.Sprint(values) {
					t.Errorf("%q completes to %v, want %v", typed, got, values)
				}
			}
		}
	}
}
