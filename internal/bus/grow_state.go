package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// stateSeparator separates the parts of a key of TopicState: GROUP, MACHINE and, for a
// tool, more. A key of an older program is the machine alone.
const stateSeparator = "\x1f"

// stateMachine returns the machine that a record of TopicState belongs to.
func stateMachine(key string) string {
	if parts := strings.SplitN(key, stateSeparator, 3); len(parts) > 1 {
		return parts[1]
	}
	return key
}

// stateRecord is where the last message of a key lies in a partition.
type stateRecord struct {
	key       string
	partition int
	offset    int64
	at        time.Time // when it arrived
}

// moveState copies the last record of every key to its own partition, if it is not there
// yet, and then removes it from the others.
func (g *grower) moveState(ctx context.Context) (moved bool, err error) {
	all, err := g.readState(ctx)
	if err != nil {
		return false, err
	}
	copies := make(map[int][]stateRecord) // by the partition they lie in
	var remove []stateRecord
	n := 0
	machines := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		machine := stateMachine(key)
		home := PartitionOf(machine, g.partitions)
		var newest *stateRecord // outside its home
		athome := false
		for i, r := range all[key] {
			if r.partition == home {
				athome = true // and not older than those elsewhere, from which it was copied
				continue
			}
			remove = append(remove, r)
			if newest == nil || r.at.After(newest.at) {
				newest = &all[key][i]
			}
		}
		if newest != nil && !athome {
			copies[newest.partition] = append(copies[newest.partition], *newest)
			machines[machine] = true
			n++
		}
	}
	if len(remove) == 0 {
		return false, nil
	}
	for _, partition := range slices.Sorted(maps.Keys(copies)) {
		if err := g.copyState(ctx, partition, copies[partition]); err != nil {
			return false, err
		}
	}
	g.say(fmt.Sprintf("copied   %s of %s in %s to the partitions they belong to", plural(n, "record"), plural(len(machines), "machine"), TopicState))
	if err := g.removeState(ctx, remove); err != nil {
		return false, err
	}
	g.say(fmt.Sprintf("removed  %s from the partitions they do not belong to", plural(len(remove), "record")))
	return true, nil
}

// readState returns, for every key of TopicState, the place of its last message in each
// partition. Removed keys are left out.
func (g *grower) readState(ctx context.Context) (map[string][]stateRecord, error) {
	all := make(map[string][]stateRecord)
	for p := range g.partitions {
		if err := g.checkTransactions(ctx, p); err != nil {
			return nil, err
		}
		last := make(map[string]stateRecord)
		err := ReadFrom(ctx, g.c.cfg, TopicState, p, FirstOffset, false, func(m Message) error {
			if m.Value == nil {
				delete(last, m.Key)
			} else {
				last[m.Key] = stateRecord{m.Key, p, m.Offset, m.Time}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for key, r := range last {
			all[key] = append(all[key], r)
		}
	}
	return all, nil
}

// checkTransactions waits for open transactions: records behind the beginning of one cannot
// be read yet.
func (g *grower) checkTransactions(ctx context.Context, partition int) error {
	return g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		end, err := offsetAt(ctx, kc, TopicState, partition, LastOffset)
		if err != nil {
			return err
		}
		stable, err := stableEnd(ctx, kc, TopicState, partition)
		if err == nil && stable < end { // the broker ends it at its timeout
			err = fmt.Errorf("bus: topic %s partition %d: a transaction is open, perhaps of a monitor that was killed: waiting until Kafka ends it", TopicState, partition)
		}
		return err
	})
}

// copyState copies records of one partition to the partitions they belong to.
func (g *grower) copyState(ctx context.Context, partition int, records []stateRecord) error {
	wanted := make(map[int64]bool)
	for _, r := range records {
		wanted[r.offset] = true
	}
	batch, size := make(map[int][]Message), 0 // by the partition they belong to
	flush := func() error {
		for _, home := range slices.Sorted(maps.Keys(batch)) {
			if err := g.put(ctx, home, batch[home]); err != nil {
				return err
			}
		}
		clear(batch)
		size = 0
		return nil
	}
	err := ReadFrom(ctx, g.c.cfg, TopicState, partition, FirstOffset, false, func(m Message) error {
		if !wanted[m.Offset] {
			return nil
		}
		delete(wanted, m.Offset)
		if size > 0 && size+m.Size() > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		home := PartitionOf(stateMachine(m.Key), g.partitions)
		batch[home] = append(batch[home], m)
		size += m.Size()
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil && len(wanted) > 0 {
		err = fmt.Errorf("bus: %s of topic %s partition %d changed meanwhile: a monitor is running; stop it and run this again", plural(len(wanted), "record"), TopicState, partition)
	}
	return err
}

// removeState removes records from the partitions they lie in.
func (g *grower) removeState(ctx context.Context, records []stateRecord) error {
	tombstones := make(map[int][]Message)
	for _, r := range records {
		tombstones[r.partition] = append(tombstones[r.partition], Message{Key: r.key})
	}
	for _, partition := range slices.Sorted(maps.Keys(tombstones)) {
		for batch := range slices.Chunk(tombstones[partition], 500) {
			if err := g.put(ctx, partition, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

// put writes messages to one partition of TopicState and ignores their keys.
func (g *grower) put(ctx context.Context, partition int, msgs []Message) error {
	return g.c.retry(ctx, func(ctx context.Context, kc *kafka.Client) error {
		records := make([]kafka.Record, len(msgs))
		for i, m := range msgs {
			records[i] = kafka.Record{Time: time.Now(), Key: kafka.NewBytes([]byte(m.Key)), Value: kafka.NewBytes(m.Value)}
			for _, h := range m.Headers {
				records[i].Headers = append(records[i].Headers, kafka.Header{Key: h.Key, Value: h.Value})
			}
		}
		res, err := kc.Produce(ctx, &kafka.ProduceRequest{
			Topic: TopicState, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...),
		})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			return fmt.Errorf("bus: topic %s partition %d: %w", TopicState, partition, err)
		}
		return nil
	})
}
