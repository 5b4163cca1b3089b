package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/window"
)

// A recording waits for room in a full spool: nothing of it is given up.
func TestFullSpoolBlocks(t *testing.T) {
	t.Parallel()
	for _, every := range []int{1, 16} {
		p := newPlantOnDisk(t)
		addr := p.broker.Addr()
		p.broker.Close()
		g := p.gateway(p.record("day.csv", 0, 300), func(c *Config) {
			c.SpoolBytes, c.SyncEvery = 200_000, every
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		for !strings.Contains(p.log.String(), "stopped acquiring because the spool is full") && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		if s := g.Stats(); s.Windows == 300 || s.Pending == 0 || s.Dropped != 0 {
			t.Errorf("sync every %d: full with %+v", every, s)
		}
		if pr := g.Progress(); !errors.Is(pr.Refused, spool.ErrFull) || pr.Storing.IsZero() || pr.Pending == 0 || pr.Sending.IsZero() {
			t.Errorf("sync every %d: full with %+v", every, pr)
		}
		p.start(addr)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if pr := g.Progress(); pr.Stored.IsZero() || pr != (Progress{Stored: pr.Stored}) {
			t.Errorf("sync every %d: all is delivered with %+v", every, pr)
		}
		p.check(epochs{g.spool.Epoch(): windows(0, 0, 300)})
	}
}

// A stop while a spool is full is a stop, and not a failure: a service that reloads must not end by it.
func TestStoppedWithFullSpool(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.broker.Close()
	g := p.gateway(p.record("day.csv", 0, 300), func(c *Config) { c.SpoolBytes = 200_000 })
	g.patience = 0
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	for !strings.Contains(p.log.String(), "stopped acquiring because the spool is full") && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil || !strings.Contains(p.log.String(), "stopped while the spool was full") {
		t.Errorf("%v\n%s", err, p.log.String())
	}
}

// A live source does not wait: the newest windows are kept, and what was given up
// is declared.
func TestFullSpoolDropsOldest(t *testing.T) {
	t.Parallel()
	p := newPlantOnDisk(t)
	addr := p.broker.Addr()
	p.broker.Close()
	g := p.gateway(p.record("day.csv", 0, 300), func(c *Config) {
		c.SpoolBytes, c.DropOldest = 200_000, true
		c.OnCut = func(c source.Cut) {
			if c.Gap != nil && c.Gap.Reason == window.Tail { // all windows are cut
				p.start(addr)
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
	s := g.Stats()
	if s.Windows != 300 || s.Dropped < 100 || s.Dropped > 290 || s.Pending != 0 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(p.log.String(), "dropped the oldest windows because the spool is full") {
		t.Errorf("not declared:\n%s", p.log.String())
	}
	// The reader had taken the first ones already: they may have arrived as well.
	got := p.sent()[g.spool.Epoch()]
	for seq := s.Dropped; seq < 300; seq++ {
		if _, ok := got[seq]; !ok {
			t.Errorf("window %d was neither given up nor delivered", seq)
		}
	}
}

// A spool that has room for one window alone goes on when that one is delivered, also if it waits for a sync with others.
func TestRoomForOneWindow(t *testing.T) {
	t.Parallel()
	for _, every := range []int{1, 3} {
		for _, drop := range []bool{false, true} {
			p := newPlant(t)
			g := p.gateway(p.record("day.csv", 0, 3), func(c *Config) { c.SpoolBytes, c.SyncEvery, c.DropOldest = 4000, every, drop })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := g.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if s := g.Stats(); s.Windows != 3 || s.Delivered+s.Dropped < 3 || s.Pending != 0 {
				t.Errorf("sync every %d, drop the oldest %t: %+v\n%s", every, drop, s, p.log.String())
			}
			if !drop {
				p.check(epochs{g.spool.Epoch(): windows(0, 0, 3)})
			}
		}
	}
}
