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

// OnRetry returns a callback for bus.Config that logs an outage of the broker,
// what it means, and its end. While it goes on for the same reason it is logged
// each minute, not at each attempt.
func OnRetry(log zerolog.Logger, means string) func(error, time.Duration) {
	var (
		mu   sync.Mutex
		last string
		next time.Duration // into the outage
	)
	return func(err error, since time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			last = ""
			log.Info().Dur("after_ms", since).Msg("the broker answers again")
			return
		}
		if err.Error() == last && since < next {
			return
		}
		last, next = err.Error(), since+repeatAfter
		log.Warn().Err(err).Dur("for_ms", since).Msg(means)
	}
}
