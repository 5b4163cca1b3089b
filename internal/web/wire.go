package web

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

// snapshot is everything a page needs to start from nothing: the answer of
// /api/state and the data of the event "snapshot".
type snapshot struct {
	Title  string     `json:"title"`
	Layout layoutJSON `json:"layout"`
	Pairs  int        `json:"pairs"` // to keep of every channel
	Keep   int        `json:"keep"`  // results to keep
	// Whether POST /api/commands is answered.
	Commands bool `json:"commands,omitempty"`
	update
}

// update is what is new since the last event: the data of the event "update".
type update struct {
	Status  *Status        `json:"status,omitempty"`
	Window  *windowJSON    `json:"window,omitempty"` // the last one
	Results []event.Result `json:"results,omitempty"`
	Alerts  []event.Alert  `json:"alerts,omitempty"`

	Advisories []event.Advisory `json:"advisories,omitempty"`
	Evidence   []event.Evidence `json:"evidence,omitempty"`

	// Seconds since the last window and the last result came; negative if none has.
	WindowAge float64 `json:"window_age"`
	ResultAge float64 `json:"result_age"`
}

type layoutJSON struct {
	Name        string           `json:"name"`
	Fingerprint string           `json:"fingerprint"`
	Channels    []signal.Channel `json:"channels"`
}

// windowJSON is the last window. Its envelopes also hold the pairs of windows
// before it that the page has not seen.
type windowJSON struct {
	Machine  string     `json:"machine"`
	Tool     string     `json:"tool"`
	Hole     string     `json:"hole"`
	Epoch    string     `json:"epoch"`
	Seq      uint64     `json:"seq"`
	Start    time.Time  `json:"start"`
	RMS      floats     `json:"rms"`      // one per channel
	Status   []string   `json:"status"`   // word of NE 107, one per channel
	Flags    [][]string `json:"flags"`    // what is wrong, one list per channel
	Envelope []floats   `json:"envelope"` // new (min, max) pairs, one list per channel, the newest last
}

// floats are numbers for a picture: four significant digits in JSON, and null
// for what is not finite.
type floats []float32

func (f floats) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 8*len(f)+2)
	b = append(b, '[')
	for i, v := range f {
		if i > 0 {
			b = append(b, ',')
		}
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, x, 'g', 4, 32)
		}
	}
	return append(b, ']'), nil
}

// cursor says how much of a hub a page has seen: counts of values.
type cursor struct {
	windows, results, alerts, advised, kept, changes uint64
}

// id returns the cursor as the id of an event, see Hub.resume.
func (h *Hub) id(c cursor) string {
	return fmt.Sprintf("%s-%d-%d-%d-%d-%d-%d", h.boot, c.windows, c.results, c.alerts, c.advised, c.kept, c.changes)
}

// resume returns the cursor that id names, and false if id is not of this hub.
// It does not trust id: counts beyond the hub's own are refused.
func (h *Hub) resume(id string) (cursor, bool) {
	var c cursor
	if len(id) < len(h.boot) || id[:len(h.boot)] != h.boot {
		return c, false
	}
	if _, err := fmt.Sscanf(id[len(h.boot):], "-%d-%d-%d-%d-%d-%d", &c.windows, &c.results, &c.alerts, &c.advised, &c.kept, &c.changes); err != nil {
		return c, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	total := h.cursor()
	return c, c.windows <= total.windows && c.results <= total.results && c.alerts <= total.alerts && c.advised <= total.advised && c.kept <= total.kept && c.changes <= total.changes
}

// since returns what is new after c and the cursor that follows it. It reports
// false if some of it is forgotten; the page must then start from a snapshot.
func (h *Hub) since(c cursor) (update, cursor, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.results < h.results.first() || c.alerts < h.alerts.first() || c.advised < h.advised.first() || c.kept < h.kept.first() {
		return update{}, c, false
	}
	u := h.update(c)
	if c.changes < h.changes {
		s := h.status
		u.Status = &s
	}
	return u, h.cursor(), true
}

// snapshot returns all the hub holds, and the cursor that follows it.
func (h *Hub) snapshot() (snapshot, cursor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.status
	u := h.update(cursor{windows: h.windows.first(), results: h.results.first(), alerts: h.alerts.first(), advised: h.advised.first(), kept: h.kept.first()})
	u.Status = &s
	return snapshot{Title: h.title, Layout: h.layout, Pairs: Pairs, Keep: keptResults, Commands: h.control != nil, update: u}, h.cursor()
}

func (h *Hub) cursor() cursor {
	return cursor{h.windows.total, h.results.total, h.alerts.total, h.advised.total, h.kept.total, h.changes}
}

// update returns the windows, results, alerts, advisories and evidences from c on, which must be held.
func (h *Hub) update(c cursor) update {
	age := func(t time.Time) float64 {
		if t.IsZero() {
			return -1
		}
		return max(0, h.now().Sub(t).Seconds())
	}
	u := update{
		Results: h.results.since(c.results), Alerts: h.alerts.since(c.alerts), Advisories: h.advised.since(c.advised), Evidence: h.kept.since(c.kept),
		WindowAge: age(h.shown), ResultAge: age(h.judged),
	}
	if c.windows < h.windows.total {
		u.Window = h.windowsSince(c.windows)
	}
	return u
}

// windowsSince returns the last window with the pairs of all windows from
// number i on, as far as they are held and a page keeps them. There must be a
// window. h.mu must be held.
func (h *Hub) windowsSince(i uint64) *windowJSON {
	i = max(i, h.windows.first())
	last := h.windows.at(h.windows.total - 1)
	w := &windowJSON{
		Machine: last.Machine, Tool: last.Tool, Hole: last.Hole,
		Epoch: last.Epoch, Seq: last.Seq, Start: last.Start,
		RMS: append(floats{}, last.RMS...),
	}
	for _, q := range last.Quality {
		w.Status = append(w.Status, sensorStatus(q))
		w.Flags = append(w.Flags, append([]string{}, q.Names()...))
	}
	for ch := range last.Envelope {
		var have int
		from := h.windows.total
		for from > i && have < 2*Pairs {
			from--
			have += len(h.windows.at(from).Envelope[ch])
		}
		pairs := make(floats, 0, have)
		for ; from < h.windows.total; from++ {
			pairs = append(pairs, h.windows.at(from).Envelope[ch]...)
		}
		w.Envelope = append(w.Envelope, pairs[max(0, have-2*Pairs):])
	}
	return w
}
