package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Disk is the folder of a spool. [Dir] is one of the operating system; a test or a
// simulation brings one that breaks.
//
// What the disk cannot read any more are sectors of SectorSize bytes. ReadAt of a
// File returns the bytes before the first of them and syscall.EIO.
type Disk interface {
	List() (map[string]FileInfo, error)  // the regular files by name
	Open(name string) (File, error)      // to read; fs.ErrNotExist without such a file
	OpenWrite(name string) (File, error) // to read and write; fs.ErrNotExist without such a file
	Create(name string) (File, error)    // an empty file to read and write
	Rename(from, to string) error        // replaces to
	Remove(name string) error
	Sync() error // makes names that were created, renamed or removed durable
}

// File is an open file of a Disk.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error // makes the contents durable
}

// FileInfo describes a file of a Disk.
type FileInfo struct {
	Size    int64
	Written time.Time // when it was last written to
}

// Dir returns the folder at path, which need not be there yet.
func Dir(path string) Disk { return osDisk{path, (*os.File).Sync} }

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

func (d osDisk) List() (map[string]FileInfo, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	files := make(map[string]FileInfo)
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[e.Name()] = FileInfo{info.Size(), info.ModTime()}
	}
	return files, nil
}

func (d osDisk) Open(name string) (File, error)      { return d.open(name, os.O_RDONLY) }
func (d osDisk) OpenWrite(name string) (File, error) { return d.open(name, os.O_RDWR) }
func (d osDisk) Create(name string) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (d osDisk) open(name string, flag int) (File, error) {
	var f *os.File
	err := d.within(func(root *os.Root) (err error) {
		f, err = root.OpenFile(name, flag, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	return osFile{f, d.fsync}, nil
}

func (d osDisk) Rename(from, to string) error {
	return d.within(func(root *os.Root) error { return root.Rename(from, to) })
}

func (d osDisk) Remove(name string) error {
	return d.within(func(root *os.Root) error { return root.Remove(name) })
}

func (d osDisk) Sync() error { return syncDir(d.dir, d.fsync) }

// within calls do with the folder. A link in it that leads out of it is an error.
func (d osDisk) within(do func(*os.Root) error) error {
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// ReadFile returns the contents of the file called name. Where the disk cannot read
// a part of it, the error is ErrUnreadable.
func ReadFile(d Disk, name string) ([]byte, error) {
	files, err := d.List()
	if err != nil {
		return nil, err
	}
	info, there := files[name]
	if !there {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, info.Size)
	n, err := f.ReadAt(b, 0)
	switch {
	case isUnreadable(err):
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrUnreadable}
	case err != nil && err != io.EOF:
		return nil, err
	}
	return b[:n], nil
}

// WriteFile creates the file called name, or replaces it in one step. The contents
// are durable then.
func WriteFile(d Disk, name string, b []byte) error {
	return replaceFile(d, name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// WriteJSON is WriteFile with the JSON of v.
func WriteJSON(d Disk, name string, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = WriteFile(d, name, text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// ReadJSON returns what WriteJSON has written, and the zero value without such a file. Damage is why the file cannot be read as that:
// then the value is zero, too.
func ReadJSON[T any](d Disk, name string) (v T, damage, err error) {
	text, err := ReadFile(d, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return v, nil, nil
	case errors.Is(err, ErrUnreadable):
		return v, err, nil
	case err != nil:
		return v, nil, err
	}
	if damage = json.Unmarshal(text, &v); damage != nil {
		return *new(T), damage, nil
	}
	return v, nil, nil
}

// replaceFile creates the file called name, or replaces it in one step, with what
// fill writes. The contents are durable then. Where the disk refuses to make the
// name durable too, a crash brings the old file back, which is just as right.
func replaceFile(d Disk, name string, fill func(io.Writer) error) error {
	f, err := d.Create(name + tempSuffix)
	if err != nil {
		return err
	}
	if err = fill(io.NewOffsetWriter(f, 0)); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = d.Remove(name + tempSuffix) // the next Open does, if this cannot
		return err
	}
	if err := d.Rename(name+tempSuffix, name); err != nil {
		return err
	}
	_ = d.Sync()
	return nil
}
