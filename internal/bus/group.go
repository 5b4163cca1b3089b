package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	heartbeat    = 300 * time.Millisecond
	session      = 6 * time.Second // a member that is silent for so long has left
	rebalance    = 30 * time.Second
	joinBackoff  = time.Second
	leaveTimeout = 5 * time.Second

	partitionWatch = time.Second // until a member notices new partitions, so that their windows do not wait for long
)

// Group is one member of a consumer group, which divides the partitions of a
// topic among its members.
type Group struct {
	cfg         Config
	name, topic string

	// OnGeneration, if not nil, is called when a generation begins, with how many
	// partitions this member has in it.
	OnGeneration func(partitions int)

	// Protocol, if not empty, is the name under which the members agree on how to divide
	// the partitions. Kafka lets only members with the same name into a group. A member
	// with another name waits until they have left, and OnRetry says so.
	//
	// Members with a Protocol keep their partitions when others join and leave, and go on
	// with them meanwhile. For a moment two members may have the same partition, so handle
	// must fence it and write with Txn.
	Protocol string
}

// NewGroup returns a member of the group called name. It joins when it runs.
func NewGroup(cfg Config, name, topic string) (*Group, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if name == "" || topic == "" {
		return nil, fmt.Errorf("bus: group %q of topic %q: both need a name", name, topic)
	}
	return &Group{cfg: cfg, name: name, topic: topic}, nil
}

// Run joins the group and calls handle, in a goroutine of its own, for each
// partition of each generation this member gets. The context of handle ends with
// the generation. Handle must return soon then: no member gets the partition
// before. It reads from the last committed position, or from the first message of
// the topic.
//
// With a Protocol, handle is called for each partition that the member did not have in the
// generation before, and its context ends when a generation begins in which the member does
// not have the partition. When the topic gets more partitions, handle is called for all of them.
//
// Run goes on through rebalances and failures until ctx ends, and returns the error of
// ctx when every handle has returned. If a handle returns nil, ErrLost or the error of its
// own context earlier, this member ends the generation and joins the next. Any other error
// of handle ends Run, which returns it.
func (g *Group) Run(ctx context.Context, handle func(ctx context.Context, p *Partition) error) error {
	c, _, err := openTopic(ctx, g.cfg, g.topic)
	if err != nil {
		return err
	}
	defer c.close()
	r := &groupRun{group: g, c: c, id: c.t.askID(ctx, g.topic), handle: handle, budget: newBudget(fetchBudget), ended: make(map[int]<-chan struct{})}
	balancers := []kafka.GroupBalancer{kafka.RangeGroupBalancer{}, kafka.RoundRobinGroupBalancer{}}
	if g.Protocol != "" {
		r.sticky = &sticky{name: g.Protocol, topic: g.topic}
		balancers = []kafka.GroupBalancer{r.sticky}
	}
	for i, b := range balancers {
		balancers[i] = counted{b, g.topic, &r.shared}
	}
	cg, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: g.name, Brokers: []string{coordinatorOf}, Topics: []string{g.topic},
		Dialer:            &kafka.Dialer{ClientID: g.cfg.ClientID, Timeout: dialTimeout, DialFunc: c.t.dialIn(g.name), SASLMechanism: g.cfg.mechanism()},
		GroupBalancers:    balancers,
		StartOffset:       kafka.FirstOffset,
		HeartbeatInterval: heartbeat, SessionTimeout: session, RebalanceTimeout: rebalance,
		JoinGroupBackoff: joinBackoff, WatchPartitionChanges: true, PartitionWatchInterval: partitionWatch,
	})
	if err != nil {
		return fmt.Errorf("bus: group %s: %w", g.name, err)
	}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	r.run(cg)
	r.release()
	r.handlers.Wait()
	leave(cg)
	return context.Cause(r.ctx)
}

// leave takes the member out of the group. A member that is joining cannot leave before
// the others have joined too: the broker removes it when its session ends.
func leave(cg *kafka.ConsumerGroup) {
	done := make(chan struct{})
	go func() {
		cg.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(leaveTimeout):
	}
}

// groupRun is one Run of a Group.
type groupRun struct {
	group    *Group
	c        *client
	id       topicID // when the run began
	handle   func(context.Context, *Partition) error
	budget   *budget // of all partitions
	sticky   *sticky // nil: a generation takes every partition away
	ctx      context.Context
	stop     context.CancelCauseFunc // ends Run with an error
	handlers sync.WaitGroup
	lost     atomic.Pointer[outage] // a handler has lost its partition; nil once there is a new generation
	shared   atomic.Int32           // partitions that this member divided as the leader of the generation; notLeading: it is not

	// The goroutine of Run has these.
	count int                     // partitions of the topic, as of the last generation
	held  map[int]*holding        // what this member has, by partition
	ended map[int]<-chan struct{} // closed when the last handler of a partition has returned
}

// run starts handlers, generation after generation, until the context ends.
func (r *groupRun) run(cg *kafka.ConsumerGroup) {
	var o outage
	for {
		gen, err := cg.Next(r.ctx)
		if r.ctx.Err() != nil {
			return
		}
		if errors.Is(err, kafka.RebalanceInProgress) {
			continue
		}
		if err != nil {
			r.release() // the client library has left the group
			if errors.Is(err, kafka.InconsistentGroupProtocol) {
				err = r.keptOut(err)
			}
			if err = explain(err, r.group.cfg); r.c.permanent(err) {
				r.stop(fmt.Errorf("bus: group %s: %w", r.group.name, err))
				return
			}
			o.failed(r.group.cfg, err) // the ConsumerGroup waits before it tries again
			continue
		}
		o.over(r.group.cfg)
		if lost := r.lost.Swap(nil); lost != nil {
			lost.over(r.group.cfg)
		}
		if r.group.OnGeneration != nil {
			r.group.OnGeneration(len(gen.Assignments[r.group.topic]))
		}
		r.begin(gen)
	}
}

// await waits until a handler or its generation has ended.
func (r *groupRun) await(generation context.Context, h *holding) {
	select {
	case <-h.done:
		if r.ctx.Err() != nil {
			<-generation.Done() // else the client library joins the next generation before it leaves, and costs the others theirs
		}
	case <-generation.Done():
		if r.sticky == nil {
			h.end()
			<-h.done // no member gets the partition before
		}
	}
}

// begin starts a handler for every partition of a generation that has none, and ends the
// handlers of the other partitions.
func (r *groupRun) begin(gen *kafka.Generation) {
	if r.divided() && r.sticky != nil {
		r.release()
	}
	if n := r.shared.Load(); n != notLeading && int(n) < r.count {
		// The coordinator did not know all partitions, as after it has started: no member has the others.
		gen.Start(func(ctx context.Context) { _ = pause(ctx, joinBackoff) })
	}
	held := make(map[int]*holding)
	var ids []int
	for _, a := range gen.Assignments[r.group.topic] {
		h := r.held[a.ID]
		if h != nil && h.goesOn(gen) {
			delete(r.held, a.ID)
		} else {
			h = r.start(gen, a)
		}
		held[a.ID] = h
		ids = append(ids, a.ID)
		gen.Start(func(gctx context.Context) { // the generation ends when this returns
			r.await(gctx, h)
		})
	}
	r.release() // what is left
	r.held = held
	if r.sticky != nil {
		r.sticky.got(gen.ID, ids)
	}
}

// divided reports whether the topic has another number of partitions than in the generation
// before, or may have.
func (r *groupRun) divided() bool {
	counts, err := r.c.askPartitions(r.ctx, r.group.topic)
	before := r.count
	r.count = counts[r.group.topic]
	return err != nil || r.count != before
}

// release ends the handlers of all partitions that this member has.
func (r *groupRun) release() {
	for _, h := range r.held {
		h.end()
	}
	r.held = nil
}

// start starts a handler. It begins when the last handler of the partition has returned.
func (r *groupRun) start(gen *kafka.Generation, a kafka.PartitionAssignment) *holding {
	h := newHolding(r.ctx, gen, r.sticky != nil)
	p := &Partition{
		holding: h, group: r.group.name,
		f: fetcher{c: r.c, id: r.id, place: place{r.group.topic, a.ID}, next: a.Offset, lends: true, whole: true, budget: r.budget, busy: true},
	}
	before := r.ended[a.ID]
	r.ended[a.ID] = h.done
	r.handlers.Go(func() {
		defer close(h.done)
		defer h.end()
		if before != nil {
			<-before
		}
		r.serve(p)
	})
	return h
}

// keptOut names the members that keep this one out of the group.
func (r *groupRun) keptOut(cause error) error {
	g, _, err := r.c.members(r.ctx, r.group.name, r.group.topic)
	who := strings.Join(g.Members, ", ")
	if err != nil || who == "" { // they may have left by now
		who = "kafka-consumer-groups.sh --describe --members lists them"
	}
	return fmt.Errorf("bus: group %s has members of another release, and Kafka lets this program in when they have left: stop them (%s): %w", r.group.name, who, cause)
}

// locate reads where the group is in a partition. The client library takes the first answer of a new coordinator. With
// a protocol, Fence does this.
func (r *groupRun) locate(ctx context.Context, p *Partition) error {
	if r.sticky != nil {
		return nil
	}
	return r.c.retry(ctx, func(ctx context.Context) error {
		found, err := r.c.positions(ctx, p.group, true, map[string][]int{p.f.topic: {p.ID()}})
		if at, ok := found[p.f.place]; ok {
			p.f.next = at
		}
		return err
	})
}

// serve runs one handler. The generation ends when it returns.
func (r *groupRun) serve(p *Partition) {
	ctx := p.holding.ctx
	err := r.locate(ctx, p)
	if err == nil {
		err = r.handle(ctx, p)
	}
	p.f.done(p.f.held)
	switch over := ctx.Err(); {
	case over != nil && (errors.Is(err, over) || errors.Is(err, ErrLost)):
		return
	case errors.Is(err, ErrLost):
		p.holding.lose()
		if pause(ctx, joinBackoff) != nil { // do not ask a coordinator that fails again at once
			return // the next generation has begun: the partition is another member's, or is taken again
		}
		var o outage
		o.failed(r.group.cfg, err)
		r.lost.Store(&o)
	case err != nil:
		r.stop(err)
	}
}

// holding is how long a member has a partition: for one generation or, in a group with a
// Protocol, for several in a row.
type holding struct {
	ctx  context.Context // of the handler
	stop context.CancelFunc
	done chan struct{} // closed when the handler has returned

	mu   sync.Mutex
	gen  *kafka.Generation // the newest in which the member has the partition
	next chan struct{}     // closed when gen changes, or when it is sure that it will not; nil: it will not
}

func newHolding(ctx context.Context, gen *kafka.Generation, sticky bool) *holding {
	h := &holding{gen: gen, done: make(chan struct{})}
	if sticky {
		h.next = make(chan struct{})
	}
	h.ctx, h.stop = context.WithCancel(ctx)
	return h
}

// goesOn reports whether the member has kept the partition from its last generation to gen, and
// notes gen. No other member has had the partition between, because the numbers of the
// generations follow one another. A member that the broker has removed from the group comes
// back under another id.
func (h *holding) goesOn(gen *kafka.Generation) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil || gen.MemberID != h.gen.MemberID || gen.ID != h.gen.ID && gen.ID != h.gen.ID+1 {
		return false
	}
	h.gen = gen
	close(h.next)
	h.next = make(chan struct{})
	return true
}

// lose says that the partition does not go on in the next generation.
func (h *holding) lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next != nil {
		close(h.next)
		h.next = nil
	}
}

// end takes the partition from the handler.
func (h *holding) end() {
	h.lose()
	h.stop()
}

// generation returns the newest generation.
func (h *holding) generation() *kafka.Generation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gen
}

// after waits until the holding has another generation than gen. It reports false if it ends
// before, or if ctx ends.
func (h *holding) after(ctx context.Context, gen *kafka.Generation) bool {
	for {
		h.mu.Lock()
		now, next := h.gen, h.next
		h.mu.Unlock()
		if now != gen {
			return true
		}
		if next == nil {
			return false
		}
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}

// Partition is one partition for as long as this member has it: for one generation or, in a
// group with a Protocol, for several in a row. It belongs to one goroutine.
type Partition struct {
	holding *holding
	group   string // its name
	f       fetcher
	queue   []Message             // fetched, not yet returned
	given   int                   // bytes of the messages that Fetch returned last
	lost    atomic.Pointer[error] // why nothing may be read or committed any more; the Txn sets it, too

	// OnFetched, if not nil, is called in Fetch whenever the broker has answered, even
	// without a message. Its argument is the offset behind the newest message.
	OnFetched func(end int64)
}

// ID returns the number of the partition.
func (p *Partition) ID() int { return p.f.partition }

// Fetch returns the next messages in order, at least one and at most most. It
// waits for the first until ctx ends, and for more no longer than wait. A message that
// cannot be read has Damage. After a failed Commit or Publish Fetch returns ErrLost.
//
// The messages are the caller's; long values are loans that it may return, see Message.TakeLoan. They count against the memory of the group's partitions
// until the next call of Fetch, even if the caller still holds them.
func (p *Partition) Fetch(ctx context.Context, most int, wait time.Duration) ([]Message, error) {
	p.f.done(p.given)
	p.given = 0
	for len(p.queue) == 0 {
		if err := p.fill(ctx, p.f.c.cfg.network().ReadWait); err != nil {
			return nil, err
		}
	}
	until := time.Now().Add(wait)
	for len(p.queue) < most {
		left := time.Until(until)
		if left <= 0 || !p.f.budget.roomy() {
			break
		}
		if err := p.fill(ctx, left); err != nil {
			break // the messages in the queue are good; the next Fetch fails again
		}
	}
	n := min(most, len(p.queue))
	msgs := slices.Clone(p.queue[:n])
	clear(p.queue[:n]) // do not hold messages that the caller is done with
	if p.queue = p.queue[n:]; len(p.queue) == 0 {
		p.queue = nil
	}
	for i := range msgs {
		p.given += msgs[i].memory()
	}
	return msgs, nil
}

func (p *Partition) fill(ctx context.Context, wait time.Duration) error {
	if err := cmp.Or(p.over(), ctx.Err()); err != nil {
		return err
	}
	msgs, err := p.f.fetch(ctx, wait)
	p.queue = append(p.queue, msgs...)
	if err == nil && p.OnFetched != nil {
		p.OnFetched(p.f.high)
	}
	return err
}

// over returns the error with which the partition was lost.
func (p *Partition) over() error {
	if lost := p.lost.Load(); lost != nil {
		return *lost
	}
	return nil
}

// Commit says that every message below offset is done with: the next owner of the
// partition begins there. Commit only what is durable elsewhere. An error, which is
// ErrLost, means that another member may have the partition already: the handler must
// return. Commit ignores the end of its context, so a handler that is stopping can
// commit its work.
func (p *Partition) Commit(_ context.Context, offset int64) error {
	if err := p.over(); err != nil {
		return err
	}
	if err := p.holding.generation().CommitOffsets(map[string]map[int]int64{p.f.topic: {p.ID(): offset}}); err != nil {
		err = fmt.Errorf("bus: topic %s partition %d, commit of offset %d: %w until the next generation: %w", p.f.topic, p.ID(), offset, ErrLost, err)
		p.lost.Store(&err)
		return err
	}
	return nil
}

// End asks the broker for the offset behind the newest message.
func (p *Partition) End(ctx context.Context) (int64, error) {
	end, err := p.f.c.t.endOf(ctx, p.f.place)
	return end, explain(err, p.f.c.cfg)
}
