package spool

import (
	"os"
	"syscall"
)

// diskFull are the errors of a disk without room.
var diskFull = []error{syscall.Errno(39), syscall.Errno(112)} // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL

// syncDir does nothing: Windows has no fsync of a directory, and NTFS journals
// its names itself.
func syncDir(string, func(*os.File) error) error { return nil }
