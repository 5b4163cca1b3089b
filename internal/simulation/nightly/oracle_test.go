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
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// topics are the messages that are left of a run, in the order of their partitions, read
// as everyone reads them: without what was aborted.
type topics struct {
	windows [][]bus.Message // by partition
	results []bus.Message
	alerts  []bus.Message
	dead    []bus.Message
}

// published is what one group has made of the windows, or should have.
type published struct {
	results map[string][]byte   // bodies by id
	alerts  map[string][]byte   // events of the alerts topic likewise
	changes map[string][]string // raised and cleared, in order, by machine
}

func newPublished() *published {
	return &published{results: make(map[string][]byte), alerts: make(map[string][]byte), changes: make(map[string][]string)}
}

// oracle says what a run must have left.
type oracle struct {
	model  *model.Model
	groups []string
}

// check returns what does not hold, in words:
//
//   - every window that a gateway has cut lies in the log;
//   - every window has exactly one result of every group;
//   - results and events are those of an owner without any trouble, which judges the same
//     log window by window;
//   - raised and cleared alternate for every machine;
//   - nothing was set aside.
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
	for _, m := range t.dead {
		say("a message of %s was set aside: %s", m.Key, m.Header("reason"))
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
		p.change(a)
	}
	for _, group := range o.groups {
		want, err := o.calm(group, codec, t.windows)
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

func (p *published) change(a event.Alert) {
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

// compare says which bodies are missing, too many or not those that were wanted.
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

// calm returns what an owner without any trouble publishes: it never loses its partitions
// and gets one window at a time.
func (o *oracle) calm(group string, codec *window.Codec, logs [][]bus.Message) (*published, error) {
	p := newPublished()
	for _, log := range logs {
		settings := &machine.Settings{Group: group, Alarm: alarm.Default}
		owner := machine.NewOwner(settings, machine.NewModel(o.model))
		owner.On(machine.Reply{Fenced: &machine.Position{Windows: -1, Commands: -1}})
		owner.On(machine.Reply{Loaded: []machine.Record{}})
		owner.On(machine.Reply{Published: true})
		for i := range log {
			m := &log[i]
			open := func(into *window.Window) (string, error) {
				return string(m.Header(gateway.ToolLife)), monitor.Open(codec, m, into)
			}
			for _, a := range owner.On(machine.Reply{Windows: []machine.Input{{Offset: m.Offset, At: m.Time, Open: open}}, Now: m.Time}) {
				if a.Publish == nil {
					continue
				}
				if len(a.Publish.Letters) > 0 {
					return nil, fmt.Errorf("offset %d is set aside: %s", m.Offset, a.Publish.Letters[0].Reason)
				}
				for _, out := range a.Publish.Events {
					p.add(out)
				}
			}
			owner.On(machine.Reply{Published: true})
		}
	}
	return p, nil
}

func (p *published) add(o machine.Output) {
	switch {
	case o.Result != nil:
		p.results[o.Result.ID] = event.JSON(o.Result)
	case o.Alert != nil:
		p.alerts[o.Alert.ID] = event.JSON(o.Alert)
		p.change(*o.Alert)
	case o.Advisory != nil:
		p.alerts[o.Advisory.ID] = event.JSON(o.Advisory)
	}
}

// settle is how long the pipeline gets, once faults have ended, to judge what is left.
const settle = 90 * time.Second
