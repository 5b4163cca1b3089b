package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/addoffsetstotxn"
	"github.com/segmentio/kafka-go/protocol/addpartitionstotxn"
	"github.com/segmentio/kafka-go/protocol/endtxn"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
	"github.com/segmentio/kafka-go/protocol/txnoffsetcommit"
)

const (
	txnTimeout   = 10 * time.Second // after this the broker aborts a transaction and refuses its owner
	txnCall      = 4 * time.Second  // for one request of a transaction, so that there is time for a second
	abortTimeout = 3 * time.Second
	firstRepeat  = time.Millisecond // a broker is often not quite done with the last transaction
	quietRepeat  = time.Second      // OnRetry does not hear of that for so long

	unstableAfter = 2 * time.Second // positions of an open transaction are then left there for ever
)

// operationNotAttempted is the broker's error for a partition that it did not add to a
// transaction because it refused another partition of the same request.
const operationNotAttempted = kafka.Error(55)

// Txn writes for one partition of a group in transactions: readers see all messages of
// one Publish, or none. It belongs to the goroutine of its Partition, and ends with it.
type Txn struct {
	p         *Partition
	c         *client
	id        string // transactional id: the group's name, "-", the number of the partition
	producer  int64
	epoch     int16
	sequence  map[place]int32 // of the next message
	positions map[string]int64
	restart   int64 // committed for the partition's own topic while it has no position
	dead      error // returned by every later Publish
	stray     bool  // a request got no answer, and may still reach the broker
}

// Fence takes the partition for this member. From then on the broker refuses transactions
// of the previous owner, and ends one that the previous owner left open. Then Fence reads
// the group's positions in this partition, and in the partitions of other topics with the
// same number: the position in the assignment may be out of date. Partition.Fetch goes on
// from there.
//
// ErrLost means that another member has taken the partition already, or that ctx
// ended. Other errors are permanent: a missing right or a setting of the broker,
// named in the text.
func (p *Partition) Fence(ctx context.Context, others ...string) (*Txn, error) {
	t := &Txn{
		p: p, c: p.f.c, id: fmt.Sprintf("%s-%d", p.group, p.ID()),
		sequence: make(map[place]int32), positions: make(map[string]int64), restart: -1,
	}
	err := t.repeat(ctx, "take the transactional id", t.initOnce)
	if err == nil {
		err = t.healIfStuck(ctx)
	}
	if err == nil {
		of := map[string][]int{p.f.topic: {p.ID()}}
		for _, topic := range others {
			of[topic] = []int{p.ID()}
		}
		err = t.readPositions(ctx, of)
	}
	if err == nil {
		if _, ok := t.positions[p.f.topic]; !ok {
			err = t.repeat(ctx, "find the first offset", func(ctx context.Context) (err error) {
				t.restart, err = t.c.t.offset(ctx, p.f.place, FirstOffset, false)
				return err
			})
		}
	}
	if err != nil {
		if t.classify(err) == forever {
			return nil, err
		}
		return nil, t.lose(err)
	}
	p.f.done(p.f.held)
	p.queue, p.given = nil, 0
	p.f.next = t.Position(p.f.topic)
	return t, nil
}

// readPositions reads the group's positions. The transactions of this id are over. If the broker still says that a
// transaction is open, it has lost its end, which an empty transaction writes again, or another
// partition's transaction is open: the embedded broker does not tell them apart.
func (t *Txn) readPositions(ctx context.Context, of map[string][]int) error {
	stable, began := true, time.Now()
	return t.repeat(ctx, "read the group's positions", func(ctx context.Context) error {
		found, err := t.c.positions(ctx, t.p.group, stable, of)
		if stable && errors.Is(err, kafka.UnstableOffsetCommit) && time.Since(began) > unstableAfter {
			if ended := t.commitEmpty(ctx, nil); ended != nil {
				return ended
			}
			stable = false
		}
		for at, offset := range found {
			t.positions[at.topic] = offset
		}
		return err
	})
}

// Position returns the group's committed offset in this partition of a topic that was an
// argument of Fence. It is the offset that Fence found, or that a later Publish committed,
// and FirstOffset if there is none.
func (t *Txn) Position(topic string) int64 {
	if at, ok := t.positions[topic]; ok {
		return at
	}
	return FirstOffset
}

// Begin returns the offset of the partition's own topic from which on nothing is done yet, as
// Fence found it: the group's position, or the oldest message where it has none.
func (t *Txn) Begin() int64 {
	if at := t.Position(t.p.f.topic); at >= 0 {
		return at
	}
	return t.restart
}

// Publish writes messages and positions so that readers see all of them or none.
// A position is the offset to read next in this partition of a topic. Without positions,
// Publish commits the known ones again: by that the broker notices a member that has lost
// the partition. Publish keeps neither msgs nor positions.
//
// Failures that may pass are tried again until ctx ends. ErrLost means that another
// member has the partition, or might: forget what is in memory and return from the
// handler. Every later Publish and Fetch returns ErrLost then. Other errors are
// permanent and Publish wrote nothing: ErrTooLarge, ErrNoTopic or a missing right,
// with the setting or the right in the text.
func (t *Txn) Publish(ctx context.Context, msgs []Message, positions map[string]int64) error {
	if t.dead != nil {
		return t.dead
	}
	outs, err := t.plan(ctx, msgs)
	if err != nil {
		if t.classify(err) == forever {
			return err
		}
		return t.lose(err)
	}
	committed := maps.Clone(t.positions)
	maps.Copy(committed, positions)
	if _, ok := committed[t.p.f.topic]; !ok {
		committed[t.p.f.topic] = t.restart
	}
	if err := t.write(ctx, outs, committed); err != nil {
		return t.giveUp(ctx, outs, err)
	}
	if err := t.repeat(ctx, "commit", func(ctx context.Context) error { return t.end(ctx, true) }); err != nil {
		return t.lose(err) // it may be committed, so do not abort
	}
	t.c.published.Store(true)
	maps.Copy(t.positions, positions)
	if t.stray {
		_ = t.lose(errors.New("a request of the last transaction got no answer and could reach the broker during the next one"))
	}
	return nil
}

// lose ends the Txn and its Partition. It returns the error that they return from now on.
func (t *Txn) lose(cause error) error {
	t.dead = fmt.Errorf("bus: topic %s partition %d: %w: %w", t.p.f.topic, t.p.ID(), ErrLost, cause)
	t.p.lost.Store(new(t.dead))
	return t.dead
}

// giveUp aborts the transaction. That may fail: a fenced member has nothing to abort.
func (t *Txn) giveUp(ctx context.Context, outs []*outgoing, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	aborted := t.repeat(ctx, "abort", func(ctx context.Context) error { return t.end(ctx, false) })
	if t.classify(cause) != forever {
		return t.lose(cause)
	}
	if aborted != nil || t.stray || slices.ContainsFunc(outs, func(o *outgoing) bool { return o.unknown }) {
		_ = t.lose(cause) // the next sequence number is not known
	}
	return cause
}

// fate says what to do after an error of a transaction.
type fate int

const (
	again   fate = iota // the same bytes may be sent again
	lost                // another member has the partition, or might
	forever             // a setting or a right is wrong
)

// classify says what to do after err. If a broker once let this program in, later refusals are
// tried again. If it once could write, it gives the partition up when it loses a right, and
// asks for the partition again: rights change while programs run.
func (t *Txn) classify(err error) fate {
	k, answered := errors.AsType[kafka.Error](err)
	_, network := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, ErrNoTopic), errors.Is(err, ErrTooLarge):
		return forever
	case denied(err):
		if t.c.published.Load() {
			return lost
		}
		return forever
	case refused(err):
		if t.c.accepted.Load() {
			return again
		}
		return forever
	case answered:
		return classifyCode(k)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), network,
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, protocol.ErrNoTopic), errors.Is(err, protocol.ErrNoPartition):
		return again
	}
	return lost
}

func classifyCode(k kafka.Error) fate {
	switch k {
	case kafka.ConcurrentTransactions, kafka.GroupLoadInProgress, kafka.GroupCoordinatorNotAvailable, kafka.NotCoordinatorForGroup,
		kafka.NotLeaderForPartition, kafka.LeaderNotAvailable, kafka.UnknownTopicOrPartition, kafka.RequestTimedOut,
		kafka.NotEnoughReplicas, kafka.NotEnoughReplicasAfterAppend, kafka.BrokerNotAvailable, kafka.NetworkException,
		kafka.KafkaStorageError, kafka.UnstableOffsetCommit:
		return again
	case kafka.InvalidMessage, kafka.InvalidRecord, kafka.InvalidTimestamp, kafka.InvalidTopic, kafka.InvalidTransactionTimeout,
		kafka.PolicyViolation, kafka.UnsupportedVersion, kafka.UnsupportedForMessageFormat:
		return forever
	}
	return lost
}

// repeat calls f, with a deadline, until it succeeds, ctx ends or classify forbids another
// attempt.
func (t *Txn) repeat(ctx context.Context, what string, f func(ctx context.Context) error) error {
	var o outage
	began := time.Now()
	for wait := firstRepeat; ; wait = min(2*wait, maxBackoff) {
		call, cancel := context.WithTimeout(ctx, txnCall)
		err := f(call)
		cancel()
		if err == nil {
			t.c.accepted.Store(true)
			o.over(t.c.cfg)
			return nil
		}
		err = explain(fmt.Errorf("bus: transactional id %s: %s: %w", t.id, what, err), t.c.cfg)
		if t.classify(err) != again {
			return err
		}
		if !errors.Is(err, kafka.ConcurrentTransactions) || time.Since(began) > quietRepeat {
			o.failed(t.c.cfg, err)
			t.c.t.expire()
		}
		if ended := pause(ctx, wait); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// unanswered reports whether err means that the broker may or may not have got the request.
func unanswered(err error) bool {
	_, answered := errors.AsType[kafka.Error](err)
	return !answered
}

// initOnce makes this member the owner of the transactional id. It never sends its old
// producer id: a broker would take that for a repair by the present owner.
func (t *Txn) initOnce(ctx context.Context) error {
	res, err := call[*initproducerid.Response](ctx, t.c.t, &initproducerid.Request{
		TransactionalID: t.id, TransactionTimeoutMs: int32(txnTimeout.Milliseconds()), ProducerID: -1, ProducerEpoch: -1,
	})
	if err == nil {
		err = errorOf(res.ErrorCode)
	}
	if errors.Is(err, kafka.InvalidTransactionTimeout) {
		return fmt.Errorf("%w: set the broker's transaction.max.timeout.ms to %d or more", err, txnTimeout.Milliseconds())
	}
	if err != nil {
		return err
	}
	t.producer, t.epoch = res.ProducerID, res.ProducerEpoch
	return nil
}

// write sends all requests of one transaction except its end.
func (t *Txn) write(ctx context.Context, outs []*outgoing, positions map[string]int64) error {
	if len(outs) > 0 {
		var places []place
		for _, o := range outs {
			places = append(places, o.at)
		}
		if err := t.addPartitions(ctx, places); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg     sync.WaitGroup
		failed error // of the positions
	)
	wg.Go(func() {
		if failed = t.commitPositions(ctx, positions); failed != nil {
			cancel()
		}
	})
	err := t.produce(ctx, outs)
	if err != nil && t.classify(err) != forever { // otherwise the positions soon have an answer, and the Txn goes on
		cancel()
	}
	wg.Wait()
	if failed != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return failed
	}
	return err
}

// addPartitions tells the coordinator which partitions the transaction will write to.
func (t *Txn) addPartitions(ctx context.Context, places []place) error {
	req := &addpartitionstotxn.Request{TransactionalID: t.id, ProducerID: t.producer, ProducerEpoch: t.epoch}
	for _, at := range places {
		req.Topics = append(req.Topics, addpartitionstotxn.RequestTopic{Name: at.topic, Partitions: []int32{int32(at.partition)}})
	}
	return t.repeat(ctx, "begin a transaction", func(ctx context.Context) error {
		res, err := call[*addpartitionstotxn.Response](ctx, t.c.t, req)
		if err != nil {
			return err
		}
		for _, topic := range res.Results {
			for _, p := range topic.Results {
				err := errorOf(p.ErrorCode)
				if errors.Is(err, operationNotAttempted) {
					continue // the partition that was refused has another error
				}
				if err != nil {
					return t.missing(ctx, place{topic.Name, int(p.PartitionIndex)}, err)
				}
			}
		}
		return nil
	})
}

// missing turns the error that a partition is unknown into an error that says whether to
// wait for the partition: a broker may not know it yet.
func (t *Txn) missing(ctx context.Context, at place, err error) error {
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		n, asked := t.c.partitions(ctx, at.topic)
		if asked != nil {
			return asked
		}
		if at.partition >= n {
			return fmt.Errorf("topic %s has only %d partitions now", at.topic, n)
		}
	}
	return fmt.Errorf("topic %s partition %d: %w", at.topic, at.partition, err)
}

// addOffsets tells the coordinator that the transaction will commit positions.
func (t *Txn) addOffsets(ctx context.Context) error {
	return t.repeat(ctx, "begin to commit positions", func(ctx context.Context) error {
		res, err := call[*addoffsetstotxn.Response](ctx, t.c.t, &addoffsetstotxn.Request{
			TransactionalID: t.id, ProducerID: t.producer, ProducerEpoch: t.epoch, GroupID: t.p.group,
		})
		if err != nil {
			return err
		}
		return errorOf(res.ErrorCode)
	})
}

// commitPositions makes positions part of the transaction. The broker refuses them
// from a member that has left the group's generation. If the member keeps the partition in
// the next generation, it commits them as a member of that one.
func (t *Txn) commitPositions(ctx context.Context, positions map[string]int64) error {
	if err := t.addOffsets(ctx); err != nil {
		return err
	}
	for {
		gen := t.p.holding.generation()
		err := t.commitIn(ctx, gen, positions)
		if !errors.Is(err, kafka.IllegalGeneration) || !t.p.holding.after(ctx, gen) {
			return err
		}
	}
}

// commitIn is commitPositions as a member of one generation.
func (t *Txn) commitIn(ctx context.Context, gen *kafka.Generation, positions map[string]int64) error {
	req := &txnoffsetcommit.Request{
		TransactionalID: t.id, GroupID: t.p.group, ProducerID: t.producer, ProducerEpoch: t.epoch,
		GenerationID: gen.ID, MemberID: gen.MemberID,
	}
	for topic, at := range positions {
		req.Topics = append(req.Topics, txnoffsetcommit.RequestTopic{Name: topic, Partitions: []txnoffsetcommit.RequestPartition{
			{Partition: int32(t.p.ID()), CommittedOffset: at, CommittedLeaderEpoch: -1},
		}})
	}
	return t.repeat(ctx, "commit positions", func(ctx context.Context) error {
		res, err := call[*txnoffsetcommit.Response](ctx, t.c.t, req)
		if err != nil {
			t.stray = t.stray || unanswered(err)
			return err
		}
		for _, topic := range res.Topics {
			for _, p := range topic.Partitions {
				if err := errorOf(p.ErrorCode); err != nil {
					return t.missing(ctx, place{topic.Name, int(p.Partition)}, err)
				}
			}
		}
		return nil
	})
}

// end commits or aborts the transaction. It may be repeated.
func (t *Txn) end(ctx context.Context, commit bool) error {
	res, err := call[*endtxn.Response](ctx, t.c.t, &endtxn.Request{
		TransactionalID: t.id, ProducerID: t.producer, ProducerEpoch: t.epoch, Committed: commit,
	})
	if err != nil {
		t.stray = t.stray || unanswered(err)
		return err
	}
	return errorOf(res.ErrorCode)
}
