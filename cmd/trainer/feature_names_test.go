package main

import (
	"os"
	"strings"
	"testing"
)

// The command prints the names of the features in the messages of a layout, in order.
func TestFeatureNames(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	if err := os.WriteFile(dir.path("layout.yaml"), []byte(presses), 0o600); err != nil {
		t.Fatal(err)
	}
	print := func(args string) (names, note string, err error) { return dir.trainer(t, "feature-names "+args) }
	names, note, err := print("layout.yaml --window 500ms")
	_, fingerprint, _ := strings.Cut(note, "header features: ")
	if all := strings.Split(names, "\n"); err != nil || len(all) != 13 || all[0] != "acc.mean" || !strings.Contains(note, "12 features of windows of 500ms") || len(fingerprint) != 17 {
		t.Errorf("%v: %s%s", err, note, names)
	}
	if _, other, err := print("layout.yaml"); err != nil || strings.HasSuffix(other, fingerprint) {
		t.Errorf("windows of 1s have the form of windows of 500ms: %v %s", err, other)
	}
	if names, _, err := print(""); err != nil || strings.Count(names, "\n") != 671 {
		t.Errorf("%v: %d features of the gun drill, want 671", err, strings.Count(names, "\n"))
	}
	for want, args := range map[string]string{
		"nowhere.yaml":      "nowhere.yaml",
		"--window 3ms: ":    "layout.yaml --window 3ms",
		"--window -1s: win": "layout.yaml --window=-1s",
	} {
		if _, _, err := print(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
