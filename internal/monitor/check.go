package monitor

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// Needs says what a monitor of a group does with Kafka.
func Needs(group string) bus.Needs {
	return bus.Needs{
		Read:  []string{bus.TopicWindows, bus.TopicState, bus.TopicCommands},
		Write: []string{bus.TopicState, bus.TopicResults, bus.TopicAlerts, bus.TopicDead},
		Group: group,
		Alike: bus.MachineTopics(),

		Transactional: group + "-check",
	}
}

// StateSummary is what the state topic holds.
type StateSummary struct {
	Machines   int
	Alarms     int // raised
	References int // learnt under this model, or being learnt
}

// CheckState reads the records of all machines as a monitor would that gets all
// partitions, and changes nothing. It reports a record that a monitor would set
// aside, and what that means.
func CheckState(ctx context.Context, cfg Config) (sum StateSummary, err error) {
	last, err := lastRecords(ctx, cfg.Bus)
	if err != nil {
		return sum, err
	}
	features := len(cfg.Model.NewJudge().FeatureNames())
	for name, record := range last {
		st, _, err := readState(record)
		if err == nil {
			var m *machine
			if m, err = newMachine(name, alarm.Default, cfg.Model.Reference, zerolog.Nop()); err == nil {
				err = m.restore(st, cfg.Model, features)
			}
			if err == nil && m.ref.Tool != "" {
				sum.References++
			}
		}
		if err != nil {
			return sum, fmt.Errorf("%w (offset %d of partition %d): a monitor will set this record aside: the machine's alarm is forgotten, and its reference learnt anew from the tool at hand",
				err, record.Offset, record.Partition)
		}
		sum.Machines++
		if st.Alarm.Raised {
			sum.Alarms++
		}
	}
	return sum, nil
}
