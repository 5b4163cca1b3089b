//go:build unix

// Package spent measures, in tests and benchmarks, what this process has spent since it began.
package spent

import (
	"runtime"
	"syscall"
	"time"
)

// Now returns the processor time of this process, with the system's share, and how many objects and bytes it has allocated.
func Now() (processor time.Duration, objects, bytes float64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("spent: " + err.Error()) // of its own a process may always ask
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), float64(m.Mallocs), float64(m.TotalAlloc)
}
