package monitor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/window"
)

// A page that looks at a machine which another monitor judges gets its last window, also the next
// one, and of one whose gateway keeps the samples that it does. Machines that no page looks at
// cost nothing.
func TestLook(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	hub := web.NewHub(web.Config{})
	l := &looker{bus: p.bus, hub: hub, layouts: new(layouts), seen: make(map[string]*looked)}
	type shown struct {
		Seq            uint64
		WithoutSamples bool `json:"without_samples"`
		Status         []string
		Envelope       [][]float64
	}
	look := func(name string) *shown { // a page asks
		w := httptest.NewRecorder()
		hub.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/machines/"+url.PathEscape(name), nil))
		var m struct{ Window *shown }
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		return m.Window
	}
	judged := func(name string, seq uint64) {
		hub.Result(event.Result{ID: fmt.Sprint(name, seq), Machine: name, Epoch: epochA, Seq: seq, Verdict: event.Healthy, End: time.Now()})
	}
	const bare, unseen = "acme/line1/bare", "acme/line1/unseen"
	for _, name := range []string{drill, bare, unseen} {
		judged(name, 7)
	}
	var ws []*window.Window
	for seq := range uint64(12) {
		ws = append(ws, at(seq, "T1", false))
	}
	p.send(p.messages(ws...)...)
	await := func(name string, is func(*shown) bool) {
		t.Helper()
		p.eventually(name, func() bool {
			w := look(name)
			if w != nil && is(w) {
				return true
			}
			for _, s := range l.seen {
				s.due = time.Time{} // at once
			}
			l.round(t.Context(), time.Now())
			return false
		})
	}
	await(drill, func(w *shown) bool { return w.Seq == 11 && len(w.Envelope) == 1 && len(w.Envelope[0]) > 0 })
	p.send(p.messages(at(12, "T1", false))...)
	await(drill, func(w *shown) bool { return w.Seq == 12 })
	await(bare, func(w *shown) bool { return w.WithoutSamples && w.Seq == 7 })
	if l.seen[unseen] != nil || len(l.seen) != 2 {
		t.Errorf("looked for %v", l.seen)
	}
}

// Each machine that pages look at gets its turn, also where they look at more of them than one round looks for.
func TestLookerTakesTurns(t *testing.T) {
	l, now := &looker{seen: make(map[string]*looked)}, time.Unix(1e9, 0)
	var names []string
	for i := range 3*lookMost - 1 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	turns := map[string]int{}
	for range 30 {
		due := l.due(names, now)
		if len(due) > lookMost {
			t.Fatalf("%d machines in a round", len(due))
		}
		for _, name := range due {
			turns[name]++
			l.seen[name].due = now.Add(lookAgain)
		}
		now = now.Add(lookEvery)
	}
	for _, name := range names {
		if n := turns[name]; n < 30/4 {
			t.Errorf("%s: %d turns", name, n)
		}
	}
	if l.due(names[:1], now); len(l.seen) != 1 {
		t.Errorf("%d machines are remembered that no page looks at", len(l.seen)-1)
	}
}
