package source

import (
	"sync"
	"time"
)

// Once returns a function that calls say with each text the first time. It is safe for concurrent use.
func Once(say func(text string)) func(text string) {
	var said sync.Map
	return func(text string) {
		if _, before := said.LoadOrStore(text, true); !before {
			say(text)
		}
	}
}

// Seldom counts what happens as often as senders like, for a log that says it at most once in a while. Its zero value is
// ready; it is not safe for concurrent use.
type Seldom struct {
	said  time.Time
	count uint64 // since then
}

// Note counts one more. It reports whether that is to be said now, as the first since so long ago, and how many it stands for.
func (s *Seldom) Note(now time.Time, every time.Duration) (count uint64, say bool) {
	s.count++
	if !s.said.IsZero() && now.Sub(s.said).Abs() < every {
		return 0, false
	}
	count = s.count
	*s = Seldom{said: now}
	return count, true
}
