package gateway

import "github.com/flank-tcm/flank/internal/metric"

// Stats counts what a Gateway did since it was started.
type Stats struct {
	Windows   uint64 // cut, those kept before included
	Gaps      uint64
	Delivered uint64 // acknowledged by the broker
	Pending   uint64 // kept and not yet acknowledged
	Dropped   uint64 // given up because the spool was full
	Damaged   uint64 // lost to damage of the spool's files; these stay as .bad next to the others

	DamagedBytes int64 // of the spool's files, that were no part of a whole window any more
}

// Add returns the counts of two gateways that ran one after the other on the same
// spool, s before t.
func (s Stats) Add(t Stats) Stats {
	return Stats{
		Windows: s.Windows + t.Windows, Gaps: s.Gaps + t.Gaps, Delivered: s.Delivered + t.Delivered,
		Pending: t.Pending, Dropped: s.Dropped + t.Dropped, Damaged: s.Damaged + t.Damaged,
		DamagedBytes: s.DamagedBytes + t.DamagedBytes,
	}
}

// Metrics returns the counts of a machine as docs/metrics.md lists them.
func (s Stats) Metrics(machine string) []metric.Metric {
	all := []metric.Metric{
		metric.Count("tcm_windows_cut_total", "Windows cut.", s.Windows),
		metric.Count("tcm_windows_delivered_total", "Windows that Kafka has.", s.Delivered),
		metric.Level("tcm_windows_pending", "Windows in the spool that Kafka does not have yet.", float64(s.Pending)),
		metric.Count("tcm_windows_dropped_total", "Windows given up because the spool was full.", s.Dropped),
		metric.Count("tcm_windows_damaged_total", "Windows lost to damage of the spool's files.", s.Damaged),
		metric.Count("tcm_spool_damaged_bytes_total", "Bytes of the spool's files that were damaged or that the disk could not read.", uint64(s.DamagedBytes)),
		metric.Count("tcm_source_gaps_total", "Spans of the source that no window covers.", s.Gaps),
	}
	for i := range all {
		all[i].Labels = []string{"machine", machine}
	}
	return all
}

// Stats returns the counts. It is safe for concurrent use.
func (g *Gateway) Stats() Stats {
	s := g.spool.Stats()
	return Stats{
		Windows: g.windows.Load(), Gaps: g.gaps.Load(), Delivered: g.delivered.Load(),
		Pending: s.Pending, Dropped: s.Dropped, Damaged: s.Quarantined, DamagedBytes: s.DamagedBytes,
	}
}
