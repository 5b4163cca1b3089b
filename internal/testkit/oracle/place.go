package oracle

import (
	"cmp"
	"slices"
	"time"
)

// The numbers of tools.md.
const (
	patience = time.Minute // without a window of the leading epoch, until a second ingester takes over
	enough   = 3           // windows in a row of a new epoch with another tool
	far      = 300         // numbers ahead, from which on a window may be a stray one
)

// epoch is what came of one epoch. The one that leads says which tool is in the spindle.
type epoch struct {
	name    string
	numbers map[uint64]bool
	highest uint64    // but for a stray one
	stray   uint64    // the last number that was far ahead; 0: none
	last    time.Time // when Kafka got its last window
	row     int       // windows since the last one in order of the leading epoch; of a former one: since it leads no more
	second  bool      // it is of a second ingester
	led     bool      // it was the leading one at some time
}

// place says how a window counts. It goes by numbers and by Kafka's time: the time of sensors
// decides nothing.
func (m *Machine) place(w *Window) Place {
	first := len(m.epochs) == 0
	e := m.epoch(w.Epoch)
	if e.numbers[w.Seq] {
		return Repeat
	}
	late := len(e.numbers) > 0 && w.Seq < e.highest
	paused := w.At.Sub(e.last) >= patience
	e.counts(w.Seq)
	e.numbers[w.Seq], e.last = true, w.At
	leader := m.epochs[len(m.epochs)-1]
	switch {
	case first:
		e.led = true
		return InOrder
	case late:
		return Late
	case e == leader:
		for _, other := range m.epochs { // it goes on, so an epoch that has begun meanwhile is of a second ingester
			if former := other.led && !other.second; other.row > 0 && !former {
				other.second, other.row = true, 0
			}
		}
		return InOrder
	}
	returns := e.led && !e.second && paused
	if returns {
		e.row = 0
	}
	e.row++
	changesLittle := e.row >= enough || m.inSpindle(w) || m.untold(w)
	leaderPaused := w.At.Sub(leader.last) >= patience
	switch {
	case e.led && !e.second && !paused && changesLittle: // it was there first, and has never stopped
		leader.second = true
		m.lead(e)
		return InOrder
	case e.second, returns:
		if !leaderPaused || !changesLittle {
			e.second = true
			return Rival
		}
		m.lead(e)
		return InOrder
	case changesLittle:
		m.lead(e)
		return InOrder
	}
	return Provisional
}

// counts notes the number of a window. One that is far ahead is in order, and makes the windows behind
// it late only if another one follows it: else one stray number would mute the machine.
func (e *epoch) counts(n uint64) {
	switch ahead := n > e.highest && n-e.highest > far; {
	case len(e.numbers) == 0, n > e.highest && !ahead, ahead && e.stray != 0 && n > e.stray:
		e.highest, e.stray = n, 0
	case ahead:
		e.stray = n
	}
}

// lead makes an epoch the leading one.
func (m *Machine) lead(e *epoch) {
	m.epochs[len(m.epochs)-1].row = 0
	e.row, e.second, e.led = 0, false, true
	i := slices.Index(m.epochs, e)
	m.epochs = append(slices.Delete(m.epochs, i, i+1), e)
}

// epoch returns what came of an epoch. A new one is put before the leading one, and the first one
// is forgotten if there are too many: the one that has not led for the longest time.
func (m *Machine) epoch(name string) *epoch {
	for _, e := range m.epochs {
		if e.name == name {
			return e
		}
	}
	e := &epoch{name: name, numbers: make(map[uint64]bool)}
	m.epochs = slices.Insert(m.epochs, max(0, len(m.epochs)-1), e)
	if len(m.epochs) > cmp.Or(m.Limits.Epochs, 256) {
		m.epochs = slices.Delete(m.epochs, 0, 1)
	}
	return e
}
