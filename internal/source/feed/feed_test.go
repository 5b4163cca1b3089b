package feed

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/source"
	_ "github.com/flank-tcm/flank/internal/testkit/seededrapid"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const drill = "acme/spore/bay2/line1/drill"

var origin = time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)

// tester is a test, a benchmark or a property.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// layout has two rates: a and b at 40 Hz, c at 10 Hz.
func layout(t tester) *signal.Layout {
	l, err := signal.NewLayout("two rates", []signal.Channel{
		{Name: "a", Kind: signal.Vibration, Unit: "g", Rate: 40},
		{Name: "c", Kind: signal.Force, Unit: "N", Rate: 10},
		{Name: "b", Kind: signal.Vibration, Unit: "g", Rate: 40},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// metadata are the facts of a frame, changed by pairs of key and value; a value
// of "" removes.
func metadata(change ...string) map[string]string {
	m := map[string]string{"session": "7", "first": "0", "time_ns": strconv.FormatInt(origin.UnixNano(), 10)}
	for ; len(change) > 0; change = change[2:] {
		if m[change[0]] = change[1]; change[1] == "" {
			delete(m, change[0])
		}
	}
	return m
}

// arrowFrame returns a frame whose columns hold what is appended to them.
func arrowFrame(t tester, meta map[string]string, fields []arrow.Field, fill func(b *array.RecordBuilder), opts ...ipc.Option) []byte {
	t.Helper()
	md := arrow.MetadataFrom(meta)
	schema := arrow.NewSchema(fields, &md)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	fill(b)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, append(opts, ipc.WithSchema(schema))...)
	if err := w.Write(b.NewRecord()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// floats returns a frame of float32 columns.
func floats(t tester, meta map[string]string, names []string, x ...[]float32) []byte {
	t.Helper()
	var fields []arrow.Field
	for _, n := range names {
		fields = append(fields, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Float32})
	}
	return arrowFrame(t, meta, fields, func(b *array.RecordBuilder) {
		for i, v := range x {
			b.Field(i).(*array.Float32Builder).AppendValues(v, nil)
		}
	})
}

// sample is the value of a channel at a counter.
func sample(channel int, n int64) float32 { return float32(1000*int64(channel) + n%1000) }

// piece returns the frame of group g of the layout with the counters [from, to).
func piece(t tester, l *signal.Layout, g int, session, from, to int64) []byte {
	var names []string
	var xs [][]float32
	group := l.Groups()[g]
	for _, c := range group.Channels {
		names = append(names, l.Channels()[c].Name)
		var x []float32
		for n := from; n < to; n++ {
			x = append(x, sample(c, n))
		}
		xs = append(xs, x)
	}
	at := origin.Add(time.Duration(session)*time.Hour + time.Duration(float64(from)/group.Rate*float64(time.Second)))
	return floats(t, metadata("session", strconv.FormatInt(session, 10), "first", strconv.FormatInt(from, 10), "time_ns", strconv.FormatInt(at.UnixNano(), 10)), names, xs...)
}

// describe names a window by where it is, and checks its samples.
func describe(t tester, w *window.Window, l *signal.Layout) string {
	t.Helper()
	for c, x := range w.Samples {
		first := w.First * int64(l.Channels()[c].Rate) / 40
		for i, v := range x {
			if want := sample(c, first+int64(i)); v != want {
				t.Fatalf("window at %d: sample %d of channel %d is %v, want %v", w.First, i, c, v, want)
			}
		}
	}
	return fmt.Sprintf("%d@%d", w.Session, w.First)
}

// The law of a feed: for any frames, any repeats, and no matter when
// the ingester dies, a sender that sends again what was not acknowledged makes
// the windows of one whole stream, each once.
func TestNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	l := layout(t)
	spec := window.Spec{Length: time.Second}
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(2, 6).Draw(t, "seconds")
		sessions := rapid.Int64Range(1, 2).Draw(t, "sessions")
		type frame struct{ session, group, from, to int64 }
		var stream []frame // the sender's, in order
		for session := range sessions {
			var at [2]int64
			for at[0] < 40*seconds || at[1] < 10*seconds {
				g := int64(0)
				if 4*at[1] < at[0] {
					g = 1
				}
				rate := []int64{40, 10}[g]
				n := min(rapid.Int64Range(1, 2*rate).Draw(t, "samples"), rate*seconds-at[g])
				stream = append(stream, frame{session, g, at[g], at[g] + n})
				at[g] += n
			}
		}
		var want []string
		for session := range sessions {
			for s := range seconds {
				want = append(want, fmt.Sprintf("%d@%d", session, 40*s))
			}
		}

		var kept []string
		var lastSession, lastNext int64
		acked := 0 // of stream, in order
		for lives := 0; acked < len(stream); lives++ {
			if lives > 200 {
				t.Fatalf("frames %d of %d are never acknowledged; windows %v", acked, len(stream), kept)
			}
			f := open(Config{Machine: drill, Layout: l})
			if len(kept) > 0 {
				f.Acked(lastSession, lastNext)
			}
			slicer, err := window.NewSlicer(l, spec)
			if err != nil {
				t.Fatal(err)
			}
			die := rapid.IntRange(1, 30).Draw(t, "frames of a life") + lives
			next, open := acked, 0
			for step := 0; step < die; step++ {
				if next == len(stream) {
					break
				}
				if again := rapid.IntRange(0, 9).Draw(t, "again"); again == 0 && next > acked {
					next-- // its connection broke: it sends again
				}
				p := stream[next]
				next++
				b, err := f.dec.decode(piece(t, l, int(p.group), p.session, p.from, p.to))
				if err != nil {
					t.Fatal(err)
				}
				open++
				upTo := next
				a := arrival{block: b, ack: func() { open--; acked = max(acked, upTo) }}
				f.admit(a)
				b = nil
				for a, ok := f.names.next(); ok; a, ok = f.names.next() {
					if f.complete(a.block); f.take(a) {
						b = a.block
						slicer.Push(&b.Block)
					}
				}
				for b != nil {
					ev, ok := slicer.Next()
					if !ok {
						break
					}
					if ev.Gap != nil {
						continue
					}
					kept = append(kept, describe(t, ev.Window, l))
					lastSession, lastNext = ev.Window.Session, ev.Window.First+40
					if rapid.Bool().Draw(t, "dies before it says so") {
						step = die
						break
					}
					f.Acked(lastSession, lastNext)
				}
			}
			if next == len(stream) && len(kept) == len(want) {
				break // what is left is the end of the session, which no window holds
			}
		}
		if !slices.Equal(kept, want) {
			t.Fatalf("windows %v, want %v", kept, want)
		}
	})
}

// A frame is acknowledged when its last sample is on disk, in order, and not
// before; frames of an older session with the first window of the next.
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	l := layout(t)
	f := open(Config{Machine: drill, Layout: l})
	var paid []int
	send := func(id int, g int, session, from, to int64) {
		t.Helper()
		b, err := f.dec.decode(piece(t, l, g, session, from, to))
		if err != nil {
			t.Fatal(err)
		}
		f.take(arrival{block: b, ack: func() { paid = append(paid, id) }})
	}
	check := func(want ...int) {
		t.Helper()
		if !slices.Equal(paid, want) {
			t.Errorf("acknowledged %v, want %v", paid, want)
		}
	}
	send(1, 0, 1, 0, 30)
	send(2, 1, 1, 0, 10)
	send(3, 0, 1, 30, 41) // a sample of the second window
	check()
	f.Acked(1, 40)
	check(1, 2)
	send(4, 0, 1, 20, 40) // again
	check(1, 2)
	send(5, 0, 2, 0, 40)
	f.Acked(1, 40)
	check(1, 2)
	f.Acked(2, 40)
	check(1, 2, 3, 4, 5)
	send(6, 0, 2, 10, 30) // again, and nothing is before it
	check(1, 2, 3, 4, 5, 6)
	f.Acked(9, 40) // of a session that it does not know
	send(7, 0, 9, 0, 50)
	check(1, 2, 3, 4, 5, 6)
	f.Acked(9, 80)
	check(1, 2, 3, 4, 5, 6, 7)
}

// A rate whose channels are dead does not make senders keep frames without end.
func TestUnackedIsBounded(t *testing.T) {
	t.Parallel()
	l := layout(t)
	said := 0
	f := open(Config{Machine: drill, Layout: l, Notify: func(Notice) { said++ }})
	paid := 0
	for i := range int64(3 * maxUnacked) {
		b, err := f.dec.decode(piece(t, l, 0, 1, i, i+1))
		if err != nil {
			t.Fatal(err)
		}
		f.take(arrival{block: b, ack: func() { paid++ }})
	}
	if paid != 2*maxUnacked || len(f.unacked) != maxUnacked || said != 1 {
		t.Errorf("%d frames acknowledged, %d not, said %d times", paid, len(f.unacked), said)
	}
}

// Another tool is another session, no matter who names it; what a frame says holds
// before what the setting does.
func TestContext(t *testing.T) {
	t.Parallel()
	l := layout(t)
	path := t.TempDir() + "/context.json"
	set, err := OpenSetting(path)
	if err != nil {
		t.Fatal(err)
	}
	f := open(Config{Machine: drill, Layout: l, Setting: set})
	next := func(change ...string) *source.Block {
		t.Helper()
		b, err := f.dec.decode(floats(t, metadata(change...), []string{"c"}, []float32{1}))
		if err != nil {
			t.Fatal(err)
		}
		f.complete(b)
		return b
	}
	apply := func(text string) error {
		t.Helper()
		c, err := parseChange([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = set.Apply(c)
		return err
	}
	if b := next(); b.Context != (signal.Context{Machine: drill}) || b.Session != 7 {
		t.Errorf("nothing is known: %+v, session %d", b.Context, b.Session)
	}
	if err := apply(`{"tool": "T1", "hole": "3", "spindle_speed": 1650}`); err != nil {
		t.Fatal(err)
	}
	first := next()
	if want := (signal.Context{Machine: drill, Tool: "T1", Hole: "3", SpindleSpeed: 1650}); first.Context != want || first.Session == 7 {
		t.Errorf("%+v, session %d; want %+v and another session", first.Context, first.Session, want)
	}
	if b := next("hole", "4"); b.Hole != "4" || b.Session != first.Session {
		t.Errorf("hole %q, session %d: the frame's hole, no new session", b.Hole, b.Session)
	}
	if err := apply(`{"tool": "T2"}`); err != nil {
		t.Fatal(err)
	}
	again, err := OpenSetting(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := (signal.Context{Tool: "T2"}); again.Context() != want {
		t.Errorf("after a restart %+v, want %+v: hole and speed belonged to the tool before", again.Context(), want)
	}
	if b := next(); b.Tool != "T2" || b.Session == first.Session || b.Session == 7 {
		t.Errorf("tool %q, session %d", b.Tool, b.Session)
	}
	if b := next("tool", "X9", "spindle_speed", "20"); b.Tool != "X9" || b.SpindleSpeed != 20 {
		t.Errorf("%+v: the frame's", b.Context)
	}
	if err := apply(`{"tool": "T3"}`); err == nil || set.Context().Tool != "X9" {
		t.Errorf("a tool that the frames contradict: %v", err)
	}
	for text, why := range map[string]string{
		"{}": "nothing", `{"tool": ""}`: "no name", `{"tool": 8}`: "no text", `{"spindle_speed": -1}`: "negative",
		`{"tool": "a\nb"}`: "a line break", `{"hole": "` + string(bytes.Repeat([]byte("x"), 300)) + `"}`: "too long", `tool`: "no JSON",
	} {
		if _, err := parseChange([]byte(text)); err == nil {
			t.Errorf("%s: no error", why)
		}
	}
}

// A feed that was opened again says what it missed of the session.
func TestMissed(t *testing.T) {
	t.Parallel()
	l := layout(t)
	var said []string
	f := open(Config{Machine: drill, Layout: l, Notify: func(n Notice) { said = append(said, n.Err.Error()) }})
	f.Acked(1, 40)
	for _, p := range [][3]int64{{1, 13, 20}, {0, 40, 80}, {0, 90, 100}} {
		b, err := f.dec.decode(piece(t, l, int(p[0]), 1, p[1], p[2]))
		if err != nil {
			t.Fatal(err)
		}
		f.take(arrival{block: b, ack: func() {}})
	}
	if want := "[feed: samples 10 to 12 of 10 Hz, which follow what is on disk, have not come]"; fmt.Sprint(said) != want {
		t.Errorf("%v, want %s", said, want)
	}
}

// Samples that never came are not taken for repeats when later ones are on disk already: the slicer counts them as late. When they come
// again, they are repeats.
func TestLateIsNotARepeat(t *testing.T) {
	t.Parallel()
	f := open(Config{Machine: drill, Layout: layout(t)})
	f.check.now = func() time.Time { return origin }
	give := func(from int64) *source.Block {
		f.admit(arrival{block: bare(f.Layout(), 0, 7, from, from+40, "T1"), ack: func() {}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b, err := f.Next(ctx)
		if err != nil {
			return nil
		}
		return b
	}
	give(0)
	b := give(80)
	f.Acked(b.Session, 120)
	width := uint64(len(b.Samples))
	if b := give(40); b == nil || b.First != 40 || b.Len() != 40 || f.Stats().Unused[Repeat] != 0 {
		t.Errorf("what never came: %+v, %d are repeats", b, f.Stats().Unused[Repeat])
	}
	if b := give(40); b != nil || f.Stats().Unused[Repeat] != 40*width {
		t.Errorf("what came before: %+v, %d are repeats", b, f.Stats().Unused[Repeat])
	}
}
