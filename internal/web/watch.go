package web

import "time"

// lookFor is how long a machine counts as looked at after a page asked for it or was closed:
// pages that poll do not stream, and pages that lose their stream come back.
const lookFor = 15 * time.Second

// watch says for how long pages look at a machine.
type watch struct {
	pages int       // that are open now
	until time.Time // it counts as looked at until then, also without a page
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
		h.watches[machine] = new(watch)
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
