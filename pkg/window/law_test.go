package window

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/signal"
)

// sensors is a layout of random rates with one to three channels each, and the
// ticks a second that it has.
func sensors(t *rapid.T) (*signal.Layout, int64) {
	// Sensor times are whole nanoseconds, so sample periods are too.
	whole := []int64{1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40}
	base := rapid.SampledFrom([]int64{1, 2, 5, 10}).Draw(t, "ticks a second")
	var cs []signal.Channel
	for g, perTick := range rapid.SliceOfNDistinct(rapid.SampledFrom(whole), 1, 3, rapid.ID[int64]).Draw(t, "samples a tick") {
		for range rapid.IntRange(1, 3).Draw(t, "channels") {
			cs = append(cs, signal.Channel{Name: fmt.Sprintf("g%d-%d", g, len(cs)), Kind: signal.Vibration, Rate: float64(base * perTick)})
		}
	}
	l, err := signal.NewLayout("random", cs)
	if err != nil {
		t.Fatal(err)
	}
	common, err := commonRate(l) // the rates may share more than the base
	if err != nil {
		t.Fatal(err)
	}
	return l, int64(common)
}

// bits are random bits as a sample, NaN and infinities among them, fixed by
// channel and counter.
func bits(channel int, n int64) float32 {
	rng := rand.NewPCG(uint64(channel), uint64(n))
	rng.Uint64()
	return math.Float32frombits(uint32(rng.Uint64()))
}

// digest is all there is to a window, as text: the bits of its samples by a hash.
func digest(w *Window, seed maphash.Seed) string {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, x := range w.Samples {
		fmt.Fprint(&h, len(x), ":")
		for _, v := range x {
			b := math.Float32bits(v)
			h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
		}
	}
	return fmt.Sprintf("window %d at %d, %v + %v, drift %v, %v %+v: %x",
		w.Session, w.First, w.Start, w.Length, w.Drift, w.Quality, w.Context, h.Sum64())
}

// The law of the slicer: the same stream in any chunks gives the same windows,
// bit for bit, for any rates, hop, holes and sessions.
func TestAnyChunkingGivesTheSameBits(t *testing.T) {
	seed := maphash.MakeSeed()
	rapid.Check(t, func(t *rapid.T) {
		l, ticks := sensors(t)
		second := int64(time.Second)
		length := rapid.Int64Range(1, 8).Draw(t, "length in ticks")
		hop := rapid.Int64Range(1, length).Draw(t, "hop in ticks")
		spec := Spec{Length: time.Duration(second / ticks * length), Hop: time.Duration(second / ticks * hop)}
		type span struct {
			session  int64
			group    int
			from, to int64
		}
		sessions := int64(rapid.IntRange(1, 3).Draw(t, "sessions"))
		var stream [][][]span // by session and group: what was sampled, without its holes
		for session := range sessions {
			total := rapid.Int64Range(1, 40).Draw(t, "ticks")
			var groups [][]span
			for g, group := range l.Groups() {
				perTick := int64(group.Rate) / ticks
				parts := []span{{session, g, 0, total * perTick}}
				for range rapid.IntRange(0, 2).Draw(t, "holes") {
					last := &parts[len(parts)-1]
					if last.to-last.from < 3 {
						break
					}
					from := rapid.Int64Range(last.from+1, last.to-2).Draw(t, "hole")
					to := rapid.Int64Range(from+1, last.to-1).Draw(t, "its end")
					parts = append(parts, span{session, g, to, last.to})
					parts[len(parts)-2].to = from
				}
				groups = append(groups, parts)
			}
			stream = append(stream, groups)
		}

		// run pushes the stream, of each session the first group first: it sets the
		// tick from which windows are counted. The other blocks come in any order.
		run := func(chunk func(span) int64, which func(n int) int) (found []string) {
			s, err := NewSlicer(l, spec)
			if err != nil {
				t.Fatal(err)
			}
			take := func() {
				for {
					ev, ok := s.Next()
					switch {
					case !ok:
						return
					case ev.Gap != nil:
						found = append(found, fmt.Sprintf("%+v", *ev.Gap))
						continue
					}
					w := ev.Window
					found = append(found, digest(w, seed))
					for g, group := range l.Groups() {
						perTick := int64(group.Rate) / ticks
						from := w.First / (int64(l.Groups()[0].Rate) / ticks) * perTick
						to := from + length*perTick
						if !slices.ContainsFunc(stream[w.Session][g], func(p span) bool { return p.from <= from && to <= p.to }) {
							t.Fatalf("window of session %d spans a gap: samples %d to %d of %v Hz, there are %v", w.Session, from, to, group.Rate, stream[w.Session][g])
						}
					}
				}
			}
			for session, groups := range stream {
				left := make([][]span, len(groups))
				for g, parts := range groups {
					left[g] = slices.Clone(parts)
				}
				for started := false; ; started = true {
					var open []int
					for g := range left {
						if len(left[g]) > 0 {
							open = append(open, g)
						}
					}
					if len(open) == 0 {
						break
					}
					g := open[0]
					if started {
						g = open[which(len(open))]
					}
					p := &left[g][0]
					n := min(chunk(*p), p.to-p.from)
					b := samples(l, g, int64(session), p.from, p.from+n)
					for i, c := range l.Groups()[g].Channels {
						for j := range b.Samples[i] {
							b.Samples[i][j] = bits(c, p.from+int64(j))
						}
					}
					if p.from += n; p.from == p.to {
						left[g] = left[g][1:]
					}
					s.Push(b)
					for i := range b.Samples { // blocks are the source's to use again
						clear(b.Samples[i])
					}
					take()
				}
			}
			s.Flush()
			take()
			return found
		}
		whole := run(func(p span) int64 { return p.to - p.from }, func(int) int { return 0 })
		chopped := run(
			func(span) int64 { return rapid.Int64Range(1, 50).Draw(t, "chunk") },
			func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "group") })
		if !slices.Equal(whole, chopped) {
			t.Fatalf("whole:   %q\nchopped: %q", whole, chopped)
		}
	})
}

// day pushes a day of two rates in blocks of odd lengths and calls each with
// every window. The sensor time of the slow rate runs fast by ppm.
func day(t *testing.T, l *signal.Layout, spec Spec, ppm float64, each func(w *Window)) {
	s, err := NewSlicer(l, spec)
	if err != nil {
		t.Fatal(err)
	}
	var at [2]int64
	seconds := []float64{0.93, 2.57} // a block
	for at[1] < int64(86400*l.Groups()[1].Rate) {
		g := 0
		if float64(at[0])/l.Groups()[0].Rate > float64(at[1])/l.Groups()[1].Rate {
			g = 1
		}
		rate := l.Groups()[g].Rate
		n := max(1, int64(rate*seconds[g]))
		b := samples(l, g, 0, at[g], at[g]+n)
		if g == 1 {
			b.Time = origin.Add(time.Duration(math.Round(float64(at[g]) / rate * 1e9 * (1 + ppm/1e6))))
		}
		at[g] += n
		s.Push(b)
		for {
			ev, ok := s.Next()
			if !ok {
				break
			}
			if ev.Gap != nil {
				t.Fatalf("gap in a stream without holes: %+v", *ev.Gap)
			}
			each(ev.Window)
		}
	}
}

// In a day, no window's rates are out of step, by counters and by clocks.
func TestRatesStayAlignedForADay(t *testing.T) {
	for _, tc := range []struct {
		fast, slow float64
		spec       Spec
	}{
		{50, 4, Spec{Length: 3 * time.Second}},
		{44.1, 9.8, Spec{Length: 10 * time.Second}},
		{33.333, 3.003, Spec{Length: 1000 * time.Second}},
		{20, 8, Spec{Length: 4 * time.Second, Hop: 1500 * time.Millisecond}},
	} {
		l, err := signal.NewLayout("", []signal.Channel{
			{Name: "a", Kind: signal.Vibration, Rate: tc.fast}, {Name: "b", Kind: signal.Force, Rate: tc.slow}})
		if err != nil {
			t.Fatal(err)
		}
		windows, next := 0, int64(0)
		day(t, l, tc.spec, 0, func(w *Window) {
			// value gives the counter; float32 has 24 bits, which modulo them is enough
			slow := int64(math.Round(float64(w.First) / tc.fast * tc.slow))
			if got := w.Samples[1][0]; got != value(1, slow) {
				t.Fatalf("%v and %v Hz, window %d: slow sample %v, want %d", tc.fast, tc.slow, windows, got, slow)
			}
			if off := float64(w.First)/tc.fast - float64(slow)/tc.slow; math.Abs(off) > 0.5/tc.slow {
				t.Fatalf("%v and %v Hz, window %d: %v s apart", tc.fast, tc.slow, windows, off)
			}
			if w.First != next {
				t.Fatalf("%v and %v Hz, window %d begins at %d, want %d", tc.fast, tc.slow, windows, w.First, next)
			}
			if w.Drift.Abs() > 2 { // nanoseconds
				t.Fatalf("%v and %v Hz: drift %v where there is none", tc.fast, tc.slow, w.Drift)
			}
			windows++
			next = int64(math.Round(tc.fast * tc.spec.Step().Seconds() * float64(windows)))
		})
		if want := 86400/tc.spec.Step().Seconds() - tc.spec.Length.Seconds()/tc.spec.Step().Seconds(); float64(windows) < want-1 {
			t.Errorf("%v and %v Hz: %d windows in a day, want %v", tc.fast, tc.slow, windows, want)
		}
	}
}

// A crystal that is 20 ppm off is not a fault, but it is reported.
func TestDriftIsReported(t *testing.T) {
	l, err := signal.NewLayout("", []signal.Channel{
		{Name: "a", Kind: signal.Vibration, Rate: 20}, {Name: "b", Kind: signal.Force, Rate: 4}})
	if err != nil {
		t.Fatal(err)
	}
	var last time.Duration
	day(t, l, DefaultSpec, 20, func(w *Window) {
		want := time.Duration(20e-6 * float64(w.First) / 20 * 1e9)
		if (w.Drift - want).Abs() > 100*time.Microsecond { // what a block gains
			t.Fatalf("after %v: drift %v, want %v", w.Start.Sub(origin), w.Drift, want)
		}
		if w.Quality[0]|w.Quality[1] != 0 {
			t.Fatalf("after %v: %v", w.Start.Sub(origin), w.Quality)
		}
		last = w.Drift
	})
	if last < 1700*time.Millisecond {
		t.Errorf("drift %v after a day, want 1.7 s", last)
	}
}

func TestClockFaults(t *testing.T) {
	base, err := signal.NewLayout("", []signal.Channel{
		{Name: "a", Kind: signal.Vibration, Rate: 100}, {Name: "b", Kind: signal.Force, Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	const step, rate = signal.ClockStep, signal.RateError
	for why, tc := range map[string]struct {
		limits signal.Limits
		time   func(s float64) float64 // sensor time of the fast rate at second s by its counter
		want   map[int]signal.Quality  // of window n; others have no flag
		all    signal.Quality          // of every window
		from   int                     // the first window that is looked at
		to     int                     // the last one; 0: all
		rate   float64                 // that windows name, within 2 %; 0: none that is looked at names one
	}{
		"a good clock":                        {time: func(s float64) float64 { return s }},
		"50 ms of jitter":                     {time: func(s float64) float64 { return s + 0.04*math.Sin(1e4*s) }},
		"a leap of a second":                  {time: func(s float64) float64 { return s + step1(s, 12) }, want: map[int]signal.Quality{12: step}},
		"back by an hour":                     {time: func(s float64) float64 { return s - 3600*step1(s, 12) }, want: map[int]signal.Quality{12: step}},
		"a leap below the limit":              {time: func(s float64) float64 { return s + 0.04*step1(s, 12) }},
		"a leap above a tighter limit":        {limits: signal.Limits{ClockStep: 30 * time.Millisecond}, time: func(s float64) float64 { return s + 0.04*step1(s, 12) }, want: map[int]signal.Quality{12: step}},
		"one sample of fifty is lost":         {time: func(s float64) float64 { return s * 1.02 }, all: rate, from: 12},
		"0.4 % are not a fault":               {time: func(s float64) float64 { return s * 1.004 }},
		"0.4 % with a tolerance of 0.1 %":     {limits: signal.Limits{Rate: 0.001}, time: func(s float64) float64 { return s * 1.004 }, all: rate, from: 12},
		"the rate is right again after 20":    {time: func(s float64) float64 { return s + 0.02*min(s, 20) }, from: 42},
		"half the rate":                       {time: func(s float64) float64 { return 2 * s }, all: rate, from: 11, rate: 50},
		"half the rate, until it is known":    {time: func(s float64) float64 { return 2 * s }, all: step, to: 3},
		"double the rate, and jitter":         {time: func(s float64) float64 { return s/2 + 0.02*math.Sin(1e4*s) }, all: rate, from: 11, rate: 200},
		"0.7 of the rate, steps now and then": {time: func(s float64) float64 { return s/0.7 + 0.02*math.Sin(1e4*s) }, all: rate, from: 12, rate: 70},
		"half the rate from 20 on":            {time: func(s float64) float64 { return s + max(0, s-20) }, all: rate, from: 31, rate: 50},
		"half the rate until 20":              {time: func(s float64) float64 { return s + min(s, 20) }, from: 31},
		"half the rate and a leap":            {time: func(s float64) float64 { return 2*s + 9*step1(s, 40) }, want: map[int]signal.Quality{40: step}, all: rate, from: 11, rate: 50},
		"a leap every five seconds":           {time: func(s float64) float64 { return s + math.Floor(s/5) }, want: map[int]signal.Quality{5: step, 10: step, 15: step, 20: step, 25: step, 30: step, 35: step, 40: step, 45: step, 50: step, 55: step}},
		"whole seconds":                       {time: math.Floor, all: step, from: 1},
		"it stands still":                     {time: func(float64) float64 { return 0 }, all: step, from: 1},
		"no clock at all":                     {time: func(s float64) float64 { return math.NaN() }},
	} {
		l, err := base.WithLimits(tc.limits)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSlicer(l, DefaultSpec)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range int64(60 * 4) { // blocks of 0.25 s
			fast := samples(l, 0, 0, 25*i, 25*i+25)
			fast.Time = time.Time{}
			if at := tc.time(float64(i) / 4); at == at {
				fast.Time = origin.Add(time.Duration(at * 1e9))
			}
			s.Push(fast)
			if i%4 == 3 {
				s.Push(samples(l, 1, 0, 10*(i/4), 10*(i/4)+10))
			}
			for {
				ev, ok := s.Next()
				if !ok {
					break
				}
				looked := n >= tc.from && (tc.to == 0 || n <= tc.to)
				if want := tc.want[n] | tc.all; looked && ev.Window.Quality[0] != want {
					t.Errorf("%s: window %d: %v, want %v", why, n, ev.Window.Quality[0], want)
				}
				if r := ev.Window.Rates; looked && tc.rate != 0 && (len(r) != 2 || math.Abs(r[0]/tc.rate-1) > 0.02 || r[1] != 0) || r != nil && ev.Window.Quality[0]&rate == 0 {
					t.Errorf("%s: window %d: rates %v, want %v", why, n, r, tc.rate)
				}
				var other signal.Quality // both clocks say when the window began, and no rate is wrong
				if w := ev.Window; tc.time(float64(n)) == tc.time(float64(n)) && w.Quality[0]&rate == 0 && math.Abs(tc.time(float64(n))-float64(n)) > 10 {
					other = signal.ClockOff
				}
				if ev.Window.Quality[1] != other {
					t.Errorf("%s: window %d: the other rate's clock is %v, want %v", why, n, ev.Window.Quality[1], other)
				}
				n++
			}
		}
		if n != 60 {
			t.Errorf("%s: %d windows, want 60", why, n)
		}
	}
}

// A rate that was wrong is wrong from the first window of the next session on: with each change of the tool a session begins. A right
// one is right once it is measured.
func TestWrongRateOutlivesSessions(t *testing.T) {
	l, err := signal.NewLayout("", []signal.Channel{{Name: "a", Kind: signal.Vibration, Rate: 100}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSlicer(l, DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{} // windows by session
	for i := range int64(90) {
		session, n := i/30, i%30
		b := samples(l, 0, session, 100*n, 100*n+100)
		slower := time.Duration(2)
		if session == 2 {
			slower = 1
		}
		b.Time = origin.Add(time.Duration(100*session)*time.Second + slower*time.Duration(n)*time.Second)
		s.Push(b)
		for ev, ok := s.Next(); ok; ev, ok = s.Next() {
			w := ev.Window
			if w == nil {
				continue
			}
			q, nth := w.Quality[0], seen[w.Session]
			seen[w.Session]++
			if w.Session == 1 && (q != signal.RateError || len(w.Rates) != 1 || math.Abs(w.Rates[0]-50) > 0.1) || w.Session == 2 && nth > 11 && q != 0 {
				t.Errorf("session %d, window %d: %v %v", w.Session, nth, q, w.Rates)
			}
		}
	}
	if seen[1] != 30 || seen[2] < 29 {
		t.Errorf("windows %v", seen)
	}
}

// A sensor that is slower or faster than its layout says, from the sender's frames of any lengths and with some jitter of their
// times: from some frames on each window says so, and none says that the clock stepped.
func TestWrongRateIsNoStep(t *testing.T) {
	l, err := signal.NewLayout("", []signal.Channel{{Name: "a", Kind: signal.Vibration, Rate: 100}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		factor := rapid.OneOf(rapid.Float64Range(0.05, 0.97), rapid.Float64Range(1.03, 20)).Draw(t, "factor")
		shortest := rapid.Int64Range(2, 200).Draw(t, "shortest frame")
		longest := rapid.Int64Range(shortest, 400).Draw(t, "longest frame")
		s, err := NewSlicer(l, DefaultSpec)
		if err != nil {
			t.Fatal(err)
		}
		for first := int64(0); first < 100*100; {
			b := samples(l, 0, 0, first, first+rapid.Int64Range(shortest, longest).Draw(t, "samples"))
			jitter := time.Duration(rapid.IntRange(-15, 15).Draw(t, "jitter")) * time.Millisecond
			b.Time = origin.Add(time.Duration(float64(first)/100/factor*1e9) + jitter)
			first += int64(b.Len())
			s.Push(b)
			for ev, ok := s.Next(); ok; ev, ok = s.Next() {
				w := ev.Window
				if w.First < 50*100 {
					continue
				}
				if w.Quality[0] != signal.RateError || len(w.Rates) != 1 || math.Abs(w.Rates[0]/100/factor-1) > 0.01+0.03*factor/10 {
					t.Fatalf("rate times %v, frames of %d to %d samples: window at %d: %v %v", factor, shortest, longest, w.First, w.Quality[0], w.Rates)
				}
			}
		}
	})
}

func step1(s, at float64) float64 {
	if s >= at {
		return 1
	}
	return 0
}

// A wrong rate is found also if no session is long enough to measure it, by what sessions say together.
func TestRateOfShortSessions(t *testing.T) {
	l, err := signal.NewLayout("one rate", []signal.Channel{{Name: "a", Kind: signal.Vibration, Rate: 100}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		factor, seconds float64 // of the rate that comes; of a session
		wrong           bool
	}{{0.5, 8, true}, {0.7, 3, true}, {2, 8, true}, {1, 8, false}, {0.997, 8, false}, {1.02, 4, true}} {
		s, err := NewSlicer(l, DefaultSpec)
		if err != nil {
			t.Fatal(err)
		}
		windows, flagged := 0, 0
		for session := range int64(20) {
			for first := int64(0); float64(first) < tc.seconds*100*tc.factor; first += 10 {
				b := samples(l, 0, session, first, first+10)
				b.Time = origin.Add(time.Duration((float64(session)*60 + float64(first)/100/tc.factor) * 1e9))
				s.Push(b)
				for {
					ev, ok := s.Next()
					if !ok {
						break
					}
					if w := ev.Window; w != nil && session >= 10 {
						if windows++; w.Quality[0]&signal.RateError != 0 {
							flagged++
						}
					}
				}
			}
		}
		if windows == 0 || tc.wrong && flagged != windows || !tc.wrong && flagged > 0 {
			t.Errorf("%v of the rate, sessions of %v s: %d of %d windows are flagged", tc.factor, tc.seconds, flagged, windows)
		}
	}
}
