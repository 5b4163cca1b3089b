package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Needs says what a monitor of a group does with Kafka.
func Needs(group string, stages []Stage) bus.Needs {
	c := Config{Stages: stages}
	group = groupOf(group, stages)
	if !c.does(Judge) {
		return bus.Needs{
			Read:  []string{bus.TopicWindows},
			Write: []string{bus.TopicFeatures, bus.TopicDead},
			Group: group,
			Alike: bus.MachineTopics(),

			Transactional: group + "-check",
		}
	}
	return bus.Needs{
		Read:  []string{bus.TopicWindows, bus.TopicFeatures, bus.TopicState, bus.TopicCommands},
		Write: []string{bus.TopicFeatures, bus.TopicState, bus.TopicResults, bus.TopicAlerts, bus.TopicDead},
		Group: group,
		Alike: bus.MachineTopics(),

		Transactional: group + "-check",
	}
}

// StateSummary is what the state topic holds.
type StateSummary struct {
	Machines   int
	Alarms     int // raised
	References int // of tools, learnt or being learnt
}

// CheckState reads the group's records of all machines as a monitor would that gets all
// partitions, and changes nothing. It reports records that a monitor would set aside, and
// what that means.
func CheckState(ctx context.Context, cfg Config) (sum StateSummary, err error) {
	records, err := history.Records(ctx, cfg.Bus, cfg.Group)
	if err != nil {
		return sum, err
	}
	settings, by := machine.Settings{Group: cfg.Group, Alarm: alarm.Default}, machine.NewModel(cfg.Model)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		m, err := machine.Load(records[name], &settings, by, time.Now())
		if err != nil {
			return sum, fmt.Errorf("%w: a monitor will set this record aside: the machine's alarm is forgotten, and its reference learnt again from the tool at hand", err)
		}
		sum.Machines++
		s, err := machine.Summarise(records[name])
		if err != nil {
			return sum, err
		}
		sum.References += m.References()
		if s.Alarm.Raised {
			sum.Alarms++
		}
	}
	return sum, nil
}
