//go:build unix

package atomicfile

import (
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
	if err := WritePrivate(path, []byte("again")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != 1234 {
		t.Errorf("it has another owner: %v", err)
	}
}
