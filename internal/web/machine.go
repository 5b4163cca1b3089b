package web

import (
	"cmp"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// machine is what a hub keeps of one machine.
type machine struct {
	name   string
	number uint64 // of all machines that came: tells it from one of the same name before
	event  uint64 // of the hub, that changed it last

	layout       *layout      // of the last window; nil if it is not known
	layoutFrom   uint64       // a page that has seen fewer windows does not know layout
	windows      uint64       // that came
	newest       Window       // without its layout and its envelopes
	bare         bool         // newest came without samples
	pairs        []ring[pair] // one per channel of layout
	lastWindowAt time.Time    // when it came; zero if none did

	models *Models // nil if they are not known; never changed, only replaced

	results      ring[event.Result]
	lastResult   *event.Result // that was not late
	lastResultAt time.Time     // when the last one came, late or not

	alerts     ring[event.Alert]
	lastChange *event.Alert // the last one that says the state of the alarm
	advised    ring[event.Advisory]
	kept       ring[event.Evidence]
	refusedAt  time.Time // when an advisory came that the monitor refuses the machine's windows; zero if it is not open
}

// pair is the least and the greatest sample of a stretch.
type pair struct {
	lo, hi float32
	window uint64 // that it is of: the first is 0
}

// layout is a layout of machines of a hub, as pages get it.
type layout struct {
	layoutJSON
	number uint64 // of all layouts that came
}

func newMachine(name string, number uint64, l *layout) *machine {
	m := &machine{
		name: name, number: number, layout: l,
		results: newRing[event.Result](keptResults), alerts: newRing[event.Alert](keptAlerts),
		advised: newRing[event.Advisory](keptAlerts), kept: newRing[event.Evidence](keptAlerts),
	}
	m.clearPairs()
	return m
}

// clearPairs forgets the pairs of all channels.
func (m *machine) clearPairs() {
	m.pairs = nil
	if m.layout == nil {
		return
	}
	for range m.layout.Channels {
		m.pairs = append(m.pairs, newRing[pair](Pairs))
	}
}

// setLayout makes l the layout of the machine from its next window on.
func (m *machine) setLayout(l *layout) {
	m.layout, m.layoutFrom = l, m.windows+1
	m.clearPairs()
}

// fingerprint returns the fingerprint of the machine's layout, or "" if that is not known.
func (m *machine) fingerprint() string {
	if m.layout == nil {
		return ""
	}
	return m.layout.Fingerprint
}

// window copies a window of the machine's layout. It leaves out slices of another length.
func (m *machine) window(w Window) {
	bare := len(w.Envelope) == 0 && len(w.RMS) == 0
	if bare && !m.bare {
		m.clearPairs()
	}
	m.bare = bare
	n := len(m.pairs)
	if len(w.Envelope) != n {
		w.Envelope = nil
	}
	if len(w.RMS) != n {
		w.RMS = nil
	}
	if len(w.Quality) != n {
		w.Quality = nil
	}
	for ch, x := range w.Envelope {
		for i := 0; i+1 < len(x); i += 2 {
			*m.pairs[ch].next() = pair{x[i], x[i+1], m.windows}
		}
	}
	rms, quality := append(m.newest.RMS[:0], w.RMS...), append(m.newest.Quality[:0], w.Quality...)
	m.newest = w
	m.newest.Layout, m.newest.Envelope, m.newest.RMS, m.newest.Quality = nil, nil, rms, quality
	m.windows++
}

// standing returns the state of the machine's alarm in a word, and the incident if an
// alarm is open. It is the state of the last result, or of an alert since: a machine
// that is idle has no results, and people acknowledge its alarm all the same.
func (m *machine) standing() (alarm, incident string) {
	a, r := m.lastChange, m.lastResult
	switch {
	case a == nil && r == nil:
		return "", ""
	case a == nil, r != nil && (a.Epoch != r.Epoch || a.Seq < r.Seq):
		return r.Alarm, r.Incident
	case a.State == event.Cleared || a.Alarm == "normal":
		return a.Alarm, "" // an alert names the alarm that it ends
	}
	return a.Alarm, a.Incident
}

// before reports whether m gives way to another machine sooner than o.
func (m *machine) before(o *machine) bool {
	_, a := m.standing()
	_, b := o.standing()
	if a == "" != (b == "") {
		return a == ""
	}
	return cmp.Or(m.lastWindowAt.Compare(o.lastWindowAt), cmp.Compare(m.event, o.event)) < 0
}

// holds reports whether an alert that is kept names the incident.
func (m *machine) holds(incident string) bool {
	return m.alerts.has(func(a *event.Alert) bool { return a.Incident == incident })
}

// ring holds the last size of total values, which are numbered from 0. It takes
// memory for those that came.
type ring[T any] struct {
	size  int
	slots []T
	total uint64
}

func newRing[T any](size int) ring[T] { return ring[T]{size: size} }

// next returns the slot of the next value, which may hold an old one.
func (r *ring[T]) next() *T {
	if len(r.slots) < r.size {
		var none T
		r.slots = append(r.slots, none)
	}
	r.total++
	return r.at(r.total - 1)
}

// at returns value i, which must be in [first, total).
func (r *ring[T]) at(i uint64) *T { return &r.slots[i%uint64(r.size)] }

// first returns the number of the oldest value that is still held.
func (r *ring[T]) first() uint64 { return r.total - uint64(len(r.slots)) }

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
