package gateway

import (
	"slices"
	"time"
)

// Progress says when a Gateway last made progress. Times are zero before
// the first time, or where nothing waits.
type Progress struct {
	Stored   time.Time // when windows were last made durable
	Storing  time.Time // since when windows wait for the disk, or for room in the spool
	Refused  error     // the error of the disk, if there was one
	Pending  uint64    // windows in the spool that Kafka does not have yet
	Sending  time.Time // since when Kafka has taken none of them
	Delivery error     // the error of the broker since then, if there was one
	Oldest   time.Time // when the oldest of the windows that wait was acquired; zero if that is not known
}

// Progress is safe for concurrent use.
func (g *Gateway) Progress() Progress {
	pending := g.spool.Stats().Pending
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.progress
	if p.Pending = pending; pending == 0 {
		p.Sending, p.Delivery, p.Oldest = time.Time{}, nil, time.Time{}
	}
	return p
}

// storing notes that windows are about to be stored.
func (g *Gateway) storing() {
	idle := g.spool.Stats().Pending == 0
	now := g.cfg.Clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.Storing = now
	if idle {
		g.progress.Sending = now
	}
}

// stored notes how that went.
func (g *Gateway) stored(err error) {
	now := g.cfg.Clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.progress.Refused = err; err == nil {
		g.progress.Stored, g.progress.Storing = now, time.Time{}
	}
}

// sending notes when the first window of a batch was acquired.
func (g *Gateway) sending(acquired time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.Oldest = acquired
}

// sent notes that Kafka has taken windows that were acquired at these times; zero if that is
// not known. Until the next batch begins, the oldest that waits is not older than the last of
// them.
func (g *Gateway) sent(acquired []time.Time) {
	now := g.cfg.Clock.Now()
	for _, at := range acquired {
		if g.cfg.OnSent != nil && !at.IsZero() {
			g.cfg.OnSent(now.Sub(at))
		}
	}
	oldest := slices.MaxFunc(acquired, time.Time.Compare)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.Sending, g.progress.Delivery, g.progress.Oldest = now, nil, oldest
}

// retrying notes why a broker has not taken windows yet.
func (g *Gateway) retrying(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.Delivery = err
}
