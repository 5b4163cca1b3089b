package gateway

import (
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/window"
)

// away is the reason of the gap between the last window of a live source that the
// spool has from before, and the first one since.
const away = "no ingester ran"

// lastEnd returns the end of the newest window of a spool, and zero if there is
// none, or none that can be read.
func lastEnd(d spool.Disk) time.Time {
	newest, err := newestRecord(d)
	var m bus.Message
	if err != nil || newest == nil || m.UnmarshalBinary(newest) != nil {
		return time.Time{} // no spool yet, or Open says what is wrong with it
	}
	return m.Time
}

// declareAway says that nothing was acquired before w, the first window of a live
// source since the start: the window that was open when the ingester died, and
// what came until it was started again.
func (g *Gateway) declareAway(w *window.Window) {
	since := g.before
	g.before = time.Time{}
	if since.IsZero() || !w.Start.After(since) {
		return
	}
	groups := g.cut.Layout().Groups()
	g.gap(source.Cut{Gap: &window.Gap{
		Context: w.Context, Session: w.Session, Reason: away, Start: since, Duration: w.Start.Sub(since), Rate: groups[0].Rate,
	}})
}
