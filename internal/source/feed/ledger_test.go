package feed

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/window"
)

// The law of the ledger: for any senders, that repeat, skip, mix up and lie, and through restarts, each sample
// that was received is in a window, was refused or repeated for a reason, is in no window for a reason, or waits.
// No sample of a session is in two windows.
func TestLedger(t *testing.T) {
	l := layout(t)
	rates := []int64{40, 10}
	rapid.Check(t, func(t *rapid.T) {
		type sender struct {
			session int64
			at      [2]int64
			start   time.Duration // of the counters, after origin
		}
		senders := []*sender{{session: 1}, {session: rapid.Int64Range(1, 2).Draw(t, "session of the second"), start: 7 * time.Second}}
		crowd := rapid.IntRange(0, 2).Draw(t, "senders") // 0 and 1: one
		now := origin
		var last *window.Window
		inWindow := map[[2]int64]bool{} // session and counter of the highest rate
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			f := open(Config{Machine: drill, Layout: l, Notify: func(Notice) {}})
			f.check.now = func() time.Time { return now }
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
				s := senders[0]
				if crowd == 2 && rapid.Bool().Draw(t, "the second") {
					s = senders[1]
				}
				g := rapid.Int64Range(0, 1).Draw(t, "rate")
				n := rapid.Int64Range(1, rates[g]).Draw(t, "samples")
				first, lie := s.at[g], time.Duration(0)
				switch rapid.IntRange(0, 24).Draw(t, "what") {
				case 0: // its counter lies
					first = rapid.Int64Range(0, 1e12).Draw(t, "lie")
				case 1: // its clock lies
					lie = time.Duration(rapid.OneOf(rapid.Int64Range(-1e6, 1e6), rapid.Int64Range(-17e8, 60e8)).Draw(t, "seconds")) * time.Second
				case 2: // samples are missing
					first += rapid.Int64Range(1, 5*rates[g]).Draw(t, "missing")
					s.at[g] = first
				case 3: // it comes again
					first = max(0, first-rapid.Int64Range(1, 3*rates[g]).Draw(t, "back"))
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
				b := bare(l, int(g), s.session, first, first+n, "T1")
				b.Time = b.Time.Add(s.start + lie)
				now = now.Add(time.Duration(rapid.Int64Range(0, 3000).Draw(t, "ms")) * time.Millisecond)
				frames++
				received += uint64(n) * uint64(len(b.Samples))
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
						if key := [2]int64{w.Session, w.First}; inWindow[key] {
							t.Fatalf("two windows of session %d at %d", w.Session, w.First)
						} else {
							inWindow[key] = true
						}
						last = &window.Window{Context: w.Context, Session: w.Session, First: w.First, Start: w.Start}
						f.Acked(w.Session, w.First+40)
					}
				}
				st, tally := f.Stats(), slicer.Tally()
				waiting := uint64(f.names.values)
				for _, w := range f.check.waiting {
					waiting += uint64(w.values())
				}
				unused := uint64(0)
				for _, n := range st.Unused {
					unused += n
				}
				if st.Samples != received || received != unused+tally.Pushed+waiting {
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
