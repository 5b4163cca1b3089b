package spool

import (
	"os"
	"syscall"
)

// diskFull are the errors of a disk without room.
var diskFull = []error{syscall.Errno(39), syscall.Errno(112)} // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL

// unreadable are the errors of a place that the disk cannot read. (EIO is of tests
// and simulations.)
var unreadable = []error{syscall.Errno(23), syscall.Errno(27), syscall.Errno(1117), syscall.EIO} // ERROR_CRC, ERROR_SECTOR_NOT_FOUND, ERROR_IO_DEVICE

// syncDir does nothing: Windows has no fsync of a directory, and NTFS journals
// its names itself.
func syncDir(string, func(*os.File) error) error { return nil }
