package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Folder watches a folder for recordings. A file is taken once it is complete:
// when its size and its time of change have stayed the same for a while. Files
// whose names begin with a dot or end in .tmp, .part or .tdms_index are not
// looked at, so that a recorder can also write under such a name and rename.
//
// What was taken is kept in a journal, so that a restart goes on behind it.
type Folder struct {
	dir, pattern, journal string
	settle                time.Duration
	seen                  map[string]look  // by name
	done                  map[string]taken // by name
	line                  Timeline
}

// endEntry is the entry of the journal whose time of change is the end of the recording
// that was placed last. Names of recordings do not begin with a dot.
const endEntry = ".end"

// look is what a file was like, and since when.
type look struct {
	taken
	since time.Time
}

// taken is an entry of the journal.
type taken struct {
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed"`
	Problem string    `json:"problem,omitempty"` // why it could not be read to its end
}

func (a taken) same(b taken) bool { return a.Size == b.Size && a.Changed.Equal(b.Changed) }

// OpenFolder returns a Folder that takes the files in dir whose names match the
// pattern (of [filepath.Match]) when they have not changed for settle. It reads
// the journal if there is one.
func OpenFolder(dir, pattern, journal string, settle time.Duration) (*Folder, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("source: folder: %w: correct the path", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("source: folder: %s is a file: name the folder it is in", dir)
	}
	if _, err := filepath.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("source: pattern: %q: %w: write, for example, \"*.tdms\"", pattern, err)
	}
	f := &Folder{dir: dir, pattern: pattern, journal: journal, settle: settle, seen: make(map[string]look), done: make(map[string]taken)}
	text, err := os.ReadFile(journal)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("source: folder: %w", err)
	}
	if err := json.Unmarshal(text, &f.done); err != nil {
		return nil, fmt.Errorf("source: folder: %s, which says what was taken, is damaged: %w: remove it to have all files of the folder sent again, or move those that were sent", journal, err)
	}
	f.line.End = f.done[endEntry].Changed
	return f, nil
}

// Place sets when a recording that Next returned begins, see [Timeline.Place]. Done notes
// where it ends.
func (f *Folder) Place(ctx context.Context, r *Recording) (late time.Duration, err error) {
	return f.line.Place(ctx, r)
}

// Next looks at the folder at the given time. It returns the path of the next
// file that is complete and was not taken, the one that was changed first, or
// false if there is none now. A file that could not be read is offered again
// when it has changed; one that was read never is.
func (f *Folder) Next(now time.Time) (path string, ok bool, err error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return "", false, fmt.Errorf("source: folder: %w", err)
	}
	type file struct {
		name string
		taken
	}
	var complete []file
	present := make(map[string]bool)
	for _, e := range entries {
		name := e.Name()
		if match, _ := filepath.Match(f.pattern, name); !match || !isRecording(name) { // the pattern was checked
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is gone since
		}
		if err != nil {
			return "", false, fmt.Errorf("source: folder: %w", err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		present[name] = true
		is := taken{Size: info.Size(), Changed: info.ModTime()}
		if d, ok := f.done[name]; ok && (d.Problem == "" || d.same(is)) {
			continue
		}
		if l, ok := f.seen[name]; !ok || !l.same(is) {
			f.seen[name] = look{is, now}
		}
		if now.Sub(f.seen[name].since) >= f.settle {
			complete = append(complete, file{name, is})
		}
	}
	for name := range f.seen {
		if !present[name] {
			delete(f.seen, name)
		}
	}
	if len(complete) == 0 {
		return "", false, nil
	}
	first := slices.MinFunc(complete, func(a, b file) int {
		return cmp.Or(a.Changed.Compare(b.Changed), strings.Compare(a.name, b.name))
	})
	return filepath.Join(f.dir, first.name), true, nil
}

func isRecording(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".tmp", ".part", ".tdms_index":
		return false
	}
	return !strings.HasPrefix(name, ".")
}

// Done writes to the journal that a file which Next returned was taken, with
// what was wrong with it, nil if nothing was. The journal appears whole or not
// at all. Files that are in the folder no more are forgotten.
func (f *Folder) Done(path string, problem error) error {
	name := filepath.Base(path)
	entry := f.seen[name].taken
	if problem != nil {
		entry.Problem = problem.Error()
	}
	delete(f.seen, name)
	f.done[name] = entry
	if !f.line.End.IsZero() {
		f.done[endEntry] = taken{Changed: f.line.End}
	}
	for old := range f.done {
		if old == endEntry {
			continue
		}
		if _, err := os.Stat(filepath.Join(f.dir, old)); errors.Is(err, fs.ErrNotExist) {
			delete(f.done, old)
		}
	}
	text, err := json.MarshalIndent(f.done, "", " ")
	if err != nil {
		return fmt.Errorf("source: folder: %w", err)
	}
	if err := writeWhole(f.journal, text); err != nil {
		return fmt.Errorf("source: folder: what was taken cannot be noted: %w", err)
	}
	return nil
}

// writeWhole writes a file that is there whole or not at all, also after a
// power failure.
func writeWhole(path string, text []byte) error {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name()) // fails after the rename
	_, err = t.Write(text)
	if err = errors.Join(err, t.Sync(), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}
