//go:build unix

package config

import (
	"os"
	"syscall"
)

// keepOwner gives f the owner of the file before, and its group, if the owner is another one or the group
// counts.
func keepOwner(f *os.File, before os.FileInfo, group bool) error {
	old, ok := before.Sys().(*syscall.Stat_t)
	if !ok || int(old.Uid) == os.Geteuid() && !group {
		return nil
	}
	return f.Chown(int(old.Uid), int(old.Gid))
}
