package ingest

import (
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/source/feed"
)

// counts is a snapshot of a machine for its metrics.
type counts struct {
	gateway.Stats
	feed    feed.Stats
	health  health
	fetched uint64
}

// metrics lists the metrics of a machine, see docs/reference/metrics.md.
var metrics = []metric.Metric[counts]{
	metric.Counter("tcm_windows_cut_total", "Windows cut.", func(c counts) uint64 { return c.Windows }),
	metric.Counter("tcm_windows_delivered_total", "Windows that Kafka has.", func(c counts) uint64 { return c.Delivered }),
	metric.Counter("tcm_windows_fetched_total", "Raw windows of a machine in mode edge that were sent because a command asked for them.", func(c counts) uint64 { return c.fetched }),
	metric.Gauge("tcm_windows_pending", "Windows in the spool that Kafka does not have yet.", func(c counts) float64 { return float64(c.Pending) }),
	metric.Counter("tcm_windows_dropped_total", "Windows given up because the spool was full.", func(c counts) uint64 { return c.Dropped }),
	metric.Counter("tcm_windows_damaged_total", "Windows lost to damage of the spool's files.", func(c counts) uint64 { return c.Damaged }),
	metric.Counter("tcm_spool_damaged_bytes_total", "Bytes of the spool's files that were damaged or that the disk could not read.", func(c counts) uint64 { return uint64(c.DamagedBytes) }),
	metric.Counter("tcm_source_gaps_total", "Spans of the source that no window covers.", func(c counts) uint64 { return c.Gaps }),
	metric.Gauge("tcm_ingest_up", "1 while a machine is ingested; 0 when it has failed, or its recording is over.", func(c counts) float64 {
		if c.health.State == running {
			return 1
		}
		return 0
	}),
	metric.Counter("tcm_ingest_restarts_total", "Times that a machine failed and was started again.", func(c counts) uint64 { return c.health.Restarts }),
	metric.Gauge("tcm_newest_window_timestamp_seconds", "Sensor time at which the newest window ends, since 1970.", func(c counts) float64 {
		if c.health.Newest == nil {
			return 0
		}
		return float64(c.health.Newest.UnixMilli()) / 1000
	}),
	metric.Counter("tcm_frames_received_total", "Frames taken from live sources.", func(c counts) uint64 { return c.feed.Frames }),
	metric.Counter("tcm_frames_refused_total", "Frames and messages of live sources that were wrong.", func(c counts) uint64 { return c.feed.Refused }),
	metric.Gauge("tcm_senders", "Clients connected by TCP, or 1 while the MQTT broker is.", func(c counts) float64 { return float64(c.feed.Senders) }),
}

// collector returns the metrics of all machines.
func (s *Supervisor) collector() metric.Collector {
	return metric.By("machine", func(yield func(string, counts) bool) {
		for _, m := range s.machines {
			g, f := m.snapshot()
			if !yield(m.Path, counts{g, f, m.health(), m.fetched()}) {
				return
			}
		}
	}, metrics)
}
