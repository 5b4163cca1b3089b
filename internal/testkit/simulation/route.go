package simulation

import "fmt"

// route takes the alerts of the first group to a receiver. It is a model of what package
// internal/route does: an alert is tried until the receiver has it, and only then is the
// position moved on.
type route struct {
	w      *world
	g      *group      // whose alerts it takes
	at     map[int]int // committed, by partition
	reader *reader     // that has the partitions

	down int64           // the receiver takes nothing until then
	got  map[string]bool // ids of alerts that the receiver has
	last map[string]int  // number of the last alert that was new to it, by machine and partition
}

// reader is one life of a route. One that was suspended and has lost its partitions may
// deliver once more, and can commit nothing.
type reader struct {
	process
	r     *route
	dead  bool
	told  map[int]*[logs]int
	next  map[int]int     // by partition: offset of the alert that is tried
	known map[string]bool // ids that it has delivered
}

func newRoute(w *world, g *group) *route {
	r := &route{w: w, g: g, at: make(map[int]int), got: make(map[string]bool), last: make(map[string]int)}
	r.start()
	return r
}

// start gives the partitions to a new reader.
func (r *route) start() {
	d := &reader{process: process{name: "route"}, r: r, told: make(map[int]*[logs]int), next: make(map[int]int), known: make(map[string]bool)}
	r.reader = d
	for part := range r.w.broker.parts {
		d.next[part], d.told[part] = r.at[part], new([logs]int)
		r.w.after(r.w.latency(), &d.process, func() { d.fetch(part) })
	}
}

// trouble draws what goes wrong with readers and the receiver in a second.
func (r *route) trouble() {
	w, d := r.w, r.reader
	switch {
	case w.fault(0.01, "kill the route", ""):
		d.life++
		d.dead = true
		r.start()
	case w.fault(0.005, "freeze the route", ""):
		w.freeze(&d.process, w.now+1000+w.rng.Int64N(20000))
		w.after(session, nil, func() {
			if d == r.reader && d.frozen > w.now {
				w.say("another route takes over")
				r.start()
			}
		})
	}
	if w.fault(0.01, "the receiver is down", "") {
		r.down = w.now + 1000 + w.rng.Int64N(20000)
	}
}

// lost is called when the logs of a partition have lost their tails.
func (r *route) lost(part int) {
	if r.w.rng.IntN(2) == 0 {
		r.at[part] = max(0, r.at[part]-r.w.rng.IntN(4)) // positions are in a log, too
	}
}

// fetch looks at the next alert of a partition. It waits behind a transaction that is
// open.
func (d *reader) fetch(part int) {
	w := d.r.w
	log := w.broker.parts[part].alerts
	if !w.broker.isDown() {
		w.broker.parts[part].asked(alertLog, d.r.g, d.next[part], len(log), d.told[part])
		if d.next[part] > len(log) {
			w.say("the route: alert %d of partition %d is gone, going on at %d", d.next[part], part, len(log))
			d.next[part] = len(log)
		}
	}
	i := d.next[part]
	if i >= len(log) || w.broker.isDown() || !log[i].txn.committed && !log[i].txn.aborted && w.Bug != RouteReadsOpen {
		w.after(poll, &d.process, func() { d.fetch(part) })
		return
	}
	a := log[i]
	if a.txn.group != d.r.g || a.txn.aborted || d.known[a.ID] {
		d.commit(part, i+1)
		return
	}
	if w.Bug == RouteCommitsFirst && d == d.r.reader {
		d.r.at[part] = i + 1
	}
	d.try(part, i, a, 1)
}

// try takes an alert to the receiver until it has it.
func (d *reader) try(part, offset int, a alertRecord, times int) {
	w := d.r.w
	again := func() {
		if d.dead {
			return
		}
		w.after(min(int64(1000)<<(times-1), 60_000), &d.process, func() { d.try(part, offset, a, times+1) })
	}
	w.after(w.latency(), nil, func() {
		switch {
		case w.now < d.r.down, w.fault(0.01, "the receiver refuses", ""):
			again()
			return
		}
		d.r.receive(part, offset, a)
		if w.fault(0.01, "lost answer of the receiver", "") {
			again()
			return
		}
		if d.dead {
			return
		}
		w.after(w.latency(), &d.process, func() {
			d.known[a.ID] = true
			d.commit(part, offset+1)
		})
	})
}

// commit moves the position on, unless another reader has the partitions, and goes on.
func (d *reader) commit(part, next int) {
	w := d.r.w
	if w.broker.isDown() {
		w.after(1000, &d.process, func() { d.commit(part, next) })
		return
	}
	if d != d.r.reader {
		return
	}
	d.next[part] = next
	d.r.at[part] = next
	d.fetch(part)
}

// receive is the receiver's side: it knows alerts by their ids. Those that are new to it
// come in the order in which they lie in the log, but for what the broker has lost or a
// reader has passed over.
func (r *route) receive(part, offset int, a alertRecord) {
	if r.got[a.ID] {
		return
	}
	r.got[a.ID] = true
	r.w.say("the route delivers alert %d of partition %d, %s", offset, part, a.ID)
	if !a.txn.committed {
		r.w.fail("the route delivers %s, which was not committed", a.ID)
	}
	p := r.w.broker.parts[part]
	if offset >= len(p.alerts) || p.alerts[offset].number != a.number || p.hidden(alertLog, r.g, offset) {
		return
	}
	key := fmt.Sprint(a.Machine, " ", part)
	if a.number < r.last[key] {
		r.w.fail("the route delivers %s behind a later alert of the machine", a.ID)
	}
	r.last[key] = a.number
}

// idle reports whether no alert waits to be delivered.
func (r *route) idle() bool {
	for part, p := range r.w.broker.parts {
		if r.reader.next[part] < len(p.alerts) {
			return false
		}
	}
	return true
}

// end checks that every alert was delivered.
func (r *route) end() {
	for _, p := range r.w.broker.parts {
		for i, a := range p.alerts {
			if a.txn.group == r.g && a.txn.committed && !r.got[a.ID] && !p.hidden(alertLog, r.g, i) {
				r.w.fail("alert %s was not delivered", a.ID)
			}
		}
	}
}
