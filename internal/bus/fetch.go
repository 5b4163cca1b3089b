package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// fetcher reads one partition. It parses the answers itself: the client library takes
// memory for every length that it finds in them, unpacks compressed batches without a
// bound, and hides which transactions were aborted.
//
// Windows are read whether or not their transaction has been committed: Flank does not
// write them in transactions, and a transaction that another program leaves open must not
// hold up the machines. All other topics are read up to the oldest open transaction, and
// aborted messages are left out.
type fetcher struct {
	c *client
	place
	id      topicID // of the topic when reading began; zero: not known
	next    int64   // offset to read next, or FirstOffset or lastOffset
	high    int64   // offset behind the newest message that may be read, as of the last fetch
	budget  *budget
	most    int     // bytes that the next fetch asks for
	held    int     // bytes of the budget that unfinished messages take
	busy    bool    // there was much to read last time, or nothing was read yet
	came    bool    // there was something to read last time
	asks    *demand // the last one; nil: none
	corrupt int     // fetches in a row whose first batch had a wrong checksum
	read    bool    // a fetch has succeeded
	before  texts   // of the last message
	lends   bool    // long values are parts of an answer, see Message.TakeLoan
	whole   bool    // report missing offsets: the topic is not compacted
	stall   stallWatch
}

// committedOnly reports whether only committed messages of a topic are read.
func committedOnly(topic string) bool { return topic != TopicWindows }

// fetch asks once, waiting up to wait for a message to come, and repeats only
// failures. It may return no messages.
//
// A partition that holds no messages and has many to read waits for its
// share, and then asks for a large answer. A partition that holds messages, or has none
// to read, asks for a small answer and does not wait.
func (f *fetcher) fetch(ctx context.Context, wait time.Duration) (msgs []Message, err error) {
	reserved := 0
	f.most = quietFetch(f.topic)
	if f.busy && f.held == 0 {
		if err := f.budget.take(ctx, MaxMessage); err != nil {
			return nil, err
		}
		f.most, reserved, wait = MaxMessage, MaxMessage, 0
	}
	defer func() {
		memory := 0
		for i := range msgs {
			memory += msgs[i].memory()
		}
		f.held += memory
		f.budget.give(reserved - memory)
	}()
	err = f.c.retry(ctx, func(ctx context.Context) error {
		if f.next < 0 {
			at, err := f.c.t.offset(ctx, f.place, f.next, committedOnly(f.topic))
			if err != nil {
				return err
			}
			f.next = at
		}
		msgs, err = f.fetchOnce(ctx, wait)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			return f.relocate(ctx)
		}
		return err
	})
	if err == nil {
		f.watch(ctx, time.Now())
	}
	return msgs, err
}

// done gives the memory of messages back to the budget.
func (f *fetcher) done(memory int) {
	f.held -= memory
	f.budget.give(memory)
}

func (f *fetcher) fetchOnce(ctx context.Context, wait time.Duration) ([]Message, error) {
	want := demand{place: f.place, next: f.next, most: f.most, wait: wait, urgent: f.busy || f.came || wait < busyWait}
	got, asks, err := f.c.t.fetch(ctx, f.asks, want)
	f.asks = asks
	if err != nil {
		return nil, err
	}
	defer got.body.Return()
	if got.code != 0 {
		return nil, fmt.Errorf("bus: topic %s partition %d offset %d: %w", f.topic, f.partition, f.next, got.code)
	}
	f.c.allowed.Store(true)
	f.high = got.end(f.topic)
	r := recordReader{topic: f.topic, partition: f.partition, committed: committedOnly(f.topic), aborted: got.aborted, tolerant: f.corrupt >= checksumsTried}
	if r.before = f.before; f.lends {
		r.loan = got.body
	}
	out, err := r.read(got.records, f.next)
	if err != nil {
		f.corrupt++
		return nil, fmt.Errorf("bus: topic %s partition %d offset %d: %w", f.topic, f.partition, f.next, err)
	}
	f.corrupt, f.read, f.next, f.before = 0, true, out.next, r.before
	f.came = len(got.records) > 0
	f.busy = len(got.records) > quietFetch(f.topic)/2
	for _, g := range out.gaps {
		f.sayGap(Gap{Topic: f.topic, Partition: f.partition, From: g[0], To: g[1]})
	}
	got.body.lend(out.msgs)
	return out.msgs, nil
}

// relocate finds a place to go on when the log does not have the offset to be read next.
//
// If messages were removed before they were read, reading goes on at the oldest one, and
// the missing offsets are a gap. A log that ends before the offset either belongs to a new
// topic, which is read from its beginning, or has lost its newest messages, as after a
// power cut. Then reading goes on at its end: the messages before it were read.
func (f *fetcher) relocate(ctx context.Context) error {
	first, err := f.c.t.offset(ctx, f.place, FirstOffset, false)
	if err != nil {
		return err
	}
	end, err := f.c.t.offset(ctx, f.place, lastOffset, false)
	if err != nil {
		return err
	}
	if first <= f.next && f.next <= end {
		return fmt.Errorf("bus: topic %s partition %d: offset %d is there again: %w", f.topic, f.partition, f.next, kafka.OffsetOutOfRange)
	}
	gap := Gap{Topic: f.topic, Partition: f.partition, From: f.next, To: first}
	if f.next > end && !f.recreated(ctx, first, end) {
		gap.To, gap.Cut = end, true
	}
	f.next = gap.To
	f.sayGap(gap)
	if gap.To > gap.From {
		return fmt.Errorf("bus: topic %s partition %d: offset %d is gone, going on at %d, the oldest there is: messages were removed before they were read (raise the topic's retention)",
			f.topic, f.partition, gap.From, gap.To)
	}
	return fmt.Errorf("bus: %v", gap)
}

// recreated reports whether a topic whose log ends before f.next was removed and made
// again. Kafka gives every topic an id, which shows it for positions of this run. The id of
// a position from an earlier run is not known: then a log that begins at 0 and ends before
// half of f.next counts as new.
func (f *fetcher) recreated(ctx context.Context, first, end int64) bool {
	now := f.c.t.askID(ctx, f.topic)
	known := f.id != (topicID{}) && now != (topicID{})
	if known && (now != f.id || f.read) {
		return now != f.id
	}
	return first == 0 && end < f.next/2
}
