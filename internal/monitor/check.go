package monitor

import (
	"context"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
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
