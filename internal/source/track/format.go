package track

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"

	"github.com/flank-tcm/flank/internal/table"
)

// Format is a format of recorded files. Each is a package that exports it.
type Format struct {
	Name    string         // as a layout gives it
	Endings []string       // of file names, in lower case
	Magic   string         // what its files begin with; empty if they have nothing in common
	Like    *regexp.Regexp // what the beginning of its files looks like, if that is not the same for all; nil for others

	// New reads what a file of the given size holds; name names it in errors. The
	// caller keeps in and closes it.
	New func(in io.ReaderAt, size int64, name string) (Contents, error)
}

// Open opens the file at path, which may be packed by gzip, and reads what it holds.
func (f Format) Open(path string) (File, error) {
	in, notes, err := unpacked(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w: check the path", f.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	info, err := in.Stat()
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	opened := &file{in: in, notes: notes}
	if opened.Contents, err = f.New(in, info.Size(), path); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// file is an open file and what it holds.
type file struct {
	Contents
	in    *os.File
	notes []string // how it is packed
}

func (f *file) Notes() []string {
	return append(f.notes[:len(f.notes):len(f.notes)], f.Contents.Notes()...)
}

// Close closes the file. A temporary one is gone then, also where a file that is open cannot be removed.
func (f *file) Close() error {
	err := f.in.Close()
	if len(f.notes) > 0 {
		os.Remove(f.in.Name())
	}
	return err
}

// mostUnpacked is how many bytes a packed recording may have: a slow disk takes half a minute for them.
var mostUnpacked int64 = 2 << 30

// unpacked opens the file at path, or a temporary file of what is packed in it, which notes say.
func unpacked(path string) (out *os.File, notes []string, err error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	r, notes, err := table.Unpacked(in)
	if err == nil && notes == nil {
		return in, nil, nil
	}
	defer in.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	temporary := func(err error) error {
		return fmt.Errorf("%s: it is unpacked to a temporary file in %s: %v: make room there, or name another folder by TMPDIR", path, os.TempDir(), err)
	}
	if out, err = os.CreateTemp("", "flank-*"); err != nil {
		return nil, nil, temporary(err)
	}
	os.Remove(out.Name()) // where it can be removed, no crash leaves it behind
	n, err := io.Copy(out, io.LimitReader(r, mostUnpacked+1))
	switch disk, ok := errors.AsType[*fs.PathError](err); {
	case ok && disk.Path == out.Name():
		err = temporary(err)
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case n > mostUnpacked:
		err = fmt.Errorf("%s: it unpacks to more than %d MiB: unpack it by hand and give the file that comes out", path, mostUnpacked>>20)
	default:
		return out, notes, nil
	}
	_ = (&file{in: out, notes: notes}).Close()
	return nil, nil, err
}

// Listing is what a format has found in a file. The contents of a format embed
// it.
type Listing struct {
	Infos   []Info
	Remarks []string
}

// Tracks returns the tracks, in the order of the file.
func (l *Listing) Tracks() []Info { return l.Infos }

// Notes returns what a person should know of the file.
func (l *Listing) Notes() []string { return l.Remarks }

// Remark adds a note.
func (l *Listing) Remark(format string, args ...any) {
	l.Remarks = append(l.Remarks, fmt.Sprintf(format, args...))
}
