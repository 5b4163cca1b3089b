package nightly

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// topics holds the messages on the topics after a run, in the order of their partitions and
// without aborted ones.
type topics struct {
	windows  [][]bus.Message // by partition
	commands [][]bus.Message // likewise
	results  []bus.Message
	alerts   []bus.Message
	dead     []bus.Message
}

// published holds what one group has published, or should have.
type published struct {
	results map[string][]byte   // bodies by id
	alerts  map[string][]byte   // events of the alerts topic likewise
	changes map[string][]string // raised and cleared, in order, by machine
	order   []string            // ids of the alerts that were added
	answers map[string]string   // window before the answer, by command
}

func newPublished() *published {
	return &published{results: make(map[string][]byte), alerts: make(map[string][]byte), changes: make(map[string][]string), answers: make(map[string]string)}
}

// oracle knows what the topics must hold after a run.
type oracle struct {
	model  *model.Model
	groups []string
}

// check returns a sentence for each violation of these rules:
//
//   - every window that a gateway has cut lies in the log;
//   - every window has exactly one result of every group;
//   - results and events are the same as from an undisturbed owner, which judges the same
//     log window by window;
//   - raised and cleared alternate for every machine;
//   - every group answers every command once, and sets repeated commands aside;
//   - no other message is set aside.
func (o *oracle) check(cut []string, t *topics) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	codec, err := window.NewCodec(o.model.Layout, o.model.Window)
	if err != nil {
		return []string{err.Error()}
	}
	lie := make(map[string]bool)
	for _, log := range t.windows {
		for i := range log {
			lie[string(log[i].Header("ce_id"))] = true
		}
	}
	for _, id := range cut {
		if !lie[id] {
			say("window %s was cut and does not lie in Kafka", id)
		}
	}
	repeated := o.repeated(t.commands)
	for _, m := range t.dead {
		if at := string(m.Header("dead_topic")) + place(m.Header("dead_partition"), m.Header("dead_offset")); repeated[at] == 0 {
			say("the message of %s at %s was set aside once more than it should be: %s", m.Key, at, m.Header("dead_reason"))
		} else {
			repeated[at]--
		}
	}
	for at, left := range repeated {
		if left > 0 {
			say("a command came again at %s, and %d groups have not set it aside", at, left)
		}
	}
	got := make(map[string]*published)
	for _, group := range o.groups {
		got[group] = newPublished()
	}
	for _, m := range t.results {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil || got[r.Group] == nil {
			say("a result of group %q: %v", r.Group, err)
			continue
		}
		results := got[r.Group].results
		if before, ok := results[r.ID]; ok {
			say("%s: window %s has two results, which %s", r.Group, r.ID, differ(before, m.Value))
		}
		results[r.ID] = m.Value
	}
	for _, m := range t.alerts {
		var a event.Alert
		if err := json.Unmarshal(m.Value, &a); err != nil || got[a.Group] == nil {
			say("an event of group %q: %v", a.Group, err)
			continue
		}
		p := got[a.Group]
		if before, ok := p.alerts[a.ID]; ok {
			say("%s: event %s is there twice, and both %s", a.Group, a.ID, differ(before, m.Value))
		}
		p.alerts[a.ID] = m.Value
		p.note(a)
	}
	for _, group := range o.groups {
		want, err := o.calm(group, codec, t, got[group].answers)
		if err != nil {
			say("%s without trouble: %v", group, err)
			continue
		}
		compare(say, group+": result", got[group].results, want.results)
		compare(say, group+": event", got[group].alerts, want.alerts)
		for name, changes := range got[group].changes {
			for i, c := range changes {
				if (i%2 == 0) != (c == string(event.Raised)) {
					say("%s: raised and cleared do not alternate on %s: %v", group, name, changes)
					break
				}
			}
		}
	}
	return wrong
}

// place returns the place of a message as text.
func place(partition, offset any) string { return fmt.Sprintf(" %s/%s", partition, offset) }

// repeated returns the places of repeated commands. The value is the number of groups.
func (o *oracle) repeated(logs [][]bus.Message) map[string]int {
	again := make(map[string]int)
	for _, log := range logs {
		seen := make(map[string]bool)
		for _, m := range log {
			if id := string(m.Header("ce_id")); seen[id] {
				again[m.Topic+place(fmt.Sprint(m.Partition), fmt.Sprint(m.Offset))] = len(o.groups)
			} else {
				seen[id] = true
			}
		}
	}
	return again
}

// note remembers the parts of an event that the oracle checks.
func (p *published) note(a event.Alert) {
	if a.Command != "" {
		p.answers[a.Command] = event.WindowID(a.Machine, a.Epoch, a.Seq)
	}
	if a.State == event.Raised || a.State == event.Cleared {
		p.changes[a.Machine] = append(p.changes[a.Machine], string(a.State))
	}
}

func differ(a, b []byte) string {
	if bytes.Equal(a, b) {
		return "are equal"
	}
	return fmt.Sprintf("differ:\n%s\n%s", a, b)
}

// compare reports missing, extra and different bodies.
func compare(say func(string, ...any), what string, got, want map[string][]byte) {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		switch body, ok := got[id]; {
		case !ok:
			say("%s %s is missing", what, id)
		case !bytes.Equal(body, want[id]):
			say("%s %s is\n%s\nand without trouble\n%s", what, id, body, want[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if want[id] == nil {
			say("%s %s is there, and is not without trouble", what, id)
		}
	}
}

// calm returns what an undisturbed owner publishes. It never loses its partitions and gets one
// window at a time. It gets a command at the point where the group carried it out: an answer
// names the last window before it.
func (o *oracle) calm(group string, codec *window.Codec, t *topics, answers map[string]string) (*published, error) {
	p := newPublished()
	for i := range t.windows {
		c := &calmOwner{p: p, codec: codec, answers: answers, commands: t.commands[i], last: make(map[string]string)}
		c.owner = machine.NewOwner(&machine.Settings{Group: group, Alarm: alarm.Default}, machine.Everything(o.model), i)
		c.owner.On(machine.Fenced{At: machine.Position{Windows: -1, Commands: -1}}, time.Time{})
		c.owner.On(machine.Loaded{}, time.Time{})
		c.owner.On(machine.Published{}, time.Time{})
		for k := range t.windows[i] {
			if err := c.window(&t.windows[i][k]); err != nil {
				return nil, err
			}
			if err := c.carryOut(); err != nil {
				return nil, err
			}
		}
		if len(c.commands) > 0 {
			m := &c.commands[0]
			return nil, fmt.Errorf("command %s of partition %d, offset %d, was not answered, or not in its order", m.Header("ce_id"), i, m.Offset)
		}
	}
	return p, nil
}

// calmOwner is the owner of one partition.
type calmOwner struct {
	p        *published
	codec    *window.Codec
	owner    *machine.Owner
	commands []bus.Message     // not carried out yet
	answers  map[string]string // as of published
	last     map[string]string // id of the last window in order, by machine
	seen     []string          // ids of commands
}

func (c *calmOwner) window(m *bus.Message) error {
	open := func(into *window.Features) error {
		var w window.Window
		if err := envelope.Open(c.codec, m, &w); err != nil {
			return err
		}
		*into = *machinetest.Features(nil, &w)
		return nil
	}
	return c.on(machine.Read{Log: machine.WindowLog, Inputs: []machine.Input{{Offset: m.Offset, At: m.Time, Open: open}}}, m.Time)
}

// carryOut carries out the commands whose time has come.
func (c *calmOwner) carryOut() error {
	for len(c.commands) > 0 {
		m := &c.commands[0]
		id := string(m.Header("ce_id"))
		again := slices.Contains(c.seen, id)
		if !again && c.answers[id] != c.last[m.Key] {
			return nil
		}
		c.commands = c.commands[1:]
		if c.seen = append(c.seen, id); !again {
			if err := c.on(machine.CommandsRead{{Key: m.Key, Value: m.Value, Offset: m.Offset, At: m.Time}}, m.Time); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *calmOwner) on(r machine.Reply, now time.Time) error {
	actions := c.owner.On(r, now)
	for len(actions) > 0 {
		a := actions[0]
		actions = actions[1:]
		if _, ok := a.(machine.AskEnd); ok { // of windows, no other one lies there
			actions = append(actions, c.owner.On(machine.End{Known: true}, now)...)
		}
		b, ok := a.(*machine.Batch)
		if !ok {
			continue
		}
		if len(b.Letters) > 0 {
			return fmt.Errorf("offset %d is set aside: %s", b.Letters[0].Offset, b.Letters[0].Reason)
		}
		for _, out := range b.Events {
			c.p.add(out)
			if r, ok := out.(machine.Result); ok && !r.Late {
				c.last[r.Machine] = event.WindowID(r.Machine, r.Epoch, r.Seq)
			}
		}
		actions = append(actions, c.owner.On(machine.Published{}, now)...)
	}
	return nil
}

func (p *published) add(o machine.Output) {
	switch o := o.(type) {
	case machine.Result:
		p.results[o.Result.ID] = event.JSON(o.Result)
	case machine.Alert:
		p.alerts[o.Alert.ID] = event.JSON(o.Alert)
		p.order = append(p.order, o.Alert.ID)
		p.note(*o.Alert)
	case machine.Advisory:
		p.alerts[o.Advisory.ID] = event.JSON(o.Advisory)
	case machine.Evidence, machine.ShadowResult, machine.ShadowAlert: // the calm owner has neither
	}
}

// settle is how long the pipeline has, after the faults have ended, to judge the remaining windows
// and to deliver the events. A route waits for up to a minute after many failures.
const settle = 2 * time.Minute
