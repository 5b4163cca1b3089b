package feed

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// senders are one or two that repeat, skip, mix up and lie.
type senders struct {
	layout *signal.Layout
	all    []*sender
	now    time.Time
}

type sender struct {
	session int64
	at      [2]int64
	start   time.Duration // of the counters, after origin
}

// ledgerRates and ledgerWidths are of the layout of these tests, which has windows of so many values.
var ledgerRates, ledgerWidths = []int64{40, 10}, []uint64{2, 1}

func drawSenders(t *rapid.T, l *signal.Layout) *senders {
	s := &senders{layout: l, now: origin, all: []*sender{{session: 1}, {session: rapid.Int64Range(1, 2).Draw(t, "session of the second"), start: 7 * time.Second}}}
	if rapid.IntRange(0, 2).Draw(t, "senders") < 2 {
		s.all = s.all[:1]
	}
	return s
}

// frame draws the next frame, and lets time pass.
func (all *senders) frame(t *rapid.T) *source.Block {
	s := all.all[0]
	if len(all.all) > 1 && rapid.Bool().Draw(t, "the second") {
		s = all.all[1]
	}
	g := rapid.Int64Range(0, 1).Draw(t, "rate")
	n := rapid.Int64Range(1, ledgerRates[g]).Draw(t, "samples")
	first, lie := s.at[g], time.Duration(0)
	switch rapid.IntRange(0, 24).Draw(t, "what") {
	case 0: // its counter lies
		first = rapid.Int64Range(0, 1e12).Draw(t, "lie")
	case 1: // its clock lies
		lie = time.Duration(rapid.OneOf(rapid.Int64Range(-1e6, 1e6), rapid.Int64Range(-17e8, 60e8)).Draw(t, "seconds")) * time.Second
	case 2: // samples are missing
		first += rapid.Int64Range(1, 5*ledgerRates[g]).Draw(t, "missing")
		s.at[g] = first
	case 3: // it comes again
		first = max(0, first-rapid.Int64Range(1, 3*ledgerRates[g]).Draw(t, "back"))
	case 4: // the sender begins again
		s.start += time.Duration(s.at[0]/40+rapid.Int64Range(1, 100).Draw(t, "later")) * time.Second
		s.at = [2]int64{}
		first = 0
		if rapid.Bool().Draw(t, "with another session") {
			s.session += 2
		}
	}
	s.at[g] = max(s.at[g], first+n)
	if first > 1e9 {
		s.at[g] = min(s.at[g], 1e6) // the lie was for one frame
	}
	b := bare(all.layout, int(g), s.session, first, first+n, "T1")
	b.Time = b.Time.Add(s.start + lie)
	all.now = all.now.Add(time.Duration(rapid.Int64Range(0, 3000).Draw(t, "ms")) * time.Millisecond)
	return b
}

// again lets senders go back to what may not have been acknowledged when the feed ended.
func (all *senders) again(t *rapid.T) {
	for _, s := range all.all {
		back := rapid.Int64Range(0, 5).Draw(t, "seconds that are sent again")
		for g, rate := range ledgerRates {
			s.at[g] = max(0, s.at[g]-back*rate)
		}
	}
}

// open returns a feed with the clock of the senders.
func (all *senders) open() *Feed {
	f := open(Config{Machine: drill, Layout: all.layout, Notify: func(Notice) {}})
	f.check.now = func() time.Time { return all.now }
	return f
}

// place is where a window begins: its session, the counter of the highest rate, and the time. A sender that begins again has the
// same counters later, and after a restart it may have the same session.
type place struct{ session, first, at int64 }

func placeOf(w *window.Window) place { return place{w.Session, w.First, w.Start.UnixNano()} }

// sum returns the samples that the feed kept back.
func (s Stats) sum() (n uint64) {
	for _, one := range s.Unused {
		n += one
	}
	return n
}

// The law of the ledger: for any senders, that repeat, skip, mix up and lie, and through restarts, each sample
// that was received is in a window, was refused or repeated for a reason, is in no window for a reason, or waits.
// No sample is in two windows.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := layout(t)
	rapid.Check(t, func(t *rapid.T) {
		all := drawSenders(t, l)
		var last *window.Window
		inWindow := map[place]bool{}
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			all.again(t)
			f := all.open()
			slicer, err := window.NewSlicer(l, window.Spec{Length: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if last != nil {
				f.Resumed(last.Session, last.Context, last.First, last.Start)
				f.Acked(last.Session, last.First+40)
			}
			var received, answered, acked, frames uint64
			for range rapid.IntRange(1, 40).Draw(t, "frames") {
				b := all.frame(t)
				frames++
				received += uint64(b.Len()) * uint64(len(b.Samples))
				f.deliver(arrival{block: b, ack: func() { acked++ }, answer: func(Reason, error) { answered++ }})
				f.admit(<-f.in)
				for a, ok := f.names.next(); ok; a, ok = f.names.next() {
					if f.complete(a.block); !f.take(a) {
						continue
					}
					slicer.Push(&a.block.Block)
					for ev, ok := slicer.Next(); ok; ev, ok = slicer.Next() {
						w := ev.Window
						if w == nil {
							continue
						}
						if inWindow[placeOf(w)] {
							t.Fatalf("two windows of session %d at %d, %s", w.Session, w.First, w.Start)
						}
						inWindow[placeOf(w)] = true
						last = &window.Window{Context: w.Context, Session: w.Session, First: w.First, Start: w.Start}
						f.Acked(w.Session, w.First+40)
					}
				}
				st, tally := f.Stats(), slicer.Tally()
				waiting := uint64(f.names.values)
				for _, w := range f.check.waiting {
					waiting += uint64(w.values())
				}
				if st.Samples != received || received != st.sum()+tally.Pushed+waiting {
					t.Fatalf("received %d (%d counted), kept back %v, handed on %d, waiting %d", received, st.Samples, st.Unused, tally.Pushed, waiting)
				}
				refused := uint64(0)
				for _, n := range st.Refused {
					refused += n
				}
				if st.Frames != frames || refused != answered || acked > frames {
					t.Fatalf("%d frames of %d, %d refused, %d answered, %d acknowledged", st.Frames, frames, refused, answered, acked)
				}
			}
		}
	})
}

// script is a feed to which frames come, until it stops the gateway that reads it.
type script struct {
	*Feed
	t      *rapid.T
	all    *senders
	frames int
	stop   func()
}

func (s *script) Next(ctx context.Context) (*source.Block, error) {
	for {
		for a, ok := s.names.next(); ok; a, ok = s.names.next() {
			if s.complete(a.block); s.take(a) {
				return a.block, nil
			}
		}
		if s.frames == 0 {
			s.stop()
			return nil, ctx.Err()
		}
		s.frames--
		s.deliver(arrival{block: s.all.frame(s.t), ack: func() {}})
		s.admit(<-s.in)
	}
}

// The same with gateways and a spool on disk, which are stopped and started again between frames: what the ledger says is in windows is in
// the spool, once, and every other sample has a reason, or was not cut when its gateway stopped.
func TestLedgerOnDisk(t *testing.T) {
	t.Parallel()
	l := layout(t)
	codec, err := window.NewCodec(l, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		all := drawSenders(t, l)
		dir, err := os.MkdirTemp(folder, "spool")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		inWindows := uint64(0)
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			all.again(t)
			ctx, stop := context.WithCancel(context.Background())
			s := &script{all.open(), t, all, rapid.IntRange(1, 30).Draw(t, "frames"), stop}
			g, err := gateway.New(gateway.Config{
				Source: s, Window: window.DefaultSpec, SpoolDir: dir, Machine: drill, SpoolOnly: true, SyncEvery: rapid.IntRange(1, 3).Draw(t, "windows of a sync"),
				Bus: bus.Config{Brokers: []string{"127.0.0.1:1"}, ClientID: "test"}, Log: zerolog.Nop(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Run(ctx); err != nil {
				t.Fatal(err)
			}
			tally, st := g.Stats().Samples, s.Stats()
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			waiting := uint64(s.names.values)
			for _, w := range s.check.waiting {
				waiting += uint64(w.values())
			}
			if stopped := waiting + tally.Open; st.Samples != st.sum()+tally.Windowed+tally.Repeated+tally.Late+tally.Gaps+tally.Tails+stopped {
				t.Fatalf("received %d; kept back %d, %+v, stopped %d", st.Samples, st.sum(), tally, stopped)
			}
			if inWindows += tally.Windowed; inWindows != uint64(len(spooled(t, dir, codec)))*(40*ledgerWidths[0]+10*ledgerWidths[1]) {
				t.Fatalf("%d samples are in windows by the ledger, in the spool are %d windows of %d", inWindows, len(spooled(t, dir, codec)), 40*ledgerWidths[0]+10*ledgerWidths[1])
			}
		}
	})
}

// spooled returns where the windows of a spool begin. None may be there twice.
func spooled(t *rapid.T, dir string, codec *window.Codec) map[place]bool {
	d, all := spool.Dir(dir), map[place]bool{}
	list, err := spool.List(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, segment := range list.Segments {
		if _, err := spool.Walk(d, segment, func(r spool.Record) error {
			var m bus.Message
			var w window.Window
			if err := m.UnmarshalBinary(r.Payload); err != nil {
				return err
			}
			e, err := envelope.Of(&m)
			if err == nil {
				err = codec.Open(e, &w)
			}
			if all[placeOf(&w)] {
				t.Fatalf("two windows of session %d at %d, %s", w.Session, w.First, w.Start)
			}
			all[placeOf(&w)] = true
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
