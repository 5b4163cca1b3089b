//go:build !windows

package spool

import (
	"os"
	"syscall"
)

// diskFull are the errors of a disk, or a user's share of it, without room.
var diskFull = []error{syscall.ENOSPC, syscall.EDQUOT}

// unreadable are the errors of a place that the disk cannot read.
var unreadable = []error{syscall.EIO}

// syncDir makes names that were created, renamed or removed in dir durable.
func syncDir(dir string, fsync func(*os.File) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return fsync(d)
}
