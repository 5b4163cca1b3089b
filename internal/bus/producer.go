package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/segmentio/kafka-go"
)

// batchBytes bounds the messages of one request, unless a single one is longer.
// It is below the 1 048 588 bytes that Kafka takes as a batch by default, that is
// without max.message.bytes.
const batchBytes = 900_000

// Producer sends messages. It is safe for several goroutines, but messages of one
// key keep their order only within one Send and from one Send to the next.
type Producer struct{ c *client }

// NewProducer returns a Producer, which connects when it is first used.
func NewProducer(cfg Config) (*Producer, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Producer{c}, nil
}

// Close closes the connections.
func (p *Producer) Close() { p.c.close() }

// Send returns nil once all replicas in sync have every message. Messages of one
// partition go in as few requests as their size allows, in order, one request at
// a time; the partition follows from the key as in every Kafka client (Murmur2).
//
// Failures are tried again until ctx ends. A request is also sent again when Send does
// not know whether Kafka executed it, so messages may be there twice. Errors that
// trying again does not change are ErrTooLarge, ErrNoTopic and a missing right; some
// of the messages may have been written then.
func (p *Producer) Send(ctx context.Context, msgs []Message) error {
	left := pointers(msgs)
	for {
		var err error
		if left, err = p.sendOnce(ctx, left); !errors.Is(err, errFewer) {
			return err
		}
	}
}

func pointers(msgs []Message) []*Message {
	all := make([]*Message, len(msgs))
	for i := range msgs {
		all[i] = &msgs[i]
	}
	return all
}

// errFewer says that a topic was made again with fewer partitions.
var errFewer = errors.New("bus: the topic has fewer partitions now")

// sendOnce sends messages to the topic's present partitions. It returns the messages that
// it did not send.
func (p *Producer) sendOnce(ctx context.Context, msgs []*Message) (left []*Message, err error) {
	parts, err := p.c.divide(ctx, msgs)
	if err != nil {
		return msgs, err
	}
	for i, part := range parts {
		for batch := range batches(part.msgs) {
			if err := p.sendBatch(ctx, part.place, batch); err != nil {
				for _, part := range parts[i:] {
					left = append(left, part.msgs...)
				}
				return left, err
			}
			parts[i].msgs = parts[i].msgs[len(batch):]
		}
	}
	return nil, nil
}

// messagesTo are messages for one partition, in order.
type messagesTo struct {
	place
	msgs []*Message
}

// divide divides messages by the partitions they go to.
func (c *client) divide(ctx context.Context, msgs []*Message) (parts []messagesTo, err error) {
	for _, m := range msgs {
		at := place{m.Topic, m.Partition}
		if !m.Pinned {
			n, err := c.count(ctx, m.Topic)
			if err != nil {
				return nil, err
			}
			at.partition = PartitionOf(cmp.Or(m.Route, m.Key), n)
		}
		i := slices.IndexFunc(parts, func(p messagesTo) bool { return p.place == at })
		if i < 0 {
			i, parts = len(parts), append(parts, messagesTo{place: at})
		}
		parts[i].msgs = append(parts[i].msgs, m)
	}
	return parts, nil
}

// batches divides messages into requests: as few as batchBytes allows, in order.
func batches(msgs []*Message) iter.Seq[[]*Message] {
	return func(yield func([]*Message) bool) {
		for len(msgs) > 0 {
			n, size := 0, 0
			for n < len(msgs) && (n == 0 || size+msgs[n].Size() <= batchBytes) {
				size += msgs[n].Size()
				n++
			}
			if !yield(msgs[:n:n]) {
				return
			}
			msgs = msgs[n:]
		}
	}
}

// place is one partition of a topic.
type place struct {
	topic     string
	partition int
}

// PartitionOf returns the partition, of n, in which messages of a key are.
func PartitionOf(key string, n int) int {
	return kafka.Murmur2Balancer{}.Balance(kafka.Message{Key: []byte(key)}, upTo(n)...)
}

// sendBatch sends msgs in one request.
func (p *Producer) sendBatch(ctx context.Context, to place, msgs []*Message) error {
	err := p.c.retry(ctx, func(ctx context.Context) error {
		if n, err := p.c.count(ctx, to.topic); err != nil {
			return err
		} else if to.partition >= n && !msgs[0].Pinned {
			return errFewer
		}
		err := p.c.produceOnce(ctx, to, msgs)
		if err == nil {
			p.c.allowed.Store(true)
		}
		return err
	})
	if !errors.Is(err, kafka.MessageSizeTooLarge) && !errors.Is(err, kafka.RecordListTooLarge) {
		return err
	}
	if n := len(msgs); n > 1 { // perhaps only together
		if err := p.sendBatch(ctx, to, msgs[:n/2]); err != nil {
			return err
		}
		return p.sendBatch(ctx, to, msgs[n/2:])
	}
	return tooLarge(msgs[0])
}

func tooLarge(m *Message) error {
	return fmt.Errorf("bus: %w: %d bytes with key %q are more than topic %s takes: raise its max.message.bytes (and message.max.bytes of the broker) or send shorter windows",
		ErrTooLarge, m.Size(), m.Key, m.Topic)
}

// compressionOf returns how batches of a topic are compressed. Half a message of features is
// the same in all of them: schema, lengths and headers. Snappy takes a fifth off a message that
// is sent alone and two fifths off a batch of them, in some 10 µs. The samples of windows do
// not shrink, and other messages are few or for any reader.
func compressionOf(topic string) kafka.Compression {
	if topic == TopicFeatures {
		return kafka.Snappy
	}
	return 0
}
