package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// fetcher reads one partition. It asks with Client.Fetch, not with a
// kafka.Reader: that checks the checksum of every batch, tells control records
// from messages, reads nothing ahead, and shows every error. Records of aborted
// transactions come all the same, and are judged like others: a window is known by
// its headers and its checksum, whoever sent it. To leave them out would mean to
// read no further than the oldest transaction that is open, so that one that its
// writer left open would hold up every reader.
type fetcher struct {
	c         *client
	topic     string
	partition int
	next      int64 // offset to read next, or FirstOffset or LastOffset
	high      int64 // offset behind the newest message, as of the last fetch
	whole     bool  // offsets that are missing are reported: the topic is not compacted
	stall     stallWatch
}

// fetch asks once, waiting up to wait for a message to come, and repeats only
// failures. It may return no messages.
func (f *fetcher) fetch(ctx context.Context, wait time.Duration) (msgs []Message, err error) {
	err = f.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		if f.next < 0 {
			at, err := offsetAt(ctx, kc, f.topic, f.partition, f.next)
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

func (f *fetcher) fetchOnce(ctx context.Context, kc *kafka.Client, wait time.Duration) ([]Message, error) {
	res, err := kc.Fetch(ctx, &kafka.FetchRequest{
		Topic: f.topic, Partition: f.partition, Offset: f.next,
		MinBytes: 1, MaxBytes: MaxMessage, MaxWait: max(wait, time.Millisecond),
	})
	if err != nil {
		return nil, err
	}
	if res.Error != nil {
		return nil, fmt.Errorf("bus: topic %s partition %d offset %d: %w", f.topic, f.partition, f.next, res.Error)
	}
	f.c.allowed.Store(true)
	f.high = res.HighWatermark
	stream, ok := res.Records.(*protocol.RecordStream)
	if !ok {
		return nil, nil
	}
	var (
		msgs []Message
		gaps [][2]int64
	)
	next := f.next
	for _, batch := range stream.Records {
		inner := batch
		control, isControl := batch.(*protocol.ControlBatch)
		if isControl {
			inner = control.Records
		}
		for {
			rec, err := inner.ReadRecord()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("bus: topic %s partition %d offset %d: %w", f.topic, f.partition, next, err)
			}
			m, err := f.message(rec)
			if err != nil {
				return nil, fmt.Errorf("bus: topic %s partition %d offset %d: %w", f.topic, f.partition, next, err)
			}
			if m.Offset < next {
				continue // a batch may begin before the offset that was asked for
			}
			if m.Offset > next {
				gaps = append(gaps, [2]int64{next, m.Offset})
			}
			next = m.Offset + 1
			if !isControl {
				msgs = append(msgs, m)
			}
		}
	}
	if len(stream.Records) > 0 && next == f.next {
		next++ // compaction left an empty batch here
	}
	f.next = next
	for _, g := range gaps {
		f.sayGap(g[0], g[1])
	}
	return msgs, nil
}

// message copies a record and gives its memory back.
func (f *fetcher) message(rec *kafka.Record) (Message, error) {
	key, err := readBytes(rec.Key)
	if err != nil {
		return Message{}, err
	}
	value, err := readBytes(rec.Value)
	if err != nil {
		return Message{}, err
	}
	m := Message{
		Topic: f.topic, Partition: f.partition, Offset: rec.Offset,
		Key: string(key), Time: rec.Time.UTC(), Value: value,
	}
	for _, h := range rec.Headers {
		m.Headers = append(m.Headers, Header{Key: h.Key, Value: h.Value})
	}
	return m, nil
}

func readBytes(b kafka.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	defer b.Close()
	return kafka.ReadAll(b)
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
