package bus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ClockMargin is how far the clock of a sensor or a gateway may be ahead of Kafka's.
const ClockMargin = time.Hour

// aheadOfMerge is how many messages of a partition wait to be merged.
const aheadOfMerge = 128

// ReadMerged calls fn for the messages of all partitions of a topic whose events happened at a
// time or later, and for some before; all if it is zero. A partition ends where beyond, if it is not nil, says that
// its messages lie beyond what is asked for, and behind the message that was the newest when
// ReadMerged began. Messages come by the time at which Kafka got them, and in the order of their
// partition. So messages of a machine come in order, also if the topic has grown in between.
// ReadMerged ends at the first error of fn, which it returns.
func ReadMerged(ctx context.Context, cfg Config, topic string, since time.Time, beyond func(Message) bool, fn func(Message) error) error {
	c, n, err := openTopic(ctx, cfg, topic)
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	all := reading{c: c, topic: topic} // what waits to be merged keeps no other partition from reading: each has memory of its own
	if !since.IsZero() {
		all.Since = since.Add(-ClockMargin)
	}
	var readers []*partitionReader // that have a message, in the order of their partitions
	for p := range n {
		r := &partitionReader{messages: make(chan Message, aheadOfMerge)}
		readers = append(readers, r)
		wg.Go(func() {
			defer close(r.messages)
			of := all
			of.fn = func(m Message) error {
				if beyond != nil && beyond(m) {
					return errBeyond
				}
				select {
				case r.messages <- m:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			r.err = of.partition(ctx, p)
		})
	}
	waiting := slices.Clone(readers)
	for {
		for _, r := range waiting {
			if more, err := r.next(); err != nil {
				return err
			} else if !more {
				readers = slices.DeleteFunc(readers, func(o *partitionReader) bool { return o == r })
			}
		}
		if len(readers) == 0 {
			return ctx.Err()
		}
		first := slices.MinFunc(readers, func(a, b *partitionReader) int { return a.head.Time.Compare(b.head.Time) })
		if err := fn(first.head); err != nil {
			return err
		}
		waiting = append(waiting[:0], first)
	}
}

// errBeyond ends the reading of a partition.
var errBeyond = errors.New("beyond the time that was asked for")

// partitionReader reads ahead in a partition.
type partitionReader struct {
	messages chan Message
	head     Message
	err      error // once messages is closed
}

// next takes the next message of the partition, and reports whether there is one.
func (r *partitionReader) next() (more bool, err error) {
	if r.head, more = <-r.messages; !more && !errors.Is(r.err, errBeyond) {
		err = r.err
	}
	return more, err
}
