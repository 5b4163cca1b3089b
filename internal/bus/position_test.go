package bus

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Only a new group begins behind the messages of the topic. An existing group gets the
// messages that came meanwhile, and a position that another member set stays.
func TestBeginAtEnd(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 3)
	p := newProducer(t, cfg)
	for _, key := range []string{"a", "b", "c", "d"} {
		send(t, p, windows(key, 0, 20))
	}
	g, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	if began, err := g.BeginAtEnd(testContext(t)); err != nil || !began {
		t.Fatalf("a new group: %v, %v", began, err)
	}
	send(t, p, windows("a", 20, 25))
	if began, err := g.BeginAtEnd(testContext(t)); err != nil || began {
		t.Fatalf("asked again: %v, %v", began, err)
	}
	c := newCollector()
	behind := make(chan int64, 1)
	stop := runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
		if p.ID() != PartitionOf("a", 3) {
			return c.handle(ctx, p)
		}
		msgs, err := p.Fetch(ctx, 2, time.Second)
		if err != nil {
			return err
		}
		end, err := p.End(ctx)
		if err != nil {
			return err
		}
		select {
		case behind <- end - msgs[1].Offset - 1:
		default:
		}
		c.mu.Lock()
		for _, m := range msgs {
			c.counts[string(m.Value)]++
		}
		c.mu.Unlock()
		if err := p.Commit(ctx, msgs[1].Offset+1); err != nil {
			return err
		}
		return c.handle(ctx, p)
	})
	c.wait(t, 5)
	if n := <-behind; n != 3 {
		t.Errorf("%d messages behind the second of five", n)
	}
	if began, err := g.BeginAtEnd(testContext(t)); err != nil || began {
		t.Errorf("while the group has a member: %v, %v", began, err)
	}
	if err := stop(); err == nil {
		t.Error("Run returned nil")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.counts) != 5 {
		t.Errorf("%d messages, want the 5 that came after the group began: %v", len(c.counts), c.got)
	}
}

// A broker that cannot list its groups yet is asked again: no group is left out.
func TestGroupsOfABrokerThatStarts(t *testing.T) {
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	g, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.BeginAtEnd(testContext(t)); err != nil {
		t.Fatal(err)
	}
	b.cluster.ControlKey(int16(kmsg.ListGroups), func(req kmsg.Request) (kmsg.Response, error, bool) {
		res := req.ResponseKind().(*kmsg.ListGroupsResponse)
		res.ErrorCode = kerr.CoordinatorLoadInProgress.Code
		return res, nil, true
	})
	a, err := OpenAdmin(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	all, err := a.Groups(testContext(t))
	if err != nil || len(all) != 1 || all[0].Name != "tcm-test" || len(all[0].Members) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// staleUntilAsked lets a broker say that a group has no position unless it is asked for stable ones, as a coordinator of
// Apache Kafka may that has just taken over.
func staleUntilAsked(b *Broker) {
	b.cluster.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		asked := req.(*kmsg.OffsetFetchRequest)
		if asked.RequireStable {
			return nil, nil, false
		}
		res := asked.ResponseKind().(*kmsg.OffsetFetchResponse)
		for _, topic := range asked.Topics {
			none := kmsg.NewOffsetFetchResponseTopic()
			none.Topic = topic.Topic
			for _, p := range topic.Partitions {
				of := kmsg.NewOffsetFetchResponseTopicPartition()
				of.Partition, of.Offset = p, -1
				none.Partitions = append(none.Partitions, of)
			}
			res.Topics = append(res.Topics, none)
		}
		return res, nil, true
	})
}

// A member goes on behind the last commit although the new coordinator says at first that there is none.
func TestPositionsOfANewCoordinator(t *testing.T) {
	for name, tc := range map[string]struct {
		protocol string
		begin    func(context.Context, *Partition) error
	}{
		"with transactions": {"flank-2", func(ctx context.Context, p *Partition) error {
			_, err := p.Fence(ctx)
			return err
		}},
		"without": {"", func(context.Context, *Partition) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, cfg := startBroker(t)
			apply(t, cfg, 1)
			send(t, newProducer(t, cfg), windows("k", 0, 9))
			c := openClient(t, cfg)
			if err := c.setPositions(testContext(t), "tcm-test", TopicWindows, map[int]int64{0: 7}); err != nil {
				t.Fatal(err)
			}
			staleUntilAsked(b)
			first := make(chan int64, 1)
			defer runProtocol(t, cfg, tc.protocol, func(ctx context.Context, p *Partition) error {
				err := tc.begin(ctx, p)
				var msgs []Message
				if err == nil {
					msgs, err = p.Fetch(ctx, 1, 0)
				}
				if err != nil {
					t.Error(err)
					first <- -1
				} else {
					first <- msgs[0].Offset
				}
				<-ctx.Done()
				return ctx.Err()
			})()
			if at := <-first; at != 7 {
				t.Errorf("the member began at offset %d, want 7", at)
			}
		})
	}
}

// Where the broker says for ever that a transaction with positions is open, the owner ends the transaction.
func TestFenceEndsUnstablePositions(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	c := openClient(t, cfg)
	if err := c.setPositions(testContext(t), "tcm-test", TopicWindows, map[int]int64{0: 7}); err != nil {
		t.Fatal(err)
	}
	b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.UnstableOffsetCommit, Count: -1, When: func(req kmsg.Request) bool {
		return req.(*kmsg.OffsetFetchRequest).RequireStable
	}})
	var commits atomic.Int32
	b.cluster.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if req.(*kmsg.EndTxnRequest).Commit {
			commits.Add(1)
		}
		return nil, nil, false
	})
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		if at := fence(t, ctx, p).Position(TopicWindows); at != 7 || commits.Load() != 1 {
			t.Errorf("position %d after %d commits, want 7 after one", at, commits.Load())
		}
	})
}
