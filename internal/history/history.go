// Package history reads what monitors have published, for pages, listings and routes: state
// records and past events. It sees committed messages only.
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
)

// Records returns the state records of a group by machine. A machine that was retired has none.
func Records(ctx context.Context, cfg bus.Config, group string) (map[string][]event.StateRecord, error) {
	last, err := readState(ctx, cfg)
	return last.machines(group), err
}

// RecordsIn does for the machines whose records are in a partition what Records does for all.
func RecordsIn(ctx context.Context, cfg bus.Config, group string, partition int) (map[string][]event.StateRecord, error) {
	last := make(lastRecords)
	if err := bus.ReadFrom(ctx, cfg, bus.TopicState, partition, bus.FirstOffset, false, last.take); err != nil {
		return nil, fmt.Errorf("history: state: %w", err)
	}
	return last.machines(group), nil
}

// RecordsOf returns the state records of a machine, of all groups, by group. A group that has retired it has none.
func RecordsOf(ctx context.Context, cfg bus.Config, name string) (map[string][]event.StateRecord, error) {
	last, err := readState(ctx, cfg)
	maps.DeleteFunc(last, func(at recordKey, _ bus.Message) bool {
		k, ok := event.ParseStateKey(at.key)
		return !ok || k.Machine != name
	})
	all := make(map[string][]event.StateRecord)
	for at := range last {
		k, _ := event.ParseStateKey(at.key)
		if records := last.machines(k.Group)[name]; records != nil {
			all[k.Group] = records
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
func (l lastRecords) machines(group string) map[string][]event.StateRecord {
	all := make(map[string][]event.StateRecord)
	for _, at := range slices.SortedFunc(maps.Keys(l), func(a, b recordKey) int { return strings.Compare(a.key, b.key) }) {
		k, ok := event.ParseStateKey(at.key)
		if m := l[at]; ok && k.Group == group && len(m.Value) > 0 && (all[k.Machine] != nil || k.Part == event.HeadState) { // the machine's own key comes first
			all[k.Machine] = append(all[k.Machine], event.StateRecord{Key: k, Value: m.Value, Offset: m.Offset})
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
	err = bus.ReadMerged(ctx, cfg, bus.TopicAlerts, time.Time{}, nil, func(m bus.Message) error {
		id := string(m.Header("ce_id"))
		if string(m.Header("ce_type")) != typ || seen[id] {
			return nil
		}
		e, ours, err := Event[E](&m, group)
		if err != nil {
			skipped++
			return nil
		}
		if !ours {
			return nil
		}
		seen[id] = true
		return fn(*e)
	})
	if err != nil {
		return skipped, fmt.Errorf("history: alerts: %w", err)
	}
	return skipped, nil
}
