package web

import (
	"cmp"
	"crypto/rand"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

// What a hub keeps of a machine for pages that open later.
const (
	keptResults = 600 // ten minutes of one-second windows
	keptAlerts  = 50  // and so many advisories and evidences
	longAlerts  = 4   // of them, those that still say why they were raised
)

// Bounds of how many machines a hub keeps.
const (
	maxMachines = 500
	idleAfter   = time.Minute // without a window or a result, after which a machine may give way to another
)

// Hub keeps what pages show and wakes them when it changes; its server answers what they ask. Its methods are
// safe for concurrent use and never wait for a page.
//
// A hub keeps every machine apart, and at most 500 of them. When another one
// comes, it takes the place of the machine whose last window or result came longest
// ago, but only if that was a minute ago; machines with an open alarm are the last to
// go. If there is none, the new machine is not shown, and pages say so.
//
// A machine of the gun drill's 14 channels takes some 80 kB after ten minutes, and 150 kB with all
// the alerts that a hub keeps: 40 to 75 MB for 500 machines. The waveforms of a
// machine are kept only while a page looks at it, and add 1.2 MB then.
type Hub struct {
	layout   *signal.Layout // of machines whose windows name none; may be nil
	server   server
	facts    func(machine, model string) Facts
	learning sync.Mutex                              // held while the usual spectrum of a tool is computed
	keep     func(machine string, data []byte) error // the usual spectrum; nil: it is not kept
	recall   func(machine string) ([]byte, error)
	latency  latencies

	boot  string           // differs between this hub and the one before a restart
	now   func() time.Time // replaced by tests
	limit int              // of machines; likewise

	mu       sync.Mutex
	machines map[string]*machine // by name
	numbered uint64              // machines that ever came
	layouts  layouts
	events   uint64    // of all machines
	removed  uint64    // events when a machine last gave way
	alarms   int       // machines with an alarm that calls
	refused  time.Time // when there was last no place for a machine
	status   Status
	changes  uint64                     // of status
	pages    map[chan struct{}]struct{} // each holds at most one wake-up
	watches  map[string]*watch          // machines that pages look at, by name
	frames   frames                     // of the page of the fleet
}

// NewHub returns a hub without machines, in the phase Starting.
func NewHub(cfg Config) *Hub {
	h := &Hub{
		layout: cfg.Layout,
		facts:  cfg.Facts,
		keep:   cfg.KeepUsualSpectrum, recall: cfg.UsualSpectrum,
		boot:     rand.Text()[:8],
		now:      time.Now,
		limit:    maxMachines,
		machines: make(map[string]*machine),
		layouts:  make(layouts),
		status:   Status{Phase: Starting, Fraction: -1},
		pages:    make(map[chan struct{}]struct{}),
		watches:  make(map[string]*watch),
	}
	cfg.Title = cmp.Or(cfg.Title, "Flank")
	h.server = server{h, cfg}
	return h
}

// Window shows a window. The hub copies it: the caller may use its slices
// again. The layout of the window is the machine's from then on.
func (h *Hub) Window(w Window) {
	if w.Layout == nil {
		w.Layout = h.layout
	}
	watched := h.Watched(w.Machine)
	if watched && len(w.Samples) > 0 {
		w.Summarize(w.Samples)
	}
	h.change(w.Machine, func(m *machine) bool {
		h.setLayout(m, w.Layout)
		if !watched && len(w.Samples) > 0 {
			m.dropSamples()
		}
		m.window(w)
		m.spectra.take(&w, watched)
		m.lastWindowAt = h.now()
		return true
	})
	h.learn(&w)
}

// Models shows which models judge a machine. The hub keeps the slice of m, which must not
// change any more. A call with the models that the hub holds costs nothing. A machine that
// the hub does not hold comes into the list of machines if it has models and there is a
// free place.
func (h *Hub) Models(name string, m Models) {
	h.mu.Lock()
	noPlace := h.machines[name] == nil && (m.equal(Models{}) || len(h.machines) >= h.limit)
	h.mu.Unlock()
	if noPlace {
		return
	}
	h.change(name, func(of *machine) bool {
		if of.models != nil && of.models.equal(m) || of.models == nil && m.equal(Models{}) {
			return false
		}
		held := m
		of.models = &held
		return true
	})
}

// Result shows the verdict on a window that has just come. The hub keeps r and its slices,
// which must not change any more. A result that the hub holds already is dropped.
func (h *Hub) Result(r event.Result) { h.ResultAt(r, h.now()) }

// ResultAt shows the verdict on a window as Result does. At is when it came, by a clock that
// agrees with this computer's: for a result that is read from Kafka later, the time of its
// message.
func (h *Hub) ResultAt(r event.Result, at time.Time) {
	if !(r.Score >= 0 && r.Score <= 1) || slices.ContainsFunc(r.Posterior, func(p float64) bool { return number(float32(p)) == nil }) {
		r.Score, r.Posterior = 0, nil // JSON has no word for them; a page must outlive a defect elsewhere
	}
	var facts Facts
	if h.facts != nil {
		facts = h.facts(r.Machine, r.Model)
	}
	h.change(r.Machine, func(m *machine) bool {
		if !m.judge(r, at) {
			return false
		}
		h.latency.add(r.End, at)
		m.facts = facts
		if facts.Layout != nil {
			h.setLayout(m, facts.Layout)
		}
		return true
	})
}

// Alert shows an alert that has just come. One whose id the hub holds already is dropped. One that
// says that the machine is retired takes the machine away.
func (h *Hub) Alert(a event.Alert) { h.AlertAt(a, h.now()) }

// AlertAt shows an alert as Alert does. At is when it came, as for ResultAt.
func (h *Hub) AlertAt(a event.Alert, at time.Time) {
	if a.State == event.Retired {
		h.retire(a.Machine)
		return
	}
	if !finite(a.Score) {
		a.Score = 0
	}
	h.change(a.Machine, func(m *machine) bool { return m.alert(a, at) })
}

// Advisory shows an advisory. One whose id the hub holds already is dropped, and so is
// the end of one of a machine that the hub does not hold. The hub keeps its flags, which
// must not change any more.
func (h *Hub) Advisory(a event.Advisory) {
	if a.State == event.Cleared && !h.holds(a.Machine) {
		return
	}
	h.change(a.Machine, func(m *machine) bool { return m.advise(a) })
}

// Evidence shows what became of the evidence of an alert. One whose id the hub holds
// already is dropped, and so is one of a machine that the hub does not hold.
func (h *Hub) Evidence(e event.Evidence) {
	if !h.holds(e.Machine) {
		return
	}
	h.change(e.Machine, func(m *machine) bool {
		if m.kept.has(func(x *event.Evidence) bool { return x.ID == e.ID }) {
			return false
		}
		*m.kept.next() = e
		return true
	})
}

// change calls fn with what is kept of a machine, and wakes the pages unless fn says
// that nothing changed. It drops an event that names no machine, and one of a new
// machine when the hub is full.
func (h *Hub) change(name string, fn func(*machine) bool) {
	if name == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.machine(name)
	if m == nil {
		h.refused = h.now()
		h.wake()
		return
	}
	called := m.calls()
	if !fn(m) {
		return
	}
	h.events++
	m.event = h.events
	h.alarms += m.calls() - called
	h.wake()
}

// machine returns the machine of that name, which may be new, or nil if the hub
// is full. h.mu must be held.
func (h *Hub) machine(name string) *machine {
	if m := h.machines[name]; m != nil {
		return m
	}
	if len(h.machines) >= h.limit && !h.makeRoom() {
		return nil
	}
	h.numbered++
	m := newMachine(name, h.numbered, h.layouts.of(h.layout))
	h.machines[name] = m
	return m
}

// layouts are those that machines have, by fingerprint.
type layouts map[string]*layoutJSON

// of returns l as all machines of that layout have it, or nil if l is nil.
func (all layouts) of(l *signal.Layout) *layoutJSON {
	if l == nil {
		return nil
	}
	if all[l.Fingerprint()] == nil {
		all[l.Fingerprint()] = &layoutJSON{l.Name(), l.Fingerprint(), l.Channels()}
	}
	return all[l.Fingerprint()]
}

// setLayout makes l the layout of a machine, unless it is. h.mu must be held.
func (h *Hub) setLayout(m *machine, l *signal.Layout) {
	if l == nil && m.layout == nil || l != nil && l.Fingerprint() == m.fingerprint() {
		return
	}
	m.setLayout(h.layouts.of(l))
	h.dropLayouts()
}

// dropLayouts forgets the layouts that no machine has. h.mu must be held.
func (h *Hub) dropLayouts() {
	used := make(map[*layoutJSON]bool)
	for _, m := range h.machines {
		used[m.layout] = true
	}
	maps.DeleteFunc(h.layouts, func(_ string, l *layoutJSON) bool { return !used[l] })
}

// makeRoom takes a machine away, as the comment of Hub says. It reports false if none
// may go. h.mu must be held.
func (h *Hub) makeRoom() bool {
	var oldest *machine
	for _, m := range h.machines {
		if h.now().Sub(m.seenAt()) >= idleAfter && (oldest == nil || m.before(oldest)) {
			oldest = m
		}
	}
	if oldest == nil {
		return false
	}
	h.remove(oldest.name)
	return true
}

// remove takes a machine away. h.mu must be held.
func (h *Hub) remove(name string) {
	if m := h.machines[name]; m != nil {
		h.alarms -= m.calls()
	}
	delete(h.machines, name)
	h.dropLayouts()
	h.events++
	h.removed = h.events
}

// retire takes a machine away, and with it what was known of it.
func (h *Hub) retire(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(name)
	h.wake()
}

// holds reports whether the hub holds a machine.
func (h *Hub) holds(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.machines[name] != nil
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

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// sensorStatus returns the word of NAMUR NE 107 for a channel.
func sensorStatus(q signal.Quality) string { return strings.ReplaceAll(q.Status(), "_", " ") }
