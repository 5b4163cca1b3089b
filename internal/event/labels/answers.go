package labels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// fromAlarm is the method of labels that are answers to alarms.
const fromAlarm = "answer to an alarm"

// Answers returns what people's answers to alarms say of tools, from the alerts that Kafka has. They are weak labels: a
// false alarm says that the tool was not worn during the alarm, and an alarm that someone acknowledged and that a change of the tool ended says
// that it was.
func Answers(ctx context.Context, cfg bus.Config) ([]event.Label, error) {
	all := make(map[string]*answer)
	err := bus.ReadMerged(ctx, cfg, bus.TopicAlerts, time.Time{}, nil, func(m bus.Message) error {
		var a event.Alert
		if string(m.Header("ce_type")) != event.AlertType || json.Unmarshal(m.Value, &a) != nil || a.Incident == "" || a.Tool == "" {
			return nil
		}
		key := a.Group + " " + a.Incident
		if all[key] == nil {
			all[key] = &answer{label: event.Label{Machine: a.Machine, Tool: a.Tool, Incident: a.Incident, Method: fromAlarm}}
		}
		all[key].take(&a)
		return nil
	})
	if errors.Is(err, bus.ErrNoTopic) {
		err = nil
	}
	var labels []event.Label
	for _, a := range all {
		if l, ok := a.says(); ok && l.Check() == nil {
			labels = append(labels, l)
		}
	}
	slices.SortFunc(labels, func(a, b event.Label) int {
		return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.State, b.State), cmp.Compare(a.Incident, b.Incident), a.Until.Compare(b.Until), a.Given.Compare(b.Given))
	})
	// Groups answer for themselves. Healthy comes first: one that had forgotten the alarm does not know that it was marked as false.
	return slices.CompactFunc(labels, func(a, b event.Label) bool { return a.ID == b.ID }), err
}

// answer is what is known of an alarm.
type answer struct {
	label               event.Label
	acknowledged, false bool
	changed             time.Time // when a change of the tool ended it
	last                time.Time // of its alerts about windows
}

// take takes an alert of the alarm.
func (x *answer) take(a *event.Alert) {
	l := &x.label
	if l.At.IsZero() || a.Since.Before(l.At) {
		l.At = a.Since.UTC()
	}
	l.ToolLife = cmp.Or(l.ToolLife, a.ToolLife)
	switch a.State {
	case event.Acknowledged:
		x.acknowledged, x.false = true, x.false || a.FalseAlarm
		l.By, l.Note, l.Given = a.By, a.Note, a.At
	case event.MarkedFalse, event.UnmarkedFalse:
		x.false = a.State == event.MarkedFalse
		l.By, l.Note, l.Given = a.By, a.Note, a.At
	case event.Cleared:
		x.last = a.At
		if a.Reason == "tool_change" || a.Reason == "new_tool" {
			x.changed = a.At
		}
	case event.Raised, event.Reactivated:
		x.last = a.At
	}
}

// says returns the label that the answer is, if there is one.
func (x *answer) says() (event.Label, bool) {
	l := x.label
	switch {
	case x.false:
		l.State, l.Until = "healthy", x.last.UTC()
	case x.acknowledged && !x.changed.IsZero():
		l.State, l.Until = "worn", x.changed.UTC()
	default:
		return l, false
	}
	if !l.Until.After(l.At) {
		l.Until = time.Time{}
	}
	l.ID = l.NewLabelID()
	return l, true
}
