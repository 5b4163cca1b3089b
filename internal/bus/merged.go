package bus

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"
)

// ClockMargin is how far the clock of a sensor or a gateway may be ahead of Kafka's.
const ClockMargin = time.Hour

// aheadOfMerge is how many messages of a partition wait to be merged.
const aheadOfMerge = 128

// ReadMerged calls fn for the messages of all partitions of a topic whose events happened at a
// time or later, and for some before; all if it is zero. A partition ends where beyond says that
// its messages lie beyond what is asked for, and behind the message that was the newest when
// ReadMerged began. Messages come by the time at which Kafka got them, and in the order of their
// partition. So messages of a machine come in order, also if the topic has grown in between.
// ReadMerged ends at the first error of fn, which it returns.
func ReadMerged(ctx context.Context, cfg Config, topic string, since time.Time, beyond func(Message) bool, fn func(Message) error) error {
	n, err := Partitions(ctx, cfg, topic)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	within := Range{}
	if !since.IsZero() {
		within.Since = since.Add(-ClockMargin)
	}
	var readers []*partitionReader
	for p := range n {
		r := &partitionReader{partition: p, messages: make(chan Message, aheadOfMerge)}
		readers = append(readers, r)
		wg.Go(func() {
			defer close(r.messages)
			r.err = ReadRange(ctx, cfg, topic, p, within, func(m Message) error {
				if beyond(m) {
					return errBeyond
				}
				return r.put(ctx, m)
			})
		})
	}
	ms := &merge{}
	for _, r := range readers {
		if err := ms.next(r); err != nil {
			return err
		}
	}
	for len(*ms) > 0 {
		r := (*ms)[0]
		heap.Pop(ms)
		if err := fn(r.head); err != nil {
			return err
		}
		if err := ms.next(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// put waits until a message is asked for.
func (r *partitionReader) put(ctx context.Context, m Message) error {
	select {
	case r.messages <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errBeyond ends the reading of a partition.
var errBeyond = errors.New("beyond the time that was asked for")

// partitionReader reads ahead in a partition.
type partitionReader struct {
	partition int
	messages  chan Message
	head      Message
	err       error // once messages is closed
}

// merge orders the partitions that have a message by its time.
type merge []*partitionReader

// next takes the next message of a partition, if there is one.
func (ms *merge) next(r *partitionReader) error {
	m, ok := <-r.messages
	if !ok {
		if errors.Is(r.err, errBeyond) {
			return nil
		}
		return r.err
	}
	r.head = m
	heap.Push(ms, r)
	return nil
}

func (ms merge) Len() int { return len(ms) }
func (ms merge) Less(i, j int) bool {
	return cmp.Or(ms[i].head.Time.Compare(ms[j].head.Time), cmp.Compare(ms[i].partition, ms[j].partition)) < 0
}
func (ms merge) Swap(i, j int) { ms[i], ms[j] = ms[j], ms[i] }
func (ms *merge) Push(x any)   { *ms = append(*ms, x.(*partitionReader)) }

func (ms *merge) Pop() any {
	old := *ms
	last := old[len(old)-1]
	*ms = old[:len(old)-1]
	return last
}
