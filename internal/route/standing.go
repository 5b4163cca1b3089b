package route

import (
	"maps"
	"slices"
	"sync"

	"github.com/flank-tcm/flank/internal/event"
)

// standing is the state of a machine, as the events so far give it.
type standing struct {
	machine    string
	last       *Event            // alert; nil if there was none
	raised     *Event            // alert with the reason of the open alarm, or of the last one
	advisories map[string]*Event // open ones, by kind and subject
	retired    bool              // nothing came of the machine since it was retired
	shownOn    int64             // number of the connection to an MQTT broker that has this state; 0 if none has
}

// apply adds an event to the state. It reports whether the state may have changed.
func (s *standing) apply(e *Event) bool {
	switch e.Type {
	case event.AlertType:
		if (&event.Alert{State: event.AlertState(e.State), Magazine: e.Magazine}).Aside() {
			return false
		}
		opens := s.last == nil || !s.last.stands() || e.State == "raised" || e.State == "reactivated"
		if s.last = e; opens && e.stands() {
			s.raised = e
		}
		s.retired, s.shownOn = e.State == string(event.Retired), 0
		return true
	case event.AdvisoryType:
		if e.State == "cleared" {
			delete(s.advisories, e.topic())
		} else {
			s.advisories[e.topic()], s.retired = e, false
		}
		s.shownOn = 0
		return true
	}
	return false
}

// topic is what an advisory of a machine is about.
func (e *Event) topic() string { return e.Kind + "/" + e.Subject }

// stands reports whether an alarm is open after an alert, masked or not.
func (e *Event) stands() bool {
	switch e.Alarm {
	case "normal":
		return false
	case "shelved", "suppressed", "out_of_service":
		return e.Incident != ""
	}
	return true
}

// calls reports whether an alert calls people: its alarm is open and not masked. An
// acknowledged alarm is open.
func (e *Event) calls() bool {
	switch e.Alarm {
	case "shelved", "suppressed", "out_of_service":
		return false
	}
	return e.stands()
}

// machineStates is the state of the machines of partitions. Its lock is held during a
// delivery, so that the receiver gets changes in order.
type machineStates struct {
	mu         sync.Mutex
	machines   map[string]*standing
	partitions map[int][]string // machines of each partition that this monitor has
}

func newMachineStates() *machineStates {
	return &machineStates{machines: make(map[string]*standing), partitions: make(map[int][]string)}
}

// take replaces the machines of a partition by the machines of the events. The caller
// holds the lock, here and below.
func (p *machineStates) take(partition int, events []*Event) {
	p.drop(partition)
	p.partitions[partition] = []string{}
	for _, e := range events {
		p.of(partition, e.Machine).apply(e)
	}
}

// of returns the state of a machine, which may be new.
func (p *machineStates) of(partition int, machine string) *standing {
	s := p.machines[machine]
	if s == nil {
		s = &standing{machine: machine, advisories: make(map[string]*Event)}
		p.machines[machine] = s
		p.partitions[partition] = append(p.partitions[partition], machine)
	}
	return s
}

// in returns the states of the machines of a partition, in the order of their names.
func (p *machineStates) in(partition int) (all []*standing) {
	for _, name := range slices.Sorted(slices.Values(p.partitions[partition])) {
		all = append(all, p.machines[name])
	}
	return all
}

// all returns the states of all machines, in the order of their names.
func (p *machineStates) all() (all []*standing) {
	for _, name := range slices.Sorted(maps.Keys(p.machines)) {
		all = append(all, p.machines[name])
	}
	return all
}

func (p *machineStates) drop(partition int) {
	for _, machine := range p.partitions[partition] {
		delete(p.machines, machine)
	}
	delete(p.partitions, partition)
}

// sorted returns the open advisories, in the order of what they are about.
func (s *standing) sorted() (all []*Event) {
	for _, topic := range slices.Sorted(maps.Keys(s.advisories)) {
		all = append(all, s.advisories[topic])
	}
	return all
}
