package route

import (
	"maps"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/internal/event"
)

// standing is how a machine stands, as far as events have said.
type standing struct {
	machine    string
	last       *Event            // alert; nil if there was none
	raised     *Event            // alert that says why, while an alarm stands
	advisories map[string]*Event // that stand, by kind and subject
}

// apply takes an event into account. It reports whether it may have changed
// anything.
func (s *standing) apply(e *Event) bool {
	switch e.Type {
	case alertType:
		if e.marks() {
			return false
		}
		s.last = e
		if !e.stands() {
			s.raised = nil
		} else if s.raised == nil || e.State == "raised" || e.State == "reactivated" {
			s.raised = e
		}
		return true
	case advisoryType:
		if e.State == "cleared" {
			delete(s.advisories, e.topic())
		} else {
			s.advisories[e.topic()] = e
		}
		return true
	}
	return false
}

// topic is what an advisory is about, beside its machine.
func (e *Event) topic() string { return e.Kind + "/" + e.Subject }

// stands reports whether an alarm stands after an alert, masked or not.
func (e *Event) stands() bool {
	switch e.Alarm {
	case "normal":
		return false
	case "":
		return e.State != "cleared" // of older monitors
	case "shelved", "suppressed", "out_of_service":
		return e.Incident != ""
	}
	return true
}

// marks reports whether an alert only says something of an alarm, which may be over.
func (e *Event) marks() bool { return event.AlertState(e.State).Marks() }

// calls reports whether people are to be called for an alert: its alarm stands and
// is not masked. An alarm that was acknowledged stands.
func (e *Event) calls() bool {
	switch e.Alarm {
	case "shelved", "suppressed", "out_of_service":
		return false
	}
	return e.stands()
}

// picture is how the machines of partitions stand. Its lock is held while the
// receiver is told, so that it hears things in order.
type picture struct {
	mu         sync.Mutex
	machines   map[string]*standing
	partitions map[int][]string // machines of each partition at hand
}

func newPicture() *picture {
	return &picture{machines: make(map[string]*standing), partitions: make(map[int][]string)}
}

// take makes the machines of a partition those of the events. The caller holds the
// lock here and below.
func (p *picture) take(partition int, events []*Event) {
	p.drop(partition)
	p.partitions[partition] = []string{}
	for _, e := range events {
		p.of(partition, e.Machine).apply(e)
	}
}

// of returns how a machine stands, which may be new.
func (p *picture) of(partition int, machine string) *standing {
	s := p.machines[machine]
	if s == nil {
		s = &standing{machine: machine, advisories: make(map[string]*Event)}
		p.machines[machine] = s
		p.partitions[partition] = append(p.partitions[partition], machine)
	}
	return s
}

// in returns how the machines of a partition stand, in the order of their names.
func (p *picture) in(partition int) (all []*standing) {
	for _, name := range slices.Sorted(slices.Values(p.partitions[partition])) {
		all = append(all, p.machines[name])
	}
	return all
}

// all returns how all machines stand, in the order of their names.
func (p *picture) all() (all []*standing) {
	for _, name := range slices.Sorted(maps.Keys(p.machines)) {
		all = append(all, p.machines[name])
	}
	return all
}

func (p *picture) drop(partition int) {
	for _, machine := range p.partitions[partition] {
		delete(p.machines, machine)
	}
	delete(p.partitions, partition)
}

// sorted returns the advisories that stand, in the order of what they are about.
func (s *standing) sorted() (all []*Event) {
	for _, topic := range slices.Sorted(maps.Keys(s.advisories)) {
		all = append(all, s.advisories[topic])
	}
	return all
}
