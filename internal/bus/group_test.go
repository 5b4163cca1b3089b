package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// collector is a handler that commits after every fetch.
type collector struct {
	mu     sync.Mutex
	got    []string
	counts map[string]int
	notify chan struct{}
}

func newCollector() *collector {
	return &collector{counts: make(map[string]int), notify: make(chan struct{}, 1)}
}

func (c *collector) handle(ctx context.Context, p *Partition) error {
	for {
		msgs, err := p.Fetch(ctx, 10, 0)
		if err != nil {
			return err
		}
		c.add(msgs)
		if err := p.Commit(ctx, msgs[len(msgs)-1].Offset+1); err != nil {
			return err
		}
	}
}

// publish is a handler for members with a protocol. It collects what it has committed.
func (c *collector) publish(ctx context.Context, p *Partition) error {
	txn, err := p.Fence(ctx)
	if err != nil {
		return err
	}
	for {
		msgs, err := p.Fetch(ctx, 10, 0)
		if err != nil {
			return err
		}
		if err := txn.Publish(ctx, nil, map[string]int64{TopicWindows: msgs[len(msgs)-1].Offset + 1}); err != nil {
			return err
		}
		c.add(msgs)
	}
}

func (c *collector) add(msgs []Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, values(msgs)...)
	for _, m := range msgs {
		c.counts[string(m.Value)]++
	}
	select {
	case c.notify <- struct{}{}:
	default:
	}
}

// wait returns once n different messages were handled.
func (c *collector) wait(t *testing.T, n int) {
	t.Helper()
	c.until(t, n, func() int { return len(c.counts) })
}

// waitFor returns once these messages were handled.
func (c *collector) waitFor(t *testing.T, msgs []Message) {
	t.Helper()
	c.until(t, len(msgs), func() (have int) {
		for _, value := range values(msgs) {
			have += min(c.counts[value], 1)
		}
		return have
	})
}

// until returns once count returns n or more. It calls count with the collector locked.
func (c *collector) until(t *testing.T, n int, count func() int) {
	t.Helper()
	ctx := testContext(t)
	for {
		c.mu.Lock()
		have := count()
		c.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-c.notify:
		case <-ctx.Done():
			t.Fatalf("%d of %d messages", have, n)
		}
	}
}

// runGroup runs a member until stop is called, which returns the error of Run.
func runGroup(t *testing.T, cfg Config, handle func(context.Context, *Partition) error) (stop func() error) {
	t.Helper()
	return runProtocol(t, cfg, "", handle)
}

// runSticky is runGroup with a protocol, for handlers that write in transactions.
func runSticky(t *testing.T, cfg Config, handle func(context.Context, *Partition) error) (stop func() error) {
	t.Helper()
	return runProtocol(t, cfg, "flank-2", handle)
}

func runProtocol(t *testing.T, cfg Config, protocol string, handle func(context.Context, *Partition) error) (stop func() error) {
	t.Helper()
	g, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	g.Protocol = protocol
	ctx, cancel := context.WithCancel(t.Context()) // as long as the test needs
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, handle) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// waitStable returns once the group has so many members and no rebalance goes on.
func waitStable(t *testing.T, cfg Config, members int) {
	t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{"tcm-test"}
	await.Right(t, func() string {
		g := ask(t, cfg, req).(*kmsg.DescribeGroupsResponse).Groups[0]
		if g.State == "Stable" && len(g.Members) == members {
			return ""
		}
		return fmt.Sprintf("group is %s with %d members, want %d", g.State, len(g.Members), members)
	})
}

func TestGroupResumesBehindTheCommit(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	send(t, p, windows("k", 0, 60))
	read := make(chan []string, 1)
	stop := runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
		var all []Message
		for len(all) < 50 {
			msgs, err := p.Fetch(ctx, 50-len(all), time.Second)
			if err != nil {
				return err
			}
			all = append(all, msgs...)
		}
		if err := p.Commit(ctx, all[49].Offset+1); err != nil {
			return err
		}
		read <- values(all)
		<-ctx.Done()
		return ctx.Err()
	})
	if got := <-read; !slices.Equal(got, values(windows("k", 0, 50))) {
		t.Errorf("first member read %q", got)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
	c := newCollector()
	defer runGroup(t, cfg, c.handle)()
	c.wait(t, 10)
	if !slices.Equal(c.got, values(windows("k", 50, 60))) {
		t.Errorf("second member read %q", c.got)
	}
}

func TestGroupRebalances(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 4)
	p := newProducer(t, cfg)
	c := newCollector()
	var mu sync.Mutex
	owners := make(map[string]map[int]bool) // by member, the partitions it had
	member := func(name string) func() error {
		return runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
			mu.Lock()
			if owners[name] == nil {
				owners[name] = make(map[int]bool)
			}
			owners[name][p.ID()] = true
			mu.Unlock()
			return c.handle(ctx, p)
		})
	}
	sent := 0
	more := func() {
		var batch []Message
		for k := range 8 {
			batch = append(batch, windows(fmt.Sprint("m", k), sent, sent+10)...)
		}
		send(t, p, batch)
		sent += len(batch)
		c.wait(t, sent)
	}
	stopFirst := member("first")
	more()
	stopSecond := member("second")
	waitStable(t, cfg, 2)
	more()
	stopFirst()
	more()
	stopSecond()
	if len(owners["first"]) != 4 || len(owners["second"]) != 4 {
		t.Errorf("partitions by member %v: each should have had all four while it was alone", owners)
	}
}

// Members with different protocols are never in a group together. The later member hears
// which members keep it out, and takes over when they have left.
func TestProtocolsKeepApart(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	p := newProducer(t, cfg)
	sent := 0
	more := func(handled *collector) {
		t.Helper()
		msgs := append(windows("a", sent, sent+10), windows("b", sent, sent+10)...)
		sent += 10
		send(t, p, msgs)
		handled.waitFor(t, msgs)
	}
	refused := make(chan error, 1) // an error that a member heard
	hearing := func(client string) Config {
		c := cfg
		c.ClientID = client
		c.OnRetry = func(err error, _ time.Duration) {
			if errors.Is(err, kafka.InconsistentGroupProtocol) {
				select {
				case refused <- err:
				default:
				}
			}
		}
		return c
	}
	older, newer, third := newCollector(), newCollector(), newCollector()
	stopOlder := runGroup(t, hearing("older"), older.handle)
	more(older)
	stopNewer := runSticky(t, hearing("newer"), newer.publish)
	if err := <-refused; !strings.Contains(err.Error(), "group tcm-test has members of another release") || !strings.Contains(err.Error(), "stop them (older at ") {
		t.Errorf("the newer member hears: %v", err)
	}
	more(older)
	if len(newer.got) > 0 {
		t.Errorf("a member that was kept out has handled %q", newer.got)
	}
	stopOlder()
	more(newer)
	for len(refused) > 0 {
		<-refused
	}
	stopOlder = runGroup(t, hearing("older again"), older.handle)
	if err := <-refused; !strings.Contains(err.Error(), "stop them (newer at ") {
		t.Errorf("the older member hears: %v", err)
	}
	defer runSticky(t, cfg, third.publish)()
	waitStable(t, cfg, 2)
	if err := stopNewer(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	more(third)
	if err := stopOlder(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run of the member that was kept out: %v", err)
	}
	if len(older.counts) != 40 {
		t.Errorf("the older member has handled %d messages, want the 40 from before it was stopped", len(older.counts))
	}
}

func TestHandlerErrorEndsRun(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	broken := errors.New("state store is broken")
	g, _ := NewGroup(cfg, "tcm-test", TopicWindows)
	if err := g.Run(testContext(t), func(context.Context, *Partition) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Run: %v", err)
	}
}

// After a failed commit the member reads no further in the partition. The next generation
// begins behind the last commit that succeeded.
func TestFailedCommitStopsThePartition(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	send(t, newProducer(t, cfg), windows("k", 0, 20))
	b.cluster.Fault(failing(kmsg.OffsetCommit, kerr.NotCoordinator, 1))
	c := newCollector()
	failures := 0
	var mu sync.Mutex
	var heard []error
	cfg.OnRetry = func(err error, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, err)
	}
	defer runGroup(t, cfg, func(ctx context.Context, p *Partition) error {
		err := c.handle(ctx, p)
		if errors.Is(err, ErrLost) {
			failures++
			if _, again := p.Fetch(ctx, 1, 0); ctx.Err() == nil && !errors.Is(again, ErrLost) && len(p.queue) == 0 {
				t.Errorf("Fetch after a failed commit: %v", again)
			}
			if again := p.Commit(ctx, 1); !errors.Is(again, ErrLost) {
				t.Errorf("Commit after a failed commit: %v", again)
			}
		}
		return err
	})()
	c.wait(t, 20)
	mu.Lock()
	defer mu.Unlock()
	if len(heard) != 2 || !errors.Is(heard[0], ErrLost) || heard[1] != nil {
		t.Errorf("OnRetry heard %v, want the loss and its end", heard)
	}
	if failures != 1 {
		t.Errorf("%d failed commits, want 1", failures)
	}
	if c.counts["k/0"] != 2 {
		t.Errorf("first message handled %d times, want 2: its commit failed", c.counts["k/0"])
	}
}

// failing returns a fault: count requests of a kind get an error.
func failing(key kmsg.Key, err *kerr.Error, count int) kfake.Fault {
	return kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: count}
}

// eachFault runs test for every fault, each with a new broker. The fault begins when test
// calls inject. The test fails if the fault never happened.
func eachFault(t *testing.T, partitions int, faults map[string]kfake.Fault, test func(t *testing.T, cfg Config, inject func() *kfake.FaultHandle, count int)) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, cfg := startBroker(t)
			apply(t, cfg, partitions)
			var handle *kfake.FaultHandle
			test(t, cfg, func() *kfake.FaultHandle {
				handle = b.cluster.Fault(fault)
				return handle
			}, fault.Count)
			if handle.Hits() == 0 {
				t.Error("the fault did not happen, so the test shows nothing")
			}
		})
	}
}

// A group goes on after any of the broker's errors, and loses no message.
func TestGroupThroughFaults(t *testing.T) {
	t.Parallel()
	eachFault(t, 2, map[string]kfake.Fault{
		"fetch fails":             failing(kmsg.Fetch, kerr.UnknownServerError, 3),
		"fetch from no leader":    failing(kmsg.Fetch, kerr.NotLeaderForPartition, 3),
		"joining fails":           failing(kmsg.JoinGroup, kerr.UnknownServerError, 2),
		"generation is over":      failing(kmsg.Heartbeat, kerr.IllegalGeneration, 1),
		"coordinator has moved":   failing(kmsg.Heartbeat, kerr.NotCoordinator, 2),
		"commit fails":            failing(kmsg.OffsetCommit, kerr.UnknownServerError, 1),
		"no coordinator for now":  failing(kmsg.FindCoordinator, kerr.CoordinatorNotAvailable, 2),
		"positions are not known": failing(kmsg.OffsetFetch, kerr.CoordinatorLoadInProgress, 1),
	}, func(t *testing.T, cfg Config, inject func() *kfake.FaultHandle, count int) {
		f := inject()
		p := newProducer(t, cfg)
		c := newCollector()
		defer runGroup(t, cfg, c.handle)()
		for sent := 0; sent < 40 || f.Hits() < count; sent += 20 {
			send(t, p, windows("a", sent, sent+10))
			send(t, p, windows("b", sent, sent+10))
			c.wait(t, sent+20)
			time.Sleep(50 * time.Millisecond) // until the next heartbeat, for example
			if sent > 2000 {
				t.Fatal("the fault did not happen, so the test shows nothing")
			}
		}
	})
}

// joinRequest is a request to join the group of runGroup.
func joinRequest(member string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = "tcm-test", member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(session.Milliseconds()), int32(rebalance.Milliseconds())
	topics := kmsg.NewConsumerMemberMetadata()
	topics.Topics = []string{TopicWindows}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", topics.AppendTo(nil)
	req.Protocols = append(req.Protocols, protocol)
	return req
}

// olderClient returns a client that sends requests of Kafka 2.0, as kafka-go does: a new
// member is in the group with its first request to join.
func olderClient(t *testing.T, cfg Config) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.MaxVersions(kversion.V2_0_0()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Members that are killed while they join lose their partitions to the others.
func TestKilledWhileJoining(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 4)
	g, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	shares := make(chan int, 100)
	g.OnGeneration = func(partitions int) { shares <- partitions }
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	killed := make(chan struct{})
	go g.Run(ctx, func(gctx context.Context, _ *Partition) error {
		<-gctx.Done()
		select {
		case <-killed: // they join before this member does
		case <-ctx.Done():
		}
		return gctx.Err()
	})
	if n := <-shares; n != 4 {
		t.Fatalf("the only member has %d partitions, want 4", n)
	}
	const doomed = 5
	joining := make(chan bool, doomed)
	b.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if req.GetVersion() == 3 { // kafka-go sends version 2
			joining <- true
		}
		return nil, nil, false
	})
	var clients []*kgo.Client
	for range doomed {
		cl := olderClient(t, cfg)
		clients = append(clients, cl)
		go cl.Request(ctx, joinRequest(""))
	}
	for range doomed {
		<-joining
	}
	for _, cl := range clients {
		cl.Close()
	}
	time.Sleep(100 * time.Millisecond) // until the broker has seen the connections end
	close(killed)
	for have := -1; have != 4; {
		select {
		case have = <-shares:
		case <-ctx.Done():
			t.Fatalf("the member that lives has %d partitions, want 4", have)
		}
	}
}

// If a member sends heartbeats but does not join again, the others wait for less than the
// 36 s after which kafka-go tries again: each attempt restarts the wait, so the first one has to do.
func TestSilentMemberIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	silent := olderClient(t, cfg)
	res, err := silent.Request(ctx, joinRequest(""))
	if err != nil {
		t.Fatal(err)
	}
	joined := res.(*kmsg.JoinGroupResponse)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = "tcm-test", joined.MemberID, joined.Generation
	if res, err := silent.Request(ctx, sync); err != nil || res.(*kmsg.SyncGroupResponse).ErrorCode != 0 {
		t.Fatal(res, err)
	}
	go func() {
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group, beat.MemberID, beat.Generation = "tcm-test", joined.MemberID, joined.Generation
		for ctx.Err() == nil {
			_, _ = silent.Request(ctx, beat)
			time.Sleep(time.Second)
		}
	}()
	var joins atomic.Int32
	b.cluster.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		joins.Add(1)
		return nil, nil, false
	})
	g, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("it has joined")
	if err := g.Run(ctx, func(context.Context, *Partition) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the new member still waits for the silent one: %v", err)
	}
	if n := joins.Load(); n != 1 {
		t.Errorf("the new member asked %d times to join", n)
	}
}

// A group sends the broker its session and rebalance timeouts. After a restart of the
// broker a group waits for one session. A member that is silent for a session has left.
func TestGroupTimes(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1)) // the embedded broker changes the times
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cfg := Config{Brokers: cluster.ListenAddrs(), ClientID: "test"}
	apply(t, cfg, 1)
	joined := make(chan *kmsg.JoinGroupRequest, 10)
	cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		joined <- req.(*kmsg.JoinGroupRequest)
		return nil, nil, false
	})
	stop := runGroup(t, cfg, newCollector().handle)
	req := <-joined
	stop()
	if req.SessionTimeoutMillis != 6000 || req.RebalanceTimeoutMillis != 30_000 {
		t.Errorf("session of %d ms, rebalance of %d ms", req.SessionTimeoutMillis, req.RebalanceTimeoutMillis)
	}
}

// A leader of a group whose coordinator does not know all partitions for a moment divides them again
// when it does. The client library would leave the group without the others until it changes.
func TestGroupTakesWhatTheCoordinatorDidNotKnow(t *testing.T) {
	for name, protocol := range map[string]string{"with transactions": "flank-2", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, cfg := startBroker(t)
			apply(t, cfg, 2)
			var asked atomic.Int32
			b.cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
				b.cluster.KeepControl()
				m := req.(*kmsg.MetadataRequest)
				if !m.AllowAutoTopicCreation || asked.Add(1) > 1 { // this package does not ask for that
					return nil, nil, false
				}
				res := m.ResponseKind().(*kmsg.MetadataResponse)
				topic := kmsg.NewMetadataResponseTopic()
				topic.Topic, topic.ErrorCode = kmsg.StringPtr(TopicWindows), kerr.UnknownTopicOrPartition.Code
				res.Topics = append(res.Topics, topic)
				return res, nil, true
			})
			served := make(chan int, 10)
			defer runProtocol(t, cfg, protocol, func(ctx context.Context, p *Partition) error {
				served <- p.ID()
				<-ctx.Done()
				return ctx.Err()
			})()
			var got []int
			for range 2 {
				select {
				case id := <-served:
					got = append(got, id)
				case <-time.After(patience):
					t.Fatalf("the only member serves partitions %v of 0 and 1", got)
				}
			}
			if slices.Sort(got); !slices.Equal(got, []int{0, 1}) || asked.Load() == 0 {
				t.Errorf("serves %v; the library asked %d times", got, asked.Load())
			}
		})
	}
}

// A broker that takes connections and never answers keeps no member out of its group, even if it is
// the first one in the configuration.
func TestGroupPassesABrokerThatHangs(t *testing.T) {
	t.Parallel()
	_, cfg := startBroker(t)
	apply(t, cfg, 1)
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // the system takes connections for it
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	cfg.Brokers = []string{hangs.Addr().String(), cfg.Brokers[0]}
	served := make(chan int, 1)
	defer runSticky(t, cfg, func(ctx context.Context, p *Partition) error {
		served <- p.ID()
		<-ctx.Done()
		return ctx.Err()
	})()
	select {
	case <-served:
	case <-time.After(patience):
		t.Fatal("the member has not joined")
	}
}
