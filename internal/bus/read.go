package bus

import (
	"context"
	"sync"
	"time"
)

// readWait is how long a fetch waits for the next message.
const readWait = time.Second

// Partitions returns how many partitions a topic has, or ErrNoTopic.
func Partitions(ctx context.Context, cfg Config, topic string) (int, error) {
	c, err := newClient(cfg)
	if err != nil {
		return 0, err
	}
	defer c.close()
	return c.partitions(ctx, topic)
}

// ReadFrom calls fn for the messages of a partition, in order, from offset on,
// which may be FirstOffset or LastOffset. Without follow it ends behind the message that
// was the newest when it began. With follow it goes on until ctx ends and returns the
// error of ctx. It also ends at the first error of fn and returns that error.
func ReadFrom(ctx context.Context, cfg Config, topic string, partition int, offset int64, follow bool, fn func(Message) error) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.partitions(ctx, topic); err != nil {
		return err
	}
	return readPartition(ctx, c, nil, topic, partition, offset, follow, fn)
}

// ReadState calls fn for every committed message of a partition of TopicState that was
// written before it began, from an offset on, which may be FirstOffset. It waits until open
// transactions in the partition end: another group's transaction may stand before a record of this group, and ReadFrom would end
// there. The broker ends the transaction of a dead owner after some ten seconds. ReadState
// also ends at the first error of fn and returns that error.
func ReadState(ctx context.Context, cfg Config, partition int, offset int64, fn func(Message) error) error {
	return ReadRange(ctx, cfg, TopicState, partition, Range{From: offset, Settled: true}, fn)
}

// ReadTopic is ReadFrom for all partitions of a topic at once, from FirstOffset or
// LastOffset. Calls of fn never overlap; the order holds within a partition.
func ReadTopic(ctx context.Context, cfg Config, topic string, offset int64, follow bool, fn func(Message) error) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	defer c.close()
	n, err := c.partitions(ctx, topic)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	memory := newBudget(fetchBudget)
	var (
		one   sync.Mutex
		first error
		wg    sync.WaitGroup
	)
	for p := range n {
		wg.Go(func() {
			err := readPartition(ctx, c, memory, topic, p, offset, follow, func(m Message) error {
				one.Lock()
				defer one.Unlock()
				if first != nil {
					return first // of another partition
				}
				return fn(m)
			})
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

func readPartition(ctx context.Context, c *client, memory *budget, topic string, partition int, offset int64, follow bool, fn func(Message) error) error {
	next := offset
	var end int64
	at := place{topic, partition}
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		if end, err = c.t.endOf(ctx, at); err == nil && offset == FirstOffset {
			next, err = c.t.offset(ctx, at, FirstOffset, false) // so that an empty partition is at its end
		}
		return err
	})
	if err != nil {
		return err
	}
	if offset == LastOffset {
		next = end
	}
	return readUntil(ctx, c, memory, topic, partition, next, end, follow, fn)
}

// readUntil calls fn for the messages of a partition from offset next up to but not
// including end. With follow it goes on without an end.
func readUntil(ctx context.Context, c *client, memory *budget, topic string, partition int, next, end int64, follow bool, fn func(Message) error) error {
	f := &fetcher{c: c, topic: topic, partition: partition, next: next, budget: memory, busy: true}
	defer func() { f.done(f.held) }()
	empty := 0 // fetches in a row without a message, although the leader has some
	for follow || f.next < end {
		before := f.next
		msgs, err := f.fetch(ctx, c.cfg.readWait())
		if err != nil {
			return err
		}
		for _, m := range msgs {
			if !follow && m.Offset >= end {
				return nil
			}
			if m.Damage != nil {
				c.sayDamage(m)
				continue
			}
			if err := fn(m); err != nil {
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
		case follow:
		case empty == 2:
			c.t.reset() // perhaps this connection is stuck
		case empty == 4:
			return nil // compaction removed the last messages
		}
		if follow && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
