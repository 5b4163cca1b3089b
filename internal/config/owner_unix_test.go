//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A private file keeps its owner if the administrator replaces it.
func TestPrivateFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only the administrator may give files away")
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivateFile(path, []byte("again")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != 1234 {
		t.Errorf("it has another owner: %v", err)
	}
}

// The group that may read a private file may read the one that replaces it, also if it is not the group of
// the program.
func TestPrivateFileKeepsItsGroup(t *testing.T) {
	for _, tc := range []struct {
		mode, want os.FileMode
		gid        int
	}{{0o640, 0o640, 1234}, {0o440, 0o640, 1234}, {0o600, 0o600, os.Getegid()}, {0o644, 0o600, os.Getegid()}} {
		if os.Geteuid() != 0 {
			tc.gid = os.Getegid()
		}
		path := filepath.Join(t.TempDir(), "secret")
		if err := errors.Join(os.WriteFile(path, []byte("one"), 0o600), os.Chown(path, os.Geteuid(), tc.gid), os.Chmod(path, tc.mode), WritePrivateFile(path, []byte("again"))); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if gid := int(info.Sys().(*syscall.Stat_t).Gid); gid != tc.gid || info.Mode() != tc.want {
			t.Errorf("from mode %04o: mode %04o of group %d, want %04o of %d", tc.mode, info.Mode(), gid, tc.want, tc.gid)
		}
	}
}
