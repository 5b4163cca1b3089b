package window

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// twoRates is a small layout with the two rates of the gun drill, 200 times
// slower: 100 Hz and 4 Hz, so a tick is 250 ms, 25 samples and 1.
func twoRates(t testing.TB) *signal.Layout {
	l, err := signal.NewLayout("two rates", []signal.Channel{
		{Name: "slow", Kind: signal.Force, Unit: "N", Rate: 4},
		{Name: "a", Kind: signal.Vibration, Unit: "g", Rate: 100},
		{Name: "b", Kind: signal.Vibration, Unit: "g", Rate: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var origin = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

// value is what sample n of a channel reads: a window's samples show where
// they come from.
func value(channel int, n int64) float32 { return float32(channel)*1e6 + float32(n) }

// samples makes the block [from, to) of a group.
func samples(l *signal.Layout, group int, session, from, to int64) *signal.Block {
	g := l.Groups()[group]
	b := &signal.Block{
		Context: signal.Context{Machine: "m", Tool: fmt.Sprint("T", session)},
		Session: session, Group: group, First: from,
		Time: origin.Add(time.Duration(math.Round(float64(from) / g.Rate * float64(time.Second)))),
	}
	for _, c := range g.Channels {
		x := make([]float32, 0, to-from)
		for n := from; n < to; n++ {
			x = append(x, value(c, n))
		}
		b.Samples = append(b.Samples, x)
	}
	return b
}

// found is what a slicer finds, as text: windows by session, start and samples.
func found(s *Slicer, l *signal.Layout) []string {
	var out []string
	for {
		ev, ok := s.Next()
		if !ok {
			return out
		}
		if g := ev.Gap; g != nil {
			out = append(out, fmt.Sprintf("gap %d %s +%v %v %s", g.Session, g.Reason, g.Start.Sub(origin), g.Duration, g.Tool))
			continue
		}
		w := ev.Window
		line := fmt.Sprintf("window %d +%v %s", w.Session, w.Start.Sub(origin), w.Tool)
		for c := range l.Channels() {
			x := w.Samples[c]
			line += fmt.Sprintf(" [%v..%v]", x[0], x[len(x)-1])
			for i, v := range x {
				if v != x[0]+float32(i) {
					line += " broken"
				}
			}
		}
		out = append(out, line)
	}
}

func TestSlicer(t *testing.T) {
	l := twoRates(t)
	type push struct {
		group             int
		session, from, to int64
	}
	for name, tc := range map[string]struct {
		spec  Spec
		push  []push
		want  []string
		flush bool
	}{
		"two rates side by side": {
			spec: Spec{Length: time.Second},
			push: []push{{0, 0, 0, 200}, {1, 0, 0, 8}},
			want: []string{
				"window 0 +0s T0 [0..3] [1e+06..1.000099e+06] [2e+06..2.000099e+06]",
				"window 0 +1s T0 [4..7] [1.0001e+06..1.000199e+06] [2.0001e+06..2.000199e+06]",
			},
		},
		"the slow rate decides when a window is there": {
			spec: Spec{Length: time.Second},
			push: []push{{0, 0, 0, 200}, {1, 0, 0, 7}},
			want: []string{"window 0 +0s T0 [0..3] [1e+06..1.000099e+06] [2e+06..2.000099e+06]"},
		},
		"hop shorter than length": {
			spec: Spec{Length: time.Second, Hop: 500 * time.Millisecond},
			push: []push{{0, 0, 0, 200}, {1, 0, 0, 8}}, flush: true,
			want: []string{
				"window 0 +0s T0 [0..3] [1e+06..1.000099e+06] [2e+06..2.000099e+06]",
				"window 0 +500ms T0 [2..5] [1.00005e+06..1.000149e+06] [2.00005e+06..2.000149e+06]",
				"window 0 +1s T0 [4..7] [1.0001e+06..1.000199e+06] [2.0001e+06..2.000199e+06]",
			},
		},
		"after a gap, windows start at the next tick": {
			spec: Spec{Length: time.Second},
			push: []push{{0, 0, 0, 130}, {1, 0, 0, 12}, {0, 0, 160, 300}},
			want: []string{
				"window 0 +0s T0 [0..3] [1e+06..1.000099e+06] [2e+06..2.000099e+06]",
				"gap 0 missing samples +1s 750ms T0",
				"window 0 +1.75s T0 [7..10] [1.000175e+06..1.000274e+06] [2.000175e+06..2.000274e+06]",
			},
		},
		"a tail is reported, and a new session starts from zero": {
			spec: Spec{Length: time.Second},
			push: []push{{0, 0, 0, 150}, {1, 0, 0, 6}, {0, 7, 0, 100}, {1, 7, 0, 4}}, flush: true,
			want: []string{
				"window 0 +0s T0 [0..3] [1e+06..1.000099e+06] [2e+06..2.000099e+06]",
				"gap 0 end of session +1s 500ms T0",
				"window 7 +0s T7 [0..3] [1e+06..1.000099e+06] [2e+06..2.000099e+06]",
			},
		},
		"samples that come again are ignored": {
			spec: Spec{Length: time.Second},
			push: []push{{0, 0, 0, 80}, {0, 0, 50, 100}, {0, 0, 10, 20}, {1, 0, 0, 4}}, flush: true,
			want: []string{"window 0 +0s T0 [0..3] [1e+06..1.000099e+06] [2e+06..2.000099e+06]"},
		},
		"a source joined late does not begin with a gap": {
			spec: Spec{Length: time.Second},
			push: []push{{0, 0, 1010, 1130}, {1, 0, 40, 48}},
			want: []string{"window 0 +10.25s T0 [41..44] [1.001025e+06..1.001124e+06] [2.001025e+06..2.001124e+06]"},
		},
	} {
		s, err := NewSlicer(l, tc.spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, p := range tc.push {
			s.Push(samples(l, p.group, p.session, p.from, p.to))
			got = append(got, found(s, l)...)
		}
		if tc.flush {
			s.Flush()
			got = append(got, found(s, l)...)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tc.want)
		}
	}
}

// A channel group that falls silent must not hold everything in memory, and
// what it costs is reported.
func TestSlicerSilentChannels(t *testing.T) {
	l := twoRates(t)
	s, err := NewSlicer(l, Spec{Length: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.Push(samples(l, 1, 0, 0, 4))
	var got []string
	for i := range int64(200) {
		s.Push(samples(l, 0, 0, 100*i, 100*i+100))
		got = append(got, found(s, l)...)
	}
	if held := len(s.streams[0].runs[0].samples[0]); held > 100*(maxLead+2)*2 {
		t.Errorf("%d samples held back, expected at most about %d windows", held, maxLead)
	}
	want := "gap 0 silent channels +1s 1m4s T0"
	if len(got) != 3 || got[1] != want {
		t.Errorf("got %q, want a window, then %q and one more", got, want)
	}
}

// The law of the slicer: what it finds depends on the samples, and not on how
// they were chopped into blocks or in which order the rates came.
func TestSlicerChunking(t *testing.T) {
	l := twoRates(t)
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{Length: time.Second, Hop: time.Duration(rapid.IntRange(1, 4).Draw(t, "hop")) * 250 * time.Millisecond}
		type hole struct{ from, to int64 }
		var total [2]int64
		var holes [2][]hole
		seconds := int64(rapid.IntRange(1, 12).Draw(t, "seconds"))
		for g, rate := range []int64{100, 4} {
			total[g] = seconds * rate
			for range rapid.IntRange(0, 2).Draw(t, "holes") {
				from := rapid.Int64Range(1, total[g]-1).Draw(t, "hole from")
				holes[g] = append(holes[g], hole{from, from + rapid.Int64Range(1, rate).Draw(t, "hole length")})
			}
		}
		missing := func(g int, n int64) bool {
			return slices.ContainsFunc(holes[g], func(h hole) bool { return n >= h.from && n < h.to })
		}
		run := func(chunk func(g int) int64, first func() bool) []string {
			s, err := NewSlicer(l, spec)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var at [2]int64
			// The first block of both runs comes from the same rate: it sets
			// the tick at which the session is joined.
			for started := false; at[0] < total[0] || at[1] < total[1]; started = true {
				g := 0
				if started && (at[0] >= total[0] || at[1] < total[1] && first()) {
					g = 1
				}
				end := min(at[g]+chunk(g), total[g])
				for from := at[g]; from < end; {
					to := from
					for to < end && missing(g, to) == missing(g, from) {
						to++
					}
					if !missing(g, from) {
						s.Push(samples(l, g, 0, from, to))
						got = append(got, found(s, l)...)
					}
					from = to
				}
				at[g] = end
			}
			s.Flush()
			return append(got, found(s, l)...)
		}
		whole := run(func(g int) int64 { return total[g] }, func() bool { return true })
		chopped := run(
			func(g int) int64 { return rapid.Int64Range(1, 120).Draw(t, "chunk") },
			func() bool { return rapid.Bool().Draw(t, "slow first") })
		if !slices.Equal(whole, chopped) {
			t.Fatalf("whole:   %q\nchopped: %q", whole, chopped)
		}
		for _, line := range whole {
			if len(line) > 6 && line[len(line)-6:] == "broken" {
				t.Fatalf("a window spans a gap: %s", line)
			}
		}
	})
}

func TestSpecCheck(t *testing.T) {
	l := twoRates(t)
	for name, tc := range map[string]struct {
		spec Spec
		ok   bool
	}{
		"default":                         {DefaultSpec, true},
		"half a sample of the slow rate":  {Spec{Length: 1125 * time.Millisecond}, false},
		"hop of a quarter second":         {Spec{Length: time.Second, Hop: 250 * time.Millisecond}, true},
		"hop that splits a sample":        {Spec{Length: time.Second, Hop: 100 * time.Millisecond}, false},
		"hop longer than length":          {Spec{Length: time.Second, Hop: 2 * time.Second}, false},
		"no length":                       {Spec{}, false},
		"shorter than one of the samples": {Spec{Length: 10 * time.Millisecond}, false},
	} {
		if err := tc.spec.Check(l); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkSlicer(b *testing.B) {
	l := signal.GunDrill()
	s, err := NewSlicer(l, DefaultSpec)
	if err != nil {
		b.Fatal(err)
	}
	fast, slow := samples(l, 0, 0, 0, 20_000), samples(l, 1, 0, 0, 100)
	b.SetBytes(4 * (12*20_000 + 2*100))
	b.ReportAllocs()
	for b.Loop() {
		s.Push(fast)
		s.Push(slow)
		for {
			if _, ok := s.Next(); !ok {
				break
			}
		}
		fast.First += 20_000
		slow.First += 100
	}
}

// What a gateway does with a second of the gun drill: slice, assess and encode.
func BenchmarkSliceAndSeal(b *testing.B) {
	l := signal.GunDrill()
	s, err := NewSlicer(l, DefaultSpec)
	if err != nil {
		b.Fatal(err)
	}
	codec, err := NewCodec(l, DefaultSpec)
	if err != nil {
		b.Fatal(err)
	}
	fast, slow := samples(l, 0, 0, 0, 20_000), samples(l, 1, 0, 0, 100)
	b.SetBytes(4 * (12*20_000 + 2*100))
	b.ReportAllocs()
	for b.Loop() {
		s.Push(fast)
		s.Push(slow)
		for {
			ev, ok := s.Next()
			if !ok {
				break
			}
			ev.Window.Assess(l)
			if _, err := codec.Seal(ev.Window); err != nil {
				b.Fatal(err)
			}
		}
		fast.First += 20_000
		slow.First += 100
	}
}

// Rates are multiples of the common one: whole millihertz, or with whole milliseconds between samples.
func TestCommonRate(t *testing.T) {
	for want, rates := range map[float64][]float64{100: {20_000, 100}, 1. / 60: {1. / 60}, 1. / 0.003: {1. / 0.003}, 1. / 0.012: {1. / 0.003, 1. / 0.004}, 10. / 3: {1000. / 3, 10}, 0.5: {2.5, 1}} {
		var cs []signal.Channel
		for i, r := range rates {
			cs = append(cs, signal.Channel{Name: string(rune('a' + i)), Kind: signal.Force, Rate: r})
		}
		l, err := signal.NewLayout("x", cs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := commonRate(l)
		if err != nil || math.Abs(got/want-1) > 1e-9 {
			t.Errorf("of %v: %v, %v, want %v", rates, got, err, want)
		}
	}
	l, err := signal.NewLayout("x", []signal.Channel{{Name: "a", Kind: signal.Force, Rate: math.Pi}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commonRate(l); err == nil || !strings.Contains(err.Error(), "round it") {
		t.Error(err)
	}
}
