package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// protocolPrefix is of the protocols of monitors of any release.
const protocolPrefix = "flank-"

// MonitorProtocol is the Protocol of the groups of monitors. It keeps monitors of other
// releases out of the group while monitors of this one are in it, and the other way round.
// Change it when a release cannot share a group with the one before.
const MonitorProtocol = protocolPrefix + "4"

// SessionTimeout is how long a member that was killed stays in its group.
const SessionTimeout = session

// Admin asks Kafka about topics and groups, and changes them. It tries again until its context
// ends.
type Admin struct{ c *client }

// OpenAdmin returns an Admin, which connects when it is first used.
func OpenAdmin(cfg Config) (*Admin, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Admin{c}, nil
}

// Close closes the connections.
func (a *Admin) Close() { a.c.close() }

// Partitions returns how many partitions topics have.
func (a *Admin) Partitions(ctx context.Context, topics ...string) (counts map[string]int, err error) {
	err = a.c.retry(ctx, func(ctx context.Context) error {
		counts, err = a.c.askPartitions(ctx, topics...)
		return err
	})
	return counts, err
}

// Raise gives a topic as many partitions, unless it has them, and waits until Kafka knows them.
func (a *Admin) Raise(ctx context.Context, topic string, partitions int) error {
	raised := false
	return a.c.retry(ctx, func(ctx context.Context) error {
		for {
			counts, err := a.c.askPartitions(ctx, topic)
			if err != nil || counts[topic] >= partitions { // an answer may have got lost
				return err
			}
			if raised {
				return fmt.Errorf("bus: topic %s does not have %d partitions yet", topic, partitions)
			}
			res, err := a.c.kc.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
				Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(partitions)}},
			})
			if err == nil {
				err = res.Errors[topic]
			}
			if err != nil {
				return fmt.Errorf("bus: topic %s: raise to %d partitions: %w", topic, partitions, err)
			}
			raised = true
		}
	})
}

// GroupMembers is a group and who is in it.
type GroupMembers struct {
	Name     string
	Members  []string // client id and host of those that read the windows
	Monitors bool     // they are monitors of some release
}

// Groups returns all groups, sorted by name.
func (a *Admin) Groups(ctx context.Context) (all []GroupMembers, err error) {
	err = a.c.retry(ctx, func(ctx context.Context) error {
		now, err := a.c.t.know(ctx, true)
		if err != nil {
			return err
		}
		all = nil
		for _, node := range now.BrokerIDs() { // each names the groups that it coordinates
			res, err := a.c.t.raw(ctx, node, kmsg.NewPtrListGroupsRequest())
			if err == nil {
				err = errorOf(res.(*kmsg.ListGroupsResponse).ErrorCode)
			}
			if err != nil {
				return fmt.Errorf("bus: list groups: %w", err)
			}
			for _, one := range res.(*kmsg.ListGroupsResponse).Groups {
				g, dividing, err := a.c.members(ctx, one.Group, TopicWindows)
				if err == nil && dividing {
					err = fmt.Errorf("bus: group %s: its members agree on how to divide the partitions right now", g.Name)
				}
				if err != nil {
					return err
				}
				all = append(all, g)
			}
		}
		slices.SortFunc(all, func(a, b GroupMembers) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return all, err
}

// subscribes reports whether a member reads a topic. One that is joining has no metadata yet, and counts.
func subscribes(metadata []byte, topic string) bool {
	var to kmsg.ConsumerMemberMetadata
	err := to.ReadFrom(metadata)
	return err != nil || len(to.Topics) == 0 || slices.Contains(to.Topics, topic)
}

// members asks who is in a group and reads a topic. Dividing says that they do not have a protocol yet.
func (c *client) members(ctx context.Context, group, topic string) (g GroupMembers, dividing bool, err error) {
	g.Name = group
	res, err := call[*describegroups.Response](ctx, c.t, &describegroups.Request{Groups: []string{group}})
	if err != nil {
		return g, false, fmt.Errorf("bus: group %s: %w", group, err)
	}
	for _, one := range res.Groups {
		switch err := errorOf(one.ErrorCode); {
		case errors.Is(err, kafka.GroupIdNotFound):
			continue // or the group has a protocol that monitors do not speak
		case err != nil:
			return g, false, fmt.Errorf("bus: group %s: %w", group, err)
		}
		for _, m := range one.Members {
			if subscribes(m.MemberMetadata, topic) {
				g.Members = append(g.Members, m.ClientID+" at "+m.ClientHost)
			}
		}
		dividing = len(g.Members) > 0 && one.ProtocolData == ""
		g.Monitors = len(g.Members) > 0 && strings.HasPrefix(one.ProtocolData, protocolPrefix)
	}
	slices.Sort(g.Members)
	return g, dividing, nil
}

// Positions returns the positions of a group in the partitions of a topic; -1 where it has none.
func (a *Admin) Positions(ctx context.Context, group, topic string, partitions int) (at []int64, err error) {
	err = a.c.retry(ctx, func(ctx context.Context) error {
		at = slices.Repeat([]int64{-1}, partitions)
		found, err := a.c.positions(ctx, group, false, map[string][]int{topic: upTo(partitions)})
		for in, offset := range found {
			at[in.partition] = offset
		}
		return err
	})
	return at, err
}

// Extent is where the messages of a partition lie.
type Extent struct{ First, End int64 }

// Extents returns where the messages of each partition of a topic lie.
func (a *Admin) Extents(ctx context.Context, topic string, partitions int) (all []Extent, err error) {
	err = a.c.retry(ctx, func(ctx context.Context) error {
		all = make([]Extent, partitions)
		first, err := a.c.t.offsets(ctx, topic, everywhere(partitions, FirstOffset), false)
		if err != nil {
			return err
		}
		end, err := a.c.t.offsets(ctx, topic, everywhere(partitions, lastOffset), false)
		for p := range all {
			all[p] = Extent{first[p].Offset, end[p].Offset}
		}
		return err
	})
	return all, err
}

// SetPositions sets positions of a group that has no members, by partition.
func (a *Admin) SetPositions(ctx context.Context, group, topic string, at map[int]int64) error {
	if len(at) == 0 {
		return nil
	}
	return a.c.retry(ctx, func(ctx context.Context) error { return a.c.setPositions(ctx, group, topic, at) })
}
