package route

import (
	"context"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/metric"
)

// stats is what a route did since the program was started.
type stats struct {
	delivered, retried, refused, skipped, repeated uint64

	// Of the requests to PLCs.
	requestsTaken, requestsMissed uint64
	requestsOpen                  int

	last       time.Time     // when the receiver last took something
	partitions map[int]place // that this monitor has
}

// place is how far behind a partition is.
type place struct {
	messages int64     // that the receiver does not have yet
	oldest   time.Time // when Kafka got the first of them; zero if there is none
}

// outage is a series of failures, of any partition.
type outage struct {
	since    time.Time
	last     string
	loggedAt time.Time
}

// repeatAfter is how often an outage that goes on is logged.
const repeatAfter = 10 * time.Minute

func (r *Route) count(f func(*stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.stats)
}

// failed notes a failure, and logs it if it is a new one, or goes on for long.
func (r *Route) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.retried++
	now, text := r.now(), err.Error()
	if r.out.since.IsZero() {
		r.out.since = now
	}
	if text == r.out.last && now.Sub(r.out.loggedAt) < repeatAfter {
		return
	}
	r.out.last, r.out.loggedAt = text, now
	r.log.Warn().Str("event", "route_failing").Err(err).Dur("for_ms", now.Sub(r.out.since)).
		Msg("the receiver does not take alerts; they stay in Kafka and are retried")
}

// succeeded notes that the receiver took something.
func (r *Route) succeeded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if !r.out.since.IsZero() {
		r.log.Info().Str("event", "route_recovered").Dur("after_ms", now.Sub(r.out.since)).Msg("the receiver takes alerts again")
	}
	r.out, r.stats.last = outage{}, now
}

// behind records how far behind a partition is while m is delivered.
func (r *Route) behind(ctx context.Context, p stream, m bus.Message) {
	end, err := p.End(ctx)
	if err != nil {
		end = m.Offset + 1 // Kafka is away: the messages after m are not known
	}
	r.count(func(s *stats) { s.partitions[p.ID()] = place{end - m.Offset, m.Time} })
}

// passed records that the message that was waiting is done.
func (r *Route) passed(partition int) {
	r.count(func(s *stats) {
		at := s.partitions[partition]
		if at.messages--; at.messages <= 0 {
			at = place{}
		}
		s.partitions[partition] = at
	})
}

// caughtUp records that no message waits. Offsets that are left may be the marks that
// Kafka writes at the end of transactions; if they are messages, the next one corrects
// the count at once.
func (r *Route) caughtUp(partition int) {
	r.count(func(s *stats) { s.partitions[partition] = place{} })
}

func (r *Route) leave(partition int) {
	r.count(func(s *stats) { delete(s.partitions, partition) })
}

// counts is a snapshot of a route for its metrics.
type counts struct {
	stats
	waiting int64         // messages
	oldest  time.Duration // for how long the oldest of them has waited
	failing bool
}

// snapshot returns the counts at this moment.
func (r *Route) snapshot() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := counts{stats: r.stats, failing: !r.out.since.IsZero() || r.Err() != nil}
	now := r.now()
	for _, p := range r.stats.partitions {
		c.waiting += p.messages
		if !p.oldest.IsZero() {
			c.oldest = max(c.oldest, now.Sub(p.oldest))
		}
	}
	c.partitions = nil // they change outside the lock
	return c
}

// Lag returns how many messages wait for the receiver, of the partitions that this route has,
// and for how long the oldest of them has waited. It is safe for concurrent use.
func (r *Route) Lag() (messages int64, oldest time.Duration) {
	c := r.snapshot()
	return c.waiting, c.oldest
}

// routeMetrics lists the metrics of a route, see docs/reference/metrics.md.
var routeMetrics = []metric.Metric[counts]{
	metric.Counter("tcm_route_delivered_total", "Events that the receiver took.", func(c counts) uint64 { return c.delivered }),
	metric.Gauge("tcm_route_up", "1 unless the last attempt failed, or another program takes the MQTT client id.", func(c counts) float64 {
		if c.failing {
			return 0
		}
		return 1
	}),
	metric.Counter("tcm_route_retries_total", "Attempts that failed and were made again.", func(c counts) uint64 { return c.retried }),
	metric.Counter("tcm_route_refused_total", "Events that the receiver will never take, set aside on the dead-letter topic.", func(c counts) uint64 { return c.refused }),
	metric.Counter("tcm_route_filtered_total", "Events that the route is not for.", func(c counts) uint64 { return c.skipped }),
	metric.Counter("tcm_route_repeated_total", "Events that came again and were dropped.", func(c counts) uint64 { return c.repeated }),
	metric.Counter("tcm_route_requests_taken_total", "Tool-expired requests that a PLC acknowledged.", func(c counts) uint64 { return c.requestsTaken }),
	metric.Counter("tcm_route_requests_not_taken_total", "Tool-expired requests that no PLC acknowledged in time.", func(c counts) uint64 { return c.requestsMissed }),
	metric.Gauge("tcm_route_requests_open", "Tool-expired requests that wait for a PLC, of the partitions at hand.", func(c counts) float64 { return float64(c.requestsOpen) }),
	metric.Gauge("tcm_route_lag_messages", "Messages that wait for the receiver, of the partitions at hand.", func(c counts) float64 { return float64(c.waiting) }),
	metric.Gauge("tcm_route_lag_seconds", "For how long the oldest of them has waited.", func(c counts) float64 { return c.oldest.Seconds() }),
	metric.Gauge("tcm_route_last_success_timestamp_seconds", "When the receiver last took something, since 1970; 0 if it never did.", func(c counts) float64 {
		if c.last.IsZero() {
			return 0
		}
		return float64(c.last.UnixMilli()) / 1e3
	}),
}

// Metrics returns the counts of all routes.
func Metrics(routes []*Route) metric.Collector {
	return metric.By("route", func(yield func(string, counts) bool) {
		for _, r := range routes {
			if !yield(r.name, r.snapshot()) {
				return
			}
		}
	}, routeMetrics)
}
