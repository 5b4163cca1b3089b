package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
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
		found, ok, err := f.Next(now.Add(time.Duration(after) * time.Second))
		if got := filepath.Base(found.Path); err != nil || ok != (want != "") || ok && got != want {
			t.Fatalf("after %d s: %q, %v, want %q", after, found.Path, err, want)
		}
	}
	done := func(name string, problem error) {
		t.Helper()
		if err := f.Done(filepath.Join(dir, name), 3, problem); err != nil {
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
	put("b.csv", "123", -40) // appended to
	next(61, "")
	next(71, "a.csv")
	done("a.csv", nil)
	next(72, "b.csv")
	done("b.csv", nil)

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

// A recording is known by its bytes.
func TestFolderKnowsBytes(t *testing.T) {
	dir, journal := t.TempDir(), filepath.Join(t.TempDir(), "folder.json")
	now := time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	file := filepath.Join(dir, "a.csv")
	var f *Folder
	for i, tc := range []struct {
		name   string
		text   string // empty: the file is removed and none is there for a look
		want   Found
		absent bool // nothing is offered
		damage bool
	}{
		{name: "new", text: "12"},
		{name: "touched", text: "12", absent: true},
		{name: "grown", text: "1234", want: Found{Grown: true, Sent: 1}},
		{name: "grown again", text: "12345", want: Found{Grown: true, Sent: 3}, damage: true},
		{name: "damaged and grown", text: "123456", want: Found{Grown: true, Sent: 4}},
		{name: "cut", text: "123", want: Found{Replaced: true}},
		{name: "of the same length", text: "321", want: Found{Replaced: true}},
		{name: "longer, of another beginning", text: "5210", want: Found{Replaced: true}},
		{name: "away"},
		{name: "back", text: "5210", absent: true},
		{name: "away again"},
		{name: "another", text: "6", want: Found{Replaced: true}},
	} {
		at := now.Add(time.Duration(i) * time.Minute)
		if tc.text == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		} else if err := errors.Join(os.WriteFile(file, []byte(tc.text), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // a restart
			var err error
			if f, err = OpenFolder(dir, "*.csv", journal, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok, err := f.Next(at); ok || err != nil {
			t.Fatalf("%s: offered at once, %v", tc.name, err)
		}
		found, ok, err := f.Next(at.Add(2 * time.Second))
		if err != nil || ok == (tc.absent || tc.text == "") {
			t.Fatalf("%s: %+v, %v, %v", tc.name, found, ok, err)
		}
		if !ok {
			continue
		}
		if tc.want.Path = file; found != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, found, tc.want)
		}
		var problem error
		if tc.damage {
			problem = errors.New("line 3")
		}
		if err := f.Done(file, uint64(len(tc.text)-1), problem); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder that is away for a while, as a share is, does not take what is known of its
// recordings along.
func TestFolderAway(t *testing.T) {
	dir, journal := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "folder.json")
	now := time.Now()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, "*.csv", journal, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a.csv", "b.csv"} {
		saved(t, dir, name, "1", now)
		f.Next(now)
		if found, ok, err := f.Next(now.Add(time.Minute)); !ok || err != nil || filepath.Base(found.Path) != name {
			t.Fatal(found, ok, err)
		}
		if i == 1 {
			err = os.Rename(dir, dir+".away")
		}
		if err := errors.Join(err, f.Done(filepath.Join(dir, name), 1, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := f.Next(now); err == nil {
		t.Error("a folder that is away is not an error")
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	f.Next(now)
	if found, ok, err := f.Next(now.Add(time.Minute)); ok || err != nil {
		t.Errorf("sent again: %+v, %v", found, err)
	}
}

// What a folder ignores is counted, and what arrives late is marked.
func TestFolderIgnores(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for _, name := range []string{"a.csv", "b.txt", "c.dat", ".hidden", "d.csv.tmp", "e.tdms_index"} {
		saved(t, dir, name, "1", now)
	}
	if err := os.Mkdir(filepath.Join(dir, "shift1.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, "*.csv", filepath.Join(t.TempDir(), "folder.json"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	look := func() (Found, bool) {
		t.Helper()
		f.Next(now)
		found, ok, err := f.Next(now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return found, ok
	}
	if found, ok := look(); !ok || found.Late {
		t.Errorf("%+v, %v", found, ok)
	}
	want := Ignored{Files: 2, Folders: 1, AFile: "b.txt", AFolder: "shift1.csv", Dir: dir, Pattern: "*.csv", Recordings: 1}
	if f.Ignored() != want {
		t.Errorf("%+v, want %+v", f.Ignored(), want)
	}
	if text := want.String(); !strings.Contains(text, `2 files that `+"`pattern`"+` "*.csv" does not match, such as "b.txt", and 1 subfolders, such as "shift1.csv"`) || (Ignored{}).String() != "" {
		t.Error(text)
	}
	if err := f.Done(filepath.Join(dir, "a.csv"), 1, nil); err != nil {
		t.Fatal(err)
	}
	saved(t, dir, "older.csv", "2", now.Add(-time.Hour))
	if found, ok := look(); !ok || !found.Late {
		t.Errorf("%+v, %v", found, ok)
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
			found, _, err := f.Next(changed.Add(time.Duration(100+i) * time.Second))
			if path = found.Path; err != nil {
				t.Fatal(err)
			}
			changed = changed.Add(time.Second)
		}
		changed = changed.Add(-2 * time.Second)
		r := Recording{Path: path, Layout: layout(t, 10, "ax"), Start: signal.Start{FileTime: true}}
		late, err := f.Place(t.Context(), &r)
		if err != nil || late != tc.late {
			t.Errorf("file %d is late by %v, %v; want %v", i, late, err, tc.late)
		}
		first, end := times(t, r)
		if want := changed.Add(time.Duration(tc.changed)*time.Second + tc.late); !end.Equal(want) || len(ends) > 0 && first.Before(ends[len(ends)-1]) {
			t.Errorf("file %d is from %v to %v, want the end %v", i, first, end, want)
		}
		ends = append(ends, end)
		if err := errors.Join(f.Done(path, 0, nil), os.Remove(path)); err != nil {
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
