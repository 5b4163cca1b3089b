package bus

import (
	"context"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// stallWatchdog is how long a test on Apache Kafka may see no new result before it writes down what everyone waits for.
const stallWatchdog = time.Minute

// watchdog makes a stall explain itself. It remembers what clients say, and when results stop
// it logs that, the goroutines of this process and what the cluster knows of partitions, transactions and groups.
type watchdog struct {
	t     *testing.T
	began time.Time
	died  func() error // a broker that no test killed

	mu    sync.Mutex
	said  []string // the newest remarks
	last  string   // remark without its time
	heard time.Time
	timer *time.Timer
}

// watchFor returns the configuration with ears, and its watchdog, which ends with the test. Died
// returns an error if a broker has died that the test did not kill.
func watchFor(t *testing.T, cfg Config, died func() error) (Config, *watchdog) {
	w := &watchdog{t: t, began: time.Now(), died: died}
	cfg.OnRetry = func(err error, since time.Duration) {
		if err == nil {
			w.say(fmt.Sprintf("it went on after %v", since.Round(time.Second)))
			return
		}
		w.say(err.Error())
	}
	cfg.OnHeal = func(text string) { w.say("healed: " + text) }
	cfg.OnStall = func(s Stall) { w.say("stall: " + s.String()) }
	plain := Config{Brokers: cfg.Brokers, ClientID: "watchdog"}
	w.timer = time.AfterFunc(stallWatchdog, func() {
		text := w.heardText() + goroutines() + describeCluster(plain)
		w.mu.Lock()
		defer w.mu.Unlock()
		if t.Context().Err() == nil {
			t.Logf("no result for %v\n%s", stallWatchdog, text)
		}
	})
	t.Cleanup(func() {
		w.timer.Stop()
		if t.Failed() {
			t.Log(w.heardText(), died())
		}
	})
	return cfg, w
}

// progress says that there was a new result.
func (w *watchdog) progress() { w.timer.Reset(stallWatchdog) }

// say keeps a remark unless it repeats the last one of the same second.
func (w *watchdog) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text == w.last && time.Since(w.heard) < time.Second {
		return
	}
	w.last, w.heard = text, time.Now()
	w.said = append(w.said, fmt.Sprintf("%7.2fs %s\n", time.Since(w.began).Seconds(), text))
	w.said = w.said[max(0, len(w.said)-200):]
}

func (w *watchdog) heardText() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return "== what clients said\n" + strings.Join(w.said, "")
}

func goroutines() string {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 1)
	return "== goroutines\n" + text.String()
}

// describeCluster says where partitions are and end, which transactions are open and what groups do.
func describeCluster(cfg Config) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.RetryTimeout(5*time.Second))
	if err != nil {
		return err.Error()
	}
	defer cl.Close()
	d := &description{ctx: ctx, cl: cl}
	d.partitions()
	d.transactions()
	d.groups()
	return d.text.String()
}

type description struct {
	ctx   context.Context
	cl    *kgo.Client
	nodes []int32
	text  strings.Builder
}

func (d *description) printf(format string, args ...any) { fmt.Fprintf(&d.text, format, args...) }

func (d *description) partitions() {
	d.printf("== partitions\n")
	meta, err := kmsg.NewPtrMetadataRequest().RequestWith(d.ctx, d.cl)
	if err != nil {
		d.printf("metadata: %v\n", err)
		return
	}
	for _, b := range meta.Brokers {
		d.nodes = append(d.nodes, b.NodeID)
	}
	d.printf("controller %d, brokers %v\n", meta.ControllerID, d.nodes)
	for _, topic := range meta.Topics {
		for _, p := range topic.Partitions {
			d.printf("%s %d: leader %d epoch %d, in sync %v, offline %v, error %v", *topic.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.OfflineReplicas, kerr.ErrorForCode(p.ErrorCode))
			d.ends(*topic.Topic, p.Partition)
			d.producers(*topic.Topic, p.Partition)
		}
	}
}

// ends writes the high watermark and the last stable offset.
func (d *description) ends(topic string, partition int32) {
	for isolation, name := range []string{"high watermark", "last stable offset"} {
		req := kmsg.NewPtrListOffsetsRequest()
		req.IsolationLevel = int8(isolation)
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = partition, lastOffset
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
		ctx, cancel := context.WithTimeout(d.ctx, 3*time.Second)
		res, err := req.RequestWith(ctx, d.cl)
		cancel()
		if err != nil || len(res.Topics) == 0 || len(res.Topics[0].Partitions) == 0 {
			d.printf(", %s: %v", name, err)
			continue
		}
		got := res.Topics[0].Partitions[0]
		d.printf(", %s %d %v", name, got.Offset, kerr.ErrorForCode(got.ErrorCode))
	}
}

// producers writes which producers have a transaction open in a partition.
func (d *description) producers(topic string, partition int32) {
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	ctx, cancel := context.WithTimeout(d.ctx, 3*time.Second)
	defer cancel()
	res, err := req.RequestWith(ctx, d.cl)
	if err != nil || len(res.Topics) == 0 || len(res.Topics[0].Partitions) == 0 {
		d.printf(", producers: %v\n", err)
		return
	}
	for _, p := range res.Topics[0].Partitions[0].ActiveProducers {
		d.printf("; producer %d epoch %d last sequence %d, open since offset %d", p.ProducerID, p.ProducerEpoch, p.LastSequence, p.CurrentTxnStartOffset)
	}
	d.printf("\n")
}

func (d *description) transactions() {
	d.printf("== transactions\n")
	ids := make(map[string]bool)
	for _, shard := range d.cl.RequestSharded(d.ctx, kmsg.NewPtrListTransactionsRequest()) {
		if shard.Err != nil {
			d.printf("broker %d: %v\n", shard.Meta.NodeID, shard.Err)
			continue
		}
		for _, txn := range shard.Resp.(*kmsg.ListTransactionsResponse).TransactionStates {
			ids[txn.TransactionalID] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{id}
		res, err := req.RequestWith(d.ctx, d.cl)
		if err != nil {
			d.printf("%s: %v\n", id, err)
			continue
		}
		for _, s := range res.TransactionStates {
			d.printf("%s: %s, producer %d epoch %d, timeout %d ms, since %v, partitions %v, error %v\n", id, s.State, s.ProducerID, s.ProducerEpoch, s.TimeoutMillis,
				time.UnixMilli(s.StartTimestamp).Format(time.TimeOnly), s.Topics, kerr.ErrorForCode(s.ErrorCode))
		}
	}
}

func (d *description) groups() {
	d.printf("== group\n")
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{"tcm-test"}
	res, err := req.RequestWith(d.ctx, d.cl)
	if err != nil {
		d.printf("%v\n", err)
		return
	}
	for _, g := range res.Groups {
		d.printf("%s: %s, error %v", g.Group, g.State, kerr.ErrorForCode(g.ErrorCode))
		for _, m := range g.Members {
			d.printf(", member %s of %s", m.MemberID, m.ClientID)
		}
		d.printf("\n")
	}
}

// The description of a cluster names what a stalled test needs.
func TestDescribeCluster(t *testing.T) {
	needKafka(t)
	cfg := Config{Brokers: []string{kafkatest.Shared(t).Addr}, ClientID: "test"}
	apply(t, cfg, 1)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p)
		if err := txn.Publish(ctx, []Message{message(TopicResults, "k", 1)}, nil); err != nil {
			t.Error(err)
		}
		got := describeCluster(cfg)
		for _, want := range []string{TopicResults + " 0: leader 1", "high watermark 2 ", "last stable offset 2 ", "tcm-test-0: CompleteCommit", "tcm-test: Stable"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	})
}
