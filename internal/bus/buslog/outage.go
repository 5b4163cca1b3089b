// Package buslog logs what happens between a program and Kafka: outages of the broker,
// and certificates that expire soon.
package buslog

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// repeatAfter is how often an outage that goes on is logged.
const repeatAfter = time.Minute

// OnRetry returns a callback for bus.Config that logs an outage of the broker, what it
// means, and its end. A program has several connections, which all report the same outage:
// each reason is logged once and then each minute, and the end with the first connection
// that works again.
func OnRetry(log zerolog.Logger, means string) func(error, time.Duration) {
	var mu sync.Mutex
	next := make(map[string]time.Duration) // when to log a reason again, into the outage; empty: there is none
	return func(err error, since time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			if len(next) == 0 {
				return
			}
			clear(next)
			log.Info().Dur("after_ms", since).Msg("the broker answers again")
			return
		}
		if at, ok := next[err.Error()]; ok && since < at {
			return
		}
		next[err.Error()] = since + repeatAfter
		log.Warn().Err(err).Dur("for_ms", since).Msg(means)
	}
}
