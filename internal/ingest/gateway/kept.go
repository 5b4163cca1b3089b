package gateway

import (
	"fmt"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// reportOnDisk tells a live source that w and all before it are on disk.
func (g *Gateway) reportOnDisk(w *window.Window) {
	if k, ok := g.cfg.Source.(source.AckedSource); ok {
		k.Acked(w.Session, g.nextStart(w.First))
	}
}

// nextStart returns where the window after the one at first starts: a sample counter
// at the highest rate.
func (g *Gateway) nextStart(first int64) int64 {
	return first + int64(math.Round(g.cut.Layout().Groups()[0].Rate*g.cfg.Window.Step().Seconds()))
}

// reportEarlierRun tells a live source which samples an earlier run has put on disk,
// up to the newest window of the spool. It ignores a window of another layout or
// length.
func (g *Gateway) reportEarlierRun() error {
	k, ok := g.cfg.Source.(source.AckedSource)
	if !ok {
		return nil
	}
	newest, err := newestRecord(g.disk)
	if err != nil {
		return err
	}
	if newest == nil {
		return nil
	}
	var m bus.Message
	if err := m.UnmarshalBinary(newest); err != nil {
		return fmt.Errorf("gateway: newest record of the spool: %w", err)
	}
	var w window.Window
	if openMessage(g.codec, &m, &w) == nil {
		if r, ok := k.(interface {
			Resumed(session int64, of signal.Context, first int64, at time.Time)
		}); ok {
			r.Resumed(w.Session, w.Context, w.First, w.Start)
		}
		k.Acked(w.Session, g.nextStart(w.First))
	}
	return nil
}

// newestRecord returns the newest record of the current epoch of a spool, or nil if
// there is none.
func newestRecord(d spool.Disk) (newest []byte, err error) {
	l, err := spool.List(d)
	if err != nil {
		return nil, err
	}
	for i := len(l.Segments) - 1; i >= 0 && newest == nil && l.Segments[i].Epoch == l.Epoch; i-- {
		_, err := spool.Walk(d, l.Segments[i], func(r spool.Record) error {
			newest = append(newest[:0], r.Payload...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return newest, nil
}
