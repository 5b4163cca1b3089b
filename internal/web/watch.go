package web

import (
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// lookFor is how long a machine counts as looked at after a page asked for it or was closed:
// pages that poll do not stream, and pages that lose their stream come back.
const lookFor = 15 * time.Second

// watch says for how long pages look at a machine.
type watch struct {
	pages int       // that are open now
	until time.Time // it counts as looked at until then, also without a page
	since time.Time
}

// Watched reports whether a page looks at a machine. The samples of other machines' windows
// need not be looked at: no page shows them.
func (h *Hub) Watched(machine string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watched(machine)
}

// watched is Watched for a caller that holds h.mu.
func (h *Hub) watched(machine string) bool {
	w := h.watches[machine]
	return w != nil && (w.pages > 0 || h.now().Before(w.until))
}

// look notes that a page asks for a machine. h.mu must be held.
func (h *Hub) look(machine string) {
	if h.machines[machine] != nil {
		h.watchOf(machine).until = h.now().Add(lookFor)
	}
}

// watchOf returns the watch of a machine, which may be new. h.mu must be held.
func (h *Hub) watchOf(machine string) *watch {
	if h.watches[machine] == nil {
		h.watches[machine] = &watch{since: h.now()}
	}
	return h.watches[machine]
}

// beginWatch notes that a page was opened that looks at a machine, which need not be there yet.
func (h *Hub) beginWatch(machine string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchOf(machine).pages++
	h.sweep()
}

// endWatch notes that such a page was closed.
func (h *Hub) endWatch(machine string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.watches[machine]
	w.pages--
	w.until = h.now().Add(lookFor)
	h.sweep()
}

// unseenAfter is for how long a machine that a page looks at has no window before another program
// is thought to judge it.
const unseenAfter = 3 * time.Second

// Unseen returns machines that pages look at and of which no window has come from this program
// for some seconds: another one judges them, or none comes. They are in the order of their names.
// See Show.
func (h *Hub) Unseen() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweep()
	for _, name := range slices.Sorted(maps.Keys(h.watches)) {
		m, w := h.machines[name], h.watches[name]
		if m == nil || h.now().Sub(w.since) < unseenAfter || h.now().Sub(m.lastWindowAt) < unseenAfter {
			continue
		}
		names = append(names, name)
	}
	return names
}

// Show shows the last window, with its samples, of a machine that Unseen returned. The hub copies
// it. It does not count as one that has just come.
func (h *Hub) Show(w Window) {
	if !h.Watched(w.Machine) || len(w.Samples) == 0 || !h.holds(w.Machine) {
		return
	}
	w.Summarize(w.Samples)
	h.change(w.Machine, func(m *machine) bool {
		h.setLayout(m, w.Layout)
		w.Quality = m.quality()
		m.window(w)
		m.spectra.take(&w, true)
		return true
	})
}

// ShowBare shows that a machine which Unseen returned has results and no windows: its gateway
// keeps the samples. It does nothing if no result has come lately.
func (h *Hub) ShowBare(name string) {
	if !h.holds(name) {
		return
	}
	h.change(name, func(m *machine) bool {
		r := m.lastResult
		if r == nil || h.now().Sub(m.lastResultAt) > idleAfter || m.bare && m.newest.Epoch == r.Epoch && m.newest.Seq == r.Seq {
			return false
		}
		m.window(Window{Machine: name, Tool: r.Tool, Hole: r.Hole, Epoch: r.Epoch, Seq: r.Seq, Start: r.Start, Quality: m.quality()})
		return true
	})
}

// quality returns what is wrong with each channel by the last result; nil if the layout is not
// known.
func (m *machine) quality() []signal.Quality {
	if m.layout == nil {
		return nil
	}
	all := make([]signal.Quality, len(m.layout.Channels))
	for _, s := range m.sensors {
		i := slices.IndexFunc(m.layout.Channels, func(c signal.Channel) bool { return c.Name == s.Channel })
		if q, err := signal.ParseQuality(s.Flags); err == nil && i >= 0 {
			all[i] = q
		}
	}
	return all
}

// sweep forgets the machines that no page looks at any more, and what was kept of them for
// such pages alone. h.mu must be held.
func (h *Hub) sweep() {
	for name := range h.watches {
		if h.watched(name) {
			continue
		}
		delete(h.watches, name)
		if m := h.machines[name]; m != nil {
			m.dropSamples()
		}
	}
}
