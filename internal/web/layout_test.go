package web

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

const testLathe = "acme/spore/bay3/line1/lathe2"

// lathe is a layout of three channels.
func lathe() *signal.Layout {
	return testLayout("lathe", "force-x", "force-y", "spindle")
}

// testLayout returns a layout of slow channels.
func testLayout(name string, channels ...string) *signal.Layout {
	var all []signal.Channel
	for _, c := range channels {
		all = append(all, signal.Channel{Name: c, Kind: signal.Force, Unit: "N", Rate: 100})
	}
	l, err := signal.NewLayout(name, all)
	if err != nil {
		panic(err)
	}
	return l
}

// windowOf returns a window in which every channel has the value v and the level v.
func windowOf(machine string, l *signal.Layout, seq uint64, v float32) Window {
	w := Window{Machine: machine, Layout: l, Epoch: "00000000000000a1", Seq: seq, Start: t0}
	samples := make([][]float32, len(l.Channels()))
	for i := range samples {
		samples[i] = []float32{v}
	}
	w.Summarize(samples)
	w.Quality = make([]signal.Quality, len(samples))
	return w
}

// Each machine has its own layout, and the hub keeps each layout once, as long as a machine has
// it.
func TestLayouts(t *testing.T) {
	h := NewHub(Config{})
	h.Window(windowOf("a", twoChannels(), 1, 1))
	h.Window(windowOf("b", lathe(), 1, 1))
	h.Window(windowOf("c", lathe(), 1, 1)) // another value with the same fingerprint
	for name, want := range map[string]string{"a": "two", "b": "lathe", "c": "lathe"} {
		s, _ := page(h, name)
		if s.Layout.Name != want || s.Tile.Layout != want || len(s.Window.Envelope) != len(s.Layout.Channels) {
			t.Errorf("the page of %s shows %s, its tile %s; %d channels", name, s.Layout.Name, s.Tile.Layout, len(s.Window.Envelope))
		}
	}
	held := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, l := range h.layouts {
			got = append(got, l.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: the hub holds layouts %v, want %v", what, got, want)
		}
	}
	held("two layouts of three machines", "lathe", "two")
	mill := testLayout("mill", "torque")
	h.Window(windowOf("a", mill, 2, 2))
	held("no machine has the layout two", "lathe", "mill")
	h.Window(windowOf("a", twoChannels(), 3, 3))
	held("the layout comes back", "lathe", "two")
}

// The channels that a page shows are of the machine's layout of now, when that changes too.
func TestMachineChangesLayout(t *testing.T) {
	h := NewHub(Config{})
	h.Result(testResult(1)) // the machine is there, its layout is not known
	s, at := page(h, testMachine)
	if s.Tile.Layout != "" || s.Layout != nil {
		t.Errorf("before a window: %+v, %+v", s.Tile, s.Layout)
	}
	for i, tc := range []struct {
		l     *signal.Layout
		fresh bool // the page goes on
	}{{twoChannels(), false}, {twoChannels(), true}, {lathe(), false}, {lathe(), true}, {nil, false}, {twoChannels(), false}} {
		w := Window{Machine: testMachine}
		if tc.l != nil {
			w = windowOf(testMachine, tc.l, uint64(i), float32(i))
		}
		h.Window(w)
		_, next, fresh := h.since(at, testMachine)
		if fresh != tc.fresh {
			t.Errorf("window %d: the page goes on: %v, want %v", i, fresh, tc.fresh)
		}
		s, at = page(h, testMachine)
		if s.Layout == nil {
			s.Layout = new(layoutJSON)
		}
		if fresh && next != at {
			t.Errorf("window %d: the cursor is %+v, want %+v", i, next, at)
		}
		channels := 0
		if tc.l != nil {
			channels = len(tc.l.Channels())
		}
		if len(s.Layout.Channels) != channels || len(s.Window.Envelope) != channels || len(s.Window.RMS) != channels {
			t.Errorf("window %d: %d channels, want %d: %+v", i, len(s.Layout.Channels), channels, s.Window)
		}
		for ch, pairs := range s.Window.Envelope {
			if want := 2 * (1 + i%2); i < 4 && len(pairs) != want {
				t.Errorf("window %d: channel %d has %d values, want %d: the layout before has left none", i, ch, len(pairs), want)
			}
		}
	}
}

// Machines change their layouts in any order, and pages read at any pace: each page knows the
// layout of each machine, and what it has of its own machine is of that layout.
func TestLayoutsAtAnyPace(t *testing.T) {
	layouts := []*signal.Layout{twoChannels(), lathe(), testLayout("also three", "a", "b", "c"), testLayout("one", "a")}
	rapid.Check(t, func(t *rapid.T) {
		h := NewHub(Config{Layout: rapid.SampledFrom([]*signal.Layout{nil, layouts[1]}).Draw(t, "default")})
		h.limit = rapid.IntRange(1, 4).Draw(t, "limit")
		h.now = func() time.Time { return t0.Add(time.Duration(h.events) * time.Minute) }
		names := []string{"a", "b", "c"}
		page := &layoutViewer{name: "a"}
		for seq := range rapid.Uint64Range(1, 60).Draw(t, "events") {
			name := rapid.SampledFrom(names).Draw(t, "machine")
			switch rapid.SampledFrom([]string{"window", "window", "bare", "unknown", "result", "models", "retire", "read", "read"}).Draw(t, "what") {
			case "window":
				i := rapid.IntRange(0, len(layouts)-1).Draw(t, "layout")
				h.Window(windowOf(name, layouts[i], seq, float32(i)))
			case "bare":
				h.Window(Window{Machine: name, Layout: rapid.SampledFrom(layouts).Draw(t, "layout"), Seq: seq})
			case "unknown":
				h.Window(Window{Machine: name, Seq: seq})
			case "result":
				r := testResult(seq)
				r.Machine = name
				h.Result(r)
			case "models":
				h.Models(name, Models{Now: fmt.Sprint(seq)})
			case "retire":
				h.Alert(event.Alert{Machine: name, State: event.Retired})
			case "read":
				page.read(t, h, layouts)
			}
		}
		page.read(t, h, layouts)
		want := make(map[string]bool)
		for _, m := range h.machines {
			if m.layout != nil {
				want[m.fingerprint()] = true
			}
		}
		if !maps.Equal(want, keysOf(h.layouts)) {
			t.Fatalf("the hub holds layouts %v, machines have %v", keysOf(h.layouts), want)
		}
	})
}

func keysOf[V any](m map[string]V) map[string]bool {
	keys := make(map[string]bool)
	for k := range m {
		keys[k] = true
	}
	return keys
}

// layoutViewer is a page that looks at one machine.
type layoutViewer struct {
	name  string
	at    cursor
	fresh bool
	shown layoutJSON // the channels that the page has built
}

func (v *layoutViewer) read(t *rapid.T, h *Hub, layouts []*signal.Layout) {
	var u machineUpdate
	if v.fresh {
		u, v.at, v.fresh = h.since(v.at, v.name)
	}
	if !v.fresh {
		var s machineJSON
		s, v.at = page(h, v.name)
		u, v.fresh, v.shown = machineUpdate{Window: s.Window}, true, layoutJSON{}
		if s.Layout != nil {
			v.shown = *s.Layout
		}
	}
	if m := h.machines[v.name]; m != nil && m.fingerprint() != v.shown.Fingerprint {
		t.Fatalf("the page shows channels of %q, the machine has %q", v.shown.Fingerprint, m.fingerprint())
	}
	if u.Window == nil {
		return
	}
	if len(u.Window.Envelope) != len(v.shown.Channels) {
		t.Fatalf("%d channels for a page of %d", len(u.Window.Envelope), len(v.shown.Channels))
	}
	of := slices.IndexFunc(layouts, func(l *signal.Layout) bool { return l.Fingerprint() == v.shown.Fingerprint })
	for _, pairs := range append(u.Window.Envelope, u.Window.RMS) {
		for _, x := range pairs {
			if x != float32(of) {
				t.Fatalf("%v among the values of layout %d", x, of)
			}
		}
	}
}

// A slice that does not fit the layout is not shown; the others are.
func TestSlicesOfAnotherLength(t *testing.T) {
	for name, tc := range map[string]struct {
		change             func(*Window)
		envelope, rms, qty int
	}{
		"all fit":                       {func(*Window) {}, 2, 2, 2},
		"a channel too many":            {func(w *Window) { w.RMS = make([]float32, 3) }, 2, 0, 2},
		"envelopes of another layout":   {func(w *Window) { w.Envelope = make([][]float32, 14) }, 0, 2, 2},
		"a channel too few":             {func(w *Window) { w.Quality = w.Quality[:1] }, 2, 2, 0},
		"a layout that is not known":    {func(w *Window) { w.Layout = nil }, 0, 0, 0},
		"all of them of another layout": {func(w *Window) { w.Layout = lathe() }, 0, 0, 0},
	} {
		h := NewHub(Config{})
		w := testWindow(1)
		w.Layout = twoChannels()
		tc.change(&w)
		h.Window(w)
		s, _ := page(h, testMachine)
		shown := 0
		for _, pairs := range s.Window.Envelope {
			if len(pairs) > 0 {
				shown++
			}
		}
		if shown != tc.envelope || len(s.Window.RMS) != tc.rms || len(s.Window.Status) != tc.qty || s.Window.Bare {
			t.Errorf("%s: %+v", name, s.Window)
		}
	}
}

// A window without samples shows what is wrong with the channels, and no old waveform.
func TestWindowWithoutSamples(t *testing.T) {
	h := newTestHub()
	h.Window(testWindow(1))
	_, at := page(h, testMachine)
	h.Window(Window{Machine: testMachine, Seq: 2, Quality: []signal.Quality{0, signal.Flatline}})
	u, _, ok := h.since(at, testMachine)
	s, at := page(h, testMachine)
	if !ok {
		t.Error("the page does not go on")
	}
	for _, w := range []*windowJSON{u.Window, s.Window} {
		if !w.Bare || w.Seq != 2 || !slices.Equal(w.Status, []string{"normal", "failure"}) || len(w.RMS) != 0 || len(w.Envelope[0])+len(w.Envelope[1]) != 0 {
			t.Errorf("without samples: %+v", w)
		}
	}
	h.Window(testWindow(3))
	if u, _, _ := h.since(at, testMachine); u.Window.Bare || len(u.Window.Envelope[0]) != 2*pairs || u.Window.Envelope[1][0] != 3 {
		t.Errorf("with samples again: %+v", u.Window)
	}
}

// Models of a machine reach pages when they change, and only then.
func TestModels(t *testing.T) {
	h := newTestHub()
	h.Models(testMachine, Models{})
	if len(tiles(h)) != 0 {
		t.Errorf("a machine without models came into the list: %+v", tiles(h))
	}
	_, at := page(h, testMachine)
	all := Models{Now: "m1", Next: "m2", Shadows: []string{"m3", "m4"}, Unsigned: true}
	for i, m := range []Models{{Now: "m1"}, {Now: "m1", Next: "m2"}, all, {Now: "m1", Next: "m2", Shadows: []string{"m3"}}, {Now: "m2"}, {}} {
		h.Models(testMachine, m)
		var now *Tile
		if i == 0 {
			var s machineJSON
			s, at = page(h, testMachine)
			now = s.Tile
		} else {
			var u machineUpdate
			u, at, _ = h.since(at, testMachine)
			now = u.Tile
		}
		if now == nil || !now.Models.equal(m) {
			t.Errorf("change %d: %+v, want %+v", i, now, m)
		}
		h.Models(testMachine, m)
		if u, _, _ := h.since(at, testMachine); u.Tile != nil {
			t.Errorf("change %d again: %+v", i, u.Tile)
		}
	}
	h.Models(testMachine, all)
	if n := testing.AllocsPerRun(10, func() { h.Models(testMachine, all) }); n != 0 {
		t.Errorf("models that the hub holds cost %v allocations", n)
	}

	h.limit = 1
	h.Models("other", all)
	if len(tiles(h)) != 1 || tiles(h)[testMachine] == nil || !h.refused.IsZero() {
		t.Errorf("models took the place of a machine: %+v", tiles(h))
	}
}
