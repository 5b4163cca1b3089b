package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFolder(t *testing.T) {
	dir, journal := t.TempDir(), filepath.Join(t.TempDir(), "folder.json")
	now := time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	put := func(name, text string, changed int) {
		t.Helper()
		path := filepath.Join(dir, name)
		at := now.Add(time.Duration(changed) * time.Second)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *Folder {
		t.Helper()
		f, err := OpenFolder(dir, "*.csv*", journal, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	next := func(after int, want string) {
		t.Helper()
		path, ok, err := f.Next(now.Add(time.Duration(after) * time.Second))
		if got := filepath.Base(path); err != nil || ok != (want != "") || ok && got != want {
			t.Fatalf("after %d s: %q, %v, want %q", after, path, err, want)
		}
	}
	done := func(name string, problem error) {
		t.Helper()
		if err := f.Done(filepath.Join(dir, name), problem); err != nil {
			t.Fatal(err)
		}
	}
	next(0, "") // an empty folder
	put("b.csv", "1", -100)
	put("a.csv", "1", -50)
	put("note.txt", "1", -200)
	put(".hidden.csv", "1", -200)
	put("c.csv.part", "1", -200)
	put("d.csv.tmp", "1", -200)
	next(1, "") // complete, perhaps: it is the first look
	next(9, "")
	put("a.csv", "12", -49) // it grows
	next(11, "b.csv")       // the first that was changed
	next(12, "b.csv")       // until it is done
	done("b.csv", nil)
	next(20, "")
	next(21, "a.csv")

	f = open() // a restart knows what was taken
	next(30, "")
	next(40, "a.csv")
	done("a.csv", errors.New("line 3"))
	next(60, "")
	put("a.csv", "123", -40) // corrected
	put("b.csv", "123", -40) // appended to, but it was sent
	next(61, "")
	next(71, "a.csv")
	done("a.csv", nil)

	put("e.csv", "1", 80)
	put("e2.csv", "1", 80)
	next(80, "")
	next(90, "e.csv") // of one time, the first by name
	if err := os.Remove(filepath.Join(dir, "e2.csv")); err != nil {
		t.Fatal(err)
	}
	done("e.csv", nil)
	next(100, "")
	for _, name := range []string{"a.csv", "b.csv"} {
		os.Remove(filepath.Join(dir, name))
	}
	done("e.csv", nil)
	if text, err := os.ReadFile(journal); err != nil || strings.Contains(string(text), "a.csv") || !strings.Contains(string(text), "e.csv") {
		t.Errorf("the journal holds %s, %v", text, err)
	}
}

// Recordings of a folder follow each other, also after a restart, when their files are
// gone and when they say the same time.
func TestFolderTimes(t *testing.T) {
	dir, journal := t.TempDir(), filepath.Join(t.TempDir(), "folder.json")
	changed := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	var ends []time.Time
	for i, tc := range []struct {
		rows, changed int // s after the first
		late          time.Duration
	}{{20, 0, 0}, {30, 5, 0}, {40, 5, 4 * time.Second}, {10, 60, 0}} {
		f, err := OpenFolder(dir, "*.csv", journal, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		path := saved(t, dir, string(rune('d'-i))+".csv", "ax\n"+strings.Repeat("1\n", tc.rows), changed.Add(time.Duration(tc.changed)*time.Second))
		for range 2 { // looked at, and complete
			if path, _, err = f.Next(changed.Add(time.Duration(100+i) * time.Second)); err != nil {
				t.Fatal(err)
			}
			changed = changed.Add(time.Second)
		}
		changed = changed.Add(-2 * time.Second)
		r := Recording{Path: path, Layout: layout(t, 10, "ax"), Start: Start{FileTime: true}}
		late, err := f.Place(t.Context(), &r)
		if err != nil || late != tc.late {
			t.Errorf("file %d is late by %v, %v; want %v", i, late, err, tc.late)
		}
		first, end := times(t, r)
		if want := changed.Add(time.Duration(tc.changed)*time.Second + tc.late); !end.Equal(want) || len(ends) > 0 && first.Before(ends[len(ends)-1]) {
			t.Errorf("file %d is from %v to %v, want the end %v", i, first, end, want)
		}
		ends = append(ends, end)
		if err := errors.Join(f.Done(path, nil), os.Remove(path)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ dir, pattern, journal, want string }{
		"no folder":       {filepath.Join(dir, "absent"), "*", "", "absent: no such file or directory: correct the path"},
		"a file":          {file, "*", "", "name the folder it is in"},
		"pattern":         {dir, "[", "", `"*.tdms"`},
		"journal damaged": {dir, "*", file, "is damaged"},
	} {
		if _, err := OpenFolder(tc.dir, tc.pattern, tc.journal, time.Second); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
