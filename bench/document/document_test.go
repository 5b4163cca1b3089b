package document

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
)

func TestReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	for _, tc := range []struct{ name, page, want string }{
		{"between the lines", "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n", "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n"},
		{"another name", "<!-- y: begin -->\nold\n<!-- y: end -->\n", ""},
		{"the end comes first", "<!-- x: end -->\n<!-- x: begin -->\n", ""},
	} {
		if err := os.WriteFile(file, []byte(tc.page), 0o644); err != nil {
			t.Fatal(err)
		}
		err := Replace(file, "x", "new\n")
		got, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if tc.want == "" {
			if tc.want = tc.page; err == nil {
				t.Errorf("%s: no error", tc.name)
			}
		}
		if string(got) != tc.want {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// Without a file the text is printed.
func TestPut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("<!-- x: begin -->\n<!-- x: end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, name := range []string{"", file} {
		if err := Put(&out, name, "x", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || out.String() != "new\n" || string(text) != "<!-- x: begin -->\nnew\n<!-- x: end -->\n" {
		t.Errorf("printed %q, written %q: %v", out.String(), text, err)
	}
}

// A figure that is undefined is a dash, and data that do not fit a template are the program's fault.
func TestFill(t *testing.T) {
	data := map[string]any{"Mean": 0.126, "None": math.NaN(), "Lead": math.Inf(1), "Held": true, "Names": []string{"a", "b"}}
	got := Fill(`{{f "%.2f" .Mean}} {{f "%.2f" .None}} {{f "%.2f" .Lead}} {{held .Held}} {{held (not .Held)}} {{join .Names ", "}} {{twice 2}}`, data, template.FuncMap{"twice": func(n int) int { return 2 * n }})
	if want := "0.13 – – **held** **not held** a, b 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a template with another field is filled")
		}
	}()
	Fill("{{.Mean}}", struct{}{}, nil)
}
