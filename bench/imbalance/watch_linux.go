package imbalance

import "golang.org/x/sys/unix"

// threadSeconds returns the processor's time that this thread has taken.
func threadSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("study: clock of a thread: " + err.Error()) // every Linux has it
	}
	return float64(t.Nano()) / 1e9
}
