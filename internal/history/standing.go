// Package history reads what monitors have published, for pages, listings and routes: how
// alarms and advisories stand, and the events of before. It only sees what was committed.
//
// Several groups of monitors may judge the same machines. Each function takes the group that
// it is about; events of releases that did not say their group count for every one.
package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
)

// Standing is how the alarm of a machine stands, and its open advisories.
type Standing struct {
	Machine  string
	Tool     string
	Incident string    // what people call the alarm that stands; empty if none does
	Alarm    string    // its state in a word, as in a result
	Beneath  string    // the same without masks
	Since    time.Time // start of the first faulty window that led to it
	By, Note string    // who keeps it from calling, and why; or else who acknowledged it
	Until    time.Time // end of the shelf

	Tools        int       // that are remembered
	LastWindowAt time.Time // by the monitor's clock; zero if it is not known

	Advisories []Advice // that stand, the oldest first
}

// Advice is an advisory that stands.
type Advice struct {
	Kind    event.AdvisoryKind
	Subject string // of a sensor the channel, or the rate of several
	Since   time.Time
	Text    string
}

// Alarms returns how the alarms of all machines stand, in the order of their names, as
// the group's records on the state topic and its alerts say.
// An alert that cannot be read is skipped, and skipped counts them.
func Alarms(ctx context.Context, cfg bus.Config, group string) (all []Standing, skipped int, err error) {
	records, err := Records(ctx, cfg, group)
	if err != nil {
		return nil, 0, err
	}
	acked := make(map[string]event.Alert) // by incident
	skipped, err = Alerts(ctx, cfg, group, func(a event.Alert) error {
		if a.State == "acknowledged" {
			acked[a.Machine+a.Incident] = a
		}
		return nil
	})
	if err != nil {
		return nil, skipped, err
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		sum, err := machine.Summarise(records[name])
		if err != nil {
			return nil, skipped, err
		}
		a := sum.Alarm
		s := Standing{Machine: name, Tool: sum.Tool, Incident: sum.Incident, Alarm: a.Word(), Beneath: a.Beneath(), Since: a.Since, Tools: sum.Tools, LastWindowAt: sum.LastWindowAt}
		if mask := cmp.Or(a.Service, a.Suppression, a.Shelf); mask != nil {
			s.By, s.Note, s.Until = mask.By, mask.Reason, mask.Until
		} else if ack, ok := acked[name+sum.Incident]; ok {
			s.By, s.Note = ack.By, ack.Note
		}
		for _, n := range sum.Notices {
			if n.Stands() {
				s.Advisories = append(s.Advisories, Advice{n.Kind, n.Subject, n.Since, n.Text})
			}
		}
		slices.SortStableFunc(s.Advisories, func(a, b Advice) int { return a.Since.Compare(b.Since) })
		all = append(all, s)
	}
	return all, skipped, nil
}

// Records returns the state records of a group by machine. A machine that only an older
// program has judged has the one record that such a program kept.
func Records(ctx context.Context, cfg bus.Config, group string) (map[string][]machine.Record, error) {
	last := make(map[string]bus.Message)
	err := bus.ReadTopic(ctx, cfg, bus.TopicState, bus.FirstOffset, false, func(m bus.Message) error {
		if m.Damage == nil {
			last[m.Key] = m
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: state: %w", err)
	}
	all := make(map[string][]machine.Record)
	own := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(last)) {
		m := last[key]
		k, ok := machine.ParseKey(key)
		if !ok || len(m.Value) == 0 || k.Group != group && k.Group != "" {
			continue
		}
		all[k.Machine] = append(all[k.Machine], machine.Record{Key: k, Value: m.Value, Offset: m.Offset})
		own[k.Machine] = own[k.Machine] || k.Group != ""
	}
	for name, records := range all {
		if own[name] {
			all[name] = slices.DeleteFunc(records, func(r machine.Record) bool { return r.Key.Group == "" })
		}
	}
	return all, nil
}

// Alerts calls fn for every alert of a group on its topic, each once, and passes over what
// else lies there. Those of a machine come in the order in which they were sent. An
// error of fn ends it and is returned. An alert that cannot be read is skipped, and
// skipped counts them, of whatever group.
func Alerts(ctx context.Context, cfg bus.Config, group string, fn func(event.Alert) error) (skipped int, err error) {
	return each(ctx, cfg, event.AlertType, func(a event.Alert) error { return ofGroup(a.Group, group, a, fn) })
}

// Advisories is Alerts for advisories.
func Advisories(ctx context.Context, cfg bus.Config, group string, fn func(event.Advisory) error) (skipped int, err error) {
	return each(ctx, cfg, event.AdvisoryType, func(a event.Advisory) error { return ofGroup(a.Group, group, a, fn) })
}

// Evidences is Alerts for what became of their evidence.
func Evidences(ctx context.Context, cfg bus.Config, group string, fn func(event.Evidence) error) (skipped int, err error) {
	return each(ctx, cfg, event.EvidenceType, func(e event.Evidence) error { return ofGroup(e.Group, group, e, fn) })
}

// ofGroup calls fn with an event unless another group published it.
func ofGroup[E any](published, group string, e E, fn func(E) error) error {
	if !OfGroup(published, group) {
		return nil
	}
	return fn(e)
}

// OfGroup reports whether an event that names the group that published it counts for a
// group.
func OfGroup(published, group string) bool { return published == "" || published == group }

// each calls fn for every event of a type on the topic of alerts, each once, and counts
// those that cannot be read.
func each[E any](ctx context.Context, cfg bus.Config, typ string, fn func(E) error) (skipped int, err error) {
	seen := make(map[string]bool)
	err = bus.ReadTopic(ctx, cfg, bus.TopicAlerts, bus.FirstOffset, false, func(m bus.Message) error {
		id := string(m.Header("ce_id"))
		if string(m.Header("ce_type")) != typ || seen[id] {
			return nil
		}
		var e E
		if json.Unmarshal(m.Value, &e) != nil {
			skipped++
			return nil
		}
		seen[id] = true
		return fn(e)
	})
	if err != nil {
		return skipped, fmt.Errorf("history: alerts: %w", err)
	}
	return skipped, nil
}

// isAlert reports whether a message on the alerts topic is an alert. Other events
// lie there too, and more may come.
func isAlert(m *bus.Message) bool { return string(m.Header("ce_type")) == event.AlertType }
