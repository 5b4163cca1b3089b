package history

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
)

// Shown returns the state of the machines whose alerts go to a partition of
// tcm.alerts.v1 now, in the order of their names, from the group's state records: for each
// machine an alert with an empty State, and its open advisories. State and alerts are
// published in one transaction, so it covers every alert that was on the topic when
// Shown was called.
func Shown(ctx context.Context, cfg bus.Config, group string, partition int) (all []event.Alert, advisories []event.Advisory, err error) {
	last := make(lastRecords)
	if err := bus.ReadFrom(ctx, cfg, bus.TopicState, partition, bus.FirstOffset, false, last.take); err != nil {
		return nil, nil, fmt.Errorf("history: state: %w", err)
	}
	records := last.machines(group)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		sum, err := machine.Summarise(records[name])
		if err != nil {
			continue // a monitor that gets the machine sets the record aside
		}
		all = append(all, sum.Shown(group))
		for _, n := range sum.Notices {
			if n.Stands() {
				advisories = append(advisories, n.Shown(group, name, sum.Model))
			}
		}
	}
	return all, advisories, nil
}
