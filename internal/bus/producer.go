package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// batchBytes bounds the messages of one request, unless a single one is longer.
// It is below the 1 048 588 bytes that Kafka takes as a batch by default, that is
// without max.message.bytes.
const batchBytes = 900_000

// Producer sends messages. It is safe for several goroutines, but messages of one
// key keep their order only within one Send and from one Send to the next.
type Producer struct {
	c *client

	mu   sync.Mutex
	most map[string]int // partitions of each topic, as many as were ever seen
}

// NewProducer returns a Producer, which connects when it is first used.
func NewProducer(cfg Config) (*Producer, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Producer{c: c, most: make(map[string]int)}, nil
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
	left := make([]*Message, len(msgs))
	for i := range msgs {
		left[i] = &msgs[i]
	}
	for {
		var err error
		if left, err = p.sendOnce(ctx, left); !errors.Is(err, errFewer) {
			return err
		}
	}
}

// fewerGrace is how long a broker may not know that a topic has grown.
const fewerGrace = 2 * time.Second

// errFewer says that a topic has fewer partitions than it had.
var errFewer = errors.New("bus: the topic has fewer partitions now")

// sendOnce sends messages to the topic's present partitions. It returns the messages that
// it did not send.
func (p *Producer) sendOnce(ctx context.Context, msgs []*Message) (left []*Message, err error) {
	var order []place
	parts := make(map[place][]*Message)
	for _, m := range msgs {
		at := place{m.Topic, m.Partition}
		if !m.Pinned {
			n, err := p.count(ctx, m.Topic)
			if err != nil {
				return msgs, err
			}
			at.partition = PartitionOf(m.route(), n)
		}
		if parts[at] == nil {
			order = append(order, at)
		}
		parts[at] = append(parts[at], m)
	}
	for i, at := range order {
		for batch := range batches(parts[at]) {
			if err := p.sendBatch(ctx, at.topic, at.partition, batch); err != nil {
				for _, at := range order[i:] {
					left = append(left, parts[at]...)
				}
				return left, err
			}
			parts[at] = parts[at][len(batch):]
		}
	}
	return nil, nil
}

// count returns how many partitions a topic has. A broker that does not know yet that the
// topic has grown does not change it back: the messages of a key would go from one partition
// to another and back, and readers would get later ones first.
func (p *Producer) count(ctx context.Context, topic string) (int, error) {
	n, err := p.c.count(ctx, topic)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most[topic] = max(p.most[topic], n)
	return p.most[topic], nil
}

// fewer notes that a topic was made again with fewer partitions.
func (p *Producer) fewer(topic string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.most, topic)
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
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return kafka.Murmur2Balancer{}.Balance(kafka.Message{Key: []byte(key)}, ids...)
}

// sendBatch sends msgs in one request.
func (p *Producer) sendBatch(ctx context.Context, topic string, partition int, msgs []*Message) error {
	missing, since := false, time.Now()
	err := p.c.retry(ctx, func(ctx context.Context) error {
		if missing {
			// What this program knows of the topic may be out of date.
			n, err := p.c.partitions(ctx, topic)
			if err != nil {
				return err
			}
			if partition >= n && time.Since(since) < fewerGrace {
				return fmt.Errorf("bus: topic %s has %d partitions so far", topic, n)
			}
			if partition >= n {
				p.fewer(topic)
				return errFewer
			}
			missing = false
		}
		err := p.c.produceOnce(ctx, topic, partition, msgs)
		if err == nil {
			p.c.allowed.Store(true)
		}
		missing = unknownTopic(err)
		return err
	})
	if !errors.Is(err, kafka.MessageSizeTooLarge) && !errors.Is(err, kafka.RecordListTooLarge) {
		return err
	}
	if n := len(msgs); n > 1 { // perhaps only together
		if err := p.sendBatch(ctx, topic, partition, msgs[:n/2]); err != nil {
			return err
		}
		return p.sendBatch(ctx, topic, partition, msgs[n/2:])
	}
	return tooLarge(msgs[0])
}

func tooLarge(m *Message) error {
	return fmt.Errorf("bus: %w: %d bytes with key %q are more than topic %s takes: raise its max.message.bytes (and message.max.bytes of the broker) or send shorter windows",
		ErrTooLarge, m.Size(), m.Key, m.Topic)
}

func (c *client) produceOnce(ctx context.Context, topic string, partition int, msgs []*Message) error {
	res, err := c.kc.Produce(ctx, &kafka.ProduceRequest{
		Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records(msgs)...), Compression: compressionOf(topic),
	})
	if err != nil {
		return err
	}
	if res.Error != nil {
		return fmt.Errorf("bus: topic %s partition %d: %w", topic, partition, res.Error)
	}
	return nil
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

// records returns messages as the client library takes them.
func records(msgs []*Message) []kafka.Record {
	now := time.Now()
	out := make([]kafka.Record, len(msgs))
	for i, m := range msgs {
		out[i] = kafka.Record{Time: now, Key: kafka.NewBytes([]byte(m.Key)), Value: kafka.NewBytes(m.Value)}
		for _, h := range m.Headers {
			out[i].Headers = append(out[i].Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
	}
	return out
}
