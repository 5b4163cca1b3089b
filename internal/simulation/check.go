package simulation

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
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
//   - a command is answered once by each group;
//   - records stay small;
//   - once faults have ended, nothing waits.
type checker struct {
	w      *world
	groups map[*group]*seen
}

// seen is what one group has published.
type seen struct {
	results   map[string][]byte
	machines  map[string]*seenMachine
	answers   map[string]int // by command
	since     map[int]int64  // by partition: the first command that the group has to answer
	reference map[int]*reference
}

type seenMachine struct {
	raised   bool
	incident string
	tools    []string // of the last results that were not late
	life     string   // of the last of these tools
	faulty   int      // in a row, of that life
}

// reference is an owner without any trouble.
type reference struct {
	owner   *machine.Owner
	model   *machine.Model
	records map[string]machine.Record
	at      machine.Position
}

func newChecker(w *world) *checker { return &checker{w: w, groups: make(map[*group]*seen)} }

func (c *checker) of(g *group) *seen {
	s := c.groups[g]
	if s == nil {
		s = &seen{results: make(map[string][]byte), machines: make(map[string]*seenMachine), answers: make(map[string]int), since: make(map[int]int64), reference: make(map[int]*reference)}
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
	c.w.say("%s partition %d: transaction %d to %d/%d: %d results, %d alerts", t.group.name, t.part, t.number, t.batch.Position.Windows, t.batch.Position.Commands, count(t.batch, true), count(t.batch, false))
	c.compare(s, t)
	answered := make(map[string]bool)
	for _, o := range t.batch.Events {
		switch {
		case o.Result != nil:
			c.result(s, t, o.Result)
		case o.Alert != nil:
			c.alert(s, t, o.Alert)
			if o.Alert.Command != "" {
				answered[o.Alert.Command] = true
			}
		case o.Advisory != nil:
			c.w.say("  %s", o.Advisory.Text)
		}
	}
	for id := range answered {
		if s.answers[id]++; s.answers[id] > 1 {
			c.w.fail("%s answers command %s twice", t.group.name, id)
		}
	}
	for _, l := range t.batch.Letters {
		if !l.Command {
			c.w.fail("%s sets aside offset %d: %s", t.group.name, l.Offset, l.Reason)
			continue
		}
		at := fmt.Sprintf("letter %d/%d", t.part, l.Offset)
		if s.answers[at]++; s.answers[at] > 1 {
			c.w.fail("%s sets command %d of partition %d aside twice", t.group.name, l.Offset, t.part)
		}
	}
	for _, r := range t.batch.State {
		if len(r.Value) > 20_000 {
			c.w.fail("record %q has %d bytes", r.Key.String(), len(r.Value))
		}
	}
}

func count(b *machine.Batch, results bool) (n int) {
	for _, o := range b.Events {
		if results == (o.Result != nil) {
			n++
		}
	}
	return n
}

func (c *checker) result(s *seen, t *txn, r *event.Result) {
	body := event.JSON(r)
	if before, ok := s.results[r.ID]; ok {
		if bytes.Equal(before, body) {
			c.w.fail("%s: window %s has two results", t.group.name, r.ID)
		} else {
			c.w.fail("%s: window %s has two results that differ:\n%s\n%s", t.group.name, r.ID, before, body)
		}
	}
	s.results[r.ID] = body
	m := s.machine(r.Machine)
	if r.Late {
		return
	}
	life := r.Tool + " " + c.w.broker.lives[fmt.Sprintf("%s/%s/%d", r.Machine, r.Epoch, r.Seq)]
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
	}
}

// compare holds a transaction to what an owner without any trouble publishes.
func (c *checker) compare(s *seen, t *txn) {
	ref := s.reference[t.part]
	if ref == nil {
		ref = &reference{records: make(map[string]machine.Record), at: machine.Position{Windows: -1, Commands: -1}}
		s.reference[t.part] = ref
	}
	var want *machine.Batch
	if ref.owner == nil || ref.model != t.model || t.batch.Of == nil {
		want = ref.load(t)
		if ref.at.Commands < 0 {
			s.since[t.part] = t.batch.Position.Commands
		}
	}
	if t.batch.Of != nil {
		want = publishes(ref.owner.On(*t.batch.Of))
	}
	if want == nil {
		c.w.fail("%s partition %d: %s is published, and nothing follows from it without trouble", t.group.name, t.part, tell(t.batch))
		return
	}
	if !same(t.batch, want) {
		c.w.fail("%s partition %d: published\n%s\nwithout trouble it is\n%s", t.group.name, t.part, tell(t.batch), tell(want))
	}
	for _, r := range want.State {
		if r.Value == nil {
			delete(ref.records, r.Key.String())
		} else {
			ref.records[r.Key.String()] = r
		}
	}
	ref.at = want.Position
	ref.owner.On(machine.Reply{Published: true})
}

// load makes a new owner remember what the one before has published, and returns what it
// publishes first.
func (ref *reference) load(t *txn) *machine.Batch {
	ref.owner, ref.model = machine.NewOwner(t.group.settings, t.model, t.part), t.model
	at := ref.at
	ref.owner.On(machine.Reply{Fenced: &at, CommandsEnd: t.batch.Position.Commands})
	loaded := []machine.Record{}
	for _, key := range slices.Sorted(maps.Keys(ref.records)) {
		loaded = append(loaded, ref.records[key])
	}
	return publishes(ref.owner.On(machine.Reply{Loaded: loaded, Now: epoch0}))
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

// same reports whether two batches publish the same.
func same(a, b *machine.Batch) bool {
	return a.Position == b.Position && len(a.State) == len(b.State) && slices.EqualFunc(a.State, b.State, func(x, y machine.Record) bool {
		return x.Key == y.Key && bytes.Equal(x.Value, y.Value)
	}) && reflect.DeepEqual(a.Events, b.Events) && slices.EqualFunc(a.Letters, b.Letters, func(x, y machine.Letter) bool {
		return x.Offset == y.Offset && x.Reason == y.Reason
	})
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
			if len(p.windows)+len(p.commands) > 0 && (at.Windows < int64(len(p.windows)) || at.Commands < int64(len(p.commands))) {
				c.w.fail("%s partition %d stands at %v of %d windows and %d commands", g.name, i, at, len(p.windows), len(p.commands))
			}
			for _, win := range p.windows {
				if _, ok := s.results[name(win.Window)+"/"+g.name]; !ok {
					c.w.fail("%s: window %s has no result", g.name, name(win.Window))
				}
			}
			c.answers(g, s, i, p)
		}
	}
}

// answers checks that every command was answered, or set aside.
func (c *checker) answers(g *group, s *seen, i int, p *part) {
	first := make(map[string]bool)
	for off, cmd := range p.commands {
		letter := s.answers[fmt.Sprintf("letter %d/%d", i, off)]
		repeated := first[cmd.id]
		first[cmd.id] = true
		if int64(off) < s.since[i] {
			continue
		}
		if !repeated && s.answers[cmd.id]+letter != 1 {
			c.w.fail("%s: command %s at offset %d was answered %d times and set aside %d times", g.name, cmd.id, off, s.answers[cmd.id], letter)
		}
		if repeated && letter != 1 {
			c.w.fail("%s: command %s came again at offset %d and was set aside %d times", g.name, cmd.id, off, letter)
		}
	}
}

// grow moves what the owners without trouble remember, as the broker does.
func (c *checker) grow() {
	for _, s := range c.groups {
		all := s.reference
		s.reference = make(map[int]*reference)
		for i, old := range all {
			s.reference[i] = &reference{records: make(map[string]machine.Record), at: old.at}
		}
		for _, old := range all {
			for key, r := range old.records {
				to := c.w.broker.partOf(r.Key.Machine)
				if s.reference[to] == nil {
					s.reference[to] = &reference{records: make(map[string]machine.Record), at: machine.Position{Windows: -1, Commands: -1}}
				}
				s.reference[to].records[key] = r
			}
		}
	}
}
