//go:build !linux

package spool

// room returns 0: it is not known how many bytes may still be written.
func (d osDisk) room() int64 { return 0 }
