package web

import (
	"crypto/rand"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

// What a hub keeps for pages that open later.
const (
	keptWindows = Pairs // a channel of one sample per window still fills its sparkline
	keptResults = 600   // ten minutes of one-second windows
	keptAlerts  = 50    // and so many advisories and evidences
)

// Hub keeps what pages show and wakes them when it changes. Its methods are
// safe for concurrent use and never wait for a page.
type Hub struct {
	layout  layoutJSON
	title   string
	control *Control

	evidence http.Handler
	boot     string           // tells the events of this hub from those of the one before a restart
	now      func() time.Time // replaced by tests

	mu      sync.Mutex
	windows ring[Window]
	shown   time.Time // when the last window came
	results ring[event.Result]
	judged  time.Time // when the last result came
	alerts  ring[event.Alert]
	advised ring[event.Advisory]
	kept    ring[event.Evidence]
	status  Status
	changes uint64                     // of status
	pages   map[chan struct{}]struct{} // each holds at most one wake-up
}

// NewHub returns a hub that shows the channels of cfg.Layout, in the phase
// Starting. It panics if there is no layout.
func NewHub(cfg Config) *Hub {
	if cfg.Layout == nil {
		panic("web: NewHub: no layout")
	}
	title := cfg.Title
	if title == "" {
		title = "Flank"
	}
	return &Hub{
		layout:  layoutJSON{cfg.Layout.Name(), cfg.Layout.Fingerprint(), cfg.Layout.Channels()},
		title:   title,
		control: cfg.Control, evidence: cfg.Evidence,
		boot:    rand.Text()[:8],
		now:     time.Now,
		windows: newRing[Window](keptWindows),
		results: newRing[event.Result](keptResults),
		alerts:  newRing[event.Alert](keptAlerts),
		advised: newRing[event.Advisory](keptAlerts),
		kept:    newRing[event.Evidence](keptAlerts),
		status:  Status{Phase: Starting, Fraction: -1},
		pages:   make(map[chan struct{}]struct{}),
	}
}

// Window shows a window. The hub copies it: the caller may use its slices
// again. Window panics if a slice has neither one element per channel nor none.
func (h *Hub) Window(w Window) {
	n := len(h.layout.Channels)
	if l := len(w.Envelope); l != 0 && l != n || len(w.RMS) != 0 && len(w.RMS) != n || len(w.Quality) != 0 && len(w.Quality) != n {
		panic("web: Window: not one element per channel")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slot := h.windows.next() // its slices are written over, so that a window costs no allocation
	envelope, rms, quality := slot.Envelope, slot.RMS, slot.Quality
	*slot = w
	if len(envelope) != n {
		envelope = make([][]float32, n)
	}
	for i := range envelope {
		envelope[i] = envelope[i][:0]
		if len(w.Envelope) != 0 {
			envelope[i] = append(envelope[i], w.Envelope[i]...)
		}
	}
	slot.Start = writable(w.Start)
	slot.Envelope, slot.RMS, slot.Quality = envelope, append(rms[:0], w.RMS...), append(quality[:0], w.Quality...)
	h.shown = h.now()
	h.wake()
}

// Result shows the verdict on a window. The hub keeps r and its slices, which
// must not change any more.
func (h *Hub) Result(r event.Result) {
	if !finite(r.Score) || !allFinite(r.Posterior) {
		r.Score, r.Posterior = 0, nil // JSON has no word for them; a page must outlive a defect elsewhere
	}
	r.Start, r.End = writable(r.Start), writable(r.End)
	h.mu.Lock()
	defer h.mu.Unlock()
	*h.results.next() = r
	h.judged = h.now()
	h.wake()
}

// Alert shows an alert. One whose id the hub holds already is dropped.
func (h *Hub) Alert(a event.Alert) {
	if !finite(a.Score) {
		a.Score = 0
	}
	a.Since, a.At = writable(a.Since), writable(a.At)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alerts.has(func(x *event.Alert) bool { return x.ID == a.ID }) {
		return
	}
	*h.alerts.next() = a
	h.wake()
}

// Advisory shows an advisory. One whose id the hub holds already is dropped. The hub
// keeps its flags, which must not change any more.
func (h *Hub) Advisory(a event.Advisory) {
	a.Since, a.At = writable(a.Since), writable(a.At)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.advised.has(func(x *event.Advisory) bool { return x.ID == a.ID }) {
		return
	}
	*h.advised.next() = a
	h.wake()
}

// Evidence shows what became of the evidence of an alert. One whose id the hub holds
// already is dropped.
func (h *Hub) Evidence(e event.Evidence) {
	e.From, e.To = writable(e.From), writable(e.To)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept.has(func(x *event.Evidence) bool { return x.ID == e.ID }) {
		return
	}
	*h.kept.next() = e
	h.wake()
}

// Status shows what the program is doing.
func (h *Hub) Status(s Status) {
	if !finite(s.Fraction) {
		s.Fraction = -1
	}
	if !finite(s.WindowsPerSecond) {
		s.WindowsPerSecond = 0
	}
	s.Fraction = min(s.Fraction, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if s == h.status {
		return
	}
	h.status = s
	h.changes++
	h.wake()
}

// wake tells every page that something is new. h.mu must be held.
func (h *Hub) wake() {
	for page := range h.pages {
		select {
		case page <- struct{}{}:
		default: // woken already and not yet there
		}
	}
}

// maxPages bounds what a forgotten wall of screens can cost the program.
const maxPages = 64

// join adds a page, unless there are too many.
func (h *Hub) join() (page chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pages) >= maxPages {
		return nil, false
	}
	page = make(chan struct{}, 1)
	page <- struct{}{} // there is always something to say first
	h.pages[page] = struct{}{}
	return page, true
}

func (h *Hub) leave(page chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, page)
}

// ring holds the last len(slots) of total values, which are numbered from 0.
type ring[T any] struct {
	slots []T
	total uint64
}

func newRing[T any](n int) ring[T] { return ring[T]{slots: make([]T, n)} }

// next returns the slot of the next value, which may hold an old one.
func (r *ring[T]) next() *T {
	r.total++
	return r.at(r.total - 1)
}

// at returns value i, which must be in [first, total).
func (r *ring[T]) at(i uint64) *T { return &r.slots[i%uint64(len(r.slots))] }

// first returns the number of the oldest value that is still held.
func (r *ring[T]) first() uint64 { return r.total - min(r.total, uint64(len(r.slots))) }

// has reports whether one of the values that are held is what is meant.
func (r *ring[T]) has(meant func(*T) bool) bool {
	for i := r.first(); i < r.total; i++ {
		if meant(r.at(i)) {
			return true
		}
	}
	return false
}

// since returns a copy of the values from number i on.
func (r *ring[T]) since(i uint64) []T {
	values := make([]T, 0, r.total-i)
	for ; i < r.total; i++ {
		values = append(values, *r.at(i))
	}
	return values
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func allFinite(x []float64) bool {
	for _, v := range x {
		if !finite(v) {
			return false
		}
	}
	return true
}

// writable returns t, or the zero time if RFC 3339 cannot say t, as happens when
// a recording counts its seconds from nowhere.
func writable(t time.Time) time.Time {
	if y := t.UTC().Year(); y < 1 || y > 9998 {
		return time.Time{}
	}
	return t
}

// sensorStatus returns the word of NAMUR NE 107 for a channel.
func sensorStatus(q signal.Quality) string { return strings.ReplaceAll(q.Status(), "_", " ") }
