package source

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/signal"
)

// array is an NPY file of three numbers.
const array = "\x93NUMPY\x01\x00\x3c\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }  \n\x01\x02\x03"

// packed is text packed by gzip.
func packed(text string) string {
	var b strings.Builder
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

// TestFormat opens recordings whose format is known by ending, first bytes or
// layout.
func TestFormat(t *testing.T) {
	dir := t.TempDir()
	one := signal.Recording{Origins: map[string]signal.Origin{"ax": {From: "1", Gain: 1}}}
	named := func(format string) signal.Recording {
		rec := one
		rec.Format = format
		return rec
	}
	noHeader := named("text")
	noHeader.Header = "none"
	open := func(name, text string, rec signal.Recording) (string, error) {
		path := filepath.Join(dir, name)
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		src, err := Recording{Path: path, Layout: layout(t, 20, "ax"), Columns: rec}.Open()
		if err != nil {
			return "", err
		}
		defer src.(io.Closer).Close()
		b, err := src.Next(t.Context())
		if err != nil {
			return "", err
		}
		return fmt.Sprint(b.Tool, b.Samples), nil
	}
	for _, tc := range []struct {
		name, text string
		rec        signal.Recording
	}{
		{"T1.npy", array, one},
		{"T1.NPY", array, one},
		{"T1.rec", array, one}, // by its first bytes
		{"T1", array, one},
		{"T1.csv", array, named("npy")},
		{"T1.npy.gz", packed(array), one},
		{"T1.NPY.GZ", packed(array), one},
		{"T1.npy", packed(array), one},
		{"T1.gz", packed(array), one}, // by the first bytes of what is packed
		{"T1.rec", packed(array), one},
		{"T1.csv.gz", packed("1\n1\n2\n3\n"), one},
		{"T1.gz", packed("1\n1\n2\n3\n"), one},
		{"T1.csv", "1\n1\n2\n3\n", one},
		{"T1.log", "1\n1\n2\n3\n", one}, // what is nothing else is text
		{"T1.npy", "1\n2\n3\n", noHeader},
	} {
		if got, err := open(tc.name, tc.text, tc.rec); err != nil || got != "T1[[1 2 3]]" {
			t.Errorf("%s %.10q: %s, %v", tc.name, tc.text, got, err)
		}
	}
	var out strings.Builder
	for _, tc := range []struct {
		name, text string
		rec        signal.Recording
	}{
		{"absent.csv", "", one},
		{"absent.tdms", "", one},
		{"T1.csv", "1\n2\n", named("xlsx")},
		{"T1.h5", "\x89HDF\r\n\x1a\n\x00", one},
		{"T1.tdms_index", "TDSh", one},
		{"T1.xlsx", "PK\x03\x04\x00", one},
		{"T1.tdms", "1\n2\n3\n", one},
		{"T1.npy.gz", packed(array)[:30], one},
		{"T2.npy.gz", packed(packed(array)), one},
		{"T2.gz", packed(packed(array)), one},
		{"T3.npy.gz", "\x1f\x8b and no more", one},
		{"T4.npy.gz", packed(array + strings.Repeat("\x00", 32<<20)), one},
	} {
		_, err := open(tc.name, tc.text, tc.rec)
		if err == nil {
			t.Errorf("%s: no error", tc.name)
			continue
		}
		fmt.Fprintf(&out, "# %s\n%s\n\n", tc.name, strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
	}
	golden.Check(t, "format-errors.golden", out.String())
}

// Reading a recording warns of what its format notes.
func TestWarnsOfNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "T1.npy.gz")
	if err := os.WriteFile(path, []byte(packed(array)), 0o644); err != nil {
		t.Fatal(err)
	}
	var said []string
	rec := Recording{Path: path, Layout: layout(t, 20, "1"), Warn: func(text string) { said = append(said, text) }}
	src, err := rec.Open()
	if err != nil {
		t.Fatal(err)
	}
	src.(io.Closer).Close()
	if want := path + ": unpacked from gzip"; !slices.Contains(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// What a person looks up is there: docs/reference/formats.md has a row for each format, with
// its endings, and no two formats share a name or an ending.
func TestFormatsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, f := range formats {
		_, row, ok := strings.Cut(string(page), "\n| `"+f.Name+"` | ")
		if !ok {
			t.Errorf("no row for %s", f.Name)
		}
		row, _, _ = strings.Cut(row, "\n")
		for _, ending := range f.Endings {
			if ending != "" && !strings.Contains(row, "`"+ending+"`") {
				t.Errorf("the row for %s does not name %s", f.Name, ending)
			}
			if seen[ending] {
				t.Errorf("two formats have the ending %q", ending)
			}
			seen[ending] = true
		}
		if seen["name "+f.Name] {
			t.Errorf("two formats are named %s", f.Name)
		}
		seen["name "+f.Name] = true
	}
}
