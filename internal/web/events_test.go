package web

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// browser is the far end of an event stream. While it is stalled it takes
// nothing, as a browser does whose machine sleeps.
type browser struct {
	mu      sync.Mutex
	text    strings.Builder
	header  http.Header
	stalled chan struct{} // nil, or closed when it goes on
	writes  int           // that began
}

func (b *browser) Header() http.Header { return b.header }
func (b *browser) WriteHeader(int)     {}
func (b *browser) Flush()              {}

func (b *browser) Write(p []byte) (int, error) {
	b.mu.Lock()
	b.writes++
	wait := b.stalled
	b.mu.Unlock()
	if wait != nil {
		<-wait
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *browser) stall(c chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled = c
}

// read returns the events that came since the last read.
func (b *browser) read(t *testing.T) []sse {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return parse(t, b.text.String())
}

// sse is one event, and what the test looks at in it.
type sse struct {
	name, id string
	Known    bool
	Machine  *machineJSON
	Machines []map[string]any // of the fleet
	System   *System
	machineUpdate
}

func parse(t *testing.T, text string) []sse {
	t.Helper()
	var events []sse
	for _, block := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var e sse
		for _, line := range strings.Split(block, "\n") {
			switch field, value, _ := strings.Cut(line, ": "); field {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				// Numbers in pictures may be null, which floats reads as 0.
				if err := json.Unmarshal([]byte(value), &e); err != nil {
					t.Fatalf("event %s: %v", e.name, err)
				}
			case "retry", "":
			default:
				t.Fatalf("line %q", line)
			}
		}
		if e.name != "" {
			events = append(events, e)
		}
	}
	return events
}

const ofTestMachine = "page=machine&machine=" + testMachine

// open starts a page in the bubble of the test; stop ends it.
func open(h *Hub, query, lastID string) (b *browser, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/events?"+query, nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	b = &browser{header: make(http.Header)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Handler().ServeHTTP(b, r)
	}()
	return b, func() { cancel(); <-done }
}

func TestEventsSnapshotThenUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub()
		h.Window(testWindow(1))
		h.Result(testResult(1))
		b, stop := open(h, ofTestMachine, "")
		defer stop()
		synctest.Wait()
		if !strings.HasPrefix(b.text.String(), "retry: 2000\n") {
			t.Errorf("stream begins %.20q", b.text.String())
		}
		es := b.read(t)
		if len(es) != 1 || es[0].name != "snapshot" || len(es[0].Machine.Results) != 1 || es[0].Machine.Window.Seq != 1 || len(es[0].Machine.Layout.Channels) != 2 {
			t.Fatalf("first events %+v", es)
		}

		// What comes within a pause is one update.
		h.Result(testResult(2))
		h.Result(testResult(3))
		h.Alert(testAlert(3))
		h.Status(Status{Phase: Monitoring})
		time.Sleep(pause)
		synctest.Wait()
		es = b.read(t)
		if len(es) != 1 || es[0].name != "update" {
			t.Fatalf("next events %+v", es)
		}
		if u := es[0]; len(u.Results) != 2 || u.Results[0].Seq != 2 || len(u.Alerts) != 1 || u.Status.Phase != Monitoring || u.Window != nil || u.Machine != nil {
			t.Errorf("update %+v", u)
		}

		// Nothing new: a heartbeat, which leaves the id of the last event as it is.
		time.Sleep(heartbeat + pause)
		synctest.Wait()
		if es = b.read(t); len(es) != 1 || es[0].name != "beat" || es[0].id != "" || !es[0].Now.Equal(t0) {
			t.Errorf("after %v of silence: %+v", heartbeat, es)
		}
	})
}

func TestEventsResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub()
		for seq := range uint64(5) {
			h.Window(testWindow(seq))
			h.Result(testResult(seq))
		}
		_, at := page(h, testMachine)
		id := h.server.id(at)
		h.Window(testWindow(5))
		h.Result(testResult(5))

		for name, tc := range map[string]struct{ id, want string }{
			"goes on where it was":          {id, "update"},
			"hub before a restart":          {"otherone" + id[8:], "snapshot"},
			"count from the future":         {"testboot-1-9-9-9-9-9-9-9", "snapshot"},
			"change from the future":        {"testboot-1-6-6-0-0-0-13-0", "snapshot"},
			"of the fleet":                  {"testboot-fleet-1", "snapshot"},
			"no id of ours":                 {"42", "snapshot"},
			"another machine":               {"testboot-2-0-0-0-0-0-0-0", "snapshot"},
			"hub right, the rest is broken": {"testboot-5-x", "snapshot"},
		} {
			b, stop := open(h, ofTestMachine, tc.id)
			synctest.Wait()
			es := b.read(t)
			if len(es) != 1 || es[0].name != tc.want {
				t.Fatalf("%s: %+v", name, es)
			}
			if tc.want == "update" && (len(es[0].Results) != 1 || es[0].Results[0].Seq != 5 || len(es[0].Window.Envelope[1]) != 2) {
				t.Errorf("%s: not just what was missed: %+v", name, es[0])
			}
			stop()
		}

		for seq := range uint64(keptResults) {
			h.Result(testResult(6 + seq))
		}
		b, stop := open(h, ofTestMachine, id)
		defer stop()
		synctest.Wait()
		if es := b.read(t); len(es) != 1 || es[0].name != "snapshot" || len(es[0].Machine.Results) != keptResults {
			t.Errorf("what was missed is forgotten: %+v", es)
		}
	})
}

// A browser that takes nothing costs the caller nothing and skips ahead later.
func TestEventsSlowBrowserSkipsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub()
		h.Status(Status{Phase: Monitoring})
		h.Alert(testAlert(0)) // the machine is there
		slow, stopSlow := open(h, ofTestMachine, "")
		defer stopSlow()
		quick, stopQuick := open(h, ofTestMachine, "")
		defer stopQuick()
		synctest.Wait()
		slow.read(t)
		quick.read(t)

		wake := make(chan struct{})
		slow.stall(wake)
		var seen int
		for seq := range uint64(10_000) {
			h.Window(testWindow(seq))
			h.Result(testResult(seq)) // would never return if it waited for the page
			if seq%100 == 99 {
				time.Sleep(pause)
				synctest.Wait()
				for _, e := range quick.read(t) {
					if e.name != "update" {
						t.Fatalf("the quick page got a %s", e.name)
					}
					seen += len(e.Results)
				}
			}
		}
		if seen != 10_000 {
			t.Errorf("the quick page saw %d results of 10000", seen)
		}
		if slow.writes != 2 {
			t.Errorf("%d writes to the slow page, want its snapshot and the one that hangs", slow.writes)
		}
		slow.stall(nil)
		close(wake)
		time.Sleep(pause)
		synctest.Wait()
		es := slow.read(t)
		if n := len(es); n != 2 || es[1].name != "snapshot" || es[1].Machine.Results[keptResults-1].Seq != 9999 {
			t.Fatalf("the slow page got %d events", n)
		}
	})
}

// The page of the system is not sent again for each result of a machine.
func TestEventsOfTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestHub()
		b, stop := open(h, "page=system", "")
		defer stop()
		synctest.Wait()
		if es := b.read(t); len(es) != 1 || es[0].name != "snapshot" {
			t.Fatalf("first events %+v", es)
		}
		for seq := range uint64(100) {
			h.Result(testResult(seq + 1))
			time.Sleep(systemPause / 10)
			synctest.Wait()
		}
		if es := b.read(t); len(es) != 10 || es[0].name != "update" {
			t.Errorf("%d events in %v, want 10", len(es), 10*systemPause)
		}
	})
}

func TestEventsTooManyPages(t *testing.T) {
	h := newTestHub()
	for range maxPages {
		h.join()
	}
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/events?page=fleet", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "close one") {
		t.Errorf("page %d: %d %s", maxPages+1, w.Code, w.Body)
	}
}

// The same over a real connection, which ends with the server's context.
func TestEventsOverHTTP(t *testing.T) {
	h := newTestHub()
	h.Alert(testAlert(0)) // the machine is there
	srv := httptest.NewServer(h.Handler())
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/events?"+ofTestMachine, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func(prefix string) string {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return lines.Text()
			}
		}
		t.Fatalf("stream ended before %q: %v", prefix, lines.Err())
		return ""
	}
	next("event: snapshot")
	h.Result(testResult(1))
	next("event: update")
	want := `data: {"now":"2026-03-01T02:13:41Z","alarms":0,"tile":{"id":1,"name":"acme/spore/bay2/line1/usk25","layout":"two","tool":"T07","hole":"H3_08","alarm":"normal","verdict":"healthy","verdict_at":"2026-03-01T02:13:43Z","strip":"h","score":0.25,`
	if line := next("data: "); !strings.HasPrefix(line, want) {
		t.Errorf("update %s\nwant %s", line, want)
	}
}

// For any id of the last event, a browser gets what the hub holds.
func FuzzResume(f *testing.F) {
	h := newTestHub()
	for seq := range uint64(3) {
		h.Window(testWindow(seq))
		h.Result(testResult(seq))
		h.Alert(testAlert(seq))
	}
	for _, id := range []string{"", "testboot", "testboot-1-2-2-2-0-0-7-0", "testboot-1-3-3-3-0-0-9-0", "testboot-1-18446744073709551615-1-1-1-1-1-1", "testboot-0-0-0-0-0-0-0-0", "testboot-1-3-3-3-0-0-9-18446744073709551615", "other-1-1-1-1-1-1-1-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		at, ok := h.server.resume(id)
		if !ok {
			return
		}
		u, next, ok := h.server.since(at, testMachine)
		if !ok {
			return
		}
		if _, total := page(h, testMachine); next != total {
			t.Errorf("%q: the next cursor is %+v, want %+v", id, next, total)
		}
		if len(u.Results) != int(3-at.results) || len(u.Alerts) != int(3-at.alerts) || (u.Window != nil) != (at.windows < 3) {
			t.Errorf("%q: %d results and %d alerts after %+v", id, len(u.Results), len(u.Alerts), at)
		}
	})
}
