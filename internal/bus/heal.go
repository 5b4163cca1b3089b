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

// commitEmpty commits a transaction of these partitions and the group's positions that writes nothing.
func (t *Txn) commitEmpty(ctx context.Context, to []place) error {
	if len(to) > 0 {
		if err := t.addPartitions(ctx, to); err != nil {
			return err
		}
	}
	if err := t.addOffsets(ctx); err != nil {
		return err
	}
	return t.repeat(ctx, "commit an empty transaction", func(ctx context.Context) error { return t.end(ctx, true) })
}

// sayHealed says which partitions are stuck no more. In the others another group has a long transaction.
func (t *Txn) sayHealed(stuck, left map[place]int64) {
	for at, from := range stuck {
		if _, still := left[at]; !still && t.c.cfg.OnHeal != nil {
			t.c.cfg.OnHeal(fmt.Sprintf("topic %s partition %d: a broker that stopped had left a transaction of %s open, and messages from offset %d on could not be read: closed it with an empty one",
				at.topic, at.partition, t.id, from))
		}
	}
}

// healIfStuck closes this partition's last transaction if a broker that was killed left
// it open. When Apache Kafka stops in the middle of a commit, it may say afterwards that
// the commit is done although the partitions do not have it. Then readers see neither
// the transaction nor any message behind it. Committing an empty transaction on the same
// partitions closes it.
//
// It looks at the topics that a monitor writes, in the partition with this
// number. If a transaction writes to other partitions, its own commit closes them.
func (t *Txn) healIfStuck(ctx context.Context) error {
	stuck, err := t.stuck(ctx, nil)
	if err == nil && len(stuck) > 0 {
		stuck, err = t.stuck(ctx, stuck)
	}
	if err != nil || len(stuck) == 0 {
		return err
	}
	if err := t.commitEmpty(ctx, slices.Collect(maps.Keys(stuck))); err != nil {
		return err
	}
	left := stuck
	for i := 0; i < healLooks && err == nil && len(left) > 0; i++ { // the marks follow the broker's answer
		left, err = t.stuck(ctx, left)
	}
	t.sayHealed(stuck, left)
	return err
}

// stuck returns the partitions in which messages lie behind an open transaction, with the
// offset where readers stop. With an earlier answer it waits a moment, and returns the
// partitions in which readers still stop at the same offset.
func (t *Txn) stuck(ctx context.Context, before map[place]int64) (map[place]int64, error) {
	if before != nil {
		if err := pause(ctx, stuckAfter); err != nil {
			return nil, err
		}
	}
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
			end, err := t.c.t.offset(ctx, at, lastOffset, false)
			if err != nil {
				return err
			}
			stable, err := t.c.t.offset(ctx, at, lastOffset, true)
			if err != nil {
				return err
			}
			if was, known := before[at]; stable < end && (before == nil || known && was == stable) {
				found[at] = stable
			}
		}
		return nil
	})
	return found, err
}
