package simulation

import (
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
)

// The topics get more partitions while everything runs. Programs learn of that at different
// times. What moves the machines is the product's own handover, see docs/adr/0008.

// mostLearning is how long ingesters and senders of commands may go on with the partitions that
// they knew, in virtual milliseconds. They refresh what they know of a topic now and then.
const mostLearning = int64(15_000)

// growth raises the partitions in some seeds, once or twice.
func (w *world) growth() {
	if w.rng.IntN(4) > 0 {
		return
	}
	w.after(10_000+w.rng.Int64N(int64(w.Windows)*800), nil, func() {
		if !w.calm && w.fault(1, "partitions are raised") {
			w.grows = true
			w.grow(len(w.broker.parts) + 1 + w.rng.IntN(2))
		}
	})
	w.mayGrow = true
}

// grow does what `ingest topics grow` does: if machines may come back to a partition in which
// they were before, it waits until monitors have judged what is there.
func (w *world) grow(n int) {
	b := w.broker
	if w.calm {
		return
	}
	if b.isDown() || b.mayReturn(n) && (w.now < b.grown+2*mostLearning || !b.idle() || b.waits()) {
		w.after(1000, nil, func() { w.grow(n) })
		return
	}
	w.say("partitions are raised from %d to %d", len(b.parts), n)
	b.grow(n)
	stopped := w.fault(0.2, "monitors are stopped while partitions are raised")
	for _, g := range w.groups {
		if stopped {
			for _, m := range g.members {
				m.kill()
				w.after(1000+w.rng.Int64N(3000), nil, m.start)
			}
			clear(g.seen)
		}
		learns := w.rng.Int64N(mostLearning)
		w.after(learns, nil, g.learn)
		for _, m := range g.members {
			w.after(learns+w.rng.Int64N(8000), nil, func() {
				if m.up && w.fault(0.4, "freeze "+m.name+" while machines move") { // it stays in its group
					m.frozen = w.now + 1000 + w.rng.Int64N(session-1500)
				}
			})
		}
	}
	for range 10 {
		w.after(w.rng.Int64N(mostLearning+5000), nil, func() {
			if !w.calm {
				w.command()
			}
		})
	}
	for _, g := range w.gateways {
		w.after(w.rng.Int64N(mostLearning), nil, func() { g.count = max(g.count, n) })
	}
	w.route.grow()
	if w.rng.IntN(3) == 0 {
		w.after(5000+w.rng.Int64N(20_000), nil, func() {
			if !w.calm && w.fault(1, "partitions are raised again") {
				w.grow(len(b.parts) + 1 + w.rng.IntN(2))
			}
		})
	}
}

// moving reports whether partitions were raised lately, so that machines move.
func (w *world) moving() bool { return w.broker.grown > 0 && w.now < w.broker.grown+2*mostLearning }

// learn lets the members of a group divide the partitions that there are now.
func (g *group) learn() {
	if g.w.broker.isDown() {
		g.w.after(poll, nil, g.learn)
		return
	}
	g.rebalance("the topics have grown")
}

// grow raises the number of partitions. Nothing moves with that.
func (b *broker) grow(n int) {
	for len(b.parts) < n {
		b.parts = append(b.parts, &part{})
	}
	b.counts = append(slices.Clone(b.counts), n)
	b.grown = b.w.now
}

// mayReturn reports whether a machine may come back to a partition in which it was before, if
// there are n partitions next. See bus.mayReturn.
func (b *broker) mayReturn(n int) bool {
	all := append(slices.Clone(b.counts), n)
	for i := range all {
		if i > 0 && all[i]%all[i-1] > 0 && len(all) > 2 {
			return true
		}
	}
	return false
}

// waits reports whether a machine waits for its state.
func (b *broker) waits() bool {
	if b.handed == 0 {
		return false
	}
	for i := range b.parts {
		records, ok := b.load(i)
		if !ok || slices.ContainsFunc(records, func(r machine.Record) bool { return r.Key.Waits }) {
			return true
		}
	}
	return false
}

// endOf returns where windows and features of a partition end.
func (b *broker) endOf(part int) machine.Position {
	p := b.parts[part]
	return machine.Position{Windows: int64(len(p.windows)), Features: int64(len(p.features))}
}

// forwarded is a message that a transaction writes to another partition. One of the pointers is
// set.
type forwarded struct {
	to       int
	window   *sentWindow
	features *sentFeatures
	command  *sentCommand
}

// handOver puts what a transaction has for other partitions on their logs.
func (b *broker) handOver(t, as *txn) {
	for _, m := range t.batch.Moves {
		for _, r := range m.Records {
			b.parts[m.To].state = append(b.parts[m.To].state, stateRecord{r, as})
		}
	}
	for _, o := range t.batch.Events {
		if o.Handover == nil {
			continue
		}
		h, to := *o.Handover, o.Handover.To
		if !h.Answer {
			to = h.From
			h.Windows, h.Features = t.ends[to].Windows, t.ends[to].Features
		}
		c := machine.Command{Key: h.Machine, Handover: &h, At: b.w.time()}
		b.parts[to].commands = append(b.parts[to].commands, &sentCommand{Command: c, when: b.w.now, txn: as})
	}
	for _, f := range t.forwards {
		p := b.parts[f.to]
		switch {
		case f.window != nil:
			copied := *f.window
			copied.at, copied.txn = b.w.now, as
			p.windows = append(p.windows, &copied)
		case f.features != nil:
			copied := *f.features
			copied.at, copied.txn, copied.forwarded = b.w.now, as, true
			p.features = append(p.features, &copied)
		default:
			copied := *f.command
			copied.when, copied.txn = b.w.now, as
			p.commands = append(p.commands, &copied)
		}
	}
}

// handsOver reports whether a batch is about machines that move. What the broker loses is
// younger: a loss that takes a part of a handover loses the machine.
func handsOver(b *machine.Batch) bool {
	return len(b.Moves)+len(b.Forwards) > 0 ||
		slices.ContainsFunc(b.Events, func(o machine.Output) bool { return o.Handover != nil }) ||
		slices.ContainsFunc(b.State, func(r machine.Record) bool { return r.Key.Waits || r.Key.Moved })
}

// handedOver notes that a transaction was committed.
func (b *broker) handedOver(t *txn) {
	if handsOver(t.batch) {
		b.handed = b.w.now
		b.w.tellHandover(t)
	}
	for _, f := range t.forwards {
		if p := b.parts[f.to]; f.features != nil {
			p.findEdgeEnd()
		}
	}
}

// tellHandover tells what a transaction has for other partitions.
func (w *world) tellHandover(t *txn) {
	for _, o := range t.batch.Events {
		if h := o.Handover; h != nil && h.Answer {
			w.say("  %s partition %d answers %d about %s: moved %v", h.Group, h.From, h.To, h.Machine, h.Moved)
		} else if h != nil {
			w.say("  %s partition %d asks %d about %s, which ends at %v", h.Group, h.To, h.From, h.Machine, t.ends[h.From])
		}
	}
	for _, f := range t.batch.Forwards {
		w.say("  %s partition %d forwards offset %d of log %d to %d", t.group.name, t.part, f.Offset, f.Log, f.To)
	}
	for _, r := range t.batch.State {
		if r.Key.Waits || r.Key.Moved {
			w.say("  %s partition %d: %q is %s", t.group.name, t.part, r.Key.String(), r.Value)
		}
	}
}

// findEdgeEnd finds the newest features that owners judge.
func (p *part) findEdgeEnd() {
	p.edgeEnd = 0
	for i, f := range slices.Backward(p.features) {
		if f.judged() && f.txn.visible() {
			p.edgeEnd = int64(i + 1)
			return
		}
	}
}

// move does an action that is about machines that move. It reports false for other actions.
func (d *drive) move(a machine.Action) bool {
	b := d.m.w.broker
	switch {
	case a.Adopt != "":
		d.request("adopt", func() (func(), bool) {
			records, ok := b.load(d.part)
			if !ok {
				return nil, false
			}
			of := machine.Adopted{Machine: a.Adopt, End: b.endOf(d.part)}
			if d.m.w.Bug == JudgesBeforeEnd {
				of.End = machine.Position{}
			}
			for _, r := range records {
				if r.Key.Machine == a.Adopt && r.Key.OfGroup(d.m.g.name) {
					of.Records = append(of.Records, r)
				}
			}
			return func() { d.on(machine.Reply{Adopted: &of}) }, true
		})
	case a.Again != nil:
		d.request("again", func() (func(), bool) {
			of := d.readAgain(*a.Again)
			return func() { d.on(machine.Reply{Again: &of}) }, true
		})
	case a.AskRead:
		at := machine.Position{Windows: d.passed}
		d.m.w.after(d.m.w.latency(), &d.m.process, func() { d.on(machine.Reply{Read: &at}) })
	default:
		return false
	}
	return true
}

// readAgain reads messages of a machine that its owner has passed over.
func (d *drive) readAgain(a machine.Again) machine.AgainOf {
	p := d.m.w.broker.parts[d.part]
	of := machine.AgainOf{Again: a, Next: a.To}
	log := []int{machine.WindowLog: windowLog, machine.FeatureLog: featureLog, machine.CommandLog: commandLog}[a.Log]
	for i := int(a.From); i < min(int(a.To), p.end(log)); i++ {
		if !p.txnOf(log, i).visible() {
			continue
		}
		switch {
		case log == windowLog && p.windows[i].Machine == a.Machine:
			of.Windows = append(of.Windows, d.windowInput(i))
		case log == featureLog && p.features[i].Machine == a.Machine:
			of.Windows = append(of.Windows, d.featuresInput(i))
		case log == commandLog && p.commands[i].Key == a.Machine && p.commands[i].Handover == nil && !d.foreign(p.commands[i].txn):
			of.Commands = append(of.Commands, d.commandInput(i))
		default:
			continue
		}
		if len(of.Windows)+len(of.Commands) == batch {
			of.Next = int64(i + 1)
			break
		}
	}
	return of
}

// originOf says of a message which partition has forwarded it, if one has. What the owner of
// another group has forwarded is not to be judged.
func (d *drive) originOf(in machine.Input, by *txn) machine.Input {
	if by == nil {
		return in
	}
	if d.foreign(by) {
		in.Open = nil
	}
	in.Forwarded, in.Origin = true, by.part
	return in
}

// foreign reports whether the owner of another group has forwarded what belongs to a transaction.
func (d *drive) foreign(by *txn) bool {
	return by != nil && by.group != d.m.g && d.m.w.Bug != TakesForeign
}

// forwardsOf returns the messages that a batch forwards.
func (d *drive) forwardsOf(b *machine.Batch) (all []forwarded) {
	for _, f := range b.Forwards {
		was := d.raw[rawKey{[]int{machine.WindowLog: windowLog, machine.FeatureLog: featureLog, machine.CommandLog: commandLog}[f.Log], f.Offset}]
		was.to = f.To
		all = append(all, was)
	}
	return all
}

// rawKey says where a message lies in the partition.
type rawKey struct {
	log    int
	offset int64
}

// endsFor returns where the partitions end that a batch asks for machines.
func (d *drive) endsFor(b *machine.Batch) map[int]machine.Position {
	ends := make(map[int]machine.Position)
	for _, o := range b.Events {
		if h := o.Handover; h != nil && !h.Answer {
			ends[h.From] = d.m.w.broker.endOf(h.From)
			if d.m.w.Bug == AsksOnce && d.answered[h.Machine] {
				ends[h.From] = machine.Position{}
			}
		}
	}
	return ends
}

// asks reports whether a batch asks other partitions for machines.
func asks(b *machine.Batch) bool {
	return slices.ContainsFunc(b.Events, func(o machine.Output) bool { return o.Handover != nil && !o.Handover.Answer })
}

// hands reports whether a transaction, or what its owner took before it, is about machines that
// move: another owner that takes over begins to ask again.
func (t *txn) hands() bool {
	if handsOver(t.batch) {
		return true
	}
	return slices.ContainsFunc(t.before, func(in *input) bool {
		r := &in.reply
		return r.Adopted != nil || r.Again != nil || slices.ContainsFunc(r.Commands, func(c machine.Command) bool { return c.Handover != nil })
	})
}

// adopted returns what the owner without trouble gets in place of what another owner read: the
// records that it has published itself.
func (ref *reference) adopted(a *machine.Adopted) *machine.Adopted {
	return &machine.Adopted{Machine: a.Machine, End: a.End, Records: byKey(ref.records, func(r machine.Record) bool { return r.Key.Machine == a.Machine })}
}

// moves takes the machines that an owner without trouble hands over.
func (c *checker) moves(s *seen, t *txn, want *machine.Batch) {
	for _, m := range want.Moves {
		to := s.ref(m.To)
		for _, r := range m.Records {
			to.put(t, r)
			to.movedAt[r.Key] = c.w.now
		}
	}
	for _, f := range t.forwards {
		if f.command != nil {
			s.forwarded[f.command] = true
		}
	}
}

// put makes a record what an owner without trouble has published.
func (ref *reference) put(t *txn, r machine.Record) {
	key := r.Key
	before, there := ref.records[key]
	t.forget = append(t.forget, func() {
		if delete(ref.records, key); there {
			ref.records[key] = before
		}
	})
	if r.Value == nil {
		delete(ref.records, key)
	} else {
		ref.records[key] = r
	}
}

// arrivals is the highest number of a window of a machine that was judged, by the number of
// partitions under which it was sent.
type arrivals map[int]int

// arrived checks that a window is judged before every window that Kafka got after it, on the
// same topic, from a gateway that knew of as many partitions or more. Windows may come again, and
// are judged again once their machine was retired: that does not count.
func (c *checker) arrived(s *seen, t *txn, j judged) {
	if c.cutOff || len(c.w.broker.counts) == 1 && !c.w.mayGrow {
		return
	}
	id := name(&j.Window)
	if s.came[id] {
		return
	}
	s.came[id] = true
	key := j.Machine
	if j.edge {
		key += " features"
	}
	if s.arrivals[key] == nil {
		s.arrivals[key] = make(arrivals)
	}
	for count, number := range s.arrivals[key] {
		if count >= j.count && number > j.number {
			c.w.fail("%s: window %s is judged behind a window that Kafka got later, and that was sent by %d partitions or more", t.group.name, name(&j.Window), j.count)
		}
	}
	s.arrivals[key][j.count] = max(s.arrivals[key][j.count], j.number)
}

// movedEnd checks that each machine is in its last partition once faults have ended, and waits
// for nothing.
func (c *checker) movedEnd(g *group, s *seen) {
	if len(c.w.broker.counts) == 1 {
		return
	}
	for part := range c.w.broker.parts {
		records, _ := c.w.broker.load(part)
		for _, r := range records {
			switch {
			case !r.Key.OfGroup(g.name):
			case r.Key.Waits:
				c.w.fail("%s partition %d: %s still waits for its state", g.name, part, r.Key.Machine)
			case !r.Key.Moved && c.w.broker.partOf(r.Key.Machine) != part && c.tookLast(s, g, r.Key.Machine):
				c.w.fail("%s partition %d still has %q", g.name, part, r.Key.String())
			}
		}
	}
}

// commandsOf returns the commands in a reply.
func commandsOf(r *machine.Reply) []machine.Command {
	if r.Again != nil {
		return r.Again.Commands
	}
	return slices.DeleteFunc(slices.Clone(r.Commands), func(c machine.Command) bool { return c.Handover != nil })
}

// windowsOf returns the windows in a reply.
func windowsOf(r *machine.Reply) []machine.Input {
	if r.Again != nil {
		return r.Again.Windows
	}
	return r.Windows
}

// neverGrown holds what a group publishes to what a machine says that never was in another
// partition, and whose state never leaves its memory. It gets the same windows and commands in the
// same order. Seeds in which deployments change, or logs lose their tails, are left out.
func (c *checker) neverGrown(s *seen, t *txn) {
	if !c.w.mayGrow || c.cutOff || len(c.w.fleet.versions) > 1 || len(c.w.fleet.without) > 0 || t.batch.Of == nil {
		return
	}
	got := make(map[string][]string)
	answered := make(map[string]bool)
	for _, o := range t.batch.Events {
		switch {
		case o.Shadow:
		case o.Result != nil:
			got[o.Result.Machine] = append(got[o.Result.Machine], string(event.JSON(o.Result)))
		case o.Alert != nil:
			got[o.Alert.Machine] = append(got[o.Alert.Machine], string(event.JSON(o.Alert)))
			answered[o.Alert.Command] = true
		case o.Advisory != nil:
			got[o.Advisory.Machine] = append(got[o.Advisory.Machine], string(event.JSON(o.Advisory)))
		}
	}
	want := make(map[string][]string)
	apply := func(name string, e machine.Event) {
		d := s.whole(c, t.group, name).apply(e)
		if d.Result != nil {
			want[name] = append(want[name], string(event.JSON(d.Result)))
		}
		for i := range d.Alerts {
			want[name] = append(want[name], string(event.JSON(&d.Alerts[i])))
		}
		for i := range d.Advisories {
			want[name] = append(want[name], string(event.JSON(&d.Advisories[i])))
		}
	}
	for _, e := range c.tookInOrder(t) {
		apply(e.of, e.Event)
	}
	for _, m := range commandsOf(t.batch.Of) {
		said := slices.ContainsFunc(t.batch.Letters, func(l machine.Letter) bool { return l.Command && l.Offset == m.Offset && !l.Unknown })
		if said || answered[c.ids(t)[m.Offset]] {
			apply(m.Key, m)
		}
	}
	if tick := t.batch.Of.Tick; tick != nil {
		for name := range got {
			apply(name, *tick)
		}
	}
	for name := range want {
		got[name] = append(got[name], "")[:len(got[name])]
	}
	for name := range got {
		if !slices.Equal(got[name], want[name]) {
			c.w.fail("%s: of %s is published\n%s\nby a machine that never was in another partition\n%s", t.group.name, name, strings.Join(got[name], "\n"), strings.Join(want[name], "\n"))
		}
	}
}

// tookOne is something that a machine took.
type tookOne struct {
	of string
	machine.Event
}

// tookInOrder returns the windows that a transaction follows from, judged and refused ones, in
// the order in which their owner took them.
func (c *checker) tookInOrder(t *txn) (all []tookOne) {
	judged := t.judged
	for _, in := range windowsOf(t.batch.Of) {
		for _, l := range t.batch.Letters {
			if why := refusalOf(l); !l.Command && l.Offset == in.Offset && why != nil {
				all = append(all, tookOne{why.Machine, machine.RefusedWindow{Refusal: why, At: in.At, Now: t.batch.Of.Now}})
			}
		}
		if len(judged) > 0 && judged[0].offset == in.Offset {
			all = append(all, tookOne{judged[0].Machine, judged[0].event()})
			judged = judged[1:]
		}
	}
	for _, j := range judged { // of features
		all = append(all, tookOne{j.Machine, j.event()})
	}
	return all
}

// whole is a machine that never was in another partition.
type whole struct {
	m     *machine.Machine
	model string
}

// whole returns the machine of that name.
func (s *seen) whole(c *checker, g *group, name string) *whole {
	if of := s.wholes[name]; of != nil {
		return of
	}
	champion := c.w.fleet.last().of[name].Champion
	m, err := machine.New(name, g.settings, machine.NewModel(champion), epoch0)
	if err != nil {
		panic(err) // the group's monitors use the same settings
	}
	s.wholes[name] = &whole{m, champion.ID()}
	return s.wholes[name]
}

// apply lets an event happen to the machine, which has a model from its first window on.
func (of *whole) apply(e machine.Event) machine.Decision {
	if _, ok := e.(machine.Window); ok {
		of.m.Model = of.model
	}
	d := of.m.Apply(e)
	if slices.ContainsFunc(d.Alerts, func(a event.Alert) bool { return a.State == event.Retired }) {
		of.m.Model = ""
	}
	return d
}
