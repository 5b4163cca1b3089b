package spool

import "syscall"

// room returns how many bytes may still be written to the folder's disk, 0 if that is not
// known.
func (d osDisk) room() int64 {
	var st syscall.Statfs_t
	if syscall.Statfs(d.dir, &st) != nil {
		return 0
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // Bsize has 32 bits on some systems
}
