package track

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Format is a format of recorded files. Each is a package that exports it.
type Format struct {
	Name    string   // as a layout gives it
	Endings []string // of file names, in lower case
	Magic   string   // what its files begin with; empty if they have nothing in common

	// New reads what a file of the given size holds; name names it in errors. The
	// caller keeps in and closes it.
	New func(in io.ReaderAt, size int64, name string) (Contents, error)
}

// Open opens the file at path and reads what it holds.
func (f Format) Open(path string) (File, error) {
	in, err := os.Open(path)
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
	contents, err := f.New(in, info.Size(), path)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &file{contents, in}, nil
}

// file is an open file and what it holds.
type file struct {
	Contents
	io.Closer
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
