// Package order puts the windows of one machine in order: what came of each epoch of an ingester, which epoch leads, and
// which windows moved a tool. It is pure, and knows nothing of tools and models.
package order

import (
	"slices"
	"time"
)

// An ingester has one epoch for each spool, so two epochs of one machine that go on side
// by side are two ingesters: the machine is configured twice, or a disk was copied.
const (
	takeoverRun = 3           // windows in a row with which an epoch that names another tool leads
	Patience    = time.Minute // without a window of an epoch, by Kafka's clock, until it has paused
	leap        = 300         // sequence numbers ahead, from which on a window must be followed by another one
	pastRanges  = 32          // intervals of windows in an epoch that another one followed
)

// Place says how a window counts.
type Place int

// The places of a window.
const (
	InOrder     Place = iota
	Provisional       // of an epoch that may come to lead: it moves its own tool, which is not in the spindle
	Late              // a later one of its epoch came before: it moves nothing
	Rival             // of a second ingester: it moves nothing
	Repeat            // it came before
)

// Moves reports whether a window at the place moves its tool.
func (p Place) Moves() bool { return p == InOrder || p == Provisional }

// Order is the order of a machine's windows: what came of each epoch, and which epoch leads. Sequence
// numbers and Kafka's time decide, never the dates of sensors: two hosts' clocks differ, and a recording may be
// replayed. docs/concepts/tools.md has the rules as a table.
type Order struct {
	Epochs []Epoch // the one that leads last
}

// Epoch is what came of one epoch: of the windows that one spool of one ingester
// has numbered.
type Epoch struct {
	ID     string `json:"id"` // 16 hexadecimal digits
	Judged Seqs   `json:"judged"`
	LastMS int64  `json:"last_ms,omitempty"` // when Kafka got its last window, in Unix milliseconds
	Led    bool   `json:"led,omitempty"`     // it has led at some time
	Front  uint64 `json:"front"`             // the highest sequence number that came, but for a leap
	Leap   uint64 `json:"leap,omitempty"`    // a number far ahead of Front that came last; 0: none

	// Of an epoch that does not lead.
	Run   int  `json:"run,omitempty"`   // its windows since the last one of the leader; of a former leader: since it leads no more
	Rival bool `json:"rival,omitempty"` // it leads only once the leader has paused
}

// Leader returns the epoch that leads; nil before the first window.
func (o *Order) Leader() *Epoch {
	if len(o.Epochs) == 0 {
		return nil
	}
	return &o.Epochs[len(o.Epochs)-1]
}

// seen is where a window was placed.
type seen struct {
	Place
	Missing uint64 // sequence numbers before it, of its epoch, that have not come
	Slow    bool   // epochs that do not lead have changed
}

// Put places a window that Kafka got at a time, and notes it. Same: it names the tool and the life in the
// spindle. Most is how many epochs are remembered.
func (o *Order) Put(id string, seq uint64, at time.Time, same bool, most int) (s seen) {
	i := slices.IndexFunc(o.Epochs, func(e Epoch) bool { return e.ID == id })
	if i < 0 {
		i = o.add(id, most)
	}
	e := &o.Epochs[i]
	if e.Judged.Has(seq) {
		return seen{Place: Repeat}
	}
	last, any := e.Judged.Last()
	if any && seq > last {
		s.Missing = seq - last - 1
	}
	now := at.UnixMilli()
	paused := any && now-e.LastMS >= Patience.Milliseconds()
	behind := any && seq < e.Front
	e.Judged.Add(seq)
	e.LastMS = now
	e.advance(seq, any)
	switch leads := i == len(o.Epochs)-1; {
	case behind:
		s.Place = Late
		s.Slow = !leads
	case leads:
		e.Led = true
		s.Slow = o.leaderGoesOn()
	default:
		s.Place, s.Slow = o.claim(i, now, paused, same), true
		if s.Place == InOrder {
			o.lead(i)
		}
	}
	return s
}

// advance notes the number of a window. One that is far ahead may be a stray one: the windows behind it are late only
// if another one follows it.
func (e *Epoch) advance(seq uint64, any bool) {
	switch {
	case !any || seq > e.Front && seq-e.Front <= leap:
		e.Front, e.Leap = seq, 0
	case seq < e.Front:
	case e.Leap != 0 && seq > e.Leap:
		e.Front, e.Leap = seq, 0
	default:
		e.Leap = seq
	}
}

// add puts a new epoch before the one that leads, forgets the oldest one if there are too many, and
// returns its index.
func (o *Order) add(id string, most int) int {
	o.Epochs = slices.Insert(o.Epochs, max(len(o.Epochs)-1, 0), Epoch{ID: id})
	o.Epochs = slices.Delete(o.Epochs, 0, max(0, len(o.Epochs)-most))
	return max(len(o.Epochs)-2, 0)
}

// leaderGoesOn marks every epoch that sent windows since the leader's last one as a rival, but for one that led before it and has not
// paused. It reports whether there was one.
func (o *Order) leaderGoesOn() (any bool) {
	for j := range o.Epochs[:len(o.Epochs)-1] {
		if o := &o.Epochs[j]; o.Run > 0 && (!o.Led || o.Rival) {
			o.Run, o.Rival, any = 0, true, true
		}
	}
	return any
}

// claim says how a window of epoch i counts while another epoch leads. Paused: epoch i had sent nothing for a
// while.
func (o *Order) claim(i int, now int64, paused, same bool) Place {
	e, leader := &o.Epochs[i], o.Leader()
	again := e.Led && !e.Rival
	if again && paused {
		e.Run, e.Rival = 0, true // what a spool brings back, or an ingester that was away
	}
	e.Run++
	switch enough := same || e.Run >= takeoverRun; {
	case e.Rival && (!enough || now-leader.LastMS < Patience.Milliseconds()):
		return Rival
	case !enough:
		return Provisional
	case again && !e.Rival && !paused: // it was there first, and has never stopped
		leader.Rival = true
	}
	return InOrder
}

// lead makes epoch i the one that leads.
func (o *Order) lead(i int) {
	before := o.Leader()
	before.Judged.close(max(0, len(before.Judged)-pastRanges))
	before.Run = 0
	e := o.Epochs[i]
	e.Run, e.Rival, e.Led = 0, false, true
	o.Epochs = append(slices.Delete(o.Epochs, i, i+1), e)
}

// Missing returns how many windows have not come, in all epochs: between the first and the last that did.
func (o *Order) Missing() (n uint64) {
	for _, e := range o.Epochs {
		n += e.Judged.Holes()
	}
	return n
}
