package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// BeginAtEnd makes a new group begin behind the newest message of every partition, and
// reports whether the group was new. A group that has a position in any partition keeps
// it. The group reads partitions that the topic gets later from their first message.
// Call BeginAtEnd before Run. Kafka forgets the positions of a group that has had no
// member for offsets.retention.minutes, 7 days by default.
func (g *Group) BeginAtEnd(ctx context.Context) (began bool, err error) {
	c, err := newClient(g.cfg)
	if err != nil {
		return false, err
	}
	defer c.close()
	n, err := c.partitions(ctx, g.topic)
	if err != nil {
		return false, err
	}
	err = c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		began = false
		known, err := g.hasPosition(ctx, kc, n)
		if err != nil || known {
			return err
		}
		if err := g.commitEnd(ctx, kc, n); err != nil {
			return err // another member may have been first: the next attempt sees its position
		}
		began = true
		return nil
	})
	return began, err
}

// hasPosition reports whether the group has committed anything.
func (g *Group) hasPosition(ctx context.Context, kc *kafka.Client, partitions int) (bool, error) {
	ask := &kafka.OffsetFetchRequest{GroupID: g.name, Topics: map[string][]int{g.topic: make([]int, partitions)}}
	for p := range partitions {
		ask.Topics[g.topic][p] = p
	}
	res, err := kc.OffsetFetch(ctx, ask)
	if err == nil {
		err = res.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) {
		return false, nil // only the embedded broker answers so; Apache Kafka returns no positions
	}
	if err != nil {
		return false, fmt.Errorf("bus: position of group %s: %w", g.name, err)
	}
	for _, p := range res.Topics[g.topic] {
		if p.Error != nil {
			return false, fmt.Errorf("bus: position of group %s, partition %d: %w", g.name, p.Partition, p.Error)
		}
		if p.CommittedOffset >= 0 {
			return true, nil
		}
	}
	return false, nil
}

func (g *Group) commitEnd(ctx context.Context, kc *kafka.Client, partitions int) error {
	times := make(map[int]int64)
	for p := range partitions {
		times[p] = LastOffset
	}
	ends, err := transportOf(kc).offsets(ctx, g.topic, times, false)
	if err != nil {
		return err
	}
	var positions []kafka.OffsetCommit
	for p, end := range ends {
		positions = append(positions, kafka.OffsetCommit{Partition: p, Offset: end})
	}
	return commitPositions(ctx, kc, g.name, g.topic, positions)
}

// commitPositions sets the positions of a group that has no members.
func commitPositions(ctx context.Context, kc *kafka.Client, group, topic string, positions []kafka.OffsetCommit) error {
	commit := &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: positions}}
	res, err := kc.OffsetCommit(ctx, commit)
	if err != nil {
		return fmt.Errorf("bus: position of group %s: %w", group, err)
	}
	var all error
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			all = errors.Join(all, fmt.Errorf("bus: position of group %s, partition %d: %w", group, p.Partition, p.Error))
		}
	}
	return all
}
