package cli

import (
	"os"
	"strings"
	"testing"
)

func TestWriteNew(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := WriteNew("--out", File{"a", "1"}, File{"b", "2"}); err != nil {
		t.Fatal(err)
	}
	err := WriteNew("--out", File{"c", "3"}, File{"b", "4"})
	if err == nil || !strings.Contains(err.Error(), "b is there already, and is not overwritten: remove it, or name another place by --out") {
		t.Error(err)
	}
	if text, _ := os.ReadFile("b"); string(text) != "2" {
		t.Errorf("b holds %q", text)
	}
	if _, err := os.Stat("c"); err == nil {
		t.Error("c was written")
	}
	if err := WriteNew("--out", File{"no/folder", "1"}); err == nil {
		t.Error("a file without a folder")
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{"a/b.csv": "a/b.csv", "my file": "'my file'", "it's": `'it'\''s'`, "": "''", "a*": "'a*'"} {
		if got := Quote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
