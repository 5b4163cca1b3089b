package simulation

import (
	"slices"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// broker is a model of Kafka, as far as the pipeline uses it: partitions of windows,
// commands and alerts, state by key, transactions with fencing and sequence numbers, and
// groups.
type broker struct {
	w     *world
	parts []*part
	owned map[string]*producer // by transactional id
	came  map[string]bool      // windows, by their names
	down  int64                // no request is answered until then
	wrote int                  // alerts

	messages map[*byte]*event.Command // that were sent, by their values
}

// command returns the command in a message.
func (b *broker) command(m machine.Command) *event.Command { return b.messages[&m.Value[0]] }

// part is one partition of all topics that are divided alike.
type part struct {
	windows  []*sentWindow
	features []*sentFeatures
	settled  int   // features below belong to no open transaction
	edgeEnd  int64 // offset behind the newest features that a gateway has sent
	clock    int64 // how far the clock of its broker is ahead
	commands []*sentCommand
	state    []stateRecord
	alerts   []alertRecord

	cuts   [logs][]int // where the logs ended when they had lost their tails
	kept   [logs]int   // offsets before which retention has deleted messages
	passed []passed
}

// The logs of a partition that readers follow by offset.
const (
	windowLog = iota
	commandLog
	alertLog
	featureLog
	logs
)

// passed is a range of offsets that a group has passed over: they were lost and written
// again before its reader asked. Nothing of ours compares leader epochs, so no reader
// notices, see docs/roadmap.md.
type passed struct {
	log      int
	group    *group
	from, to int
}

type sentWindow struct {
	*window.Window
	name     string
	features *window.Features
	at       int64 // when it was written
	stamp    int64 // the same by the broker's clock
	other    bool  // of another length: monitors refuse it
	edge     bool  // its gateway sends its features only
}

// sentFeatures is a message of the features topic: of a window that has no message of its
// own, or of one from which a monitor extracted them.
type sentFeatures struct {
	*window.Features
	name      string // of its window
	at, stamp int64  // when it was written, and that by the broker's clock
	txn       *txn   // of a monitor; nil: of a gateway
}

// judged reports whether owners judge the features: no one has their window.
func (f *sentFeatures) judged() bool { return f.txn == nil }

type sentCommand struct {
	machine.Command
	id   string
	when int64
}

type stateRecord struct {
	event.StateRecord
	txn *txn
}

type alertRecord struct {
	*event.Alert
	txn    *txn
	number int // of all alerts, in the order of writing
}

// producer is the owner of a transactional id.
type producer struct {
	epoch int
	open  *txn
	last  int // number of the last transaction that was written
}

// txn is a transaction.
type txn struct {
	group       *group
	part        int
	number      int
	epoch       int              // of the producer
	began       time.Time        // when the producer had loaded the state, by its clock
	fenced      machine.Position // the group's position when the producer took the partition over
	commandsEnd int64            // where the commands ended then
	opened      int64            // when it was written first
	ended       int64            // when it was committed
	batch       *machine.Batch
	position    machine.Position // that was committed
	committed   bool
	aborted     bool
	version     *version         // of the deployments with which its owner began
	before      []*input         // of its owner, since the transaction before, of which nothing followed
	judged      []opened         // of which it was decided
	seen        bool             // it was published
	ids         map[int64]string // of the commands that it follows from, by offset

	// What the broker has lost of it, and what undoes what the checker noted then.
	stateLost, positionLost bool
	forget, forgetPosition  []func()
}

func newBroker(w *world, parts int) *broker {
	b := &broker{w: w, owned: make(map[string]*producer), came: make(map[string]bool), messages: make(map[*byte]*event.Command)}
	for range parts {
		b.parts = append(b.parts, &part{})
	}
	return b
}

func (b *broker) partOf(name string) *part { return b.parts[partitionOf(name, len(b.parts))] }

// visible reports whether readers of committed messages see what belongs to a transaction.
func (t *txn) visible() bool { return t == nil || t.committed }

// open reports whether readers wait until a transaction has ended.
func (t *txn) open() bool { return t != nil && !t.committed && !t.aborted }

// end returns where a log ends.
func (p *part) end(log int) int {
	switch log {
	case windowLog:
		return len(p.windows)
	case commandLog:
		return len(p.commands)
	case featureLog:
		return len(p.features)
	default:
		return len(p.alerts)
	}
}

// bounds returns where a log begins and ends for readers of committed messages.
func (p *part) bounds(log int) machine.Bounds {
	end := p.stable(log)
	return machine.Bounds{First: int64(min(p.kept[log], end)), End: int64(end)}
}

// partitionOf spreads machines over n partitions.
func partitionOf(name string, n int) int {
	h := uint32(2166136261)
	for _, c := range []byte(name) {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h>>4) % n
}

// produce puts a window on the log, or its features. It returns false if the broker is down.
func (b *broker) produce(win *sentWindow) bool {
	if b.isDown() {
		return false
	}
	p := b.partOf(win.Machine)
	if win.at, win.stamp = b.w.now, b.w.now+p.clock; win.edge {
		p.features = append(p.features, &sentFeatures{Features: win.features, name: win.name, at: win.at, stamp: win.stamp})
		p.edgeEnd = int64(len(p.features))
	} else {
		p.windows = append(p.windows, win)
	}
	if win.other {
		return true
	}
	b.came[win.name] = true
	return true
}

// produceCommand puts a command on the log, unless the broker is down: then the sender says
// so.
func (b *broker) produceCommand(c *event.Command, at time.Time) {
	if b.isDown() {
		return
	}
	p := b.partOf(c.Machine)
	at = at.Add(time.Duration(p.clock) * time.Millisecond)
	value := event.JSON(c)
	b.messages[&value[0]] = c
	p.commands = append(p.commands, &sentCommand{id: c.ID, when: b.w.now, Command: machine.Command{Key: c.Machine, Value: value, Offset: int64(len(p.commands)), At: at}})
}

func (b *broker) isDown() bool { return b.w.now < b.down }

func transactionalID(g *group, part int) string { return g.name + "-" + strconv.Itoa(part) }

// fence makes a member the owner of a transactional id: what the previous one left open is
// aborted.
func (b *broker) fence(g *group, part int) (epoch int) {
	id := transactionalID(g, part)
	p := b.owned[id]
	if p == nil {
		p = &producer{}
		b.owned[id] = p
	}
	if p.open != nil {
		p.open.aborted, p.open = true, nil
	}
	p.epoch++
	p.last = 0
	return p.epoch
}

// position returns what a group has committed.
func (b *broker) position(g *group, part int) machine.Position {
	at, ok := g.positions[part]
	if !ok {
		return nowhere
	}
	return at
}

// nowhere is where a group stands that has committed nothing.
var nowhere = machine.Position{Windows: -1, Features: -1, Commands: -1}

// write takes the messages of a transaction. It returns false if another member owns the
// partition.
func (b *broker) write(t *txn, epoch int) bool {
	p := b.owned[transactionalID(t.group, t.part)]
	if p.epoch != epoch && b.w.Bug != NoFence {
		return false
	}
	if t.number <= p.last { // a late duplicate
		if b.w.Bug == NoIdempotence && p.open != nil && p.open != t {
			b.append(t, p.open)
		}
		return true
	}
	p.last = t.number
	p.open, t.opened = t, b.w.now
	b.append(t, t)
	if b.w.Bug == FeaturesTwice {
		b.w.check.features(t)
	}
	if b.w.Bug == NotAtomic {
		b.w.check.published(t, true)
	}
	return true
}

// append puts the state records, alerts and features of a transaction on the logs.
func (b *broker) append(t, as *txn) {
	part := b.parts[t.part]
	for _, r := range t.batch.State {
		part.state = append(part.state, stateRecord{r, as})
	}
	for _, o := range t.batch.Events {
		if a, ok := o.(machine.Alert); ok {
			b.wrote++
			part.alerts = append(part.alerts, alertRecord{a.Alert, as, b.wrote})
		}
	}
	if b.w.Bug == FeaturesTwice {
		as = &txn{committed: true}
	}
	for _, j := range t.judged {
		if !j.edge {
			part.features = append(part.features, &sentFeatures{Features: j.Features, name: j.name, at: b.w.now, stamp: b.w.now + part.clock, txn: as})
		}
	}
}

// commit ends a transaction. It returns false if another member owns the partition.
func (b *broker) commit(t *txn, epoch, generation int, m *member) bool {
	p := b.owned[transactionalID(t.group, t.part)]
	switch {
	case t.committed && p.epoch == epoch:
		return true // asked again
	case t.aborted:
		return false
	case b.w.Bug == NoFence:
	case p.epoch != epoch, p.open != t, !t.group.has(m, generation, t.part):
		return false
	}
	t.committed, t.ended = true, b.w.now
	t.group.log[t.part] = append(t.group.log[t.part], t)
	if p.open == t {
		p.open = nil
	}
	at := t.batch.Position
	if b.w.Bug == ForgetsCommand {
		at.Commands = b.position(t.group, t.part).Commands
	}
	t.position = at
	t.group.positions[t.part] = at
	if b.w.Bug != NotAtomic {
		b.w.check.published(t, false)
	}
	return true
}

// load returns the last record of every key among those that are committed. It returns false
// while a transaction of any group is open: readers of committed messages come no
// further than that.
func (b *broker) load(part int) (records []event.StateRecord, ok bool) {
	all := b.parts[part].state
	if open := slices.IndexFunc(all, func(r stateRecord) bool { return r.txn.open() }); open >= 0 {
		if b.w.Bug != StopsAtOpen {
			return nil, false
		}
		all = all[:open]
	}
	records = []event.StateRecord{} // nil would be no answer
	seen := make(map[event.StateKey]bool)
	for i, r := range slices.Backward(all) {
		if !r.txn.committed && b.w.Bug != ReadsAborted || seen[r.Key] {
			continue
		}
		seen[r.Key] = true
		if r.Offset = int64(i); r.Value != nil {
			records = append(records, r.StateRecord)
		}
	}
	slices.Reverse(records)
	return records, true
}

// compact keeps the last committed record of every key, and every record that a broker
// could still lose.
func (b *broker) compact() {
	for _, p := range b.parts {
		seen := make(map[event.StateKey]bool)
		from := len(p.state) // of what is kept
		for _, r := range slices.Backward(p.state) {
			switch key := r.Key; {
			case r.txn.aborted:
				continue
			case !r.txn.committed, r.txn.ended > b.w.now-mostLost:
			case seen[key]:
				continue
			default:
				if seen[key] = true; r.Value == nil {
					continue
				}
			}
			from--
			p.state[from] = r
		}
		p.state = slices.Delete(p.state, 0, from)
	}
}

// expire takes members out of their groups that have been silent for a session, and aborts
// transactions that were open for too long.
func (b *broker) expire() {
	if b.isDown() {
		return
	}
	for _, p := range b.owned {
		if p.open != nil && b.w.now-p.open.opened > txnTimeout {
			p.open.aborted, p.open = true, nil
			p.epoch++
		}
	}
	for _, g := range b.w.groups {
		g.expire()
	}
}

// idle reports whether every group has judged and answered everything, and every alert was
// delivered.
func (b *broker) idle() bool {
	for i, p := range b.parts {
		if b.w.route.at[i] < len(p.alerts) {
			return false
		}
		for _, g := range b.w.groups {
			at := b.position(g, i)
			if !p.done(at) {
				return false
			}
		}
	}
	return true
}

// done reports whether nothing of a partition is left to read behind a position.
func (p *part) done(at machine.Position) bool {
	return max(at.Windows, int64(p.kept[windowLog])) >= int64(len(p.windows)) && max(at.Commands, 0) >= int64(len(p.commands)) && max(at.Features, int64(p.kept[featureLog])) >= p.edgeEnd
}

// stable returns how far readers of committed messages may read a log: up to the first message
// of a transaction that is open, of any group.
func (p *part) stable(log int) int {
	if log != featureLog {
		return p.end(log)
	}
	for p.settled < len(p.features) && !p.features[p.settled].txn.open() {
		p.settled++
	}
	return p.settled
}

// findEdgeEnd finds the newest features that owners judge.
func (p *part) findEdgeEnd() {
	p.edgeEnd = 0
	for i, f := range slices.Backward(p.features) {
		if f.judged() {
			p.edgeEnd = int64(i + 1)
			return
		}
	}
}
