package gateway

import (
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Stats counts what a Gateway did since it was started.
type Stats struct {
	Windows   uint64 // cut, those kept before included
	Gaps      uint64
	Delivered uint64 // acknowledged by the broker
	Pending   uint64 // kept and not yet acknowledged
	Dropped   uint64 // because the spool was full
	Damaged   uint64 // lost to damage of the spool's files, which stay next to the others as .bad

	Flagged [len(signal.Flags)]uint64 // windows with a flag of a sensor, in the order of signal.Flags

	Samples window.Tally // what became of the samples of the source

	SpoolBytes   int64 // that the spool takes on disk
	DamagedBytes int64 // bytes of the spool's files that belonged to no whole window
}

// Add returns the counts of two gateways that ran one after the other on the same
// spool, s before t.
func (s Stats) Add(t Stats) Stats {
	all := Stats{
		Windows: s.Windows + t.Windows, Gaps: s.Gaps + t.Gaps, Delivered: s.Delivered + t.Delivered,
		Pending: t.Pending, SpoolBytes: t.SpoolBytes, Dropped: s.Dropped + t.Dropped, Damaged: s.Damaged + t.Damaged,
		DamagedBytes: s.DamagedBytes + t.DamagedBytes, Samples: s.Samples.Add(t.Samples),
	}
	for i := range all.Flagged {
		all.Flagged[i] = s.Flagged[i] + t.Flagged[i]
	}
	return all
}

// Stats returns the counts. It is safe for concurrent use.
func (g *Gateway) Stats() Stats {
	s := g.spool.Stats()
	all := Stats{
		Windows: g.windows.Load(), Gaps: g.gaps.Load(), Delivered: g.delivered.Load(),
		Pending: s.Pending, SpoolBytes: s.Bytes, Dropped: s.Dropped, Damaged: s.Quarantined, DamagedBytes: s.DamagedBytes,
		Samples: g.cut.Tally(),
	}
	for i := range all.Flagged {
		all.Flagged[i] = g.flagged[i].Load()
	}
	return all
}
