package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// Errors of Grow that callers test for.
var (
	ErrRunning    = errors.New("programs are running")
	ErrUnfinished = errors.New("monitors are not done")
)

// Grow gives the topics of machines the given number of partitions, and moves the
// records of TopicState to the partition that their machine's windows go to from then
// on. It moves nothing else: a window, result or alert stays where it is. Positions of
// groups stay valid; every group reads a new partition from its first message.
//
// Grow may be interrupted. It raises the topic of the windows last: until then the topics
// disagree, and no monitor starts. It copies a record before it removes the old one. Called
// again, Grow does the rest.
//
// Grow changes nothing and returns ErrRunning while a group that reads windows has
// members or windows arrive. Without force it returns ErrUnfinished while a group has
// windows left to judge or commands to answer: these stay in their old partition, which no
// longer has their machine's state. Grow calls say with a line for each step.
func Grow(ctx context.Context, cfg Config, partitions int, force bool, say func(step string)) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.close()
	g := &grower{c: c, partitions: partitions, force: force, say: say, pause: arrivalPause}
	return g.run(ctx)
}

// arrivalPause is for how long Grow looks whether windows arrive. It is longer than
// most windows.
const arrivalPause = 3 * time.Second

// grower is one call of Grow.
type grower struct {
	c          *client
	partitions int
	force      bool
	say        func(string)
	pause      time.Duration // for how long it looks for windows that arrive
	counts     map[string]int
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
	if err := g.checkGroups(ctx); err != nil {
		return err
	}
	if err := g.checkArrivals(ctx); err != nil {
		return err
	}
	raised := false
	for _, topic := range MachineTopics() {
		if topic == TopicWindows {
			continue
		}
		done, err := g.raise(ctx, topic)
		if err != nil {
			return err
		}
		raised = raised || done
	}
	moved, err := g.moveState(ctx)
	if err != nil {
		return err
	}
	last, err := g.raise(ctx, TopicWindows)
	if err != nil {
		return err
	}
	if !raised && !moved && !last {
		g.say(fmt.Sprintf("nothing to do: the topics of machines have %s, and every record of %s is where it belongs", plural(g.partitions, "partition"), TopicState))
		return nil
	}
	g.say("done: start the monitors, then the ingesters")
	return nil
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

// groups returns the names of all groups, sorted.
func (g *grower) groups(ctx context.Context) (names []string, err error) {
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

// checkGroups reports groups that read windows and have members or windows left.
func (g *grower) checkGroups(ctx context.Context) error {
	names, err := g.groups(ctx)
	if err != nil {
		return err
	}
	var running, behind []string
	for _, name := range names {
		windows, err := g.unread(ctx, name, TopicWindows)
		if err != nil {
			return err
		}
		commands, err := g.unread(ctx, name, TopicCommands)
		if err != nil {
			return err
		}
		alerts, err := g.unread(ctx, name, TopicAlerts)
		if err != nil {
			return err
		}
		left := unfinished(windows.left, commands.left)
		members, err := g.members(ctx, name)
		switch {
		case err != nil:
			return err
		case len(members) > 0:
			running = append(running, fmt.Sprintf("group %s has %s (%s) and %s", name, plural(len(members), "member"), strings.Join(members, ", "), cmp.Or(left, "nothing left to judge")))
		case left != "":
			behind = append(behind, fmt.Sprintf("group %s has %s", name, left))
		case windows.reads:
			g.say(fmt.Sprintf("checked  group %s: it has no members, and has judged all windows", name))
		}
		if len(members) == 0 {
			if err := g.comeBack(ctx, name, windows, commands, alerts); err != nil {
				return err
			}
		}
		if alerts.left > 0 {
			g.say(fmt.Sprintf("note     group %s has %s to read: it may get later ones of a machine first", name, plural(int(alerts.left), "alert")))
		}
	}
	if len(running) > 0 {
		return fmt.Errorf("bus: %w: %s: stop the ingesters, wait until the monitors have judged what is there, stop the monitors, and run this again; a member that was killed is gone after %v",
			ErrRunning, strings.Join(running, "; "), session)
	}
	return g.leaveBehind(behind)
}

// leaveBehind returns an error if groups have windows or commands left, unless that is
// harmless or forced.
func (g *grower) leaveBehind(behind []string) error {
	if len(behind) == 0 {
		return nil
	}
	text := strings.Join(behind, "; ")
	switch {
	case g.counts[TopicWindows] == g.partitions: // another program raised it: no monitor can judge them before the other topics follow
		g.say("note     " + text + ": what arrived before " + TopicWindows + " was raised may lie in another partition than its machine's state")
	case g.force:
		g.say("forced   " + text + ": these stay in their partitions and meet no state of their machine there")
	default:
		return fmt.Errorf("bus: %w: %s: start the monitors of the group without the ingesters until they have done that, or delete the group if no one needs it (kafka-consumer-groups.sh --delete)",
			ErrUnfinished, text)
	}
	return nil
}

// unfinished returns the windows and commands that a group has left, in words; empty if none.
func unfinished(windows, commands int64) string {
	var parts []string
	if windows > 0 {
		parts = append(parts, plural(int(windows), "window")+" to judge")
	}
	if commands > 0 {
		parts = append(parts, plural(int(commands), "command")+" to answer")
	}
	return strings.Join(parts, " and ")
}

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

// members returns the client ids and hosts of the members of a group that read windows.
func (g *grower) members(ctx context.Context, group string) (members []string, err error) {
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		members, err = groupMembers(ctx, kc, group, TopicWindows)
		return err
	})
	return members, err
}

// backlog is the part of a topic that a group without members has not read.
type backlog struct {
	topic  string
	left   int64                // messages that the group has not committed
	reads  bool                 // the group has committed some
	beyond []kafka.OffsetCommit // ends of the partitions that the group had read further
}

// unread returns the part of a topic that a group has not read. In a partition without a
// position a group begins at the first message; with commands, monitors begin at the end.
func (g *grower) unread(ctx context.Context, group, topic string) (u backlog, err error) {
	n := g.counts[topic]
	ask := &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: make([]int, n)}}
	for p := range n {
		ask.Topics[topic][p] = p
	}
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		u = backlog{topic: topic}
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
			if topic == TopicCommands && p.CommittedOffset < 0 {
				continue
			}
			first, err := offsetAt(ctx, kc, topic, p.Partition, FirstOffset)
			if err != nil {
				return err
			}
			end, err := offsetAt(ctx, kc, topic, p.Partition, LastOffset)
			if err != nil {
				return err
			}
			u.left += max(end-max(p.CommittedOffset, first), 0)
			if p.CommittedOffset > end {
				u.beyond = append(u.beyond, kafka.OffsetCommit{Partition: p.Partition, Offset: end})
			}
		}
		return nil
	})
	return u, err
}

// checkArrivals returns ErrRunning if windows arrive.
func (g *grower) checkArrivals(ctx context.Context) error {
	before, err := g.windows(ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(g.pause):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := g.windows(ctx)
	if err != nil {
		return err
	}
	if n := after - before; n > 0 {
		return fmt.Errorf("bus: %w: %s arrived within %v: stop the ingesters, start the monitors until they have judged what is there, stop them, and run this again",
			ErrRunning, plural(int(n), "window"), g.pause)
	}
	g.say(fmt.Sprintf("checked  no window arrived within %v", g.pause))
	return nil
}

// windows returns how many windows have ever arrived.
func (g *grower) windows(ctx context.Context) (sum int64, err error) {
	err = g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		sum = 0
		for p := range g.counts[TopicWindows] {
			end, err := offsetAt(ctx, kc, TopicWindows, p, LastOffset)
			if err != nil {
				return err
			}
			sum += end
		}
		return nil
	})
	return sum, err
}
