package web

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

// snapshot is everything a page needs to start from nothing: the answer of
// /api/state and the data of the event "snapshot".
type snapshot struct {
	Title  string     `json:"title"`
	Layout layoutJSON `json:"layout"` // of the machine; it has no channels if it is not known
	Pairs  int        `json:"pairs"`  // to keep of every channel
	Keep   int        `json:"keep"`   // results to keep
	Limit  int        `json:"limit"`  // of machines
	// Whether POST /api/commands is answered.
	Commands bool `json:"commands,omitempty"`
	// Whether the program accepts models without a signature.
	InsecureModels bool `json:"insecure_models,omitempty"`
	update
}

// update is what is new since the last event: the data of the event "update". All
// but Status, Layouts, Machines and Crowded are of one machine, whose layout is the one of
// the last snapshot: when that changes, a page gets another snapshot.
type update struct {
	Status   *Status       `json:"status,omitempty"`
	Layouts  []layoutJSON  `json:"layouts,omitempty"`  // of the machines, in the order in which they came; in an update those that are new
	Machines []machineJSON `json:"machines,omitempty"` // by name; in an update those that changed
	Crowded  bool          `json:"crowded,omitempty"`  // there are more machines than are shown

	Machine string         `json:"machine"`          // empty if there is none yet
	Window  *windowJSON    `json:"window,omitempty"` // the last one
	Results []event.Result `json:"results,omitempty"`
	Alerts  []event.Alert  `json:"alerts,omitempty"`

	Advisories []event.Advisory `json:"advisories,omitempty"`
	Evidence   []event.Evidence `json:"evidence,omitempty"`

	// Seconds since the last window and the last result came; negative if none has.
	WindowAge float64 `json:"window_age"`
	ResultAge float64 `json:"result_age"`
}

// machineJSON is what the list of machines says of one.
type machineJSON struct {
	Name      string        `json:"name"`
	Layout    string        `json:"layout,omitempty"`   // fingerprint of its layout; empty if it is not known
	Verdict   event.Verdict `json:"verdict,omitempty"`  // of the last result that was not late; empty if there is none
	Alarm     string        `json:"alarm,omitempty"`    // state of the alarm in a word, as in a result; empty if it is not known
	Incident  string        `json:"incident,omitempty"` // of the alarm, if one is open
	Span      float64       `json:"span,omitempty"`     // seconds that the last result's window lasted
	WindowAge float64       `json:"window_age"`         // seconds since the last window came; negative if none has

	RefusedAge *float64 `json:"refused_age,omitempty"` // seconds since the monitor began to refuse windows of the machine; left out if it does not
	Models     *Models  `json:"models,omitempty"`      // left out if they are not known
}

type layoutJSON struct {
	Name        string           `json:"name"`
	Fingerprint string           `json:"fingerprint"`
	Channels    []signal.Channel `json:"channels"`
}

func wireLayout(l *signal.Layout) layoutJSON {
	return layoutJSON{l.Name(), l.Fingerprint(), l.Channels()}
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
	Bare     bool       `json:"without_samples,omitempty"` // the gateway has them
	RMS      floats     `json:"rms"`                       // one per channel, or none
	Status   []string   `json:"status"`                    // word of NE 107, one per channel
	Flags    [][]string `json:"flags"`                     // what is wrong, one list per channel
	Envelope []floats   `json:"envelope"`                  // new (min, max) pairs, one list per channel, the newest last
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
	machine                                 uint64 // its number; 0 if there is none
	windows, results, alerts, advised, kept uint64 // of the machine
	events, changes, layouts                uint64 // of the hub
}

// id returns the cursor as the id of an event, see Hub.resume.
func (h *Hub) id(c cursor) string {
	return fmt.Sprintf("%s-%d-%d-%d-%d-%d-%d-%d-%d-%d", h.boot, c.machine, c.windows, c.results, c.alerts, c.advised, c.kept, c.events, c.changes, c.layouts)
}

// resume returns the cursor that id names, and false if id is not of this hub.
// It does not trust id, see Hub.since.
func (h *Hub) resume(id string) (cursor, bool) {
	var c cursor
	rest, ok := strings.CutPrefix(id, h.boot)
	if !ok {
		return c, false
	}
	_, err := fmt.Sscanf(rest, "-%d-%d-%d-%d-%d-%d-%d-%d-%d", &c.machine, &c.windows, &c.results, &c.alerts, &c.advised, &c.kept, &c.events, &c.changes, &c.layouts)
	return c, err == nil
}

// choose returns the machine that a request wants to see: the one it names, or the
// one that an alarm is of, or else the first by name; empty if there is none.
func (h *Hub) choose(q url.Values) string {
	if name := q.Get("machine"); name != "" {
		return name
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	names := slices.Sorted(maps.Keys(h.machines))
	if incident := q.Get("alarm"); incident != "" {
		for _, name := range names {
			if h.machines[name].holds(incident) {
				return name
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// since returns what is new of the hub and of a machine after c, and the cursor that
// follows it. It reports false if some of it is forgotten, if c is of another machine or
// layout, or if no page can have come to c; the page must then start from a snapshot.
func (h *Hub) since(c cursor, name string) (update, cursor, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, total := h.at(name)
	beyond := c.windows > total.windows || c.results > total.results || c.alerts > total.alerts || c.advised > total.advised || c.kept > total.kept ||
		c.events > total.events || c.changes > total.changes || c.layouts > total.layouts
	forgotten := c.results < m.results.first() || c.alerts < m.alerts.first() || c.advised < m.advised.first() || c.kept < m.kept.first()
	if c.machine != total.machine || c.windows < m.layoutFrom || beyond || forgotten || c.events < h.removed {
		return update{}, c, false
	}
	u := h.update(m, c)
	if c.changes < h.changes {
		s := h.status
		u.Status = &s
	}
	return u, total, true
}

// snapshot returns all that the hub holds of a machine, the list of all machines,
// and the cursor that follows it.
func (h *Hub) snapshot(name string) (snapshot, cursor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, total := h.at(name)
	s := h.status
	u := h.update(m, cursor{results: m.results.first(), alerts: m.alerts.first(), advised: m.advised.first(), kept: m.kept.first()})
	u.Status = &s
	return snapshot{
		Title: h.title, Layout: h.layoutOf(m), Pairs: Pairs, Keep: keptResults, Limit: h.limit,
		Commands: h.control != nil, InsecureModels: h.insecure, update: u,
	}, total
}

// layoutOf returns the layout of a machine. It is never null in JSON: pages that were
// opened before machines had layouts of their own read its channels.
func (h *Hub) layoutOf(m *machine) layoutJSON {
	switch {
	case m.layout != nil:
		return m.layout.layoutJSON
	case m.number == 0 && h.layout != nil:
		return wireLayout(h.layout) // no window of it came
	}
	return layoutJSON{Channels: []signal.Channel{}}
}

// at returns a machine, and the cursor of a page that has seen all of it. A machine
// that the hub does not hold has nothing to show. h.mu must be held.
func (h *Hub) at(name string) (*machine, cursor) {
	m := h.machines[name]
	if m == nil {
		m = &machine{name: name}
	}
	return m, cursor{m.number, m.windows, m.results.total, m.alerts.total, m.advised.total, m.kept.total, h.events, h.changes, h.laidOut}
}

// update returns the machines and layouts that are new after c, and the windows, results, alerts,
// advisories and evidences of m from c on, which must be held. h.mu must be held.
func (h *Hub) update(m *machine, c cursor) update {
	u := update{
		Machine: m.name, Machines: h.list(c.events), Layouts: h.layoutsAfter(c.layouts), Crowded: !h.refused.IsZero() && h.now().Sub(h.refused) < idleAfter,
		Results: m.results.since(c.results), Alerts: m.alerts.since(c.alerts), Advisories: m.advised.since(c.advised), Evidence: m.kept.since(c.kept),
		WindowAge: h.age(m.lastWindowAt), ResultAge: h.age(m.lastResultAt),
	}
	if c.windows < m.windows {
		u.Window = m.windowsSince(c.windows)
	}
	return u
}

// layoutsAfter returns the layouts with a higher number, in the order of their numbers.
// h.mu must be held.
func (h *Hub) layoutsAfter(number uint64) (all []layoutJSON) {
	if number == h.laidOut {
		return nil
	}
	for _, l := range slices.SortedFunc(maps.Values(h.layouts), func(a, b *layout) int { return cmp.Compare(a.number, b.number) }) {
		if l.number > number {
			all = append(all, l.layoutJSON)
		}
	}
	return all
}

// list returns the machines that changed after so many events, by name. h.mu must be
// held.
func (h *Hub) list(events uint64) (all []machineJSON) {
	for _, m := range h.machines {
		if m.event <= events {
			continue
		}
		j := machineJSON{Name: m.name, Layout: m.fingerprint(), WindowAge: h.age(m.lastWindowAt), Models: m.models}
		j.Alarm, j.Incident = m.standing()
		if !m.refusedAt.IsZero() {
			age := h.age(m.refusedAt)
			j.RefusedAge = &age
		}
		if m.lastResult != nil {
			j.Verdict, j.Span = m.lastResult.Verdict, max(0, m.lastResult.End.Sub(m.lastResult.Start).Seconds())
		}
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b machineJSON) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// age returns how many seconds ago t was, or a negative number if t is zero.
func (h *Hub) age(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return max(0, h.now().Sub(t).Seconds())
}

// windowsSince returns the last window with the pairs of all windows from
// number i on, as far as they are held. There must be a window.
func (m *machine) windowsSince(i uint64) *windowJSON {
	last := &m.newest
	w := &windowJSON{
		Machine: last.Machine, Tool: last.Tool, Hole: last.Hole,
		Epoch: last.Epoch, Seq: last.Seq, Start: last.Start, Bare: m.bare,
		RMS: append(floats{}, last.RMS...),
	}
	for _, q := range last.Quality {
		w.Status = append(w.Status, sensorStatus(q))
		w.Flags = append(w.Flags, append([]string{}, q.Names()...))
	}
	for ch := range m.pairs {
		pairs := floats{}
		for n := m.pairs[ch].first(); n < m.pairs[ch].total; n++ {
			if p := m.pairs[ch].at(n); p.window >= i {
				pairs = append(pairs, p.lo, p.hi)
			}
		}
		w.Envelope = append(w.Envelope, pairs)
	}
	return w
}
