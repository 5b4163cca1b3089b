package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/ingest/spool"
)

// fullPause is how long acquisition waits before it asks a full spool again.
const fullPause = 100 * time.Millisecond

// storeTries is how often a disk may refuse windows before acquisition ends: after a
// failure the spool goes on in another file, so that one bad sector stops nothing.
const storeTries = 3

// store makes the held windows durable. It waits for room while ctx lasts, and returns the error of
// ctx if there was none until then.
func (g *Gateway) store(ctx context.Context) error {
	logged := false
	g.storing()
	for tries := 1; ; {
		before := g.spool.Stats().Dropped
		err := g.storeOnce()
		g.stored(err)
		g.logDropped(before)
		full := errors.Is(err, spool.ErrFull)
		if full && ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || !full && (tries == storeTries || errors.Is(err, spool.ErrTooLarge) || errors.Is(err, spool.ErrClosed)) {
			return err
		}
		if !full {
			tries++
			g.cfg.Log.Warn().Err(err).Str("folder", g.cfg.SpoolDir).Msg("the disk refuses windows: trying again in another file; check the disk")
			continue
		}
		if !logged {
			g.cfg.Log.Error().Err(err).Msg("stopped acquiring because the spool is full: connect the broker so that windows are delivered, or free the disk")
			logged = true
		}
		_ = g.spool.Sync()                   // what waits for it can be delivered then, and makes room
		_ = g.cfg.Clock.Wait(ctx, fullPause) // the last try is without the wait
	}
}

// storeOnce appends what the spool does not have of the held windows, and syncs.
func (g *Gateway) storeOnce() error {
	first := g.heldTo - uint64(len(g.held))
	for len(g.held) > 0 {
		next := g.spool.NextSeq()
		if next == g.heldTo {
			break
		}
		if next < first || next > g.heldTo {
			panic(fmt.Sprintf("gateway: spool is at %d, windows %d to %d are to be kept", next, first, g.heldTo))
		}
		h := g.held[next-first]
		seq, err := g.spool.Append(h.head, h.msg.Value)
		if err != nil {
			return err
		}
		h.kept = !g.cfg.SpoolOnly && g.spool.Keep(seq, h)
	}
	if err := g.spool.Sync(); err != nil {
		return err
	}
	for _, h := range g.held {
		if !h.kept {
			g.memory.give(h)
		}
	}
	g.held = g.held[:0]
	return nil
}

// logDropped logs the windows that the spool has dropped since it had dropped before of
// them.
func (g *Gateway) logDropped(before uint64) {
	s := g.spool.Stats()
	if s.Dropped == before {
		return
	}
	g.cfg.Log.Error().Str("event", "windows_dropped").Uint64("windows", s.Dropped-before).Uint64("up_to_seq", s.Acked).
		Msg("dropped the oldest windows because the spool is full: connect the broker, or raise spool_mib")
}

// logDamage logs what damage of the spool's files has cost since before, and
// returns what to compare with next time.
func (g *Gateway) logDamage(before spool.Stats) (now spool.Stats) {
	now = g.spool.Stats()
	if now.DamagedBytes == before.DamagedBytes {
		return now
	}
	lost := now.Quarantined - before.Quarantined
	text := "lost windows because the spool's files are damaged, or the disk cannot read them: see the files ending in .bad, and check the disk"
	if lost == 0 {
		text = "the spool's files are damaged, or the disk cannot read them: no window is lost because all were delivered; check the disk"
	}
	g.cfg.Log.Error().Str("event", "windows_damaged").Uint64("windows", lost).Int64("bytes", now.DamagedBytes-before.DamagedBytes).
		Str("folder", g.cfg.SpoolDir).Msg(text)
	return now
}
