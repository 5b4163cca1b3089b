package feed

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// bare returns a frame of group g of the layout with the counters [from, to) and the
// name of its tool.
func bare(l *signal.Layout, g int, session, from, to int64, tool string) *source.Block {
	group := l.Groups()[g]
	b := &source.Block{Block: signal.Block{
		Context: signal.Context{Tool: tool}, Session: session, Group: g, First: from,
		Time: origin.Add(time.Duration(float64(from) / group.Rate * float64(time.Second))),
	}}
	for range group.Channels {
		b.Samples = append(b.Samples, make([]float32, to-from))
	}
	return b
}

// cutAll returns the windows, as tool@first, that are cut from frames that come in
// this order, and how many frames were acknowledged when all windows were kept.
func cutAll(t fatalf, l *signal.Layout, frames []*source.Block) (windows []string, acked int) {
	return cutBy(t, open(Config{Machine: drill, Layout: l}), frames)
}

func cutBy(t fatalf, f *Feed, frames []*source.Block) (windows []string, acked int) {
	l := f.Layout()
	slicer, err := window.NewSlicer(l, window.Spec{Length: time.Second})
	if err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, b := range frames {
		f.names.add(arrival{block: b, ack: func() { acked++ }})
		for {
			b, err := f.Next(ctx)
			if err != nil {
				break
			}
			slicer.Push(&b.Block)
			for {
				ev, ok := slicer.Next()
				if !ok {
					break
				}
				if w := ev.Window; w != nil {
					windows = append(windows, fmt.Sprintf("%s@%d", w.Tool, w.First))
					f.Acked(w.Session, w.First+int64(l.Groups()[0].Rate))
				}
			}
		}
	}
	return windows, acked
}

type fatalf interface{ Fatalf(string, ...any) }

// A rate whose frames name no tool follows the one whose frames do, from the first
// sample on.
func TestHalfNamed(t *testing.T) {
	t.Parallel()
	l := layout(t)
	for _, tc := range []struct{ fast, slow, tool, said string }{
		{"T1", "T1", "T1", ""}, {"", "", "", ""}, {"", "T1", "T1", ""}, {"T1", "", "T1", ""}, {"0", "0", "", ""}, {"0", "T1", "T1", ""}, {"T1", "0", "T1", ""}, {"", "0", "", ""},
		{"T1", "T2", "T1", `samples of 10 Hz say that tool "T2" is in, samples of a higher rate say another one, which counts (1 such frames`},
	} {
		var frames []*source.Block
		for i := range int64(2400) { // four minutes in tenths of a second
			frames = append(frames, bare(l, 0, 7, 4*i, 4*i+4, tc.fast), bare(l, 1, 7, i, i+1, tc.slow))
		}
		set, err := OpenSetting(filepath.Join(t.TempDir(), "context.json"))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		windows, acked := cutBy(t, open(Config{Machine: drill, Layout: l, Setting: set, Notify: func(n Notice) {
			if n.Text == "two rates name different tools" {
				said = append(said, n.Err.Error())
			}
		}}), frames)
		if (len(said) > 0) != (tc.said != "") || len(said) > 1 || len(said) == 1 && !strings.Contains(said[0], tc.said) {
			t.Errorf("fast frames name %q, slow ones %q: said %q, want %q", tc.fast, tc.slow, said, tc.said)
		}
		tool := tc.tool
		if len(windows) != 240 || acked != len(frames) {
			t.Errorf("fast frames name %q, slow ones %q: %d windows of 240, %d of %d frames acknowledged", tc.fast, tc.slow, len(windows), acked, len(frames))
		}
		for i, w := range windows {
			if want := fmt.Sprintf("%s@%d", tool, 40*i); w != want {
				t.Fatalf("fast frames name %q, slow ones %q: window %d is %s, want %s", tc.fast, tc.slow, i, w, want)
			}
		}
	}
}

// However frames are cut and interleaved, and whichever rate names tools, each
// window has its tool, and only windows at a change of tool are missing.
func TestFollowsThroughChanges(t *testing.T) {
	t.Parallel()
	l := layout(t)
	rapid.Check(t, func(t *rapid.T) {
		const second = 40 // samples of the fast rate
		changes := rapid.SliceOfN(rapid.Int64Range(2, 20), 1, 3).Draw(t, "seconds of each tool")
		namer := rapid.IntRange(0, 1).Draw(t, "the rate that names tools")
		var ends []int64 // in seconds
		total := int64(0)
		for _, n := range changes {
			total += n
			ends = append(ends, total)
		}
		toolAt := func(tenth int64) (string, int64) { // and when it ends, in tenths
			for i, end := range ends {
				if tenth < 10*end {
					return fmt.Sprint("T", i), 10 * end
				}
			}
			panic("behind the end")
		}
		var frames []*source.Block
		var at [2]int64 // tenths of a second
		for at[0] < 10*total || at[1] < 10*total {
			g := 0
			if at[1] < at[0] {
				g = 1
			}
			tool, end := toolAt(at[g])
			n := min(rapid.Int64Range(1, 15).Draw(t, "tenths"), end-at[g])
			rate := []int64{4, 1}[g]
			if g != namer {
				tool = ""
			}
			frames = append(frames, bare(l, g, 7, rate*at[g], rate*(at[g]+n), tool))
			at[g] += n
		}
		windows, _ := cutAll(t, l, frames)
		var want []string
		for s := range total {
			tool, _ := toolAt(10 * s)
			want = append(want, fmt.Sprintf("%s@%d", tool, second*s))
		}
		got := map[string]bool{}
		for _, w := range windows {
			if got[w] {
				t.Fatalf("%s twice: %v", w, windows)
			}
			got[w] = true
		}
		for i, w := range want {
			tool, end := toolAt(10 * int64(i))
			first := 0
			for _, e := range ends {
				if 10*e < end {
					first = int(e)
				}
			}
			// Around a change frames of both tools interleave: 1.5 s before and behind it.
			near := i-first < 2 && first > 0 || end/10-int64(i) <= 2 && end < 10*total
			if !got[w] && !near {
				t.Fatalf("%s is missing (tool %s from %d s to %d s): %v", w, tool, first, end/10, windows)
			}
			delete(got, w)
		}
		if len(got) > 0 {
			t.Fatalf("windows that should not be: %v", got)
		}
	})
}

// A frame does not wait for ever for a rate that is dead, nor for one that has gone
// on to another session.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	l := layout(t)
	f := open(Config{Machine: drill, Layout: l})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	taken := func() (n int) {
		for {
			if _, err := f.Next(ctx); err != nil {
				return n
			}
			n++
		}
	}
	for i := range int64(maxWait) {
		f.names.add(arrival{block: bare(l, 0, 7, 40*i, 40*i+40, ""), ack: func() {}})
	}
	if n := taken(); n != 0 {
		t.Errorf("%d frames did not wait", n)
	}
	f.names.add(arrival{block: bare(l, 0, 7, 40*maxWait, 40*maxWait+40, ""), ack: func() {}})
	if n := taken(); n != 1 {
		t.Errorf("%d frames of more than %d s went on, want 1", n, maxWait)
	}
	f.names.add(arrival{block: bare(l, 1, 8, 0, 10, "T1"), ack: func() {}})
	if n := taken(); n != maxWait+1 || len(f.names.queue) != 0 {
		t.Errorf("in the next session %d went on, want all %d and the new one", n, maxWait)
	}
	for i := range int64(maxWaiting + 1) { // short frames
		f.names.add(arrival{block: bare(l, 0, 9, i, i+1, ""), ack: func() {}})
	}
	if n := taken(); n == 0 || len(f.names.queue) > maxWaiting {
		t.Errorf("%d went on, %d wait", n, len(f.names.queue))
	}
}

// A large frame that comes again and again does not fill the memory.
func TestWaitingValuesAreBounded(t *testing.T) {
	t.Parallel()
	const rate = 1 << 20
	l, err := signal.NewLayout("fast and slow", []signal.Channel{
		{Name: "fast", Kind: signal.Vibration, Rate: rate}, {Name: "slow", Kind: signal.Force, Rate: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := open(Config{Machine: drill, Layout: l})
	one := bare(l, 0, 7, 0, rate, "")
	for range 3 * maxValues / rate {
		f.names.add(arrival{block: one, ack: func() {}})
		for {
			if _, ok := f.names.next(); !ok {
				break
			}
		}
		if f.names.values > maxValues || f.names.values != len(f.names.queue)*rate {
			t.Fatalf("%d frames with %d values wait", len(f.names.queue), f.names.values)
		}
	}
}

// A rate of which no new sample comes is named while others come.
func TestSilentRates(t *testing.T) {
	t.Parallel()
	f := open(Config{Machine: drill, Layout: layout(t)})
	now := origin
	f.check.now = func() time.Time { return now }
	for g := range f.due {
		f.due[g].Store(origin.Add(f.cfg.Timeout).UnixNano())
	}
	want := func(what string, want ...float64) {
		t.Helper()
		if got := f.Silent(now); !slices.Equal(got, want) {
			t.Errorf("%s: %v Hz are silent, want %v", what, got, want)
		}
	}
	send := func(g int, from, to int64) {
		f.admit(arrival{block: bare(f.Layout(), g, 7, from, to, "T1"), ack: func() {}})
	}
	want("at the start")
	now = origin.Add(f.cfg.Timeout + 1)
	want("nothing came")
	send(0, 0, 40)
	want("the slow rate never came", 10)
	send(1, 0, 10)
	want("both came")
	now = now.Add(f.cfg.Timeout + time.Second)
	want("as long as its last frame lasts, and the timeout")
	send(0, 40, 80)
	now = now.Add(1)
	send(1, 0, 10)
	want("old samples come again", 10)
	now = now.Add(f.cfg.Timeout + time.Second)
	want("all are silent")
}
