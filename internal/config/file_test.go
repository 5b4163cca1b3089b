package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWriteTo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := WriteFile(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := WriteFileTo(path, func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("fill fails: %v", err)
	}
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("%d files are there", len(files))
		}
	}
	holds("first")
	if err := WriteFile(path, []byte("second")); err != nil {
		t.Fatal(err)
	}
	holds("second")
	if err := WriteFile(filepath.Join(dir, "absent", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// Only the owner may read a private file, also one that replaces a file that others could read.
func TestWritePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("open"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivateFile(path, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if b, _ := os.ReadFile(path); err != nil || info.Mode() != 0o600 || string(b) != "secret" {
		t.Errorf("%v, %v, %q", info.Mode(), err, b)
	}
}

// Only the user of the program may read data, also where a file that is replaced was open to all.
func TestWriteData(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	path := filepath.Join(t.TempDir(), "model.flank")
	for range 2 {
		if err := WriteDataFile(path, []byte("model")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v, want mode 0600", info.Mode(), err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
