package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
)

// checker sees everything that becomes visible to readers of committed messages, and says
// what does not hold:
//
//   - a window gets one result from each group, with one body, unless more epochs came than the group remembers;
//   - what is published of a machine is what package oracle says of it, which is given the same
//     inputs in the same order, and which knows no owners and no records; see follow.go;
//   - raised and cleared alternate for each machine;
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
	results  map[string]*event.Result
	judged   map[string]bool // windows that had a result at some time
	machines map[string]*seenMachine
	answers  map[string]int     // by command
	letters  map[message]string // why a command was set aside
	had      map[any]bool       // ids that had an answer at some time, and messages that were set aside
	lost     map[string]bool    // commands of which the broker has lost what became of them
	since    map[int]int64      // by partition: the first command that the group has to answer
	follows  map[int]*followers // by partition
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
	judged   *txn // in which it was cleared last
	incident string
}

func newChecker(w *world) *checker { return &checker{w: w, groups: make(map[*group]*seen)} }

func (c *checker) of(g *group) *seen {
	s := c.groups[g]
	if s == nil {
		s = &seen{
			results: make(map[string]*event.Result), judged: make(map[string]bool), machines: make(map[string]*seenMachine), answers: make(map[string]int),
			letters: make(map[message]string), had: make(map[any]bool), lost: make(map[string]bool), since: make(map[int]int64), follows: make(map[int]*followers),
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
		c.w.say("%s partition %d: transaction %d to %d/%d: %d results, %d alerts", t.group.name, t.part, t.number, t.batch.Position.Windows, t.batch.Position.Commands, count[machine.Result](t.batch), count[machine.Alert](t.batch))
	}
	c.alarmsStay(s, t)
	if t.batch.Of == nil && t.fenced.Commands < 0 {
		s.since[t.part] = t.batch.Position.Commands
	}
	c.follow(s, t)
	s.remember(t)
	if t.batch.Panics > 0 {
		c.w.fail("%s partition %d: %v", t.group.name, t.part, t.batch.Lines)
	}
	for _, o := range t.batch.Events {
		switch o := o.(type) {
		case machine.ShadowResult:
			c.shadowResult(s, t, o.Result)
		case machine.ShadowAlert:
			_, id, _ := strings.Cut(o.Group, "~")
			c.ofShadow(t, o.Group, o.Machine, id)
		case machine.Result:
			c.result(s, t, o.Result)
		case machine.Alert:
			c.alert(s, t, o.Alert)
		case machine.Advisory:
			c.advisory(s, t, o.Advisory)
		case machine.Evidence:
		}
	}
	if c.w.Bug != FeaturesTwice {
		c.features(t)
	}
	c.unwatched(s, t)
	c.refused(s, t)
	c.commands(s, t)
	for _, r := range t.batch.State {
		if r.Key.Group != t.group.name {
			c.w.fail("%s writes record %q", t.group.name, r.Key.String())
		}
		if len(r.Value) > 20_000 {
			c.w.fail("record %q has %d bytes", r.Key.String(), len(r.Value))
		}
	}
}

// remember keeps how the machines of a transaction were before it.
func (s *seen) remember(t *txn) {
	for _, o := range t.batch.Events {
		var m *seenMachine
		switch o := o.(type) {
		case machine.Result:
			m = s.machine(o.Machine)
		case machine.Alert:
			m = s.machine(o.Machine)
		case machine.Advisory:
			m = s.machine(o.Machine)
		case machine.Evidence, machine.ShadowResult, machine.ShadowAlert:
			continue
		}
		before := *m
		t.forget = append(t.forget, func() { *m = before })
	}
}

// results returns the results of a transaction by their windows, without the results of shadows.
func (t *txn) results() map[string]*event.Result {
	results := make(map[string]*event.Result)
	for _, o := range t.batch.Events {
		if r, ok := o.(machine.Result); ok {
			results[nameOf(r.Machine, r.Epoch, r.Seq)] = r.Result
		}
	}
	return results
}

// commands checks that a transaction carries no command out twice, and sets no message
// aside twice.
func (c *checker) commands(s *seen, t *txn) {
	var last string
	for _, o := range t.batch.Events { // what one command does stands together
		a, ok := o.(machine.Alert)
		if !ok || a.Command == "" || a.Command == last {
			continue
		}
		id := a.Command
		last = id
		s.had[id] = true
		if s.answers[id]++; s.answers[id] > 1 {
			c.w.fail("%s answers command %s twice", t.group.name, id)
		}
		t.forget = append(t.forget, func() { s.answers[id]-- })
	}
	for _, l := range t.batch.Letters {
		if l.Log != machine.CommandLog {
			continue
		}
		at := message{c.ids(t)[l.Offset], t.part, l.Offset}
		if s.letters[at] != "" {
			c.w.fail("%s sets command %d of partition %d aside twice: %s", t.group.name, l.Offset, t.part, l.Reason)
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
		case l.Log == machine.CommandLog:
			continue
		case why == nil:
			c.w.fail("%s sets aside offset %d: %s", t.group.name, l.Offset, l.Reason)
			continue
		}
		at := message{fmt.Sprintf("window %s/%s/%d", why.Machine, why.Epoch, why.Seq), t.part, l.Offset}
		if s.letters[at] != "" {
			c.w.fail("%s sets offset %d of partition %d aside twice", t.group.name, l.Offset, t.part)
		}
		if !l.Advised || !s.machine(why.Machine).advised(t) {
			c.w.fail("%s refuses a window of %s, and no advisory says so", t.group.name, why.Machine)
		}
		s.had[at.id], s.letters[at] = true, l.Reason
		t.forgetPosition = append(t.forgetPosition, func() { delete(s.letters, at) })
	}
}

// refusalOf returns why a window was refused; nil if the letter is of something else.
func refusalOf(l machine.Letter) *machine.Refusal {
	why, _ := errors.AsType[*machine.Refusal](l.Err)
	return why
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
	if m.refused = a.State == event.Raised; !m.refused {
		m.judged = t
	}
}

// advised reports whether an advisory of refused windows was open in a transaction.
func (m *seenMachine) advised(t *txn) bool { return m.refused || m.judged == t }

// ids returns the ids of the commands that a transaction follows from, by offset.
func (c *checker) ids(t *txn) map[int64]string {
	if t.ids != nil || t.batch.Of == nil {
		return t.ids
	}
	ids := make(map[int64]string)
	due, _ := t.batch.Of.(machine.CommandsDue)
	for _, m := range due {
		ids[m.Offset] = c.w.broker.command(m).ID
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
		delete(c.of(g).letters, message{m.id, part, m.Offset}) // what is sent again may lie there
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

// count returns how many events of a type a transaction publishes.
func count[T machine.Output](b *machine.Batch) (n int) {
	for _, o := range b.Events {
		if _, ok := o.(T); ok {
			n++
		}
	}
	return n
}

func (c *checker) result(s *seen, t *txn, r *event.Result) {
	if before, ok := s.results[r.ID]; ok && t.group.settings.Limits.Epochs == 0 { // else the oracle says which windows came before
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
	case event.Cleared:
		if !m.raised {
			c.w.fail("%s: the alarm of %s is cleared and was not raised: %s", t.group.name, a.Machine, a.ID)
		}
		m.raised = false
	case event.Retired: // its windows may come again, and are judged again
		for id, r := range s.results {
			if r.Machine == a.Machine {
				delete(s.results, id)
				t.forget = append(t.forget, func() { s.results[id] = r })
			}
		}
		s.retired(t, a.Machine)
	}
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
				if f.judged() && !s.taken(f.name, g) && !p.hidden(featureLog, g, off) {
					c.w.fail("%s: window %s, of which a gateway sent features, has no result", g.name, f.name)
				}
			}
			for off, win := range p.windows {
				if win.other {
					if !s.had["window "+win.name] && !p.hidden(windowLog, g, off) {
						c.w.fail("%s: window %s was not set aside", g.name, win.name)
					}
					continue
				}
				if !s.taken(win.name, g) && !p.hidden(windowLog, g, off) {
					c.w.fail("%s: window %s has no result", g.name, win.name)
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
