package ingest

import (
	"iter"
	"time"

	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/internal/source/machinetool"
)

// counts is a snapshot of a machine for its metrics.
type counts struct {
	gateway.Stats
	feed    feed.Stats
	health  health
	fetched uint64
	control machinetool.Stats
	observed
	limit int64 // bytes that the spool may take; 0: what the disk holds
}

// flag returns a metric that is 1 or 0.
func flag(name, help string, is func(counts) bool) metric.Metric[counts] {
	return metric.Gauge(name, help, func(c counts) float64 {
		if is(c) {
			return 1
		}
		return 0
	})
}

// metrics lists the metrics of a machine, see docs/reference/metrics.md.
var metrics = []metric.Metric[counts]{
	metric.Counter("tcm_windows_cut_total", "Windows cut.", func(c counts) uint64 { return c.Windows }),
	metric.Counter("tcm_windows_delivered_total", "Windows that Kafka has.", func(c counts) uint64 { return c.Delivered }),
	metric.Counter("tcm_windows_fetched_total", "Raw windows of a machine in mode edge that were sent because a command asked for them.", func(c counts) uint64 { return c.fetched }),
	metric.Gauge("tcm_windows_pending", "Windows in the spool that Kafka does not have yet.", func(c counts) float64 { return float64(c.Stats.Pending) }),
	metric.Gauge("tcm_spool_oldest_seconds", "How long ago the oldest window was acquired that Kafka does not have yet; 0 if none waits.", func(c counts) float64 {
		if c.Oldest.IsZero() {
			return 0
		}
		return max(0, time.Since(c.Oldest).Seconds())
	}),
	metric.Gauge("tcm_spool_bytes", "Bytes that the spool takes on disk.", func(c counts) float64 { return float64(c.SpoolBytes) }),
	metric.Gauge("tcm_spool_limit_bytes", "Bytes that the spool may take, as spool_mib says; 0 for what the disk holds.", func(c counts) float64 { return float64(c.limit) }),
	flag("tcm_spool_writable", "1 unless the spool takes no windows, because it or its disk is full, or the disk refuses them or does not answer.", func(c counts) bool { return c.spoolProblem(time.Now()) == "" }),
	flag("tcm_ingest_kafka_up", "1 unless Kafka refuses the windows of the machine or does not answer.", func(c counts) bool { return c.Delivery == nil }),
	flag("tcm_ingest_spool_only", "1 while windows are kept in the spool and none is sent, as the configuration says.", func(c counts) bool { return c.spoolOnly }),
	metric.Counter("tcm_windows_dropped_total", "Windows given up because the spool was full.", func(c counts) uint64 { return c.Dropped }),
	metric.Counter("tcm_windows_damaged_total", "Windows lost to damage of the spool's files.", func(c counts) uint64 { return c.Damaged }),
	metric.Counter("tcm_spool_damaged_bytes_total", "Bytes of the spool's files that were damaged or that the disk could not read.", func(c counts) uint64 { return uint64(c.DamagedBytes) }),
	metric.Counter("tcm_source_gaps_total", "Spans of the source that no window covers.", func(c counts) uint64 { return c.Gaps }),
	flag("tcm_ingest_up", "1 while a machine is ingested; 0 when it has failed, or its recording is over.", func(c counts) bool { return c.health.State == running }),
	metric.Counter("tcm_ingest_restarts_total", "Times that a machine failed and was started again.", func(c counts) uint64 { return c.health.Restarts }),
	metric.Gauge("tcm_newest_window_timestamp_seconds", "Sensor time at which the newest window ends, since 1970.", func(c counts) float64 {
		if c.health.Newest == nil {
			return 0
		}
		return float64(c.health.Newest.UnixMilli()) / 1000
	}),
	metric.Counter("tcm_frames_received_total", "Frames taken from live sources.", func(c counts) uint64 { return c.feed.Frames }),
	metric.Counter("tcm_frames_refused_total", "Frames and messages of live sources that were wrong.", func(c counts) uint64 { return c.feed.AllRefused() }),
	metric.Counter("tcm_samples_received_total", "Samples of all channels together that came from the source.", func(c counts) uint64 { return c.health.Samples.Received }),
	metric.Counter("tcm_samples_windowed_total", "Samples that are in windows.", func(c counts) uint64 { return c.health.Samples.InWindows }),
	metric.Gauge("tcm_samples_open", "Samples that wait for more before windows can be cut.", func(c counts) float64 { return float64(c.health.Samples.Open) }),
	flag("tcm_samples_over_bound", "1 while more samples of the last minute are in no window than source.max_lost allows.", func(c counts) bool { return c.lost != nil }),
	metric.Gauge("tcm_senders", "Clients connected by TCP, or 1 while the MQTT broker is.", func(c counts) float64 { return float64(c.feed.Senders) }),
	metric.Counter("tcm_mqtt_short_connections_total", "Connections to the MQTT broker that ended within 30 s.", func(c counts) uint64 { return c.feed.Short }),
	metric.Counter("tcm_context_readings_total", "Times that a machine's control answered which tool is in.", func(c counts) uint64 { return c.control.Readings }),
	metric.Counter("tcm_context_failures_total", "Readings of a machine's control that failed, or of which a part could not be used.", func(c counts) uint64 { return c.control.Failures }),
	metric.Counter("tcm_context_changes_total", "Changes of the context that a machine's control made.", func(c counts) uint64 { return c.control.Changes }),
	flag("tcm_context_stale", "1 while a machine's control has not answered for its timeout; 0 otherwise, and without a control.", func(c counts) bool { return c.control.Stale }),
}

// unusedMetrics have the label reason too, see docs/concepts/ledger.md.
var unusedMetrics = []metric.Metric[unusedCounts]{
	metric.Counter("tcm_samples_unused_total", "Samples that are in no window, by reason.", func(c unusedCounts) uint64 { return c.samples }),
	metric.Counter("tcm_frames_unused_total", "Frames and messages that were not taken, by reason.", func(c unusedCounts) uint64 { return c.frames }),
}

// flaggedMetrics have the label flag too.
var flaggedMetrics = []metric.Metric[uint64]{
	metric.Counter("tcm_windows_flagged_total", "Windows in which a sensor has a fault, by flag.", func(n uint64) uint64 { return n }),
}

// flagged returns the windows of each machine with each flag that any has.
func flagged(rows iter.Seq2[string, counts]) iter.Seq2[[]string, uint64] {
	return func(yield func([]string, uint64) bool) {
		for machine, c := range rows {
			for flag, n := range c.health.Flags {
				if !yield([]string{machine, flag}, n) {
					return
				}
			}
		}
	}
}

type unusedCounts struct{ samples, frames uint64 }

// unused returns the counts of each machine for each reason that has any.
func unused(rows iter.Seq2[string, counts]) iter.Seq2[[]string, unusedCounts] {
	return func(yield func([]string, unusedCounts) bool) {
		for machine, c := range rows {
			by := map[string]unusedCounts{}
			for reason, n := range c.health.Samples.Unused {
				by[reason] = unusedCounts{samples: n}
			}
			for r, n := range c.feed.Refused {
				if name := feed.Reason(r).String(); n > 0 {
					by[name] = unusedCounts{by[name].samples, n}
				}
			}
			for reason, n := range by {
				if !yield([]string{machine, reason}, n) {
					return
				}
			}
		}
	}
}

// NewSend returns the histogram of how long windows take to Kafka.
func NewSend() metric.Histogram {
	return metric.NewHistogram("tcm_window_send_seconds", "From when a window was acquired until Kafka had it, all machines together.")
}

// ObserveSent returns what a gateway.Config takes as OnSent.
func ObserveSent(send metric.Histogram) func(time.Duration) {
	return func(age time.Duration) { send.Observe(age.Seconds()) }
}

// GatewayMetrics returns the metrics of the gateway of one machine that no Supervisor runs.
// Newest returns the end of its newest window; it is called whenever Prometheus asks.
func GatewayMetrics(machine string, g *gateway.Gateway, send metric.Histogram, newest func() time.Time) []metric.Collector {
	return metricsOf(send, func() supervised { return supervised{} }, func(yield func(string, counts) bool) {
		yield(machine, ofGateway(g.Stats(), g.Progress(), newest()))
	})
}

func ofGateway(s gateway.Stats, p gateway.Progress, newest time.Time) counts {
	c := counts{Stats: s, observed: observed{Progress: p}, health: health{State: running, Samples: newLedger(s, feed.Stats{}, false, 0), Flags: flagsOf(s)}}
	if !newest.IsZero() {
		c.health.Newest = &newest
	}
	return c
}

// collectors returns the metrics of the machines. The first 500 of the configuration have
// rows of their own.
func (s *Supervisor) collectors() []metric.Collector {
	listed := s.machines[:min(len(s.machines), metric.MaxMachines)]
	return metricsOf(s.send, func() supervised { return supervised{len(s.machines) - len(listed), s.commands.n.Load()} }, func(yield func(string, counts) bool) {
		for _, m := range listed {
			g, f := m.snapshot()
			if !yield(m.Path, counts{g, f, m.health(), m.fetched(), m.controlStats(), m.observe(), m.MiB << 20}) {
				return
			}
		}
	})
}

// supervised is what is counted of all machines together.
type supervised struct {
	unlisted int    // machines without metrics of their own
	failures uint64 // to read commands
}

func metricsOf(send metric.Histogram, all func() supervised, rows iter.Seq2[string, counts]) []metric.Collector {
	return []metric.Collector{send, metric.By("machine", rows, metrics), metric.ByLabels([]string{"machine", "reason"}, unused(rows), unusedMetrics), metric.ByLabels([]string{"machine", "flag"}, flagged(rows), flaggedMetrics), metric.Of(all, []metric.Metric[supervised]{
		metric.Gauge("tcm_ingest_machines_unlisted", "Machines beyond the 500 that have metrics of their own.", func(s supervised) float64 { return float64(s.unlisted) }),
		metric.Counter("tcm_command_failures_total", "Times that commands for machines in mode edge could not be read from Kafka.", func(s supervised) uint64 { return s.failures }),
	})}
}
