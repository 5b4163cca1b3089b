package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// Needs says what a monitor of a group does with Kafka. It judges without the topic of the audit, too.
func Needs(group string) bus.Needs {
	return bus.Needs{
		Read:  []string{bus.TopicWindows, bus.TopicFeatures, bus.TopicState, bus.TopicCommands, bus.TopicModels},
		Write: []string{bus.TopicFeatures, bus.TopicState, bus.TopicResults, bus.TopicAlerts, bus.TopicShadow, bus.TopicDead, bus.TopicCommands, bus.TopicAudit},
		Group: group,
		Alike: bus.MachineTopics(),

		Transactional: group + "-check",
	}
}

// StateSummary is what the state topic holds.
type StateSummary struct {
	Machines   int
	Alarms     int                  // raised
	References int                  // of tools, learnt or being learnt
	By         map[*model.Model]int // machines by the model that judges them
	Edge       map[*model.Model]int // of them, machines in mode edge, by their last windows
	Unwatched  int                  // machines for which no model is deployed
}

// Deployed returns what judges which machine by now, and what was refused of tcm.models.v1.
func Deployed(ctx context.Context, cfg Config) (deploy.Set, []deploy.Refusal, error) {
	if cfg.Model != nil {
		return deploy.OfFile(cfg.Model, cfg.Alarm), nil, nil
	}
	topic, err := cfg.readModels(ctx)
	if err != nil {
		return deploy.Set{}, nil, err
	}
	return topic.Set(ctx)
}

// CheckState reads the group's records of all machines as a monitor would that gets all
// partitions, and changes nothing. It reports records that a monitor would set aside, and
// what that means.
func CheckState(ctx context.Context, cfg Config, set deploy.Set) (sum StateSummary, err error) {
	records, err := history.Records(ctx, cfg.Bus, cfg.Group)
	if err != nil {
		return sum, err
	}
	fleet := newFleet(set).current()
	settings, sum := machine.Settings{Group: cfg.Group, Alarm: alarm.Default}, StateSummary{By: make(map[*model.Model]int), Edge: make(map[*model.Model]int)}
	models := machine.NewModels(fleet)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		m, err := machine.Load(records[name], &settings, models, time.Now())
		if err != nil {
			return sum, fmt.Errorf("%w: a monitor will set this record aside: the machine's alarm is forgotten, and its reference learnt again from the tool at hand", err)
		}
		judge := fleet.Model(m.Model)
		if d := fleet.Of(name, m.Layout); judge == nil && d != nil {
			judge = d.Champion
		}
		s, err := machine.Summarise(records[name])
		if err != nil {
			return sum, err
		}
		sum.Machines++
		sum.References += m.References()
		switch {
		case judge == nil:
			sum.Unwatched++
		case s.FeaturesOnly:
			sum.Edge[judge]++
			fallthrough
		default:
			sum.By[judge]++
		}
		if s.Alarm.Raised {
			sum.Alarms++
		}
	}
	return sum, nil
}
