package imbalance

import "runtime"

// watch measures what a fit takes: the time of a processor, which other programs
// do not lengthen, where the system tells it for a thread.
type watch float64

// startWatch locks the goroutine to its thread until stop.
func startWatch() watch {
	runtime.LockOSThread()
	return watch(threadSeconds())
}

func (w watch) stop() { runtime.UnlockOSThread() }

// seconds returns those since the start.
func (w watch) seconds() float64 { return threadSeconds() - float64(w) }
