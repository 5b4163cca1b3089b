package web

import (
	"cmp"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// machine is what a hub keeps of one machine.
type machine struct {
	name   string
	number uint64 // of all machines that came: tells it from one of the same name before
	event  uint64 // of the hub, that changed it last

	layout       *layoutJSON  // of the last window; nil if it is not known
	layoutFrom   uint64       // a page that has seen fewer windows does not know layout
	windows      uint64       // that came
	newest       Window       // without its layout and its envelopes
	bare         bool         // newest came without samples
	pairs        []ring[pair] // one per channel of layout
	lastWindowAt time.Time    // when it came; zero if none did

	models *Models // nil if they are not known; never changed, only replaced
	facts  Facts   // of the last result's model

	results      ring[keptResult]
	lastResult   *event.Result  // that was not late
	sensors      []event.Sensor // of the last result: channels that cannot be trusted
	lastResultAt time.Time      // when the last one came, late or not
	lastWear     *event.Wear    // of the tool that is in; nil if it is not known
	wearUnknown  bool           // the model estimates wear, but not now
	ledger       *event.Ledger  // of the samples of its source, the last one; nil if none came

	verdicts uint64 // results that were not late
	strip    []byte // letters of the last of them, the oldest first

	alerts     ring[event.Alert]
	lastChange *event.Alert // the last one that says the state of the alarm
	raised     *event.Alert // the last one that raised the alarm
	advised    ring[event.Advisory]
	open       []event.Advisory // open ones, the oldest first
	kept       ring[event.Evidence]
	tools      summary.ToolAlarms
	remembered map[string]bool // ids of alerts and advisories that Remember brought and that have not come since
	refusedAt  time.Time       // since when the monitor refuses the machine's windows; zero if it does not

	spectra spectra

	sent *Tile // as the last frame of the fleet has it; nil if none has the machine
}

// pair is the least and the greatest sample of a stretch.
type pair struct {
	lo, hi float32
	window uint64 // that it is of: the first is 0
}

func newMachine(name string, number uint64, l *layoutJSON) *machine {
	m := &machine{
		name: name, number: number, layout: l,
		results: newRing[keptResult](keptResults), alerts: newRing[event.Alert](keptAlerts),
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
		m.pairs = append(m.pairs, newRing[pair](pairs))
	}
}

// dropSamples forgets what only a page shows that looks at the machine.
func (m *machine) dropSamples() {
	m.clearPairs()
	m.newest.RMS = nil
	m.spectra.samples = nil
}

// setLayout makes l the layout of the machine from its next window on.
func (m *machine) setLayout(l *layoutJSON) {
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
	bare := len(w.Envelope) == 0 && len(w.RMS) == 0 && len(w.Samples) == 0
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
	m.newest.Layout, m.newest.Envelope, m.newest.Samples, m.newest.RMS, m.newest.Quality = nil, nil, nil, rms, quality
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

// inMagazine reports whether an alarm is open and its tool is not in the spindle.
func (m *machine) inMagazine(a summary.ToolAlarm) bool {
	_, inSpindle := m.standing()
	return a.Incident != "" && a.Incident != inSpindle && (m.lastResult == nil || a.Tool != m.lastResult.Tool)
}

// calls returns 1 if the alarm of the machine calls people, else 0.
func (m *machine) calls() int {
	if word, _ := m.standing(); calls(word) {
		return 1
	}
	return 0
}

// before reports whether m gives way to another machine sooner than o.
func (m *machine) before(o *machine) bool {
	_, a := m.standing()
	_, b := o.standing()
	if a == "" != (b == "") {
		return a == ""
	}
	return cmp.Or(m.seenAt().Compare(o.seenAt()), cmp.Compare(m.event, o.event)) < 0
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
		if n := len(r.slots); n == cap(r.slots) {
			r.slots = append(make([]T, 0, min(2*n+1, r.size)), r.slots...) // append alone takes more than the ring holds
		}
		r.slots = r.slots[:len(r.slots)+1]
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

// remove removes the values that are meant. Pages that have seen some of the values start from a
// snapshot: those that stay get new numbers.
func (r *ring[T]) remove(meant func(*T) bool) {
	stay := slices.DeleteFunc(r.since(r.first()), func(v T) bool { return meant(&v) })
	r.slots, r.total = nil, (r.total/uint64(r.size)+1)*uint64(r.size)
	for _, v := range stay {
		*r.next() = v
	}
}

// since returns a copy of the values from number i on.
func (r *ring[T]) since(i uint64) []T {
	values := make([]T, 0, r.total-i)
	for ; i < r.total; i++ {
		values = append(values, *r.at(i))
	}
	return values
}

// judge adds a result. It reports false if the machine has it already.
func (m *machine) judge(r event.Result, at time.Time) bool {
	if m.repeats(&r) {
		return false
	}
	*m.results.next() = keep(&r)
	if at.After(m.lastResultAt) {
		m.lastResultAt = at
	}
	if r.Ledger != nil {
		m.ledger, r.Ledger = r.Ledger, nil
	}
	if r.Late {
		return true
	}
	m.tools.Result(&r, at)
	if m.lastResult != nil && r.Between() {
		r.Tool, r.ToolLife = m.lastResult.Tool, m.lastResult.ToolLife // it is in
	}
	m.wear(&r)
	m.sensors = r.Sensors
	r.Sensors, r.Ranges, r.ID = nil, nil, ""
	m.lastResult = &r
	m.strip = append(m.strip, summary.StripLetter(r.Verdict))
	m.strip = m.strip[max(0, len(m.strip)-summary.MaxStrip):]
	m.verdicts++
	return true
}

// repeats reports whether the machine has a result already, as far as its results are kept.
func (m *machine) repeats(r *event.Result) bool {
	if r.Late {
		return m.results.has(func(k *keptResult) bool { return k.seq == r.Seq && k.of.Value().epoch == r.Epoch })
	}
	last := m.lastResult
	return last != nil && last.Epoch == r.Epoch && r.Seq <= last.Seq
}

// wear takes what a result says of the wear of the tool. Without a word of it, as between
// holes, the wear stays, unless the tool was changed or its reference is made again.
func (m *machine) wear(r *event.Result) {
	last := m.lastResult
	if last != nil && (last.Tool != r.Tool || r.ToolLife != "" && last.ToolLife != r.ToolLife) || r.Verdict == event.Learning {
		m.lastWear, m.wearUnknown = nil, false
	}
	switch {
	case r.Wear != nil:
		m.lastWear, m.wearUnknown = r.Wear, false
	case r.WearUnknown:
		m.lastWear, m.wearUnknown = nil, true
	}
}

// seenAt returns when the last window or result came; zero if none did.
func (m *machine) seenAt() time.Time {
	if m.lastWindowAt.After(m.lastResultAt) {
		return m.lastWindowAt
	}
	return m.lastResultAt
}

// alarmSince returns since when the condition of the open alarm is there, nil if none is open
// or it is not known.
func (m *machine) alarmSince() *time.Time {
	_, incident := m.standing()
	for _, a := range []*event.Alert{m.raiser(incident), m.lastChange} {
		if incident != "" && a != nil && a.Incident == incident {
			return known(a.Since)
		}
	}
	return nil
}

// raiser returns the alert that raised an alarm last, nil if it is not kept. The alert of a tool that is back may be far behind.
func (m *machine) raiser(incident string) *event.Alert {
	if m.raised != nil && m.raised.Incident == incident {
		return m.raised
	}
	for i := m.alerts.total; incident != "" && i > m.alerts.first(); i-- { // most tiles have none
		if a := m.alerts.at(i - 1); a.Incident == incident && (a.State == event.Raised || a.State == event.Reactivated) {
			return a
		}
	}
	return nil
}

// isNew reports whether an event has not come yet, as far as events are kept. One that Remember
// brought comes from the topic once more, after older ones: it moves behind them and sets the
// state again.
func isNew[E any](m *machine, r *ring[E], id string, isIt func(*E) bool) bool {
	has, remembered := r.has(isIt), m.remembered[id]
	delete(m.remembered, id)
	if has && remembered {
		r.remove(isIt)
	}
	return !has || remembered
}

// alert adds an alert. It reports false if the machine has it already.
func (m *machine) alert(a event.Alert, at time.Time) bool {
	if !isNew(m, &m.alerts, a.ID, func(x *event.Alert) bool { return x.ID == a.ID }) {
		return false
	}
	*m.alerts.next() = a
	m.tools.Alert(&a, at)
	m.shorten()
	if a.Alarm != "" && !a.Aside() && !isBefore(&a, m.lastChange) {
		m.lastChange = &a
	}
	switch a.State {
	case event.Raised, event.Reactivated:
		if !isBefore(&a, m.raised) {
			m.raised = &a
		}
	case event.ToolIsNew:
		if !m.passed(&a) {
			m.lastWear, m.wearUnknown = nil, false
		}
	}
	return true
}

// passed reports whether the last result came after a or is of another tool: older alerts are read again after a restart.
func (m *machine) passed(a *event.Alert) bool {
	r := m.lastResult
	return r != nil && (r.Tool != a.Tool || r.Epoch == a.Epoch && r.Seq > a.Seq)
}

// isBefore reports whether a was sent before b for sure: they are of one epoch. Their times do
// not say it, which come from several clocks.
func isBefore(a, b *event.Alert) bool { return b != nil && a.Epoch == b.Epoch && a.Seq < b.Seq }

// shorten leaves traces and reasons to the last alerts only: they take the most memory. Whole
// alerts of the past are at Config.Alarm.
func (m *machine) shorten() {
	long := 0
	for i := m.alerts.total; i > m.alerts.first(); i-- {
		a := m.alerts.at(i - 1)
		if a.Trace == nil && a.Reasons == nil {
			continue
		}
		if long++; long > longAlerts {
			a.Trace, a.Reasons = nil, nil
			return // those before were shortened already
		}
	}
}

// advise adds an advisory. It reports false if the machine has it already.
func (m *machine) advise(a event.Advisory) bool {
	if !isNew(m, &m.advised, a.ID, func(x *event.Advisory) bool { return x.ID == a.ID }) {
		return false
	}
	*m.advised.next() = a
	m.open = slices.DeleteFunc(slices.Clone(m.open), func(x event.Advisory) bool { return x.Kind == a.Kind && x.Subject == a.Subject })
	if a.State != event.Cleared && len(m.open) < openAdvisories {
		m.open = append(m.open, a)
	}
	if a.Kind == event.RefusedAdvisory {
		if m.refusedAt = (time.Time{}); a.State == event.Raised {
			m.refusedAt = a.Since
		}
	}
	return true
}
