// Package history reads what monitors have published, for pages, listings and routes: the
// state of alarms, open advisories, and past events. It sees committed messages only.
//
// Several groups of monitors may judge the same machines. Each function takes the group
// whose messages it reads.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/state"
	"github.com/flank-tcm/flank/internal/machine"
)

// Standing is the state of a machine's alarm, and its open advisories.
type Standing struct {
	Machine  string
	Tool     string
	Incident string    // short name of the open alarm; empty if there is none
	Alarm    string    // state of the alarm, in the words of a result
	Beneath  string    // the state that the masks hide, if any
	Called   bool      // the alarm was announced, and not cleared since
	Since    time.Time // start of the first faulty window that led to it
	By, Note string    // who masked it, and why; else who acknowledged it
	Until    time.Time // end of the shelf

	Tools        int       // number of tools that are remembered
	LastWindowAt time.Time // by the monitor's clock; zero if not known

	Advisories []Advice   // open ones, the oldest first
	Magazine   []Standing // tools that wait there with an open or masked alarm; of each of them the lines above Tools
}

// Advice is an open advisory.
type Advice struct {
	Kind    event.AdvisoryKind
	Subject string // sensor: the channel, or the rate of several
	Since   time.Time
	Text    string
}

// unwatched says which advisories mean that a machine is not watched, and why.
var unwatched = []struct {
	kind event.AdvisoryKind
	why  string
}{{event.StoppedAdvisory, "stopped by a defect"}, {event.RefusedAdvisory, "windows refused"}, {event.SilenceAdvisory, "no windows"}, {event.UnknownAdvisory, "windows unknown"}, {event.ModelAdvisory, "model changed"}}

// Unwatched says in a few words why the machine is not watched. It is empty if it is
// watched.
func (s *Standing) Unwatched() string {
	for _, u := range unwatched {
		i := slices.IndexFunc(s.Advisories, func(a Advice) bool { return a.Kind == u.kind && (a.Subject == "" || a.Kind != event.ModelAdvisory) })
		switch {
		case i >= 0 && u.kind == event.RefusedAdvisory && machine.LacksModel(s.Advisories[i].Text):
			return "no model"
		case i >= 0:
			return u.why
		}
	}
	return ""
}

// Alarms returns the state of all machines' alarms, in the order of their names, from the
// group's records on the state topic. It reads alerts only to find who acknowledged an open alarm. Alerts that it cannot read are
// skipped and counted.
func Alarms(ctx context.Context, cfg bus.Config, group string) (all []Standing, skipped int, err error) {
	records, err := Records(ctx, cfg, group)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		sum, err := machine.Summarise(records[name])
		if err != nil {
			return nil, 0, err
		}
		all = append(all, standingOf(name, sum))
	}
	wanted := make(map[string]bool) // alarms that someone has acknowledged
	each := func(f func(*Standing)) {
		for i := range all {
			f(&all[i])
			for j := range all[i].Magazine {
				f(&all[i].Magazine[j])
			}
		}
	}
	each(func(s *Standing) {
		if s.Alarm == "acknowledged" {
			wanted[s.Incident] = true
		}
	})
	acked, skipped, err := acknowledged(ctx, cfg, group, wanted)
	each(func(s *Standing) {
		if a, ok := acked[s.Incident]; ok && s.Alarm == "acknowledged" {
			s.By, s.Note = a.By, a.Note
		}
	})
	return all, skipped, err
}

// standingOf returns what a machine's records say, which is all but who acknowledged an alarm.
func standingOf(name string, sum machine.Summary) Standing {
	of := func(tool string, a machine.Alarm) Standing {
		s := Standing{Machine: name, Tool: tool, Incident: a.Incident, Alarm: a.Word(sum.Masks), Beneath: a.Beneath(), Called: a.Announced, Since: a.Since}
		if mask := sum.Mask(&a); mask != nil {
			s.By, s.Note, s.Until = mask.By, mask.Reason, mask.Until
		}
		return s
	}
	s := of(sum.Tool, sum.Alarm)
	s.Tools, s.LastWindowAt = sum.Tools, sum.LastWindowAt
	for _, t := range sum.Magazine {
		s.Magazine = append(s.Magazine, of(t.Name, t.Alarm))
	}
	for _, n := range sum.Notices {
		if n.Stands() {
			s.Advisories = append(s.Advisories, Advice{n.Kind, n.Subject, n.Since, n.Text})
		}
	}
	slices.SortStableFunc(s.Advisories, func(a, b Advice) int { return a.Since.Compare(b.Since) })
	return s
}

// firstLook is how many offsets of each partition are searched first for an acknowledgement.
const firstLook = 1000

// acknowledged returns the last acknowledgement of each wanted alarm. The topic may hold years of alerts, and most acknowledgements
// of alarms that are still open are recent: it searches from the end, in steps that double, until it has found all.
func acknowledged(ctx context.Context, cfg bus.Config, group string, wanted map[string]bool) (acked map[string]event.Alert, skipped int, err error) {
	acked = make(map[string]event.Alert)
	if len(wanted) == 0 {
		return acked, 0, nil
	}
	n, err := bus.Partitions(ctx, cfg, bus.TopicAlerts)
	if err != nil {
		return nil, 0, fmt.Errorf("history: alerts: %w", err)
	}
	first, end := make([]int64, n), make([]int64, n) // of what is not searched
	for p := range n {
		if first[p], end[p], err = bus.Bounds(ctx, cfg, bus.TopicAlerts, p); err != nil {
			return nil, 0, fmt.Errorf("history: alerts: %w", err)
		}
	}
	for look, more := int64(firstLook), true; more && len(acked) < len(wanted); look *= 2 {
		more = false
		for p := range n {
			if end[p] <= first[p] {
				continue
			}
			part := bus.Range{From: max(first[p], end[p]-look), To: end[p]}
			found, damaged, err := acknowledgedIn(ctx, cfg, group, p, part, wanted)
			if skipped += damaged; err != nil {
				return nil, skipped, fmt.Errorf("history: alerts: %w", err)
			}
			maps.Copy(found, acked) // what came later counts
			acked, end[p] = found, part.From
			more = more || end[p] > first[p]
		}
	}
	return acked, skipped, nil
}

// acknowledgedIn returns the last acknowledgement of each wanted alarm in a part of a partition.
func acknowledgedIn(ctx context.Context, cfg bus.Config, group string, partition int, part bus.Range, wanted map[string]bool) (acked map[string]event.Alert, skipped int, err error) {
	acked = make(map[string]event.Alert)
	err = bus.ReadRange(ctx, cfg, bus.TopicAlerts, partition, part, func(m bus.Message) error {
		if !isAlert(&m) {
			return nil
		}
		a, ours, err := Event[event.Alert](&m, group)
		if err != nil {
			skipped++
		} else if ours && a.State == "acknowledged" && wanted[a.Incident] {
			acked[a.Incident] = *a
		}
		return nil
	})
	return acked, skipped, err
}

// Raised returns the machine that remembers an alarm, for each alarm that may still be marked as false.
func Raised(ctx context.Context, cfg bus.Config, group string) (map[string]string, error) {
	records, err := Records(ctx, cfg, group)
	if err != nil {
		return nil, err
	}
	machines := make(map[string]string)
	for name, kept := range records {
		sum, err := machine.Summarise(kept)
		if err != nil {
			return nil, err
		}
		for _, a := range sum.Raised {
			machines[a.Incident] = name
		}
	}
	return machines, nil
}

// Records returns the state records of a group by machine. A machine that was retired has none.
func Records(ctx context.Context, cfg bus.Config, group string) (map[string][]state.Record, error) {
	last, err := readState(ctx, cfg)
	return last.machines(group), err
}

// RecordsOf returns the state records of a machine, of all groups, by group. A group that has retired it has none.
func RecordsOf(ctx context.Context, cfg bus.Config, name string) (map[string][]state.Record, error) {
	last, err := readState(ctx, cfg)
	groups := make(map[string]bool)
	maps.DeleteFunc(last, func(at recordKey, _ bus.Message) bool {
		k, ok := state.ParseKey(at.key)
		if ok = ok && k.Machine == name; ok {
			groups[k.Group] = true
		}
		return !ok
	})
	all := make(map[string][]state.Record)
	for group := range groups {
		if records := last.machines(group)[name]; records != nil {
			all[group] = records
		}
	}
	return all, err
}

// readState returns the last messages of the state topic.
func readState(ctx context.Context, cfg bus.Config) (lastRecords, error) {
	last := make(lastRecords)
	if err := bus.ReadTopic(ctx, cfg, bus.TopicState, bus.FirstOffset, false, last.take); err != nil {
		return nil, fmt.Errorf("history: state: %w", err)
	}
	return last, nil
}

// lastRecords are the last messages of the keys of the state topic. A machine's are in one
// partition; where the topic has grown, another one has tombstones.
type lastRecords map[recordKey]bus.Message

type recordKey struct {
	key       string
	partition int
}

func (l lastRecords) take(m bus.Message) error {
	if m.Damage == nil {
		l[recordKey{m.Key, m.Partition}] = m
	}
	return nil
}

// machines returns the records of all machines of a group.
func (l lastRecords) machines(group string) map[string][]state.Record {
	all := make(map[string][]state.Record)
	for _, at := range slices.SortedFunc(maps.Keys(l), func(a, b recordKey) int { return strings.Compare(a.key, b.key) }) {
		k, ok := state.ParseKey(at.key)
		if m := l[at]; ok && k.Group == group && len(m.Value) > 0 && (all[k.Machine] != nil || k.Part == state.Head) { // the machine's own key comes first
			all[k.Machine] = append(all[k.Machine], state.Record{Key: k, Value: m.Value, Offset: m.Offset})
		}
	}
	return all
}

// Alerts calls fn for every alert of a group, each once. The alerts of a machine come in
// the order in which they were sent. An error of fn ends the reading and is returned.
// Alerts of any group that cannot be read are skipped and counted.
func Alerts(ctx context.Context, cfg bus.Config, group string, fn func(event.Alert) error) (skipped int, err error) {
	return each(ctx, cfg, group, event.AlertType, fn)
}

// Advisories does for advisories what Alerts does for alerts.
func Advisories(ctx context.Context, cfg bus.Config, group string, fn func(event.Advisory) error) (skipped int, err error) {
	return each(ctx, cfg, group, event.AdvisoryType, fn)
}

// Evidences does for evidence what Alerts does for alerts.
func Evidences(ctx context.Context, cfg bus.Config, group string, fn func(event.Evidence) error) (skipped int, err error) {
	return each(ctx, cfg, group, event.EvidenceType, fn)
}

var errNotEvent = errors.New("the message is not an event that a monitor sent of the machine that is its key")

// mostEvent bounds the bytes of an event; one of a monitor is smaller.
const mostEvent = 256 << 10

// Event returns the event in a message, and whether it is ours: published by the group. It is an error if no monitor can
// have sent the message.
func Event[E event.Published](m *bus.Message, group string) (e *E, ours bool, err error) {
	if len(m.Value) > mostEvent {
		return nil, false, errNotEvent
	}
	e = new(E)
	if err := json.Unmarshal(m.Value, e); err != nil {
		return nil, false, err
	}
	machine, by := (*e).Origin()
	if machine == "" || machine != m.Key || by == "" {
		return nil, false, errNotEvent
	}
	return e, by == group, nil
}

// each calls fn for every event of a type that the group published on the topic of alerts, each once. It counts events of
// any group that cannot be read.
func each[E event.Published](ctx context.Context, cfg bus.Config, group, typ string, fn func(E) error) (skipped int, err error) {
	seen := make(map[string]bool)
	err = bus.ReadTopic(ctx, cfg, bus.TopicAlerts, bus.FirstOffset, false, func(m bus.Message) error {
		id := string(m.Header("ce_id"))
		if string(m.Header("ce_type")) != typ || seen[id] {
			return nil
		}
		e, ours, err := Event[E](&m, group)
		if err != nil {
			skipped++
			return nil
		}
		seen[id] = true
		if !ours {
			return nil
		}
		return fn(*e)
	})
	if err != nil {
		return skipped, fmt.Errorf("history: alerts: %w", err)
	}
	return skipped, nil
}

// isAlert reports whether a message on the alerts topic is an alert. The topic has other
// events, too, and later releases may add more.
func isAlert(m *bus.Message) bool { return string(m.Header("ce_type")) == event.AlertType }
