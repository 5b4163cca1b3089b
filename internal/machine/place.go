package machine

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// An ingester has one epoch for each spool, so two epochs of one machine that go on side
// by side are two ingesters: the machine is configured twice, or a disk was copied.
const (
	takeoverRun = 3           // windows in a row with which an epoch that names another tool leads
	patience    = time.Minute // without a window of an epoch, by Kafka's clock, until it has paused
	leap        = 300         // sequence numbers ahead, from which on a window must be followed by another one
)

// position says how a window counts.
type position int

const (
	inOrder     position = iota
	provisional          // of an epoch that may come to lead: it moves its own tool, which is not in the spindle
	late                 // a later one of its epoch came before: it moves nothing
	rival                // of a second ingester: it moves nothing
	repeat               // it came before
)

// moves reports whether a window at the position moves its tool.
func (p position) moves() bool { return p == inOrder || p == provisional }

// Place is the order of a machine's windows: what came of each epoch, and which epoch leads. Sequence
// numbers and Kafka's time decide, never the dates of sensors: two hosts' clocks differ, and a recording may be
// replayed. docs/concepts/tools.md has the rules as a table.
type Place struct {
	Epochs []Epoch // the one that leads last
}

// Epoch is what came of one epoch: of the windows that one spool of one ingester
// has numbered.
type Epoch struct {
	ID     string `json:"id"` // 16 hexadecimal digits
	Judged ranges `json:"judged"`
	LastMS int64  `json:"last_ms,omitempty"` // when Kafka got its last window, in Unix milliseconds
	Led    bool   `json:"led,omitempty"`     // it has led at some time
	Front  uint64 `json:"front"`             // the highest sequence number that came, but for a leap
	Leap   uint64 `json:"leap,omitempty"`    // a number far ahead of Front that came last; 0: none

	// Of an epoch that does not lead.
	Run   int  `json:"run,omitempty"`   // its windows since the last one of the leader; of a former leader: since it leads no more
	Rival bool `json:"rival,omitempty"` // it leads only once the leader has paused
}

// leader returns the epoch that leads; nil before the first window.
func (p *Place) leader() *Epoch {
	if len(p.Epochs) == 0 {
		return nil
	}
	return &p.Epochs[len(p.Epochs)-1]
}

// seen is where a window was placed.
type seen struct {
	position
	missing uint64 // sequence numbers before it, of its epoch, that have not come
	slow    bool   // epochs that do not lead have changed
}

// put places a window that Kafka got at a time, and notes it. Same: it names the tool and the life in the
// spindle. Most is how many epochs are remembered.
func (p *Place) put(id string, seq uint64, at time.Time, same bool, most int) (s seen) {
	i := slices.IndexFunc(p.Epochs, func(e Epoch) bool { return e.ID == id })
	if i < 0 {
		i = p.add(id, most)
		s.slow = len(p.Epochs) > 1
	}
	e := &p.Epochs[i]
	if e.Judged.has(seq) {
		return seen{position: repeat}
	}
	last, any := e.Judged.last()
	if any && seq > last {
		s.missing = seq - last - 1
	}
	now := at.UnixMilli()
	paused := any && now-e.LastMS >= patience.Milliseconds()
	behind := any && seq < e.Front
	e.Judged.add(seq)
	e.LastMS = now
	e.advance(seq, any)
	switch leads := i == len(p.Epochs)-1; {
	case behind:
		s.position = late
		s.slow = s.slow || !leads
	case leads:
		e.Led = true
		s.slow = p.leaderGoesOn() || s.slow
	default:
		s.position, s.slow = p.claim(i, now, paused, same), true
		if s.position == inOrder {
			p.lead(i)
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
func (p *Place) add(id string, most int) int {
	p.Epochs = slices.Insert(p.Epochs, max(len(p.Epochs)-1, 0), Epoch{ID: id})
	if n := len(p.Epochs) - most; n > 0 {
		p.Epochs = slices.Delete(p.Epochs, 0, n)
	}
	return max(len(p.Epochs)-2, 0)
}

// leaderGoesOn marks every epoch that sent windows since the leader's last one as a rival, but for one that led before it and has not
// paused. It reports whether there was one.
func (p *Place) leaderGoesOn() (any bool) {
	for j := range p.Epochs[:len(p.Epochs)-1] {
		if o := &p.Epochs[j]; o.Run > 0 && (!o.Led || o.Rival) {
			o.Run, o.Rival, any = 0, true, true
		}
	}
	return any
}

// claim says how a window of epoch i counts while another epoch leads. Paused: epoch i had sent nothing for a
// while.
func (p *Place) claim(i int, now int64, paused, same bool) position {
	e, leader := &p.Epochs[i], p.leader()
	again := e.Led && !e.Rival
	if again && paused {
		e.Run, e.Rival = 0, true // what a spool brings back, or an ingester that was away
	}
	e.Run++
	switch enough := same || e.Run >= takeoverRun; {
	case e.Rival && (!enough || now-leader.LastMS < patience.Milliseconds()):
		return rival
	case !enough:
		return provisional
	case again && !e.Rival && !paused: // it was there first, and has never stopped
		leader.Rival = true
	}
	return inOrder
}

// lead makes epoch i the one that leads.
func (p *Place) lead(i int) {
	before := p.leader()
	if n := len(before.Judged) - pastRanges; n > 0 {
		before.Judged.close(n)
	}
	before.Run = 0
	e := p.Epochs[i]
	e.Run, e.Rival, e.Led = 0, false, true
	p.Epochs = append(slices.Delete(p.Epochs, i, i+1), e)
}

// rivals says whether a second ingester sends windows of the machine.
func (m *Machine) rivals(p position, r *event.Result) {
	a := m.advise(event.RivalAdvisory, "", p == rival, rivalRule, r)
	if a == nil {
		return
	}
	if a.State == event.Cleared {
		a.Text = short(m.Machine) + ": one ingester again; windows of a second one came from " + clockTime(a.Since) + " on"
		return
	}
	get := " get a verdict but move no alarm. Remove"
	if m.decision.Result == nil {
		get = " cannot be judged. Remove"
	}
	a.Text = short(m.Machine) + ": TWO INGESTERS send windows of this machine; epoch " + m.leader().ID + " is judged, windows of epoch " + r.Epoch + get +
		" the machine from one of the two configurations, or rename it there"
	m.notice(event.RivalAdvisory, "").Text = a.Text
}
