package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// fetcher reads one partition. It takes the answers apart itself, since the client
// library takes memory for every length that it finds in them, believes the topics
// of compressed batches, and hides which transactions were aborted.
//
// Windows are read whether or not their transaction has been committed: nothing of
// ours writes them in one, and a transaction that a stranger leaves open must not
// hold up the machines. All other topics are read up to the oldest transaction that
// is open, without what was aborted.
type fetcher struct {
	c         *client
	topic     string
	partition int
	next      int64 // offset to read next, or FirstOffset or LastOffset
	high      int64 // offset behind the newest message that may be read, as of the last fetch
	memory    int   // that the messages of the last fetch take
	corrupt   int   // fetches in a row whose first batch had a wrong checksum
	whole     bool  // offsets that are missing are reported: the topic is not compacted
	stall     stallWatch
}

// committedOnly reports whether a topic is read without what is not committed.
func committedOnly(topic string) bool { return topic != TopicWindows }

// fetch asks once, waiting up to wait for a message to come, and repeats only
// failures. It may return no messages.
func (f *fetcher) fetch(ctx context.Context, wait time.Duration) (msgs []Message, err error) {
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

// resolve returns the offset that f.next stands for.
func (f *fetcher) resolve(ctx context.Context, kc *kafka.Client) (int64, error) {
	if f.next == LastOffset {
		return endOf(ctx, kc, f.topic, f.partition)
	}
	return offsetAt(ctx, kc, f.topic, f.partition, FirstOffset)
}

func (f *fetcher) fetchOnce(ctx context.Context, kc *kafka.Client, wait time.Duration) ([]Message, error) {
	req := &fetch.Request{
		ReplicaID: -1, MaxWaitTime: int32(max(wait, time.Millisecond).Milliseconds()), MinBytes: 1, MaxBytes: MaxMessage, SessionID: -1, SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{Topic: f.topic, Partitions: []fetch.RequestPartition{{
			Partition: int32(f.partition), CurrentLeaderEpoch: -1, FetchOffset: f.next, LogStartOffset: -1, PartitionMaxBytes: MaxMessage,
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
	f.corrupt, f.next, f.memory = 0, out.next, out.memory
	for _, g := range out.gaps {
		f.sayGap(g[0], g[1])
	}
	return out.msgs, nil
}

// relocate finds a place to go on when messages were removed before they were
// read, or the topic was made anew. The offsets of the messages show the gap.
func (f *fetcher) relocate(ctx context.Context, kc *kafka.Client) error {
	first, err := offsetAt(ctx, kc, f.topic, f.partition, FirstOffset)
	if err != nil {
		return err
	}
	lost := f.next
	f.next = first
	f.sayGap(lost, first)
	return fmt.Errorf("bus: topic %s partition %d: offset %d is gone, going on at %d, the oldest there is: "+
		"messages were removed before they were read (raise the topic's retention), or the topic was made anew", f.topic, f.partition, lost, first)
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
