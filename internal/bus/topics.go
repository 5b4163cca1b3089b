package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

// TopicStatus is what Apply found or made.
type TopicStatus struct {
	Name       string
	Created    bool
	Partitions int
	Notes      []string // in which way a topic that was there before differs from what this program needs
}

// String returns a line for people, and one more for each note.
func (s TopicStatus) String() string {
	what := "present"
	if s.Created {
		what = "created"
	}
	unit := "partitions"
	if s.Partitions == 1 {
		unit = "partition"
	}
	line := fmt.Sprintf("%s  %s, %d %s", what, s.Name, s.Partitions, unit)
	for _, note := range s.Notes {
		line += "\n         " + note
	}
	return line
}

// topicPlan is how a topic is made.
type topicPlan struct {
	name    string
	compact bool
	keep    time.Duration // for topics that are not compacted
	bytes   int64         // per partition; 0 means no limit
	max     int           // largest batch of messages
	single  bool          // one partition, whatever the number of machines
}

const day = 24 * time.Hour

// deadOverhead is what a dead letter is longer than the message in it.
const deadOverhead = 1 << 20

func plan(cfg Config) []topicPlan {
	return []topicPlan{
		{name: TopicWindows, keep: 7 * day, bytes: cfg.RetainBytes, max: MaxMessage},
		{name: TopicResults, keep: 30 * day, max: MaxMessage},
		{name: TopicAlerts, keep: 365 * day, max: MaxMessage},
		{name: TopicState, compact: true, max: MaxMessage},
		{name: TopicCommands, keep: 7 * day, max: MaxMessage},
		{name: TopicModels, compact: true, max: MaxMessage, single: true},
		{name: TopicDead, keep: 30 * day, bytes: cfg.RetainBytes, max: MaxMessage + deadOverhead, single: true},
	}
}

func (p topicPlan) settings(replication int) map[string]string {
	s := map[string]string{
		"max.message.bytes": strconv.Itoa(p.max),
		"cleanup.policy":    "delete",
		// Age counts from arrival: the clock of a sender may be wrong.
		"message.timestamp.type": "LogAppendTime",
	}
	if replication >= 3 {
		s["min.insync.replicas"] = "2"
	}
	switch {
	case p.compact:
		s["cleanup.policy"] = "compact"
		s["segment.bytes"] = strconv.Itoa(16 << 20) // compaction leaves the segment being written alone
	default:
		s["retention.ms"] = strconv.FormatInt(p.keep.Milliseconds(), 10)
		if p.bytes > 0 {
			s["retention.bytes"] = strconv.FormatInt(p.bytes, 10)
			s["segment.bytes"] = strconv.FormatInt(max(p.bytes/8, 16<<20), 10) // whole segments are removed
		}
	}
	return s
}

// Apply creates the topics that are missing, each with the given number of
// partitions and replicas and the settings this program needs. Topics that are
// there stay as they are; the status notes where their settings would hurt. Apply
// tries until a broker answers or ctx ends; calling it again changes nothing.
func Apply(ctx context.Context, cfg Config, partitions, replication int) ([]TopicStatus, error) {
	if partitions < 1 || replication < 1 {
		return nil, fmt.Errorf("bus: %d partitions with %d replicas: both must be at least 1", partitions, replication)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	defer c.close()
	plans := plan(cfg)
	var status []TopicStatus
	err = c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		status, err = applyOnce(ctx, kc, plans, partitions, replication)
		return err
	})
	if err != nil {
		return nil, err
	}
	return status, nil
}

func applyOnce(ctx context.Context, kc *kafka.Client, plans []topicPlan, partitions, replication int) ([]TopicStatus, error) {
	req := &kafka.CreateTopicsRequest{}
	for _, p := range plans {
		t := kafka.TopicConfig{Topic: p.name, NumPartitions: partitions, ReplicationFactor: replication}
		if p.single {
			t.NumPartitions = 1
		}
		for name, value := range p.settings(replication) {
			t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
		}
		req.Topics = append(req.Topics, t)
	}
	res, err := kc.CreateTopics(ctx, req)
	if err != nil {
		return nil, err
	}
	status := make([]TopicStatus, len(plans))
	ask := &kafka.DescribeConfigsRequest{}
	for i, p := range plans {
		status[i] = TopicStatus{Name: p.name, Created: true, Partitions: req.Topics[i].NumPartitions}
		switch err := res.Errors[p.name]; {
		case errors.Is(err, kafka.TopicAlreadyExists):
			status[i].Created = false
			ask.Resources = append(ask.Resources, kafka.DescribeConfigRequestResource{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: p.name, ConfigNames: []string{"max.message.bytes", "cleanup.policy", "message.timestamp.type"},
			})
		case err != nil:
			return nil, fmt.Errorf("bus: create topic %s with %d partitions and %d replicas: %w", p.name, req.Topics[i].NumPartitions, replication, err)
		}
	}
	if len(ask.Resources) == 0 {
		return status, nil
	}
	return status, describe(ctx, kc, ask, plans, status)
}

// describe fills in the status of the topics that were there before.
func describe(ctx context.Context, kc *kafka.Client, ask *kafka.DescribeConfigsRequest, plans []topicPlan, status []TopicStatus) error {
	var names []string
	for _, r := range ask.Resources {
		names = append(names, r.ResourceName)
	}
	meta, err := kc.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return err
	}
	partitions := make(map[string]int)
	for _, t := range meta.Topics {
		partitions[t.Name] = len(t.Partitions)
	}
	found, err := kc.DescribeConfigs(ctx, ask)
	if err != nil {
		return err
	}
	for i, p := range plans {
		if status[i].Created {
			continue
		}
		status[i].Partitions = partitions[p.name]
		for _, r := range found.Resources {
			if r.ResourceName != p.name || r.Error != nil {
				continue // no right to look is not a reason to stop
			}
			for _, e := range r.ConfigEntries {
				if note := p.note(e.ConfigName, e.ConfigValue); note != "" {
					status[i].Notes = append(status[i].Notes, note)
				}
			}
		}
	}
	return nil
}

// note says what is wrong with a setting of a topic, or nothing.
func (p topicPlan) note(name, value string) string {
	switch name {
	case "max.message.bytes":
		if n, err := strconv.Atoi(value); err == nil && n < p.max {
			return fmt.Sprintf("max.message.bytes is %d: longer messages will be refused; set it to %d", n, p.max)
		}
	case "message.timestamp.type":
		if !p.compact && value != "LogAppendTime" {
			return "message.timestamp.type is " + value + ": a sender with a wrong clock may have its messages removed or refused; set it to LogAppendTime"
		}
	case "cleanup.policy":
		if p.compact && value != "compact" {
			return fmt.Sprintf("cleanup.policy is %s: what must stay will be deleted with age; set it to compact", value)
		}
	}
	return ""
}
