package web

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
)

// machineJSON is everything that the page of a machine shows: the answer of /api/machines/{m}.
type machineJSON struct {
	*Tile
	Layout     *layoutJSON    `json:"layout,omitempty"` // left out if it is not known
	Pairs      int            `json:"pairs"`            // of (min, max) of a channel to keep
	Keep       int            `json:"keep"`             // results to keep
	Results    []resultJSON   `json:"results"`
	Alerts     []alertJSON    `json:"alerts"`
	Advisories []advisoryJSON `json:"advisories"` // those that came last, open and ended ones
	Evidence   []evidenceJSON `json:"evidence"`
	Window     *windowJSON    `json:"window,omitempty"` // the last one; left out if none came here
	Ledger     *event.Ledger  `json:"ledger,omitempty"` // what became of the samples of the last hour; left out if the gateway does not say it
}

// machineSnapshot is the data of the event "snapshot" of the page of a machine.
type machineSnapshot struct {
	pageHead
	Known   bool         `json:"known"` // false: nothing of the machine has come yet, and Machine is left out
	Machine *machineJSON `json:"machine,omitempty"`
}

// pageHead is what every page shows of the program.
type pageHead struct {
	Title          string    `json:"title"`
	Now            time.Time `json:"now"`
	Commands       bool      `json:"commands"`        // whether POST /api/commands is answered
	InsecureModels bool      `json:"insecure_models"` // the program accepts models without a signature
	Role           string    `json:"role"`
	Alarms         int       `json:"alarms"` // machines with an alarm that calls
	Status         Status    `json:"status"`
}

// machineUpdate is the data of the event "update" of the pages of a machine and of an alarm:
// what is new. The lists are added to the lists of the snapshot.
type machineUpdate struct {
	Now        time.Time      `json:"now"`
	Alarms     int            `json:"alarms"`
	Status     *Status        `json:"status,omitempty"`
	Tile       *Tile          `json:"tile,omitempty"`
	Ledger     *event.Ledger  `json:"ledger,omitempty"` // comes with the tile
	Window     *windowJSON    `json:"window,omitempty"`
	Results    []resultJSON   `json:"results,omitempty"`
	Alerts     []alertJSON    `json:"alerts,omitempty"`
	Advisories []advisoryJSON `json:"advisories,omitempty"`
	Evidence   []evidenceJSON `json:"evidence,omitempty"`
}

// alertJSON, advisoryJSON and evidenceJSON are events as pages get them: as on tcm.alerts.v1,
// without times that are not known.
type (
	alertJSON struct {
		event.Alert
		Since *time.Time `json:"since,omitempty"`
		At    *time.Time `json:"at,omitempty"`
	}
	advisoryJSON struct {
		event.Advisory
		Since *time.Time `json:"since,omitempty"`
		At    *time.Time `json:"at,omitempty"`
	}
	evidenceJSON struct {
		event.Evidence
		From *time.Time `json:"from,omitempty"`
		To   *time.Time `json:"to,omitempty"`
	}
)

func wireAlert(a event.Alert) alertJSON { return alertJSON{a, known(a.Since), known(a.At)} }

func wireAdvisory(a event.Advisory) advisoryJSON { return advisoryJSON{a, known(a.Since), known(a.At)} }

func wireEvidence(e event.Evidence) evidenceJSON { return evidenceJSON{e, known(e.From), known(e.To)} }

// wired returns events as pages get them.
func wired[E, J any](all []E, wire func(E) J) []J {
	out := make([]J, len(all))
	for i, e := range all {
		out[i] = wire(e)
	}
	return out
}

// layoutJSON is a layout of machines of a hub, as pages get it.
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
	Start    *time.Time `json:"start,omitempty"`
	Bare     bool       `json:"without_samples,omitempty"` // the gateway has them
	RMS      floats     `json:"rms"`                       // one per channel, or none
	Status   []string   `json:"status"`                    // word of NE 107, one per channel
	Flags    [][]string `json:"flags"`                     // what is wrong, one list per channel
	Envelope []floats   `json:"envelope"`                  // new (min, max) pairs, one list per channel, the newest last
}

// floats are numbers for a picture: four significant digits in JSON, and null
// for what is not finite. Of nil it is null.
type floats []float32

func (f floats) MarshalJSON() ([]byte, error) {
	if f == nil {
		return []byte("null"), nil
	}
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

// cursor says how much of a hub a page of a machine has seen: counts of values.
type cursor struct {
	machine                                 uint64 // its number; 0 if there is none
	windows, results, alerts, advised, kept uint64 // of the machine
	event                                   uint64 // of the hub, that changed the machine last
	changes                                 uint64 // of the status
}

// id returns the cursor as the id of an event, see Hub.resume.
func (x *server) id(c cursor) string {
	return fmt.Sprintf("%s-%d-%d-%d-%d-%d-%d-%d-%d", x.hub.boot, c.machine, c.windows, c.results, c.alerts, c.advised, c.kept, c.event, c.changes)
}

// resume returns the cursor that id names, and false if id is not of this hub.
// It does not trust id, see Hub.since.
func (x *server) resume(id string) (cursor, bool) {
	var c cursor
	rest, ok := strings.CutPrefix(id, x.hub.boot)
	if !ok {
		return c, false
	}
	_, err := fmt.Sscanf(rest, "-%d-%d-%d-%d-%d-%d-%d-%d", &c.machine, &c.windows, &c.results, &c.alerts, &c.advised, &c.kept, &c.event, &c.changes)
	return c, err == nil
}

// beyond reports whether no page can have come to c.
func (c cursor) beyond(total cursor) bool {
	return c.windows > total.windows || c.results > total.results || c.alerts > total.alerts || c.advised > total.advised || c.kept > total.kept ||
		c.event > total.event || c.changes > total.changes
}

// forgot reports whether the machine lacks some of what came after c, or had another layout then.
func (m *machine) forgot(c cursor) bool {
	return c.windows < m.layoutFrom || c.results < m.results.first() || c.alerts < m.alerts.first() || c.advised < m.advised.first() || c.kept < m.kept.first()
}

// since returns what is new of a machine after c, and the cursor that follows it. It reports
// false if some of it is forgotten, if c is of another machine or layout, or if no page can
// have come to c; the page must then start from a snapshot.
func (x *server) since(c cursor, name string) (machineUpdate, cursor, bool) {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	m, total := x.hub.at(name)
	if c.machine != total.machine || c.beyond(total) || m.forgot(c) {
		return machineUpdate{}, c, false
	}
	now := x.hub.now()
	u := machineUpdate{
		Now: now.UTC(), Alarms: x.hub.alarms,
		Results: m.resultsSince(c.results), Alerts: wired(m.alerts.since(c.alerts), wireAlert), Advisories: wired(m.advised.since(c.advised), wireAdvisory), Evidence: wired(m.kept.since(c.kept), wireEvidence),
	}
	if c.windows < m.windows {
		u.Window = m.windowsSince(c.windows)
	}
	if c.event < total.event {
		u.Tile, u.Ledger = m.tile(now), m.ledger
	}
	if c.changes < x.hub.changes {
		u.Status = ptr(x.hub.status)
	}
	return u, total, true
}

// snapshot returns all that the hub holds of a machine, and the cursor that follows it. The
// machine is nil if the hub does not hold it.
func (x *server) snapshot(name string) (*machineJSON, cursor) {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	m, total := x.hub.at(name)
	if m.number == 0 {
		return nil, total
	}
	j := &machineJSON{
		Tile: m.tile(x.hub.now()), Layout: m.layout, Ledger: m.ledger, Pairs: pairs, Keep: keptResults,
		Results: m.resultsSince(m.results.first()), Alerts: wired(m.alerts.since(m.alerts.first()), wireAlert),
		Advisories: wired(m.advised.since(m.advised.first()), wireAdvisory), Evidence: wired(m.kept.since(m.kept.first()), wireEvidence),
	}
	if m.windows > 0 {
		j.Window = m.windowsSince(0)
	}
	return j, total
}

// head returns what a page shows of the program.
func (x *server) head(r *http.Request) pageHead {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	return x.headAt(r, x.hub.now())
}

// headAt is head, where x.hub.mu is held.
func (x *server) headAt(r *http.Request, now time.Time) pageHead {
	return pageHead{
		Title: x.Title, Now: now.UTC(), Commands: x.Control != nil, InsecureModels: x.InsecureModels, Role: string(who(r).Role), Alarms: x.hub.alarms, Status: x.hub.status,
	}
}

// at returns a machine, and the cursor of a page that has seen all of it. A machine
// that the hub does not hold has nothing to show. h.mu must be held.
func (h *Hub) at(name string) (*machine, cursor) {
	m := h.machines[name]
	if m == nil {
		m = &machine{name: name}
	}
	return m, cursor{m.number, m.windows, m.results.total, m.alerts.total, m.advised.total, m.kept.total, m.event, h.changes}
}

// windowsSince returns the last window with the pairs of all windows from
// number i on, as far as they are held. There must be a window.
func (m *machine) windowsSince(i uint64) *windowJSON {
	last := &m.newest
	w := &windowJSON{
		Machine: last.Machine, Tool: last.Tool, Hole: last.Hole,
		Epoch: last.Epoch, Seq: last.Seq, Start: known(last.Start), Bare: m.bare,
		RMS: append(floats{}, last.RMS...), Status: []string{}, Flags: [][]string{}, Envelope: []floats{},
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
