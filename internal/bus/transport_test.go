package bus

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
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
			r := txn.Reader(TopicFeatures, nil)
			defer r.Close()
			reading.Go(func() { _, _ = r.Fetch(ctx, 1, 0) })
			reading.Go(func() {
				_ = ReadFrom(ctx, cfg, TopicCommands, p.ID(), LastOffset, true, func(Message) error { return nil })
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
	time.Sleep(4 * readWait)
	fetches.Store(0)
	carried.Store(0)
	other.Store(0)
	const ticks = 4
	time.Sleep(ticks * readWait)
	t.Logf("%d connections, at most %d at the same time; in %v %d fetch requests with %d partitions, %d others", d.made.Load(), d.most.Load(), ticks*readWait, fetches.Load(), carried.Load(), other.Load())
	if n := d.most.Load(); n > mostToOne+2 {
		t.Errorf("%d connections at the same time", n)
	}
	if n := fetches.Load(); n > 10*ticks {
		t.Errorf("%d fetch requests in %v: partitions are not fetched together", n, ticks*readWait)
	}
	if n := all.Load(); n > 0 {
		t.Errorf("%d requests asked for all topics", n)
	}
	cancel()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	out.Close()
	for deadline := time.Now().Add(5 * time.Second); d.open.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are left open", d.open.Load())
		}
	}
}
