package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/testkit/loopback"
)

// withPartition runs a group of one member and calls f in its handler, once.
func withPartition(t *testing.T, cfg Config, f func(ctx context.Context, p *Partition)) {
	t.Helper()
	done := make(chan struct{})
	var once sync.Once
	stop := runSticky(t, cfg, func(ctx context.Context, p *Partition) error {
		once.Do(func() {
			defer close(done)
			f(ctx, p)
		})
		<-ctx.Done()
		return ctx.Err()
	})
	<-done
	stop()
}

func fence(t *testing.T, ctx context.Context, p *Partition, others ...string) *Txn {
	t.Helper()
	txn, err := p.Fence(ctx, others...)
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

// committed returns the committed messages of a partition as another client library reads
// them. They must begin with the messages that this package read earlier.
func committed(t *testing.T, cfg Config, topic string, partition int32) (got []string) {
	t.Helper()
	ctx := testContext(t)
	var own []string
	err := ReadFrom(ctx, cfg, topic, int(partition), FirstOffset, false, func(m Message) error {
		own = append(own, string(m.Value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if len(own) > len(got) || !slices.Equal(own, got[:len(own)]) {
			t.Errorf("%s: ReadFrom has %d messages: %.300q\nanother reader %d: %.300q", topic, len(own), own, len(got), got)
		}
	}()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var end int64
	err = c.retry(ctx, func(ctx context.Context) (err error) {
		end, err = c.t.endOf(ctx, place{topic, int(partition)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for at := int64(0); at < end; {
		fetched := cl.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			if !r.Attrs.IsControl() {
				got = append(got, string(r.Value))
			}
		})
	}
	return got
}

func message(topic, key string, value any) Message {
	return Message{Topic: topic, Key: key, Route: "machine", Value: fmt.Append(nil, value)}
}

// Readers see all messages of a Publish together with its positions, or none.
func TestPublishIsAtomic(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p, TopicCommands)
		if txn.Position(TopicWindows) != FirstOffset || txn.Position(TopicCommands) != FirstOffset {
			t.Errorf("positions of a new group: %d and %d", txn.Position(TopicWindows), txn.Position(TopicCommands))
		}
		msgs := func(v string) []Message {
			return []Message{message(TopicState, "s", v), message(TopicResults, "r", v), message(TopicAlerts, "a", v), message(TopicResults, "r", v+"'")}
		}
		if err := txn.Publish(ctx, msgs("1"), map[string]int64{TopicWindows: 0, TopicCommands: 0}); err != nil {
			t.Fatal(err)
		}
		huge := append(msgs("2"), Message{Topic: TopicState, Key: "huge", Value: make([]byte, MaxMessage+1)})
		err := txn.Publish(ctx, huge, map[string]int64{TopicWindows: 7})
		if !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "max.message.bytes") {
			t.Errorf("a message that is too large: %v", err)
		}
		if txn.Position(TopicWindows) != 0 {
			t.Errorf("position of a transaction that was not committed: %d", txn.Position(TopicWindows))
		}
		if err := txn.Publish(ctx, msgs("3"), map[string]int64{TopicCommands: 0}); err != nil {
			t.Fatalf("after one that was aborted: %v", err)
		}
		if err := txn.Publish(ctx, nil, nil); err != nil {
			t.Fatalf("positions only: %v", err)
		}
		again := fence(t, ctx, p, TopicCommands)
		if again.Position(TopicWindows) != 0 || p.f.next != 0 || again.Position(TopicCommands) != 0 {
			t.Errorf("positions %d (next %d) and %d, want 0", again.Position(TopicWindows), p.f.next, again.Position(TopicCommands))
		}
	})
	for topic, want := range map[string][]string{TopicState: {"1", "3"}, TopicAlerts: {"1", "3"}, TopicResults: {"1", "1'", "3", "3'"}} {
		if got := committed(t, cfg, topic, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}

// An open transaction hides its messages and all behind it, but a reader of the present
// messages does not wait for it. Windows are not hidden.
func TestReadingEndsAtAnOpenTransaction(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	for _, topic := range []string{TopicWindows, TopicState} {
		say := func(v string) Message { return Message{Topic: topic, Key: "k", Value: []byte(v)} }
		send(t, p, []Message{say("before")})
		inTransaction(t, cfg, "aborted "+topic, []Message{say("aborted")}, abortIt)
		inTransaction(t, cfg, "committed "+topic, []Message{say("committed")}, commitIt)
		inTransaction(t, cfg, "open "+topic, []Message{say("open")}, leaveOpen)
		send(t, p, []Message{say("behind")})
		want := []string{"before", "committed"}
		if topic == TopicWindows {
			want = []string{"before", "aborted", "committed", "open", "behind"}
		}
		if got := readAll(t, cfg, topic)["k"]; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
		first, end, err := Bounds(testContext(t), cfg, topic, 0)
		if err != nil || first != 0 || end < int64(len(want)) {
			t.Errorf("%s: from %d to %d, %v", topic, first, end, err)
		}
		var ranged []string
		err = ReadRange(testContext(t), cfg, topic, 0, Range{}, func(m Message) error { ranged = append(ranged, string(m.Value)); return nil })
		if err != nil || !slices.Equal(ranged, want) {
			t.Errorf("%s: ReadRange has %q, %v", topic, ranged, err)
		}
	}
}

// A record behind another group's open transaction is read when the transaction has ended.
// Messages of an aborted transaction are left out.
func TestReadStateWaits(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	say := func(v string) []Message { return []Message{{Topic: TopicState, Key: "k", Value: []byte(v)}} }
	inTransaction(t, cfg, "own", say("first"), commitIt)
	inTransaction(t, cfg, "other", say("open"), leaveOpen)
	inTransaction(t, cfg, "own", say("second"), commitIt)
	var got, ranged []string
	read := make(chan error, 2)
	go func() {
		read <- ReadRange(testContext(t), cfg, TopicState, 0, Range{Settled: true}, func(m Message) error { got = append(got, string(m.Value)); return nil })
	}()
	go func() {
		read <- ReadRange(testContext(t), cfg, TopicState, 0, Range{Settled: true}, func(m Message) error { ranged = append(ranged, string(m.Value)); return nil })
	}()
	select {
	case err := <-read:
		t.Fatalf("it ended at an open transaction: %v", err)
	case <-time.After(2 * readWait):
	}
	inTransaction(t, cfg, "other", say("later"), commitIt) // aborts the open transaction
	for range 2 {
		if err := <-read; err != nil {
			t.Fatal(err)
		}
	}
	for name, got := range map[string][]string{"settled": got, "ReadRange": ranged} {
		if want := []string{"first", "second"}; !slices.Equal(got, want) {
			t.Errorf("%s read %q, want %q and nothing that was written after it began", name, got, want)
		}
	}
}

// After the next owner's Fence the broker refuses the previous owner of a partition. The
// transaction that it left open never becomes visible.
func TestFenceRefusesThePreviousOwner(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		old := fence(t, ctx, p)
		if err := old.Publish(ctx, []Message{message(TopicResults, "k", "old")}, map[string]int64{TopicWindows: 0}); err != nil {
			t.Fatal(err)
		}
		outs, err := old.plan(ctx, []Message{message(TopicResults, "k", "left open")})
		if err == nil {
			err = old.write(ctx, outs, map[string]int64{TopicWindows: 5})
		}
		if err != nil {
			t.Fatal(err)
		}
		owner := fence(t, ctx, p)
		if owner.Position(TopicWindows) != 0 {
			t.Errorf("position %d of a transaction that never ended", owner.Position(TopicWindows))
		}
		for range 2 {
			if err := old.Publish(ctx, []Message{message(TopicResults, "k", "zombie")}, map[string]int64{TopicWindows: 9}); !errors.Is(err, ErrLost) {
				t.Errorf("the previous owner: %v", err)
			}
		}
		if err := owner.Publish(ctx, []Message{message(TopicResults, "k", "new")}, map[string]int64{TopicWindows: 1}); err != nil {
			t.Errorf("the owner: %v", err)
		}
	})
	if got := committed(t, cfg, TopicResults, 0); !slices.Equal(got, []string{"old", "new"}) {
		t.Errorf("%q", got)
	}
}

// A member that has left the group cannot write, even if it takes the transactional id
// again.
func TestZombieIsRefused(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	var gone *Partition
	withPartition(t, cfg, func(ctx context.Context, p *Partition) { gone = p; fence(t, ctx, p) })
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		zombie := fence(t, ctx, gone)
		for _, what := range []string{"with messages", "positions only"} {
			msgs := []Message{message(TopicResults, "k", "zombie")}
			if what == "positions only" {
				msgs, zombie = nil, fence(t, ctx, gone)
			}
			if err := zombie.Publish(ctx, msgs, nil); !errors.Is(err, ErrLost) {
				t.Errorf("a member of an older generation, %s: %v", what, err)
			}
		}
		if err := fence(t, ctx, p).Publish(ctx, []Message{message(TopicResults, "k", "new")}, nil); err != nil {
			t.Errorf("the owner: %v", err)
		}
	})
	if got := committed(t, cfg, TopicResults, 0); !slices.Equal(got, []string{"new"}) {
		t.Errorf("%q", got)
	}
}

// A request that the network delays and delivers again writes nothing.
func TestLateDuplicate(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p)
		var late []*outgoing
		for i := range 3 {
			outs, err := txn.plan(ctx, []Message{message(TopicResults, "k", i)})
			if err != nil {
				t.Fatal(err)
			}
			late = append(late, &outgoing{at: outs[0].at, left: outs[0].left, sequence: outs[0].sequence})
			if err := txn.Publish(ctx, []Message{message(TopicResults, "k", i)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := txn.addPartitions(ctx, []place{late[0].at}); err != nil { // the worst moment: during the next transaction
			t.Fatal(err)
		}
		for _, o := range late {
			err := txn.produceOnce(ctx, []*outgoing{o})
			t.Logf("late duplicate: %v", err) // brokers answer with different errors
		}
		// Apache Kafka takes the next number for out of order then: that costs a reload.
		err := txn.Publish(ctx, []Message{message(TopicResults, "k", "next")}, nil)
		if errors.Is(err, ErrLost) {
			err = fence(t, ctx, p).Publish(ctx, []Message{message(TopicResults, "k", "next")}, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if got := committed(t, cfg, TopicResults, 0); !slices.Equal(got, []string{"0", "1", "2", "next"}) {
		t.Errorf("%q", got)
	}
}

// Messages for more than one request are written in order, whether Publish divides them
// beforehand or after the broker has refused the batch.
func TestPublishManyBatches(t *testing.T) {
	cfg := anyBroker(t)
	createTopic(t, cfg, TopicAlerts, 1, "max.message.bytes", "3000")
	apply(t, cfg, 1)
	var msgs []Message
	var results, alerts []string
	for i := range 40 {
		msgs = append(msgs, message(TopicResults, "k", fmt.Sprint(i, strings.Repeat(".", 100_000))), message(TopicAlerts, "k", fmt.Sprint(i, strings.Repeat(".", 500))))
		results, alerts = append(results, string(msgs[2*i].Value)), append(alerts, string(msgs[2*i+1].Value))
	}
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p)
		for range 2 {
			if err := txn.Publish(ctx, msgs, map[string]int64{TopicWindows: 0}); err != nil {
				t.Fatal(err)
			}
		}
	})
	for topic, want := range map[string][]string{TopicResults: results, TopicAlerts: alerts} {
		if got := committed(t, cfg, topic, 0); !slices.Equal(got, slices.Concat(want, want)) {
			t.Errorf("%s: %d messages, want %d, in order", topic, len(got), 2*len(want))
		}
	}
}

// publishResults is a handler. It writes one result for each window, and the position behind
// the window, in one transaction.
func publishResults(batch int) func(context.Context, *Partition) error {
	return publishTo(batch, TopicResults)
}

func publishTo(batch int, topics ...string) func(context.Context, *Partition) error {
	return func(ctx context.Context, p *Partition) error {
		txn, err := p.Fence(ctx)
		if err != nil {
			return err
		}
		for {
			msgs, err := p.Fetch(ctx, batch, 0)
			if err != nil {
				return err
			}
			var results []Message
			for _, m := range msgs {
				for _, topic := range topics {
					results = append(results, Message{Topic: topic, Key: m.Key, Value: m.Value})
				}
			}
			if err := txn.Publish(ctx, results, map[string]int64{TopicWindows: msgs[len(msgs)-1].Offset + 1}); err != nil {
				return err
			}
		}
	}
}

// waitForResults returns once a partition has so many committed results.
func waitForResults(t *testing.T, cfg Config, n int) []string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		got := committed(t, cfg, TopicResults, 0)
		if len(got) >= n {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d results", len(got), n)
		}
	}
}

// With every error of a broker and with members that come and go there is one result for
// each window, in order.
func TestOneResultForEachWindow(t *testing.T) {
	t.Parallel()
	eachFault(t, 1, map[string]kfake.Fault{
		"leader has moved":        failing(kmsg.Produce, kerr.NotLeaderForPartition, 3),
		"written, but timed out":  failing(kmsg.Produce, kerr.RequestTimedOut, 3),
		"broker fails":            failing(kmsg.Produce, kerr.UnknownServerError, 1),
		"out of order":            failing(kmsg.Produce, kerr.OutOfOrderSequenceNumber, 1),
		"still busy":              failing(kmsg.AddPartitionsToTxn, kerr.ConcurrentTransactions, 5),
		"coordinator has moved":   failing(kmsg.AddOffsetsToTxn, kerr.NotCoordinator, 2),
		"group is being balanced": failing(kmsg.TxnOffsetCommit, kerr.RebalanceInProgress, 1),
		"positions are loading":   failing(kmsg.TxnOffsetCommit, kerr.CoordinatorLoadInProgress, 2),
		"end is refused":          failing(kmsg.EndTxn, kerr.InvalidProducerEpoch, 1),
		"end is not ready":        failing(kmsg.EndTxn, kerr.CoordinatorNotAvailable, 2),
		"no id for now":           failing(kmsg.InitProducerID, kerr.ConcurrentTransactions, 4),
		"positions are unstable":  failing(kmsg.OffsetFetch, kerr.UnstableOffsetCommit, 2),
	}, func(t *testing.T, cfg Config, inject func() *kfake.FaultHandle, _ int) {
		send(t, newProducer(t, cfg), windows("k", 0, 100))
		inject()
		defer runSticky(t, cfg, publishResults(7))()
		if got := waitForResults(t, cfg, 100); !slices.Equal(got, values(windows("k", 0, 100))) {
			t.Errorf("%d results: %.200q", len(got), got)
		}
	})
}

// When an answer never comes, the request is sent again. The first request could still
// arrive at any time, so the member gives the partition up after the transaction.
func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.AddPartitionsToTxn, kmsg.InitProducerID} {
		t.Run(key.Name(), func(t *testing.T) {
			t.Parallel()
			b, cfg := startBroker(t)
			apply(t, cfg, 1)
			dropped := make(chan struct{})
			b.cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
				defer close(dropped)
				return nil, errors.New("drop the connection"), true
			})
			send(t, newProducer(t, cfg), windows("k", 0, 50))
			defer runSticky(t, cfg, publishResults(7))()
			if got := waitForResults(t, cfg, 50); !slices.Equal(got, values(windows("k", 0, 50))) {
				t.Errorf("%q", got)
			}
			<-dropped
		})
	}
}

func TestResultsThroughRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := StartBroker(dir, loopback.Host(1)+":0")
	if err != nil {
		t.Fatal(err)
	}
	addr, cfg := b.Addr(), b.Config("test")
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	stop := runSticky(t, cfg, publishResults(3))
	defer stop()
	const rounds, each = 3, 40
	for i := range rounds {
		send(t, p, windows("k", i*each, (i+1)*each))
		waitForResults(t, cfg, i*each+10) // the member stops while it writes the next ones
		b.Close()
		if b, err = StartBroker(dir, addr); err != nil {
			t.Fatal(err)
		}
	}
	defer b.Close()
	if got := waitForResults(t, cfg, rounds*each); !slices.Equal(got, values(windows("k", 0, rounds*each))) {
		t.Errorf("%q", got)
	}
}

// With members that come and go every window of every partition has one result.
func TestResultsThroughRebalances(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	p := newProducer(t, cfg)
	keys := []string{"a", "b", "c", "d"}
	sent := 0
	more := func() {
		for _, key := range keys {
			send(t, p, windows(key, sent, sent+50))
		}
		sent += 50
	}
	wait := func() map[string][]string {
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			got, n := make(map[string][]string), 0
			for partition := range int32(2) {
				for _, v := range committed(t, cfg, TopicResults, partition) {
					key, _, _ := strings.Cut(v, "/")
					got[key] = append(got[key], v)
					n++
				}
			}
			if n >= sent*len(keys) {
				return got
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d results", n, sent*len(keys))
			}
		}
	}
	first := runSticky(t, cfg, publishResults(5))
	more()
	second := runSticky(t, cfg, publishResults(5))
	more()
	wait()
	more()
	first()
	more()
	got := wait()
	second()
	for _, key := range keys {
		if want := values(windows(key, 0, sent)); !slices.Equal(got[key], want) {
			t.Errorf("%s: %d results, want %d, one for each window, in order", key, len(got[key]), len(want))
		}
	}
}

// If the context ends during a Publish, the transaction is aborted and the partition lost.
func TestPublishEndsWithItsContext(t *testing.T) {
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p)
		short, cancel := context.WithCancel(ctx)
		b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			b.cluster.KeepControl()
			cancel()
			return nil, nil, false
		})
		b.cluster.Fault(failing(kmsg.Produce, kerr.NotEnoughReplicas, 1))
		err := txn.Publish(short, []Message{message(TopicResults, "k", "half")}, map[string]int64{TopicWindows: 3})
		if !errors.Is(err, ErrLost) || !errors.Is(err, context.Canceled) {
			t.Errorf("Publish: %v", err)
		}
		if _, err := p.Fetch(ctx, 1, 0); !errors.Is(err, ErrLost) {
			t.Errorf("Fetch after that: %v", err)
		}
		to := openClient(t, cfg).t
		end, _ := to.offset(ctx, place{TopicResults, 0}, lastOffset, false)
		if stable, err := to.endOf(ctx, place{TopicResults, 0}); err != nil || stable != end {
			t.Errorf("a transaction is open from %d on, of %d; %v", stable, end, err)
		}
	})
	if got := committed(t, cfg, TopicResults, 0); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// A permanent error names the setting or the right.
func TestPermanentErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault kfake.Fault
		want  []string
	}{
		"no right to the id":     {failing(kmsg.InitProducerID, kerr.TransactionalIDAuthorizationFailed, 0), []string{"Write on TransactionalId, prefix tcm-", "tcm-test-0", "acls.md"}},
		"no right to the topic":  {failing(kmsg.Produce, kerr.TopicAuthorizationFailed, 0), []string{TopicResults, "lacks the right"}},
		"no right to the group":  {failing(kmsg.AddOffsetsToTxn, kerr.GroupAuthorizationFailed, 0), []string{"lacks the right"}},
		"timeout is not allowed": {failing(kmsg.InitProducerID, kerr.InvalidTransactionTimeout, 0), []string{"transaction.max.timeout.ms"}},
	} {
		b, cfg := startBroker(t)
		apply(t, cfg, 1)
		b.cluster.Fault(tc.fault)
		g, _ := NewGroup(cfg, "tcm-test", TopicWindows)
		err := g.Run(testContext(t), func(ctx context.Context, p *Partition) error {
			txn, err := p.Fence(ctx)
			if err != nil {
				return err
			}
			return txn.Publish(ctx, []Message{message(TopicResults, "k", 1)}, nil)
		})
		for _, want := range tc.want {
			if err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v: lacks %q", name, err, want)
			}
		}
		b.Close()
	}
	_, cfg := startBroker(t)
	createTopic(t, cfg, TopicWindows, 1, "max.message.bytes", "1000000")
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p)
		if err := txn.Publish(ctx, []Message{message(TopicResults, "k", 1)}, nil); !errors.Is(err, ErrNoTopic) || errors.Is(err, ErrLost) {
			t.Errorf("a topic that does not exist: %v", err)
		}
		if err := txn.Publish(ctx, nil, nil); err != nil {
			t.Errorf("after that: %v", err)
		}
	})
}

// If a broker did not write a commit to the partitions, the next owner closes the transaction.
func TestFenceHeals(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	var healed []string
	cfg.OnHeal = func(text string) { healed = append(healed, text) }
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		first := fence(t, ctx, p)
		outs, err := first.plan(ctx, []Message{message(TopicState, "k", "open"), message(TopicResults, "k", "open")})
		if err == nil {
			err = first.write(ctx, outs, map[string]int64{TopicWindows: 5})
		}
		if err != nil {
			t.Fatal(err)
		}
		// It says that the transaction is over, and does nothing.
		b.cluster.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
			res := req.ResponseKind().(*kmsg.InitProducerIDResponse)
			res.ProducerID, res.ProducerEpoch = first.producer, first.epoch
			return res, nil, true
		})
		if txn := fence(t, ctx, p); txn.Position(TopicWindows) != 5 {
			t.Errorf("position %d, want the position that the transaction committed", txn.Position(TopicWindows))
		}
	})
	slices.Sort(healed)
	if len(healed) != 2 || !strings.Contains(healed[0], TopicResults+" partition 0") || !strings.Contains(healed[1], TopicState+" partition 0") || !strings.Contains(healed[1], "offset 0") {
		t.Errorf("said %q", healed)
	}
	for _, topic := range []string{TopicState, TopicResults} {
		if got := committed(t, cfg, topic, 0); !slices.Equal(got, []string{"open"}) {
			t.Errorf("%s: %q", topic, got)
		}
	}
}

// Fence neither closes nor reports another group's long transaction.
func TestFenceLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	cfg.OnHeal = func(text string) { t.Error(text) }
	inTransaction(t, cfg, "other", []Message{{Topic: TopicState, Key: "k", Value: []byte("open")}}, leaveOpen)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		if err := fence(t, ctx, p).Publish(ctx, []Message{message(TopicState, "k", 1)}, nil); err != nil {
			t.Error(err)
		}
	})
	if got := committed(t, cfg, TopicState, 0); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// A batch has the producer fields at the places of the protocol, and a valid checksum.
func TestEncodeBatch(t *testing.T) {
	msgs := []*Message{{Topic: "t", Key: "a", Value: []byte("1"), Headers: []Header{{"h", []byte("v")}}}, {Topic: "t", Key: "b"}}
	encoded := encodeBatch(place{topic: "t"}, msgs, producing{protocol.Transactional, 1<<40 + 5, 7, 1<<30 + 3})
	raw := bytes.Join(encoded.parts, nil)
	var b kmsg.RecordBatch
	if err := b.ReadFrom(raw); err != nil {
		t.Fatal(err)
	}
	if b.ProducerID != 1<<40+5 || b.ProducerEpoch != 7 || b.FirstSequence != 1<<30+3 || b.NumRecords != 2 || b.Attributes != 1<<4 {
		t.Errorf("%+v", b)
	}
	if len(raw) != int(b.Length)+12 || encoded.size != len(raw) {
		t.Errorf("%d bytes, the batch says %d", len(raw), b.Length+12)
	}
	if sum := crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)); uint32(b.CRC) != sum {
		t.Errorf("checksum %08x, want %08x", uint32(b.CRC), sum)
	}
}

// Messages of features are compressed, in transactions and without, and read back as they were.
func TestFeaturesAreCompressed(t *testing.T) {
	var msgs []*Message
	for i := range 8 {
		msgs = append(msgs, &Message{Topic: TopicFeatures, Key: "m", Value: slices.Repeat([]byte{1, 2, 3, byte(i)}, 1000)})
	}
	encoded := encodeBatch(place{topic: TopicFeatures}, msgs, producing{protocol.Transactional, 5, 7, 3})
	raw := bytes.Join(encoded.parts, nil)
	var b kmsg.RecordBatch
	if err := b.ReadFrom(raw); err != nil {
		t.Fatal(err)
	}
	if sum := crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)); len(raw) > 8*1000 || b.Attributes != 1<<4|int16(kafka.Snappy) || uint32(b.CRC) != sum {
		t.Errorf("%d bytes, attributes %b, checksum %08x, want %08x", len(raw), b.Attributes, uint32(b.CRC), sum)
	}
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		var batch []Message
		for _, m := range msgs {
			batch = append(batch, *m)
		}
		if err := fence(t, ctx, p).Publish(ctx, batch, map[string]int64{TopicWindows: 0}); err != nil {
			t.Error(err)
		}
		send(t, newProducer(t, cfg), batch)
	})
	n := 0
	err := ReadTopic(testContext(t), cfg, TopicFeatures, FirstOffset, false, func(m Message) error {
		if want := msgs[n%len(msgs)]; m.Key != want.Key || string(m.Value) != string(want.Value) {
			t.Errorf("message %d: key %q, %d bytes", n, m.Key, len(m.Value))
		}
		n++
		return nil
	})
	if err != nil || n != 2*len(msgs) {
		t.Errorf("%d messages, %v", n, err)
	}
}

// An answer of the largest length leaves out aborted messages, too.
func TestAbortedInFullAnswer(t *testing.T) {
	t.Parallel()
	b, err := StartBroker("", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cfg := b.Config("test")
	apply(t, cfg, 1)
	inTransaction(t, cfg, "id", []Message{{Topic: TopicResults, Key: "k", Value: []byte("aborted")}}, abortIt)
	large := make([]byte, 900_000) // not compressible
	rand.NewChaCha8([32]byte{}).Read(large)
	for range MaxMessage/len(large) + 1 {
		inTransaction(t, cfg, "id", []Message{{Topic: TopicResults, Key: "large", Value: large}}, commitIt)
	}
	if got := readAll(t, cfg, TopicResults); len(got["k"]) > 0 || len(got["large"]) != MaxMessage/len(large)+1 {
		t.Errorf("read %q and %d large messages", got["k"], len(got["large"]))
	}
}
