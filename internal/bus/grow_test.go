package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/golden"
)

// grow calls Grow, and returns the lines that Grow says.
func grow(t *testing.T, ctx context.Context, cfg Config, partitions int) (said []string, err error) {
	t.Helper()
	err = Grow(ctx, cfg, partitions, func(s string) { said = append(said, s) })
	return said, err
}

func mustGrow(t *testing.T, cfg Config, partitions int) []string {
	t.Helper()
	said, err := grow(t, testContext(t), cfg, partitions)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
	}
	return said
}

// had returns the numbers of partitions as a monitor gets them.
func had(t *testing.T, cfg Config) []int {
	t.Helper()
	c, err := NewCountsReader(cfg).Read(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	n, err := askPartitions(testContext(t), cfg, TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	return c.With(n)
}

func checkHad(t *testing.T, cfg Config, want ...int) {
	t.Helper()
	if got := had(t, cfg); !slices.Equal(got, want) {
		t.Errorf("numbers of partitions %v, want %v", got, want)
	}
}

// monitors commits positions as a group of monitors that has read all does.
func monitors(t *testing.T, cfg Config, group string) {
	t.Helper()
	for _, topic := range []string{TopicWindows, TopicCommands} {
		g, err := NewGroup(cfg, group, topic)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.BeginAtEnd(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func counts(t *testing.T, cfg Config) (text []string) {
	t.Helper()
	n, err := askTopics(testContext(t), cfg, append(MachineTopics(), TopicModels, TopicDead)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range slices.Sorted(maps.Keys(n)) {
		text = append(text, fmt.Sprintf("%s=%d", topic, n[topic]))
	}
	return text
}

// While a group reads, the topics grow three times. The group gets every window, also those in
// the new partitions, and monitors get to know how many partitions there were.
func TestGrow(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	checkHad(t, cfg, 2)
	monitors(t, cfg, "tcm-trial")
	c := newCollector()
	stop := runGroup(t, cfg, c.handle)
	defer stop()
	p := newProducer(t, cfg)
	sent := 0
	batch := func() {
		for i := range 12 {
			send(t, p, windows(fmt.Sprintf("acme/spore/bay2/line1/m%02d", i), sent/12, sent/12+1))
			sent++
		}
	}
	batch()
	said := strings.Join(mustGrow(t, cfg, 4), "\n")
	checkHad(t, cfg, 2, 4)
	batch()
	again := strings.Join(mustGrow(t, cfg, 4), "\n")
	golden.Check(t, "grow.txt", said+"\n\n"+again+"\n")
	mustGrow(t, cfg, 8)
	checkHad(t, cfg, 2, 4, 8)
	batch()
	c.wait(t, sent)
	if got := strings.Join(counts(t, cfg), " "); !strings.Contains(got, TopicWindows+"=8") || strings.Count(got, "=8") != len(MachineTopics()) {
		t.Errorf("after: %s", got)
	}
	if _, err := grow(t, testContext(t), cfg, 4); err == nil || !strings.Contains(err.Error(), "has 8 partitions, and Kafka cannot take any away") {
		t.Errorf("fewer: %v", err)
	}
	r, err := NewCountsReader(cfg).Read(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for partition, after := range []bool{false, false, true, true} {
		if r.After("tcm-trial", partition) != after || r.After("new", partition) {
			t.Errorf("partition %d, groups %v", partition, r.Groups)
		}
	}
}

// Grow says which machines have moved, which wait for their state, and which are still where they
// were. What it does not know of does not count: retired machines, tools, other groups, shadows.
func TestGrowSaysWhoHasMoved(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	monitors(t, cfg, "tcm-trial")
	put := func(partition int, value string, parts ...string) {
		t.Helper()
		c, err := newClient(cfg) // which knows the partitions that there are now
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		m := Message{Key: strings.Join(parts, stateSeparator), Value: []byte(value)}
		if value == "" {
			m.Value = nil
		}
		err = c.retry(testContext(t), func(ctx context.Context, kc *kafka.Client) error {
			return produceOnce(ctx, kc, TopicState, partition, []*Message{&m})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	machine := func(i int) string { return fmt.Sprintf("acme/line1/m%d", i) }
	for i := range 5 {
		put(PartitionOf(machine(i), 2), "{}", "tcm-trial", machine(i))
	}
	put(0, "{}", "tcm-trial", machine(0), "slow")
	put(0, "{}", "tcm-trial", machine(0), "tool", "moved")
	put(0, "{}", "tcm-trial~model", machine(0))
	put(0, "{}", "another", machine(0))
	put(0, "{}", machine(0))
	put(PartitionOf(machine(4), 2), "", "tcm-trial", machine(4))
	said := []string{strings.Join(mustGrow(t, cfg, 5), "\n")}
	move := func(i int) {
		was := PartitionOf(machine(i), 2)
		put(was, "", "tcm-trial", machine(i))
		put(was, fmt.Sprintf(`{"to":%d,"partitions":5}`, PartitionOf(machine(i), 5)), "tcm-trial", machine(i), "moved")
		put(PartitionOf(machine(i), 5), "{}", "tcm-trial", machine(i))
	}
	move(0)
	put(PartitionOf(machine(1), 5), `{"from":[0,-1,-1]}`, "tcm-trial", machine(1), "waits")
	said = append(said, strings.Join(mustGrow(t, cfg, 5), "\n"))
	put(PartitionOf(machine(1), 5), "", "tcm-trial", machine(1), "waits")
	move(1)
	move(2)
	said = append(said, strings.Join(mustGrow(t, cfg, 5), "\n"))
	golden.Check(t, "moves.txt", strings.Join(said, "\n\n")+"\n")
}

// If Grow is interrupted after any request that changes something, monitors know the numbers of
// partitions nevertheless, and the next call of Grow does the rest.
func TestGrowInterrupted(t *testing.T) {
	t.Parallel()
	finished := false
	for after := 1; !finished; after++ {
		b, cfg := startBroker(t)
		apply(t, cfg, 2)
		ctx, cancel := context.WithCancel(testContext(t))
		n := 0
		for _, key := range []kmsg.Key{kmsg.CreatePartitions, kmsg.Produce} {
			b.cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
				b.cluster.KeepControl()
				if n++; n == after {
					cancel() // the broker does it, and the answer is lost
				}
				return nil, nil, false
			})
		}
		_, err := grow(t, ctx, cfg, 3)
		cancel()
		finished = err == nil
		if !finished && !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d requests: %v", after, err)
		}
		now, err := askTopics(testContext(t), cfg, MachineTopics()...)
		if err != nil {
			t.Fatal(err)
		}
		if err := Reach(now); err != nil {
			t.Errorf("after %d requests monitors do not start: %v", after, err)
		}
		want := []int{2}
		if now[TopicWindows] == 3 {
			want = []int{2, 3}
		}
		checkHad(t, cfg, want...)
		if after%3 == 0 { // with more partitions than before
			mustGrow(t, cfg, 7)
			checkHad(t, cfg, append(want, 7)...)
		} else {
			mustGrow(t, cfg, 3)
			checkHad(t, cfg, 2, 3)
		}
		checkStepsOf(t, cfg, monitorNeeds, "", "")
		b.Close()
		if after > 50 {
			t.Fatal("Grow does not end")
		}
	}
}

// Another program has raised the windows' topic: no monitor starts, and Grow raises the others.
func TestGrowAfterOthersRaised(t *testing.T) {
	t.Parallel()
	_, cfg := startBroker(t)
	apply(t, cfg, 2)
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	g := &grower{c: c, partitions: 5, say: func(string) {}, counts: map[string]int{TopicWindows: 2}}
	if _, err := g.raise(testContext(t), TopicWindows); err != nil {
		t.Fatal(err)
	}
	now, err := askTopics(testContext(t), cfg, MachineTopics()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := Reach(now); err == nil || !strings.Contains(err.Error(), "run `ingest topics grow --partitions 5`") {
		t.Errorf("%v", err)
	}
	mustGrow(t, cfg, 5)
	checkHad(t, cfg, 2, 5)
}

// Grow changes nothing while monitors of another release run, since they do not move state.
func TestGrowRefuses(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	monitors(t, cfg, "tcm-test")
	c := newCollector()
	stop := runGroup(t, cfg, c.handle) // its protocol is not one of monitors
	send(t, newProducer(t, cfg), windows("k", 0, 5))
	c.wait(t, 5)
	said, err := grow(t, testContext(t), cfg, 4)
	if !errors.Is(err, ErrRunning) {
		t.Errorf("error %v, said %q", err, said)
	}
	for _, w := range []string{"monitors of another release: tcm-test (test at ", "start this release instead", "gone after 6s"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v lacks %q", err, w)
		}
	}
	checkHad(t, cfg, 2)
	stop()
	mustGrow(t, cfg, 4)
	checkHad(t, cfg, 2, 4)
}

// If machines may come back to a partition in which they were, Grow waits until all windows of
// before are judged and no machine waits for its state.
func TestGrowTwice(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	monitors(t, cfg, "tcm-test")
	send(t, newProducer(t, cfg), windows("k", 0, 5))
	mustGrow(t, cfg, 3)
	refused := func(partitions int, want string) {
		t.Helper()
		said, err := grow(t, testContext(t), cfg, partitions)
		if !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, said %q", err, said)
		}
		checkHad(t, cfg, 2, 3)
	}
	refused(4, "group tcm-test has 5 windows to judge, and 0 machines that wait for their state, and no member")
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	_, end, err := Bounds(testContext(t), cfg, TopicWindows, PartitionOf("k", 2)) // a send that was repeated makes it more than 5
	if err != nil {
		t.Fatal(err)
	}
	at := []kafka.OffsetCommit{{Partition: PartitionOf("k", 2), Offset: end}}
	if err := commitPositions(testContext(t), c.get(), "tcm-test", TopicWindows, at); err != nil {
		t.Fatal(err)
	}
	key := "tcm-test" + stateSeparator + "k" + waitsSuffix
	for _, value := range [][]byte{[]byte("{}"), nil} {
		msgs := []*Message{{Key: key, Value: value}}
		if err := produceOnce(testContext(t), c.get(), TopicState, 0, msgs); err != nil {
			t.Fatal(err)
		}
		if value != nil {
			refused(4, "0 windows to judge, and 1 machine that wait")
		}
	}
	mustGrow(t, cfg, 4)
	checkHad(t, cfg, 2, 3, 4)
}

// If a group has read more of a partition than the broker still has, Grow sets its position to
// the end, before more partitions make the topic look new.
func TestGrowAfterALostTail(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), windows("k", 0, 5))
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	positions := []kafka.OffsetCommit{{Partition: 0, Offset: 18}}
	if err := commitPositions(testContext(t), c.get(), "tcm-test", TopicWindows, positions); err != nil {
		t.Fatal(err)
	}
	commands := []kafka.OffsetCommit{{Partition: 0, Offset: 0}}
	if err := commitPositions(testContext(t), c.get(), "tcm-test", TopicCommands, commands); err != nil {
		t.Fatal(err)
	}
	said, err := grow(t, testContext(t), cfg, 4)
	want := "note     group tcm-test had read partition 0 of tcm.windows.v1 further than it goes now, because Kafka has lost the end of it: the group goes on at offset 5"
	if err != nil || !slices.Contains(said, want) {
		t.Errorf("error %v, said %q", err, said)
	}
	res, err := c.get().OffsetFetch(testContext(t), &kafka.OffsetFetchRequest{GroupID: "tcm-test", Topics: map[string][]int{TopicWindows: {0}}})
	if err != nil || res.Topics[TopicWindows][0].CommittedOffset != 5 {
		t.Errorf("position %+v, %v", res, err)
	}
}

func TestCountsWith(t *testing.T) {
	for _, tc := range []struct {
		had     []int
		growing int
		windows int
		want    []int
	}{
		{nil, 0, 64, []int{64}},
		{[]int{4}, 64, 4, []int{4}},
		{[]int{4}, 64, 64, []int{4, 64}},
		{[]int{4, 64}, 0, 64, []int{4, 64}},
		{[]int{4, 64}, 0, 96, []int{4, 64, 96}}, // by another program
		{[]int{4, 64}, 0, 8, []int{4, 8}},       // the topic was made again
	} {
		c := Counts{Had: tc.had, Growing: tc.growing}
		if got := c.With(tc.windows); !slices.Equal(got, tc.want) {
			t.Errorf("%+v with %d: %v, want %v", c, tc.windows, got, tc.want)
		}
	}
}

func TestMayReturn(t *testing.T) {
	for text, counts := range map[string][]int{"": {4}, "4, 64": {4, 64}, "2, 3": {2, 3}, "4, 8, 64": {4, 8, 64}, "64, 64": {64, 64}, "returns 2, 3, 4": {2, 3, 4}, "returns 4, 64, 96": {4, 64, 96}} {
		if got := mayReturn(counts); got != strings.HasPrefix(text, "returns") {
			t.Errorf("%s: %v", text, got)
		}
	}
}
