package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
)

// Folder watches a folder for recordings. A file is taken once it is complete:
// when its size and its time of change have stayed the same for a while. Files
// whose names begin with a dot or end in .tmp, .part or .tdms_index are not
// looked at, so that a recorder can also write under such a name and rename.
//
// What was taken is kept in a journal, so that a restart goes on behind it. A recording
// is known by its bytes: one that has grown goes on where it ended, and other bytes under
// a name that was used before are another recording.
type Folder struct {
	dir, pattern, journal string
	settle                time.Duration
	seen                  map[string]look  // by name
	done                  map[string]taken // by name
	line                  Timeline
	offered               Found
	ignored               Ignored
}

// Found is a recording that is complete.
type Found struct {
	Path     string
	Sent     uint64 // windows that were sent before it grew
	Grown    bool   // it was sent, and has grown since
	Replaced bool   // another recording of this name was sent
	Late     bool   // it was changed before another one that was sent

	length time.Duration // of what was sent
}

// Ignored counts what a folder holds that is not looked at, with an example of each.
type Ignored struct {
	Dir, Pattern   string // where, and what is looked at
	Recordings     int    // files that are looked at
	Files, Folders int    // names that the pattern does not match, and links; subfolders
	AFile, AFolder string
}

// String says what is ignored and the remedy; it is empty if nothing is.
func (i Ignored) String() string {
	var parts []string
	if i.Files > 0 {
		parts = append(parts, fmt.Sprintf("%d files that `pattern` %q does not match, such as %q", i.Files, i.Pattern, i.AFile))
	}
	if i.Folders > 0 {
		parts = append(parts, fmt.Sprintf("%d subfolders, such as %q", i.Folders, i.AFolder))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("folder %s: ignored: %s: correct `pattern`, or give each folder with recordings a machine of its own under `machines`", i.Dir, strings.Join(parts, ", and "))
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

	Sum     string        `json:"sum,omitempty"`       // SHA-256 of its bytes; empty if they could not be read
	Windows uint64        `json:"windows,omitempty"`   // that were sent of it
	Length  time.Duration `json:"length_ns,omitempty"` // if the folder's Timeline placed it
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
	line := Timeline{End: f.line.End}
	if f.offered.Grown && !line.End.IsZero() { // what is new begins there
		line.End = line.End.Add(-f.offered.length)
	}
	late, err = line.Place(ctx, r)
	f.offered.length = line.Length
	if line.End.After(f.line.End) {
		f.line.End = line.End
	}
	return late, err
}

// Unread returns the paths of the recordings that Next has seen last and that were not taken, in the order of their names.
func (f *Folder) Unread() (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(f.seen)) {
		paths = append(paths, filepath.Join(f.dir, name))
	}
	return paths
}

// Ignored returns what the last Next did not look at.
func (f *Folder) Ignored() Ignored { return f.ignored }

// Next looks at the folder at the given time. It returns the next file that is
// complete and has something that was not taken, the one that was changed first, or
// false if there is none now.
func (f *Folder) Next(now time.Time) (found Found, ok bool, err error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return found, false, fmt.Errorf("source: folder: %w", err)
	}
	f.ignored = Ignored{Dir: f.dir, Pattern: f.pattern}
	var complete []string
	present := make(map[string]bool)
	for _, e := range entries {
		name := e.Name()
		if !isRecording(name) {
			continue
		}
		if match, _ := filepath.Match(f.pattern, name); e.IsDir() || !match || !e.Type().IsRegular() { // the pattern was checked
			f.ignored.add(e)
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is gone since
		}
		if err != nil {
			return found, false, fmt.Errorf("source: folder: %w", err)
		}
		present[name] = true
		f.ignored.Recordings++
		is := taken{Size: info.Size(), Changed: info.ModTime()}
		if d, ok := f.done[name]; ok && d.same(is) {
			continue
		}
		if l, ok := f.seen[name]; !ok || !l.same(is) {
			f.seen[name] = look{is, now}
		}
		if now.Sub(f.seen[name].since) >= f.settle {
			complete = append(complete, name)
		}
	}
	maps.DeleteFunc(f.seen, func(name string, _ look) bool { return !present[name] })
	slices.SortFunc(complete, func(a, b string) int {
		return cmp.Or(f.seen[a].Changed.Compare(f.seen[b].Changed), strings.Compare(a, b))
	})
	for _, name := range complete {
		if found, ok = f.compare(name); ok {
			f.offered = found
			return found, true, nil
		}
	}
	return Found{}, false, nil
}

// compare looks at the bytes of a complete file. ok is false if all of them were taken.
func (f *Folder) compare(name string) (found Found, ok bool) {
	found.Path = filepath.Join(f.dir, name)
	l, d := f.seen[name], f.done[name]
	l.Sum = sumOf(found.Path, l.Size)
	f.seen[name] = l
	if _, known := f.done[name]; known {
		switch {
		case l.Sum != "" && l.Sum == d.Sum: // only its time has changed
			d.Changed = l.Changed
			f.done[name] = d
			delete(f.seen, name)
			return found, false
		case d.Sum != "" && l.Size > d.Size && sumOf(found.Path, d.Size) == d.Sum:
			found.Grown, found.Sent, found.length = true, d.Windows, d.Length
		default:
			found.Replaced = true
		}
	}
	for other, d := range f.done {
		found.Late = found.Late || other != endEntry && other != name && l.Changed.Before(d.Changed)
	}
	return found, true
}

// sumOf returns the checksum of the first bytes of a file in hexadecimal digits, empty if
// they cannot be read.
func sumOf(path string, size int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, size)); err != nil || n < size {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// add counts an entry of a folder.
func (i *Ignored) add(e fs.DirEntry) {
	if e.IsDir() {
		i.Folders++
		i.AFolder = cmp.Or(i.AFolder, e.Name())
		return
	}
	i.Files++
	i.AFile = cmp.Or(i.AFile, e.Name())
}

func isRecording(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".tmp", ".part", ".tdms_index":
		return false
	}
	return !strings.HasPrefix(name, ".")
}

// Done writes to the journal that a file which Next returned was taken, with how many
// windows were sent of it in all, and what was wrong with it, nil if nothing was. The
// journal appears whole or not at all. Files that are in the folder no more are
// forgotten, unless the folder itself is away.
func (f *Folder) Done(path string, windows uint64, problem error) error {
	name := filepath.Base(path)
	entry := f.seen[name].taken
	entry.Windows = windows
	if path == f.offered.Path {
		entry.Length = f.offered.length
	}
	if problem != nil {
		entry.Problem = problem.Error()
	}
	delete(f.seen, name)
	f.done[name] = entry
	if !f.line.End.IsZero() {
		f.done[endEntry] = taken{Changed: f.line.End}
	}
	maps.DeleteFunc(f.done, func(old string, _ taken) bool {
		if _, err := os.Stat(filepath.Join(f.dir, old)); !errors.Is(err, fs.ErrNotExist) || old == name || old == endEntry {
			return false
		}
		_, err := os.Stat(f.dir) // after the file: without the folder all files seem to be gone
		return err == nil
	})
	text, err := json.MarshalIndent(f.done, "", " ")
	if err != nil {
		return fmt.Errorf("source: folder: %w", err)
	}
	if err := config.WriteDataFile(f.journal, text); err != nil {
		return fmt.Errorf("source: folder: what was taken cannot be noted: %w", err)
	}
	return nil
}
