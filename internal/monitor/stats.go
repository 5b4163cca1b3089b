package monitor

import (
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/metric"
)

// Stats counts what a Monitor did since it was started.
type Stats struct {
	Judged  uint64 // windows that got a result
	Late    uint64 // of them, those that came after later ones were judged
	Repeats uint64 // windows that came again and were dropped

	Features  uint64 // messages of features that were published
	Unwatched uint64 // windows that no model could judge
	Alike     uint64 // tools that came with nearly the name of another one
	Panics    uint64 // times that a machine was stopped, or a message set aside, because of a defect

	Dead   uint64 // messages and records set aside on the dead-letter topic
	Alerts uint64

	Advisories uint64

	SeqGaps uint64 // times that windows were missing before one that came
	Missed  uint64 // windows in them
	Missing uint64 // windows that are missing now, of the machines at hand: some may have come late

	OffsetGaps uint64 // times that offsets of the windows topic were missing
	Offsets    uint64 // messages in them, as far as one can know
	Stalls     uint64 // times that a partition stood still and its reader was rebuilt

	Standstills uint64 // times that the monitor was not ready for standstillAfter
}

// Stats returns the counts. It is safe for concurrent use.
func (m *Monitor) Stats() Stats {
	return Stats{
		Judged: m.judged.Load(), Late: m.late.Load(), Repeats: m.repeats.Load(), Dead: m.dead.Load(), Alerts: m.alerts.Load(),
		Advisories: m.advisories.Load(), Features: m.features.Load(), Unwatched: m.unwatched.Load(), Panics: m.panics.Load(), Alike: m.alike.Load(),
		SeqGaps: m.seqGaps.Load(), Missed: m.missed.Load(), Missing: uint64(max(m.missing.Load(), 0)),
		OffsetGaps: m.offsetGaps.Load(), Offsets: m.offsets.Load(), Stalls: m.stalls.Load(), Standstills: m.standstills.Load(),
	}
}

// metrics lists the metrics of a monitor, see docs/reference/metrics.md.
var metrics = []metric.Metric[Stats]{
	metric.Counter("tcm_windows_judged_total", "Windows that got a result.", func(s Stats) uint64 { return s.Judged }),
	metric.Counter("tcm_windows_late_total", "Windows judged after later ones.", func(s Stats) uint64 { return s.Late }),
	metric.Counter("tcm_windows_repeated_total", "Windows that came again and were dropped.", func(s Stats) uint64 { return s.Repeats }),
	metric.Counter("tcm_windows_unwatched_total", "Windows that no model could judge.", func(s Stats) uint64 { return s.Unwatched }),
	metric.Counter("tcm_machine_panics_total", "Times that a defect stopped a machine, or had a message set aside.", func(s Stats) uint64 { return s.Panics }),
	metric.Counter("tcm_tools_alike_total", "Tools that came with nearly the name of another tool of the machine.", func(s Stats) uint64 { return s.Alike }),
	metric.Counter("tcm_features_published_total", "Messages of features that were published.", func(s Stats) uint64 { return s.Features }),
	metric.Counter("tcm_windows_missed_total", "Windows that had not come when a later one did.", func(s Stats) uint64 { return s.Missed }),
	metric.Gauge("tcm_windows_missing", "Windows that have not come yet, of the machines at hand.", func(s Stats) float64 { return float64(s.Missing) }),
	metric.Counter("tcm_seq_gaps_total", "Times that windows were missing before one that came.", func(s Stats) uint64 { return s.SeqGaps }),
	metric.Counter("tcm_offset_gaps_total", "Times that offsets of the windows topic were missing.", func(s Stats) uint64 { return s.OffsetGaps }),
	metric.Counter("tcm_offsets_missed_total", "Offsets of the windows topic that were gone before they were read.", func(s Stats) uint64 { return s.Offsets }),
	metric.Counter("tcm_partition_stalls_total", "Times that a partition stood still and its reader was rebuilt.", func(s Stats) uint64 { return s.Stalls }),
	metric.Counter("tcm_monitor_standstills_total", "Times that the monitor did not judge what came for 15 s.", func(s Stats) uint64 { return s.Standstills }),
	metric.Counter("tcm_dead_letters_total", "Messages and records set aside on the dead-letter topic.", func(s Stats) uint64 { return s.Dead }),
	metric.Counter("tcm_alerts_total", "Alerts sent: alarms raised, cleared, acknowledged and so on.", func(s Stats) uint64 { return s.Alerts }),
	metric.Counter("tcm_advisories_total", "Advisories sent: sensors, silence and so on, raised and cleared.", func(s Stats) uint64 { return s.Advisories }),
}

// onStall counts what the watchdog of the readers did, and logs a standstill once.
func (m *Monitor) onStall(s bus.Stall) {
	ev := m.cfg.Log.Debug()
	switch s.Times {
	case 0:
		ev = m.cfg.Log.Info()
	case 1:
		ev = m.cfg.Log.Warn()
	}
	name := "partition_stalled"
	if s.Times == 0 {
		name = "partition_moves_again"
	} else {
		m.stalls.Add(1)
	}
	ev.Str("event", name).Str("topic", s.Topic).Int("partition", s.Partition).Int64("offset", s.Offset).Int64("behind", s.Behind).
		Dur("for_ms", s.For).Msg(s.String())
}

// onGap counts offsets that are gone.
func (m *Monitor) onGap(g bus.Gap) {
	m.offsetGaps.Add(1)
	m.offsets.Add(uint64(g.Missing()))
	m.cfg.Log.Error().Str("event", "offset_gap").Str("topic", g.Topic).Int("partition", g.Partition).Int64("from", g.From).Int64("to", g.To).
		Msg(g.String() + ": raise the topic's retention, or ask who compacts, removes or restores it; `ingest spool resend` brings back what the spools still have")
}
