package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

const testMachine = "acme/spore/bay2/line1/usk25"

var t0 = time.Date(2026, 3, 1, 2, 13, 41, 0, time.UTC)

// twoChannels is a fast channel and a feature.
func twoChannels() *signal.Layout {
	l, err := signal.NewLayout("two", []signal.Channel{
		{Name: "ch01", Kind: signal.Vibration, Unit: "g", Rate: 20_000, Range: 50, Sensor: "acc1-x"},
		{Name: "AE_RMS", Kind: signal.Feature, Rate: 1},
	})
	if err != nil {
		panic(err)
	}
	return l
}

func newTestHub() *Hub {
	h := NewHub(Config{Layout: twoChannels()})
	h.boot = "testboot"
	h.now = func() time.Time { return t0 }
	return h
}

func testWindow(seq uint64) Window {
	w := Window{Machine: testMachine, Tool: "T07", Hole: "H3_08", Epoch: "00000000000000a1", Seq: seq,
		Start: t0.Add(time.Duration(seq) * time.Second), Quality: []signal.Quality{0, 0}}
	fast := make([]float32, 2*pairs)
	for i := range fast {
		fast[i] = float32(seq) + float32(i%2)
	}
	w.Summarize([][]float32{fast, {float32(seq)}})
	return w
}

func testResult(seq uint64) event.Result {
	w := testWindow(seq)
	return event.Result{ID: event.WindowID(w.Machine, w.Epoch, seq), Machine: w.Machine, Epoch: w.Epoch, Seq: seq, Tool: w.Tool, Hole: w.Hole,
		Start: w.Start, End: w.Start.Add(time.Second), Verdict: event.Healthy, Posterior: []float64{0.75, 0.25}, Score: 0.25, Model: "ecs-dbn-17", Alarm: "normal"}
}

// What a machine's control said of a window is on its page, and nothing is where it is not known.
func TestResultOfAControl(t *testing.T) {
	h := newTestHub()
	h.Result(testResult(1))
	r := testResult(2)
	r.FeedRate, r.Programme, r.Material = 82.5, "O1234 <bore>", "42CrMo4"
	h.Result(r)
	s, _ := page(h, testMachine)
	if got := string(encode(s.Results[1])); !strings.Contains(got, `"feed_rate":82.5,"programme":"O1234 \u003cbore\u003e","material":"42CrMo4"`) {
		t.Errorf("%s", got)
	}
	if got := string(encode(s.Results[0])); strings.Contains(got, "feed") || strings.Contains(got, "programme") || strings.Contains(got, "material") {
		t.Errorf("not known: %s", got)
	}
}

// page returns what the page of a machine shows first; an empty page of a machine that the hub
// does not hold.
func page(h *Hub, name string) (machineJSON, cursor) {
	m, at := h.server.snapshot(name)
	if m == nil {
		return machineJSON{Tile: &Tile{}}, at
	}
	return *m, at
}

// tiles returns the tiles of the page of the fleet, by name.
func tiles(h *Hub) map[string]*Tile {
	all := make(map[string]*Tile)
	for _, t := range h.server.fleet(httptest.NewRequest(http.MethodGet, "/", nil)).Machines {
		all[t.Name] = t
	}
	return all
}

func testAlert(seq uint64) event.Alert {
	r := testResult(seq)
	return event.Alert{ID: r.ID + "/raised", Machine: r.Machine, Tool: r.Tool, Hole: r.Hole, State: event.Raised, Severity: "warning",
		Since: r.Start, At: r.End, Epoch: r.Epoch, Seq: seq, Faulty: 6, Of: 8, K: 6, N: 8, Score: 0.93, Model: r.Model, Text: "usk25 tool T07: faulty"}
}

func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRing[int](rapid.IntRange(1, 8).Draw(t, "slots"))
		var all []int
		for i := range rapid.IntRange(0, 40).Draw(t, "values") {
			*r.next() = i
			all = append(all, i)
		}
		from := rapid.IntRange(int(r.first()), int(r.total)).Draw(t, "from")
		if got := r.since(uint64(from)); !slices.Equal(got, all[from:]) {
			t.Fatalf("since(%d) = %v, want %v", from, got, all[from:])
		}
		if held := len(all) - int(r.first()); held != min(len(all), r.size) || held != len(r.slots) {
			t.Fatalf("%d slots hold %d of %d values", len(r.slots), held, len(all))
		}
	})
}

// A value that was removed is gone, the others stay in order, and no number from before is held.
func TestRingRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRing[int](rapid.IntRange(1, 8).Draw(t, "slots"))
		var held []int
		for i := range rapid.IntRange(0, 40).Draw(t, "values") {
			*r.next() = i
			held = append(held, i)
			if held = held[max(0, len(held)-r.size):]; rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				gone, total := rapid.SampledFrom(held).Draw(t, "gone"), r.total
				r.remove(func(v *int) bool { return *v == gone })
				held = slices.DeleteFunc(held, func(v int) bool { return v == gone })
				if r.first() <= total {
					t.Fatalf("value %d is held, and %d values came before", r.first(), total)
				}
			}
			if got := r.since(r.first()); !slices.Equal(got, held) {
				t.Fatalf("the ring holds %v, want %v", got, held)
			}
		}
	})
}

func TestHubIsBounded(t *testing.T) {
	h := newTestHub()
	for seq := range uint64(1000) {
		h.Window(testWindow(seq))
		h.Result(testResult(seq))
		h.Alert(testAlert(seq))
	}
	s, at := page(h, testMachine)
	if n := len(s.Results); n != keptResults || s.Results[n-1].Seq != 999 {
		t.Errorf("%d results, the last is %d", n, s.Results[n-1].Seq)
	}
	if n := len(s.Alerts); n != keptAlerts || s.Alerts[n-1].Seq != 999 {
		t.Errorf("%d alerts, the last is %d", n, s.Alerts[n-1].Seq)
	}
	if at != (cursor{machine: 1, windows: 1000, results: 1000, alerts: 1000, event: 3000}) {
		t.Errorf("cursor %v", at)
	}
	// A fast channel shows its last window, a feature its last sixty.
	fast, feature := s.Window.Envelope[0], s.Window.Envelope[1]
	if len(fast) != 2*pairs || fast[0] != 999 || fast[1] != 1000 {
		t.Errorf("fast channel: %d values, %v …", len(fast), fast[:2])
	}
	if len(feature) != 2*pairs || feature[0] != 940 || feature[2*pairs-1] != 999 {
		t.Errorf("feature: %d values from %v to %v", len(feature), feature[0], feature[len(feature)-1])
	}
}

// A page that reads at any pace ends with the pairs that a page sees that
// opens last.
func TestPairsArriveOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newTestHub()
		var got []float32
		h.Result(testResult(0)) // the machine is there
		_, at := page(h, testMachine)
		for seq := range rapid.Uint64Range(1, 150).Draw(t, "windows") {
			h.Window(testWindow(seq))
			if rapid.Bool().Draw(t, "read") {
				var u machineUpdate
				u, at, _ = h.server.since(at, testMachine)
				got = append(got, u.Window.Envelope[1]...)
			}
		}
		if u, _, _ := h.server.since(at, testMachine); u.Window != nil {
			got = append(got, u.Window.Envelope[1]...)
		}
		s, _ := page(h, testMachine)
		if got, want := got[max(0, len(got)-2*pairs):], s.Window.Envelope[1]; !slices.Equal(got, want) {
			t.Fatalf("page has %v, hub %v", got, want)
		}
	})
}

func TestHubCopiesWindow(t *testing.T) {
	h := newTestHub()
	w := testWindow(1)
	w.Layout = twoChannels()
	h.Window(w)
	w.Envelope[0][0], w.RMS[0], w.Quality[0] = 77, 77, signal.Flatline
	s, _ := page(h, testMachine)
	if s.Window.Envelope[0][0] == 77 || s.Window.RMS[0] == 77 || s.Window.Status[0] != "normal" {
		t.Error("the hub shares slices with its caller")
	}
	for range pairs {
		h.Window(w)
	}
	if n := testing.AllocsPerRun(10, func() { h.Window(w) }); n != 0 {
		t.Errorf("a window costs %v allocations", n)
	}
}

func TestHubDropsRepeatedAlert(t *testing.T) {
	h := newTestHub()
	h.Alert(testAlert(1))
	h.Alert(testAlert(2))
	h.Alert(testAlert(1))
	if s, _ := page(h, testMachine); len(s.Alerts) != 2 {
		t.Errorf("%d alerts of 2", len(s.Alerts))
	}
}

// For any numbers, the page gets JSON.
func TestNumbersThatJSONCannotHold(t *testing.T) {
	h := newTestHub()
	bad := math.NaN()
	year12000 := time.Unix(316_600_000_000, 0)
	w := testWindow(1)
	w.RMS[0], w.Start, w.Envelope[0] = inf, year12000, []float32{nan, nan, 1, 2}
	h.Window(w)
	r := testResult(1)
	r.Score, r.Start, r.End = bad, year12000, year12000
	h.Result(r)
	r = testResult(2)
	r.Posterior = []float64{math.Inf(1), 0}
	h.Result(r)
	h.facts = func(string, string) Facts { return Facts{FirstDay: new(FirstDay)} }
	for seq, huge := range []event.Result{{Score: 1e306}, {Score: 0.5, Posterior: []float64{1e300}}, {Score: -1e306}} {
		r = testResult(3 + uint64(seq))
		r.Score, r.Posterior, r.Level = huge.Score, huge.Posterior, 1e307
		r.Threshold, r.FeedRate, r.Novelty, r.Wear = 1e308, 1e308, 1e308, &event.Wear{WearUM: 1e308, WearLowUM: -1e308, HolesLeft: ptr(1e308)}
		h.Result(r)
		encode(h.server.fleet(httptest.NewRequest(http.MethodGet, "/", nil)))
	}
	a := testAlert(1)
	a.Score, a.Since, a.At = math.Inf(-1), year12000, year12000
	h.Alert(a)
	a = testAlert(6)
	a.Alarm, a.Until = "shelved", time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -12*3600))
	h.Alert(a)
	h.Status(Status{Phase: Training, Fraction: bad, WindowsPerSecond: math.Inf(1)})

	s, _ := page(h, testMachine)
	encode(h.server.fleet(httptest.NewRequest(http.MethodGet, "/", nil)))
	data := encode(s)
	if !json.Valid(data) || !bytes.Contains(data, []byte(`"rms":[null,1]`)) || !bytes.Contains(data, []byte(`"envelope":[[null,null,1,2],[1,1]]`)) {
		t.Errorf("snapshot is %s", data)
	}
	for _, r := range s.Results {
		if r.Posterior != nil || r.Score != nil && *r.Score != 0 {
			t.Errorf("%d looks judged", r.Seq)
		}
	}
	if h.status != (Status{Phase: Training, Fraction: -1}) {
		t.Errorf("status %+v", h.status)
	}
}

func TestSensorStatus(t *testing.T) {
	for q, want := range map[signal.Quality]string{
		0:                                   "normal",
		signal.Flatline:                     "failure",
		signal.Dropout:                      "failure",
		signal.NonFinite | signal.ClockStep: "failure", // the worst wins
		signal.Clipped:                      "out of specification",
		signal.RateError | signal.ClockStep: "out of specification",
		signal.ClockStep:                    "maintenance required",
	} {
		if got := sensorStatus(q); got != want {
			t.Errorf("%v: %q, want %q", q, got, want)
		}
	}
}

// Run with -race: writers and readers at once.
func TestHubConcurrently(t *testing.T) {
	h := newTestHub()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for seq := range uint64(200) {
				h.Window(testWindow(seq))
				h.Result(testResult(seq))
				h.Alert(testAlert(uint64(g)*1000 + seq))
				h.Status(Status{Phase: Monitoring, Text: fmt.Sprint(seq)})
			}
		})
		wg.Go(func() {
			wake, _ := h.join()
			defer h.leave(wake)
			var at cursor
			for range 50 {
				select {
				case <-wake:
				default: // read although nothing may be new
				}
				u, next, ok := h.server.since(at, testMachine)
				if at = next; !ok {
					_, at = page(h, testMachine)
				}
				encode(u)
				_, frame := h.server.fleetSnapshot(httptest.NewRequest(http.MethodGet, "/", nil))
				h.server.framesAfter(frame)
			}
		})
	}
	wg.Wait()
	if n := len(h.pages); n != 0 {
		t.Errorf("%d pages stayed", n)
	}
}

// Advisories reach pages as well as alerts, each once.
func TestAdvisories(t *testing.T) {
	h := newTestHub()
	h.Window(testWindow(1))
	_, at := page(h, testMachine)
	a := event.Advisory{Machine: testMachine, ID: "m/1/2/sensor/ch07/raised", Kind: event.SensorAdvisory, Subject: "ch07", Text: "flat"}
	h.Advisory(a)
	h.Advisory(a)
	u, next, ok := h.server.since(at, testMachine)
	if !ok || len(u.Advisories) != 1 || u.Advisories[0].Subject != "ch07" || len(u.Alerts) != 0 || next.advised != 1 {
		t.Errorf("%+v, %v, %v", u.Advisories, next, ok)
	}
	if s, _ := page(h, testMachine); len(s.Advisories) != 1 {
		t.Errorf("%d advisories in a snapshot", len(s.Advisories))
	}
	for i := range 2 * keptAlerts {
		a.ID = fmt.Sprint(i)
		h.Advisory(a)
	}
	if _, _, ok := h.server.since(at, testMachine); ok {
		t.Error("an update without what is forgotten")
	}
}

// What became of evidence reaches pages, once.
func TestEvidence(t *testing.T) {
	h := newTestHub()
	h.Window(testWindow(1))
	_, at := page(h, testMachine)
	e := event.Evidence{Machine: testMachine, ID: "m/1/2/raised/evidence", Alert: "m/1/2/raised", URL: "/evidence/A-K3ZQ7M2P-2.arrow", Bytes: 1, Complete: true}
	h.Evidence(e)
	h.Evidence(e)
	u, next, ok := h.server.since(at, testMachine)
	if !ok || len(u.Evidence) != 1 || u.Evidence[0].Evidence != e || next.kept != 1 || len(u.Alerts)+len(u.Advisories) != 0 {
		t.Errorf("%+v, %v, %v", u.Evidence, next, ok)
	}
	if again, ok := h.server.resume(h.server.id(next)); !ok || again != next {
		t.Errorf("resumed at %v, %v; want %v", again, ok, next)
	}
	if s, _ := page(h, testMachine); len(s.Evidence) != 1 {
		t.Errorf("%d evidences in a snapshot", len(s.Evidence))
	}
	for i := range 2 * keptAlerts {
		e.ID = fmt.Sprint(i)
		h.Evidence(e)
	}
	if _, _, ok := h.server.since(at, testMachine); ok {
		t.Error("an update without what is forgotten")
	}
}
