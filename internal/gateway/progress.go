package gateway

import "time"

// Progress says when a Gateway last made progress. Times are zero before
// the first time, or where nothing waits.
type Progress struct {
	Stored   time.Time // when windows were last made durable
	Storing  time.Time // since when windows wait for the disk, or for room in the spool
	Refused  error     // the error of the disk, if there was one
	Pending  uint64    // windows in the spool that Kafka does not have yet
	Sending  time.Time // since when Kafka has taken none of them
	Delivery error     // the error of the broker since then, if there was one
}

// Progress is safe for concurrent use.
func (g *Gateway) Progress() Progress {
	pending := g.spool.Stats().Pending
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.progress
	if p.Pending = pending; pending == 0 {
		p.Sending, p.Delivery = time.Time{}, nil
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

// sent notes that Kafka has taken windows.
func (g *Gateway) sent() {
	now := g.cfg.Clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.Sending, g.progress.Delivery = now, nil
}

// retrying notes why a broker has not taken windows yet.
func (g *Gateway) retrying(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.progress.Delivery = err
}
