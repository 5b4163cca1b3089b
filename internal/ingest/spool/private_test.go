package spool

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The folder and the files of a spool are its user's alone.
func TestSpoolIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	dir := filepath.Join(t.TempDir(), "line", "spool")
	s, _, err := Open(dir, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append([]byte("waveform")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.Walk(filepath.Dir(dir), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		files++
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("%d files, %v", files, err)
	}
}

// A link that someone put into the folder leads a spool to no file outside of it.
func TestSpoolFollowsNoLinks(t *testing.T) {
	for _, name := range []string{"lock", "0000000000000001.seg.tmp", "cursor", "cursor" + tempSuffix} {
		dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
		if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		s, _, err := Open(dir, Settings{})
		if err == nil {
			_, _ = s.Append([]byte("waveform")) // it may fail: what counts is what it leaves alone
			s.Close()
		} else if !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(outside); err != nil || string(got) != "precious" {
			t.Errorf("a link at %s: the file outside holds %q, %v", name, got, err)
		}
	}
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "x")); err != nil {
		t.Skip(err)
	}
	d := Dir(dir)
	for what, err := range map[string]error{
		"Open":      func() error { _, err := d.Open("x"); return err }(),
		"OpenWrite": func() error { _, err := d.OpenWrite("x"); return err }(),
		"Create":    func() error { _, err := d.Create("x"); return err }(),
		"outside":   func() error { _, err := d.Open("../" + filepath.Base(filepath.Dir(outside)) + "/precious"); return err }(),
	} {
		if err == nil {
			t.Errorf("%s follows a link out of the folder", what)
		}
	}
}
