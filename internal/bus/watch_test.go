package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// controlFetches calls fn for every fetch request.
func controlFetches(cluster *kfake.Cluster, fn func(*kmsg.FetchRequest) (kmsg.Response, bool)) {
	cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		res, handled := fn(req.(*kmsg.FetchRequest))
		return res, nil, handled
	})
}

// nothing returns an answer without messages from a partition that ends at high.
func nothing(req *kmsg.FetchRequest, high int64) kmsg.Response {
	res := req.ResponseKind().(*kmsg.FetchResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewFetchResponseTopicPartition()
			part.Partition, part.HighWatermark = p.Partition, high
			topic.Partitions = append(topic.Partitions, part)
		}
		res.Topics = append(res.Topics, topic)
	}
	return res
}

// A reader whose connection brings neither messages nor errors is rebuilt until the
// messages come.
func TestStuckReader(t *testing.T) {
	t.Parallel()
	for name, high := range map[string]int64{"it knows that there are messages": 99, "it does not": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, cfg := startBroker(t)
			apply(t, cfg, 1)
			send(t, newProducer(t, cfg), windows("k", 0, 20))
			var (
				mu     sync.Mutex
				stalls []Stall
				reader atomic.Pointer[client]
			)
			cfg.stallAfter = 50 * time.Millisecond
			cfg.OnStall = func(s Stall) {
				mu.Lock()
				defer mu.Unlock()
				stalls = append(stalls, s)
			}
			const needed = 2 // stuck connections before a good one
			stuck := map[int]bool{}
			controlFetches(b.cluster, func(req *kmsg.FetchRequest) (kmsg.Response, bool) {
				c := reader.Load()
				if c == nil || req.Topics[0].Partitions[0].FetchOffset < 5 {
					req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = 1, 1 // one batch
					return nil, false
				}
				c.t.mu.Lock()
				stuck[c.t.resets] = true
				c.t.mu.Unlock()
				if len(stuck) > needed {
					return nil, false
				}
				return nothing(req, high), true
			})
			c := newCollector()
			defer runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
				reader.Store(p.f.c)
				return c.handle(ctx, p)
			})()
			for i := range 3 { // each in a batch
				send(t, newProducer(t, cfg), windows("k", 20+i, 21+i))
			}
			c.wait(t, 23)
			mu.Lock()
			defer mu.Unlock()
			if n := len(stalls); n > 0 && stalls[0].Offset == 0 {
				t.Fatalf("stuck at once: %v", stalls)
			}
			if len(stalls) != needed+1 {
				t.Fatalf("OnStall heard %v, want %d rebuilds and the end", stalls, needed)
			}
			for i, s := range stalls {
				want := (i + 1) % (needed + 1)
				if s.Times != want || s.Topic != TopicWindows || want > 0 && (s.Behind < 1 || s.For < cfg.stallAfter || !strings.Contains(s.String(), "making new connections")) {
					t.Errorf("%d: %v, want %d", i, s, want)
				}
			}
		})
	}
}

// A partition without new messages is not stuck, nor is one with a slow handler.
func TestIdleIsNotStuck(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	cfg.stallAfter = time.Millisecond
	var heard atomic.Int32
	cfg.OnStall = func(Stall) { heard.Add(1) }
	p := newProducer(t, cfg)
	c := newCollector()
	idle, sent := make(chan struct{}), make(chan struct{})
	defer runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
		for {
			for range 3 { // nothing comes
				if err := p.fill(ctx, 10*time.Millisecond); err != nil {
					return err
				}
			}
			// A message that comes after an empty fetch and before the reader asks for the
			// end of the partition would look like a stall.
			for _, step := range []chan struct{}{idle, sent} {
				select {
				case step <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			for len(p.queue) == 0 {
				if err := p.fill(ctx, 10*time.Millisecond); err != nil {
					return err
				}
			}
			time.Sleep(20 * time.Millisecond)
			c.mu.Lock()
			for _, v := range values(p.queue) {
				c.counts[v]++
			}
			c.mu.Unlock()
			p.queue = nil
			select {
			case c.notify <- struct{}{}:
			default:
			}
		}
	})()
	for i := range 4 {
		<-idle
		send(t, p, windows("k", i, i+1))
		<-sent
		c.wait(t, i+1)
	}
	if n := heard.Load(); n > 0 {
		t.Errorf("OnStall was called %d times", n)
	}
}

// A reader reports missing offsets for every cause.
func TestOffsetGaps(t *testing.T) {
	t.Parallel()
	gather := func(t *testing.T, cfg Config, n int) ([]Gap, []string) {
		var mu sync.Mutex
		var gaps []Gap
		cfg.OnGap = func(g Gap) {
			mu.Lock()
			defer mu.Unlock()
			gaps = append(gaps, g)
		}
		c := newCollector()
		stop := runGroup(t, cfg, c.handle)
		c.wait(t, n)
		stop()
		return gaps, c.got
	}
	t.Run("removed by retention", func(t *testing.T) {
		cfg := anyBroker(t)
		apply(t, cfg, 1)
		end := func() int64 { // a producer that tries again may write twice
			c := openClient(t, cfg)
			n, err := c.t.endOf(testContext(t), place{TopicWindows, 0})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		send(t, newProducer(t, cfg), windows("k", 0, 30))
		first := end()
		if gaps, _ := gather(t, cfg, int(first)); len(gaps) > 0 {
			t.Errorf("of a whole topic: %v", gaps)
		}
		send(t, newProducer(t, cfg), windows("k", 30, 60))
		from := end() - 10
		deleteRecords(t, cfg, TopicWindows, 0, from)
		gaps, got := gather(t, cfg, 10)
		got = slices.Compact(got)
		want := []Gap{{Topic: TopicWindows, From: first, To: from}}
		if !slices.Equal(gaps, want) || gaps[0].Missing() != from-first || !slices.Equal(got, values(windows("k", 60-len(got), 60))) || len(got) < 5 {
			t.Errorf("%v, want %v; read %q", gaps, want, got)
		}
	})
	t.Run("topic made again, and shorter", func(t *testing.T) {
		cfg := anyBroker(t)
		apply(t, cfg, 1)
		send(t, newProducer(t, cfg), windows("k", 0, 30))
		gather(t, cfg, 30)
		deleteTopic(t, cfg, TopicWindows)
		apply(t, cfg, 1)
		send(t, newProducer(t, cfg), windows("new", 0, 5))
		// Kafka forgets what a group committed of a topic that is removed.
		gaps, got := gather(t, cfg, 5)
		if !slices.Equal(got, values(windows("new", 0, 5))) || len(gaps) > 1 {
			t.Errorf("read %q; %v", got, gaps)
		}
		for _, g := range gaps {
			if g != (Gap{Topic: TopicWindows, From: 30}) || g.Missing() != 0 || !strings.Contains(g.String(), "removed and made again") {
				t.Errorf("gap %v", g)
			}
		}
	})
	t.Run("lost by the broker", func(t *testing.T) {
		b, cfg := startBroker(t)
		apply(t, cfg, 1)
		p := newProducer(t, cfg)
		for i := range 10 { // each in a batch
			send(t, p, windows("k", i, i+1))
		}
		controlFetches(b.cluster, func(req *kmsg.FetchRequest) (kmsg.Response, bool) {
			part := &req.Topics[0].Partitions[0]
			req.MaxBytes, part.PartitionMaxBytes = 1, 1
			if part.FetchOffset == 4 {
				part.FetchOffset = 7
			}
			return nil, false
		})
		gaps, got := gather(t, cfg, 7)
		if want := []Gap{{Topic: TopicWindows, From: 4, To: 7}}; !slices.Equal(gaps, want) || len(got) != 7 {
			t.Errorf("%v, want %v; read %q", gaps, want, got)
		}
	})
}

// When a log has lost its newest messages, as after a power cut, the reader goes on at its
// end. A topic that was made again is read from its beginning.
func TestLogEndsBeforeTheReader(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	send(t, p, windows("k", 0, 100))
	for name, tc := range map[string]struct {
		next int64
		read bool // this program has read from the topic
		made bool // it was made again since
		want Gap
	}{
		"a little short":                      {103, false, false, Gap{From: 103, To: 100, Cut: true}},
		"half of it":                          {150, false, false, Gap{From: 150, To: 100, Cut: true}},
		"most of it: perhaps another topic":   {1000, false, false, Gap{From: 1000}},
		"most of it, but the same topic":      {1000, true, false, Gap{From: 1000, To: 100, Cut: true}},
		"a little short, but another topic":   {103, true, true, Gap{From: 103}},
		"a topic made again while we were up": {103, false, true, Gap{From: 103}},
	} {
		var gaps []Gap
		cfg.OnGap = func(g Gap) { gaps = append(gaps, g) }
		c, err := newClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		id := c.t.askID(testContext(t), TopicWindows)
		if tc.made {
			id = topicID{1}
		}
		f := fetcher{c: c, id: id, place: place{topic: TopicWindows}, budget: newBudget(fetchBudget), next: tc.next, whole: true, read: tc.read}
		msgs, err := f.fetch(testContext(t), time.Millisecond)
		tc.want.Topic = TopicWindows
		if err != nil || !slices.Equal(gaps, []Gap{tc.want}) || f.next != 100 || (len(msgs) == 100) == tc.want.Cut {
			t.Errorf("%s: %d messages, next %d, gaps %v, want %v; %v", name, len(msgs), f.next, gaps, tc.want, err)
		}
		c.close()
	}
	b.Close()
}

// A reader that reads to the end also gets the messages that a new leader does not show at
// first. If it missed a record of the state, a monitor would judge a window twice.
func TestReadToTheEndOfAShyLeader(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), windows("k", 0, 10))
	asked := 0
	controlFetches(b.cluster, func(req *kmsg.FetchRequest) (kmsg.Response, bool) {
		if asked++; asked <= 8 {
			return nothing(req, 0), true
		}
		return nil, false
	})
	if got := readAll(t, cfg, TopicWindows)["k"]; len(got) != 10 {
		t.Errorf("read %q", got)
	}
}

// A reader does not wait for messages at the end that compaction removed.
func TestReadToAnEndThatIsGone(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), windows("k", 0, 10))
	controlFetches(b.cluster, func(req *kmsg.FetchRequest) (kmsg.Response, bool) { return nothing(req, 10), true })
	if got := readAll(t, cfg, TopicWindows)["k"]; len(got) != 0 {
		t.Errorf("read %q", got)
	}
}

// Readers also get the windows of aborted and open transactions: otherwise one open
// transaction would hold up every reader.
func TestAbortedAndOpenTransactions(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	inTransaction(t, cfg, "aborted", windows("aborted", 0, 3), abortIt)
	inTransaction(t, cfg, "open", windows("open", 0, 3), leaveOpen)
	send(t, newProducer(t, cfg), windows("k", 0, 3))
	got := readAll(t, cfg, TopicWindows)
	for _, key := range []string{"aborted", "open", "k"} {
		if !slices.Equal(got[key], values(windows(key, 0, 3))) {
			t.Errorf("%s: %q", key, got[key])
		}
	}
	if len(got) != 3 {
		t.Errorf("markers among the messages: %q", got)
	}
	var gaps []string
	cfg.OnGap = func(g Gap) { gaps = append(gaps, fmt.Sprint(g)) }
	c := newCollector()
	stop := runGroup(t, cfg, c.handle)
	c.wait(t, 9)
	if err := stop(); !errors.Is(err, context.Canceled) || len(gaps) > 0 {
		t.Errorf("%v; markers were reported as gaps: %q", err, gaps)
	}
}

// A reader asks again for a batch that was damaged on its way.
func TestDamagedOnItsWay(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), windows("k", 0, 10))
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxBytes, req.MinBytes = 10, -1, 1<<20, 1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = TopicWindows
	part := kmsg.NewFetchRequestTopicPartition()
	part.PartitionMaxBytes = 1 << 20
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.MaxVersions(kversion.V2_0_0()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	answer, err := cl.Request(testContext(t), req)
	if err != nil {
		t.Fatal(err)
	}
	batch := answer.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
	if len(batch) < 200 {
		t.Fatalf("a batch of %d bytes", len(batch))
	}
	damaged := 0
	controlFetches(b.cluster, func(req *kmsg.FetchRequest) (kmsg.Response, bool) {
		if damaged++; damaged > 3 {
			return nil, false
		}
		res := nothing(req, 10).(*kmsg.FetchResponse)
		bad := bytes.Clone(batch)
		bad[len(bad)-5*damaged] ^= 1
		res.Topics[0].Partitions[0].RecordBatches = bad
		return res, true
	})
	if got := readAll(t, cfg, TopicWindows)["k"]; !slices.Equal(got, values(windows("k", 0, 10))) || damaged <= 3 {
		t.Errorf("read %q after %d answers", got, damaged)
	}
}
