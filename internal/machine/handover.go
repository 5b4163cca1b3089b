package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/window"
)

// A machine's name and the number of partitions decide to which partition its windows go:
// its home. When the topics get more partitions, machines get other homes, and their state
// follows while monitors run.
//
// When a window or command comes for a machine that the partition does not know, its owner
// asks the homes that the machine had before, one after the other. Until all have answered,
// the machine waits: what comes for it is passed over and is read again later, see wait.go.
// The other machines of the partition go on.
//
// An old home is judged as ever until it is asked. Its owner answers once it has judged
// everything that lay there when it was asked. In the same transaction it moves the machine's
// state records, and notes where the machine is now. It forwards what still comes.

// Log is a topic in which messages for machines come.
type Log int

// The logs of a partition.
const (
	WindowLog Log = iota
	FeatureLog
	CommandLog
	logs
)

// of returns the offset of a log in a position.
func (l Log) of(at Position) int64 { return [logs]int64{at.Windows, at.Features, at.Commands}[l] }

// Forward is a message for a machine that is in another partition now. The monitor writes it
// there as it is.
type Forward struct {
	Log    Log
	Offset int64 // where it lies in this partition
	To     int
}

// Move is the state of a machine that goes to another partition of the state topic.
type Move struct {
	To      int
	Records []Record
}

// handovers is what an owner knows of machines that come and go.
type handovers struct {
	counts  []int                     // numbers of partitions that the topics have had, ascending; the last one is the present one
	waiting map[string]*waiting       // machines that wait for their state
	asked   map[string]event.Handover // questions of other partitions about machines
	moved   map[string]movedRecord    // machines that other partitions have asked for
	again   bool                      // messages are being read again

	questions int64 // number of the last question
}

// mostMoves is how many machines one batch hands over: all of their state goes into its
// transaction.
const mostMoves = 8

// newest returns the present number of partitions; 0: it is not known.
func (o *Owner) newest() int {
	if len(o.handovers.counts) == 0 || o.Divide == nil {
		return 0
	}
	return o.handovers.counts[len(o.handovers.counts)-1]
}

// era returns the newest number of partitions under which this one is a machine's home.
func (o *Owner) era(name string) int {
	for _, n := range slices.Backward(o.handovers.counts) {
		if o.Divide(name, n) == o.partition {
			return n
		}
	}
	return o.newest() + 1 // the topics have grown again, and this owner does not know yet
}

// toAsk returns the partitions that have to be asked before the next window of a machine can
// be judged here: the homes before this one, the newest first.
func (o *Owner) toAsk(name string) (all []int) {
	if o.newest() == 0 {
		return nil
	}
	since, era := 0, o.era(name)
	if m := o.machines[name]; m != nil {
		since = m.Settled
	}
	for _, n := range slices.Backward(o.handovers.counts) {
		if n < since || n >= era {
			continue
		}
		if p := o.Divide(name, n); p != o.partition && p < o.newest() && (len(all) == 0 || all[len(all)-1] != p) {
			all = append(all, p)
		}
	}
	return all
}

// elsewhere decides about a message for a machine before the machine gets it. Origin is the
// partition that has forwarded it; -1: none. It reports true if the machine does not get the
// message now: it was forwarded, or passed over until the machine has its state.
func (o *Owner) elsewhere(b *Batch, name string, l Log, offset int64, origin int) bool {
	w := o.handovers.waiting[name]
	known := o.machines[name] != nil
	moved, ok := o.handovers.moved[name]
	switch {
	case w != nil:
	case known && (l == CommandLog || origin >= 0):
		return false
	case !known && ok && moved.Partitions > o.era(name):
		b.Forwards = append(b.Forwards, Forward{Log: l, Offset: offset, To: moved.To})
		return true
	default:
		old := o.toAsk(name)
		if len(old) == 0 {
			return false
		}
		w = o.wait(name)
		w.Direct = l != CommandLog && origin < 0
		w.ask(old)
	}
	w.passOver(l, offset, origin)
	return true
}

// handover takes a message of the owner of another partition.
func (o *Owner) handover(h *event.Handover) {
	switch {
	case h.Group != o.settings.Group: // each group hands over for itself
	case h.Answer && h.To == o.partition:
		o.answered(h)
	case !h.Answer && h.From == o.partition && h.To != o.partition:
		if before, ok := o.handovers.asked[h.Machine]; ok && before.ID == h.ID && before.To == h.To {
			return // it was sent again
		}
		if o.handovers.asked == nil {
			o.handovers.asked = make(map[string]event.Handover)
		}
		o.handovers.asked[h.Machine] = *h
	}
}

// answerable returns the machines about which the owner can answer, once everything before a
// position is judged.
func (o *Owner) answerable(at Position) (names []string) {
	for _, name := range sortedKeys(o.handovers.asked) {
		h := o.handovers.asked[name]
		if w := o.handovers.waiting[name]; w != nil && w.era < h.Partitions {
			continue // for a home that was before this one
		}
		if at.beyond(Position{Windows: h.Windows, Features: h.Features}) && len(names) < mostMoves {
			names = append(names, name)
		}
	}
	return names
}

// answer hands machines over to the partitions that have asked for them.
func (o *Owner) answer(b *Batch, now time.Time) {
	for _, name := range o.answerable(b.Position) {
		h := o.handovers.asked[name]
		delete(o.handovers.asked, name)
		m := o.machines[name]
		if m != nil && m.Settled < h.Partitions {
			records := o.allRecords(m)
			for _, r := range records {
				b.State = append(b.State, Record{Key: r.Key})
			}
			line := Line{false, "machine_moved", fmt.Sprintf("%s: its windows go to partition %d now, and its state follows", short(name), h.To)}
			if h.Known {
				line = Line{true, "machine_twice", fmt.Sprintf("%s: two partitions had a state of it; this one drops its state, and partition %d goes on", short(name), h.To)}
			} else {
				h.Moved = true
				b.Moves = append(b.Moves, Move{h.To, records})
			}
			b.Lines = append(b.Lines, MachineLine{name, line})
			o.drop(name)
		}
		switch w := o.handovers.waiting[name]; {
		case w == nil && o.machines[name] == nil:
			o.noteMoved(b, name, movedRecord{h.To, h.Partitions})
		case w != nil && h.Moved:
			// It comes back. Its next owners must read that before they get the machine: this
			// partition does not know it any more.
			w.ask(o.toAsk(name))
			o.question(b, w, now)
		}
		h.Answer, h.Windows, h.Features, h.Known = true, 0, 0, false
		b.Events = append(b.Events, Output{Handover: &h})
	}
}

// movedRecord is the state record of a machine that another partition has asked for. The zero
// value is of one that is here.
type movedRecord struct {
	To         int `json:"to"`
	Partitions int `json:"partitions"` // the number under which To is its home
}

// noteMoved notes where a machine is.
func (o *Owner) noteMoved(b *Batch, name string, to movedRecord) {
	if o.handovers.moved[name] == to {
		return
	}
	r := Record{Key: Key{Group: o.settings.Group, Machine: name, Moved: true}}
	if to == (movedRecord{}) {
		delete(o.handovers.moved, name)
	} else {
		if o.handovers.moved == nil {
			o.handovers.moved = make(map[string]movedRecord)
		}
		o.handovers.moved[name] = to
		r.Value = event.JSON(to)
	}
	b.State = append(b.State, r)
}

// allRecords returns all records of a machine and of its shadows, which are forgotten.
func (o *Owner) allRecords(m *Machine) []Record {
	records := m.allRecords()
	o.shadows.of(m.Machine, func(key shadowKey, sm *Machine) bool {
		if sm.gone {
			return true
		}
		if !sm.awaiting { // one that has not seen the past of its tool begins again there
			records = append(records, sm.allRecords()...)
		}
		o.shadows.drop(key)
		return true
	})
	return records
}

func (m *Machine) allRecords() []Record {
	m.writeAll()
	return m.Records()
}

// behind reports whether something waits for the partition to be judged up to an end. What is
// left before that may be markers of transactions only.
func (o *Owner) behind(at Position) bool {
	for _, h := range o.handovers.asked {
		if !at.beyond(Position{Windows: h.Windows, Features: h.Features}) {
			return true
		}
	}
	for _, w := range o.handovers.waiting {
		if w.stage == reaching && !at.beyond(w.end) {
			return true
		}
	}
	return false
}

// machineOf returns the machine of a window that was opened with an error; empty if it is not
// a window of ours.
func machineOf(w *window.Features, err error) string {
	if err == nil {
		return w.Machine
	}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Machine
	}
	return ""
}

// origin returns the partition that has forwarded a window; -1: none.
func (in Input) origin() int {
	if in.Forwarded {
		return in.Origin
	}
	return -1
}
