package bus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetcher reads one partition. It parses the answers itself: the client library takes
// memory for every length that it finds in them, unpacks compressed batches without a
// bound, and hides which transactions were aborted.
//
// Windows are read whether or not their transaction has been committed: Flank does not
// write them in transactions, and a transaction that another program leaves open must not
// hold up the machines. All other topics are read up to the oldest open transaction, and
// aborted messages are left out.
type fetcher struct {
	c         *client
	topic     string
	partition int
	next      int64   // offset to read next, or FirstOffset or LastOffset
	high      int64   // offset behind the newest message that may be read, as of the last fetch
	budget    *budget // nil: none
	most      int     // bytes that the next fetch asks for
	held      int     // bytes of the budget that unfinished messages take
	busy      bool    // there was much to read last time, or nothing was read yet
	corrupt   int     // fetches in a row whose first batch had a wrong checksum
	read      bool    // a fetch has succeeded
	whole     bool    // report missing offsets: the topic is not compacted
	stall     stallWatch
}

// committedOnly reports whether only committed messages of a topic are read.
func committedOnly(topic string) bool { return topic != TopicWindows }

// fetch asks once, waiting up to wait for a message to come, and repeats only
// failures. It may return no messages.
//
// With a budget, a partition that holds no messages and has many to read waits for its
// share, and then asks for a large answer. A partition that holds messages, or has none
// to read, asks for a small answer and does not wait.
func (f *fetcher) fetch(ctx context.Context, wait time.Duration) (msgs []Message, err error) {
	reserved := 0
	f.most = MaxMessage
	if f.budget != nil {
		if f.busy && f.held == 0 {
			if err := f.budget.take(ctx, MaxMessage); err != nil {
				return nil, err
			}
			reserved, wait = MaxMessage, 0
		} else {
			f.most = quietFetch
		}
		defer func() {
			memory := 0
			for i := range msgs {
				memory += msgs[i].memory()
			}
			f.held += memory
			f.budget.give(reserved - memory)
		}()
	}
	err = f.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		if f.next < 0 {
			at, err := f.resolve(ctx, kc)
			if err != nil {
				return err
			}
			f.next = at
		}
		msgs, err = f.fetchOnce(ctx, kc, wait)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			return f.relocate(ctx, kc)
		}
		return err
	})
	if err == nil {
		f.watch(ctx, time.Now())
	}
	return msgs, err
}

// done gives the memory of messages back to the budget.
func (f *fetcher) done(memory int) {
	if f.budget != nil {
		f.held -= memory
		f.budget.give(memory)
	}
}

// resolve returns the offset that f.next stands for.
func (f *fetcher) resolve(ctx context.Context, kc *kafka.Client) (int64, error) {
	if f.next == LastOffset {
		return endOf(ctx, kc, f.topic, f.partition)
	}
	return offsetAt(ctx, kc, f.topic, f.partition, FirstOffset)
}

func (f *fetcher) fetchOnce(ctx context.Context, kc *kafka.Client, wait time.Duration) ([]Message, error) {
	// PartitionMaxBytes bounds the answer, not MaxBytes: where MaxBytes ends an answer, the
	// embedded broker does not say which transactions were aborted.
	req := &fetch.Request{
		ReplicaID: -1, MaxWaitTime: int32(max(wait, time.Millisecond).Milliseconds()), MinBytes: 1, MaxBytes: math.MaxInt32, SessionID: -1, SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{Topic: f.topic, Partitions: []fetch.RequestPartition{{
			Partition: int32(f.partition), CurrentLeaderEpoch: -1, FetchOffset: f.next, LogStartOffset: -1, PartitionMaxBytes: int32(f.most),
		}}}},
	}
	if committedOnly(f.topic) {
		req.IsolationLevel = int8(kafka.ReadCommitted)
	}
	res, err := askFetch(ctx, kc, f.c.cfg.ClientID, req)
	if err != nil {
		return nil, err
	}
	defer giveBody(res.body)
	got, err := res.parse()
	if err == nil && got.code != 0 {
		err = got.code
	}
	if err != nil {
		return nil, fmt.Errorf("bus: topic %s partition %d offset %d: %w", f.topic, f.partition, f.next, err)
	}
	f.c.allowed.Store(true)
	if f.high = got.high; committedOnly(f.topic) {
		f.high = got.stable
	}
	r := recordReader{topic: f.topic, partition: f.partition, committed: committedOnly(f.topic), aborted: got.aborted, tolerant: f.corrupt >= checksumsTried}
	out, err := r.read(got.records, f.next)
	if err != nil {
		f.corrupt++
		return nil, fmt.Errorf("bus: topic %s partition %d offset %d: %w", f.topic, f.partition, f.next, err)
	}
	f.corrupt, f.read, f.next = 0, true, out.next
	f.busy = len(got.records) > quietFetch/2
	for _, g := range out.gaps {
		f.sayGap(Gap{Topic: f.topic, Partition: f.partition, From: g[0], To: g[1]})
	}
	return out.msgs, nil
}

// relocate finds a place to go on when the log does not have the offset to be read next.
//
// If messages were removed before they were read, reading goes on at the oldest one, and
// the missing offsets are a gap. A log that ends before the offset either belongs to a new
// topic, which is read from its beginning, or has lost its newest messages, as after a
// power cut. Then reading goes on at its end: the messages before it were read.
func (f *fetcher) relocate(ctx context.Context, kc *kafka.Client) error {
	first, err := offsetAt(ctx, kc, f.topic, f.partition, FirstOffset)
	if err != nil {
		return err
	}
	end, err := offsetAt(ctx, kc, f.topic, f.partition, LastOffset)
	if err != nil {
		return err
	}
	if first <= f.next && f.next <= end {
		return fmt.Errorf("bus: topic %s partition %d: offset %d is there again: %w", f.topic, f.partition, f.next, kafka.OffsetOutOfRange)
	}
	gap := Gap{Topic: f.topic, Partition: f.partition, From: f.next, To: first}
	if f.next > end && !f.recreated(ctx, first, end) {
		gap.To, gap.Cut = end, true
	}
	f.next = gap.To
	f.sayGap(gap)
	if gap.To > gap.From {
		return fmt.Errorf("bus: topic %s partition %d: offset %d is gone, going on at %d, the oldest there is: messages were removed before they were read (raise the topic's retention)",
			f.topic, f.partition, gap.From, gap.To)
	}
	return fmt.Errorf("bus: %v", gap)
}

// recreated reports whether a topic whose log ends before f.next was removed and made
// again. Kafka gives every topic an id, which shows it for positions of this run. The id of
// a position from an earlier run is not known: then a log that begins at 0 and ends before
// half of f.next counts as new.
func (f *fetcher) recreated(ctx context.Context, first, end int64) bool {
	f.c.mu.Lock()
	before := f.c.ids[f.topic]
	f.c.mu.Unlock()
	now := f.c.askID(ctx, f.topic)
	known := before != (topicID{}) && now != (topicID{})
	if known && (now != before || f.read) {
		return now != before
	}
	return first == 0 && end < f.next/2
}

// topicID is the id that Kafka gives a new topic; zero if it is not known.
type topicID [16]byte

// learnID remembers the id that a topic has when reading begins.
func (c *client) learnID(ctx context.Context, topic string) {
	id := c.askID(ctx, topic)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = make(map[string]topicID)
	}
	c.ids[topic] = id
}

// askID asks for the id of a topic, once.
func (c *client) askID(ctx context.Context, topic string) topicID {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	req.Topics = append(req.Topics, asked)
	res, err := (&checker{cfg: c.cfg}).ask(ctx, req)
	if err != nil {
		return topicID{}
	}
	if meta, ok := res.(*kmsg.MetadataResponse); ok && len(meta.Topics) == 1 && meta.Topics[0].ErrorCode == 0 {
		return meta.Topics[0].TopicID
	}
	return topicID{}
}

// endOf returns the offset behind the newest message of a topic that may be read.
func endOf(ctx context.Context, kc *kafka.Client, topic string, partition int) (int64, error) {
	if committedOnly(topic) {
		return stableEnd(ctx, kc, topic, partition)
	}
	return offsetAt(ctx, kc, topic, partition, LastOffset)
}

// offsetAt returns the offset that FirstOffset or LastOffset stands for now.
func offsetAt(ctx context.Context, kc *kafka.Client, topic string, partition int, at int64) (int64, error) {
	p, err := listOffsets(ctx, kc, topic, kafka.OffsetRequest{Partition: partition, Timestamp: at}, kafka.ReadUncommitted)
	if at == FirstOffset {
		return p.FirstOffset, err
	}
	return p.LastOffset, err
}

// stableEnd returns the offset before which every transaction has ended: readers of
// committed messages get no further.
func stableEnd(ctx context.Context, kc *kafka.Client, topic string, partition int) (int64, error) {
	p, err := listOffsets(ctx, kc, topic, kafka.LastOffsetOf(partition), kafka.ReadCommitted)
	return p.LastOffset, err
}

// listOffsets asks for offsets of one partition.
func listOffsets(ctx context.Context, kc *kafka.Client, topic string, ask kafka.OffsetRequest, isolation kafka.IsolationLevel) (kafka.PartitionOffsets, error) {
	res, err := kc.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {ask}}, IsolationLevel: isolation})
	if err != nil {
		return kafka.PartitionOffsets{}, err
	}
	for _, p := range res.Topics[topic] {
		if p.Partition != ask.Partition {
			continue
		}
		if p.Error != nil {
			return kafka.PartitionOffsets{}, fmt.Errorf("bus: offsets of topic %s partition %d: %w", topic, ask.Partition, p.Error)
		}
		return p, nil
	}
	return kafka.PartitionOffsets{}, fmt.Errorf("bus: offsets of topic %s partition %d: not in the answer", topic, ask.Partition)
}
