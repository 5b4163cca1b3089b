package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/testkit/await"
)

// Every partition has one member, no member has two more than another, and as many partitions
// stay where they are as that allows.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.Permutation(rangeOf(rapid.IntRange(0, 70).Draw(t, "partitions"))).Draw(t, "order")
		claims := make(map[string]claim)
		for i := range rapid.IntRange(1, 8).Draw(t, "members") {
			claims[fmt.Sprint("member ", i)] = claim{
				Generation: rapid.Int32Range(0, 3).Draw(t, "generation"),
				Partitions: rapid.SliceOfN(rapid.IntRange(-1, 80), 0, 60).Draw(t, "claimed"),
			}
		}
		shares := divide(partitions, claims)
		least, most := len(partitions)/len(claims), (len(partitions)+len(claims)-1)/len(claims)
		var all []int
		for m, share := range shares {
			all = append(all, share...)
			if len(share) < least || len(share) > most {
				t.Errorf("%s has %d partitions, want %d or %d", m, len(share), least, most)
			}
		}
		slices.Sort(all)
		if !slices.Equal(all, rangeOf(len(partitions))) {
			t.Errorf("the members have %v, want each of %d once", all, len(partitions))
		}

		newest := func(p int) (g int32) {
			g = -1
			for _, c := range claims {
				if slices.Contains(c.Partitions, p) {
					g = max(g, c.Generation)
				}
			}
			return g
		}
		kept, owned := 0, make(map[string]int)
		for m, c := range claims {
			for _, p := range slices.Compact(slices.Sorted(slices.Values(c.Partitions))) {
				if p < 0 || p >= len(partitions) || c.Generation < newest(p) {
					continue
				}
				first := !slices.ContainsFunc(slices.Collect(maps.Keys(claims)), func(o string) bool {
					return o < m && claims[o].Generation == c.Generation && slices.Contains(claims[o].Partitions, p)
				})
				if !first {
					continue
				}
				owned[m]++
				if slices.Contains(shares[m], p) {
					kept++
				}
			}
		}
		want, over := 0, 0
		for _, n := range owned {
			want += min(n, least)
			if n > least {
				over++
			}
		}
		if want += min(over, len(partitions)-least*len(claims)); kept != want {
			t.Errorf("%d partitions stay, want %d: %v of claims %v", kept, want, shares, claims)
		}

		slices.Sort(partitions)
		if again := divide(partitions, claims); !equalShares(again, shares) {
			t.Errorf("in another order %v, was %v", again, shares)
		}
		next := make(map[string]claim)
		for m := range claims {
			next[m] = claim{7, shares[m]}
		}
		if again := divide(partitions, next); !equalShares(again, shares) {
			t.Errorf("without a change of members %v becomes %v", shares, again)
		}
	})
}

func rangeOf(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func equalShares(a, b map[string][]int) bool {
	sorted := func(s map[string][]int) map[string][]int {
		out := make(map[string][]int)
		for m, share := range s {
			out[m] = slices.Sorted(slices.Values(share))
		}
		return out
	}
	return maps.EqualFunc(sorted(a), sorted(b), slices.Equal)
}

// The leader gives partitions also to members that send no claim, or one that it cannot read.
func TestUnreadableClaims(t *testing.T) {
	s := &sticky{name: "flank-2", topic: TopicWindows}
	s.got(4, []int{1, 3})
	mine, err := s.UserData()
	if err != nil {
		t.Fatal(err)
	}
	var partitions []kafka.Partition
	for i := range 6 {
		partitions = append(partitions, kafka.Partition{Topic: TopicWindows, ID: i}, kafka.Partition{Topic: TopicAlerts, ID: i})
	}
	got := s.AssignGroups([]kafka.GroupMember{{ID: "old"}, {ID: "odd", UserData: []byte("{")}, {ID: "me", UserData: mine}}, partitions)
	if share := got["me"][TopicWindows]; !slices.Equal(share, []int{1, 3}) {
		t.Errorf("the member that claims 1 and 3 has %v", share)
	}
	for _, m := range []string{"old", "odd"} {
		if len(got[m][TopicWindows]) != 2 || len(got[m]) != 1 {
			t.Errorf("%s has %v, want two partitions of %s", m, got[m], TopicWindows)
		}
	}
	if text, _ := json.Marshal(s.mine); string(text) != `{"generation":4,"partitions":[1,3]}` {
		t.Errorf("a claim is %s: members of other releases read it", text)
	}
}

// crowd is a group whose members publish one result for each window. It counts how often each
// member began with each partition.
type crowd struct {
	t   *testing.T
	cfg Config

	mu    sync.Mutex
	began map[string][]int        // the partitions that a member began with, in order
	has   map[string]map[int]bool // what a member has now
}

// member runs a member until stop is called.
func (c *crowd) member(name string) (stop func() error) {
	return runSticky(c.t, c.cfg, func(ctx context.Context, p *Partition) error {
		c.mu.Lock()
		c.began[name] = append(c.began[name], p.ID())
		if c.has[name] == nil {
			c.has[name] = make(map[int]bool)
		}
		c.has[name][p.ID()] = true
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.has[name], p.ID())
		}()
		return publishResults(5)(ctx, p)
	})
}

// until waits until the members have so many partitions.
func (c *crowd) until(want map[string]int) {
	c.t.Helper()
	await.Right(c.t, func() string {
		c.mu.Lock()
		got := make(map[string]int)
		for name, has := range c.has {
			if len(has) > 0 {
				got[name] = len(has)
			}
		}
		c.mu.Unlock()
		if maps.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("the members have %v partitions, want %v", got, want)
	})
}

// counts returns how many partitions each member has begun with.
func (c *crowd) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := make(map[string]int)
	for name, began := range c.began {
		n[name] = len(began)
	}
	return n
}

// Members that stay go on with their partitions when others join and leave. Every window has
// one result, in order.
func TestMembersKeepPartitions(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	const partitions = 8
	apply(t, cfg, partitions)
	c := &crowd{t: t, cfg: cfg, began: make(map[string][]int), has: make(map[string]map[int]bool)}
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	p := newProducer(t, cfg)
	sent := make(chan int, 1)
	go func() { // while members come and go
		n := 0
		for ; ctx.Err() == nil; n++ {
			var batch []Message
			for key := range partitions {
				batch = append(batch, windows(fmt.Sprint("m", key), n, n+1)...)
			}
			if err := p.Send(context.Background(), batch); err != nil {
				t.Error(err)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		sent <- n
	}()
	stopFirst := c.member("first")
	c.until(map[string]int{"first": 8})
	stopSecond := c.member("second")
	c.until(map[string]int{"first": 4, "second": 4})
	stopThird := c.member("third")
	c.until(map[string]int{"first": 3, "second": 3, "third": 2})
	if err := stopThird(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.until(map[string]int{"first": 4, "second": 4})
	if err := stopFirst(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.until(map[string]int{"second": 8})
	cancel()
	n := <-sent
	results := make(map[string][]string)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		have := 0
		clear(results)
		for partition := range int32(partitions) {
			for _, v := range committed(t, cfg, TopicResults, partition) {
				key, _, _ := strings.Cut(v, "/")
				results[key] = append(results[key], v)
				have++
			}
		}
		if have >= n*partitions {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d results", have, n*partitions)
		}
	}
	_ = stopSecond()
	for key := range partitions {
		name := fmt.Sprint("m", key)
		if want := values(windows(name, 0, n)); !slices.Equal(results[name], want) {
			t.Errorf("%s: %d results, want %d, one for each window, in order", name, len(results[name]), len(want))
		}
	}
	// The first member got one back from the third. The second got one back, and what the first had.
	if got, want := c.counts(), map[string]int{"first": 9, "second": 9, "third": 2}; !maps.Equal(got, want) {
		t.Errorf("members began with so many partitions: %v, want %v", got, want)
	}
}

// When the topic gets more partitions, members begin again with all of theirs: machines may have
// another partition now.
func TestMembersBeginAgainWhenTheTopicGrows(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	c := &crowd{t: t, cfg: cfg, began: make(map[string][]int), has: make(map[string]map[int]bool)}
	defer c.member("first")()
	c.until(map[string]int{"first": 2})
	req := kmsg.NewPtrCreatePartitionsRequest()
	more := kmsg.NewCreatePartitionsRequestTopic()
	more.Topic, more.Count = TopicWindows, 4
	req.Topics, req.TimeoutMillis = append(req.Topics, more), 10_000
	if res := ask(t, cfg, req).(*kmsg.CreatePartitionsResponse); res.Topics[0].ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(res.Topics[0].ErrorCode))
	}
	to := openClient(t, cfg)
	await.Until(t, "the topic has grown", func() bool {
		n, err := to.askPartitions(testContext(t), TopicWindows)
		return err == nil && n[TopicWindows] == 4
	})
	defer c.member("second")() // so that there is a generation before the client library looks
	c.until(map[string]int{"first": 2, "second": 2})
	begun := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.began["first"])
	}
	await.Until(t, "the first member began twice", func() bool { return begun() >= 4 }) // the second may begin before it
	c.mu.Lock()
	defer c.mu.Unlock()
	if began := slices.Sorted(slices.Values(c.began["first"])); len(began) < 4 || !slices.Equal(began[:4], []int{0, 0, 1, 1}) {
		t.Errorf("the first member began with partitions %v, want 0 and 1 twice", began)
	}
}

// A transaction that is under way when another member joins is committed in the next
// generation, if the member keeps the partition.
func TestTransactionThroughARebalance(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 2)
	g, err := NewGroup(cfg, "tcm-test", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	g.Protocol = "flank-2"
	begins, goOn := make(chan int, 100), make(chan struct{}) // the second generation waits
	g.OnGeneration = func(partitions int) {
		if begins <- partitions; partitions == 1 {
			<-goOn
		}
	}
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	written, joined, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	stays := func(ctx context.Context, p *Partition) {
		defer close(ended)
		txn := fence(t, ctx, p)
		outs, err := txn.plan(ctx, []Message{message(TopicResults, "k", "result")})
		if err == nil {
			err = txn.addPartitions(ctx, []place{outs[0].at})
		}
		if err == nil {
			err = txn.produce(ctx, outs)
		}
		if err != nil {
			t.Error(err)
		}
		gen := p.holding.generation()
		close(written)
		<-joined // the broker has the next generation, and this member does not know it
		if err = txn.addOffsets(ctx); err == nil {
			err = txn.commitIn(ctx, gen, map[string]int64{TopicWindows: 0})
		}
		if !errors.Is(err, kafka.IllegalGeneration) {
			t.Errorf("a commit of generation %d after its end: %v", gen.ID, err)
		}
		time.AfterFunc(50*time.Millisecond, func() { close(goOn) })
		if err = txn.commitPositions(ctx, map[string]int64{TopicWindows: 0}); err == nil {
			err = txn.repeat(ctx, "commit", func(ctx context.Context) error { return txn.end(ctx, true) })
		}
		if err != nil || p.holding.generation().ID != gen.ID+1 {
			t.Errorf("committed in generation %d, begun in %d: %v", p.holding.generation().ID, gen.ID, err)
		}
	}
	ran := make(chan error, 1)
	go func() {
		ran <- g.Run(ctx, func(ctx context.Context, p *Partition) error {
			if p.ID() == 0 {
				stays(ctx, p)
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	if n := <-begins; n != 2 {
		t.Fatalf("the only member has %d partitions", n)
	}
	<-written
	other := make(chan int, 1)
	defer runSticky(t, cfg, func(ctx context.Context, p *Partition) error {
		other <- p.ID()
		<-ctx.Done()
		return ctx.Err()
	})()
	if moved := <-other; moved != 1 {
		t.Fatalf("partition %d goes to the other member, want 1", moved)
	}
	<-begins
	close(joined)
	<-ended
	read := func() []string {
		return slices.Concat(committed(t, cfg, TopicResults, 0), committed(t, cfg, TopicResults, 1))
	}
	got := read()
	for deadline := time.Now().Add(patience); len(got) == 0 && time.Now().Before(deadline); { // Apache Kafka writes the markers after its answer
		time.Sleep(50 * time.Millisecond)
		got = read()
	}
	if !slices.Equal(got, []string{"result"}) {
		t.Errorf("results %q, want the one of the transaction", got)
	}
	cancel()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// frozen is a network that a test can stop, like a program that is suspended.
type frozen struct {
	mu   sync.Mutex
	open *sync.Cond
	shut bool
}

func newFrozen() *frozen {
	f := &frozen{}
	f.open = sync.NewCond(&f.mu)
	return f
}

func (f *frozen) freeze(shut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut = shut
	f.open.Broadcast()
}

func (f *frozen) wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.shut {
		f.open.Wait()
	}
}

func (f *frozen) dial(ctx context.Context, network, address string) (net.Conn, error) {
	f.wait()
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &frozenConn{c, f}, nil
}

type frozenConn struct {
	net.Conn
	f *frozen
}

func (c *frozenConn) Write(b []byte) (int, error) {
	c.f.wait()
	return c.Conn.Write(b)
}

// A member is suspended while others have its partition, over two generations. When it wakes,
// the broker refuses what it writes, even if it took itself for a member of the present
// generation. It does not get the partition back while the others live.
func TestSuspendedOverGenerations(t *testing.T) {
	t.Parallel()
	for _, mistaken := range []bool{false, true} {
		t.Run(fmt.Sprintf("mistaken %v", mistaken), func(t *testing.T) {
			cfg := anyBroker(t)
			apply(t, cfg, 1)
			program := newFrozen()
			suspended := cfg
			suspended.Network = &Network{Dial: program.dial}
			asleep, wake, woke := make(chan *Partition, 1), make(chan *kafka.Generation), make(chan struct{})
			times := 0
			stopSuspended := runSticky(t, suspended, func(ctx context.Context, p *Partition) error {
				if times++; times > 1 {
					t.Error("the member that was suspended got the partition back")
				}
				txn := fence(t, ctx, p)
				if err := txn.Publish(ctx, []Message{message(TopicResults, "k", "before")}, map[string]int64{TopicWindows: 0}); err != nil {
					t.Error(err)
				}
				asleep <- p
				present := <-wake
				if mistaken {
					p.holding.mu.Lock()
					p.holding.gen = present
					p.holding.mu.Unlock()
				}
				err := txn.Publish(ctx, []Message{message(TopicResults, "k", "suspended")}, map[string]int64{TopicWindows: 1})
				if !errors.Is(err, ErrLost) {
					t.Errorf("a member that was suspended: %v", err)
				}
				close(woke)
				return err
			})
			gone := <-asleep
			program.freeze(true)
			evict(t, cfg, gone.holding.generation().MemberID)
			owner := make(chan *Partition, 1)
			var once sync.Once
			defer runSticky(t, cfg, func(ctx context.Context, p *Partition) error {
				once.Do(func() { // it may begin again when the others have left
					txn := fence(t, ctx, p)
					if err := txn.Publish(ctx, []Message{message(TopicResults, "k", "after")}, map[string]int64{TopicWindows: 1}); err != nil {
						t.Error(err)
					}
					owner <- p
				})
				<-ctx.Done()
				return ctx.Err()
			})()
			p := <-owner
			first := p.holding.generation()
			defer runSticky(t, cfg, func(context.Context, *Partition) error {
				t.Error("the member that joined last got the only partition")
				return ErrLost
			})()
			waitStable(t, cfg, 2)
			if !p.holding.after(testContext(t), first) || p.holding.generation().ID != first.ID+1 {
				t.Errorf("the owner is in generation %d, joined in %d", p.holding.generation().ID, first.ID)
			}
			program.freeze(false)
			wake <- p.holding.generation()
			<-woke
			waitStable(t, cfg, 3)
			if err := stopSuspended(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if got := committed(t, cfg, TopicResults, 0); !slices.Equal(got, []string{"before", "after"}) {
				t.Errorf("%q", got)
			}
		})
	}
}

// evict removes a member from the group, as the broker does when its session has ended.
func evict(t *testing.T, cfg Config, member string) {
	t.Helper()
	res, err := openClient(t, cfg).kc.LeaveGroup(testContext(t), &kafka.LeaveGroupRequest{GroupID: "tcm-test", Members: []kafka.LeaveGroupRequestMember{{ID: member}}})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A holding goes on in the generation that follows its own, for the same member. A holding that
// has ended does not.
func TestHolding(t *testing.T) {
	gen := func(id int32, member string) *kafka.Generation { return &kafka.Generation{ID: id, MemberID: member} }
	for name, tc := range map[string]struct {
		sticky bool
		lost   bool
		next   *kafka.Generation
		want   bool
	}{
		"the next generation":                {true, false, gen(6, "m"), true},
		"the member has joined again":        {true, false, gen(5, "m"), true},
		"a generation was missed":            {true, false, gen(7, "m"), false},
		"the broker has forgotten the group": {true, false, gen(1, "m"), false},
		"the member was removed between":     {true, false, gen(6, "n"), false},
		"the partition is lost":              {true, true, gen(6, "m"), false},
		"a group without a protocol":         {false, false, gen(6, "m"), false},
	} {
		h := newHolding(context.Background(), gen(5, "m"), tc.sticky)
		now := h.generation()
		if tc.lost {
			h.lose()
		}
		if got := h.goesOn(tc.next); got != tc.want {
			t.Errorf("%s: goes on %v, want %v", name, got, tc.want)
		}
		if tc.want && (!h.after(context.Background(), now) || h.generation() != tc.next) {
			t.Errorf("%s: its generation is %d", name, h.generation().ID)
		}
		h.end()
		if h.ctx.Err() == nil || h.after(context.Background(), h.generation()) {
			t.Errorf("%s: it has not ended", name)
		}
	}
}
