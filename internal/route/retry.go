package route

import (
	"errors"
	"time"
)

// refusal is the error of a receiver that will never take an event.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refused reports whether an error is a refusal.
func refused(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// later is the error of a receiver that may name the time after which to try again.
type later struct {
	err   error
	after time.Duration // 0: none
}

func (l *later) Error() string { return l.err.Error() }
func (l *later) Unwrap() error { return l.err }

// Times between attempts: the first, the longest, and the longest that a receiver
// may ask for with Retry-After.
const (
	firstWait = time.Second
	longWait  = time.Minute
	askedWait = time.Hour
)

// wait returns how long to wait after so many failures in a row: twice as long
// each time up to longWait, and at random up to half of that less, so that routes
// do not retry at the same time. It is never less than the receiver asked for.
func (r *Route) wait(failures int, asked time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := longWait
	if n := failures - 1; n < 6 {
		d = min(firstWait<<n, longWait)
	}
	d -= time.Duration(r.rng.Int64N(int64(d / 2)))
	return max(d, min(asked, askedWait))
}

// keptIDs is how many events a route remembers to have delivered.
const keptIDs = 4096

// memory holds the ids of the last events that were delivered.
type memory struct {
	known map[string]bool
	ring  []string
	next  int
}

func newMemory() *memory { return &memory{known: make(map[string]bool), ring: make([]string, keptIDs)} }

func (m *memory) add(id string) {
	delete(m.known, m.ring[m.next])
	m.known[id], m.ring[m.next] = true, id
	m.next = (m.next + 1) % len(m.ring)
}
