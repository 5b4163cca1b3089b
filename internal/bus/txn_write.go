package bus

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// outgoing holds the messages that a transaction still has to write to one partition.
type outgoing struct {
	at       place
	left     [][]*Message // batches, in order
	sequence int32        // of the first message of the first batch
	raw      *batch       // the encoded first batch, the same bytes in each attempt; nil: not yet encoded
	unknown  bool         // raw was sent, and no answer says whether it was written
}

// plan divides messages into partitions and batches.
func (t *Txn) plan(ctx context.Context, msgs []Message) (outs []*outgoing, err error) {
	parts, err := t.c.divide(ctx, pointers(msgs))
	for _, part := range parts {
		outs = append(outs, &outgoing{at: part.place, left: slices.Collect(batches(part.msgs)), sequence: t.sequence[part.place]})
	}
	return outs, err
}

// produce writes all batches, one of each partition at a time: a request may hold only
// one.
func (t *Txn) produce(ctx context.Context, outs []*outgoing) error {
	defer func() {
		for _, o := range outs {
			t.sequence[o.at] = o.sequence
		}
	}()
	for left := slices.Clone(outs); len(left) > 0; {
		if err := t.repeat(ctx, "write", func(ctx context.Context) error { return t.produceOnce(ctx, left) }); err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(o *outgoing) bool { return len(o.left) == 0 })
	}
	return nil
}

// produceOnce sends the first batch of every partition that has one left, to all
// leaders at once.
func (t *Txn) produceOnce(ctx context.Context, outs []*outgoing) error {
	byLeader, err := t.byLeader(ctx, outs)
	if err != nil {
		return err
	}
	results := make(chan error, len(byLeader))
	for leader, outs := range byLeader {
		go func() { results <- t.produceTo(ctx, leader, outs) }()
	}
	for range byLeader {
		err = t.worse(err, <-results)
	}
	return err
}

// byLeader groups the outs that have batches left by the broker that leads their partition,
// and encodes their first batches.
func (t *Txn) byLeader(ctx context.Context, outs []*outgoing) (map[int32][]*outgoing, error) {
	var topics []string
	for _, o := range outs {
		topics = append(topics, o.at.topic)
	}
	now, err := t.c.t.know(ctx, false, topics...)
	if err != nil {
		return nil, err
	}
	found := make(map[int32][]*outgoing)
	for _, o := range outs {
		if len(o.left) == 0 {
			continue
		}
		leader, err := now.leader(o.at)
		if err != nil {
			return nil, t.missing(ctx, o.at, err)
		}
		if o.raw == nil {
			o.raw = new(encodeBatch(o.at, o.left[0], producing{protocol.Transactional, t.producer, t.epoch, o.sequence}))
		}
		found[leader] = append(found[leader], o)
	}
	return found, nil
}

// produceTo sends one request to a leader and notes the answer for each partition.
func (t *Txn) produceTo(ctx context.Context, leader int32, outs []*outgoing) error {
	req := &produceRequest{transaction: t.id, timeout: txnCall}
	for _, o := range outs {
		o.unknown = true
		req.batches = append(req.batches, *o.raw)
	}
	res, err := t.c.t.produce(ctx, leader, req)
	if err != nil {
		return err
	}
	for _, topic := range res.Topics {
		for _, p := range topic.Partitions {
			at := place{topic.Topic, int(p.Partition)}
			i := slices.IndexFunc(outs, func(o *outgoing) bool { return o.at == at })
			if i < 0 {
				return fmt.Errorf("bus: topic %s partition %d: answer without a request", at.topic, at.partition)
			}
			err = t.worse(err, t.produced(ctx, outs[i], kafka.Error(p.ErrorCode)))
		}
	}
	if i := slices.IndexFunc(outs, func(o *outgoing) bool { return o.unknown }); i >= 0 && err == nil {
		err = fmt.Errorf("bus: topic %s partition %d: not in the answer", outs[i].at.topic, outs[i].at.partition)
	}
	return err
}

// produced notes the leader's answer about the first batch of o.
func (t *Txn) produced(ctx context.Context, o *outgoing, code kafka.Error) error {
	batch := o.left[0]
	switch code {
	case 0:
		o.sequence = (o.sequence + int32(len(batch))) & math.MaxInt32
		o.left = o.left[1:]
	case kafka.MessageSizeTooLarge, kafka.RecordListTooLarge:
		if len(batch) == 1 {
			o.unknown = false
			return tooLarge(batch[0])
		}
		half := len(batch) / 2 // perhaps only the batch is too large
		o.left = slices.Concat([][]*Message{batch[:half], batch[half:]}, o.left[1:])
	default:
		o.unknown = classifyCode(code) == again
		return t.missing(ctx, o.at, code)
	}
	o.raw, o.unknown = nil, false
	return nil
}

// worse returns the graver of two errors, the first one of equals.
func (t *Txn) worse(a, b error) error {
	if b != nil && (a == nil || t.classify(b) > t.classify(a)) {
		return b
	}
	return a
}
