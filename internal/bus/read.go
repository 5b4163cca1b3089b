package bus

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// readWait is how long a fetch waits for the next message.
const readWait = time.Second

// openTopic returns a client and how many partitions a topic has, or ErrNoTopic.
func openTopic(ctx context.Context, cfg Config, topic string) (c *client, partitions int, err error) {
	if c, err = newClient(cfg); err != nil {
		return nil, 0, err
	}
	if partitions, err = c.partitions(ctx, topic); err != nil {
		c.close()
		return nil, 0, err
	}
	return c, partitions, nil
}

// Partitions returns how many partitions a topic has, or ErrNoTopic.
func Partitions(ctx context.Context, cfg Config, topic string) (int, error) {
	c, n, err := openTopic(ctx, cfg, topic)
	if err == nil {
		c.close()
	}
	return n, err
}

// Identify returns the id that Kafka gave a topic, which another topic of the same name does not have, and how many
// partitions it has, or ErrNoTopic. The id is empty if the broker gives none.
func Identify(ctx context.Context, cfg Config, topic string) (id string, partitions int, err error) {
	c, n, err := openTopic(ctx, cfg, topic)
	if err != nil {
		return "", 0, err
	}
	defer c.close()
	now, err := c.t.know(ctx, false, topic) // as openTopic has just asked
	if err == nil && now.ids[topic] != (topicID{}) {
		id = fmt.Sprintf("%x", now.ids[topic])
	}
	return id, n, err
}

// Bounds returns the offset of the first message that a partition holds, and the one
// behind its last. It asks once.
func Bounds(ctx context.Context, cfg Config, topic string, partition int) (first, end int64, err error) {
	c, err := newClient(cfg)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	at := place{topic, partition}
	if first, err = c.t.offset(ctx, at, FirstOffset, false); err == nil {
		end, err = c.t.endOf(ctx, at)
	}
	return first, end, err
}

// Range is a part of a topic: in every partition the messages from offset From up to but
// not including To. The zero Range is the whole topic.
type Range struct {
	From, To int64     // From may be FirstOffset; To 0: no end
	Since    time.Time // if not zero: without messages that Kafka got before

	// Settled says that ReadRange waits until transactions that are open in the partition end:
	// another group's transaction may stand before a record of this group, and ReadRange would
	// end there. The broker ends the transaction of a dead owner after some ten seconds.
	Settled bool
}

// ReadFrom calls fn for the messages of a partition, in order, from offset on,
// which may be FirstOffset or lastOffset. Without follow it ends behind the message that
// was the newest when it began. With follow it goes on until ctx ends and returns the
// error of ctx. It also ends at the first error of fn and returns that error.
func ReadFrom(ctx context.Context, cfg Config, topic string, partition int, offset int64, follow bool, fn func(Message) error) error {
	return readPartition(ctx, cfg, partition, reading{topic: topic, Range: Range{From: offset}, plain: true, follow: follow, fn: fn})
}

// ReadRange calls fn for the messages of a partition within the range, in order. It ends
// behind the message that was the newest when it began. It also ends at the first error
// of fn and returns that error.
func ReadRange(ctx context.Context, cfg Config, topic string, partition int, r Range, fn func(Message) error) error {
	return readPartition(ctx, cfg, partition, reading{topic: topic, Range: r, fn: fn})
}

// ReadTopic is ReadFrom for all partitions of a topic at once, from FirstOffset or
// lastOffset. Calls of fn never overlap; the order holds within a partition.
func ReadTopic(ctx context.Context, cfg Config, topic string, offset int64, follow bool, fn func(Message) error) error {
	c, n, err := openTopic(ctx, cfg, topic)
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		one   sync.Mutex
		first error
		wg    sync.WaitGroup
	)
	r := reading{c: c, topic: topic, Range: Range{From: offset}, plain: true, follow: follow, memory: newBudget(fetchBudget)}
	r.fn = func(m Message) error {
		one.Lock()
		defer one.Unlock()
		if first != nil {
			return first // of another partition
		}
		return fn(m)
	}
	for p := range n {
		wg.Go(func() {
			err := r.partition(ctx, p)
			one.Lock()
			defer one.Unlock()
			if err != nil && first == nil {
				first = err
				cancel()
			}
		})
	}
	wg.Wait()
	return first
}

func readPartition(ctx context.Context, cfg Config, partition int, r reading) (err error) {
	if r.c, _, err = openTopic(ctx, cfg, r.topic); err != nil {
		return err
	}
	defer r.c.close()
	return r.partition(ctx, partition)
}

// reading is what ReadFrom, ReadRange and ReadTopic have in common.
type reading struct {
	c     *client
	topic string
	Range
	plain  bool    // From may be lastOffset, and OnRetry hears that messages from From on are gone
	follow bool    // go on at the end
	memory *budget // that partitions share; nil: each has its own
	fn     func(Message) error
}

// bounds returns the offset to begin at and the one behind the last message.
func (r *reading) bounds(ctx context.Context, at place) (next, end int64, err error) {
	if end, err = r.c.t.offset(ctx, at, lastOffset, committedOnly(r.topic) && !r.Settled); err != nil {
		return 0, 0, err
	}
	switch {
	case r.plain && r.From == lastOffset:
		next = end
	case r.plain && r.From >= 0:
		next = r.From
	default:
		if next, err = r.c.t.offset(ctx, at, FirstOffset, false); err != nil {
			return 0, 0, err
		}
		next = max(next, r.From)
	}
	if r.Since.UnixMilli() > 0 { // to Kafka, times of 0 and less have other meanings
		since, err := r.c.t.offset(ctx, at, r.Since.UnixMilli(), false)
		if err != nil {
			return 0, 0, err
		}
		if since < 0 {
			since = end // there is none
		}
		next = max(next, since)
	}
	if r.To > 0 {
		end = min(end, r.To)
	}
	return next, end, nil
}

// partition calls fn for the messages of a partition.
func (r *reading) partition(ctx context.Context, partition int) error {
	f := &fetcher{c: r.c, place: place{r.topic, partition}, budget: cmp.Or(r.memory, newBudget(fetchBudget)), busy: true}
	var end int64
	err := r.c.retry(ctx, func(ctx context.Context) (err error) {
		f.next, end, err = r.bounds(ctx, f.place)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { f.done(f.held) }()
	empty := 0 // fetches in a row without a message, although the leader has some
	for r.follow || f.next < end {
		before := f.next
		msgs, err := f.fetch(ctx, r.c.cfg.network().ReadWait)
		if err != nil {
			return err
		}
		for _, m := range msgs {
			if !r.follow && m.Offset >= end {
				return nil
			}
			if m.Damage != nil {
				r.c.sayDamage(m)
				continue
			}
			if err := r.fn(m); err != nil {
				return err
			}
		}
		f.done(f.held)
		// A new leader does not know at once how far its followers are. Until then it
		// returns fewer messages than there are.
		if empty++; f.next != before || f.high < end {
			empty = 0
		}
		switch {
		case r.follow && ctx.Err() != nil:
			return ctx.Err()
		case r.follow:
		case empty == 2:
			r.c.t.reset() // perhaps this connection is stuck
		case empty == 4:
			return nil // compaction removed the last messages
		}
	}
	return nil
}
