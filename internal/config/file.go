package config

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
)

// WriteFile replaces the file at path by one that holds b.
func WriteFile(path string, b []byte) error {
	return WriteFileTo(path, bytesOf(b))
}

func bytesOf(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// WriteFileTo replaces the file at path by what fill writes: first next to its place, then
// synced and renamed. If fill fails, its error is returned and the file stays
// what it was.
func WriteFileTo(path string, fill func(io.Writer) error) error {
	return replaceFile(path, fill, func(f *os.File) error { return f.Chmod(0o644) })
}

// WritePrivateFile is WriteFile for a file that only its owner may read. A file that is there
// keeps its owner, also if the administrator replaces it. One that only its group may read
// too keeps that group.
func WritePrivateFile(path string, b []byte) error {
	return replaceFile(path, bytesOf(b), func(f *os.File) error {
		mode := os.FileMode(0o600)
		if info, err := os.Stat(path); err == nil {
			shared := info.Mode()&0o047 == 0o040
			if err := keepOwner(f, info, shared); err != nil {
				return err
			}
			if shared {
				mode = 0o640
			}
		}
		return f.Chmod(mode)
	})
}

// WriteDataFile is WriteFile for a plant's data, such as models and waveforms: only the user of this program
// may read it.
func WriteDataFile(path string, b []byte) error {
	return WriteDataFileTo(path, bytesOf(b))
}

// WriteDataFileTo is WriteFileTo, with the rights of WriteDataFile.
func WriteDataFileTo(path string, fill func(io.Writer) error) error {
	return replaceFile(path, fill, func(f *os.File) error { return f.Chmod(0o600) })
}

// replaceFile replaces the file at path by what fill writes. permit sets who may read it.
func replaceFile(path string, fill func(io.Writer) error, permit func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	out := bufio.NewWriterSize(f, 64<<10)
	if err := fill(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := permit(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // so that the name lasts too; not every system can
		dir.Close()
	}
	return nil
}
