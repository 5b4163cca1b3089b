package bus

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
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
