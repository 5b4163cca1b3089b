package simulation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/window"
)

// checker sees everything that becomes visible to readers of committed messages, and says
// what does not hold:
//
//   - a window gets one result from each group, with one body;
//   - what is published is what an owner without any trouble publishes, which is given
//     the same inputs in the same order, and whose state never leaves its memory;
//   - raised and cleared alternate for each machine;
//   - a tool that has been faulty for long has an alarm that is not normal;
//   - an alarm that is raised is of a tool that was cutting just now;
//   - each message with a command has one outcome in each group, an answer or a letter, and
//     each id is carried out at most once;
//   - a window of another length is set aside once, and the machine has an advisory then;
//   - advisories of such windows are raised and cleared in turn;
//   - records stay small;
//   - once faults have ended, nothing waits;
//   - gateways and the route do what their end methods say;
//   - what else holds of models, features and shadows is in swaps.go.
//
// When the broker loses the tails of its logs, these promises are left: a group is what
// its state topic still says, and from there on all of the above holds, so the checker
// goes back with it. A window, command or alert that is in the log in the end was read,
// unless it was written between the loss and the moment when the reader asked again. A
// command that a group answered in what was lost, or whose message was lost, has at least
// one outcome. Not left are these: a window that was judged in what was lost may have
// another result under the same id; readers of the alerts may see an alarm raised twice,
// or cleared that they never saw raised; what was lost is not written again.
type checker struct {
	w      *world
	groups map[*group]*seen
	cutOff bool // logs have lost their tails, so features may be missing
	held   int  // verdicts after swaps that were compared with the verdicts of a machine without
}

// seen is what one group has published.
type seen struct {
	results   map[string]*event.Result
	judged    map[string]bool // windows that had a result at some time
	machines  map[string]*seenMachine
	answers   map[string]int     // by command
	letters   map[message]string // why a command was set aside
	had       map[any]bool       // ids that had an answer at some time, and messages that were set aside
	lost      map[string]bool    // commands of which the broker has lost what became of them
	since     map[int]int64      // by partition: the first command that the group has to answer
	reference map[int]*reference
	swaps
}

// message is a message of the commands topic. Offsets come again when a log loses its tail.
type message struct {
	id     string
	part   int
	offset int64
}

// unknownMachine stands for the reason that nothing was known of a command's machine.
const unknownMachine = "unknown machine"

type seenMachine struct {
	raised   bool
	refused  bool // an advisory says that its windows are refused
	incident string
	tools    []string // of the last results that were not late
	life     string   // of the last of these tools
	faulty   int      // in a row, of that life
}

// reference is an owner without any trouble.
type reference struct {
	owner   *machine.Owner
	level   int // number of the deployments that it knows of
	replays map[*machine.Replay]*machine.Replay
	records map[machine.Key]machine.Record
	at      machine.Position
	judged  []judged // since the last transaction
	epoch   int      // of the producer that published last
	lost    bool     // the broker has lost something of the group since: the next producer begins with what is left
}

func newChecker(w *world) *checker { return &checker{w: w, groups: make(map[*group]*seen)} }

func (c *checker) of(g *group) *seen {
	s := c.groups[g]
	if s == nil {
		s = &seen{
			results: make(map[string]*event.Result), judged: make(map[string]bool), machines: make(map[string]*seenMachine), answers: make(map[string]int),
			letters: make(map[message]string), had: make(map[any]bool), lost: make(map[string]bool), since: make(map[int]int64), reference: make(map[int]*reference),
			swaps: newSwaps(),
		}
		c.groups[g] = s
	}
	return s
}

func (s *seen) machine(name string) *seenMachine {
	m := s.machines[name]
	if m == nil {
		m = &seenMachine{}
		s.machines[name] = m
	}
	return m
}

// lastIncident returns the last alarm of a machine that was raised.
func (c *checker) lastIncident(g *group, name string) string { return c.of(g).machine(name).incident }

// published takes what a transaction makes visible.
func (c *checker) published(t *txn, early bool) {
	if t.seen && !early {
		return
	}
	t.seen = true
	s := c.of(t.group)
	if c.w.Trace {
		c.w.say("%s partition %d: transaction %d to %d/%d: %d results, %d alerts", t.group.name, t.part, t.number, t.batch.Position.Windows, t.batch.Position.Commands, count(t.batch, true), count(t.batch, false))
	}
	c.alarmsStay(s, t)
	c.compare(s, t)
	s.remember(t)
	for _, o := range t.batch.Events {
		if o.Shadow && c.w.Bug != ShadowOnResults {
			c.shadowed(s, t, o)
			continue
		}
		switch {
		case o.Result != nil:
			c.result(s, t, o.Result)
		case o.Alert != nil:
			c.alert(s, t, o.Alert)
		case o.Advisory != nil:
			c.advisory(s, t, o.Advisory)
		}
	}
	if c.w.Bug != FeaturesTwice {
		c.features(t)
	}
	c.unwatched(s, t)
	c.refused(s, t)
	c.commands(s, t)
	c.swapped(s, t)
	for _, r := range t.batch.State {
		if len(r.Value) > 20_000 {
			c.w.fail("record %q has %d bytes", r.Key.String(), len(r.Value))
		}
	}
}

// remember keeps how the machines of a transaction were before it.
func (s *seen) remember(t *txn) {
	for _, o := range t.batch.Events {
		var m *seenMachine
		switch {
		case o.Shadow:
			continue
		case o.Result != nil:
			m = s.machine(o.Result.Machine)
		case o.Alert != nil:
			m = s.machine(o.Alert.Machine)
		case o.Advisory != nil:
			m = s.machine(o.Advisory.Machine)
		default:
			continue
		}
		before := *m
		before.tools = slices.Clone(m.tools)
		t.forget = append(t.forget, func() { *m = before })
	}
}

// commands checks that a transaction carries no command out twice, and sets no message
// aside twice.
func (c *checker) commands(s *seen, t *txn) {
	var last string
	for _, o := range t.batch.Events { // what one command does stands together
		if o.Alert == nil || o.Shadow || o.Alert.Command == "" || o.Alert.Command == last {
			continue
		}
		id := o.Alert.Command
		last = id
		s.had[id] = true
		if s.answers[id]++; s.answers[id] > 1 {
			c.w.fail("%s answers command %s twice", t.group.name, id)
		}
		t.forget = append(t.forget, func() { s.answers[id]-- })
	}
	for _, l := range t.batch.Letters {
		if !l.Command {
			continue
		}
		at := message{c.ids(t)[l.Offset], t.part, l.Offset}
		if s.letters[at] != "" {
			c.w.fail("%s sets command %d of partition %d aside twice", t.group.name, l.Offset, t.part)
		}
		s.had[at] = true
		if s.letters[at] = l.Reason; l.Unknown {
			s.letters[at] = unknownMachine
		}
		t.forgetPosition = append(t.forgetPosition, func() { delete(s.letters, at) })
	}
}

// refused checks the windows that a transaction sets aside.
func (c *checker) refused(s *seen, t *txn) {
	for _, l := range t.batch.Letters {
		why := refusalOf(l)
		switch {
		case l.Command:
			continue
		case why == nil:
			c.w.fail("%s sets aside offset %d: %s", t.group.name, l.Offset, l.Reason)
			continue
		}
		at := message{fmt.Sprintf("window %s/%s/%d", why.Machine, why.Epoch, why.Seq), t.part, l.Offset}
		if s.letters[at] != "" {
			c.w.fail("%s sets offset %d of partition %d aside twice", t.group.name, l.Offset, t.part)
		}
		if !l.Advised || !s.machine(why.Machine).refused {
			c.w.fail("%s refuses a window of %s, and no advisory says so", t.group.name, why.Machine)
		}
		s.had[at.id], s.letters[at] = true, l.Reason
		t.forgetPosition = append(t.forgetPosition, func() { delete(s.letters, at) })
	}
}

// refusalOf returns why a window was refused; nil if the letter is of something else.
func refusalOf(l machine.Letter) *machine.Refusal {
	var why *machine.Refusal
	if errors.As(l.Err, &why) {
		return why
	}
	return nil
}

// advisory checks that advisories of refused windows are raised and cleared in turn.
func (c *checker) advisory(s *seen, t *txn, a *event.Advisory) {
	c.w.say("  %s %s", t.group.name, a.Text)
	if a.Kind != event.RefusedAdvisory {
		return
	}
	m := s.machine(a.Machine)
	if raised := a.State == event.Raised; raised == m.refused {
		c.w.fail("%s: the advisory of %s is %s twice: %s", t.group.name, a.Machine, a.State, a.ID)
	}
	m.refused = a.State == event.Raised
}

// ids returns the ids of the commands that a transaction follows from, by offset.
func (c *checker) ids(t *txn) map[int64]string {
	if t.ids != nil || t.batch.Of == nil {
		return t.ids
	}
	ids := make(map[int64]string)
	for _, m := range t.batch.Of.Commands {
		var e event.Command
		if err := json.Unmarshal(m.Value, &e); err != nil {
			panic(err) // people send none that cannot be read
		}
		ids[m.Offset] = e.ID
	}
	t.ids = ids
	return ids
}

// lost is called when the broker has lost the state or the position of a transaction.
// Windows may be judged again if their result is not in the state any more, and a command
// may be answered again, or have a letter next to its answer; all of it must follow from
// what is left.
func (c *checker) lost(t *txn) {
	s := c.of(t.group)
	for _, id := range c.ids(t) {
		s.lost[id] = true
	}
}

// cut is called when the logs of a partition have lost their tails, and with them commands
// that may have been answered.
func (c *checker) cut(g *group, part int, commands []*sentCommand) {
	for _, m := range commands {
		c.of(g).lost[m.id] = true
	}
	if ref := c.of(g).reference[part]; ref != nil {
		ref.lost = true
	}
}

// again is called when a group reads a partition from its beginning: commands that were
// answered before get a letter.
func (c *checker) again(g *group, part int) {
	s := c.of(g)
	for off, m := range c.w.broker.parts[part].commands {
		s.lost[m.id] = true
		delete(s.letters, message{m.id, part, int64(off)})
	}
	maps.DeleteFunc(s.letters, func(m message, _ string) bool { return m.part == part && strings.HasPrefix(m.id, "window ") })
}

func count(b *machine.Batch, results bool) (n int) {
	for _, o := range b.Events {
		if !o.Shadow && results == (o.Result != nil) {
			n++
		}
	}
	return n
}

func (c *checker) result(s *seen, t *txn, r *event.Result) {
	if before, ok := s.results[r.ID]; ok {
		if x, y := event.JSON(before), event.JSON(r); bytes.Equal(x, y) {
			c.w.fail("%s: window %s has two results", t.group.name, r.ID)
		} else {
			c.w.fail("%s: window %s has two results that differ:\n%s\n%s", t.group.name, r.ID, x, y)
		}
	}
	if r.Group != t.group.name || !c.w.fleet.champion[r.Machine+" "+r.Model] {
		c.w.fail("%s: the result of window %s is of group %s and model %s, which was never deployed for %s", t.group.name, r.ID, r.Group, r.Model, r.Machine)
	}
	s.results[r.ID], s.judged[r.ID] = r, true
	t.forget = append(t.forget, func() { delete(s.results, r.ID) })
	m := s.machine(r.Machine)
	if r.Late {
		return
	}
	life := r.Tool + " " + c.w.broker.lives[nameOf(r.Machine, r.Epoch, r.Seq)]
	if life != m.life {
		m.faulty, m.life = 0, life
	}
	m.tools = append(m.tools, r.Tool)
	m.tools = m.tools[max(0, len(m.tools)-4):]
	switch r.Verdict {
	case event.Faulty:
		m.faulty++
	case event.Healthy:
		m.faulty = 0
	}
	if m.faulty >= 8 && r.Alarm == "normal" {
		c.w.fail("%s: tool %s of %s is faulty for %d windows, and its alarm is normal", t.group.name, r.Tool, r.Machine, m.faulty)
	}
}

func (c *checker) alert(s *seen, t *txn, a *event.Alert) {
	c.w.say("  %s %s: %s", t.group.name, a.State, a.Text)
	m := s.machine(a.Machine)
	switch a.State {
	case event.Raised:
		if m.raised {
			c.w.fail("%s: the alarm of %s is raised twice without being cleared: %s", t.group.name, a.Machine, a.ID)
		}
		m.raised, m.incident = true, a.Incident
		if !slices.Contains(m.tools, a.Tool) {
			c.w.fail("%s: an alarm of tool %q of %s is raised, and the last windows are of %q", t.group.name, a.Tool, a.Machine, m.tools)
		}
	case event.Cleared:
		if !m.raised {
			c.w.fail("%s: the alarm of %s is cleared and was not raised: %s", t.group.name, a.Machine, a.ID)
		}
		m.raised = false
	case event.ToolIsNew:
		m.faulty = 0
		c.declaredNew(s, t, a)
	case event.Retired: // its windows may come again, and are judged again
		m.faulty, m.tools = 0, nil
		for id, r := range s.results {
			if r.Machine == a.Machine {
				delete(s.results, id)
				t.forget = append(t.forget, func() { s.results[id] = r })
			}
		}
		s.retired(t, a.Machine)
	}
}

// compare holds a transaction to what an owner without any trouble publishes.
func (c *checker) compare(s *seen, t *txn) {
	ref := s.ref(t.part)
	var want *machine.Batch
	another := ref.epoch != t.epoch
	if ref.owner == nil || t.batch.Of == nil || another && ref.outdated(t) {
		want = c.load(ref, t)
		if ref.at.Commands < 0 {
			s.since[t.part] = t.batch.Position.Commands
		}
	} else if another {
		for _, key := range slices.Collect(maps.Keys(ref.replays)) { // its owner is gone
			r := ref.replays[key]
			r.Failed = true
			ref.owner.On(machine.Reply{Replayed: r})
		}
		clear(ref.replays)
	}
	for i, in := range t.before {
		did := publishes(c.hand(ref, t, in))
		if last := i == len(t.before)-1; last {
			want = did
		} else if did != nil {
			c.w.fail("%s partition %d: nothing was published, and without trouble it is\n%s", t.group.name, t.part, tell(did))
			return
		}
	}
	if want == nil {
		c.w.fail("%s partition %d: %s is published, and nothing follows from it without trouble", t.group.name, t.part, tell(t.batch))
		return
	}
	if !same(t.batch, want) {
		got, calm := differing(tell(t.batch), tell(want))
		c.w.fail("%s partition %d: published\n%s\nwithout trouble it is\n%s", t.group.name, t.part, got, calm)
	}
	if !slices.EqualFunc(t.judged, ref.judged, func(a, b judged) bool { return a.opened == b.opened && name(&a.Window) == name(&b.Window) }) {
		c.w.fail("%s partition %d: features of %d windows are published, without trouble of %d", t.group.name, t.part, len(t.judged), len(ref.judged))
	}
	ref.judged = nil
	ref.epoch = t.epoch
	for _, r := range want.State {
		ref.put(t, r)
	}
	ref.at = t.batch.Position
	ref.owner.On(machine.Reply{Published: true})
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

// outdated reports whether an owner that takes over knows something else than what the owner
// without trouble has in its memory.
func (ref *reference) outdated(t *txn) bool {
	return ref.level != t.version.number || t.version.fresh || ref.lost || ref.at.Commands > t.commandsEnd
}

// ref returns the owner of a partition without trouble.
func (s *seen) ref(part int) *reference {
	ref := s.reference[part]
	if ref == nil {
		ref = &reference{records: make(map[machine.Key]machine.Record), at: nowhere, replays: make(map[*machine.Replay]*machine.Replay)}
		s.reference[part] = ref
	}
	return ref
}

// hand lets the owner without trouble take what another owner took.
func (c *checker) hand(ref *reference, t *txn, in *input) []machine.Action {
	switch r := in.reply; {
	case in.due != nil:
		due := ref.owner.ReplayDue(t.batch.Of.Now)
		if due == nil || !reflect.DeepEqual(due.Job(), in.due.Job()) {
			c.w.fail("%s partition %d: a replay of %+v began, and none is due without trouble", t.group.name, t.part, in.due.Job())
			return nil
		}
		ref.replays[in.due] = due
		return nil
	case r.Fleet != nil:
		if in.level <= ref.level {
			return nil
		}
		ref.level = in.level
		return ref.owner.On(r)
	case r.Replayed != nil:
		own := ref.replays[r.Replayed]
		if own == nil {
			return nil // of an owner before
		}
		delete(ref.replays, r.Replayed)
		for _, f := range in.seen {
			own.Observe(f.Features, f.time())
		}
		own.Failed = r.Replayed.Failed
		return ref.owner.On(machine.Reply{Replayed: own, Now: r.Now})
	default:
		return ref.owner.On(r)
	}
}

// load makes a new owner remember what the one before has published, and returns what it
// publishes first.
func (c *checker) load(ref *reference, t *txn) *machine.Batch {
	ref.owner, ref.level = machine.NewOwner(t.group.settings, t.version.fleet, t.part), t.version.number
	ref.owner.OnFeatures = func(f *window.Features) { ref.judged = append(ref.judged, c.w.opened.of(f)) }
	clear(ref.replays)
	ref.judged = nil
	at := ref.at
	if ref.lost {
		at, ref.lost = t.fenced, false
	}
	at.Commands = min(at.Commands, t.commandsEnd) // as a monitor does when the log has lost its tail
	ref.owner.On(machine.Reply{Fenced: &at, CommandsEnd: t.batch.Position.Commands})
	loaded := byKey(ref.records, func(machine.Record) bool { return true })
	return publishes(ref.owner.On(machine.Reply{Loaded: loaded, Now: t.loaded}))
}

// publishes returns the batch among actions; nil if none publishes.
func publishes(actions []machine.Action) *machine.Batch {
	for _, a := range actions {
		if a.Publish != nil {
			return a.Publish
		}
	}
	return nil
}

// same reports whether two batches publish the same. The position in the features counts if
// some of them were judged: an owner reads past what others publish, and says so later.
func same(a, b *machine.Batch) bool {
	x, y := a.Position, b.Position
	if a.Of == nil || a.Of.Features == nil {
		x.Features, y.Features = 0, 0
	}
	return x == y && len(a.State) == len(b.State) && slices.EqualFunc(a.State, b.State, func(x, y machine.Record) bool {
		return x.Key == y.Key && bytes.Equal(x.Value, y.Value)
	}) && reflect.DeepEqual(a.Events, b.Events) && slices.EqualFunc(a.Letters, b.Letters, func(x, y machine.Letter) bool {
		return x.Offset == y.Offset && x.Reason == y.Reason
	})
}

// differing returns the lines of each text that the other one does not have.
func differing(a, b string) (string, string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	without := func(all, other []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(all), func(line string) bool { return slices.Contains(other, line) }), "\n")
	}
	return without(x, y), without(y, x)
}

// tell returns everything in a batch in words.
func tell(b *machine.Batch) string {
	var out strings.Builder
	fmt.Fprintf(&out, "position %v\n", b.Position)
	for _, r := range b.State {
		fmt.Fprintf(&out, "%q %s\n", r.Key.String(), r.Value)
	}
	for _, o := range b.Events {
		switch {
		case o.Result != nil:
			fmt.Fprintf(&out, "%s\n", event.JSON(o.Result))
		case o.Alert != nil:
			fmt.Fprintf(&out, "%s\n", event.JSON(o.Alert))
		case o.Advisory != nil:
			fmt.Fprintf(&out, "%s\n", event.JSON(o.Advisory))
		case o.Evidence != nil:
			fmt.Fprintf(&out, "%s\n", event.JSON(o.Evidence))
		}
	}
	for _, l := range b.Letters {
		fmt.Fprintf(&out, "letter %d %s\n", l.Offset, l.Reason)
	}
	return out.String()
}

// end checks what must hold once faults have ended.
func (c *checker) end() {
	for _, g := range c.w.groups {
		s := c.of(g)
		for i, p := range c.w.broker.parts {
			at := g.positions[i]
			if all := g.log[i]; len(all) > 0 && all[len(all)-1].positionLost {
				at = g.read(i) // its owner has no reason yet to commit again what the broker has lost
			}
			if !p.done(at) {
				c.w.fail("%s partition %d stands at %v of %d windows, %d features and %d commands", g.name, i, at, len(p.windows), p.edgeEnd, len(p.commands))
			}
			for off, f := range p.features {
				if f.judged() && !s.taken(name(&f.Window), g) && !p.hidden(featureLog, g, off) {
					c.w.fail("%s: window %s, of which a gateway sent features, has no result", g.name, name(&f.Window))
				}
			}
			for off, win := range p.windows {
				if win.other {
					if !s.had["window "+name(win.Window)] && !p.hidden(windowLog, g, off) {
						c.w.fail("%s: window %s was not set aside", g.name, name(win.Window))
					}
					continue
				}
				if !s.taken(name(win.Window), g) && !p.hidden(windowLog, g, off) {
					c.w.fail("%s: window %s has no result", g.name, name(win.Window))
				}
			}
		}
		c.answers(g, s)
		c.fleetEnd(g, s)
	}
}

// answers checks that every message with a command has one outcome, and that every id was
// carried out, or refused in an alert, once. The exception are messages that came before
// anything was known of their machine: each is set aside, and leaves the id free.
func (c *checker) answers(g *group, s *seen) {
	type sent struct {
		message
		when int64
	}
	var all []sent
	for i, p := range c.w.broker.parts {
		for off, cmd := range p.commands {
			m := message{cmd.id, i, int64(off)}
			switch {
			case p.hidden(commandLog, g, off): // it may have no outcome, and then its twin has the answer
				s.lost[cmd.id] = true
			case int64(off) >= s.since[i]:
				all = append(all, sent{m, cmd.when})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.when, b.when) })
	free, used := make(map[string]bool), make(map[string]bool) // ids
	for _, m := range all {
		letter, answers := s.letters[m.message], s.answers[m.id]
		switch {
		case s.lost[m.id]:
			if !s.had[m.message] && !s.had[m.id] {
				c.w.fail("%s: command %s at offset %d of partition %d has no outcome", g.name, m.id, m.offset, m.part)
			}
		case letter == unknownMachine && !used[m.id]:
			free[m.id] = true
		case used[m.id] && (letter == "" || letter == unknownMachine):
			c.w.fail("%s: command %s came again at offset %d of partition %d and was not set aside for that: %q", g.name, m.id, m.offset, m.part, letter)
		case !used[m.id] && (letter != "" || answers != 1):
			c.w.fail("%s: command %s at offset %d of partition %d was answered %d times and set aside for %q", g.name, m.id, m.offset, m.part, answers, letter)
		default:
			used[m.id] = true
		}
	}
	for id := range free {
		if !used[id] && !s.lost[id] && s.answers[id] > 0 {
			c.w.fail("%s: command %s was set aside and answered", g.name, id)
		}
	}
}
