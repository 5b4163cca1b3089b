// Package grow gives the topics of machines more partitions while no monitor runs, and moves the
// state of each machine to the partition to which its windows go then.
//
// A record of tcm.models.v1, bus.Growth, says that the topics are growing. Monitors do not start
// until it says that they have grown. So what is done in between may be interrupted at any moment
// and done again.
package grow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/fetch"
)

// Errors that callers test for. Nothing was changed.
var (
	errRunning = errors.New("monitors are running")
	errBehind  = errors.New("monitors have not judged everything")
)

// DefaultWatch is how long Run looks whether windows still come.
const DefaultWatch = 3 * time.Second

// Growth is what is to be done.
type Growth struct {
	Bus        bus.Config
	Partitions int
	Watch      time.Duration     // how long to look whether windows still come
	Say        func(line string) // is called for each step
}

// Run does it. It refuses with errRunning or errBehind before it changes anything. Other errors
// may leave the topics half-grown: then Run has to be called again.
func (g Growth) Run(ctx context.Context) error {
	admin, err := bus.OpenAdmin(g.Bus)
	if err != nil {
		return err
	}
	defer admin.Close()
	out, err := bus.NewProducer(g.Bus)
	if err != nil {
		return err
	}
	defer out.Close()
	return (&growing{Growth: g, admin: admin, out: out}).run(ctx)
}

// growing is one call of Run.
type growing struct {
	Growth
	admin   *bus.Admin
	out     *bus.Producer
	before  bus.Growth     // the record as Run found it
	counts  map[string]int // partitions of each topic
	extents map[string][]bus.Extent
	groups  []group // of monitors
}

// group is a group of monitors.
type group struct {
	bus.GroupMembers
	at map[string][]int64 // positions, by topic and partition; -1: none
}

// reads reports whether the group has a position in a topic.
func (g *group) reads(topic string) bool { return slices.Max(g.at[topic]) >= 0 }

// judges reports whether the monitors of the group have judged: they have read commands.
func (g *group) judges() bool { return g.reads(bus.TopicCommands) }

func (g *growing) run(ctx context.Context) (err error) {
	if g.counts, err = g.admin.Partitions(ctx, bus.MachineTopics()...); err != nil {
		return err
	}
	for _, topic := range bus.MachineTopics() {
		if n := g.counts[topic]; n > g.Partitions {
			return fmt.Errorf("grow: topic %s has %d partitions, and Kafka cannot take any away: ask for %d or more", topic, n, n)
		}
	}
	if g.before, err = bus.NewGrowthReader(g.Bus).Read(ctx); err != nil {
		g.Say("note     " + err.Error())
	}
	if err := g.check(ctx); err != nil {
		return err
	}
	now, err := g.begin(ctx)
	if err != nil {
		return err
	}
	for _, topic := range bus.MachineTopics() {
		if err := g.admin.Raise(ctx, topic, g.Partitions); err != nil {
			return g.halfway(err)
		}
		if n := g.counts[topic]; n < g.Partitions {
			g.Say(fmt.Sprintf("raised   %s from %d to %d partitions", topic, n, g.Partitions))
		}
	}
	if err := g.moveState(ctx); err != nil {
		return g.halfway(err)
	}
	if err := g.setPositions(ctx); err != nil {
		return g.halfway(err)
	}
	now.Had, now.State, now.Growing = now.With(g.Partitions), g.Partitions, 0
	if err := g.out.WriteGrowth(ctx, now); err != nil {
		return g.halfway(err)
	}
	g.Say(fmt.Sprintf("done     the topics of machines have %d partitions: start the monitors, then ingesters that send", g.Partitions))
	return nil
}

// halfway adds to an error what to do.
func (g *growing) halfway(err error) error {
	return fmt.Errorf("%w: the topics are half-grown, and monitors do not start: run `ingest topics grow --partitions %d` again", err, g.Partitions)
}

// least returns how many partitions all topics have: those beyond are new.
func (g *growing) least() int { return slices.Min(slices.Collect(maps.Values(g.counts))) }

// begin writes down that the topics grow, and looks once more for monitors: one that starts
// later reads that.
func (g *growing) begin(ctx context.Context) (bus.Growth, error) {
	now := g.before
	if now.Growing = g.Partitions; g.before.Growing == 0 {
		now.Had, now.Since = g.before.With(g.least()), time.Time{}
	}
	if err := g.out.WriteGrowth(ctx, now); err != nil {
		return now, err
	}
	if now.Since.IsZero() {
		written, err := bus.NewGrowthReader(g.Bus).Read(ctx)
		if err != nil {
			return now, err
		}
		now.Since = written.Since
	}
	err := g.findGroups(ctx)
	if err == nil {
		err = g.members()
	}
	if err != nil && g.before.Growing == 0 {
		err = errors.Join(err, g.out.WriteGrowth(context.WithoutCancel(ctx), g.before))
	}
	return now, err
}

// judgedTopics are the topics that monitors judge.
var judgedTopics = []string{bus.TopicWindows, bus.TopicFeatures, bus.TopicCommands}

// findGroups finds the groups of monitors, and how far they have read.
func (g *growing) findGroups(ctx context.Context) error {
	all, err := g.admin.Groups(ctx)
	if err != nil {
		return err
	}
	g.extents, g.groups = make(map[string][]bus.Extent), nil
	for _, members := range all {
		one := group{members, make(map[string][]int64)}
		for _, topic := range judgedTopics {
			if one.at[topic], err = g.admin.Positions(ctx, one.Name, topic, g.counts[topic]); err != nil {
				return err
			}
		}
		if one.Monitors || one.judges() {
			g.groups = append(g.groups, one)
		}
	}
	for _, topic := range judgedTopics { // behind the positions, so that what is judged meanwhile does not count
		if g.extents[topic], err = g.admin.Extents(ctx, topic, g.counts[topic]); err != nil {
			return err
		}
	}
	return nil
}

// members returns errRunning if monitors run.
func (g *growing) members() error {
	var who []string
	for _, one := range g.groups {
		if len(one.Members) > 0 {
			who = append(who, fmt.Sprintf("group %s has %s (%s)", one.Name, plural(len(one.Members), "member"), strings.Join(one.Members, ", ")))
		}
	}
	if len(who) == 0 {
		return nil
	}
	return fmt.Errorf("grow: %w: %s: %s", errRunning, strings.Join(who, "; "), remedy+fmt.Sprintf(". A monitor that was killed is a member for %v more.", bus.SessionTimeout))
}

const remedy = "stop ingesters, or let them only spool (`spool_only: true` in ingest.yaml); let the monitors judge all that lies there; stop the monitors; then run this again"

// check returns an error unless the topics may grow. Where they are half-grown, all was
// judged when that began.
func (g *growing) check(ctx context.Context) error {
	if err := g.findGroups(ctx); err != nil {
		return err
	}
	if err := g.members(); err != nil {
		return err
	}
	if g.before.Growing > 0 {
		g.Say(fmt.Sprintf("again    the topics are half-grown to %d partitions", g.before.Growing))
		return nil
	}
	if len(g.groups) == 0 {
		return nil
	}
	g.Say(fmt.Sprintf("watching for %v whether windows still come", g.Watch))
	select {
	case <-time.After(g.Watch):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := g.findGroups(ctx); err != nil {
		return err
	}
	var behind []string
	for i := range g.groups {
		one := &g.groups[i]
		if err := g.comeBack(ctx, one); err != nil {
			return err
		}
		left, err := g.left(ctx, one)
		if err != nil {
			return err
		}
		if left != "" {
			behind = append(behind, left)
			continue
		}
		g.Say(fmt.Sprintf("group    %s has no members, and has judged everything", one.Name))
	}
	if len(behind) == 0 {
		return nil
	}
	return fmt.Errorf("grow: %w: %s: %s. Or delete a group that no one needs: kafka-consumer-groups.sh --delete --group NAME", errBehind, strings.Join(behind, "; "), remedy)
}

// comeBack sets positions of a group that lie behind the end of a partition to the end: Kafka has
// lost the tail. Otherwise what comes next there would be passed over.
func (g *growing) comeBack(ctx context.Context, one *group) error {
	for _, topic := range judgedTopics {
		beyond := make(map[int]int64)
		for p, at := range one.at[topic] {
			if end := g.extents[topic][p].End; at > end {
				beyond[p] = end
				g.Say(fmt.Sprintf("note     group %s had read partition %d of %s further than it goes now, because Kafka has lost the end of it: the group goes on at offset %d", one.Name, p, topic, end))
			}
		}
		if err := g.admin.SetPositions(ctx, one.Name, topic, beyond); err != nil {
			return err
		}
	}
	return nil
}

// left says what a group has left to judge; empty: nothing.
func (g *growing) left(ctx context.Context, one *group) (string, error) {
	left := make(map[string]int64)
	for _, topic := range judgedTopics {
		if topic != bus.TopicWindows && !one.judges() {
			continue
		}
		for p := range min(len(one.at[topic]), g.least()) {
			is, err := g.unjudged(ctx, one, topic, p)
			if err != nil {
				return "", err
			}
			if is {
				left[topic] += g.behind(one, topic, p)
			}
		}
	}
	if len(left) == 0 {
		return "", nil
	}
	return fmt.Sprintf("group %s has %s, %s of features and %s left", one.Name,
		plural(left[bus.TopicWindows], "window"), plural(left[bus.TopicFeatures], "message"), plural(left[bus.TopicCommands], "command")), nil
}

// behind returns how many offsets a group has not read. There may be no message at some of them.
func (g *growing) behind(one *group, topic string, partition int) int64 {
	e := g.extents[topic][partition]
	return max(e.End-max(one.at[topic][partition], e.First), 0)
}

// unjudged reports whether something lies behind a position of a group that it has to judge.
func (g *growing) unjudged(ctx context.Context, one *group, topic string, partition int) (bool, error) {
	if g.behind(one, topic, partition) == 0 {
		return false, nil
	}
	counts := func(bus.Message) bool { return true }
	if topic == bus.TopicFeatures { // those that monitors extract have windows, which count themselves
		counts = func(m bus.Message) bool {
			by, _, err := envelope.Origin(&m)
			return !fetch.IsAnswer(&m) && (err != nil || by != envelope.Monitor)
		}
	}
	found := errors.New("found")
	err := bus.ReadRange(ctx, g.Bus, topic, partition, bus.Range{From: one.at[topic][partition], Settled: true}, func(m bus.Message) error {
		if counts(m) {
			return found
		}
		return nil
	})
	if errors.Is(err, found) {
		return true, nil
	}
	return false, err
}

// setPositions lets the groups begin at the first message of partitions that are new.
func (g *growing) setPositions(ctx context.Context) error {
	for _, one := range g.groups {
		for _, topic := range judgedTopics {
			if !one.reads(topic) {
				continue
			}
			at, err := g.admin.Positions(ctx, one.Name, topic, g.Partitions)
			if err != nil {
				return err
			}
			begin := make(map[int]int64)
			for p := range at {
				if at[p] < 0 {
					begin[p] = 0
				}
			}
			if err := g.admin.SetPositions(ctx, one.Name, topic, begin); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveState moves the state of all machines to the partitions to which their windows go now.
func (g *growing) moveState(ctx context.Context) error {
	moved := 0
	for p := range g.Partitions {
		n, err := g.moveFrom(ctx, p)
		if err != nil {
			return err
		}
		if n > 0 {
			g.Say(fmt.Sprintf("moved    the state of %s from partition %d", plural(n, "machine"), p))
		}
		moved += n
	}
	g.Say(fmt.Sprintf("state    of %s has moved", plural(moved, "machine")))
	return nil
}

// moveFrom moves state records out of a partition, and returns of how many machines. It writes them
// before it deletes them: what is there twice after an interruption is the same.
func (g *growing) moveFrom(ctx context.Context, partition int) (int, error) {
	last := make(map[string]bus.Message) // of the keys that do not belong there
	err := bus.ReadRange(ctx, g.Bus, bus.TopicState, partition, bus.Range{Settled: true}, func(m bus.Message) error {
		if k, ok := event.ParseStateKey(m.Key); ok && bus.PartitionOf(k.Machine, g.Partitions) != partition {
			if delete(last, m.Key); len(m.Value) > 0 {
				last[m.Key] = m
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	var copies, tombstones []bus.Message
	machines := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(last)) {
		tombstones = append(tombstones, bus.Message{Topic: bus.TopicState, Key: key, Pinned: true, Partition: partition})
		k, _ := event.ParseStateKey(key)
		machines[k.Machine] = true
		m := last[key]
		if r, err := event.MovedState(event.StateRecord{Key: k, Value: m.Value}); err == nil { // else a monitor sets it aside
			m.Value = r.Value
		}
		m.Pinned, m.Partition = true, bus.PartitionOf(k.Machine, g.Partitions)
		copies = append(copies, m)
	}
	if err := g.out.Send(ctx, copies); err != nil {
		return 0, err
	}
	return len(machines), g.out.Send(ctx, tombstones)
}

func plural[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
