package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BeginAtEnd makes a new group begin behind the newest message of every partition, and
// reports whether the group was new. A group that has a position in any partition keeps
// it. The group reads partitions that the topic gets later from their first message.
// Call BeginAtEnd before Run. Kafka forgets the positions of a group that has had no
// member for offsets.retention.minutes, 7 days by default.
func (g *Group) BeginAtEnd(ctx context.Context) (began bool, err error) {
	c, n, err := openTopic(ctx, g.cfg, g.topic)
	if err != nil {
		return false, err
	}
	defer c.close()
	err = c.retry(ctx, func(ctx context.Context) error {
		at, err := c.positions(ctx, g.name, true, map[string][]int{g.topic: upTo(n)})
		if began = err == nil && len(at) == 0; !began {
			return err
		}
		found, err := c.t.offsets(ctx, g.topic, everywhere(n, lastOffset), false)
		if err != nil {
			return err
		}
		ends := make(map[int]int64)
		for p, end := range found {
			ends[p] = end.Offset
		}
		return c.setPositions(ctx, g.name, g.topic, ends) // another member may have been first: the next attempt sees its position
	})
	return began && err == nil, err
}

// upTo returns the numbers of n partitions.
func upTo(n int) []int {
	all := make([]int, n)
	for p := range all {
		all[p] = p
	}
	return all
}

// positions returns what a group has committed in partitions of topics. If stable, the broker waits until it is
// sure: a coordinator that has just taken over may otherwise return positions from before the last commits, or none.
// It may refuse with UnstableOffsetCommit while a transaction is open.
func (c *client) positions(ctx context.Context, group string, stable bool, of map[string][]int) (map[place]int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.RequireStable = group, stable
	for topic, partitions := range of {
		asked := kmsg.NewOffsetFetchRequestTopic()
		asked.Topic = topic
		for _, p := range partitions {
			asked.Partitions = append(asked.Partitions, int32(p))
		}
		req.Topics = append(req.Topics, asked)
	}
	node, err := c.t.coordinator(ctx, coordinated{ofGroup, group})
	if err != nil {
		return nil, fmt.Errorf("bus: position of group %s: %w", group, err)
	}
	answer, err := c.t.raw(ctx, node, req)
	if err != nil {
		return nil, fmt.Errorf("bus: position of group %s: %w", group, err)
	}
	res := answer.(*kmsg.OffsetFetchResponse)
	err = errorOf(res.ErrorCode)
	if errors.Is(err, kafka.GroupIdNotFound) {
		return nil, nil // only the embedded broker answers so; Apache Kafka returns no positions
	}
	if err != nil {
		return nil, fmt.Errorf("bus: position of group %s: %w", group, err)
	}
	found := make(map[place]int64)
	for _, topic := range res.Topics {
		for _, p := range topic.Partitions {
			if err := errorOf(p.ErrorCode); err != nil {
				return nil, fmt.Errorf("bus: position of group %s, topic %s partition %d: %w", group, topic.Topic, p.Partition, err)
			}
			if p.Offset >= 0 {
				found[place{topic.Topic, int(p.Partition)}] = p.Offset
			}
		}
	}
	return found, nil
}

// setPositions sets the positions of a group that has no members, by partition.
func (c *client) setPositions(ctx context.Context, group, topic string, at map[int]int64) error {
	commit := &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: make(map[string][]kafka.OffsetCommit)}
	for p, offset := range at {
		commit.Topics[topic] = append(commit.Topics[topic], kafka.OffsetCommit{Partition: p, Offset: offset})
	}
	res, err := c.kc.OffsetCommit(ctx, commit)
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
