//go:build unix

package atomicfile

import (
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file before.
func keepOwner(f *os.File, before os.FileInfo) error {
	old, ok := before.Sys().(*syscall.Stat_t)
	if !ok || int(old.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(old.Uid), int(old.Gid))
}
