package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/window"
)

// Bounds of what a member does in virtual milliseconds.
const (
	session     = 6000
	txnTimeout  = 10_000 // then the broker ends a transaction that is open
	requestTime = 3000   // then a request is sent again
	mostRepeats = 4      // then the partition is given up
	batch       = 16
	poll        = 500 // until a broker that is down is asked again
)

// group is a consumer group of monitors, and what Kafka knows of it.
type group struct {
	w          *world
	name       string
	settings   *machine.Settings
	members    []*member
	seen       map[*member]int64 // last heartbeat
	generation int
	owners     map[int]*member // of the generation, by partition
	positions  map[int]machine.Position
	log        map[int][]*txn // that were committed, by partition
}

// member is a monitor process.
type member struct {
	process
	w       *world
	g       *group
	up      bool
	version *version // of the deployments that it knows of
	gen     int      // that it knows of
	drives  map[int]*drive
	skew    time.Duration // of its clock
	poll    int64         // until the broker is asked again for what has come
	pause   int64         // between heartbeats
	trouble time.Time     // when the broker did not answer last, by its clock
}

func newGroup(w *world, name string, i int) *group {
	g := &group{
		w: w, name: name, seen: make(map[*member]int64), owners: make(map[int]*member), positions: make(map[int]machine.Position), log: make(map[int][]*txn),
		settings: &machine.Settings{Group: name, Alarm: w.alarm(), Evidence: i == 0, Silence: []time.Duration{0, 4 * time.Second, 15 * time.Second}[w.rng.IntN(3)]},
	}
	if w.rng.IntN(2) == 0 {
		g.settings.Limits = machine.Limits{Tools: 2 + w.rng.IntN(2), Retained: 2 + w.rng.IntN(20), Epochs: []int{0, 2, 3}[w.rng.IntN(3)]}
	}
	for k := range members {
		m := &member{w: w, g: g, process: process{name: fmt.Sprintf("%s/%d", name, k)}, skew: time.Duration(w.rng.IntN(7200)-3600) * time.Second, poll: 500 + w.rng.Int64N(3500), pause: 1000 + w.rng.Int64N(1500)}
		g.members = append(g.members, m)
		m.start()
	}
	return g
}

// alarm draws settings of the alarm.
func (w *world) alarm() alarm.Settings {
	n := 2 + w.rng.IntN(5)
	k := 1 + w.rng.IntN(n)
	return alarm.Settings{
		K: k, N: n, Clear: w.rng.IntN(k), Latch: w.rng.IntN(2) == 0, OnHold: time.Duration(w.rng.IntN(3)) * time.Second, OffHold: time.Duration(w.rng.IntN(4)) * time.Second,
		ReAlarm: time.Duration(1+w.rng.IntN(20)) * time.Second, MaxShelf: 25 * time.Second,
	}
}

func (g *group) has(m *member, generation, part int) bool {
	return generation == g.generation && g.owners[part] == m
}

// rebalance gives the partitions to the members that are alive.
func (g *group) rebalance(why string) {
	g.generation++
	clear(g.owners)
	var alive []*member
	for _, m := range g.members {
		if _, ok := g.seen[m]; ok {
			alive = append(alive, m)
		}
	}
	for i := range g.w.broker.parts {
		if len(alive) > 0 {
			g.owners[i] = alive[(i+g.generation)%len(alive)]
		}
	}
	g.w.say("%s generation %d: %d members (%s)", g.name, g.generation, len(alive), why)
}

// read returns how far the group has read a partition, or has committed that it did.
func (g *group) read(part int) machine.Position {
	at := g.positions[part]
	for _, m := range g.members {
		if d := m.drives[part]; d != nil {
			at.Windows, at.Features, at.Commands = max(at.Windows, d.next.Windows), max(at.Features, d.next.Features), max(at.Commands, d.next.Commands)
		}
	}
	return at
}

// expire takes out members that have been silent for a session.
func (g *group) expire() {
	for _, m := range g.members {
		if at, ok := g.seen[m]; ok && g.w.now-at > session {
			delete(g.seen, m)
			g.rebalance(m.name + " is silent")
		}
	}
}

// start begins a life of the process, with what is deployed by then.
func (m *member) start() {
	m.end()
	m.up, m.frozen, m.held, m.gen, m.drives = true, 0, nil, -1, make(map[int]*drive)
	m.version = m.w.fleet.last()
	m.w.say("%s starts, with deployments %d", m.name, m.version.number)
	m.w.after(m.w.rng.Int64N(1000), &m.process, m.beat)
}

func (m *member) kill() {
	m.end()
	m.up = false
	m.w.say("%s is killed", m.name)
}

// end ends a life: answers that are on their way reach no one.
func (m *member) end() {
	m.life++
	for _, d := range m.drives {
		d.over = true
	}
}

// beat sends a heartbeat every now and then, and begins a generation when it learns of one.
func (m *member) beat() {
	w, g := m.w, m.g
	w.after(m.pause, &m.process, m.beat)
	if w.fault(0.01, "lost heartbeat of ", m.name) {
		return
	}
	w.after(w.latency(), nil, func() {
		if w.broker.isDown() {
			return
		}
		if _, known := g.seen[m]; !known && m.up {
			g.seen[m] = w.now
			g.rebalance(m.name + " joins")
		}
		if m.up {
			g.seen[m] = w.now
		}
		gen, mine := g.generation, []int(nil)
		for i, o := range g.owners {
			if o == m {
				mine = append(mine, i)
			}
		}
		slices.Sort(mine)
		w.after(w.latency(), &m.process, func() { m.adopt(gen, mine) })
	})
	for _, part := range slices.Sorted(maps.Keys(m.drives)) {
		m.drives[part].tick()
	}
}

// adopt begins a generation: what the member had of the one before is given up.
func (m *member) adopt(gen int, mine []int) {
	if gen == m.gen {
		return
	}
	m.gen = gen
	for _, d := range m.drives {
		d.over = true
	}
	clear(m.drives)
	for _, part := range mine {
		d := &drive{m: m, part: part, gen: gen, version: m.version, owner: machine.NewOwner(m.g.settings, m.version.fleet, part),
			versions: make(map[*machine.Fleet]*version), seen: make(map[*machine.Build][]*sentFeatures)}
		d.owner.OnReply = func(r machine.Reply, now time.Time) {
			in := &input{reply: r, now: now}
			if f, ok := r.(*machine.Fleet); ok {
				in.version = d.versions[f]
			} else if b, ok := r.(*machine.Build); ok {
				in.seen = d.seen[b]
			}
			d.inputs = append(d.inputs, in)
		}
		d.owner.OnFeatures = func(*window.Features) { d.judged = append(d.judged, m.w.opened) }
		m.drives[part] = d
		d.do(d.owner.Start())
	}
}

// drive does what the owner of a partition wants, with the broker.
type drive struct {
	m           *member
	part        int
	gen         int
	owner       *machine.Owner
	epoch       int
	fenced      machine.Position
	commandsEnd int64
	told        [logs]int        // how many cuts of each log it has been told of
	read        [logs]bool       // each log, if only that nothing has come
	next        machine.Position // that was asked for last
	count       int              // of transactions
	over        bool
	job         bool

	version    *version // with which the owner began
	versions   map[*machine.Fleet]*version
	seen       map[*machine.Build][]*sentFeatures // by builds that were given back
	loaded     bool                               // it has
	began      time.Time                          // when it had, by its clock
	inputs     []*input                           // of the owner, that no batch followed yet
	judged     []opened                           // windows since the last batch
	publishing bool
	building   bool
}

func (d *drive) now() time.Time { return d.m.w.time().Add(d.m.skew) }

// on hands a reply to the owner, unless the drive is over.
func (d *drive) on(r machine.Reply) {
	if d.over {
		return
	}
	if _, loaded := r.(machine.Loaded); loaded {
		d.loaded, d.began = true, d.now()
	} else if _, published := r.(machine.Published); published {
		d.publishing = false
	}
	d.do(d.owner.On(r, d.now()))
}

func (d *drive) tick() {
	if d.m.w.broker.isDown() {
		d.m.trouble = d.now()
	}
	d.on(machine.Tick{Now: d.now(), Trouble: d.m.trouble})
	d.startJob()
	d.startBuild()
}

// frame is a kind of request, with the names of the faults that it may have.
type frame struct{ slow, doubled, lost string }

func newFrame(kind string) *frame {
	return &frame{"slow " + kind + " of ", "doubled " + kind + " of ", "lost answer to " + kind + " of "}
}

var (
	loads     = newFrame("load")
	fences    = newFrame("fence")
	positions = newFrame("position")
	writes    = newFrame("write")
	commits   = newFrame("commit")
)

// request sends a frame to the broker until an answer comes. At the broker it may arrive
// twice, and late. Answer is called once, in the life of the process that asked; give up
// when no answer came for long.
func (d *drive) request(kind *frame, at func() (reply func(), ok bool)) {
	w, m := d.m.w, d.m
	answered, sent := false, 0
	var try func()
	try = func() {
		if answered || d.over {
			return
		}
		if sent++; sent > mostRepeats {
			answered = true
			d.lost()
			return
		}
		delay := w.latency()
		if w.fault(0.003, kind.slow, m.name) {
			delay += w.rng.Int64N(15000)
		}
		copies := 1
		if w.fault(0.01, kind.doubled, m.name) {
			copies = 2
		}
		for c := range copies {
			w.after(delay+int64(c)*w.rng.Int64N(8000), nil, func() {
				if w.broker.isDown() {
					return
				}
				reply, ok := at()
				if !ok || w.fault(0.003, kind.lost, m.name) {
					return
				}
				w.after(w.latency(), &m.process, func() {
					if !answered && !d.over {
						answered = true
						reply()
					}
				})
			})
		}
		w.after(requestTime, &m.process, try)
	}
	try()
}

// lost gives the partition up: the member joins again.
func (d *drive) lost() {
	if d.over {
		return
	}
	d.m.w.say("%s gives partition %d up", d.m.name, d.part)
	d.owner.On(machine.Lost{}, time.Time{})
	for _, o := range d.m.drives {
		o.over = true
	}
	clear(d.m.drives)
	d.m.gen = -1
}

func (d *drive) do(actions []machine.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Fence:
			d.fence()
		case machine.LoadState:
			d.request(loads, func() (func(), bool) {
				records, ok := d.m.w.broker.load(d.part)
				return func() { d.on(machine.Loaded(records)) }, ok
			})
		case machine.ReadWindows:
			d.fetch(int(max(a.From, 0)))
		case machine.ReadCommands:
			d.hear(int(max(a.From, 0)))
		case machine.ReadFeatures:
			d.take(int(max(a.From, 0)))
		case *machine.Batch:
			d.publish(a)
		case machine.AskEnd:
			d.askEnd()
		}
	}
}

// askEnd says how far the partition goes.
func (d *drive) askEnd() {
	w, p := d.m.w, d.m.w.broker.parts[d.part]
	w.after(w.latency(), nil, func() {
		known := !w.broker.isDown() && !w.fault(0.05, "no answer about the end to ", d.m.name)
		end := machine.End{Known: known, Windows: p.bounds(windowLog), Features: p.bounds(featureLog)}
		w.after(w.latency(), &d.m.process, func() { d.on(end) })
	})
}

func (d *drive) fence() {
	b := d.m.w.broker
	d.request(fences, func() (func(), bool) {
		epoch := b.fence(d.m.g, d.part)
		return func() {
			d.epoch = epoch
			d.request(positions, func() (func(), bool) {
				at := b.position(d.m.g, d.part)
				end := int64(len(b.parts[d.part].commands))
				at.Commands = min(at.Commands, end)
				return func() {
					d.fenced, d.next, d.commandsEnd = at, at, end
					d.on(machine.Fenced{At: at, CommandsEnd: end})
				}, true
			})
		}, true
	})
}

// fetch waits for windows from an offset on.
func (d *drive) fetch(from int) {
	d.follow(windowLog, from, &d.next.Windows, func(from, to int) (machine.Reply, bool) {
		var in []machine.Input
		for i := from; i < to; i++ {
			in = append(in, d.windowInput(i))
		}
		return machine.Read{Log: machine.WindowLog, Inputs: in}, len(in) > 0
	})
}

// windowInput returns a window of the partition as the owner takes it.
func (d *drive) windowInput(i int) machine.Input {
	w := d.m.w
	win := w.broker.parts[d.part].windows[i]
	o := opened{Features: win.features, name: win.name, offset: event.Offset{At: int64(i)}, at: win.stamp}
	return machine.Input{Offset: o.offset.At, At: o.time(), Open: func(into *window.Features) error {
		if win.other && w.Bug == RefusesSilently {
			return otherLength
		}
		if win.other {
			return &machine.Refusal{Machine: win.Machine, Epoch: win.EpochString(), Seq: win.Seq, Why: otherLength}
		}
		*into, w.opened = *win.features, o
		return nil
	}}
}

// otherLength is why monitors refuse some windows.
var otherLength = &window.Mismatch{What: window.OtherLength, Text: "windows of 2s, expected windows of 1s"}

// hear waits for commands from an offset on.
func (d *drive) hear(from int) {
	d.follow(commandLog, from, &d.next.Commands, func(from, to int) (machine.Reply, bool) {
		var in []machine.Command
		for i := from; i < to; i++ {
			c := d.m.w.broker.parts[d.part].commands[i].Command
			c.Offset = int64(i)
			in = append(in, c)
		}
		return machine.CommandsRead(in), len(in) > 0
	})
}

// follow waits until a log goes beyond an offset, and hands the owner what readers of committed
// messages see from there on; false if they see nothing. A log that ends before the offset has
// lost its tail: the reader goes to its end, since it has read what lies before. One that has read
// nothing yet takes a log that is not half as long for a new one, and goes to its beginning. See
// bus.fetcher.relocate.
func (d *drive) follow(log, from int, next *int64, read func(from, to int) (machine.Reply, bool)) {
	w := d.m.w
	*next = int64(from)
	var again func()
	again = func() {
		if d.over {
			return
		}
		p := w.broker.parts[d.part]
		if w.broker.isDown() {
			w.after(poll, &d.m.process, again)
			return
		}
		end := p.stable(log)
		p.asked(log, d.m.g, from, end, &d.told)
		if end < from && w.Bug != WaitsBeyondEnd {
			d.m.trouble = d.now()
			to := end
			if !d.read[log] && to < from/2 {
				to = 0
				w.check.again(d.m.g, d.part)
			}
			w.say("%s partition %d: offset %d is gone, going on at %d", d.m.name, d.part, from, to)
			from = to
			*next = int64(from)
		}
		d.read[log] = d.read[log] || from <= end
		if kept := p.kept[log]; from < kept {
			w.say("%s partition %d: offset %d is deleted, going on at %d", d.m.name, d.part, from, kept)
			p.passed = append(p.passed, passed{log, d.m.g, from, kept})
			from = kept
			*next = int64(from)
		}
		for from < end {
			to := min(from+batch, end)
			r, any := read(from, to)
			*next = int64(to)
			if any {
				w.after(w.latency(), &d.m.process, func() { d.on(r) })
				return
			}
			from = to
		}
		w.after(d.m.poll, &d.m.process, again)
	}
	w.after(w.latency(), &d.m.process, again)
}

// publish writes a batch in a transaction: the messages, then the end.
func (d *drive) publish(b *machine.Batch) {
	d.count++
	t := &txn{group: d.m.g, part: d.part, number: d.count, batch: b, version: d.version, epoch: d.epoch, began: d.began, fenced: d.fenced, commandsEnd: d.commandsEnd, judged: d.judged}
	t.before = d.handled(b.Of)
	d.judged, d.publishing = nil, true
	d.m.w.spoil(b)
	broker, epoch := d.m.w.broker, d.epoch
	d.request(writes, func() (func(), bool) {
		ok := broker.write(t, epoch)
		return func() {
			if !ok {
				d.lost()
				return
			}
			d.request(commits, func() (func(), bool) {
				ok := broker.commit(t, epoch, d.gen, d.m)
				return func() {
					if !ok {
						d.lost()
						return
					}
					d.on(machine.Published{})
				}, true
			})
		}, true
	})
}

// startJob writes evidence that is due.
func (d *drive) startJob() {
	if d.job || d.over {
		return
	}
	w := d.m.w
	d.owner.Machines(func(m *machine.Machine) {
		if d.job {
			return
		}
		if j, ok := m.EvidenceDue(d.now()); ok {
			d.job = true
			name := m.Machine
			w.after(100+w.rng.Int64N(1000), &d.m.process, func() {
				d.job = false
				e, about := j.About(name, "")
				e.Text = about + " kept."
				d.on(machine.EvidenceOf{Machine: name, EvidenceDone: machine.EvidenceDone{Job: j, Evidence: e}})
			})
		}
	})
}

// people send commands to machines: of now, of wrong clocks, twice, in storms.
func (w *world) people() {
	w.after(2000+w.rng.Int64N(8000), nil, func() {
		defer w.people()
		if w.calm {
			return
		}
		n := 1
		if w.fault(0.03, "storm of commands", "") {
			n = 40
		}
		for range n {
			w.command()
		}
	})
}

func (w *world) command() {
	g := w.gateways[w.rng.IntN(len(w.gateways))]
	c := event.Command{ID: fmt.Sprintf("c%d", w.rng.Uint64()), Machine: g.machine, By: "kim", Note: "why not", Issued: w.time()}
	incident := w.check.lastIncident(w.groups[w.rng.IntN(len(w.groups))], g.machine)
	switch n := w.rng.IntN(14); {
	case n < 4 && incident != "":
		c.Action, c.Incident = event.Acknowledge, incident
	case n < 6:
		c.Action, c.Until = event.Shelve, c.Issued.Add(time.Duration(2+w.rng.IntN(30))*time.Second)
	case n == 6:
		c.Action = event.Unshelve
	case n == 7:
		c.Action = event.Suppress
	case n == 8:
		c.Action = event.Unsuppress
	case n == 9 && incident != "":
		c.Action, c.Incident = event.MarkFalse, incident
	case n == 10:
		c.Action, c.Tool = event.NewTool, g.tool
	case n == 11:
		c.Action = event.OutOfService
	case n == 12:
		c.Action = event.InService
	case n == 13 && w.rng.IntN(3) == 0:
		c.Action = event.Retire
	default:
		c.Action = event.Unsuppress
	}
	if c.Action.MasksMachine() && w.rng.IntN(2) == 0 {
		c.Tool = fmt.Sprintf("T%d", w.rng.IntN(4))
	}
	at := w.time()
	if w.fault(0.03, "wrong clock of a broker", "") {
		at = at.Add(time.Hour)
	}
	w.broker.produceCommand(&c, at)
	if w.fault(0.05, "a command sent twice", "") {
		w.after(w.rng.Int64N(3)*w.rng.Int64N(5000), nil, func() { w.broker.produceCommand(&c, at) })
	}
}
