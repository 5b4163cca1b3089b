package spool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is the folder of a spool. A test replaces it by one that breaks.
type disk interface {
	list() (map[string]int64, error) // sizes of the files by name
	open(name string) (file, error)  // to read and write
	create(name string) (file, error)
	rename(from, to string) error // replaces to
	remove(name string) error
	sync() error // makes names that were created, renamed or removed durable
}

// file is an open file.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error // makes the contents durable
	Close() error
}

// osDisk is a folder of the operating system.
type osDisk struct {
	dir   string
	fsync func(*os.File) error
}

// osFile is a file of the operating system.
type osFile struct {
	*os.File
	fsync func(*os.File) error
}

func (f osFile) Sync() error { return f.fsync(f.File) }

func (d osDisk) path(name string) string { return filepath.Join(d.dir, name) }

func (d osDisk) list() (map[string]int64, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64)
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return nil, err
		}
		sizes[e.Name()] = info.Size()
	}
	return sizes, nil
}

func (d osDisk) open(name string) (file, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f, d.fsync}, nil
}

func (d osDisk) create(name string) (file, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f, d.fsync}, nil
}

func (d osDisk) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }
func (d osDisk) remove(name string) error     { return os.Remove(d.path(name)) }
func (d osDisk) sync() error                  { return syncDir(d.dir, d.fsync) }

// replaceFile creates the file called name, or replaces it in one step, with what
// fill writes. The contents are durable then. Where the disk refuses to make the
// name durable too, a crash brings the old file back, which is no less right.
func replaceFile(d disk, name string, fill func(io.Writer) error) error {
	f, err := d.create(name + tempSuffix)
	if err != nil {
		return err
	}
	if err = fill(io.NewOffsetWriter(f, 0)); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = d.remove(name + tempSuffix) // the next Open does, if this cannot
		return err
	}
	if err := d.rename(name+tempSuffix, name); err != nil {
		return err
	}
	_ = d.sync()
	return nil
}
