//go:build unix && !solaris && !netbsd

package main

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// spaceOf returns how many bytes are free on the disk of a folder, and how many the files in the
// folder have.
func spaceOf(dir string) (free, used uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a file that is gone takes nothing
		}
		if info, err := d.Info(); err == nil {
			used += uint64(info.Size())
		}
		return nil
	})
	return uint64(st.Bavail) * uint64(st.Bsize), used, err //nolint:unconvert // Bavail has a sign on other systems
}
