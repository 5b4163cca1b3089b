package monitor

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
)

// Standing is how the alarm of a machine stands, and what is advised beside it.
type Standing struct {
	Machine  string
	Tool     string
	Incident string    // what people call the alarm that stands; empty if none does
	Alarm    string    // its state in a word, as in a result
	Beneath  string    // the same without masks
	Since    time.Time // start of the first faulty window that led to it
	By, Note string    // who keeps it from calling, and why; or else who acknowledged it
	Until    time.Time // end of the shelf

	Advisories []Advice // that stand, the oldest first
}

// Advice is an advisory that stands.
type Advice struct {
	Kind    event.AdvisoryKind
	Subject string // of a sensor the channel, or the rate of several
	Since   time.Time
	Text    string
}

// Alarms returns how the alarms of all machines stand, in the order of their
// names, as the records on the state topic and the alerts say. An alert that cannot be
// read is skipped, and skipped counts them.
func Alarms(ctx context.Context, cfg bus.Config) (all []Standing, skipped int, err error) {
	records, err := lastRecords(ctx, cfg)
	if err != nil {
		return nil, 0, err
	}
	acked := make(map[string]event.Alert) // by incident
	skipped, err = Alerts(ctx, cfg, func(a event.Alert) error {
		if a.State == "acknowledged" {
			acked[a.Machine+a.Incident] = a
		}
		return nil
	})
	if err != nil {
		return nil, skipped, err
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		st, _, err := readState(records[name])
		if err != nil {
			return nil, skipped, err
		}
		a := st.Alarm
		s := Standing{Machine: name, Tool: a.Tool, Incident: st.Incident, Alarm: a.Word(), Beneath: a.Beneath(), Since: a.Since}
		if mask := cmp.Or(a.Service, a.Suppression, a.Shelf); mask != nil {
			s.By, s.Note, s.Until = mask.By, mask.Reason, mask.Until
		} else if ack, ok := acked[name+st.Incident]; ok {
			s.By, s.Note = ack.By, ack.Note
		}
		for _, n := range st.Notices {
			if n.stands() {
				s.Advisories = append(s.Advisories, Advice{n.Kind, n.Subject, n.Since, n.Text})
			}
		}
		slices.SortStableFunc(s.Advisories, func(a, b Advice) int { return a.Since.Compare(b.Since) })
		all = append(all, s)
	}
	return all, skipped, nil
}

// lastRecords returns the record of each machine that counts: the last one of the
// highest turn.
func lastRecords(ctx context.Context, cfg bus.Config) (map[string]bus.Message, error) {
	last := make(map[string]bus.Message)
	err := bus.ReadTopic(ctx, cfg, bus.TopicState, bus.FirstOffset, false, func(m bus.Message) error {
		if before, ok := last[m.Key]; ok {
			now, written := turnOf(m)
			if t, _ := turnOf(before); written && t > now {
				return nil
			}
		}
		last[m.Key] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("monitor: state: %w", err)
	}
	maps.DeleteFunc(last, func(_ string, m bus.Message) bool { return len(m.Value) == 0 }) // tombstones
	return last, nil
}

// Alerts calls fn for every alert on its topic, each once, and passes over what
// else lies there. Those of a machine come in the order in which they were sent. An
// alert that cannot be read is skipped, and skipped counts them. An error of fn ends it
// and is returned.
func Alerts(ctx context.Context, cfg bus.Config, fn func(event.Alert) error) (skipped int, err error) {
	return each(ctx, cfg, event.AlertType, fn)
}

// Advisories is Alerts for advisories.
func Advisories(ctx context.Context, cfg bus.Config, fn func(event.Advisory) error) (skipped int, err error) {
	return each(ctx, cfg, event.AdvisoryType, fn)
}

// Evidences is Alerts for what became of their evidence.
func Evidences(ctx context.Context, cfg bus.Config, fn func(event.Evidence) error) (skipped int, err error) {
	return each(ctx, cfg, event.EvidenceType, fn)
}

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
		return skipped, fmt.Errorf("monitor: alerts: %w", err)
	}
	return skipped, nil
}

// isAlert reports whether a message on the alerts topic is an alert. Other events
// lie there too, and more may come.
func isAlert(m *bus.Message) bool { return string(m.Header("ce_type")) == event.AlertType }
