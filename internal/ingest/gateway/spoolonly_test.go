package gateway

import (
	"context"
	"testing"
)

// With SpoolOnly nothing is sent, and nothing is lost: the next run without it sends everything, of a live
// source and of a recording, which is not sent a second time.
func TestSpoolOnly(t *testing.T) {
	spoolOnly := func(c *Config) { c.SpoolOnly = true }
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		p.replay(p.record("one.csv", 100, 3), live)
		ctx, stop := stopAt(t.Context(), 6) // in the middle
		g := p.gateway(p.record("two.csv", 200, 5), live, spoolOnly, stop)
		if err := g.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if s := g.Stats(); s.Delivered > 0 || s.Pending == 0 || s.Pending != g.spool.NextSeq()-3 {
			t.Errorf("%+v", s)
		}
		kept := int(g.Stats().Pending)
		g.Close()
		p.check(epochs{g.spool.Epoch(): windows(0, 100, 3)})
		p.replay(p.record("three.csv", 300, 2), live)
		want := windows(0, 100, 3)
		for seq, v := range windows(3, 200, kept) {
			want[seq] = v
		}
		for seq, v := range windows(uint64(3+kept), 300, 2) {
			want[seq] = v
		}
		p.check(epochs{g.spool.Epoch(): want})
	})
	t.Run("recording", func(t *testing.T) {
		t.Parallel()
		p := newPlant(t)
		r := p.record("one.csv", 100, 4)
		g := p.gateway(r, spoolOnly)
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := g.Stats(); s.Windows != 4 || s.Pending != 4 || s.Delivered != 0 {
			t.Errorf("%+v", s)
		}
		if err := g.Finish(); err != nil {
			t.Fatal(err)
		}
		epoch := g.spool.Epoch()
		g.Close()
		p.check(epochs{})
		another := p.gateway(p.record("two.csv", 200, 2), spoolOnly)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := another.Run(ctx); err != nil { // it waits for the first one to be sent
			t.Fatal(err)
		}
		another.Close()
		p.replay(r)
		p.check(epochs{epoch: windows(0, 100, 4)})
	})
}
