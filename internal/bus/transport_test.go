package bus

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// dials counts the connections that are open.
type dials struct{ open, most, made atomic.Int32 }

// network returns one that counts.
func (d *dials) network() *Network {
	return &Network{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		d.made.Add(1)
		n := d.open.Add(1)
		for most := d.most.Load(); n > most && !d.most.CompareAndSwap(most, n); most = d.most.Load() {
		}
		return &countedConn{Conn: c, d: d}, nil
	}}
}

type countedConn struct {
	net.Conn
	d    *dials
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.d.open.Add(-1) })
	return c.Conn.Close()
}

// A member that reads and writes 64 partitions of three topics makes few connections, however
// many requests there are at the same time, and asks for its own topics only.
func TestOneTransport(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	const partitions = 64
	apply(t, cfg, partitions)
	var all, fetches, carried, other atomic.Int32
	b.cluster.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		switch r := req.(type) {
		case *kmsg.MetadataRequest:
			if r.Topics == nil {
				all.Add(1)
			}
		case *kmsg.FetchRequest:
			fetches.Add(1)
			for _, topic := range r.Topics {
				carried.Add(int32(len(topic.Partitions)))
			}
		case *kmsg.HeartbeatRequest:
		default:
			other.Add(1)
		}
		return nil, nil, false
	})
	var d dials
	cfg.Network = d.network()
	const wait = readWait / 4 // of a fetch, as readWait is otherwise
	cfg.Network.ReadWait = wait
	g, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	var fenced, published sync.WaitGroup
	fenced.Add(partitions)
	published.Add(partitions)
	ran := make(chan error, 1)
	go func() {
		ran <- g.Run(ctx, func(ctx context.Context, p *Partition) error {
			txn, err := p.Fence(ctx, TopicFeatures, TopicCommands)
			if err != nil {
				return err
			}
			fenced.Done()
			var reading sync.WaitGroup
			defer reading.Wait()
			r := txn.Reader(TopicFeatures, FirstOffset, nil)
			reading.Go(func() {
				defer r.Close()
				_, _ = r.Fetch(ctx, 1, 0)
			})
			reading.Go(func() {
				_ = ReadFrom(ctx, cfg, TopicCommands, p.ID(), lastOffset, true, func(Message) error { return nil })
			})
			msgs, err := p.Fetch(ctx, 1, 0)
			if err != nil {
				return err
			}
			err = txn.Publish(ctx, []Message{{Topic: TopicResults, Partition: p.ID(), Pinned: true, Value: msgs[0].Value}}, map[string]int64{TopicWindows: msgs[0].Offset + 1})
			if err != nil {
				return err
			}
			published.Done()
			_, err = p.Fetch(ctx, 1, 0)
			return err
		})
	}()
	fenced.Wait()
	out := newProducer(t, cfg)
	keys := make(map[int]string)
	for i := 0; len(keys) < partitions; i++ {
		key := string(rune('a'+i%26)) + string(rune('0'+i/26))
		keys[PartitionOf(key, partitions)] = key
	}
	for _, key := range keys {
		send(t, out, []Message{{Topic: TopicWindows, Key: key, Value: []byte("v")}})
	}
	published.Wait()
	time.Sleep(4 * wait)
	fetches.Store(0)
	carried.Store(0)
	other.Store(0)
	began := time.Now()
	time.Sleep(4 * wait)
	ticks := int32(time.Since(began)/wait) + 1 // more where the machine stands still
	t.Logf("%d connections, at most %d at the same time; in %d waits %d fetch requests with %d partitions, %d others", d.made.Load(), d.most.Load(), ticks, fetches.Load(), carried.Load(), other.Load())
	if n := d.most.Load(); n > mostToOne+2 {
		t.Errorf("%d connections at the same time", n)
	}
	if n := fetches.Load(); n > 10*ticks {
		t.Errorf("%d fetch requests in %d waits: partitions are not fetched together", n, ticks)
	}
	if n := all.Load(); n > 0 {
		t.Errorf("%d requests asked for all topics", n)
	}
	cancel()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	out.Close()
	await.Until(t, "no connection is left open", func() bool { return d.open.Load() == 0 })
}

// demandOf returns what a reader would ask for.
func demandOf(topic string, partition int, next int64, wait time.Duration) demand {
	return demand{place: place{topic, partition}, next: next, most: quietFetch(topic), urgent: true, wait: wait}
}

// A partition that is asked for while a request waits at the broker does not wait for its end. A
// reader that gives up leaves the others alone.
func TestFetchWhileAnotherWaits(t *testing.T) {
	t.Parallel()
	_, cfg := startBroker(t)
	cfg.Network = &Network{Dial: (&net.Dialer{}).DialContext, ReadWait: time.Hour}
	const partitions = 20
	apply(t, cfg, partitions)
	tr := cfg.transport()
	defer tr.release()
	ctx, giveUp := context.WithCancel(testContext(t))
	defer giveUp()
	var waiting sync.WaitGroup
	for p := range partitions {
		waiting.Go(func() {
			if a, _, err := tr.fetch(ctx, nil, demandOf(TopicWindows, p, 0, time.Hour)); err == nil {
				t.Errorf("partition %d has an answer: %v", p, a)
			}
		})
		time.Sleep(time.Millisecond) // so that they do not come together
	}
	out := newProducer(t, cfg)
	for p := range partitions {
		key := ""
		for i := 0; key == "" || PartitionOf(key, partitions) != p; i++ {
			key = string(rune('a'+i%26)) + string(rune('0'+i/26))
		}
		send(t, out, []Message{{Topic: TopicFeatures, Key: key, Value: []byte(key)}, {Topic: TopicState, Key: key, Value: []byte(key)}})
		for _, topic := range []string{TopicFeatures, TopicState} {
			a, _, err := tr.fetch(testContext(t), nil, demandOf(topic, p, 0, time.Hour))
			if err != nil || len(a.records) == 0 || a.high != 1 {
				t.Fatalf("%s %d: %d bytes, high %d: %v", topic, p, len(a.records), a.high, err)
			}
			a.body.Return()
		}
	}
	giveUp()
	waiting.Wait()
	for _, p := range tr.pollers {
		p.mu.Lock()
		if p.asking > fetchSlots {
			t.Errorf("%d requests at the same time", p.asking)
		}
		p.mu.Unlock()
	}
}

// Partitions whose messages do not fit into one answer next to other messages get theirs all the
// same.
func TestFetchLargeMessages(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	const partitions = 8
	apply(t, cfg, partitions)
	out := newProducer(t, cfg)
	large := make([]byte, 3<<20) // more than a quiet partition asks for
	var msgs []Message
	for i := 0; len(msgs) < 3*partitions; i++ {
		msgs = append(msgs, Message{Topic: TopicWindows, Key: string(rune('a' + i)), Value: large})
	}
	send(t, out, msgs)
	tr := cfg.transport()
	defer tr.release()
	var reading sync.WaitGroup
	var got atomic.Int32
	for p := range partitions {
		end, err := tr.endOf(testContext(t), place{TopicWindows, p})
		if err != nil {
			t.Fatal(err)
		}
		reading.Go(func() {
			for next := int64(0); next < end; {
				a, _, err := tr.fetch(testContext(t), nil, demandOf(TopicWindows, p, next, readWait))
				if err != nil {
					t.Error(err)
					return
				}
				r := recordReader{topic: TopicWindows, partition: p}
				out, err := r.read(a.records, next)
				a.body.Return()
				if err != nil || len(out.msgs) == 0 {
					t.Errorf("partition %d from %d: %d messages: %v", p, next, len(out.msgs), err)
					return
				}
				got.Add(int32(len(out.msgs)))
				next = out.next
			}
		})
	}
	reading.Wait()
	if int(got.Load()) != len(msgs) {
		t.Errorf("%d messages, want %d", got.Load(), len(msgs))
	}
}

// When a partition gets another leader, readers and writers learn it with the first refusal,
// long before what they know of the cluster is old.
func TestAnotherLeader(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, TopicWindows))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cfg := Config{Brokers: cluster.ListenAddrs()[:1], ClientID: "test", Network: &Network{Dial: (&net.Dialer{}).DialContext, MetadataTTL: time.Hour}}
	out := newProducer(t, cfg)
	read := make(chan string, 10)
	ctx, cancel := context.WithCancel(testContext(t))
	var reading sync.WaitGroup
	reading.Go(func() {
		_ = ReadFrom(ctx, cfg, TopicWindows, 0, FirstOffset, true, func(m Message) error {
			read <- string(m.Value)
			return nil
		})
	})
	defer reading.Wait()
	defer cancel()
	for i := range 6 {
		if err := cluster.MoveTopicPartition(TopicWindows, 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
		send(t, out, windows("k", i, i+1))
		select {
		case got := <-read:
			if want := string(windows("k", i, i+1)[0].Value); got != want {
				t.Errorf("read %q, want %q", got, want)
			}
		case <-testContext(t).Done():
			t.Fatal("nothing was read")
		}
	}
}

// A broker that answers at once with what is long over does not keep this program from asking the others.
func TestAStaleBroker(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(1, TopicWindows))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	const stale, leader = 0, 1
	if err := cluster.MoveTopicPartition(TopicWindows, 0, leader); err != nil {
		t.Fatal(err)
	}
	addrs := cluster.ListenAddrs()
	var asked atomic.Int32
	cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if cluster.CurrentNode() != stale {
			return nil, nil, false
		}
		asked.Add(1)
		res := req.ResponseKind().(*kmsg.MetadataResponse)
		for i, addr := range addrs {
			host, port, _ := net.SplitHostPort(addr)
			number, _ := strconv.Atoi(port)
			res.Brokers = append(res.Brokers, kmsg.MetadataResponseBroker{NodeID: int32(i), Host: host, Port: int32(number)})
		}
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = kmsg.StringPtr(TopicWindows)
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Leader = stale
		topic.Partitions = append(topic.Partitions, p)
		res.Topics = append(res.Topics, topic)
		return res, nil, true
	})
	cfg := Config{Brokers: addrs[:1], ClientID: "test"} // the others are known from its answer
	send(t, newProducer(t, cfg), windows("k", 0, 1))
	if asked.Load() == 0 {
		t.Error("the broker with old answers was not asked, so the test shows nothing")
	}
}

// A broker that does not know yet that a topic has grown changes nothing; a topic that was made again has
// the partitions that it has now.
func TestTopicsDoNotShrink(t *testing.T) {
	said := func(id byte, partitions int32) *kmsg.MetadataResponse {
		topic := kmsg.MetadataResponseTopic{Topic: kmsg.StringPtr(TopicWindows), TopicID: [16]byte{id}}
		for p := range partitions {
			topic.Partitions = append(topic.Partitions, kmsg.MetadataResponseTopicPartition{Partition: p})
		}
		return &kmsg.MetadataResponse{Topics: []kmsg.MetadataResponseTopic{topic}}
	}
	c := &cluster{}
	for _, step := range []struct {
		id         byte
		says, want int32
	}{{1, 4, 4}, {1, 8, 8}, {1, 4, 8}, {1, 8, 8}, {2, 3, 3}, {0, 2, 2}, {0, 1, 1}} {
		if c = clusterOf(said(step.id, step.says), c); len(c.Topics[TopicWindows].Partitions) != int(step.want) {
			t.Errorf("id %d, %d partitions: %d, want %d", step.id, step.says, len(c.Topics[TopicWindows].Partitions), step.want)
		}
	}
}
