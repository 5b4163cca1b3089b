package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	two := []change{{"a.go", "first", "one\n", "one\nhalf\n"}, {"a.go", "second", "two\n", "2\n"}}
	for name, tc := range map[string]struct {
		source, want, wrong string
	}{
		"both changes of one file": {"one\ntwo\n", "one\nhalf\n2\n", ""},
		"a missing text":           {"one\n", "", `occurs 0 times instead of once, for the change "second"`},
		"a text that occurs twice": {"one\none\ntwo\n", "", `occurs 2 times instead of once, for the change "first"`},
		"a file that was removed":  {"", "", "no a.go"},
	} {
		got, err := apply(two, func(file string) ([]byte, error) {
			if tc.source == "" {
				return nil, fmt.Errorf("no %s", file)
			}
			return []byte(tc.source), nil
		})
		switch {
		case tc.wrong == "" && (err != nil || got["a.go"] != tc.want):
			t.Errorf("%s: %q, %v", name, got["a.go"], err)
		case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
			t.Errorf("%s: error %v, want one with %q", name, err, tc.wrong)
		}
	}
}

func TestCheckRelease(t *testing.T) {
	for version, good := range map[string]bool{goRelease: true, goRelease + ".8": true, goRelease + "0.1": false, "go1.25.3": false, "devel go1.27-abc": false} {
		if err := checkRelease(version); (err == nil) != good {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// The changes fit the installed Go, if it is of the release they were made for.
func TestInstalled(t *testing.T) {
	root, version, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkRelease(version); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(root, "src", "runtime")
	if _, err := apply(changes, func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, file)) }); err != nil {
		t.Error(err)
	}
}
