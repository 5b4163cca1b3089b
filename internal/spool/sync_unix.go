//go:build !windows

package spool

import "os"

// syncDir makes names that were created, renamed or removed in dir durable.
func syncDir(dir string, fsync func(*os.File) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return fsync(d)
}
