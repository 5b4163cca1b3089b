package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
)

// Shown returns how the machines stand whose alerts are in a partition of
// tcm.alerts.v1, in the order of their names, as their records say: for each an
// alert without a state that says what the last one left behind, and the
// advisories that stand. Whatever was on the topic when Shown was called is in
// that: records are written first.
func Shown(ctx context.Context, cfg bus.Config, partition int) (all []event.Alert, advisories []event.Advisory, err error) {
	alerts, err := bus.Partitions(ctx, cfg, bus.TopicAlerts)
	if err != nil {
		return nil, nil, fmt.Errorf("monitor: %w", err)
	}
	records, err := lastRecords(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if bus.PartitionOf(name, alerts) != partition {
			continue
		}
		st, _, err := readState(records[name])
		if err != nil {
			continue // a monitor that has the machine sets the record aside, and begins anew
		}
		all = append(all, st.shown())
		for _, n := range st.Notices {
			if n.stands() {
				advisories = append(advisories, n.shown(name, st.Model))
			}
		}
	}
	return all, advisories, nil
}

// shown returns the advisory that raised a notice, as far as that is remembered.
func (n *notice) shown(machine, modelID string) event.Advisory {
	a := event.Advisory{
		ID: fmt.Sprintf("%s/standing/%s/%s", machine, n.Kind, n.Subject), Machine: machine, Kind: n.Kind, Subject: n.Subject, State: event.Raised,
		Severity: "warning", Since: n.Since, At: n.Since, Model: modelID, Text: n.Text,
	}
	if n.Kind == event.SensorAdvisory {
		a.Channels, a.Status, a.Flags = n.Channels, n.Flags.Status(), flagNames(n.Flags)
	}
	return a
}

// shown returns how a machine's alarm stands.
func (s *state) shown() event.Alert {
	a := s.Alarm
	e := event.Alert{
		ID: s.Machine + "/standing", Machine: s.Machine, Tool: a.Tool, Alarm: a.Word(), Incident: s.Incident, Severity: "info",
		Since: a.Since, At: a.At, Model: s.Model,
	}
	if e.Alarm == "raised" {
		e.Severity = "warning"
	}
	name := short(s.Machine)
	if a.Tool != "" {
		name += " tool " + a.Tool
	}
	if s.Incident == "" {
		e.Since, e.Text = e.At, fmt.Sprintf("%s: no alarm stands.", name)
	} else {
		e.Text = fmt.Sprintf("%s: the alarm of %s stands, %s.", name, a.Since.Format(clock), a.Word())
	}
	return e
}
