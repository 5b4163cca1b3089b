package bus

import (
	"context"
	"time"
)

// Range is a part of a topic: in every partition the messages from offset From up to but
// not including To. The zero Range is the whole topic.
type Range struct {
	From, To int64     // To 0: no end
	Since    time.Time // if not zero: without messages that Kafka got before
	Settled  bool      // also messages behind transactions that are open now: ReadRange waits until these have ended, as ReadState does
}

// Bounds returns the offset of the first message that a partition holds, and the one
// behind its last. It asks once.
func Bounds(ctx context.Context, cfg Config, topic string, partition int) (first, end int64, err error) {
	c, err := newClient(cfg)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	at := place{topic, partition}
	if first, err = c.t.offset(ctx, at, FirstOffset, false); err == nil {
		end, err = c.t.endOf(ctx, at)
	}
	return first, end, err
}

// ReadRange calls fn for the messages of a partition within the range, in order. It ends
// behind the message that was the newest when it began. It also ends at the first error
// of fn and returns that error.
func ReadRange(ctx context.Context, cfg Config, topic string, partition int, r Range, fn func(Message) error) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.partitions(ctx, topic); err != nil {
		return err
	}
	at := place{topic, partition}
	var first, end int64
	err = c.retry(ctx, func(ctx context.Context) (err error) {
		if end, err = c.t.offset(ctx, at, LastOffset, committedOnly(topic) && !r.Settled); err != nil {
			return err
		}
		if first, err = c.t.offset(ctx, at, FirstOffset, false); err != nil {
			return err
		}
		if r.Since.UnixMilli() > 0 { // to Kafka, times of 0 and less have other meanings
			since, err := c.t.offsetOf(ctx, at, r.Since, end)
			if err != nil {
				return err
			}
			first = max(first, since)
		}
		first = max(first, r.From)
		if r.To > 0 {
			end = min(end, r.To)
		}
		return nil
	})
	if err != nil || first >= end {
		return err
	}
	return readUntil(ctx, c, nil, topic, partition, first, end, false, fn)
}

// offsetOf returns the offset of the first message that Kafka got at that time or
// later, or end if there is none.
func (t *transport) offsetOf(ctx context.Context, at place, since time.Time, end int64) (int64, error) {
	offset, err := t.offset(ctx, at, since.UnixMilli(), false)
	if err == nil && offset < 0 {
		return end, nil
	}
	return offset, err
}
