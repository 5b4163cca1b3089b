package bus

import (
	"context"
	"time"
)

// Reader reads the partition of another topic that has the same number as a member's
// partition. It belongs to one goroutine. Close it when the
// handler of the partition returns.
type Reader struct {
	part Partition // of which Fetch uses what it reads with
}

// Reader returns a reader of another topic, which was an argument of Fence, from an offset on.
// If that is its Position, missing offsets are a Gap. Its messages count against the memory of the
// group's partitions. OnFetched is called as Partition.OnFetched.
func (t *Txn) Reader(topic string, from int64, onFetched func(end int64)) *Reader {
	return &Reader{Partition{
		OnFetched: onFetched,
		f:         fetcher{c: t.p.f.c, place: place{topic, t.p.ID()}, next: from, whole: from == t.Position(topic), budget: t.p.f.budget},
	}}
}

// Fetch does as Partition.Fetch. It does not know whether the partition is lost.
func (r *Reader) Fetch(ctx context.Context, most int, wait time.Duration) ([]Message, error) {
	return r.part.Fetch(ctx, most, wait)
}

// Next returns the offset up to which Fetch has returned all messages. What transactions leave
// in a partition when they end takes offsets, too.
func (r *Reader) Next() int64 {
	if len(r.part.queue) > 0 {
		return r.part.queue[0].Offset
	}
	return r.part.f.next
}

// Close gives the memory of the last messages back.
func (r *Reader) Close() { r.part.f.done(r.part.f.held) }
