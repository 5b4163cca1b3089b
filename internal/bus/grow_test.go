package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/golden"
)

// grow calls Grow without its pause, and returns the lines that Grow says.
func grow(t *testing.T, ctx context.Context, cfg Config, partitions int, force bool) (said []string, err error) {
	t.Helper()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	g := &grower{c: c, partitions: partitions, force: force, say: func(s string) { said = append(said, s) }}
	err = g.run(ctx)
	return said, err
}

func mustGrow(t *testing.T, cfg Config, partitions int) []string {
	t.Helper()
	said, err := grow(t, testContext(t), cfg, partitions, false)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(said, "\n"))
	}
	return said
}

// stateKeys returns keys of two groups and of an older program.
func stateKeys(machines int) (keys []string) {
	for i := range machines {
		m := fmt.Sprintf("acme/spore/bay2/line1/m%02d", i)
		keys = append(keys, m,
			"tcm-monitor\x1f"+m, "tcm-monitor\x1f"+m+"\x1ftool\x1fT1", "tcm-monitor\x1f"+m+"\x1ftool\x1fT\x1f2",
			"tcm-trial\x1f"+m, "tcm-trial\x1f"+m+"\x1ftool\x1fT1")
	}
	return keys
}

// putState writes records of TopicState to the partitions that their machines' windows go
// to, out of the given number of partitions.
func putState(t *testing.T, cfg Config, partitions int, value string, keys ...string) {
	t.Helper()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	g := &grower{c: c}
	for _, key := range keys {
		m := Message{Key: key, Value: []byte(value), Headers: []Header{{"turn", []byte("7")}}}
		if value == "" {
			m.Value = nil
		}
		if err := g.put(testContext(t), PartitionOf(stateMachine(key), partitions), []Message{m}); err != nil {
			t.Fatal(err)
		}
	}
}

// stateNow returns, by partition, the last value of every key that is not removed.
func stateNow(t *testing.T, cfg Config) map[int]map[string]string {
	t.Helper()
	now := make(map[int]map[string]string)
	err := ReadTopic(testContext(t), cfg, TopicState, FirstOffset, false, func(m Message) error {
		if now[m.Partition] == nil {
			now[m.Partition] = make(map[string]string)
		}
		if delete(now[m.Partition], m.Key); m.Value != nil {
			now[m.Partition][m.Key] = string(m.Value) + "/" + string(m.Header("turn"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// checkState fails the test unless every record is, unchanged, in the partition that its
// machine's windows go to, and in no other.
func checkState(t *testing.T, cfg Config, partitions int, value string, keys []string) {
	t.Helper()
	left := slices.Clone(keys)
	for p, records := range stateNow(t, cfg) {
		for key, v := range records {
			if want := PartitionOf(stateMachine(key), partitions); p != want || v != value+"/7" {
				t.Errorf("%q lies in partition %d of %d with %q, want %d", key, p, partitions, v, want)
			}
			left = slices.DeleteFunc(left, func(k string) bool { return k == key })
		}
	}
	if len(left) > 0 {
		t.Errorf("%d records are lost: %q", len(left), left)
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

// When a topic grows twice, every record of two groups and of an older program follows its
// machine. Both groups judge the machine's windows in the new partition.
func TestGrow(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	keys := stateKeys(12)
	putState(t, cfg, 2, "old", keys...)
	putState(t, cfg, 2, "now", keys...)
	retired := "tcm-monitor\x1facme/gone"
	putState(t, cfg, 2, "old", retired)
	putState(t, cfg, 2, "", retired)

	p := newProducer(t, cfg)
	send(t, p, windows("before the groups", 0, 3))
	atEnd, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	if began, err := atEnd.BeginAtEnd(testContext(t)); !began || err != nil {
		t.Fatalf("began %v, %v", began, err)
	}
	var sent []Message
	for i := range 12 {
		sent = append(sent, windows(fmt.Sprintf("acme/spore/bay2/line1/m%02d", i), 0, 2)...)
	}
	send(t, p, sent)
	c := newCollector()
	stop := runGroup(t, cfg, c.handle)
	c.wait(t, len(sent))
	stop()

	said := strings.Join(mustGrow(t, cfg, 5), "\n")
	checkState(t, cfg, 5, "now", keys)
	if got := strings.Join(counts(t, cfg), " "); got != "tcm.alerts.v1=5 tcm.commands.v1=5 tcm.dlq.v1=1 tcm.features.v1=5 tcm.models.v1=1 tcm.results.v1=5 tcm.shadow.v1=5 tcm.state.v1=5 tcm.windows.v1=5" {
		t.Errorf("after: %s", got)
	}
	again := strings.Join(mustGrow(t, cfg, 5), "\n")
	golden.Check(t, "grow.txt", said+"\n\n"+again+"\n")

	var more []Message
	for i := range 12 {
		more = append(more, windows(fmt.Sprintf("acme/spore/bay2/line1/m%02d", i), 2, 4)...)
	}
	send(t, newProducer(t, cfg), more)
	c = newCollector()
	stop = runGroup(t, cfg, c.handle)
	c.wait(t, len(more))
	stop()

	mustGrow(t, cfg, 6) // some machines go back to their first partition
	checkState(t, cfg, 6, "now", keys)
	if _, err := grow(t, testContext(t), cfg, 4, false); err == nil || !strings.Contains(err.Error(), "has 6 partitions, and Kafka cannot take any away") {
		t.Errorf("fewer: %v", err)
	}
}

// If Grow is interrupted after any request that changes something, the topics disagree. A
// check reports that with the remedy, and the next call of Grow does the rest.
func TestGrowInterrupted(t *testing.T) {
	t.Parallel()
	keys := stateKeys(3)
	finished := false
	for after := 1; !finished; after++ {
		b, cfg := startBroker(t)
		apply(t, cfg, 2)
		putState(t, cfg, 2, "now", keys...)
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
		_, err := grow(t, ctx, cfg, 3, false)
		cancel()
		finished = err == nil
		if !finished && !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d requests: %v", after, err)
		}
		if n, err := askTopics(testContext(t), cfg, MachineTopics()...); err != nil {
			t.Fatal(err)
		} else if n[TopicWindows] == 3 {
			checkState(t, cfg, 3, "now", keys) // monitors may start now
		} else if n[TopicAlerts] == 3 {
			checkStepsOf(t, cfg, monitorNeeds, "topics", "run `ingest topics grow --partitions 3`")
		} else if n[TopicState] == 3 {
			checkStepsOf(t, cfg, monitorNeeds, "topics", "tcm.windows.v1 has 2 partitions, tcm.state.v1 has 3 partitions")
		}
		if after%3 == 0 { // with more partitions than before
			mustGrow(t, cfg, 7)
			checkState(t, cfg, 7, "now", keys)
		} else {
			mustGrow(t, cfg, 3)
			checkState(t, cfg, 3, "now", keys)
		}
		checkStepsOf(t, cfg, monitorNeeds, "", "")
		b.Close()
		if after > 200 {
			t.Fatal("Grow does not end")
		}
	}
}

// A record in its own partition is newer than one in another partition. The clocks of the
// programs that wrote them do not matter.
func TestGrowAfterOthersRaised(t *testing.T) {
	t.Parallel()
	_, cfg := startBroker(t)
	apply(t, cfg, 3)
	machine := "acme/spore/bay2/line1/m00"
	key := "tcm-monitor\x1f" + machine
	for partition := range 3 {
		if partition != PartitionOf(machine, 5) && partition != PartitionOf(machine, 3) {
			putAt(t, cfg, partition, key, "first")
		}
	}
	for began := newestState(t, cfg); newestState(t, cfg) == began; { // Kafka's times are milliseconds
		putState(t, cfg, 3, "second", key)
	}
	mustGrow(t, cfg, 5)
	checkState(t, cfg, 5, "second", []string{key})
	for partition := range 5 {
		if partition != PartitionOf(machine, 5) {
			putAt(t, cfg, partition, key, "written by a monitor that knew nothing")
		}
	}
	mustGrow(t, cfg, 5)
	checkState(t, cfg, 5, "second", []string{key})
}

// newestState returns when the last record of TopicState arrived.
func newestState(t *testing.T, cfg Config) (newest time.Time) {
	t.Helper()
	err := ReadTopic(testContext(t), cfg, TopicState, FirstOffset, false, func(m Message) error {
		if m.Time.After(newest) {
			newest = m.Time
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return newest
}

func putAt(t *testing.T, cfg Config, partition int, key, value string) {
	t.Helper()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	m := Message{Key: key, Value: []byte(value), Headers: []Header{{"turn", []byte("7")}}}
	if err := (&grower{c: c}).put(testContext(t), partition, []Message{m}); err != nil {
		t.Fatal(err)
	}
}

// While programs use the topics, Grow changes nothing. The error names the programs and the
// remedy.
func TestGrowRefuses(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	keys := stateKeys(3)
	putState(t, cfg, 2, "now", keys...)
	p := newProducer(t, cfg)
	refused := func(want error, words ...string) {
		t.Helper()
		said, err := grow(t, testContext(t), cfg, 4, false)
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v; said %q", err, want, said)
		}
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v lacks %q", err, w)
			}
		}
		if got := strings.Join(counts(t, cfg), " "); strings.Contains(got, "=4") {
			t.Errorf("refused, and yet: %s", got)
		}
		checkState(t, cfg, 2, "now", keys)
	}
	send(t, p, windows("k", 0, 5))
	c := newCollector()
	stop := runGroup(t, cfg, c.handle)
	c.wait(t, 5)
	refused(ErrRunning, "group tcm-test has 1 member (test at ", ") and nothing left to judge", "stop the monitors", "gone after 6s")
	stop()
	send(t, p, windows("k", 5, 8))
	refused(ErrUnfinished, "group tcm-test has 3 windows to judge: start the monitors")
	commands, err := NewGroup(cfg, "tcm-test", TopicCommands)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commands.BeginAtEnd(testContext(t)); err != nil {
		t.Fatal(err)
	}
	send(t, p, []Message{{Topic: TopicCommands, Key: "k", Value: []byte("acknowledge")}})
	refused(ErrUnfinished, "group tcm-test has 3 windows to judge and 1 command to answer: start the monitors")

	arriving, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer arriving.close()
	g := &grower{c: arriving, partitions: 4, say: func(string) {}, counts: map[string]int{TopicWindows: 2}, pause: time.Nanosecond}
	if err := g.checkArrivals(testContext(t)); err != nil {
		t.Errorf("nothing arrives: %v", err)
	}
	more := make(chan struct{})
	ctx, cancel := context.WithCancel(testContext(t))
	go func() {
		defer close(more)
		for i := 8; ctx.Err() == nil; i++ {
			_ = p.Send(ctx, windows("k", i, i+1))
		}
	}()
	for { // until one arrived between the two looks
		if err := g.checkArrivals(testContext(t)); errors.Is(err, ErrRunning) && strings.Contains(err.Error(), "stop the ingesters") {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	<-more

	route, err := NewGroup(cfg, "tcm-test-route-mail", TopicAlerts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := route.BeginAtEnd(testContext(t)); err != nil {
		t.Fatal(err)
	}
	send(t, p, []Message{{Topic: TopicAlerts, Key: "k", Value: []byte("raised")}})
	said, err := grow(t, testContext(t), cfg, 4, true)
	if !slices.Contains(said, "note     group tcm-test-route-mail has 1 alert to read: it may get later ones of a machine first") {
		t.Errorf("said %q", said)
	}
	if err != nil || !strings.Contains(strings.Join(said, "\n"), "forced   group tcm-test has ") {
		t.Errorf("forced: %v, %q", err, said)
	}
	checkState(t, cfg, 4, "now", keys)
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
	said, err := grow(t, testContext(t), cfg, 4, false)
	want := "note     group tcm-test had read partition 0 of tcm.windows.v1 further than it goes now, because Kafka has lost the end of it: the group goes on at offset 5"
	if err != nil || !slices.Contains(said, want) {
		t.Errorf("error %v, said %q", err, said)
	}
	res, err := c.get().OffsetFetch(testContext(t), &kafka.OffsetFetchRequest{GroupID: "tcm-test", Topics: map[string][]int{TopicWindows: {0}}})
	if err != nil || res.Topics[TopicWindows][0].CommittedOffset != 5 {
		t.Errorf("position %+v, %v", res, err)
	}
}

// An open transaction hides the records behind its beginning, so Grow waits for its end.
func TestGrowWaitsForTransactions(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	keys := stateKeys(2)
	putState(t, cfg, 1, "now", keys...)
	open := 3 // for so many looks the transaction is open
	b.cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		ask := req.(*kmsg.ListOffsetsRequest)
		if ask.IsolationLevel == 0 || ask.Topics[0].Topic != TopicState || open == 0 {
			return nil, nil, false
		}
		open--
		res := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		topic, part := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
		topic.Topic, part.Partition, part.Offset, part.Timestamp = TopicState, ask.Topics[0].Partitions[0].Partition, 1, -1
		topic.Partitions = append(topic.Partitions, part)
		res.Topics = append(res.Topics, topic)
		return res, nil, true
	})
	var waited error
	cfg.OnRetry = func(err error, _ time.Duration) {
		if err != nil {
			waited = err
		}
	}
	mustGrow(t, cfg, 2)
	if open != 0 || waited == nil || !strings.Contains(waited.Error(), "a transaction is open") {
		t.Errorf("waited for %v, %d looks left", waited, open)
	}
	checkState(t, cfg, 2, "now", keys)
}

func TestStateMachine(t *testing.T) {
	for key, want := range map[string]string{
		"": "", "a/b": "a/b", "g\x1fa/b": "a/b", "g\x1fa/b\x1ftool\x1fT1": "a/b", "g\x1fa/b\x1ftool\x1fT\x1f1": "a/b", "g\x1f": "", "\x1fm": "m",
	} {
		if got := stateMachine(key); got != want {
			t.Errorf("%q is of machine %q, want %q", key, got, want)
		}
	}
}
