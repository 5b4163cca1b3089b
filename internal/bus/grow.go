package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// Errors of Grow that callers test for.
var (
	ErrRunning    = errors.New("programs are running that cannot follow")
	ErrUnfinished = errors.New("monitors are not done")
)

// MonitorProtocol is the Protocol of the groups of monitors. It keeps monitors of other
// releases out of the group while monitors of this one are in it, and the other way round:
// the release before does not move the state of machines. Change it when a release cannot
// share a group with the one before.
const MonitorProtocol = "flank-4"

// Grow gives the topics of machines the given number of partitions. Programs may run
// meanwhile: ingesters send to the new partitions as soon as they know of them, and monitors
// move the state of each machine when its first window or command comes in its new partition.
// Monitors that do not run do so later. Nothing else moves: a window, result or alert stays
// where it is.
//
// Grow first writes down how many partitions there were, see Counts, and raises the topic of
// windows last. It may be interrupted; called again it does the rest.
//
// Grow changes nothing and returns ErrRunning while a group has monitors of another release.
// It returns ErrUnfinished if machines may come back to a partition in which they were before,
// and a group has not judged all windows of before. Grow calls say with a line for each step, and
// in the end with a line for each machine that has moved, or has not.
func Grow(ctx context.Context, cfg Config, partitions int, say func(step string)) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.close()
	g := &grower{c: c, partitions: partitions, say: say}
	return g.run(ctx)
}

// grower is one call of Grow.
type grower struct {
	c          *client
	partitions int
	say        func(string)
	counts     map[string]int // partitions of each topic
	groups     []string       // of monitors
}

func (g *grower) run(ctx context.Context) (err error) {
	if g.counts, err = g.count(ctx); err != nil {
		return err
	}
	for _, topic := range MachineTopics() {
		if n := g.counts[topic]; n > g.partitions {
			return fmt.Errorf("bus: topic %s has %d partitions, and Kafka cannot take any away: ask for %d or more", topic, n, n)
		}
	}
	record, err := NewCountsReader(g.c.cfg).Read(ctx)
	if err != nil {
		g.say("note     " + err.Error())
	}
	if err := g.checkGroups(ctx); err != nil {
		return err
	}
	had := g.had(record)
	if mayReturn(append(slices.Clone(had), g.partitions)) {
		if err := g.checkJudged(ctx); err != nil {
			return err
		}
	}
	groups := make(map[string]int)
	for _, name := range g.groups {
		groups[name] = slices.Min(slices.Collect(maps.Values(g.counts))) // an earlier number counts
	}
	if slices.Max(had) < g.partitions || !slices.Equal(record.Had, had) {
		if err := g.writeCounts(ctx, Counts{Had: had, Growing: g.partitions, Groups: groups}); err != nil {
			return err
		}
	}
	if err := g.raiseAll(ctx); err != nil {
		return err
	}
	if !slices.Contains(record.Had, g.partitions) || record.Growing != 0 {
		if err := g.writeCounts(ctx, Counts{Had: append(had, g.partitions), Groups: groups}); err != nil {
			return err
		}
	}
	g.sayMoves(ctx)
	return nil
}

// had returns the numbers of partitions that the topics have had until now, ascending.
func (g *grower) had(record Counts) []int {
	had := record.With(g.counts[TopicWindows])
	for _, n := range g.counts {
		if n < g.counts[TopicWindows] { // another program raised the windows
			had = append(had, n)
		}
	}
	slices.Sort(had)
	return slices.Compact(had)
}

// raiseAll raises all topics, the windows last.
func (g *grower) raiseAll(ctx context.Context) error {
	raised := false
	for _, topic := range append(slices.DeleteFunc(MachineTopics(), func(t string) bool { return t == TopicWindows }), TopicWindows) {
		done, err := g.raise(ctx, topic)
		if err != nil {
			return err
		}
		raised = raised || done
	}
	if !raised {
		g.say(fmt.Sprintf("nothing to raise: the topics of machines have %s", plural(g.partitions, "partition")))
	}
	return nil
}

// mayReturn reports whether a machine may come back to a partition in which it was before,
// when there are so many partitions one after the other.
func mayReturn(counts []int) bool {
	counts = slices.Compact(counts)
	for i, n := range counts {
		if i > 0 && n%counts[i-1] > 0 && len(counts) > 2 {
			return true
		}
	}
	return false
}

// count returns how many partitions the topics of machines have.
func (g *grower) count(ctx context.Context) (counts map[string]int, err error) {
	err = g.c.retry(ctx, func(ctx context.Context, _ *kafka.Client) error {
		counts, err = askTopics(ctx, g.c.cfg, MachineTopics()...)
		return err
	})
	return counts, err
}

// raise gives a topic that has too few partitions more, and waits until Kafka knows them.
func (g *grower) raise(ctx context.Context, topic string) (done bool, err error) {
	before := g.counts[topic]
	if before == g.partitions {
		return false, nil
	}
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		counts, err := askTopics(ctx, g.c.cfg, topic)
		if err != nil || counts[topic] >= g.partitions {
			return err // an answer got lost
		}
		res, err := kc.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(g.partitions)}},
		})
		if err == nil {
			err = res.Errors[topic]
		}
		if err != nil {
			return fmt.Errorf("bus: topic %s: raise to %d partitions: %w", topic, g.partitions, err)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	err = g.c.retry(ctx, func(ctx context.Context, _ *kafka.Client) error {
		counts, err := askTopics(ctx, g.c.cfg, topic)
		if err == nil && counts[topic] < g.partitions {
			err = fmt.Errorf("bus: topic %s has %d partitions so far", topic, counts[topic])
		}
		return err
	})
	if err != nil {
		return false, err
	}
	g.say(fmt.Sprintf("raised   %s from %d to %d partitions", topic, before, g.partitions))
	return true, nil
}

// listGroups returns the names of all groups, sorted.
func (g *grower) listGroups(ctx context.Context) (names []string, err error) {
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		res, err := kc.ListGroups(ctx, &kafka.ListGroupsRequest{})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			return fmt.Errorf("bus: list groups: %w", err)
		}
		names = nil
		for _, one := range res.Groups {
			names = append(names, one.GroupID)
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

// checkGroups finds the groups of monitors, and reports those with monitors of another
// release.
func (g *grower) checkGroups(ctx context.Context) error {
	names, err := g.listGroups(ctx)
	if err != nil {
		return err
	}
	var other []string
	g.groups = nil
	for _, name := range names {
		windows, err := g.unread(ctx, name, TopicWindows)
		if err != nil {
			return err
		}
		commands, err := g.unread(ctx, name, TopicCommands)
		if err != nil {
			return err
		}
		protocol, members, err := g.members(ctx, name)
		if err != nil {
			return err
		}
		if !windows.reads || !commands.reads && !strings.HasPrefix(protocol, "flank-") {
			continue // it is not of monitors
		}
		g.groups = append(g.groups, name)
		switch {
		case len(members) == 0:
			if err := g.comeBack(ctx, name, windows, commands); err != nil {
				return err
			}
			g.say(fmt.Sprintf("group    %s has no members: its monitors move the machines when they start", name))
		case protocol != MonitorProtocol:
			other = append(other, fmt.Sprintf("%s (%s)", name, strings.Join(members, ", ")))
		default:
			g.say(fmt.Sprintf("group    %s has %s: they move the machines while they run", name, plural(len(members), "member")))
		}
	}
	if len(other) > 0 {
		return fmt.Errorf("bus: %w: groups with monitors of another release: %s: these do not move the state of machines: stop them, or start this release instead, and run this again; a member that was killed is gone after %v",
			ErrRunning, strings.Join(other, "; "), session)
	}
	return nil
}

// checkJudged returns ErrUnfinished unless all groups of monitors have judged the windows that
// are there now, and no machine waits for its state.
func (g *grower) checkJudged(ctx context.Context) error {
	ends, err := g.ends(ctx)
	if err != nil {
		return err
	}
	for _, name := range g.groups {
		for told := false; ; {
			left, err := g.leftBefore(ctx, name, ends)
			if err != nil {
				return err
			}
			waiting, err := g.waiting(ctx, name)
			if err != nil {
				return err
			}
			if left == 0 && waiting == 0 {
				break
			}
			text := fmt.Sprintf("group %s has %s to judge, and %s that wait for their state", name, plural(int(left), "window"), plural(waiting, "machine"))
			if _, members, err := g.members(ctx, name); err != nil {
				return err
			} else if len(members) == 0 {
				return fmt.Errorf("bus: %w: %s, and no member: the topics have grown before, and machines may come back to partitions in which they were: start the monitors of the group until they have done that, or delete the group if no one needs it (kafka-consumer-groups.sh --delete), or ask for a multiple of %d partitions",
					ErrUnfinished, text, g.counts[TopicWindows])
			}
			if !told {
				told = true
				g.say("waiting  " + text)
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// ends returns where the windows of each partition end.
func (g *grower) ends(ctx context.Context) (ends []int64, err error) {
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		ends = make([]int64, g.counts[TopicWindows])
		for p := range ends {
			if ends[p], err = offsetAt(ctx, kc, TopicWindows, p, LastOffset); err != nil {
				return err
			}
		}
		return nil
	})
	return ends, err
}

// leftBefore returns how many windows before the ends a group has not judged.
func (g *grower) leftBefore(ctx context.Context, group string, ends []int64) (left int64, err error) {
	u, err := g.unread(ctx, group, TopicWindows)
	for p, end := range ends {
		left += max(end-max(u.at[p], u.first[p]), 0)
	}
	return left, err
}

// waiting returns how many machines of a group wait for their state.
func (g *grower) waiting(ctx context.Context, group string) (int, error) {
	machines := make(map[string]bool)
	err := ReadTopic(ctx, g.c.cfg, TopicState, FirstOffset, false, func(m Message) error {
		if strings.HasPrefix(m.Key, group+stateSeparator) && strings.HasSuffix(m.Key, waitsSuffix) {
			key := fmt.Sprint(m.Partition, m.Key)
			if delete(machines, key); m.Value != nil {
				machines[key] = true
			}
		}
		return nil
	})
	return len(machines), err
}

// The keys of TopicState are GROUP, MACHINE and perhaps more, with separators. waitsSuffix is
// of a machine that waits for its state.
const (
	stateSeparator = "\x1f"
	waitsSuffix    = stateSeparator + "waits"
)

// comeBack handles topics whose end Kafka has lost: it sets the positions of a group without
// members that lie behind the end to the end. Otherwise, after partitions are added, a monitor
// would take the shorter topic for a new one and judge its windows a second time.
func (g *grower) comeBack(ctx context.Context, group string, topics ...backlog) error {
	for _, u := range topics {
		if len(u.beyond) == 0 {
			continue
		}
		err := g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
			return commitPositions(ctx, kc, group, u.topic, u.beyond)
		})
		if err != nil {
			return err
		}
		for _, p := range u.beyond {
			g.say(fmt.Sprintf("note     group %s had read partition %d of %s further than it goes now, because Kafka has lost the end of it: the group goes on at offset %d", group, p.Partition, u.topic, p.Offset))
		}
	}
	return nil
}

// members returns the protocol of a group, and client ids and hosts of its members that read
// windows.
func (g *grower) members(ctx context.Context, group string) (protocol string, members []string, err error) {
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		if members, err = groupMembers(ctx, kc, group, TopicWindows); err != nil || len(members) == 0 {
			return err
		}
		res, err := kc.Transport.RoundTrip(ctx, kc.Addr, &describegroups.Request{Groups: []string{group}})
		if err != nil {
			return fmt.Errorf("bus: group %s: %w", group, err)
		}
		for _, one := range res.(*describegroups.Response).Groups {
			if protocol = one.ProtocolData; protocol == "" {
				return fmt.Errorf("bus: group %s: its members agree on how to divide the partitions right now", group)
			}
		}
		return nil
	})
	return protocol, members, err
}

// backlog is the part of a topic that a group has not read.
type backlog struct {
	topic     string
	reads     bool                 // the group has committed positions
	at, first []int64              // by partition: position, and the oldest message
	beyond    []kafka.OffsetCommit // ends of the partitions that the group had read further
}

// unread returns how far a group has read a topic.
func (g *grower) unread(ctx context.Context, group, topic string) (u backlog, err error) {
	n := g.counts[topic]
	ask := &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: make([]int, n)}}
	for p := range n {
		ask.Topics[topic][p] = p
	}
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		u = backlog{topic: topic, at: make([]int64, n), first: make([]int64, n)}
		res, err := kc.OffsetFetch(ctx, ask)
		if err == nil {
			err = res.Error
		}
		if errors.Is(err, kafka.GroupIdNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("bus: position of group %s: %w", group, err)
		}
		for _, p := range res.Topics[topic] {
			if p.Error != nil {
				return fmt.Errorf("bus: position of group %s, partition %d: %w", group, p.Partition, p.Error)
			}
			u.reads = u.reads || p.CommittedOffset >= 0
		}
		if !u.reads {
			return nil
		}
		for _, p := range res.Topics[topic] {
			u.at[p.Partition] = p.CommittedOffset
			if u.first[p.Partition], err = offsetAt(ctx, kc, topic, p.Partition, FirstOffset); err != nil {
				return err
			}
			end, err := offsetAt(ctx, kc, topic, p.Partition, LastOffset)
			if err != nil {
				return err
			}
			if p.CommittedOffset > end {
				u.beyond = append(u.beyond, kafka.OffsetCommit{Partition: p.Partition, Offset: end})
			}
		}
		return nil
	})
	return u, err
}
