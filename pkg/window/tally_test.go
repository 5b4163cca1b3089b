package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// For any blocks, in any order, with repeats, holes and sessions, the tally says what became of each sample:
// the samples in windows are the samples of the windows, and nothing is counted twice or not at all.
func TestTally(t *testing.T) {
	layout, err := signal.NewLayout("two rates", []signal.Channel{
		{Name: "a", Kind: signal.Vibration, Rate: 40}, {Name: "b", Kind: signal.Vibration, Rate: 40}, {Name: "c", Kind: signal.Force, Rate: 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	rates, widths := []int64{40, 10}, []uint64{2, 1}
	rapid.Check(t, func(t *rapid.T) {
		hop := time.Duration(rapid.SampledFrom([]int64{0, 500, 700}).Draw(t, "hop in ms")) * time.Millisecond
		s, err := NewSlicer(layout, Spec{Length: time.Second, Hop: hop})
		if err != nil {
			t.Fatal(err)
		}
		type sample struct{ life, group, n int64 } // a life is a session, each time it begins
		came, windowed := map[sample]bool{}, map[sample]bool{}
		var pushed, again, ended uint64
		life, session := int64(0), int64(0)
		at := []int64{0, 0}
		take := func() {
			for {
				ev, ok := s.Next()
				if !ok {
					return
				}
				if w := ev.Window; w != nil {
					for g, rate := range rates {
						for n := w.First * rate / 40; n < (w.First+40)*rate/40; n++ {
							windowed[sample{life, int64(g), n}] = true
						}
					}
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "blocks") {
			g := rapid.Int64Range(0, 1).Draw(t, "group")
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0: // another session
				life, session = life+1, session+1
				first := rapid.Int64Range(0, 10).Draw(t, "seconds")
				at = []int64{40 * first, 10*first + rapid.Int64Range(0, 3).Draw(t, "more")}
			case 1: // samples are missing
				at[g] += rapid.Int64Range(1, 3*rates[g]).Draw(t, "missing")
			case 2, 3: // samples come again, or late
				at[g] = max(0, at[g]-rapid.Int64Range(1, 3*rates[g]).Draw(t, "back"))
			case 4: // a rate is silent while the other goes on
				at[g] += 70 * rates[g]
			}
			n := rapid.Int64Range(1, 2*rates[g]).Draw(t, "samples")
			b := &signal.Block{Session: session, Group: int(g), First: at[g]}
			for range widths[g] {
				b.Samples = append(b.Samples, make([]float32, n))
			}
			for i := range n {
				x := sample{life, g, at[g] + i}
				if came[x] {
					again += widths[g]
				}
				came[x] = true
			}
			pushed += uint64(n) * widths[g]
			at[g] += n
			s.Push(b)
			take()
		}
		check := func(when string) {
			inWindows := uint64(0)
			for x := range windowed {
				inWindows += widths[x.group]
			}
			got := s.Tally()
			if got.Pushed != pushed || got.Windowed != inWindows || got.Repeated > again || got.Repeated+got.Late < again ||
				got.Pushed != got.Windowed+got.Repeated+got.Late+got.Gaps+got.Tails+got.Open {
				t.Fatalf("%s: %+v; pushed %d, in windows %d, again %d", when, got, pushed, inWindows, again)
			}
			ended = got.Open
		}
		check("in the middle")
		s.Flush()
		take()
		if check("at the end"); ended != 0 {
			t.Fatalf("%d samples are open at the end", ended)
		}
	})
}
