package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// stuckAfter is how long readers of committed messages must see no progress
	// before a transaction counts as left open for ever.
	stuckAfter = 100 * time.Millisecond
	// healLooks is how often healIfStuck looks whether it has closed the transaction.
	healLooks = 10
)

// healIfStuck closes this partition's last transaction if a broker that was killed left
// it open. When Apache Kafka stops in the middle of a commit, it may say afterwards that
// the commit is done although the partitions do not have it. Then readers see neither
// the transaction nor any message behind it. Committing an empty transaction on the same
// partitions closes it.
//
// healIfStuck looks at the topics that a monitor writes, in the partition with this
// number. If a transaction writes to other partitions, its own commit closes them.
func (t *Txn) healIfStuck(ctx context.Context) error {
	stuck, err := t.stuck(ctx)
	if err != nil || len(stuck) == 0 {
		return err
	}
	still, err := t.stillStuck(ctx, stuck)
	if err != nil || len(still) == 0 {
		return err
	}
	if err := t.closeEmpty(ctx, slices.Collect(maps.Keys(still))); err != nil {
		return err
	}
	left := still
	for range healLooks { // the marks follow the broker's answer
		if left, err = t.stillStuck(ctx, left); err != nil || len(left) == 0 {
			break
		}
	}
	for at, from := range still {
		if _, was := left[at]; !was && t.c.cfg.OnHeal != nil { // otherwise another group has a long transaction
			t.c.cfg.OnHeal(fmt.Sprintf("topic %s partition %d: a broker that stopped had left a transaction of %s open, and messages from offset %d on could not be read: closed it with an empty one",
				at.topic, at.partition, t.id, from))
		}
	}
	return err
}

// stillStuck waits a moment and returns the partitions of before in which readers still
// stop at the same offset.
func (t *Txn) stillStuck(ctx context.Context, before map[place]int64) (map[place]int64, error) {
	select {
	case <-time.After(stuckAfter):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now, err := t.stuck(ctx)
	maps.DeleteFunc(now, func(at place, from int64) bool {
		was, known := before[at]
		return !known || was != from
	})
	return now, err
}

// stuck returns the partitions in which messages lie behind an open transaction,
// with the offset where readers stop.
func (t *Txn) stuck(ctx context.Context) (map[place]int64, error) {
	found := make(map[place]int64)
	err := t.repeat(ctx, "look for open transactions", func(ctx context.Context) error {
		clear(found)
		topics := []string{TopicState, TopicResults, TopicAlerts}
		now, err := t.c.t.know(ctx, false, topics...)
		if err != nil {
			return err
		}
		for _, topic := range topics {
			at := place{topic, t.p.ID()}
			if _, ok := now.Topics[topic].Partitions[int32(at.partition)]; !ok {
				continue
			}
			end, err := t.c.t.offset(ctx, at, LastOffset, false)
			if err != nil {
				return err
			}
			stable, err := t.c.t.offset(ctx, at, LastOffset, true)
			if err != nil {
				return err
			}
			if stable < end {
				found[at] = stable
			}
		}
		return nil
	})
	return found, err
}

// closeEmpty commits a transaction that writes nothing.
func (t *Txn) closeEmpty(ctx context.Context, places []place) error {
	if err := t.addPartitions(ctx, places); err != nil {
		return err
	}
	if err := t.addOffsets(ctx); err != nil {
		return err
	}
	return t.repeat(ctx, "commit an empty transaction", func(ctx context.Context) error { return t.end(ctx, true) })
}
