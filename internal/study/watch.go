package study

// watch measures what a fit takes: the time of a processor, which other programs
// do not lengthen, where the system tells it for a thread. The goroutine must be
// locked to one.
type watch float64

func startWatch() watch { return watch(threadSeconds()) }

// seconds returns those since the start.
func (w watch) seconds() float64 { return threadSeconds() - float64(w) }
